/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions SOCKET: for callgrind. Opens its endpoints uncounted, holds the clock, then
 * counts each phase into a dump of its own, named "PHASE ROUNDS OPERATIONS". check.sh starts it
 * and compares.
 */
#include "tests/instructions/clock.h"
#include "tests/instructions/phases.h"

#include <stdio.h>
#include <valgrind/callgrind.h>

static struct group groups[GROUP_COUNT] = {
    [GROUP_ONE] = {.cluster = "One", .count = 1, .mode = RINGBUS_MODE_BUSY},
    [GROUP_SLEEPER] = {.cluster = "Sleeper", .count = 1, .mode = RINGBUS_MODE_SLEEP},
    [GROUP_8] = {.cluster = "Eight", .count = 8, .mode = RINGBUS_MODE_BUSY},
    [GROUP_64] = {.cluster = "Crowd", .count = 64, .mode = RINGBUS_MODE_BUSY, .lane_bytes = 4096},
    [GROUP_512] = {.cluster = "Host", .count = 512, .mode = RINGBUS_MODE_BUSY, .lane_bytes = 4096},
};

static int run_rounds(const struct phase *phase, struct group *group)
{
    for (unsigned i = 0; i < phase->rounds; i++) {
        if (phase->prepare != NULL) {
            phase->prepare(group, phase->operations);
        }
        CALLGRIND_TOGGLE_COLLECT;
        phase->run(group, phase->operations);
        CALLGRIND_TOGGLE_COLLECT;
        if (group_drain(group) != 0) {
            return -1;
        }
    }
    return 0;
}

static int run_phase(const struct phase *phase)
{
    char name[64];
    struct group *group = &groups[phase->group];
    (void)snprintf(name, sizeof name, "%s %u %u", phase->name, phase->rounds, phase->operations);
    /* Once to warm up: tables are built, lanes go round, polls have found their pace. */
    if (run_rounds(phase, group) != 0) {
        return -1;
    }
    CALLGRIND_ZERO_STATS;
    if (run_rounds(phase, group) != 0) {
        return -1;
    }
    CALLGRIND_DUMP_STATS_AT(name);
    return 0;
}

int main(int argc, char **argv)
{
    int r = 0;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: instructions SOCKET\n");
        return 2;
    }
    for (unsigned i = 0; r == 0 && i < GROUP_COUNT; i++) {
        r = group_open(&groups[i], argv[1]);
    }
    clock_hold();
    for (unsigned i = 0; r == 0 && i < GROUP_COUNT; i++) {
        group_settle(&groups[i]);
    }
    CALLGRIND_START_INSTRUMENTATION;
    for (unsigned i = 0; r == 0 && i < phase_count; i++) {
        r = run_phase(&phases[i]);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
    clock_release();
    if (r == 0 && clock_held_readings() == 0) {
        (void)fprintf(stderr, "instructions: libringbus does not read the clock that was held\n");
        r = -1;
    }
    for (unsigned i = 0; i < GROUP_COUNT; i++) {
        group_close(&groups[i]);
    }
    return r == 0 ? 0 : 1;
}
