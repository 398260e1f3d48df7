/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_HEALTH_H
#define RINGBUS_DAEMON_HEALTH_H
/*
 * daemon/health.h - how well the instances answer, judged for all processes of the host at once:
 * every 250 ms what the callers have counted is summed and given to the shield of the cluster
 * (bus/shield.h); what that decides goes into the directory, to the watchers, and into the log.
 *
 * Truth only: health is what was measured. What an operator says of an instance lies beside it. A
 * new daemon begins with nothing: who still fails is found again within seconds.
 *
 *   health.c        sweeps, members, publishing
 *   health_probe.c  PINGs to shielded instances, probes that callers are asked to make
 *   health_log.c    what of it is worth a line
 */
#include "bus/shield.h"
#include "daemon/figures.h"
#include "daemon/list.h"
#include "daemon/loop.h"
#include "daemon/outcome.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_demand;
struct rbi_endpoint;

/** Of the daemon. */
struct rbi_health_desk {
    struct rbi_list readers;  /* struct rbi_outcome_reader of each endpoint that has told of one */
    struct rbi_list clusters; /* struct rbi_cluster_health */
    struct rbi_list changed;
    struct rbi_loop_timer timer;
    struct rbi_loop_task publish;
    uint64_t random; /* state of a generator; for jitter only */
    uint64_t next_number;
    uint64_t log_tat_ns;
    uint64_t logs_withheld;
};

/** Of a cluster that somebody has called. */
struct rbi_cluster_health {
    struct rbi_daemon *daemon;
    struct rbi_cluster *cluster;
    struct rbi_list in_clusters;
    struct rbi_list in_changed;
    uint64_t number; /* grows along the list of all */
    struct rbi_shield_cluster shield;
    struct rbi_cluster_figures *figures; /* NULL: memory was short so far */
    uint64_t policy;                     /* fingerprint of the one in force */
    bool panic_changed;
    struct rbi_demand *demand; /* owned; NULL: it does not matter from where it is called */
    bool demand_changed;
};

/** A probe that an endpoint has been asked to make; token 0: none. */
struct rbi_health_probe {
    uint64_t token;
    uint64_t cluster;
    int32_t instance;
    uint64_t deadline_ns;
};

/** Of an endpoint: as an instance, and as a caller. */
struct rbi_endpoint_health {
    uint32_t health; /* enum rbi_health, as published */
    uint32_t ramp;   /* percent */
    bool changed;    /* to be published at the end of this turn */
    uint64_t ping;   /* token of a PING that is to be sent; 0: none */
    struct rbi_health_probe probe;
    struct rbi_endpoint_figures *figures; /* NULL: nobody has called it yet */
};

void rbi_health_init(struct rbi_health_desk *desk);
/** An endpoint has told where it counts, for the first time: sweeps go on from now. */
void rbi_health_add_reader(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint);
/**
 * A link to it was asked for and came to nothing, as it did not answer or lacks what a link takes:
 * a failure at the caller, which policies with shield.split judge.
 */
void rbi_health_unreachable(struct rbi_endpoint *instance);
/** Sweeps go on from now: there is something to look at. */
void rbi_health_wake(struct rbi_daemon *daemon);
/** A link of a caller ends: takes what it has counted, while its calls over that still count. */
void rbi_health_last_words(struct rbi_endpoint *caller);
/** It has become visible or stopped being so, or its state or weight has changed. */
void rbi_health_member(struct rbi_endpoint *endpoint);
/** It is about to be freed: what it was to probe is free again. */
void rbi_health_endpoint_gone(struct rbi_endpoint *endpoint);
/** A cluster is freed. */
void rbi_health_cluster_gone(struct rbi_cluster *cluster);
/** Whether the shields of a cluster are ignored. */
bool rbi_health_panics(const struct rbi_cluster *cluster);

/* ---- for the files of it ---------------------------------------------------------------- */

/** What a call of the shield gets. */
struct rbi_shield_turn rbi_health_turn(struct rbi_cluster_health *health);
/** health_log.c */
void rbi_health_log(struct rbi_cluster_health *health, const struct rbi_shield_event *event);
/** health_probe.c: sends the PING that an instance waits for. */
void rbi_health_ping(struct rbi_cluster_health *health, struct rbi_endpoint *endpoint);
/** health_probe.c: asks callers for the probes that are due. */
void rbi_health_grant(struct rbi_cluster_health *health);

#endif
