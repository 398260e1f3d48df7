/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_CONTENDERS_HOSTS_H
#define RINGBUS_BENCH_CONTENDERS_HOSTS_H
/* bench/contenders/hosts.h - two hosts, joined: a bus for each side. */
#include "bench/bench.h"

/** Starts them, and says in the place where each side's bus is. 0; -1 with a line on stderr. */
int bench_hosts_setup(struct bench_place *place);
void bench_hosts_teardown(struct bench_place *place);

#endif
