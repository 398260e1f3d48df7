/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LEASE_H
#define RINGBUS_DAEMON_LEASE_H
/*
 * daemon/lease.h - limits of all callers of a cluster together (bus/lease.h): who wants how much of
 * them, and what each was told it may. Divided anew every RBI_LEASE_PERIOD_NS while somebody asks;
 * a daemon that nobody asks does nothing. A new daemon knows of nobody: callers go on by what they
 * were told, then by their static share, and ask again with their next message.
 */
#include "bus/lease.h"
#include "bus/wire.h"
#include "daemon/list.h"
#include "daemon/loop.h"

struct rbi_daemon;
struct rbi_endpoint;

/** Of the daemon. */
struct rbi_lease_desk {
    struct rbi_list quotas; /* struct rbi_lease_quota */
    struct rbi_loop_timer timer;
    struct rbi_lease *leases; /* scratch of a division */
    uint32_t *order;
    struct rbi_lease_caller **asking;
    unsigned room;
};

/** One limit of one cluster. */
struct rbi_lease_quota {
    struct rbi_list in_quotas;
    uint64_t cluster;
    struct rbi_text limit;
    struct rbi_list callers; /* struct rbi_lease_caller */
    unsigned caller_count;
};

/** One that has asked for it since it is there. */
struct rbi_lease_caller {
    struct rbi_list in_quota;
    struct rbi_list in_endpoint;
    struct rbi_lease_quota *quota;
    struct rbi_endpoint *endpoint;
    uint64_t demand;
    uint64_t demand_ns;
    uint64_t told;
    uint64_t told_fallback;
    uint64_t told_ns; /* 0: it was told nothing that still holds */
};

void rbi_leases_init(struct rbi_lease_desk *desk);
void rbi_leases_deinit(struct rbi_lease_desk *desk);
/** It asks for nothing any more; what it had is divided among the others. */
void rbi_leases_endpoint_gone(struct rbi_endpoint *endpoint);

#endif
