/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SHIELD_WINDOW_H
#define RINGBUS_BUS_SHIELD_WINDOW_H
/*
 * bus/shield_window.h - how the calls to one instance ended in the last 10 s and 60 s, in two
 * rings of buckets. The daemon sweeps every step and puts what came since into the newest bucket.
 *
 * The fine ring holds a bucket a step, and answers windows up to RBI_WINDOW_FINE steps exactly;
 * the coarse one RBI_WINDOW_PER_COARSE steps a bucket, so that a longer window covers up to one
 * such bucket less than it says. One ring of 240 steps would be exact and four times as large.
 */
#include "shm/base.h"

#define RBI_WINDOW_STEP_MS    250U
#define RBI_WINDOW_FINE       40U /* buckets: 10 s */
#define RBI_WINDOW_PER_COARSE 10U /* steps: 2.5 s */
#define RBI_WINDOW_COARSE     24U /* buckets: 60 s */
#define RBI_WINDOW_FINE_MS    (RBI_WINDOW_FINE * RBI_WINDOW_STEP_MS)
#define RBI_WINDOW_MAX_MS     (RBI_WINDOW_COARSE * RBI_WINDOW_PER_COARSE * RBI_WINDOW_STEP_MS)

/**
 * Calls that ended; each is in one of @c ok and @c fail, and may be slow as well. And beside them
 * those that could not be made.
 */
struct rbi_tally {
    uint32_t ok;
    uint32_t fail;
    uint32_t slow;
    uint32_t local;
};

struct rbi_outcome_window {
    uint64_t step; /* of the newest bucket */
    struct rbi_tally fine[RBI_WINDOW_FINE];
    struct rbi_tally coarse[RBI_WINDOW_COARSE];
};

/** Adds with saturation: counts come from other processes. */
void rbi_tally_add(struct rbi_tally *sum, const struct rbi_tally *more);
static inline uint64_t rbi_tally_calls(const struct rbi_tally *tally)
{
    return (uint64_t)tally->ok + tally->fail;
}

/** With those that could not be made. */
static inline uint64_t rbi_tally_attempts(const struct rbi_tally *tally)
{
    return rbi_tally_calls(tally) + tally->local;
}

void rbi_window_clear(struct rbi_outcome_window *window, uint64_t step);
/** Counts in the bucket of @p step; a step before the newest counts as the newest. */
void rbi_window_add(struct rbi_outcome_window *window,
                    uint64_t step,
                    const struct rbi_tally *tally);
/**
 * What ended in the last @p ms, the step @p step counted as begun.
 * @param ms  rounded up to whole buckets; 1 to RBI_WINDOW_MAX_MS, more is as the most
 */
struct rbi_tally rbi_window_sum(struct rbi_outcome_window *window, uint64_t step, uint32_t ms);

#endif
