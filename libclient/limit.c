/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/limit.c - see libclient/limit.h. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests under way ---------------------------------------------------------------------- */

void rbi_inflight_free(struct rbi_inflight *inflight)
{
    free(inflight);
}

void rbi_inflight_unref(struct rbi_inflight *inflight)
{
    if (inflight != NULL && --inflight->refs == 0 && inflight->count == 0) {
        free(inflight);
    }
}

int rbi_inflight_refuse(struct ringbus *bus,
                        const struct rbi_end *end,
                        const struct rbi_inflight *inflight)
{
    rbi_count(bus, RBI_COUNTER_limited, 1);
    bus->refusal.retry_us = 0;
    bus->refusal.wait_ns = 0;
    bus->refusal.inflight = inflight->most;
    return rbi_fail_fast(bus, RINGBUS_E_LIMITED, &end->peer, inflight->count);
}

/* Lowered below what is under way it blocks what is new, and ends nothing. */
static void cap_inflight(const struct rbi_cluster *cluster, const struct rbi_policy *policy)
{
    if (cluster->inflight != NULL) {
        const uint32_t most = policy->overload.max_inflight;
        cluster->inflight->most = most != 0 ? most : UINT32_MAX;
    }
}

static void attach_inflight(struct rbi_cluster *cluster, struct rbi_end *end)
{
    if (end->inflight != NULL) {
        return;
    }
    if (cluster->inflight == NULL) {
        cluster->inflight = calloc(1, sizeof *cluster->inflight);
        if (cluster->inflight == NULL) {
            return; /* without memory for it, it goes uncounted */
        }
        cluster->inflight->refs = 1;
        cap_inflight(cluster, rbi_cluster_policy(cluster));
    }
    cluster->inflight->refs++;
    end->inflight = cluster->inflight;
}

/* ---- which limits ---------------------------------------------------------------------------- */

void rbi_limiter_unref(struct rbi_limiter *limiter)
{
    if (limiter != NULL && --limiter->refs == 0) {
        free(limiter);
    }
}

void rbi_limit_attach(struct rbi_cluster *cluster, struct rbi_end *end, uint64_t now_ns)
{
    attach_inflight(cluster, end);
    struct rbi_limiter *old = end->limiter;
    struct rbi_limiter *limiter = end->loop ? NULL : cluster->limiter;
    if (old == limiter) {
        return;
    }
    if (limiter != NULL) {
        limiter->refs++;
        const struct rbi_limits none = {.count = 0};
        rbi_limit_words_carry(&end->limit_words, &limiter->limits, &end->limit_words,
                              old != NULL ? &old->limits : &none, now_ns);
    }
    end->limiter = limiter;
    end->hindered &= (uint8_t)~RBI_HINDERED_LIMIT;
    end->hindered |= limiter != NULL ? RBI_HINDERED_LIMIT : 0U;
    rbi_limiter_unref(old);
}

void rbi_limit_detach(struct rbi_end *end)
{
    rbi_limiter_unref(end->limiter);
    rbi_inflight_unref(end->inflight);
    end->limiter = NULL;
    end->inflight = NULL;
    end->hindered &= (uint8_t)~RBI_HINDERED_LIMIT;
}

static void
start_lease(struct rbi_limiter *limiter, unsigned position, uint64_t rate, uint64_t now_ns)
{
    struct rbi_lease_holder *lease = &limiter->leases[position];
    rbi_lease_holder_init(lease, 1000 * rbi_min_u64(rate, RBI_GCRA_RATE_MAX));
    rbi_limits_set_rate(&limiter->limits, &limiter->words, position, lease->fallback, now_ns);
    limiter->quota = true;
}

/* What was taken, and what was leased, counts on where a limit is the same. */
static void succeed(struct rbi_limiter *limiter, const struct rbi_limiter *old, uint64_t now_ns)
{
    rbi_limit_words_carry(&limiter->words, &limiter->limits, &old->words, &old->limits, now_ns);
    for (unsigned i = 0; i < limiter->limits.count; i++) {
        const int same = rbi_limit_same(&limiter->limits, i, &old->limits);
        if (same >= 0 && limiter->limits.rules[i].scope == RBI_LIMIT_CLUSTER) {
            /* Its rate may be another one: asked for anew, at once. */
            limiter->leases[i].units = old->leases[same].units;
        }
    }
}

int rbi_limit_follow(struct ringbus *bus,
                     struct rbi_cluster *cluster,
                     const struct rbi_policy *policy)
{
    struct rbi_limiter *old = cluster->limiter;
    struct rbi_limiter *limiter = NULL;
    struct rbi_limits limits = {.count = 0};
    if (policy != NULL) {
        rbi_limits_compile(&limits, policy, bus->self_path, strlen(bus->self_path),
                           RBI_LIMITS_OF_CALLER);
    }
    if (limits.count > 0) {
        limiter = calloc(1, sizeof *limiter);
        if (limiter == NULL) {
            return -ENOMEM;
        }
        limiter->refs = 1;
        limiter->cluster = cluster->id;
        limiter->limits = limits;
        for (unsigned i = 0; i < limits.count; i++) {
            if (limits.rules[i].scope == RBI_LIMIT_CLUSTER) {
                start_lease(limiter, i, policy->limits[limits.rules[i].index].rate, bus->now_ns);
            }
        }
        if (old != NULL) {
            succeed(limiter, old, bus->now_ns);
        }
    }
    cluster->limiter = limiter;
    if (policy != NULL) {
        cap_inflight(cluster, policy);
    } else if (cluster->inflight != NULL) {
        struct rbi_policy defaults;
        rbi_policy_defaults(&defaults);
        cap_inflight(cluster, &defaults);
    }
    for (unsigned i = 0; i < cluster->member_count; i++) {
        if (cluster->members[i].end != NULL) {
            rbi_limit_attach(cluster, cluster->members[i].end, bus->now_ns);
        }
    }
    rbi_limiter_unref(old);
    return 0;
}

/* ---- a message -------------------------------------------------------- */

/* What is offered is the demand, whether it is sent or not; and a lease may be over. */
static void
offer(struct ringbus *bus, struct rbi_limiter *limiter, const struct rbi_limit_question *question)
{
    for (unsigned i = 0; i < limiter->limits.count; i++) {
        const struct rbi_limit_rule *rule = &limiter->limits.rules[i];
        struct rbi_lease_holder *lease = &limiter->leases[i];
        if (rule->scope != RBI_LIMIT_CLUSTER || question->method < rule->method_low ||
            question->method > rule->method_high) {
            continue;
        }
        lease->units += rule->unit == RBI_LIMIT_BYTES ? question->bytes : 1;
        if (question->now_ns >= lease->until_ns && lease->until_ns != 0) {
            lease->until_ns = 0;
            rbi_limits_set_rate(&limiter->limits, &limiter->words, i, lease->fallback,
                                question->now_ns);
        }
        rbi_deadline_at_most(bus, lease->asked_ns + RBI_LEASE_PERIOD_NS);
    }
}

static RBI_COLD int refuse(struct ringbus *bus,
                           const struct rbi_end *end,
                           const struct rbi_limit_verdict *verdict,
                           enum rbi_limit_result result)
{
    const struct rbi_limit_rule *rule = &end->limiter->limits.rules[verdict->rule];
    rbi_count(bus, RBI_COUNTER_limited, 1);
    bus->refusal.retry_us = verdict->wait_ns / 1000 + 1;
    bus->refusal.wait_ns = result == RBI_LIMIT_DELAY ? rule->rate.wait_ns : 0;
    bus->refusal.inflight = 0;
    memcpy(bus->refusal.id, rule->id, sizeof bus->refusal.id);
    return rbi_fail_fast(bus, RINGBUS_E_LIMITED, &end->peer, bus->refusal.retry_us);
}

int rbi_limit_ask(struct ringbus *bus, struct rbi_end *end, uint32_t method, uint64_t bytes)
{
    struct rbi_limiter *limiter = end->limiter;
    struct rbi_limit_question question = {
        .method = method, .bytes = bytes, .now_ns = rbi_now_coarse_ns()};
    struct rbi_limit_verdict verdict;
    question.now_ns = rbi_max_u64(question.now_ns, bus->now_ns);
    if (limiter->quota) {
        offer(bus, limiter, &question);
    }
    enum rbi_limit_result result =
        rbi_limits_check(&limiter->limits, &limiter->words, &end->limit_words, &question, &verdict);
    if (result != RBI_LIMIT_PASS || verdict.dry_refused) {
        question.now_ns = rbi_now_ns();
        result = rbi_limits_check(&limiter->limits, &limiter->words, &end->limit_words, &question,
                                  &verdict);
    }
    limiter->asked_ns = question.now_ns;
    if (RBI_UNLIKELY(verdict.dry_refused)) {
        rbi_count(bus, RBI_COUNTER_limited_dry, 1);
        rbi_dry_add(bus, limiter->cluster, RBI_DRY_LIMIT,
                    limiter->limits.rules[verdict.dry_rule].id);
    }
    return RBI_LIKELY(result == RBI_LIMIT_PASS) ? 0 : refuse(bus, end, &verdict, result);
}

void rbi_limit_taken(struct ringbus *bus, struct rbi_end *end, uint32_t method, uint64_t bytes)
{
    struct rbi_limiter *limiter = end->limiter;
    const struct rbi_limit_question question = {
        .method = method, .bytes = bytes, .now_ns = limiter->asked_ns};
    (void)bus;
    rbi_limits_take(&limiter->limits, &limiter->words, &end->limit_words, &question);
}

uint64_t ringbus_retry_after_us(const struct ringbus *bus)
{
    if (bus == NULL || rbi_load_rlx(bus->guard) != RBI_GUARD_ALIVE ||
        bus->error.code != RINGBUS_E_LIMITED) {
        return 0;
    }
    return bus->refusal.retry_us;
}

/* ---- leases -------------------------------------------------------- */

static uint64_t ask_for(struct ringbus *bus, struct rbi_limiter *limiter, uint64_t now_ns)
{
    uint64_t next_ns = RBI_NEVER;
    for (unsigned i = 0; i < limiter->limits.count; i++) {
        struct rbi_lease_holder *lease = &limiter->leases[i];
        struct rbi_wire_lease_demand body = {.cluster = limiter->cluster};
        if (limiter->limits.rules[i].scope != RBI_LIMIT_CLUSTER) {
            continue;
        }
        if (rbi_lease_ask(lease, now_ns, &body.demand)) {
            rbi_text_set(&body.limit, limiter->limits.rules[i].id);
            (void)rbi_control_send(bus, RBI_WIRE_LEASE_DEMAND, &body, NULL, 0);
        } else if (lease->units > 0) {
            next_ns = rbi_min_u64(next_ns, lease->asked_ns + RBI_LEASE_PERIOD_NS);
        }
    }
    return next_ns;
}

uint64_t rbi_limit_tick(struct ringbus *bus, uint64_t now_ns)
{
    uint64_t next_ns = RBI_NEVER;
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        struct rbi_limiter *limiter = bus->clusters[i]->limiter;
        if (limiter != NULL && limiter->quota) {
            next_ns = rbi_min_u64(next_ns, ask_for(bus, limiter, now_ns));
        }
    }
    return next_ns;
}

void rbi_limit_lease(struct ringbus *bus, const struct rbi_wire_lease *body)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, body->cluster);
    struct rbi_limiter *limiter = cluster != NULL ? cluster->limiter : NULL;
    for (unsigned i = 0; limiter != NULL && i < limiter->limits.count; i++) {
        const struct rbi_limit_rule *rule = &limiter->limits.rules[i];
        if (rule->scope == RBI_LIMIT_CLUSTER && strcmp(rule->id, body->limit.bytes) == 0) {
            rbi_lease_granted(&limiter->leases[i], body->share, body->fallback, bus->now_ns);
            rbi_limits_set_rate(&limiter->limits, &limiter->words, i, limiter->leases[i].share,
                                bus->now_ns);
        }
    }
}
