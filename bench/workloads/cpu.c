/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/cpu.c - CPU time a message at each side: side 0 fills the ring while nobody
 * reads, then side 1 empties it while nobody writes, so that neither ever waits. What ringbus
 * takes more than bare slots in the same pair, a moment before.
 */
#include "bench/sweep.h"
#include "measure/lines.h"

#include <stdlib.h>

#define BLOCKS_MAX 400U
#define MESSAGES   16384U

extern const struct bench_contender bench_slots;
extern const struct bench_contender bench_ringbus;

static void
place(struct bench_run *run, struct bench_place *place, const struct bench_contender *contender)
{
    place->contender = contender;
    place->mode = BENCH_BUSY;
    place->size_max = 1024;
    place->number = ++run->pair_number;
    (void)snprintf(place->directory, sizeof place->directory, "%s", run->directory);
    (void)snprintf(place->bus_socket, sizeof place->bus_socket, "%s", run->bus_socket);
}

static int block(struct bench_pair *pair, uint64_t size, double extra[2], bool *far)
{
    const struct bench_part none = {.count = 0};
    struct bench_part part = {.slot = 1, .kind = BENCH_KIND_APART, .size = size, .count = MESSAGES};
    struct bench_outcome bare;
    struct bench_outcome ours;
    if (bench_pair_block(pair, &none, &part, &bare) != 0) {
        return -1;
    }
    part.slot = 0;
    if (bench_pair_block(pair, &none, &part, &ours) != 0) {
        return -1;
    }
    *far = ours.limit_ns > RBI_LINES_NEAR_NS_MAX;
    extra[0] = ours.side_ns[0] - bare.side_ns[0];
    extra[1] = ours.side_ns[1] - bare.side_ns[1];
    return 0;
}

static int measure(struct bench_run *run, const struct bench_workload *workload, uint64_t size)
{
    static double extra[2][2][BLOCKS_MAX]; /* by regime, by side */
    static const char *const regimes[] = {"near", "far"};
    static const char *const side[] = {"send", "take"};
    struct bench_pair *pair = calloc(1, sizeof *pair);
    unsigned n[2] = {0, 0};
    bool far = false;
    if (pair == NULL) {
        return -1;
    }
    pair->slot_count = 2;
    pair->cpu[1] = 1;
    place(run, &pair->places[0], &bench_ringbus);
    place(run, &pair->places[1], &bench_slots);
    int r = bench_pair_start(pair);
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(bench_run_seconds(run, workload) * 1e9 / 2);
    double pair_extra[2];
    for (unsigned warm = 0; r == 0 && warm < 3; warm++) {
        r = block(pair, size, pair_extra, &far);
    }
    while (r == 0 && n[far] < BLOCKS_MAX && (n[0] + n[1] < 5 || bench_now_ns() < end_ns)) {
        r = block(pair, size, pair_extra, &far);
        extra[far][0][n[far]] = pair_extra[0];
        extra[far][1][n[far]++] = pair_extra[1];
    }
    if (r != 0) {
        bench_run_failed(run, workload->name, &bench_ringbus, pair->why);
    }
    r = bench_pair_stop(pair) != 0 ? -1 : r;
    free(pair);
    for (unsigned i = 0; r == 0 && i < 4; i++) {
        char param[24];
        const unsigned regime = i / 2;
        (void)snprintf(param, sizeof param, "%u B %s", (unsigned)size, side[i % 2]);
        run->regime = regimes[regime];
        if (n[regime] > 0) {
            bench_run_value(run, workload->name, "ringbus", param, 0, "busy", "ns",
                            extra[regime][i % 2], n[regime]);
        }
    }
    return r;
}

static int cpu(struct bench_run *run, const struct bench_workload *workload)
{
    const int r = measure(run, workload, 48);
    return measure(run, workload, 1024) != 0 ? -1 : r;
}

const struct bench_workload bench_cpu = {
    "cpu", "CPU time a message at each side, more than bare slots take", 4, true, cpu};
