/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_TURN_H
#define RINGBUS_BUS_BALANCE_TURN_H
/*
 * bus/balance_turn.h - in turn, by weight, without runs: each member's turns are spread evenly
 * over a round that is laid out beforehand, so that a pick is a step along it. Each caller begins
 * at a random place of it, and keeps its place when members come and go.
 */
#include "bus/balance_alias.h"

#define RBI_TURN_EXACT_MAX 16384U /* rounds up to this keep the weights as they are */
#define RBI_TURN_MAX       65536U /* longer ones round them by a turn each, or 2 x the members */

struct rbi_turn {
    const uint16_t *order;
    uint32_t length; /* 0: nobody has a weight */
    uint32_t cursor;
    uint32_t place; /* while nobody has a weight: the cursor, as a fraction of 2^-32 of a round */
};

/** Turns in a round: what the order needs room for. @p weights NULL: all the same. Cold. */
uint32_t rbi_turn_length(const uint32_t *weights, unsigned count);
/** Bytes that a build takes for itself. */
size_t rbi_turn_scratch_bytes(unsigned count, uint32_t length);
/** A random place to begin at; before the first build. */
void rbi_turn_init(struct rbi_turn *turn, struct rbi_random *random);
/**
 * Lays out the round of these members and goes on at the same part of it.
 * Who has a weight gets a turn at least, who has none gets none.
 * @param weights  NULL: all the same
 * @param count    at most RBI_PICK_NONE
 * @param order    rbi_turn_length() entries, borrowed; may be those of the build before
 * @param scratch  aligned to 8
 * Cost: about 10 ns a turn; cold.
 */
void rbi_turn_build(struct rbi_turn *turn,
                    uint16_t *order,
                    uint32_t length,
                    const uint32_t *weights,
                    unsigned count,
                    void *scratch);

/** The next one, or RBI_PICK_NONE. Cost: 1 to 2 ns. */
static inline uint16_t rbi_turn_pick(struct rbi_turn *turn)
{
    if (RBI_UNLIKELY(turn->length == 0)) {
        return RBI_PICK_NONE;
    }
    const uint32_t at = turn->cursor;
    turn->cursor = at + 1 == turn->length ? 0 : at + 1;
    return turn->order[at];
}

#endif
