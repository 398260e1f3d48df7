/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CLUSTER_H
#define RINGBUS_LIBCLIENT_CLUSTER_H
/*
 * libclient/cluster.h - the clusters that we target, and what we know of their instances.
 */
#include "bus/link.h"
#include "bus/pidf.h"
#include "libclient/choice.h"

#include <ringbus/ringbus.h>

struct rbi_caller;
struct rbi_end;
struct rbi_inflight;
struct rbi_limiter;
struct rbi_routed;
struct ringbus;

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
    bool wanted;   /* our targets include it */
    bool pinned;   /* targeted by its own path: kept while absent */
    bool seen;     /* the daemon that we are connected to has named it */
    bool named;    /* target is its own, not the cluster's */
    bool left_out; /* by balance.subset: not linked to */
    bool denied;   /* by the rules that hold: asked again when they change */
    uint8_t reach; /* RBI_REACH_*, of the snapshot that the choices were made from */
    struct rbi_target_terms target;
    struct rbi_end *end; /* NULL until introduced */
    uint64_t retry_ns;   /* when to introduce again; RBI_NEVER: no need */
    uint32_t retry_count;
    uint64_t up_ns;     /* since when its link is READY; 0: it is not */
    uint64_t joined_ns; /* when the daemon named this life of it */
    uint32_t over;      /* life that our link has told the end of, before any daemon; 0: none */
    bool over_died;     /* it did not leave in order */
    uint32_t shielded;  /* incarnation of the life that is; 0: none */
    /* RINGBUS_E_UNREACHABLE, _NO_ROUTE: of the last link to it, or why there is none; 0: neither */
    int out_of_reach;
    char why[128]; /* it was denied, as the daemon said: by which rule */
    char path[RBI_PATH_MAX + 1];
};

/** Why one that is there, and not linked, cannot be sent to. */
static inline int rbi_member_not_ready(const struct rbi_member *member)
{
    return member->out_of_reach != 0 ? member->out_of_reach : RINGBUS_E_NOT_READY;
}

/** One that died while no daemon could say so: its slots wait for it all the same. */
struct rbi_missed {
    int32_t instance;
    uint32_t weight;
    uint64_t until_ns;
};

/** So many of those who left just now are remembered; of more, the latest. */
#define RBI_HANDED_ON_MAX 32U

/** Whether a cluster's first choice can be used as it is: bits. */
#define RBI_DISPATCH_FRESH   0U
#define RBI_DISPATCH_STALE   1U /* to be made anew */
#define RBI_DISPATCH_HELD    2U /* not for what is new: see held */
#define RBI_DISPATCH_CLASSED 4U /* the message decides which choice */
#define RBI_DISPATCH_HOOKED  8U /* hooks, or balance.mode all or custom (hooks.h) */

/** A cluster that we target, wholly or some of its instances, or that one of those imports. */
struct rbi_cluster {
    uint64_t id;
    bool all;   /* targeted as a whole */
    bool known; /* the daemon named an instance at least once */
    /* RBI_DISPATCH_*; not 0: the cold way */
    uint8_t dispatch_stale;
    bool panic;      /* its shields are ignored, as the daemon says */
    bool held;       /* what an instance did not consume goes to another first (redeliver.c) */
    bool redeliver;  /* RINGBUS_ON_DOWN_REDELIVER */
    bool custom;     /* the target's option: a chooser decides, whatever the policy says */
    bool managed;    /* plain requests to any of it are asked as those with options (retry.h) */
    bool subset_due; /* links are to be brought in line with it */
    uint32_t subset; /* balance.subset of the policy */
    uint32_t redeliver_ms;
    struct rbi_choice *choice; /* of the class of most messages: choices[0]; NULL: none yet */
    struct rbi_choice *choices[RBI_CHOICES_MAX];
    unsigned choice_count;
    /* Of the last pick the cold way. NULL: there was none, or a router named who. */
    struct rbi_choice *picked;
    uint64_t epoch;        /* of the snapshot that they were made from */
    uint64_t looked_epoch; /* of the one that was looked at last */
    struct rbi_missed *missed;
    unsigned missed_count;
    /* Left in order, and not linked since: when one is back it joins, as if it was never there. */
    int32_t handed_on[RBI_HANDED_ON_MAX];
    unsigned handed_on_next;
    uint64_t again_ns; /* when the choices are to be made anew though nothing has changed */
    struct rbi_cluster **imports; /* the same of other businesses, in order */
    unsigned import_count;
    unsigned importers;     /* clusters that have this one among their imports */
    uint64_t keyed_told_ns; /* when our daemon was told that keys are used; 0: not yet */
    bool barring;           /* its instances differ in the methods that they may be sent */
    bool dry;   /* a stage of the chain is run dry: what it would have done is counted */
    bool named; /* the application has targeted it, wholly or in part */
    bool whole; /* wholly: all is so for its importers, too */
    struct rbi_policy *policy; /* NULL: the defaults */
    uint64_t policy_key;       /* that the snapshot named, also if this release cannot read it */
    unsigned char *mocks[RBI_DEGRADES_MAX]; /* of its degrades, those that lie in files; or NULL */
    struct rbi_route_classes classes;
    struct rbi_refusal refusal; /* of the last pick that found nobody */
    struct rbi_target_terms target;
    struct rbi_member *members; /* sorted by instance */
    unsigned member_count;
    unsigned member_room;
    struct rbi_end **ready; /* for broadcasts without modifiers (reach.h), in order of instance */
    unsigned ready_count;
    unsigned ready_room;
    struct rbi_caller *caller;     /* of requests to it (retry.h); NULL: none so far */
    uint64_t policy_epoch;         /* of the snapshot whose policy was looked at last */
    struct rbi_limiter *limiter;   /* NULL: none of its limits concerns us */
    struct rbi_inflight *inflight; /* NULL: no link so far */
    char path[RBI_PATH_MAX + 1];
};

struct rbi_cluster *rbi_cluster_find(struct ringbus *bus, uint64_t id);
struct rbi_member *rbi_member_find(const struct rbi_cluster *cluster, int32_t instance);
/**
 * Adds an absent member in its place; NULL: no memory. Moves the others: pointers to members end.
 */
struct rbi_member *rbi_member_add(struct rbi_cluster *cluster, int32_t instance);
void rbi_cluster_free(struct rbi_cluster *cluster);
/** Makes the choices of a cluster fresh: what was chosen before does not count any more. */
void rbi_cluster_refresh(struct ringbus *bus, struct rbi_cluster *cluster);
/** The end for a key, or one of those that take messages without; NULL: cluster->refusal. */
struct rbi_end *
rbi_cluster_pick(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key);
/** The same for a message that says more of itself. Cold. */
struct rbi_end *
rbi_cluster_pick_for(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_pick *pick);
/** Its choices are to be made anew, and those of the clusters that import it. */
void rbi_cluster_changed(struct ringbus *bus, struct rbi_cluster *cluster);
/** An end became suspect or stopped being so: who is next in turn is to be chosen anew. */
void rbi_cluster_suspicion(struct ringbus *bus, const struct rbi_end *end);
/** The same in a cluster that is held and refreshed, for what it is held for. */
struct rbi_end *
rbi_cluster_pick_held(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key);
/** Whether a pick is not to find this one. */
bool rbi_pick_tried(const struct rbi_pick *pick, const struct rbi_end *end);
/** Of which class a message is, by the policy as it was read last. */
struct rbi_choice_class rbi_cluster_class_of(const struct rbi_cluster *cluster,
                                             const struct rbi_pick *pick);
/** The choice of a class, made if need be. NULL: cluster->refusal says why */
struct rbi_choice *rbi_cluster_class_choice(struct ringbus *bus,
                                            struct rbi_cluster *cluster,
                                            const struct rbi_choice_class *class);
/**
 * What a message is chosen from, after the application's routers; not for one that is held.
 * @param routed  what they made of it. NULL: they named somebody there, or cluster->refusal
 */
struct rbi_choice *rbi_cluster_choice_for(struct ringbus *bus,
                                          struct rbi_cluster *cluster,
                                          const struct rbi_pick *pick,
                                          struct rbi_routed *routed);
struct rbi_end *rbi_cluster_pick_held_for(struct ringbus *bus,
                                          struct rbi_cluster *cluster,
                                          const struct rbi_pick *pick);

/** The choices are to be made anew at that time at the latest. */
void rbi_cluster_again(struct ringbus *bus, struct rbi_cluster *cluster, uint64_t due_ns);
/** It died, and no daemon was there to say so: its slots of the hash table wait for it here. */
void rbi_cluster_miss(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct rbi_member *member);

/** It left in order: its keys are others' until our link to its next life is READY. */
void rbi_cluster_hand_on(struct rbi_cluster *cluster, int32_t instance);
/** Whether it did, since our link to it was READY last. */
bool rbi_cluster_has_handed_on(const struct rbi_cluster *cluster, int32_t instance);

/** An end became usable or stopped being so. */
void rbi_cluster_end_changed(struct ringbus *bus, struct rbi_end *end);
/** Why an end is leaving is known better than when that was noted: end->leave_reason. */
void rbi_cluster_end_explained(struct ringbus *bus, const struct rbi_end *end);

static inline struct rbi_pidf rbi_member_pidf(const struct rbi_cluster *cluster,
                                              const struct rbi_member *member)
{
    return (struct rbi_pidf){
        .cluster = cluster->id, .instance = member->instance, .incarnation = member->incarnation};
}

#endif
