/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/table_ranges.c - which slots a member gained or lost from one table to the next.
 */
#include "bus/table.h"

/** Index of the instance, or RBI_TABLE_NONE. */
static uint16_t find(const struct rbi_table *table, int32_t instance)
{
    uint32_t low = 0;
    uint32_t high = table != NULL ? table->member_count : 0;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (table->members[middle].instance < instance) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const bool found =
        table != NULL && low < table->member_count && table->members[low].instance == instance;
    return found ? (uint16_t)low : RBI_TABLE_NONE;
}

bool rbi_table_gained(const struct rbi_table *from,
                      const struct rbi_table *to,
                      int32_t instance,
                      uint32_t *cursor,
                      struct rbi_table_range *range)
{
    RBI_ASSERT(from == NULL || to == NULL || from->shape.slots == to->shape.slots);
    const uint16_t before = find(from, instance);
    const uint16_t after = find(to, instance);
    if (after == RBI_TABLE_NONE) {
        return false;
    }
    bool inside = false;
    uint32_t slot = *cursor;
    for (; slot < to->shape.slots; slot++) {
        const bool had = before != RBI_TABLE_NONE && from->owners[slot] == before;
        const bool gained = to->owners[slot] == after && !had;
        if (gained && !inside) {
            range->first = slot;
            inside = true;
        } else if (!gained && inside) {
            break;
        }
    }
    *cursor = slot;
    if (inside) {
        range->last = slot - 1;
    }
    return inside;
}
