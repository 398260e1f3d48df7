/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_ENDPOINT_H
#define RINGBUS_DAEMON_ENDPOINT_H
/*
 * daemon/endpoint.h - one instance on the bus, as the daemon knows it. Owned by its
 * peer; named in the registry unless it is anonymous.
 */
#include "bus/directory.h"
#include "bus/record.h"
#include "bus/wire.h"
#include "daemon/health.h"
#include "daemon/list.h"
#include "daemon/outcome.h"
#include "daemon/quota.h"
#include "daemon/reported.h"
#include "shm/segment.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_peer;
struct rbi_origin;

#define RBI_WEIGHT_MAX 1000U

/** Draining on an operator's order. */
struct rbi_endpoint_drain {
    bool ordered;  /* whatever it says of itself, others see DRAINING */
    bool reported; /* it has answered the order */
    uint32_t step; /* enum rbi_drain_step, as it reported */
    uint32_t left;
};

/** What dispatch goes by, beside its state. */
struct rbi_endpoint_labels {
    uint32_t weight;
    uint32_t weight_given; /* 1: by the operator */
    uint32_t override;     /* RBI_OVERRIDE_*; its own are none */
    char set[RBI_DIRECTORY_LABEL_MAX + 1];
    char idc[RBI_DIRECTORY_LABEL_MAX + 1];
    char tags[RBI_DIRECTORY_LABEL_MAX + 1];
};

struct rbi_endpoint {
    struct rbi_daemon *daemon;
    struct rbi_peer *peer;
    struct rbi_cluster *cluster; /* NULL: anonymous */
    struct rbi_list in_registry;
    struct rbi_origin *origin; /* NULL: it lives on this host */
    uint64_t number;           /* order of registration; never reused */
    uint64_t cluster_id;
    int32_t instance;
    uint32_t incarnation;
    struct rbi_text path;
    uint32_t name_offset; /* of the 7th element in path */
    uint32_t state;       /* enum rbi_endpoint_state; as others see it */
    uint32_t own_state;   /* as it says itself */
    struct rbi_endpoint_drain drain;
    uint64_t drain_log_tat_ns;       /* theoretical arrival time of the next line about it */
    uint64_t drain_logs_withheld;    /* since the last line */
    struct rbi_endpoint_labels own;  /* as it says itself */
    struct rbi_endpoint_labels seen; /* as others see it: what the operator says goes before */
    uint16_t node;                   /* 1 + NUMA node that it says it is on; 0: unknown */
    bool stale;    /* what others see of it is another by now, and is to be published */
    bool visible;  /* in the directory */
    bool replaced; /* ends because another has taken its name over */
    uint32_t slot;
    uint64_t cookie;
    uint32_t name_record;    /* in the book of names; 1-based, 0: none */
    struct rbi_segment page; /* read-only; its descriptor is page_fd */
    int page_fd;
    int pool_fd;
    uint64_t pool_bytes;
    struct rbi_outcome_reader outcomes; /* how its calls end */
    struct rbi_endpoint_health health;
    struct rbi_endpoint_reported reported;
    uint64_t registered_ns;
    uint64_t ready_ns; /* since when it takes messages; 0: it does not */
    struct rbi_charge instance_charge;
    struct rbi_charge bytes_charge;
    struct rbi_list links_out; /* struct rbi_link that it asked for */
    struct rbi_list links_in;
    uint32_t link_count;
    struct rbi_list claims; /* struct rbi_claim of it: links that only it has told of so far */
    uint32_t claim_count;
    struct rbi_list leases;          /* struct rbi_lease_caller */
    struct rbi_list nodes;           /* struct rbi_node: ephemeral ones that it has made */
    struct rbi_shares foreign_links; /* places of links that other users have asked for */
};

/** Whether it belongs into a cluster: it has a name, and is not hidden. */
bool rbi_endpoint_is_member(const struct rbi_endpoint *endpoint);
/** Empty endpoint, in nothing. NULL without memory. */
struct rbi_endpoint *rbi_endpoint_new(struct rbi_daemon *daemon, struct rbi_peer *peer);
/** What others are to see of an endpoint that says @p own_state of itself. */
uint32_t rbi_endpoint_seen_state(const struct rbi_endpoint *endpoint, uint32_t own_state);
/** Ends it: directory first, then its links, then everything that it held. Accepts NULL. */
struct rbi_endpoint *rbi_endpoint_free(struct rbi_endpoint *endpoint);

#endif
