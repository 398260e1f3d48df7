/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_OUTAGE_H
#define RINGBUS_TESTS_CRASH_OUTAGE_H
/*
 * The daemon is the one that is killed: at every boundary of a system call, and somewhere
 * behind each, while it registers a client and introduces it to a partner. Then it is started
 * again.
 */
#include "crash/sweep.h"

/** @retval 0; -1 ptrace is not permitted here */
int outage_sweep(struct cluster *cluster, const struct sweep_options *options);
/** How to repeat the round that failed, on stderr. */
void outage_say_where(void);

#endif
