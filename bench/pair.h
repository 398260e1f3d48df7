/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_PAIR_H
#define RINGBUS_BENCH_PAIR_H
/*
 * bench/pair.h - a pair of pinned processes that runs one contender and what it is compared
 * with, block by block, on the parent's order. A pair that has nothing to do sleeps.
 *
 * A block is a few milliseconds: the two-line round trip (which tells where the two cores
 * lie), then the base, then the contender, in the same two processes. A pair that stands still
 * although it could run is killed and counts as failed.
 */
#include "bench/bench.h"

enum bench_kind {
    BENCH_KIND_TRIPS = 1,
    BENCH_KIND_STREAM = 2,
    BENCH_KIND_APART = 3, /**< the halves of a stream one after the other: CPU time a side */
};

#define BENCH_SLOTS 3U /**< the contender and what it is compared with */

/** One contender's part of a block. */
struct bench_part {
    unsigned slot;
    enum bench_kind kind;
    uint64_t size;
    uint64_t count;  /**< 0: no such part */
    uint64_t gap_ns; /**< before each round trip */
    bool timed;      /**< each round trip apart, into the histogram */
    bool whole;      /**< compare every byte */
};

struct bench_outcome {
    double limit_ns;   /**< two-line round trip; 0 where both sides share a core */
    double ns[2];      /**< a message, of each part */
    double side_ns[2]; /**< last part, APART: a message at each side */
    double cpu_ns[2];  /**< last part: CPU time a message at each side */
    uint64_t errors;
    bool disturbed; /**< the scheduler took a polling side off its core */
};

struct bench_pair_page;

struct bench_pair {
    struct bench_place places[BENCH_SLOTS];
    unsigned slot_count;
    int cpu[2];
    bool pin_first; /**< before opening: a service that was started on one core */
    bool failed;
    char why[160];
    pid_t child[2];
    struct bench_pair_page *page;
};

/** Sets up slot 0 and the bases; places[].contender, mode, size_max are given. 0; -1 why is set. */
int bench_pair_start(struct bench_pair *pair);
/** Runs one block. 0; -1 the pair failed, why is set. */
int bench_pair_block(struct bench_pair *pair,
                     const struct bench_part *base,
                     const struct bench_part *part,
                     struct bench_outcome *out);
/** Of the timed round trips near (0, and where both share a core) or far (1). */
const uint32_t *bench_pair_histogram(const struct bench_pair *pair, unsigned regime);
void bench_pair_clear_histogram(struct bench_pair *pair);
/** Ends both sides; processes and helpers are gone afterwards. -1: they did not end well. */
int bench_pair_stop(struct bench_pair *pair);

#endif
