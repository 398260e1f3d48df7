/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_ALIAS_H
#define RINGBUS_BUS_BALANCE_ALIAS_H
/*
 * bus/balance_alias.h - at random, by weight, in constant time: the alias table of Walker (1977),
 * filled as Vose (1991) does, in integers. Each of n columns belongs to one member up to a
 * threshold and to another above.
 */
#include "bus/balance_random.h"

#define RBI_PICK_NONE UINT16_MAX /* of each way to pick: nobody has a weight */

struct rbi_alias_column {
    uint32_t threshold; /* a fraction of 2^-32 */
    uint16_t alias;
    uint16_t reserved;
};

struct rbi_alias {
    const struct rbi_alias_column *columns;
    uint32_t count; /* 0: nobody has a weight */
};

/** Bytes that a build takes for itself. */
size_t rbi_alias_scratch_bytes(unsigned count);
/**
 * Weights may be any; who has 0 is never drawn. Shares are exact to 2^-32.
 * @param columns  @p count of them, borrowed by @p alias
 * @param count    at most RBI_PICK_NONE
 * Cost: about 10 ns a member; cold.
 */
void rbi_alias_build(struct rbi_alias *alias,
                     struct rbi_alias_column *columns,
                     const uint32_t *weights,
                     unsigned count,
                     void *scratch);

/** The member that a random number draws. @p alias has members. */
static inline uint16_t rbi_alias_draw(const struct rbi_alias *alias, uint64_t number)
{
    const uint32_t column = rbi_random_scale((uint32_t)(number >> 32), alias->count);
    const struct rbi_alias_column *at = &alias->columns[column];
    return (uint32_t)number < at->threshold ? (uint16_t)column : at->alias;
}

/** One of the members, by weight, or RBI_PICK_NONE. Cost: 2 to 3 ns. */
static inline uint16_t rbi_alias_pick(const struct rbi_alias *alias, struct rbi_random *random)
{
    if (RBI_UNLIKELY(alias->count == 0)) {
        return RBI_PICK_NONE;
    }
    return rbi_alias_draw(alias, rbi_random_next(random));
}

#endif
