/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_OUTCOME_H
#define RINGBUS_SHM_OUTCOME_H
/*
 * shm/outcome.h - the slots of an outcomes segment (shm/layout.h): how the owner writes them, and
 * how the daemon reads them.
 *
 *   R1 -> A1   whoever sees the new name of a slot sees what the counters had reached under the
 *              old one: nothing of another's is taken for its own. What is counted under the
 *              new name while the reader still has the old one goes to whoever had the slot,
 *              which nobody calls any more.
 */
#include "shm/atomic.h"
#include "shm/layout.h"

/** A slot without its times, copied. Untrusted: any value is possible. */
struct rbi_outcome_copy {
    uint64_t cluster;
    uint64_t who;
    uint64_t ok;
    uint64_t failed;
    uint64_t lost;
    uint32_t slow;
    uint32_t local;
    uint64_t latency_ns;
    uint64_t in_a_row;
};

/** Name of a life in its slot; never 0 for one that the daemon has named. */
static inline uint64_t rbi_outcome_who(int32_t instance, uint32_t incarnation)
{
    return (uint64_t)incarnation << 32 | (uint32_t)instance;
}

/** Bytes of a segment with that many slots; a multiple of RBI_PAGE. */
static inline uint64_t rbi_outcomes_bytes(uint32_t slots)
{
    const uint64_t used =
        sizeof(struct rbi_outcomes) + (uint64_t)slots * sizeof(struct rbi_outcome);
    return (used + RBI_PAGE - 1) / RBI_PAGE * RBI_PAGE;
}

static inline struct rbi_outcome *rbi_outcomes_slots(void *base)
{
    return (struct rbi_outcome *)(void *)((unsigned char *)base + sizeof(struct rbi_outcomes));
}

static inline const struct rbi_outcome *rbi_outcomes_slots_seen(const void *base)
{
    return (const struct rbi_outcome *)(const void *)((const unsigned char *)base +
                                                      sizeof(struct rbi_outcomes));
}

/* ---- the owner ------------------------------------------------------------------------- */

/**
 * Forgets how long the calls of a slot took: before it gets another name, under which whoever sums
 * them begins with nothing.
 */
static inline void rbi_outcome_clear(struct rbi_outcome *slot)
{
    for (uint32_t i = 0; i < RBI_LATENCY_BUCKETS; i++) {
        rbi_store32_rlx(&slot->latency[i], 0);
    }
}

/** Gives a slot to another life, or with @p who 0 to nobody. */
static inline void rbi_outcome_name(struct rbi_outcome *slot, uint64_t cluster, uint64_t who)
{
    rbi_store_rlx(&slot->in_a_row, 0);
    rbi_store_rlx(&slot->cluster, cluster);
    /* R1: pairs with A1. */
    rbi_store_rel(&slot->who, who);
}

/** Adds to a word that only we write. */
static inline void rbi_outcome_add(rbi_au64 *word, uint64_t n)
{
    rbi_store_rlx(word, rbi_load_rlx(word) + n);
}

/** The same with one that may wrap around. */
static inline void rbi_outcome_add32(rbi_au32 *word, uint32_t n)
{
    rbi_store32_rlx(word, rbi_load32_rlx(word) + n);
}

/** Counts one call by the time that it took. @param bucket  below RBI_LATENCY_BUCKETS */
static inline void rbi_outcome_timed(struct rbi_outcome *slot, uint32_t bucket)
{
    rbi_outcome_add32(&slot->latency[bucket], 1);
}

/* ---- the reader ------------------------------------------------------------------------ */

static inline void rbi_outcome_read(const struct rbi_outcome *slot, struct rbi_outcome_copy *out)
{
    /* A1: pairs with R1. */
    out->who = rbi_load_acq(&slot->who);
    out->cluster = rbi_load_rlx(&slot->cluster);
    out->ok = rbi_load_rlx(&slot->ok);
    out->failed = rbi_load_rlx(&slot->failed);
    out->lost = rbi_load_rlx(&slot->lost);
    out->slow = rbi_load32_rlx(&slot->slow);
    out->local = rbi_load32_rlx(&slot->local);
    out->latency_ns = rbi_load_rlx(&slot->latency_ns);
    out->in_a_row = rbi_load_rlx(&slot->in_a_row);
}

#endif
