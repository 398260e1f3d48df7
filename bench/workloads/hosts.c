/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/hosts.c - between two hosts over TLS, beside what TLS alone makes of the same
 * loopback. Four processes take part, the two bridges among them, so with two cores the ends share
 * theirs: near and far mean nothing here.
 */
#include "bench/sweep.h"

extern const struct bench_contender bench_tls;

static const uint64_t trip_sizes[] = {64, 1024, 65536, 0};
static const uint64_t stream_sizes[] = {64, 1024, 65536, 0};

static int trips(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "ns",
        .kind = BENCH_KIND_TRIPS,
        .mode = BENCH_SLEEP,
        .cpu = {0, 1},
        .only = "tls,ringbus-hosts",
        .sizes = trip_sizes,
        .bases = {{&bench_tls, BENCH_SLEEP, 0, UINT64_MAX, 0, "bare TLS", NULL}},
        .base_count = 1,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

static int streams(struct bench_run *run, const struct bench_workload *workload)
{
    const struct bench_sweep sweep = {
        .workload = workload->name,
        .unit = "M/s",
        .kind = BENCH_KIND_STREAM,
        .mode = BENCH_SLEEP,
        .cpu = {0, 1},
        .only = "tls,ringbus-hosts",
        .sizes = stream_sizes,
        .bases = {{&bench_tls, BENCH_SLEEP, 0, UINT64_MAX, 0, "bare TLS", NULL}},
        .base_count = 1,
        .seconds = bench_run_seconds(run, workload)};
    return bench_sweep(run, &sweep);
}

const struct bench_workload bench_hosts_round_trip = {
    "hosts-round-trip", "one message to another host and back, over TLS", 12, true, trips};
const struct bench_workload bench_hosts_one_way = {
    "hosts-one-way", "messages to another host as fast as they go, over TLS", 12, true, streams};
