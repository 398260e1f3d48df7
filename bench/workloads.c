/* SPDX-License-Identifier: Apache-2.0 */
/* bench/workloads.c - the list; each is one file in bench/workloads/ or shares one. */
#include "bench/run.h"

#define BENCH_WORKLOADS(X)                                                                         \
    X(machine)                                                                                     \
    X(round_trip)                                                                                  \
    X(round_trip_sleep)                                                                            \
    X(sparse)                                                                                      \
    X(same_core)                                                                                   \
    X(one_way)                                                                                     \
    X(hundred_million)                                                                             \
    X(one_way_sleep)                                                                               \
    X(cpu)                                                                                         \
    X(syscalls)                                                                                    \
    X(broadcast)                                                                                   \
    X(broadcast_large)                                                                             \
    X(fan)                                                                                         \
    X(dispatch)                                                                                    \
    X(idle_links)                                                                                  \
    X(services)                                                                                    \
    X(open_introduce)                                                                              \
    X(death)                                                                                       \
    X(link_memory)                                                                                 \
    X(daemon_idle)                                                                                 \
    X(mix)                                                                                         \
    X(hosts_round_trip)                                                                            \
    X(hosts_one_way)

#define DECLARE(name) extern const struct bench_workload bench_##name;
#define ENTER(name)   &bench_##name,

BENCH_WORKLOADS(DECLARE)

const struct bench_workload *const bench_workloads[] = {BENCH_WORKLOADS(ENTER) NULL};
