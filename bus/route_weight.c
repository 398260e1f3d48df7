/* SPDX-License-Identifier: Apache-2.0 */
/* bus/route_weight.c - weights of the candidates: ramp, slow start, shares of the levels. */
#include "bus/route_weight.h"

#include "bus/route_stage.h"

/* Weights are spoken of in hundredths, so that a tenth of weight 1 is not 0. */
#define SCALE 100U

/* A share that grows is computed anew so many times until it is whole. */
#define STEPS 20U

#define FRACTION 32U /* bits after the point */
#define ONE      (UINT64_C(1) << FRACTION)

/* -log2(x) for 0 < x <= 1, by squaring: each square tells one bit of the result. */
static uint64_t minus_log2(uint64_t x)
{
    uint64_t result = 0;
    while (x <= ONE / 2) {
        x <<= 1;
        result += ONE;
    }
    for (unsigned bit = 1; bit <= 20; bit++) {
        x = (x >> 1) * (x >> 1) >> (FRACTION - 2);
        if (x <= ONE / 2) {
            x <<= 1;
            result += ONE >> bit;
        }
    }
    return result;
}

/* 2^-x: a root of one half for each bit after the point. */
static uint64_t exp2_minus(uint64_t x)
{
    /* 2^32 x 2^-(2^-k), k = 1 to 20. */
    static const uint64_t roots[] = {
        3037000500, 3611622603, 3938502376, 4112874773, 4202935003, 4248701965, 4271771996,
        4283353945, 4289156690, 4292061010, 4293513907, 4294240540, 4294603903, 4294785595,
        4294876445, 4294921870, 4294944583, 4294955939, 4294961618, 4294964457,
    };
    if (x >> FRACTION >= FRACTION) {
        return 0;
    }
    uint64_t result = ONE >> (x >> FRACTION);
    for (unsigned k = 0; k < RBI_ARRAY_SIZE(roots); k++) {
        if ((x & (ONE >> (k + 1))) != 0) {
            result = result * roots[k] >> FRACTION;
        }
    }
    return result;
}

uint32_t rbi_route_slow_start(const struct rbi_balance_policy *policy, uint64_t age_ns)
{
    const uint64_t whole_ns = policy->slow_start_ms * UINT64_C(1000000);
    if (age_ns >= whole_ns) {
        return RBI_ROUTE_FULL;
    }
    const uint64_t least = rbi_min_u64(policy->slow_start_min * UINT64_C(100), RBI_ROUTE_FULL);
    const uint32_t aggression = policy->slow_start_aggression;
    /* Both to 31 bits at the most, so that the product has room. */
    const unsigned bits = 64 - (unsigned)__builtin_clzll(whole_ns);
    const unsigned shift = bits > 31 ? bits - 31 : 0;
    const uint64_t age = (age_ns >> shift) * ONE / (whole_ns >> shift);
    uint64_t share = age;
    if (aggression != 100 && aggression != 0 && age > 0) {
        share = exp2_minus(minus_log2(age) * 100 / aggression);
    }
    return (uint32_t)rbi_max_u64(share * RBI_ROUTE_FULL >> FRACTION, least);
}

static uint64_t weight_of(struct rbi_route *route, const struct rbi_directory_instance *instance)
{
    const struct rbi_balance_policy *policy = &route->in->policy->balance;
    const uint64_t now_ns = route->in->now_ns;
    uint64_t weight = (uint64_t)instance->weight * SCALE;
    if (instance->health == RBI_HEALTH_RAMP) {
        weight = weight * rbi_min_u64(instance->ramp, 100) / 100;
    }
    if (policy->slow_start_ms > 0 && instance->ready_ns > 0) {
        const uint64_t age_ns = now_ns > instance->ready_ns ? now_ns - instance->ready_ns : 0;
        const uint32_t share = rbi_route_slow_start(policy, age_ns);
        weight = weight * share / RBI_ROUTE_FULL;
        if (share < RBI_ROUTE_FULL) {
            rbi_route_again(route, now_ns + policy->slow_start_ms * UINT64_C(1000000) / STEPS);
        }
    }
    return rbi_max_u64(weight, 1);
}

/* Several levels take part: within a level by weight, among them by their shares. */
static void spread(struct rbi_route *route, const uint64_t *weights, uint64_t total)
{
    const uint32_t *share = route->result->share;
    RBI_ROUTE_EACH(route, entry)
    {
        if (entry->weight > 0) {
            const uint64_t part = total * share[entry->rank] / RBI_ROUTE_FULL;
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
    RBI_ROUTE_EACH(route, entry)
    {
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
