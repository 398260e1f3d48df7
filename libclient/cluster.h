/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CLUSTER_H
#define RINGBUS_LIBCLIENT_CLUSTER_H
/*
 * libclient/cluster.h - the clusters that we target, and what we know of their instances.
 * Part of internal.h: include that.
 */
#include "bus/hrw.h"
#include "bus/link.h"
#include "bus/pidf.h"
#include "bus/policy.h"

struct rbi_caller;
struct rbi_end;

/** What a target asks of its links. */
struct rbi_target_terms {
    struct rbi_link_terms terms;
    bool from_handle; /* it named none: those of the handle, also when they change */
    bool errors_count;
};

/** An instance of a cluster that we target. */
struct rbi_member {
    int32_t instance;
    uint32_t incarnation;
    uint32_t state;
    uint32_t weight;
    bool wanted; /* our targets include it */
    bool pinned; /* targeted by its own path: kept while absent */
    bool seen;   /* the daemon that we are connected to has named it */
    bool named;  /* target is its own, not the cluster's */
    bool denied; /* by the rules that hold: asked again when they change */
    struct rbi_target_terms target;
    struct rbi_end *end; /* NULL until introduced */
    uint64_t retry_ns;   /* when to introduce again; RBI_NEVER: no need */
    uint32_t retry_count;
    uint64_t up_ns;    /* since when its link is READY; 0: it is not */
    uint32_t shielded; /* incarnation of the life that is; 0: none */
    char path[RBI_PATH_MAX + 1];
};

/** Whether the tables of a cluster can be used as they are. */
enum rbi_dispatch {
    RBI_DISPATCH_FRESH = 0,
    RBI_DISPATCH_STALE = 1, /* to be built anew */
    RBI_DISPATCH_HELD = 2,  /* fresh, but not for what is new: see held */
};

/** A cluster that we target, wholly or some of its instances. */
struct rbi_cluster {
    uint64_t id;
    bool all;   /* targeted as a whole */
    bool known; /* the daemon named an instance at least once */
    /* enum rbi_dispatch; true is stale: members changed since the tables were built */
    uint8_t dispatch_stale;
    bool panic;     /* its shields are ignored, as the daemon says */
    bool held;      /* what an instance did not consume goes to another first (redeliver.c) */
    bool redeliver; /* RINGBUS_ON_DOWN_REDELIVER */
    uint32_t redeliver_ms;
    struct rbi_target_terms target;
    struct rbi_member *members; /* sorted by instance */
    unsigned member_count;
    unsigned member_room;
    struct rbi_end **ready; /* usable ends, in order of instance */
    unsigned ready_count;
    unsigned ready_room;
    struct rbi_end **turn; /* those of them that are not suspect, or all when all are */
    unsigned turn_count;   /* 0: to be chosen anew */
    unsigned cursor;       /* in turn */
    uint16_t *owner;       /* RBI_HRW_SLOTS entries, index into ready; NULL until a keyed pick */
    bool owner_stale;
    const struct rbi_policy *policy; /* of the bus's configuration; NULL: the defaults */
    struct rbi_caller *caller;       /* of requests to it (retry.h); NULL: none so far */
    char path[RBI_PATH_MAX + 1];
};

#endif
