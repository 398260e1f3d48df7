/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ROUTE_H
#define RINGBUS_BUS_ROUTE_H
/*
 * bus/route.h - the router chain: which instances of a cluster a message of this caller may go to,
 * with what weight, and why the others may not. Pure; any thread; no allocation.
 *
 * Nine stages, always in this order, each on what the ones before it left:
 *
 *   state     ready, not drained, not isolated, not staged, weight above 0
 *   acl       whom the caller may see
 *   filter    whom the caller's own program leaves in
 *   realm     the own business, else the first import that has a healthy instance; never mixed
 *   set       the caller's set, if both sides have one of the same name
 *   tag       canary: a tagged message to its tag, an untagged one to untagged instances
 *   rules     what the message says of itself: method, key, labels
 *   locality  the nearest level that can carry the load, the excess to the next
 *   health    shields, unless the cluster is in panic
 *
 * The balancer comes after them and is not here. It is off the hot path: who sends keeps the
 * result, and computes it anew when the snapshot has changed or again_ns has come. What a single
 * message adds is its class (bus/route_class.h).
 *
 * Keys are for two kinds of balancers: those by key want every caller to see the same members
 * whatever is shielded or near, so locality (unless strict) and health do not take from them;
 * hash_weight says so. The others use weight.
 */
#include "bus/directory.h"
#include "bus/policy.h"

enum rbi_route_stage {
    RBI_ROUTE_IN = 0, /* none of them: it is a candidate */
    RBI_ROUTE_STATE = 1,
    RBI_ROUTE_ACL = 2,
    RBI_ROUTE_FILTER = 3,
    RBI_ROUTE_REALM = 4,
    RBI_ROUTE_SET = 5,
    RBI_ROUTE_TAG = 6,
    RBI_ROUTE_RULES = 7,
    RBI_ROUTE_LOCALITY = 8,
    RBI_ROUTE_HEALTH = 9,
};
#define RBI_ROUTE_STAGES 10U /* with RBI_ROUTE_IN */

/** Why an instance fell out. */
enum rbi_route_reason {
    RBI_ROUTE_FITS = 0,
    RBI_ROUTE_STARTING = 1,
    RBI_ROUTE_DRAINING = 2,
    RBI_ROUTE_CLOSED = 3,
    RBI_ROUTE_ISOLATED = 4,
    RBI_ROUTE_STAGED = 5,
    RBI_ROUTE_WEIGHT_0 = 6,
    RBI_ROUTE_INVISIBLE = 7,
    RBI_ROUTE_OTHER_REALM = 8,
    RBI_ROUTE_OTHER_SET = 9,
    RBI_ROUTE_TAGGED = 10,    /* and the message is not */
    RBI_ROUTE_OTHER_TAG = 11, /* has not the message's */
    RBI_ROUTE_SICK_TAG = 12,  /* has it, but none with it is healthy, and untagged ones are */
    RBI_ROUTE_NO_TARGET = 13, /* a rule names others */
    RBI_ROUTE_FAR = 14,       /* nearer ones carry the load */
    RBI_ROUTE_SHIELDED = 15,
    RBI_ROUTE_PANIC = 16, /* the cluster is in panic, and its policy is to fail then */
    RBI_ROUTE_FILTERED = 17,
};
#define RBI_ROUTE_REASONS 18U

#define RBI_ROUTE_NO_RULE UINT8_MAX

/** Distance from the caller; the levels of locality, and their order within a level. */
enum rbi_route_rank {
    RBI_ROUTE_NODE = 0,     /* level 0: same NUMA node */
    RBI_ROUTE_HOST = 1,     /* level 1: same host */
    RBI_ROUTE_GROUP = 2,    /* level 2: same physical group */
    RBI_ROUTE_LOGICAL = 3,  /* level 3: same zone, or in the priority entry of the caller's group */
    RBI_ROUTE_PRIORITY = 4, /* level 4: first of the other entries; the last has 11 */
    RBI_ROUTE_UNGROUPED = 12 /* level 5: says nothing of where it is */,
    RBI_ROUTE_ANY = 13, /* level 5: the rest */
};
#define RBI_ROUTE_RANKS 14U

/** Who sends. Texts are terminated, "" is not given; none is NULL. */
struct rbi_route_caller {
    const char *set;
    const char *idc;
    uint32_t host; /* as struct rbi_directory_instance has it */
    uint32_t node; /* the same: 1 + NUMA node; 0: unknown */
};

/** The class of a message: all that the chain asks of one. See bus/route_class.h. */
struct rbi_route_message {
    const char *tag; /* "": untagged */
    uint32_t rules;  /* bit i: policy->rules[i] matches */
    uint32_t canary; /* 1 + index of the canary whose share its key is in; 0: none */
};

/** One cluster that may serve: the caller's own business first, then the imports in order. */
struct rbi_route_cluster {
    const struct rbi_directory_instance *instances;
    uint32_t count;
    uint32_t absent_count; /* of those who died just now, behind the others: bus/route_keyed.h */
    bool panic;            /* RBI_CLUSTER_PANIC */
    const uint64_t *invisible; /* bit i: rights hide instance i; NULL: none */
    const uint8_t *filtered;   /* 0, or 1 + number of the filter that leaves i out; NULL: none */
};

struct rbi_route_input {
    const struct rbi_route_caller *caller;
    const struct rbi_route_message *message;
    const struct rbi_policy *policy; /* of the target */
    const struct rbi_route_cluster *clusters;
    unsigned cluster_count; /* 1 to 1 + RBI_REALMS_MAX */
    uint64_t now_ns;        /* CLOCK_MONOTONIC */
};

/**
 * What the locality stage remembers from one run to the next, so that it does not swing: one for
 * each kept view. Zeroed at first.
 */
struct rbi_route_memory {
    uint32_t left;                        /* bit rank: does not take all any more */
    uint64_t back_since[RBI_ROUTE_RANKS]; /* since when it could be used again; 0: it could not */
};

/** An instance, and what became of it. */
struct rbi_route_entry {
    uint32_t index; /* in its cluster's instances */
    uint16_t cluster;
    uint8_t stage;       /* enum rbi_route_stage that took it out; RBI_ROUTE_IN: it is in */
    uint8_t reason;      /* enum rbi_route_reason */
    uint8_t rule;        /* canary (tag), rule (rules), the caller's filter; RBI_ROUTE_NO_RULE */
    uint8_t would_stage; /* the first stage in dry run that would have taken it out */
    uint8_t would_reason;
    uint8_t would_rule;
    uint8_t rank; /* enum rbi_route_rank */
    bool healthy; /* not shielded */
    bool keyed;   /* a member for balancers by key */
    /** Share for balancers without a key: weight x 100, less by ramp, slow start, spill. 0: out */
    uint32_t weight;
    uint32_t hash_weight; /* share for balancers by key: the plain weight; 0: out */
};

/** One stage, as it went. */
struct rbi_route_step {
    uint32_t before;    /* instances that came to it */
    uint32_t after;     /* and that were left */
    uint32_t would_out; /* of those, that its dry run would have taken out */
    uint8_t mode;       /* enum rbi_stage_mode */
    bool skipped;       /* it had nothing to say */
    bool fell_back;     /* PREFER: nobody healthy fitted, so that others stayed */
};

struct rbi_route_result {
    unsigned entry_count;
    unsigned in_count;     /* entries with a weight */
    unsigned keyed_count;  /* entries with a hash_weight */
    uint8_t emptied;       /* enum rbi_route_stage after which nobody was left; RBI_ROUTE_IN */
    uint8_t keyed_emptied; /* the same for balancers by key */
    uint16_t realm;        /* index of the cluster that was chosen */
    bool set_applies;
    bool shields_ignored;            /* panic */
    uint32_t share[RBI_ROUTE_RANKS]; /* of 10,000, by distance; all 0: locality had no say */
    struct rbi_route_step steps[RBI_ROUTE_STAGES];
    uint64_t again_ns; /* when to run again though nothing has changed; 0: no need */
};

/** Room that @p entries of rbi_route_run() must have: all instances of all clusters. */
unsigned rbi_route_room(const struct rbi_route_input *input);
/**
 * Runs the chain.
 * @param memory   may be NULL: nothing is remembered
 * @param entries  rbi_route_room() of them; cluster by cluster, instances in their order
 * Cost: 20 ns an instance, 250 ns where eight rules match.
 */
void rbi_route_run(const struct rbi_route_input *input,
                   struct rbi_route_memory *memory,
                   struct rbi_route_entry *entries,
                   struct rbi_route_result *result);

/**
 * The rule or canary that left nobody, of a stage that did; RBI_ROUTE_NO_RULE: it needs none.
 * @param entries  of a run, unchanged
 */
unsigned rbi_route_emptied_by(const struct rbi_route_entry *entries,
                              unsigned count,
                              enum rbi_route_stage stage);
/**
 * Id of a stage's rule or canary; "" for RBI_ROUTE_NO_RULE, and for filters, which the caller
 * knows. Lent by @p policy.
 */
const char *
rbi_route_rule_id(const struct rbi_policy *policy, enum rbi_route_stage stage, unsigned rule);
/** "state", "acl", ... */
const char *rbi_route_stage_name(enum rbi_route_stage stage);
/** A few words, for example "is draining". */
const char *rbi_route_reason_text(enum rbi_route_reason reason);
/** Level of locality, 0 to 5, of a distance. */
unsigned rbi_route_level(enum rbi_route_rank rank);

#endif
