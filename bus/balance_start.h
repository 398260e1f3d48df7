/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_START_H
#define RINGBUS_BUS_BALANCE_START_H
/*
 * bus/balance_start.h - slow start: an instance that has just become READY gets its weight bit by
 * bit. In whole percent, so that a table changes a hundred times at most while it lasts, and in
 * integers, so that all get the same.
 */
#include "bus/policy.h"

/**
 * Percent of its weight that an instance gets: max(slow_start_min, (t / slow_start_ms)^(1 / a)),
 * a the slow_start_aggression over 100 (0 is 100, linear; above it rises early, below late).
 * Never falls with time.
 * @param ready_ms  how long it has been READY
 * @return 1 to 100. Cost: some 20 ns; cold
 */
uint32_t rbi_slow_start(const struct rbi_balance_policy *policy, uint64_t ready_ms);

/** That many percent of a weight; what has a weight keeps some. */
static inline uint32_t rbi_weight_percent(uint32_t weight, uint32_t percent)
{
    const uint64_t scaled = (uint64_t)weight * percent / 100;
    return scaled == 0 && weight != 0 && percent != 0 ? 1 : (uint32_t)scaled;
}

#endif
