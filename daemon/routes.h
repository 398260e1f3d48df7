/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_ROUTES_H
#define RINGBUS_DAEMON_ROUTES_H
/*
 * daemon/routes.h - the main connection of the bridge, and the ways to other hosts: the bridge
 * tells of edges (EDGES), next hops are found here (bus/ways.h) once for the host, told back (WAY),
 * and published in the directory (bus/hosts_table.h).
 *
 * Without that connection there are no ways. The next bridge tells everything anew.
 */
#include "bus/ways.h"
#include "bus/wire.h"
#include "daemon/loop.h"

struct rbi_daemon;
struct rbi_peer;

/** Edges of an origin that come in several frames. */
struct rbi_routes_staging {
    bool open;
    char origin[RBI_HOST_NAME_MAX + 1];
    uint32_t count;
    struct rbi_ways_edge edges[RBI_WAYS_EDGES_MAX];
};

struct rbi_routes {
    struct rbi_peer *bridge; /* NULL: none is connected */
    uint32_t bridge_pid;     /* its connections are for RBI_QUOTA_BRIDGE; 0: not known */
    uint32_t bridge_uid;
    uint64_t incarnation; /* of that bridge */
    uint64_t since_ns;
    char own[RBI_HOST_NAME_MAX + 1];      /* name of this host, as the bridge says it */
    const struct rbi_ways_router *router; /* what finds ways; may be set before the first EDGES */
    struct rbi_ways *ways;                /* NULL: there has been no bridge yet */
    struct rbi_routes_staging staging;
    struct rbi_loop_timer turn_timer;
    struct rbi_loop_timer publish_timer;
    void *published; /* the table that is in the directory, from malloc; NULL: none */
    uint64_t published_bytes;
};

void rbi_routes_init(struct rbi_routes *routes);
void rbi_routes_deinit(struct rbi_routes *routes);
/** A connection has ended, if it is that of the bridge. */
void rbi_routes_peer_gone(struct rbi_peer *peer);
/** Whether a process is the bridge that is connected. */
bool rbi_routes_is_bridge(const struct rbi_routes *routes, uint32_t uid, uint32_t pid);
/** Something that the table of hosts says has changed: it is published a little later. */
void rbi_routes_touch(struct rbi_daemon *daemon);

/** The ways are looked at when they say so, which is another time by now. */
void rbi_routes_arm(struct rbi_daemon *daemon);

#endif
