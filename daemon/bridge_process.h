/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_PROCESS_H
#define RINGBUS_DAEMON_BRIDGE_PROCESS_H
/*
 * daemon/bridge_process.h - ringbus-bridge as a child: started when the configuration has a section
 * "bridge" with start, started again when it ends, with a back-off of RBI_BRIDGE_PROCESS_MIN_NS to
 * _MAX_NS, and stopped in order with the daemon. A bridge that an operator, or a service manager,
 * starts by itself (bridge.start: false) is none of this.
 *
 *   ringbus-bridge --config FILE --socket SOCKET --folder FOLDER --child
 *
 * A daemon that is killed leaves it behind, with all links to other hosts; the next daemon takes it
 * over (bridge_mark.h), so these go on as links do. --child: without a daemon for too long it ends
 * by itself. The program is the one beside ringbusd's own file, or $RINGBUS_BRIDGE.
 */
#include "daemon/loop.h"

#include <sys/types.h>

struct rbi_daemon;
struct rbi_bridge_config;

#define RBI_BRIDGE_PROCESS_MIN_NS (UINT64_C(100) * 1000 * 1000)
#define RBI_BRIDGE_PROCESS_MAX_NS (UINT64_C(5) * 1000 * 1000 * 1000)
/** One that has lived for so long has not failed to start: the back-off begins anew. */
#define RBI_BRIDGE_PROCESS_GOOD_NS (UINT64_C(10) * 1000 * 1000 * 1000)
/** Time to end in order. */
#define RBI_BRIDGE_PROCESS_STOP_NS (UINT64_C(2) * 1000 * 1000 * 1000)

struct rbi_bridge_process {
    pid_t pid;     /* 0: none runs */
    int pidfd;     /* -1 when the kernel gives none: it is looked at now and then */
    bool stopping; /* it was told to */
    bool adopted;  /* the daemon before has started it: it is not our child */
    uint64_t started_ns;
    uint64_t backoff_ns;
    uint64_t starts;
    struct rbi_loop_source source;
    struct rbi_loop_timer start_timer;
    struct rbi_loop_timer look_timer; /* without pidfd */
    struct rbi_loop_timer kill_timer;
};

#define RBI_BRIDGE_PROCESS_NULL                                                                    \
    {                                                                                              \
        .pidfd = -1                                                                                \
    }

/** The daemon begins: takes over what the one before has left, or starts it, if it is wanted. */
void rbi_bridge_process_begin(struct rbi_daemon *daemon);
/** Does what the configuration says by now: starts it, stops it, or has it read that again. */
void rbi_bridge_process_follow(struct rbi_daemon *daemon, const struct rbi_bridge_config *before);
/** The daemon stops: tells it to end. Does nothing when none runs. */
void rbi_bridge_process_stop(struct rbi_daemon *daemon);
/** Waits for its end, RBI_BRIDGE_PROCESS_STOP_NS at most, and sees to it. */
void rbi_bridge_process_deinit(struct rbi_daemon *daemon);

#endif
