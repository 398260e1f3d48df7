/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_PLACE_H
#define RINGBUS_LIBCLIENT_PLACE_H
/*
 * libclient/place.h - the NUMA node that this endpoint is on: told to the daemon, so that others
 * may prefer us, and known to ourselves, so that we may prefer them. Where the host has one node
 * nothing is looked at and nothing is told.
 */
#include "bus/numa.h"

struct ringbus;

struct rbi_place {
    struct rbi_numa_seat seat;
    bool many;     /* the host has several nodes, as its daemon says */
    uint32_t node; /* seat.node, with several; else 0 */
};

/** The daemon has said how many nodes the host has: before it is told ours. */
void rbi_place_begin(struct ringbus *bus, uint32_t nodes);
/** Now and then: when we have moved the daemon is told, and everybody is chosen anew. */
void rbi_place_look(struct ringbus *bus);

#endif
