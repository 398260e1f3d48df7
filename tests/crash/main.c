/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash - kills a client at every instruction of an operation.
 *
 *   crash [OPERATION] [--mode kill|pause] [--shard I/N] [--points N] [--seed N] [--at N]
 *
 * Without --points every instruction of the shard; with it so many of each operation, spread
 * evenly from a start that the seed chooses. --at: this one point, to look at it again.
 */
#include "crash/partner.h"
#include "crash/round.h"
#include "crash/victim.h"
#include "support/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77

static struct cluster cluster;
static pid_t main_pid;

static struct {
    const char *operation;
    enum round_mode mode;
    unsigned shard;
    unsigned shards;
    unsigned points; /* 0: all */
    long at;         /* -1: all */
    uint64_t seed;
} options = {.shards = 1, .at = -1};

/* ---- what is said when it fails -------------------------------- */

static struct {
    const char *operation;
    struct round_point at;
    bool passed;
} now;

static void at_end(void)
{
    if (getpid() != main_pid) {
        return;
    }
    if (!now.passed && now.operation) {
        (void)fprintf(stderr, "crash: failed in %s, mode %s, at %u (call %u), seed %" PRIu64 "\n",
                      now.operation, options.mode == ROUND_KILL ? "kill" : "pause",
                      now.at.instructions, now.at.calls, options.seed);
    }
    cluster_down(&cluster);
}

/* ---- a sweep -------------------------------- */

struct sweep {
    unsigned rounds;
    unsigned length; /* of the operation, in steps */
    unsigned last_without;
    unsigned first_with; /* of the points: around the instruction that commits */
    uint32_t arrived_first;
    bool slept;
    uint64_t down_ns_max;
};

static void run_at(const struct operation *operation,
                   unsigned idx,
                   struct round_point at,
                   const struct leak *baseline,
                   struct round_result *result)
{
    now.operation = operation->name;
    now.at = at;
    round_run(&cluster, operation, idx, options.mode, at, baseline, result);
    if (result->refused) {
        (void)printf("crash: skipped: ptrace is not permitted here\n");
        now.passed = true;
        exit(SKIPPED);
    }
}

static void note(struct sweep *sweep, unsigned at, const struct round_result *result)
{
    if (sweep->rounds++ == 0) {
        sweep->arrived_first = result->arrived;
        sweep->first_with = UINT32_MAX;
    }
    if (result->arrived == sweep->arrived_first) {
        sweep->last_without = at > sweep->last_without ? at : sweep->last_without;
    } else {
        sweep->first_with = at < sweep->first_with ? at : sweep->first_with;
    }
    sweep->slept |= result->slept;
    sweep->down_ns_max =
        result->down_ns > sweep->down_ns_max ? result->down_ns : sweep->down_ns_max;
}

/* A point of the operation by number. */
static struct round_point point(const struct operation *operation, unsigned i, uint64_t *random)
{
    if (!operation->by_calls) {
        return (struct round_point){.instructions = i};
    }
    /* Even: at a boundary of a system call. Odd: somewhere behind it. */
    const unsigned behind = (unsigned)(bus_random(random) % 1000);
    return (struct round_point){.calls = i / 2, .instructions = i % 2 != 0 ? behind : 0};
}

static void sweep_operation(const struct operation *operation, unsigned idx)
{
    struct round_result result;
    struct leak before;
    struct leak after;
    struct sweep sweep = {0};
    uint64_t random = options.seed;
    const uint64_t start_ms = test_now_ms();
    const struct round_point whole = {.calls = operation->by_calls ? UINT32_MAX : 0,
                                      .instructions = operation->by_calls ? 0 : UINT32_MAX};
    /* Twice whole: its length, and all that is made once is made. */
    run_at(operation, idx, whole, NULL, &result);
    run_at(operation, idx, whole, NULL, &result);
    sweep.length = operation->by_calls ? 2 * result.calls : result.instructions;
    leak_take(&cluster, &before);
    const unsigned stride = options.points == 0 || options.points >= sweep.length
                                ? options.shards
                                : sweep.length / options.points;
    unsigned at = options.points == 0 ? options.shard : (unsigned)(bus_random(&random) % stride);
    if (options.at >= 0) {
        at = (unsigned)options.at;
    }
    do {
        run_at(operation, idx, point(operation, at, &random), &before, &result);
        note(&sweep, at, &result);
        at += stride;
    } while ((result.reached || at <= sweep.length) && options.at < 0);
    const uint64_t deadline_ms = test_now_ms() + 2000;
    do {
        partners_run();
        leak_take(&cluster, &after);
    } while (!leak_equal(&before, &after, false) && test_now_ms() < deadline_ms);
    CHECK(leak_equal(&before, &after, true));
    (void)printf("crash: %-12s %5u points of %5u, %5" PRIu64 " ms, DOWN within %5.2f ms",
                 operation->name, sweep.rounds, sweep.length, test_now_ms() - start_ms,
                 (double)sweep.down_ns_max / 1e6);
    if (sweep.first_with != UINT32_MAX) {
        (void)printf(", arrived from %u on, not at %u", sweep.first_with, sweep.last_without);
    }
    (void)printf("%s\n", sweep.slept ? ", asleep" : "");
    (void)fflush(stdout);
}

/* ---- arguments -------------------------------- */

static int usage(void)
{
    (void)fprintf(stderr, "usage: crash [OPERATION] [--mode kill|pause] [--shard I/N] "
                          "[--points N] [--seed N] [--at N]\noperations:");
    for (unsigned i = 0; operation_at(i); i++) {
        (void)fprintf(stderr, " %s", operation_at(i)->name);
    }
    (void)fprintf(stderr, "\n");
    return 2;
}

static int parse_option(const char *name, const char *value)
{
    if (strcmp(name, "--mode") == 0) {
        options.mode = strcmp(value, "pause") == 0 ? ROUND_PAUSE : ROUND_KILL;
    } else if (strcmp(name, "--shard") == 0) {
        return sscanf(value, "%u/%u", &options.shard, &options.shards) == 2 &&
                       options.shard < options.shards
                   ? 0
                   : -1;
    } else if (strcmp(name, "--points") == 0) {
        options.points = (unsigned)strtoul(value, NULL, 10);
    } else if (strcmp(name, "--seed") == 0) {
        options.seed = strtoull(value, NULL, 10);
    } else if (strcmp(name, "--at") == 0) {
        options.at = strtol(value, NULL, 10);
    } else {
        return -1;
    }
    return 0;
}

static int parse(int argc, char **argv)
{
    options.seed = machine_now_ns() % 1000000;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            options.operation = argv[i];
        } else if (i + 1 >= argc || parse_option(argv[i], argv[i + 1]) != 0) {
            return -1;
        } else {
            i++;
        }
    }
    return options.operation && !operation_find(options.operation) ? -1 : 0;
}

int main(int argc, char **argv)
{
    if (parse(argc, argv) != 0) {
        return usage();
    }
    main_pid = getpid();
    (void)printf("crash: seed %" PRIu64 "\n", options.seed);
    /* Rounds follow each other faster than the clients of a real user come. */
    CHECK(cluster_up(&cluster, "daemon:\n  log_level: warning\nquota:\n  connects: 1000000\n") ==
          0);
    CHECK(atexit(at_end) == 0);
    bus_shared_reset();
    victims_begin(&cluster);
    partners_open(&cluster);
    for (unsigned i = 0; operation_at(i); i++) {
        if (options.operation ? strcmp(options.operation, operation_at(i)->name) == 0
                              : options.mode == ROUND_KILL || !operation_at(i)->by_calls) {
            sweep_operation(operation_at(i), i);
        }
    }
    partners_close();
    victims_end();
    now.passed = true;
    return 0;
}
