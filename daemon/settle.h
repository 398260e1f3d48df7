/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_SETTLE_H
#define RINGBUS_DAEMON_SETTLE_H
/*
 * daemon/settle.h - the time after a start in which clients of an earlier daemon come back
 * (daemon.return_time). Until it is over nobody is missed; then all are told (SETTLED), and
 * who is not in the directory is gone.
 */
#include "daemon/loop.h"

struct rbi_daemon;

struct rbi_settle {
    bool settling;
    uint64_t time_ns;
    uint64_t due_ns;
    struct rbi_loop_timer timer;
};

/** The loop runs from here on. */
void rbi_settle_start(struct rbi_daemon *daemon);

#endif
