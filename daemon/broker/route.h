/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_ROUTE_H
#define RINGBUS_DAEMON_BROKER_ROUTE_H
/*
 * daemon/broker/route.h - a cluster of one side and the name that it has on another: made of the
 * exports of the file, those with a star of what is seen on the bus.
 */
#include "daemon/broker/broker.h"

struct rbi_face;

struct rbi_route {
    struct rbi_list link;                   /* in broker->routes */
    const struct rbi_broker_export *export; /* NULL: its portal leaves */
    struct rbi_face *from;                  /* side whose bus the cluster is on */
    struct rbi_face *to;                    /* side that it is shown on */
    struct rbi_face *portal;                /* there; NULL: no memory for it yet */
    bool targeted;
    bool brokers;                     /* as of the export */
    char inner[RINGBUS_PATH_MAX + 1]; /* 6 elements */
    char outer[RINGBUS_PATH_MAX + 1];
    struct ringbus_addr inner_addr; /* RINGBUS_ANY */
    struct ringbus_addr outer_addr;
};

/** Makes those of exports without a star. 0; -ENOMEM */
RBI_MUST_CHECK int rbi_routes_init(struct rbi_broker *broker);
void rbi_routes_deinit(struct rbi_broker *broker);
/** A side was opened: watches and targets what its exports say. */
void rbi_routes_side_up(struct rbi_broker *broker, struct rbi_face *side);
/** An instance is seen on the bus of a side. */
void rbi_routes_seen(struct rbi_broker *broker, struct rbi_face *side, const char *path);
/** Whom a name stands for that is shown on a side; NULL: nobody */
struct rbi_route *rbi_routes_find(struct rbi_face *side, uint64_t cluster);
/**
 * The configuration has become another one, with the same sides: routes that it has as well stay,
 * others leave, and those that are new are made.
 * @param old  that of before; nothing points into it any more afterwards
 */
void rbi_routes_follow(struct rbi_broker *broker, const struct rbi_broker_config *old);
/** Ends the interest in what a portal that has left had stood for, and frees its route. */
void rbi_routes_left(struct rbi_broker *broker, struct rbi_route *route);

#endif
