/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_SWEEP_H
#define RINGBUS_TESTS_CRASH_SWEEP_H
/*
 * Rounds at the points of an operation, one after the other, and what is held before and
 * after all of them.
 */
#include "crash/round.h"

struct sweep_options {
    enum round_mode mode;
    unsigned shard; /* of shards: those points whose number leaves it as remainder */
    unsigned shards;
    unsigned points; /* so many over all shards, evenly from where the seed says; 0: all */
    long at;         /* this one point; -1: all */
    uint64_t seed;
};

/** @return enum round_mode; -1 no such mode */
int sweep_mode(const char *name);
/** First point of this shard, of about @p length in all. @param stride  to the next one */
unsigned sweep_first(const struct sweep_options *with, unsigned length, unsigned *stride);
/** Notes what is held; the partners are open, and there was no victim yet. */
void sweep_begin(const struct cluster *at, const struct sweep_options *with);
/** What is held while nothing is under way. */
void sweep_take_quiet(struct holding *out);
/** @retval 0; -1 ptrace is not permitted here */
int sweep_operation(const struct operation *operation);
/** How to repeat the round that failed, on stderr. */
void sweep_say_where(void);

#endif
