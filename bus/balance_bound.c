/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_bound.c - how much waiting on a member is too much.
 */
#include "bus/balance_bound.h"

#include "bus/u128.h"

void rbi_bound_refresh(uint64_t *limits,
                       const struct rbi_least_member *members,
                       unsigned count,
                       uint32_t percent)
{
    uint64_t waiting = 1; /* the one that is to be sent */
    uint64_t weights = 0;
    for (unsigned i = 0; i < count; i++) {
        if (members[i].weight != 0) {
            waiting += rbi_least_waiting(&members[i]);
            weights += members[i].weight;
        }
    }
    const uint64_t whole = 100 * rbi_max_u64(weights, 1);
    for (unsigned i = 0; i < count; i++) {
        const rbi_u128 share = (rbi_u128)waiting * percent * members[i].weight;
        /* Rounded up: one message may wait anywhere. */
        limits[i] = (uint64_t)((share + whole - 1) / whole);
    }
}
