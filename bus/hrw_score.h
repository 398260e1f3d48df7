/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_HRW_SCORE_H
#define RINGBUS_BUS_HRW_SCORE_H
/*
 * bus/hrw_score.h - score of a member for a slot, shared by all that rank by it (hrw.c, table*.c,
 * subset.c). Every constant here decides which instance owns which key, on every host and in
 * every release: tests/unit/test_hrw.c and test_table_golden.c pin the result.
 */
#include "bus/hrw_log2.h"
#include "bus/u128.h"
#include "shm/base.h"

/** Finaliser of SplitMix64: every bit of the input reaches every bit of the result. */
static inline uint64_t rbi_hrw_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x;
}

/** -log2(@p hash / 2^64) in units of 2^-32: above 0, at most 64. Less for larger hashes. */
static inline uint64_t rbi_hrw_minus_log2(uint64_t hash)
{
    const uint64_t h = hash | 1; /* 0 has no logarithm */
    const unsigned zeros = (unsigned)__builtin_clzll(h);
    const uint64_t mantissa = h << zeros; /* highest bit set */
    const unsigned idx = (unsigned)(mantissa >> 55) & 0xffU;
    const uint64_t rest = (mantissa >> 23) & UINT32_MAX;
    const uint64_t step = rbi_hrw_log2[idx + 1] - rbi_hrw_log2[idx];
    return ((uint64_t)(zeros + 1) << 32) - rbi_hrw_log2[idx] - (step * rest >> 32);
}

/** What an instance brings into its hashes. */
static inline uint64_t rbi_hrw_seed(int32_t instance)
{
    /* The odd constant keeps small ids away from the fixed point 0 of the mix. */
    return rbi_hrw_mix((uint64_t)(uint32_t)instance + UINT64_C(0x9e3779b97f4a7c15));
}

/** What a slot brings. */
static inline uint64_t rbi_hrw_slot_seed(uint32_t slot)
{
    return rbi_hrw_mix(((uint64_t)slot + 1) * UINT64_C(0xd1342543de82ef95));
}

/** Hash of the two: the larger, the better. */
static inline uint64_t rbi_hrw_hash(uint64_t seed, uint64_t slot_seed)
{
    return rbi_hrw_mix(seed ^ slot_seed);
}

/**
 * Whether score / weight @p a is better than @p b: less, ties to the lower id. Neither weight is
 * 0.
 */
static inline bool rbi_hrw_better(uint64_t score_a,
                                  uint32_t weight_a,
                                  int32_t instance_a,
                                  uint64_t score_b,
                                  uint32_t weight_b,
                                  int32_t instance_b)
{
    const rbi_u128 left = (rbi_u128)score_a * weight_b;
    const rbi_u128 right = (rbi_u128)score_b * weight_a;
    return left != right ? left < right : instance_a < instance_b;
}

#endif
