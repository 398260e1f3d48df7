/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_weight.c - weights of the candidates: reported ones, ramp, slow start, shares of the
 * levels.
 */
#include "bus/balance_start.h"
#include "bus/route_stage.h"

/* Weights are spoken of in hundredths, so that a tenth of weight 1 is not 0. */
#define SCALE 100U

#define WHOLE 10000U /* of shares */

/* A share that grows is computed anew so many times until it is whole. */
#define STEPS 20U

static uint64_t weight_of(struct rbi_route *route, const struct rbi_directory_instance *instance)
{
    const struct rbi_balance_policy *policy = &route->in->policy->balance;
    const uint64_t now_ns = route->in->now_ns;
    const bool reported = policy->reported_weight != 0 && instance->reported != 0;
    uint64_t weight = (uint64_t)(reported ? instance->reported : instance->weight) * SCALE;
    if (instance->health == RBI_HEALTH_RAMP) {
        weight = weight * rbi_min_u64(instance->ramp, 100) / 100;
    }
    if (policy->slow_start_ms > 0 && instance->ready_ns > 0) {
        const uint64_t age_ns = now_ns > instance->ready_ns ? now_ns - instance->ready_ns : 0;
        const uint32_t percent = rbi_slow_start(policy, age_ns / 1000000);
        weight = weight * percent / 100;
        if (percent < 100) {
            rbi_route_again(route, now_ns + policy->slow_start_ms * UINT64_C(1000000) / STEPS);
        }
    }
    return rbi_max_u64(weight, 1);
}

/* Several levels take part: within a level by weight, among them by their shares. */
static void spread(struct rbi_route *route, const uint64_t *weights, uint64_t total)
{
    const uint32_t *share = route->result->share;
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (entry->weight > 0) {
            const uint64_t part = total * share[entry->rank] / WHOLE;
            const uint64_t scaled = entry->weight * part / weights[entry->rank];
            entry->weight = (uint32_t)rbi_min_u64(rbi_max_u64(scaled, 1), UINT32_MAX);
        }
    }
}

void rbi_route_weigh(struct rbi_route *route)
{
    struct rbi_route_result *result = route->result;
    uint64_t weights[RBI_ROUTE_RANKS] = {0};
    uint64_t total = 0;
    uint64_t shares = 0;
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        const struct rbi_directory_instance *instance = rbi_route_instance(route, entry);
        if (rbi_route_is_in(entry)) {
            entry->weight = (uint32_t)rbi_min_u64(weight_of(route, instance), UINT32_MAX);
            weights[entry->rank] += entry->weight;
            total += entry->weight;
            result->in_count++;
        }
        if (entry->keyed) {
            entry->hash_weight = instance->weight;
            result->keyed_count++;
        }
    }
    for (unsigned rank = 0; rank < RBI_ROUTE_RANKS; rank++) {
        shares += result->share[rank] > 0 ? 1U : 0U;
    }
    if (shares > 1) {
        spread(route, weights, total);
    }
}
