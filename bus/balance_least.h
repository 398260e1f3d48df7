/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_LEAST_H
#define RINGBUS_BUS_BALANCE_LEAST_H
/*
 * bus/balance_least.h - who has the least to do: of two drawn at random the one with less
 * (Mitzenmacher 2001), by the load that the receivers publish and by what this caller has sent
 * and they have not read yet. With a few members whose load is fresh, the least of all.
 *
 * What is compared is waiting x time of one / weight. Who has nothing to do is as good as any
 * other such, and an idle cluster shares by weight.
 */
#include "bus/balance_alias.h"
#include "shm/atomic.h"

#define RBI_LEAST_SCAN_MAX 8U              /* members up to which all are looked at */
#define RBI_LEAST_FRESH_NS UINT64_C(50000) /* while their load is not older than this */

#define RBI_LEAST_EWMA_BITS 22U /* from 4 ms on a message takes long, however long */

/* Words of a receiver's load, in its memory. */
#define RBI_LEAST_DEPTH 0 /* messages that wait */
#define RBI_LEAST_EWMA  1 /* ns that one takes; 0: not known, which counts as the longest */

struct rbi_least_member {
    const rbi_au64 *load; /* two words, RBI_LEAST_*; rbi_least_unknown for one that has none */
    uint32_t weight;      /* 0: never picked */
    uint32_t unread;      /* the caller's own: messages sent, and not seen to be read */
    uint32_t factor;      /* rbi_least_build(): 1 / weight, in 2^-10 of the heaviest one's */
    uint32_t reserved;
};

struct rbi_least {
    struct rbi_least_member *members; /* borrowed; the caller keeps unread up to date */
    struct rbi_alias alias;           /* by weight; its count is 0 when nobody has a weight */
    bool even;                        /* all have the same: drawn without the table */
    struct rbi_random random;
};

/**
 * Messages that wait for a member, as far as this caller knows. A receiver that writes nonsense can
 * make it wrap around, but it can just as well write a 0.
 */
static inline uint32_t rbi_least_waiting(const struct rbi_least_member *member)
{
    return (uint32_t)rbi_load_rlx(&member->load[RBI_LEAST_DEPTH]) + member->unread;
}

/** Load of a receiver that publishes none: idle. */
extern const rbi_au64 rbi_least_unknown[2];

/**
 * Takes over members. The random state stays: rbi_random_init() it once.
 * @param members  borrowed
 * @param columns  @p count, borrowed
 * @param scratch  rbi_least_scratch_bytes(), aligned to 8
 */
void rbi_least_build(struct rbi_least *least,
                     struct rbi_least_member *members,
                     unsigned count,
                     struct rbi_alias_column *columns,
                     void *scratch);
size_t rbi_least_scratch_bytes(unsigned count);

/** Looks at all: for fresh loads. RBI_PICK_NONE when nobody has a weight. */
uint16_t rbi_least_scan(struct rbi_least *least);
/** Draws two members by weight. @p least has two members, and one of them a weight. */
uint16_t rbi_least_of_two(struct rbi_least *least);

/**
 * @param fresh  the loads are younger than RBI_LEAST_FRESH_NS, as those of receivers are that
 *               are at work just now
 * @return index of a member, or RBI_PICK_NONE when nobody has a weight. Cost: 5 to 10 ns, and
 *         the lines of the loads.
 */
static inline uint16_t rbi_least_pick(struct rbi_least *least, bool fresh)
{
    if (RBI_UNLIKELY(least->alias.count <= 1)) {
        return least->alias.count == 0 ? RBI_PICK_NONE : 0;
    }
    return fresh && least->alias.count <= RBI_LEAST_SCAN_MAX ? rbi_least_scan(least)
                                                             : rbi_least_of_two(least);
}

#endif
