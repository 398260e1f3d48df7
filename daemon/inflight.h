/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_INFLIGHT_H
#define RINGBUS_DAEMON_INFLIGHT_H
/*
 * daemon/inflight.h - descriptors that were sent and that the client has not taken out of
 * its socket yet. The kernel allows a user as many as its RLIMIT_NOFILE, all its sockets
 * together, and sends no more for it then (ETOOMANYREFS; privileged processes are exempt).
 * So that clients that do not read cannot keep all others from being served, each user
 * has a fair share of them (share.h): beyond it, what carries descriptors waits.
 *
 * The kernel does not tell when a client reads. A connection's descriptors count until its
 * socket was seen empty; and they stay in flight when the daemon closes its end, as long
 * as the client keeps its own: such an end lingers, and its connection counts on.
 */
#include "daemon/list.h"
#include "daemon/log.h"
#include "daemon/quota.h"
#include "daemon/share.h"

struct rbi_daemon;
struct rbi_peer;

struct rbi_inflight {
    struct rbi_shares users;
    uint64_t total;
    uint64_t limit;
    uint64_t looked_ns;      /* when sockets were looked at last because of a limit */
    struct rbi_list lingers; /* struct inflight_linger */
    struct rbi_log_limit log_limit;
};

/** Of one connection; zero-initialise. */
struct rbi_inflight_sent {
    struct rbi_share *share;
    uint64_t count;
};

void rbi_inflight_init(struct rbi_inflight *inflight);
/** All peers are gone. */
void rbi_inflight_deinit(struct rbi_daemon *daemon);

/**
 * As rbi_handoff_send() to a client.
 * @retval 0; -ETOOMANYREFS also when its user has its share in flight: try again later; -errno
 */
RBI_MUST_CHECK int rbi_inflight_send(
    struct rbi_peer *peer, const void *data, uint64_t size, const int *fds, unsigned fd_count);
/**
 * Ends a connection, at once or when nothing of it is in flight any more.
 * @param charge  for the connection; taken
 */
void rbi_inflight_close(struct rbi_peer *peer, struct rbi_charge *charge);
/**
 * Looks what has been taken meanwhile, and closes ends that nothing is in flight from any more.
 * Costs a system call for each connection with descriptors in flight: for now and then.
 */
void rbi_inflight_look(struct rbi_daemon *daemon);

#endif
