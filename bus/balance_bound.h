/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_BOUND_H
#define RINGBUS_BUS_BALANCE_BOUND_H
/*
 * bus/balance_bound.h - by key, but not to an owner with much more than its share to do: then to
 * the next rank that has not, and to the first one anyway when all have (after Mirrokni, Thorup
 * and Zadimoghaddam 2018). A key then has no home while its owner is busy: for requests that any
 * member can serve, such as from a cache.
 */
#include "bus/balance_least.h"
#include "bus/table.h"

/**
 * Says from what waiting on each member is too busy: @p percent of its share, by weight, of what
 * waits on all, with one more message. To be called now and then, such as each millisecond.
 * @param limits   @p count, written
 * @param percent  above 100; features of this kind use 120 to 200
 * Cost: two passes over the members, and a line of each.
 */
void rbi_bound_refresh(uint64_t *limits,
                       const struct rbi_least_member *members,
                       unsigned count,
                       uint32_t percent);

/**
 * @param owners   of a table whose members are @p members, in the same order
 * @return index of a member, or RBI_PICK_NONE when the slot has no owner. Cost: 1 ns beyond
 *         that of the first rank, and the line of its load
 */
static inline uint16_t rbi_bound_pick(const uint16_t *owners,
                                      const struct rbi_table_shape *shape,
                                      uint32_t slot,
                                      const struct rbi_least_member *members,
                                      const uint64_t *limits)
{
    const uint16_t first = owners[slot];
    for (uint32_t rank = 0; rank < shape->ranks; rank++) {
        const uint16_t owner = rbi_table_owner(owners, shape->slots, rank, slot);
        if (owner == RBI_TABLE_NONE) {
            break;
        }
        if (RBI_LIKELY(rbi_least_waiting(&members[owner]) <= limits[owner])) {
            return owner;
        }
    }
    return first;
}

#endif
