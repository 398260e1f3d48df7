/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_HOOKS_H
#define RINGBUS_LIBCLIENT_HOOKS_H
/*
 * libclient/hooks.h - what the application has to say in routing (ringbus_hook()): filters where a
 * choice is made, routers and choosers where one is asked for.
 *
 *   message -> routers -> class -> choice (made: filters, chain) -> chooser, or the balancer
 *
 * A cluster that none of it concerns does not look: RBI_DISPATCH_HOOKED says so, in the byte that
 * each pick reads.
 */
#include "bus/directory.h"
#include "libclient/choice.h"

#include <ringbus/ringbus.h>

struct rbi_cluster;
struct rbi_end;
struct rbi_outgoing;
struct ringbus;

#define RBI_HOOK_NAME_MAX 31U

struct rbi_hook {
    int number;
    uint64_t cluster; /* 0: every target */
    struct ringbus_hooks calls;
    char name[RBI_HOOK_NAME_MAX + 1];
};

struct rbi_hooks {
    unsigned count;
    int last_number;
    bool running; /* inside one: no other call may change what it looks at */
    struct rbi_hook list[RINGBUS_HOOKS_MAX];
};

/* ---- hooks.c -------------------------------------------------------------------------------- */

/** RBI_DISPATCH_HOOKED where routers, a chooser or the policy's ALL concern a cluster; else 0. */
uint8_t rbi_hooks_bits(const struct ringbus *bus, const struct rbi_cluster *cluster);
/** What balances a cluster, by its policy or the target's option: enum rbi_balance_mode. */
uint32_t rbi_hooks_mode(const struct rbi_cluster *cluster);
/** As rbi_route_rule_id(), with the names of filters. */
const char *rbi_hooks_rule_id(const struct ringbus *bus,
                              const struct rbi_policy *policy,
                              enum rbi_route_stage stage,
                              unsigned rule);
/** Says which hook refused, or what it answered. @return the error */
int rbi_hooks_refuse(struct ringbus *bus, const struct rbi_cluster *cluster);
/** What was so before a hook runs. */
struct rbi_hooks_outer {
    bool running;
    bool in_callback;
};
/** Around the call of a hook: whatever would change what it looks at is refused meanwhile. */
struct rbi_hooks_outer rbi_hooks_begin(struct ringbus *bus);
void rbi_hooks_end(struct ringbus *bus, struct rbi_hooks_outer outer);
/** Whether a hook runs. */
bool rbi_hooks_running(const struct ringbus *bus);
/** Whether a hook runs: noted as an error then. @retval 0; RINGBUS_E_BUSY (noted) */
int rbi_hooks_idle(struct ringbus *bus, const char *call);
void rbi_hooks_free(struct ringbus *bus);

/* ---- hooks_filter.c ------------------------------------------------------------------------- */

/** Instances of one cluster that may serve a target, to be filtered. */
struct rbi_filtering {
    uint64_t target;  /* whose hooks are asked */
    uint64_t cluster; /* whose instances these are */
    const char *path; /* of that */
    const struct rbi_directory_instance *instances;
    unsigned count;
};

/**
 * Asks the filters. @return by instance 0, or 1 + place of the hook that leaves it out, from
 * malloc; NULL: there are no filters, or no memory (@p failed)
 */
uint8_t *rbi_hooks_filter(struct ringbus *bus, const struct rbi_filtering *filtering, bool *failed);

/* ---- hooks_choose.c ------------------------------------------------------------------------- */

void rbi_offer_free(struct rbi_offer *offer);
/** Empties it, with room for @p count. @return false: no memory */
bool rbi_offer_begin(struct rbi_offer *offer, unsigned count);
/** Adds one that is linked. */
void rbi_offer_add(struct rbi_offer *offer,
                   struct rbi_end *end,
                   const struct rbi_directory_instance *instance,
                   const struct rbi_route_entry *entry);
/** Asks the choosers. NULL: cluster->refusal */
struct rbi_end *rbi_hooks_choose(struct ringbus *bus,
                                 struct rbi_cluster *cluster,
                                 struct rbi_choice *choice,
                                 const struct rbi_pick *pick);

/* ---- hooks_route.c -------------------------------------------------------------------------- */

/** What a message is routed by, after the routers. */
struct rbi_routed {
    struct rbi_pick pick;
    struct rbi_end *end; /* named by one of them; NULL: to be chosen */
    char tag[RINGBUS_TAG_MAX + 1];
};

/** Asks the routers. @return false: cluster->refusal */
bool rbi_hooks_route(struct ringbus *bus,
                     struct rbi_cluster *cluster,
                     const struct rbi_pick *pick,
                     struct rbi_routed *out);

/* ---- instances.c ---------------------------------------------------------------------------- */

/** An instance of a snapshot, as the application sees it. */
void rbi_instance_fill(struct ringbus *bus,
                       const struct rbi_directory_cluster *head,
                       const struct rbi_directory_instance *from,
                       struct ringbus_instance *to);

/* ---- all.c ---------------------------------------------------------------------------------- */

/** Whether what is sent to any instance of @p to goes to all that the stages leave. */
bool rbi_all_wanted(struct ringbus *bus, const struct ringbus_addr *to);
/**
 * Whom that is, by all that is said of the message. NULL: cluster->refusal
 * Valid until the next call that picks.
 */
struct rbi_choice *
rbi_all_choose(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_pick *pick);
/** Sends to them. @return how many took it; an error (noted) */
int rbi_all_send(struct ringbus *bus,
                 const struct ringbus_addr *to,
                 struct rbi_outgoing *out,
                 const struct rbi_pick *pick);

#endif
