/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/retry.c - whether a request that was refused or lost is asked again, and of whom.
 */

#include "libclient/internal.h"

#include <stdlib.h>

#define WAIT_MS_MAX 60000U

/* ---- what is kept of a cluster -------------------------------------------------------------- */

struct rbi_caller *rbi_caller_of(struct rbi_cluster *cluster)
{
    if (cluster->caller == NULL) {
        cluster->caller = calloc(1, sizeof *cluster->caller);
        if (cluster->caller != NULL) {
            rbi_retry_budget_init(&cluster->caller->budget);
        }
    }
    return cluster->caller;
}

void rbi_caller_free(struct rbi_caller *caller)
{
    if (caller != NULL) {
        rbi_degrade_rules_unref(caller->rules);
        free(caller);
    }
}

int rbi_caller_target(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct ringbus_target_options *options)
{
    if ((unsigned)options->retry > RINGBUS_RETRY_FAILSAFE ||
        options->retry_tries >= RBI_TRIES_MAX || options->wait_ms > WAIT_MS_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "retry %u, retry_tries %u (at most %u) or wait_ms %u (at most %u)",
                        (unsigned)options->retry, options->retry_tries, RBI_TRIES_MAX - 1,
                        options->wait_ms, WAIT_MS_MAX);
    }
    if (cluster->caller == NULL && options->retry == RINGBUS_RETRY_AUTO &&
        options->retry_tries == 0 && options->wait_ms == 0 && options->divert == 0) {
        return 0;
    }
    struct rbi_caller *caller = rbi_caller_of(cluster);
    if (caller == NULL) {
        return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "no memory for the target %s", cluster->path);
    }
    caller->retry = options->retry;
    caller->retry_tries = options->retry_tries;
    caller->wait_ms = options->wait_ms;
    caller->divert = options->divert != 0;
    rbi_caller_changed(cluster);
    return 0;
}

/* Whether a limit has requests wait before they are sent. */
static bool delays(const struct rbi_policy *policy)
{
    bool any = false;
    for (uint32_t i = 0; i < policy->limit_count; i++) {
        any = any ||
              (policy->limits[i].scope != RBI_LIMIT_RECEIVER && policy->limits[i].max_wait_ms != 0);
    }
    return any;
}

void rbi_caller_changed(struct rbi_cluster *cluster)
{
    const struct rbi_caller *caller = cluster->caller;
    const struct rbi_policy *policy = cluster->policy;
    cluster->managed =
        (caller != NULL && (caller->retry != RINGBUS_RETRY_AUTO || caller->retry_tries != 0 ||
                            caller->wait_ms != 0 || caller->divert || caller->rules != NULL)) ||
        (policy != NULL && (policy->retry.mode != RBI_RETRY_AUTO || policy->degrade_count != 0 ||
                            policy->balance.mode == RBI_BALANCE_ALL || delays(policy)));
}

const struct rbi_retry_policy *rbi_retry_policy_of(const struct rbi_cluster *cluster)
{
    return &rbi_cluster_policy(cluster)->retry;
}

/* ---- one request ---------------------------------------------------------------------------- */

_Static_assert((int)RINGBUS_RETRY_FAILFAST == (int)RBI_RETRY_FAILFAST &&
                   (int)RINGBUS_RETRY_FAILSAFE == (int)RBI_RETRY_FAILSAFE,
               "same modes");

void rbi_retry_begin(struct rbi_ask *ask, struct rbi_cluster *cluster)
{
    const struct rbi_retry_policy *policy = rbi_retry_policy_of(cluster);
    const struct rbi_caller *caller = cluster->caller;
    uint32_t mode = policy->mode;
    uint32_t tries = policy->tries;
    if (caller != NULL && caller->retry != RINGBUS_RETRY_AUTO) {
        mode = (uint32_t)caller->retry;
    }
    if (caller != NULL && caller->retry_tries != 0) {
        tries = caller->retry_tries;
    }
    if (mode == RBI_RETRY_AUTO && rbi_hooks_mode(cluster) == RBI_BALANCE_ALL) {
        mode = RBI_RETRY_BROADCAST;
    }
    if (mode == RBI_RETRY_AUTO) {
        mode = (ask->flags & RINGBUS_KEY) != 0 ? RBI_RETRY_FAILFAST : RBI_RETRY_FAILOVER;
    }
    if (mode == RBI_RETRY_FAILBACK) {
        mode = RBI_RETRY_FAILFAST; /* for messages without an answer */
    }
    ask->mode = (uint8_t)mode;
    ask->once = policy->once_per_instance != 0;
    ask->tries_left = 0;
    if (mode == RBI_RETRY_FAILOVER) {
        ask->tries_left = (uint8_t)rbi_min_u64(tries, RBI_TRIES_MAX - 1);
    } else if (mode == RBI_RETRY_FORKING) {
        ask->tries_left = (uint8_t)(rbi_min_u64(rbi_max_u64(policy->forks, 1), RBI_TRIES_MAX) - 1);
    }
}

/* What it says of the receiver, not of the request: somebody else may do better. */
static bool may_differ_elsewhere(enum ringbus_outcome outcome, int error, bool idempotent)
{
    if (outcome == RINGBUS_UNKNOWN) {
        return idempotent && (error == RINGBUS_E_TIMEOUT || error == RINGBUS_E_PEER_GONE ||
                              error == RINGBUS_E_BAD_PEER || error == RINGBUS_E_UNREACHABLE);
    }
    if (outcome != RINGBUS_NOT_SENT) {
        return false;
    }
    switch (error) {
    case RINGBUS_E_FULL:
    case RINGBUS_E_BUSY:
    case RINGBUS_E_NOT_READY:
    case RINGBUS_E_DRAINING:
    case RINGBUS_E_RESTARTING:
    case RINGBUS_E_SHED:
    case RINGBUS_E_NOT_OWNER:
    case RINGBUS_E_PEER_GONE:
    case RINGBUS_E_BAD_PEER:
    case RINGBUS_E_UNREACHABLE:
    case RINGBUS_E_NO_ROUTE:
        return true;
    default:
        return false;
    }
}

bool rbi_retry_allowed(struct ringbus *bus,
                       struct rbi_ask *ask,
                       enum ringbus_outcome outcome,
                       int error,
                       uint64_t now_ns)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    const bool idempotent = (ask->flags & RINGBUS_IDEMPOTENT) != 0;
    /* The owner that the sender knew was not it: its table was old, and is looked up anew. */
    const bool follow = outcome == RINGBUS_NOT_SENT && error == RINGBUS_E_NOT_OWNER &&
                        (ask->flags & RINGBUS_KEY) != 0 && !ask->owner_again;
    if (cluster == NULL || bus->closing || ask->to.instance != RINGBUS_ANY ||
        now_ns >= ask->deadline_ns || !may_differ_elsewhere(outcome, error, idempotent) ||
        (!follow && (ask->mode != RBI_RETRY_FAILOVER || ask->tries_left == 0))) {
        return false;
    }
    struct rbi_caller *caller = rbi_caller_of(cluster);
    const struct rbi_retry_policy *policy = rbi_retry_policy_of(cluster);
    if (caller == NULL || !rbi_retry_budget_take(&caller->budget, policy->budget_percent,
                                                 policy->budget_min, now_ns)) {
        rbi_count(bus, RBI_COUNTER_retry_denied, 1);
        return false;
    }
    ask->again = true;
    if (follow) {
        ask->owner_again = true;
        ask->following = true;
        cluster->dispatch_stale |= RBI_DISPATCH_STALE;
    } else {
        ask->tries_left--;
    }
    return true;
}

void rbi_retry_note(struct ringbus *bus,
                    const struct rbi_ask *ask,
                    enum ringbus_outcome outcome,
                    int error)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    if (cluster == NULL || cluster->caller == NULL) {
        return;
    }
    if (outcome == RINGBUS_REPLIED) {
        rbi_retry_budget_ended(&cluster->caller->budget, true);
    } else if (outcome != RINGBUS_FAILED && error != RINGBUS_E_CLOSED) {
        rbi_retry_budget_ended(&cluster->caller->budget, false);
    }
}

/* ---- whom ----------------------------------------------------------------------------------- */

int rbi_retry_choose(struct ringbus *bus, struct rbi_ask *ask, struct rbi_end **out)
{
    const bool keyed = (ask->flags & RINGBUS_KEY) != 0;
    /* Copies of a request go to whoever is there: a key says no more than what it is about. */
    const bool by_key = keyed && ask->mode != RBI_RETRY_FORKING;
    /* Nor does it once its owner was asked in vain, or cannot be reached: then it is marked. */
    const bool elsewhere =
        by_key && !ask->following &&
        (ask->diverting || (ask->mode == RBI_RETRY_FAILOVER && ask->tried_count > 0));
    ask->following = false;
    struct rbi_choosing by = {.keyed = keyed,
                              .spread = !by_key || elsewhere,
                              .key = ask->key,
                              .tried = ask->tried,
                              .tried_count = ask->tried_count};
    struct rbi_end *end = NULL;
    int r = rbi_attributes_resolve(bus, &ask->to, &by, &ask->attributes, &end);
    if (r != 0 && ask->tried_count > 0) {
        if (!ask->once && by.spread) {
            by.tried_count = 0;
            r = rbi_attributes_resolve(bus, &ask->to, &by, &ask->attributes, &end);
        } else {
            r = RINGBUS_E_NO_INSTANCE; /* no other */
        }
    }
    if (RBI_UNLIKELY(bus->probing)) {
        r = rbi_probe_route(bus, &ask->to, &by, &ask->attributes, r, &end);
    }
    if (r == 0) {
        ask->attributes.diverted |= elsewhere;
        *out = end;
    }
    return r;
}
