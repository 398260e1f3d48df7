/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_alias.c - alias table. With shares scaled by the number of columns, a column holds
 * the sum of the weights; all sums are exact, so none is left over at the end.
 */
#include "bus/balance_alias.h"

#include "bus/u128.h"

struct work {
    uint64_t *left;  /* of each member's scaled weight: 48 bits at most */
    uint16_t *stack; /* members with less than a column from below, with more from above */
    uint32_t small;  /* how many from below */
    uint32_t large;  /* where those from above begin */
    uint64_t column; /* what one holds */
};

size_t rbi_alias_scratch_bytes(unsigned count)
{
    return count * (sizeof(uint64_t) + sizeof(uint16_t));
}

static void push(struct work *work, uint16_t member)
{
    if (work->left[member] < work->column) {
        work->stack[work->small++] = member;
    } else {
        work->stack[--work->large] = member;
    }
}

/** Fills the columns of small members up with what large ones have. */
static void fill(struct rbi_alias_column *columns, struct work *work, unsigned count)
{
    while (work->small != 0) {
        RBI_ASSERT(work->large != count);
        const uint16_t member = work->stack[--work->small];
        const uint16_t giver = work->stack[work->large++];
        const rbi_u128 scaled = (rbi_u128)work->left[member] << 32;
        columns[member].threshold = (uint32_t)(scaled / work->column);
        columns[member].alias = giver;
        work->left[giver] -= work->column - work->left[member];
        push(work, giver);
    }
    for (uint32_t i = work->large; i < count; i++) { /* exactly a column each */
        const uint16_t member = work->stack[i];
        columns[member].threshold = UINT32_MAX;
        columns[member].alias = member;
    }
}

void rbi_alias_build(struct rbi_alias *alias,
                     struct rbi_alias_column *columns,
                     const uint32_t *weights,
                     unsigned count,
                     void *scratch)
{
    RBI_ASSERT(count <= RBI_PICK_NONE);
    struct work work = {.left = scratch, .large = count};
    work.stack = (uint16_t *)(void *)(work.left + count);
    for (unsigned i = 0; i < count; i++) {
        work.column += weights[i];
    }
    *alias = (struct rbi_alias){.columns = columns, .count = work.column != 0 ? count : 0};
    if (alias->count == 0) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        work.left[i] = (uint64_t)weights[i] * count;
        columns[i].reserved = 0;
        push(&work, (uint16_t)i);
    }
    fill(columns, &work, count);
}
