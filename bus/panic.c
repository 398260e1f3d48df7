/* SPDX-License-Identifier: Apache-2.0 */
/* bus/panic.c - hysteresis over the healthy share of a cluster's weight. */
#include "bus/panic.h"

enum rbi_panic_change rbi_panic_step(struct rbi_panic *panic,
                                     const struct rbi_panic_policy *policy,
                                     uint64_t healthy,
                                     uint64_t total)
{
    const uint64_t leave = rbi_max_u64(policy->leave, policy->enter);
    const bool was = panic->on;
    if (total == 0 || policy->enter == 0) {
        panic->on = false;
    } else if (!was) {
        panic->on = healthy * 100 < policy->enter * total;
    } else {
        panic->on = healthy < total && healthy * 100 < leave * total;
    }
    if (panic->on == was) {
        return RBI_PANIC_SAME;
    }
    return panic->on ? RBI_PANIC_ENTERED : RBI_PANIC_LEFT;
}
