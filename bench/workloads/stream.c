/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/stream.c - messages one way as fast as they go: both sides polling, and with
 * a receiver that sleeps whenever it has nothing; and the CPU time that each side spends.
 */
#include "bench/sweep.h"

extern const struct bench_contender bench_slots;
extern const struct bench_contender bench_bytering;
extern const struct bench_contender bench_ringbus;

static const uint64_t all_sizes[] = {8, 48, 64, 256, 1024, 8192, 65536, 1U << 20, 0};
static const uint64_t quick_sizes[] = {48, 64, 1024, 65536, 0};
static const uint64_t sleep_sizes[] = {8, 64, 1024, 8192, 65536, 1U << 20, 0};
static const uint64_t one_size[] = {64, 0};
static const uint64_t small_size[] = {48, 0};

static int busy(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "M/s",
        .kind = BENCH_KIND_STREAM,
        .mode = BENCH_BUSY,
        .cpu = {0, 1},
        .sizes = run->options.quick || run->options.smoke ? quick_sizes : all_sizes,
        .bases = {{&bench_slots, BENCH_BUSY, 0, 64, 0, "bare slots", NULL},
                  {&bench_bytering, BENCH_BUSY, 65, 128U << 10, 0, "bare byte ring", NULL}},
        .base_count = 2,
        .limits = true,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

static int sleeping(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "M/s",
        .kind = BENCH_KIND_STREAM,
        .mode = BENCH_SLEEP,
        .cpu = {0, 1},
        .sizes = run->options.quick || run->options.smoke ? one_size : sleep_sizes,
        .bases = {{&bench_ringbus, BENCH_BUSY, 0, UINT64_MAX, 0, "ringbus busy", NULL}},
        .base_count = 1,
        .limits = true,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

/* The promise: so many messages, none lost, none twice, none out of order. */
static int many(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {.workload = workload->name,
                                      .unit = "M/s",
                                      .kind = BENCH_KIND_STREAM,
                                      .mode = BENCH_BUSY,
                                      .cpu = {0, 1},
                                      .sizes = small_size,
                                      .only = "ringbus",
                                      .count = 1000000,
                                      .blocks = run->options.smoke ? 2 : 100};
    return bench_sweep(run, &sweep);
}

const struct bench_workload bench_hundred_million = {
    "hundred-million", "10^8 messages of 48 B, none lost or out of order", 3, true, many};
const struct bench_workload bench_one_way = {
    "one-way", "messages from one side to the other, both polling", 30, true, busy};
const struct bench_workload bench_one_way_sleep = {
    "one-way-sleep", "messages one way to a receiver that sleeps when it has nothing", 20, true,
    sleeping};
