/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/pingpong.c - round trips: busy, sleeping, and with both sides on one core.
 */
#include "bench/sweep.h"

extern const struct bench_contender bench_copy;
extern const struct bench_contender bench_eventfd;
extern const struct bench_contender bench_pipe;
extern const struct bench_contender bench_ringbus;

static const uint64_t all_sizes[] = {8, 48, 64, 256, 1024, 8192, 65536, 1U << 20, 0};
static const uint64_t quick_sizes[] = {48, 64, 1024, 65536, 1U << 20, 0};
static const uint64_t sleep_sizes[] = {8, 64, 1024, 8192, 65536, 1U << 20, 0};
static const uint64_t one_size[] = {64, 0};

static int busy(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "ns",
        .kind = BENCH_KIND_TRIPS,
        .mode = BENCH_BUSY,
        .cpu = {0, 1},
        .sizes = run->options.quick || run->options.smoke ? quick_sizes : all_sizes,
        .bases = {{&bench_copy, BENCH_BUSY, 65, UINT64_MAX, 0, "copy", NULL},
                  {&bench_ringbus, BENCH_BUSY, 0, UINT64_MAX, 64, "64 B copied", "ringbus-ref"}},
        .base_count = 2,
        .limits = true,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

static int sleeping(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "ns",
        .kind = BENCH_KIND_TRIPS,
        .mode = BENCH_SLEEP,
        .cpu = {0, 1},
        .gap_ns = 10000, /* both sleep, or meet by chance while they spin */
        .sizes = run->options.quick || run->options.smoke ? one_size : sleep_sizes,
        .bases = {{&bench_eventfd, BENCH_SLEEP, 0, 65536, 0, "bare eventfd", NULL}},
        .base_count = 1,
        .limits = true,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

static int sparse(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "ns",
        .kind = BENCH_KIND_TRIPS,
        .mode = BENCH_SLEEP,
        .cpu = {0, 1},
        .gap_ns = 1000000,
        .sizes = one_size,
        .bases = {{&bench_eventfd, BENCH_SLEEP, 0, 65536, 0, "bare eventfd", NULL}},
        .base_count = 1,
        .limits = true,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

static int same_core(struct bench_run *run, const struct bench_workload *workload)
{
    struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "ns",
        .kind = BENCH_KIND_TRIPS,
        .mode = BENCH_SLEEP,
        .cpu = {0, 0},
        .pin_first = true,
        .sizes = one_size,
        .bases = {{&bench_pipe, BENCH_SLEEP, 0, UINT64_MAX, 0, "pipe", NULL}},
        .base_count = 1,
        .limits = true,
        .seconds = bench_run_seconds(run, workload) / 2};
    int r = bench_sweep(run, &sweep);
    sweep.mode = BENCH_BUSY;
    sweep.only = "ringbus";
    return bench_sweep(run, &sweep) != 0 ? -1 : r;
}

const struct bench_workload bench_round_trip = {
    "round-trip", "one message there and back, both sides polling", 30, true, busy};
const struct bench_workload bench_round_trip_sleep = {
    "round-trip-sleep", "one message there and back, both sides sleep in between", 20, true,
    sleeping};
const struct bench_workload bench_sparse = {
    "sparse", "one round trip a millisecond, both sides sleep in between", 4, false, sparse};
const struct bench_workload bench_same_core = {
    "same-core", "round trip with both sides on one core", 4, true, same_core};
