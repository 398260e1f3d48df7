/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_turn.c - a round of turns. Of q turns in L, turn k of a member belongs at
 * (k + phase) L / q; all are sorted by that place, by counting. Phases differ (multiples of the
 * golden ratio), or the members with the fewest turns would all stand at one place, in a gap of
 * which the heavy ones would have runs.
 */
#include "bus/balance_turn.h"

#include "bus/u128.h"

#include <string.h>

static uint64_t sum_of(const uint32_t *weights, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += weights != NULL ? weights[i] : 1;
    }
    return sum;
}

static uint32_t divisor_of(const uint32_t *weights, unsigned count)
{
    uint32_t divisor = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t a = weights[i];
        while (a != 0) {
            const uint32_t rest = divisor % a;
            divisor = a;
            a = rest;
        }
    }
    return divisor;
}

uint32_t rbi_turn_length(const uint32_t *weights, unsigned count)
{
    const uint64_t sum = sum_of(weights, count);
    if (sum == 0 || weights == NULL) {
        return (uint32_t)sum;
    }
    const uint32_t divisor = divisor_of(weights, count);
    RBI_ASSERT(divisor != 0); /* as the sum */
    const uint64_t exact = sum / divisor;
    if (exact <= RBI_TURN_EXACT_MAX) {
        return (uint32_t)exact;
    }
    uint32_t least = UINT32_MAX;
    for (unsigned i = 0; i < count; i++) {
        least = weights[i] != 0 && weights[i] < least ? weights[i] : least;
    }
    /* A hundred turns for each, if that is possible, so that one more or less is 1 %. */
    const uint64_t wanted = rbi_min_u64(100 * sum / least, RBI_TURN_MAX);
    return (uint32_t)rbi_max_u64(rbi_pow2_ceil(wanted), 2 * rbi_pow2_ceil(count));
}

size_t rbi_turn_scratch_bytes(unsigned count, uint32_t length)
{
    return (count + (size_t)length + 1) * sizeof(uint32_t);
}

void rbi_turn_init(struct rbi_turn *turn, struct rbi_random *random)
{
    *turn = (struct rbi_turn){.place = (uint32_t)(rbi_random_next(random) >> 32)};
}

/** Takes turns from those with the most, in proportion, for those that got one for nothing. */
static void take_back(uint32_t *turns, unsigned count, uint32_t over, uint32_t length)
{
    while (over != 0) {
        const uint32_t taken = over;
        for (unsigned i = 0; i < count && over != 0; i++) {
            if (turns[i] > 1) {
                const uint64_t share = (uint64_t)taken * turns[i] / length;
                const uint64_t most = rbi_min_u64(over, turns[i] - 1);
                const uint32_t give = (uint32_t)rbi_min_u64(rbi_max_u64(share, 1), most);
                turns[i] -= give;
                over -= give;
            }
        }
    }
}

/** Turns of each: the sums from the first on are rounded, so that all together fit exactly. */
static void
deal(uint32_t *turns, const uint32_t *weights, unsigned count, uint64_t sum, uint32_t length)
{
    uint64_t so_far = 0;
    uint32_t given = 0;
    uint32_t over = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint32_t weight = weights != NULL ? weights[i] : 1;
        so_far += weight;
        const uint32_t upto = (uint32_t)(((rbi_u128)so_far * length + sum / 2) / sum);
        turns[i] = upto - given;
        given = upto;
        if (turns[i] == 0 && weight != 0) {
            turns[i] = 1;
            over++;
        }
    }
    take_back(turns, count, over, length);
}

static uint32_t place_of(uint32_t k, uint32_t phase, uint32_t turns, uint32_t length)
{
    return (uint32_t)(((((uint64_t)k << 16) + phase) * length / turns) >> 16);
}

/** Whether everybody who has turns has as many. */
static bool all_same(const uint32_t *turns, unsigned count)
{
    uint32_t first = 0;
    for (unsigned i = 0; i < count; i++) {
        first = first == 0 ? turns[i] : first;
        if (turns[i] != 0 && turns[i] != first) {
            return false;
        }
    }
    return true;
}

static void
lay_out(uint16_t *order, uint32_t length, const uint32_t *turns, unsigned count, uint32_t *places)
{
    const bool same = all_same(turns, count);
    /* Sorting by counting: first how many have a place before this one, */
    memset(places, 0, (length + (size_t)1) * sizeof *places);
    for (unsigned i = 0; i < count; i++) {
        const uint32_t phase = same ? 0 : (i * 40503U) & 0xffffU;
        for (uint32_t k = 0; k < turns[i]; k++) {
            places[place_of(k, phase, turns[i], length) + 1]++;
        }
    }
    for (uint32_t i = 0; i < length; i++) {
        places[i + 1] += places[i];
    }
    /* then each behind those, in the order of the members. */
    for (unsigned i = 0; i < count; i++) {
        const uint32_t phase = same ? 0 : (i * 40503U) & 0xffffU;
        for (uint32_t k = 0; k < turns[i]; k++) {
            order[places[place_of(k, phase, turns[i], length)]++] = (uint16_t)i;
        }
    }
}

void rbi_turn_build(struct rbi_turn *turn,
                    uint16_t *order,
                    uint32_t length,
                    const uint32_t *weights,
                    unsigned count,
                    void *scratch)
{
    const uint64_t sum = sum_of(weights, count);
    RBI_ASSERT(count <= RBI_PICK_NONE && (sum == 0) == (length == 0));
    uint32_t *turns = scratch;
    if (turn->length != 0) { /* rounded up, so that it comes back to the same turn */
        turn->place =
            (uint32_t)((((uint64_t)turn->cursor << 32) + turn->length - 1) / turn->length);
    }
    if (length != 0) {
        deal(turns, weights, count, sum, length);
        lay_out(order, length, turns, count, turns + count);
    }
    turn->order = order;
    turn->length = length;
    turn->cursor = rbi_random_scale(turn->place, length);
}
