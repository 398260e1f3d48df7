/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_HRW_H
#define RINGBUS_BUS_HRW_H
/*
 * bus/hrw.h - consistent hash by key: a precomputed rendezvous (highest random
 * weight) slot table. A pure function of {(instance id, weight)}: no history, no
 * order of arrival, integer arithmetic only, so every caller on every host agrees.
 * Adding, removing or re-weighing a member moves only keys to or from it.
 *
 * For each slot the member with the least L / weight owns it, where L = -log2 of a
 * hash of (instance, slot), in fixed point (count of leading zeros, 256-entry table,
 * linear step); ties go to the lower id. Thaler and Ravishankar 1998; weighted
 * form after Schindelhauer and Schomaker 2005.
 */
#include "shm/base.h"

#define RBI_HRW_SLOTS       16384U
#define RBI_HRW_MEMBERS_MAX 65535U
#define RBI_HRW_NONE        UINT16_MAX

struct rbi_hrw_member {
    int32_t instance;
    uint32_t weight; /* 0 owns nothing */
};

/**
 * Builds the table from nothing.
 * @param owner   slots entries: index into @p members, or RBI_HRW_NONE when no weight > 0
 * @param slots   power of two
 * Cost: slots x members evaluations, about 10 ns each; cold.
 */
void rbi_hrw_build(uint16_t *owner,
                   uint32_t slots,
                   const struct rbi_hrw_member *members,
                   unsigned member_count);

/** A mix of a key, so that sequential keys spread too: its upper bits are the better ones. */
static inline uint64_t rbi_hrw_spread(uint64_t key)
{
    uint64_t x = key;
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

/** Slot of a key, of a power of two of them. No division. */
static inline uint32_t rbi_hrw_slot(uint64_t key, uint32_t slots)
{
    return (uint32_t)(rbi_hrw_spread(key) >> 16) & (slots - 1);
}

#endif
