/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_start.c - slow start.
 */
#include "bus/balance_start.h"

#include "bus/hrw_score.h"

#define ONE (UINT64_C(1) << 32)

/** 2^-x: @p x in units of 2^-32, below 64 x 2^32; the result in units of 2^-32. Never rises. */
static uint64_t exp2_minus(uint64_t x)
{
    const uint64_t upwards = ONE - (x & UINT32_MAX); /* 2^-x = 2^upwards / 2^(whole + 1) */
    uint32_t at = 0;                                 /* last entry that is not above it */
    for (uint32_t half = 128; half != 0; half /= 2) {
        at += rbi_hrw_log2[at + half] <= upwards ? half : 0;
    }
    const uint64_t low = rbi_hrw_log2[at];
    const uint64_t inside = ((upwards - low) << 24) / (rbi_hrw_log2[at + 1] - low);
    return (ONE + ((uint64_t)at << 24) + inside) >> ((x >> 32) + 1);
}

uint32_t rbi_slow_start(const struct rbi_balance_policy *policy, uint64_t ready_ms)
{
    if (ready_ms >= policy->slow_start_ms) {
        return 100;
    }
    const uint64_t least = rbi_max_u64(rbi_min_u64(policy->slow_start_min, 100), 1);
    const uint64_t part = (ready_ms << 32) / policy->slow_start_ms; /* below 2^32 */
    uint64_t powered = part;
    if (policy->slow_start_aggression != 0 && policy->slow_start_aggression != 100) {
        const uint64_t log = rbi_hrw_minus_log2(part << 32);
        const uint64_t scaled = log * 100 / policy->slow_start_aggression;
        powered = scaled >> 32 < 32 ? exp2_minus(scaled) : 0;
    }
    return (uint32_t)rbi_min_u64(rbi_max_u64(powered * 100 >> 32, least), 100);
}
