/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_FARS_H
#define RINGBUS_DAEMON_BRIDGE_FARS_H
/*
 * daemon/bridge/fars.h - the hosts that are known, and over which neighbour each is reached. The
 * daemon computes the ways (bus/ways); a neighbour that is connected is reached without one.
 */
#include "daemon/bridge/session.h"

struct rbi_neighbour;

/** Another host. Freed with the bridge: there are no more than the graph has. */
struct rbi_far {
    struct rbi_bridge *bridge;
    uint64_t id;
    char name[RBI_HOST_NAME_MAX + 1];
    struct rbi_list tunnels; /* struct rbi_tunnel */
    uint32_t tunnel_count;
    struct rbi_list ends;         /* struct rbi_far_end */
    struct rbi_neighbour *direct; /* it is one, or NULL */
    struct rbi_neighbour *next;   /* as the daemon says, or NULL */
    uint32_t cost;
    uint32_t hops;
    const struct rbi_session *way; /* the last: to be compared only, it may have ended; and */
    uint64_t way_began_ns;         /* when it had begun */
    bool reachable;                /* as told to import and tunnels */
    uint64_t since_ns;             /* of that */
    uint64_t incarnation;          /* of its bridge, as last heard; 0: not yet */
    struct rbi_frame_edges *edges; /* NULL: nothing */
    uint64_t resends;              /* of tunnels that have ended */
    uint64_t duplicates;
    uint64_t forwarded;
};

#define RBI_HOSTS_MAX 1024U

/** The host of that name, made if it is new. NULL: no memory, or too many */
struct rbi_far *rbi_fars_named(struct rbi_bridge *bridge, const char *name);
/** NULL: nobody has told of it. */
struct rbi_far *rbi_fars_find(struct rbi_bridge *bridge, uint64_t id);
/** The session that leads there now, or NULL. */
struct rbi_session *rbi_far_way(const struct rbi_far *far);
/** WAY of the daemon. @param next "" there is none */
void rbi_fars_way(
    struct rbi_bridge *bridge, const char *host, const char *next, uint32_t cost, uint32_t hops);
/** A session has come or gone: whoever is reached otherwise now, or not any more, is told. */
void rbi_fars_look(struct rbi_bridge *bridge);
void rbi_fars_free(struct rbi_bridge *bridge);

#endif
