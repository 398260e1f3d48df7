/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_H
#define RINGBUS_BUS_BALANCE_H
/*
 * bus/balance.h - all ways to choose one of a cluster's instances behind one call, as the policy
 * says: with a key by a slot table (table.h), maybe bounded (balance_bound.h); without by least
 * load (balance_least.h), in turn, by weight in turn (balance_turn.h), or at random
 * (balance_alias.h). ALL and CUSTOM are the caller's own.
 *
 * Instances are indices into one list, sorted by instance, of all that the view knows: members
 * (for messages without a key) and table (with one) count them alike, and who is out has the
 * weight 0 in either. One caller, one thread; nothing allocates.
 */
#include "bus/balance_bound.h"
#include "bus/balance_turn.h"
#include "bus/policy.h"

struct rbi_balance {
    /* What a pick needs of the first: with a key one line, and the table's. */
    const uint16_t *owners; /* NULL: no table yet, or none is used */
    struct rbi_table_shape shape;
    const uint64_t *limits; /* NULL: load is not bounded */
    uint32_t keyed;         /* enum rbi_balance_mode of messages with a key, */
    uint32_t keyless;       /* and of the others */
    uint32_t sticky_ms;
    uint16_t choice; /* whom a sticky caller stays with; RBI_PICK_NONE: nobody */
    uint64_t choice_until_ns;
    struct rbi_turn turn;
    struct rbi_random random;
    struct rbi_alias alias;
    struct rbi_least least;
    uint64_t *bound; /* where limits are kept */
    uint32_t bound_percent;
    uint32_t member_count;
};

/**
 * How the policy lets messages be balanced: HASH to CUSTOM, never AUTO; without a key neither
 * HASH nor MAGLEV.
 */
enum rbi_balance_mode rbi_balance_mode_of(const struct rbi_balance_policy *policy, bool keyed);
/**
 * Shape of the table that the policy asks for. Lower ranks only where they are asked: the first one
 * is the same either way.
 * @return false when messages with a key are not balanced by a table
 */
bool rbi_balance_shape(const struct rbi_balance_policy *policy, struct rbi_table_shape *shape);

/**
 * Before all else: a caller's random numbers, and its place in the round.
 * @param who   tells callers of one host apart, such as the instance
 * @param when  tells lives of it apart, such as a clock
 */
void rbi_balance_init(struct rbi_balance *balance, uint64_t who, uint64_t when);

/** What a build will take: to be asked first, so that the caller can bring the memory. */
struct rbi_balance_plan {
    const struct rbi_balance_policy *policy;
    struct rbi_least_member *members;
    uint32_t *weights;
    unsigned count;
    uint32_t turns;
    size_t bytes;         /* to be kept, aligned to 16 */
    size_t scratch_bytes; /* free again after the build, aligned to 16 */
};

/**
 * @param members  borrowed; the caller keeps unread up to date. At most RBI_PICK_NONE
 * @param weights  @p count entries, written; needed until the build
 */
void rbi_balance_plan(struct rbi_balance_plan *plan,
                      const struct rbi_balance_policy *policy,
                      struct rbi_least_member *members,
                      unsigned count,
                      uint32_t *weights);
/**
 * Takes over policy and members. Turns go on where they were; the table and a sticky choice are
 * forgotten: rbi_balance_set_table(), rbi_balance_stay().
 * @param memory  borrowed; may be that of the build before
 */
void rbi_balance_build(struct rbi_balance *balance,
                       const struct rbi_balance_plan *plan,
                       void *memory,
                       void *scratch);
/** The table for messages with a key; its owners are borrowed. NULL: none, and none is picked. */
void rbi_balance_set_table(struct rbi_balance *balance, const struct rbi_table *table);
/** Looks at the loads anew for the bound; now and then, such as each millisecond. */
void rbi_balance_refresh(struct rbi_balance *balance);
/** After a build: who was the sticky choice has this index now, and stays for its time. */
void rbi_balance_stay(struct rbi_balance *balance, uint16_t choice);
/** The cold part of a pick: a choice that is to be kept. */
uint16_t rbi_balance_pick_sticky(struct rbi_balance *balance, bool fresh, uint64_t now_ns);

static inline uint16_t rbi_balance_pick_keyless(struct rbi_balance *balance, bool fresh)
{
    switch (balance->keyless) {
    case RBI_BALANCE_LEAST:
        return rbi_least_pick(&balance->least, fresh);
    case RBI_BALANCE_RR:
    case RBI_BALANCE_WEIGHTED:
        return rbi_turn_pick(&balance->turn);
    case RBI_BALANCE_RANDOM:
        return rbi_alias_pick(&balance->alias, &balance->random);
    default:
        return RBI_PICK_NONE;
    }
}

/** With a key, when the policy balances those by a table. */
static inline uint16_t rbi_balance_pick_keyed(const struct rbi_balance *balance, uint64_t key)
{
    if (RBI_UNLIKELY(balance->owners == NULL)) {
        return RBI_PICK_NONE;
    }
    const uint32_t slot = rbi_table_slot(key, balance->shape.slots);
    if (RBI_UNLIKELY(balance->limits != NULL)) {
        return rbi_bound_pick(balance->owners, &balance->shape, slot, balance->least.members,
                              balance->limits);
    }
    return balance->owners[slot];
}

/**
 * Chooses.
 * @param fresh   as in rbi_least_pick()
 * @param now_ns  looked at with a sticky policy only
 * @return index of a member; RBI_PICK_NONE when there is none, and for ALL and CUSTOM.
 * Cost: at most 10 ns, up to 512 members
 */
static inline uint16_t
rbi_balance_pick(struct rbi_balance *balance, bool keyed, uint64_t key, bool fresh, uint64_t now_ns)
{
    if (keyed && (balance->keyed == RBI_BALANCE_HASH || balance->keyed == RBI_BALANCE_MAGLEV)) {
        return rbi_balance_pick_keyed(balance, key);
    }
    if (RBI_UNLIKELY(balance->sticky_ms != 0)) {
        return rbi_balance_pick_sticky(balance, fresh, now_ns);
    }
    return rbi_balance_pick_keyless(balance, fresh);
}

#endif
