/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_TABLE_H
#define RINGBUS_BUS_TABLE_H
/*
 * bus/table.h - slot tables: which members own a slot of the key space, by rank. A pure function
 * of the shape and the members, sorted by instance: no history, no order of arrival, integers
 * only. So whoever builds one gets the same bytes, and its fingerprint names it everywhere.
 *
 *   HRW     rendezvous as in bus/hrw.h, up to three owners a slot. A change of members moves
 *           only keys to or from those that changed. A table is brought up to date from its
 *           predecessor at the cost of what changed; the result is that of a build from nothing.
 *           Strict: nobody owns more than a bound over its share (table_strict.c).
 *   MAGLEV  the most even one, at the price that a change moves a few keys of others.
 *
 * Builds are cut into steps of bounded work, so that who has other things to do can do them in
 * between. Nothing here allocates: the caller gives the memory, and is told how much.
 */
#include "bus/hrw.h"

#define RBI_TABLE_NONE      UINT16_MAX
#define RBI_TABLE_RANKS_MAX 3U
#define RBI_TABLE_SLOTS_MIN 1024U
#define RBI_TABLE_SLOTS_MAX 262144U
/* Where the configuration does not say. Not by the number of members: with another number of slots
 * nearly every key would change hands when the seventeenth comes. */
#define RBI_TABLE_SLOTS_LARGE  65536U
#define RBI_TABLE_SLOTS_MAGLEV 65537U /* prime, and nothing else */
#define RBI_TABLE_STRICT_MAX   1000U
#define RBI_TABLE_MEMBERS_MAX  RBI_HRW_MEMBERS_MAX

/** One of those that slots are dealt to. Sorted by instance, each instance once. */
struct rbi_table_member {
    int32_t instance;
    uint32_t weight; /* 0 owns nothing; any other value counts against those of the others */
};

enum rbi_table_kind { RBI_TABLE_HRW = 0, RBI_TABLE_MAGLEV = 1 };

struct rbi_table_shape {
    uint32_t kind;   /* enum rbi_table_kind */
    uint32_t slots;  /* HRW: power of two in RBI_TABLE_SLOTS_MIN to _MAX; MAGLEV: _MAGLEV */
    uint32_t ranks;  /* 1 to RBI_TABLE_RANKS_MAX */
    uint32_t strict; /* HRW: percent over its share that nobody's rank 1 exceeds; 0: off */
};

/** A finished table. Borrows its two arrays. */
struct rbi_table {
    struct rbi_table_shape shape;
    const struct rbi_table_member *members;
    uint32_t member_count;
    /* ranks x slots: members by index, RBI_TABLE_NONE where fewer have a weight. */
    const uint16_t *owners;
};

/** Whether a build would take it. For shapes that come from a file or another process. */
bool rbi_table_shape_valid(const struct rbi_table_shape *shape);
/**
 * Sorts members as tables want them. Of an instance that comes twice the larger weight stays.
 * @return count
 */
unsigned rbi_table_sort(struct rbi_table_member *members, unsigned count);
/**
 * Name of the table that these give: XXH3-64 of shape and members, never 0. Equal here and
 * there means that the owners are equal byte by byte.
 */
uint64_t rbi_table_fingerprint(const struct rbi_table_shape *shape,
                               const struct rbi_table_member *members,
                               unsigned member_count);
/** Bytes of the owners. */
size_t rbi_table_owner_bytes(const struct rbi_table_shape *shape);

/** Slot of a key. No division. Cost: 2 to 3 ns. */
static inline uint32_t rbi_table_slot(uint64_t key, uint32_t slots)
{
    if (RBI_LIKELY((slots & (slots - 1)) == 0)) {
        return rbi_hrw_slot(key, slots);
    }
    return (uint32_t)((rbi_hrw_spread(key) >> 32) * slots >> 32);
}

/** Owner of a slot by rank, 0 the first: index into the members, or RBI_TABLE_NONE. */
static inline uint16_t
rbi_table_owner(const uint16_t *owners, uint32_t slots, unsigned rank, uint32_t slot)
{
    return owners[(size_t)rank * slots + slot];
}

/* ---- building -------------------------------------------------------------------------- */

struct rbi_table_candidate;
struct rbi_table_fate;
struct rbi_table_place;
struct rbi_table_walker;

/** Strict: the slots that each candidate holds, worst first, and the slot that looks for one. */
struct rbi_table_match {
    struct rbi_table_place *places;
    uint32_t *first; /* of each candidate's places; one more at the end */
    uint32_t *held;
    uint32_t seeker; /* a slot that was turned away, or none */
    uint32_t by;     /* the candidate that did, */
    uint64_t score;  /* and its score for the slot */
};

/** Maglev: where each candidate's permutation has come to. */
struct rbi_table_filling {
    struct rbi_table_walker *walkers;
    uint64_t turn;
    uint32_t weight_max;
    uint32_t next; /* walker whose turn it is */
    uint16_t recent[RBI_TABLE_RANKS_MAX];
};

/** Build under way. All of it is the builder's. */
struct rbi_table_build {
    struct rbi_table_shape shape;
    const struct rbi_table_member *members;
    const struct rbi_table *old; /* NULL: from nothing */
    uint16_t *owners;
    uint32_t member_count;
    uint32_t phase;
    uint32_t slot; /* that the phase has come to */
    uint32_t candidate_count;
    uint32_t raised_count;
    struct rbi_table_candidate *candidates; /* members with a weight */
    struct rbi_table_candidate *raised;     /* those of them that may gain slots */
    struct rbi_table_fate *fates;           /* what became of the members of the old table */
    struct rbi_table_match match;
    struct rbi_table_filling filling;
};

/**
 * Bytes of scratch that a build takes.
 * @param old_count  members of the table that it starts from
 */
size_t rbi_table_scratch_bytes(const struct rbi_table_shape *shape,
                               unsigned member_count,
                               unsigned old_count);
/**
 * Starts a build.
 * @param old      table to start from, or NULL. Used when it helps (HRW that is not strict, same
 *                 slots and ranks, most members unchanged); the result is the same either way
 * @param members  borrowed until the build is done; at most RBI_TABLE_MEMBERS_MAX
 * @param owners   rbi_table_owner_bytes(); may be the owners of @p old, which are no table then
 *                 until the build is done
 * @param scratch  rbi_table_scratch_bytes(), aligned to 16; free again when the build is done
 */
void rbi_table_build_begin(struct rbi_table_build *build,
                           const struct rbi_table_shape *shape,
                           const struct rbi_table *old,
                           const struct rbi_table_member *members,
                           unsigned member_count,
                           uint16_t *owners,
                           void *scratch);
/**
 * Goes on with it.
 * @param budget  scores to look at, about 3 ns each; a step takes that and what one slot takes
 * @return whether the table is finished
 */
bool rbi_table_build_step(struct rbi_table_build *build, uint32_t budget);
/** The table, when it is finished. */
struct rbi_table rbi_table_built(const struct rbi_table_build *build);

/* ---- what changed ---------------------------------------------------------------------- */

/** Slots first to last, both inclusive. */
struct rbi_table_range {
    uint32_t first;
    uint32_t last;
};

/**
 * Next run of slots that an instance owns (rank 1) in @p to and not in @p from: what it gained.
 * The other way round: what it lost. Both tables have the same number of slots; NULL is a table
 * in which nobody owns anything.
 * @param cursor  0 at the start; advanced
 * @return false when there is no more
 */
bool rbi_table_gained(const struct rbi_table *from,
                      const struct rbi_table *to,
                      int32_t instance,
                      uint32_t *cursor,
                      struct rbi_table_range *range);

#endif
