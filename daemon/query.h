/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_QUERY_H
#define RINGBUS_DAEMON_QUERY_H
/*
 * daemon/query.h - answers to QUERY, produced as fast as the asker reads: nothing of an
 * answer is ever queued, and the asker's next request waits until it is complete.
 */
#include "bus/wire.h"

struct rbi_peer;

struct rbi_query_run {
    bool active;
    uint32_t what; /* enum rbi_query */
    uint32_t serial;
    uint32_t rows;
    uint64_t cursor; /* number of the last row's object, or of the next status row */
    struct rbi_text prefix;
};

/** Begins to answer; the peer is paused until the end. */
void rbi_query_start(struct rbi_peer *peer, const struct rbi_wire_query *query, uint32_t serial);
/** Goes on when the peer can take more; does nothing when no answer is under way. */
void rbi_query_continue(struct rbi_peer *peer);

#endif
