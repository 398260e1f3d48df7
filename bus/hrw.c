/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/hrw.c - rendezvous slot table. Every constant here decides which instance owns
 * which key, on every host and in every release: tests/unit/test_hrw.c pins the
 * result, and nothing here may change it.
 */
#include "bus/hrw.h"

#include "bus/hrw_log2.h"

__extension__ typedef unsigned __int128 rbi_u128;

/** Finaliser of SplitMix64: every bit of the input reaches every bit of the result. */
static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x;
}

/** -log2(@p hash / 2^64) in units of 2^-32: above 0, at most 64. Less for larger hashes. */
static inline uint64_t minus_log2(uint64_t hash)
{
    const uint64_t h = hash | 1; /* 0 has no logarithm */
    const unsigned zeros = (unsigned)__builtin_clzll(h);
    const uint64_t mantissa = h << zeros; /* highest bit set */
    const unsigned idx = (unsigned)(mantissa >> 55) & 0xffU;
    const uint64_t rest = (mantissa >> 23) & UINT32_MAX;
    const uint64_t step = rbi_hrw_log2[idx + 1] - rbi_hrw_log2[idx];
    return ((uint64_t)(zeros + 1) << 32) - rbi_hrw_log2[idx] - (step * rest >> 32);
}

/**
 * Whether score @p a of @p ma is better than @p b of @p mb: a / weight less, ties to the lower id.
 */
static inline bool
better(uint64_t a, const struct rbi_hrw_member *ma, uint64_t b, const struct rbi_hrw_member *mb)
{
    const rbi_u128 left = (rbi_u128)a * mb->weight;
    const rbi_u128 right = (rbi_u128)b * ma->weight;
    return left != right ? left < right : ma->instance < mb->instance;
}

static uint16_t
owner_of(uint64_t slot_hash, const struct rbi_hrw_member *members, unsigned member_count)
{
    uint16_t best = RBI_HRW_NONE;
    uint64_t best_score = 0;
    for (unsigned i = 0; i < member_count; i++) {
        if (members[i].weight == 0) {
            continue;
        }
        /* The odd constant keeps small ids away from the fixed point 0 of the mix. */
        const uint64_t seed =
            mix((uint64_t)(uint32_t)members[i].instance + UINT64_C(0x9e3779b97f4a7c15));
        const uint64_t score = minus_log2(mix(seed ^ slot_hash));
        if (best == RBI_HRW_NONE || better(score, &members[i], best_score, &members[best])) {
            best = (uint16_t)i;
            best_score = score;
        }
    }
    return best;
}

void rbi_hrw_build(uint16_t *owner,
                   uint32_t slots,
                   const struct rbi_hrw_member *members,
                   unsigned member_count)
{
    RBI_ASSERT(rbi_is_pow2(slots) && member_count <= RBI_HRW_MEMBERS_MAX);
    for (uint32_t slot = 0; slot < slots; slot++) {
        const uint64_t slot_hash = mix(((uint64_t)slot + 1) * UINT64_C(0xd1342543de82ef95));
        owner[slot] = owner_of(slot_hash, members, member_count);
    }
}
