/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_STOP_H
#define RINGBUS_BENCH_STOP_H
/*
 * bench/stop.h - SIGINT and SIGTERM end a run in order: what is under way fails, daemons of
 * peers are ended and what they leave in /dev/shm and /tmp is removed, as after any run.
 */
#include <stdbool.h>

/** In the parent, before it forks; processes forked later end at once. */
void bench_stop_on_signals(void);
bool bench_stopping(void);

#endif
