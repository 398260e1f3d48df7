/* SPDX-License-Identifier: Apache-2.0 */
/* bench/workloads.c - the list; each is one file in bench/workloads/ or shares one. */
#include "bench/run.h"

#define BENCH_WORKLOADS(X)                                                                         \
    X(round_trip)                                                                                  \
    X(round_trip_sleep)                                                                            \
    X(sparse)                                                                                      \
    X(same_core)                                                                                   \
    X(one_way)                                                                                     \
    X(one_way_sleep)

#define DECLARE(name) extern const struct bench_workload bench_##name;
#define ENTER(name)   &bench_##name,

BENCH_WORKLOADS(DECLARE)

const struct bench_workload *const bench_workloads[] = {BENCH_WORKLOADS(ENTER) NULL};
