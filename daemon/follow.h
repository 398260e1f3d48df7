/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_FOLLOW_H
#define RINGBUS_DAEMON_FOLLOW_H
/*
 * daemon/follow.h - tools that want to hear of the hops of messages with one trace: FOLLOW, for
 * RBI_FOLLOW_FOR_NS, then HOP after HOP from the bridge. Told is who has the uid of the message's
 * sender, or a right to administer the daemon; others are told nothing, and not that there is
 * something.
 */
#include "bus/record_follow.h"
#include "daemon/quota.h"

struct rbi_daemon;
struct rbi_peer;

#define RBI_FOLLOWERS_MAX 16U
/** Of these for one uid that has no right to administer the daemon. */
#define RBI_FOLLOWERS_OF_USER 4U
#define RBI_FOLLOW_FOR_NS     (UINT64_C(30) * 1000000000)

/** Part of struct rbi_daemon. Zero-initialise. */
struct rbi_followers {
    struct rbi_follower {
        struct rbi_peer *peer; /* NULL: nobody */
        struct rbi_trace_id trace;
        struct rbi_charge charge; /* a watch */
        uint64_t until_ns;
    } items[RBI_FOLLOWERS_MAX];
};

/** A connection ends. */
void rbi_follow_peer_gone(struct rbi_peer *peer);

#endif
