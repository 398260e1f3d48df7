/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_REPORTED_H
#define RINGBUS_BUS_REPORTED_H
/*
 * bus/reported.h - weights by what instances report of their load (balance.reported_weight). An
 * instance says which part of what it can do it does; how much that is others count:
 *
 *   capacity = messages a second / (utilisation + failures a second / messages a second)
 *
 * as gRPC has it (A58, client-side weighted round robin), with a penalty of 1 for each failure. The
 * weight is the capacity, compared with the mean of the cluster. It does not depend on how much an
 * instance is given, so that following it does not swing.
 *
 * What the first 10 s say is ignored: caches are cold. Without a report, or a message, for 3
 * minutes an instance counts as the mean of the others, as it does before it reports at all. Where
 * fewer than two have a capacity there is nothing to compare. Pure; one thread at a time.
 */
#include "shm/base.h"

#define RBI_REPORTED_PERIOD_MS 1000U
#define RBI_REPORTED_BLIND_MS  10000U
#define RBI_REPORTED_EXPIRY_MS 180000U

/** Weights: of the mean, and the least and the most that is told of any. */
#define RBI_REPORTED_MEAN  100U
#define RBI_REPORTED_LEAST 10U
#define RBI_REPORTED_MOST  1000U

/** In thousandths; above 1000 more waits than can be done. */
#define RBI_REPORTED_USE_MAX 100000U

/** What is seen of an instance. Untrusted. */
struct rbi_reported_look {
    uint32_t number;  /* of reports so far, 0: none; another one says that there is a new one */
    uint32_t use;     /* the last one, in thousandths */
    uint64_t handled; /* messages that it has taken so far */
    uint64_t failed;  /* calls to it that failed so far */
};

/** One life of an instance. Zeroed at first. */
struct rbi_reported {
    struct rbi_reported_look last;
    uint64_t turn_ns;  /* when it was looked at last; 0: never */
    uint64_t begin_ns; /* since when it reports without a pause; 0: it does not */
    uint64_t valid_ns; /* when it last had something to say */
    /* Means of the last seconds; a second in which nothing came says nothing, and is left out. */
    uint64_t rate;      /* messages in 1000 s */
    uint64_t fail_rate; /* failures in 1000 s */
    uint64_t use;       /* in 1/1024 of a thousandth */
    uint64_t capacity;  /* messages a second that it could take, in thousandths; 0: unknown */
};

/** Every RBI_REPORTED_PERIOD_MS. @param now_ns  CLOCK_MONOTONIC, never falls */
void rbi_reported_turn(struct rbi_reported *reported,
                       const struct rbi_reported_look *look,
                       uint64_t now_ns);
/** Mean of the capacities that are known; 0: there are fewer than two. */
uint64_t rbi_reported_mean(const uint64_t *capacities, uint32_t count);
/** Weight of one among these; 0: nothing to be compared, and its own weight holds. */
uint32_t rbi_reported_weight(uint64_t capacity, uint64_t mean);
/** Whether a weight is worth telling where @p told was. */
bool rbi_reported_differs(uint32_t told, uint32_t weight);

#endif
