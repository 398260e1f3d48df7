/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_TABLE_BUILD_H
#define RINGBUS_BUS_TABLE_BUILD_H
/*
 * bus/table_build.h - what the parts of a table's build share; nobody else includes it.
 *
 * A build goes through phases, each over all slots: RANK or UPDATE (table_rank.c), MATCH and
 * SEAT (table_strict.c), FILL, WIND and FOLLOW (table_maglev.c).
 */
#include "bus/hrw_score.h"
#include "bus/table.h"

enum rbi_table_phase {
    RBI_TABLE_RANK = 0,   /* score all candidates, keep the best */
    RBI_TABLE_UPDATE = 1, /* the same from the table before */
    RBI_TABLE_MATCH = 2,  /* bounded: each slot finds the best owner that has room for it */
    RBI_TABLE_SEAT = 3,   /* which then becomes its first rank */
    RBI_TABLE_FILL = 4,
    RBI_TABLE_WIND = 5,   /* who follows slot 0, */
    RBI_TABLE_FOLLOW = 6, /* and each: the lower ranks */
    RBI_TABLE_DONE = 7,
};

/** A member with a weight. Sorted by index, so that the lower index is the lower id. */
struct rbi_table_candidate {
    uint64_t seed;
    uint32_t weight;
    uint32_t index; /* into the members */
};

/** What became of a member of the old table. */
struct rbi_table_fate {
    struct rbi_table_candidate now; /* index RBI_TABLE_NONE: it owns nothing any more */
    uint64_t seed;                  /* as it was */
    uint32_t weight;
    uint32_t marks;
};

#define RBI_TABLE_LOWERED 1U /* may lose slots */
#define RBI_TABLE_RAISED  2U

struct rbi_table_place {
    uint64_t score;
    uint32_t slot;
    uint32_t reserved;
};

struct rbi_table_walker {
    uint64_t due; /* turn x weight at which it places again */
    uint32_t weight;
    uint32_t at;
    uint32_t skip;
    uint32_t index;
};

/* Each works off the phases that are its own, up to the budget, and moves on to the next phase.
 * They return what they used of it. */
uint32_t rbi_table_rank_step(struct rbi_table_build *build, uint32_t budget);
uint32_t rbi_table_strict_step(struct rbi_table_build *build, uint32_t budget);
uint32_t rbi_table_maglev_step(struct rbi_table_build *build, uint32_t budget);

/** Compares the members with those of the old table, drops it where it does not help. */
void rbi_table_rank_begin(struct rbi_table_build *build);
/** @param scratch  what is left of it */
void rbi_table_strict_begin(struct rbi_table_build *build, unsigned char *scratch);
void rbi_table_maglev_begin(struct rbi_table_build *build, unsigned char *scratch);
size_t rbi_table_strict_bytes(const struct rbi_table_shape *shape, unsigned member_count);

#endif
