/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_least.c - who has the least to do.
 */
#include "bus/balance_least.h"

const rbi_au64 rbi_least_unknown[2];

#define FACTOR_ONE  1024U /* of the heaviest member */
#define FACTOR_BITS 21U   /* and of one with a 2,048th of its weight, or less */
#define TIE_BITS    7U
#define INDEX_BITS  3U

_Static_assert(32 + RBI_LEAST_EWMA_BITS + TIE_BITS + INDEX_BITS <= 64, "an entry is one word");
_Static_assert(RBI_LEAST_SCAN_MAX == 1U << INDEX_BITS, "an index has too few bits");
_Static_assert(RBI_LEAST_SCAN_MAX *TIE_BITS + INDEX_BITS <= 64, "one random number serves all");

size_t rbi_least_scratch_bytes(unsigned count)
{
    return rbi_align_up(count * sizeof(uint32_t), 8) + rbi_alias_scratch_bytes(count);
}

void rbi_least_build(struct rbi_least *least,
                     struct rbi_least_member *members,
                     unsigned count,
                     struct rbi_alias_column *columns,
                     void *scratch)
{
    uint32_t *weights = scratch;
    uint32_t heaviest = 0;
    least->members = members;
    least->even = true;
    for (unsigned i = 0; i < count; i++) {
        weights[i] = members[i].weight;
        least->even = least->even && weights[i] == weights[0];
        heaviest = weights[i] > heaviest ? weights[i] : heaviest;
    }
    for (unsigned i = 0; i < count; i++) {
        const uint64_t factor =
            weights[i] != 0 ? (uint64_t)heaviest * FACTOR_ONE / weights[i] : UINT64_MAX;
        members[i].factor = (uint32_t)rbi_min_u64(factor, 1U << FACTOR_BITS);
    }
    rbi_alias_build(&least->alias, columns, weights, count,
                    (unsigned char *)scratch + rbi_align_up(count * sizeof *weights, 8));
}

/** Time until what waits is done, not by weight: 54 bits. Not known, a time is the longest. */
static inline uint64_t cost_of(const struct rbi_least_member *member)
{
    const uint64_t longest = (1U << RBI_LEAST_EWMA_BITS) - 1;
    const uint64_t ewma_ns = rbi_load_rlx(&member->load[RBI_LEAST_EWMA]);
    return rbi_least_waiting(member) * (ewma_ns - 1 < longest ? ewma_ns : longest);
}

/** The same by weight. From 2^21 messages of the longest on it does not matter how many more. */
static inline uint64_t weighed_cost_of(const struct rbi_least_member *member)
{
    const uint64_t most = UINT64_MAX >> FACTOR_BITS;
    return rbi_min_u64(cost_of(member), most) * member->factor;
}

/**
 * The least of few with the same weight: cost, a random tie-break and the index in one number.
 * Two with the same tie-break (1 of 128) go to the lower index.
 */
static uint16_t scan_even(struct rbi_least *least)
{
    const uint64_t tie_mask = ((1U << TIE_BITS) - 1) << INDEX_BITS;
    const struct rbi_least_member *member = least->members;
    const uint32_t count = least->alias.count;
    uint64_t ties = rbi_random_next(&least->random);
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++, member++) {
        const uint64_t entry = cost_of(member) << (TIE_BITS + INDEX_BITS) | ((ties & tie_mask) + i);
        lowest = entry < lowest ? entry : lowest;
        ties >>= TIE_BITS;
    }
    return (uint16_t)(lowest & ((1U << INDEX_BITS) - 1));
}

uint16_t rbi_least_scan(struct rbi_least *least)
{
    if (RBI_LIKELY(least->even)) {
        return scan_even(least);
    }
    uint64_t costs[RBI_LEAST_SCAN_MAX] = {0};
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < least->alias.count; i++) {
        const struct rbi_least_member *member = &least->members[i];
        costs[i] = member->weight != 0 ? weighed_cost_of(member) : UINT64_MAX;
        lowest = costs[i] < lowest ? costs[i] : lowest;
    }
    uint64_t tied = 0;
    for (uint32_t i = 0; i < least->alias.count; i++) {
        tied += costs[i] == lowest ? least->members[i].weight : 0;
    }
    /* A point on the weights of those that are tied, laid end to end: 35 bits at most. */
    const uint64_t point = (rbi_random_next(&least->random) >> 36) * tied >> 28;
    uint64_t passed = 0;
    uint32_t before = 0; /* members that end at or before the point */
    for (uint32_t i = 0; i < least->alias.count; i++) {
        passed += costs[i] == lowest ? least->members[i].weight : 0;
        before += passed <= point;
    }
    return (uint16_t)before;
}

uint16_t rbi_least_of_two(struct rbi_least *least)
{
    const uint64_t number = rbi_random_next(&least->random);
    const struct rbi_least_member *members = least->members;
    if (RBI_LIKELY(least->even)) {
        const uint32_t a = rbi_random_scale((uint32_t)(number >> 32), least->alias.count);
        uint32_t b = rbi_random_scale((uint32_t)number, least->alias.count - 1);
        b += b >= a;
        return (uint16_t)(cost_of(&members[a]) <= cost_of(&members[b]) ? a : b);
    }
    const uint16_t a = rbi_alias_draw(&least->alias, number);
    uint16_t b = rbi_alias_draw(&least->alias, rbi_random_next(&least->random));
    if (a == b) { /* a heavy one: one more try for an alternative */
        b = rbi_alias_draw(&least->alias, rbi_random_next(&least->random));
    }
    return weighed_cost_of(&members[a]) <= weighed_cost_of(&members[b]) ? a : b;
}
