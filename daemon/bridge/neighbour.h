/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_NEIGHBOUR_H
#define RINGBUS_DAEMON_BRIDGE_NEIGHBOUR_H
/*
 * daemon/bridge/neighbour.h - a host that the configuration names as a peer: dialled, or waited
 * for. It has one session at most. A second connection that comes up replaces the first: whoever
 * connects anew knows better than we whether the old one works. Only when both have dialled at
 * once the one that the lower host id has dialled stays, on both sides.
 */
#include "daemon/bridge/session.h"

struct rbi_dial;
struct rbi_far;

/** Two connections that came up within this are taken for dialled at once. */
#define RBI_NEIGHBOUR_CROSS_NS UINT64_C(1000000000)

/** A session that has lasted this long is one that works. */
#define RBI_NEIGHBOUR_LASTED_NS UINT64_C(1000000000)

struct rbi_neighbour {
    struct rbi_bridge *bridge;
    struct rbi_list in_bridge;
    struct rbi_bridge_peer peer; /* as configured */
    uint64_t id;
    struct rbi_far *far;
    struct rbi_dial *dial; /* NULL: it has no address, it dials us */
    struct rbi_session *session;
    uint32_t cost; /* of the edge, as last told; 0: there is none */
    uint64_t up_ns;
    uint64_t connects;
    uint32_t short_lived; /* sessions in a row that ended at once: dialled again later and later */
    struct rbi_loop_timer dial_timer;
    char why[RBI_CONN_WHY_MAX + 1U]; /* the last end */
    /* Of sessions that have ended. */
    uint64_t frames_in;
    uint64_t frames_out;
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/** @retval 0; -EINVAL its address cannot be; -ENOMEM */
RBI_MUST_CHECK int rbi_neighbour_add(struct rbi_bridge *bridge, const struct rbi_bridge_peer *peer);
/** Ends its session in order. */
void rbi_neighbour_remove(struct rbi_neighbour *neighbour);
/** NULL: nobody of that name is configured. */
struct rbi_neighbour *rbi_neighbour_find(struct rbi_bridge *bridge, const char *host);
/** Makes the configuration true. */
void rbi_neighbours_configure(struct rbi_bridge *bridge);
/**
 * A session has heard HELLO of this neighbour, and takes the place of the one before.
 * @return whether it stays; else it is ended by the caller
 */
bool rbi_neighbour_up(struct rbi_neighbour *neighbour, struct rbi_session *session);
/** A session that was up has ended. */
void rbi_neighbour_down(struct rbi_neighbour *neighbour,
                        struct rbi_session *session,
                        const char *why);
/** Cost of the edge by what is measured; features 2.12. */
uint32_t rbi_neighbour_cost(const struct rbi_neighbour *neighbour);

#endif
