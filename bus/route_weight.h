/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ROUTE_WEIGHT_H
#define RINGBUS_BUS_ROUTE_WEIGHT_H
/* bus/route_weight.h - what part of its weight an instance gets that is new. Pure; any thread. */
#include "bus/policy.h"

#define RBI_ROUTE_FULL 10000U

/**
 * Slow start: the share, of RBI_ROUTE_FULL, of an instance that has been ready for so long:
 * (age / slow_start) to the power of 100 / aggression, slow_start_min percent at least. An
 * aggression above 100 gives more early, one below 100 less. Integers only, so that all compute the
 * same.
 */
uint32_t rbi_route_slow_start(const struct rbi_balance_policy *policy, uint64_t age_ns);

#endif
