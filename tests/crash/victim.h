/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_VICTIM_H
#define RINGBUS_TESTS_CRASH_VICTIM_H
/*
 * Victims are forked from a process that has opened nothing: they inherit no descriptor and
 * no mapping of anybody's endpoint, and starting one costs a fraction of an exec.
 */
#include "crash/operation.h"

#include <sys/types.h>

/** What a victim is to do. */
struct victim_order {
    const struct operation *operation;
    uint32_t round;
    uint32_t ping_interval_ms; /* 0: the default */
    bool comes_back;           /* after the operation: waits until it was given up, and returns */
    bool again;                /* the next life of one that was killed: says so and leaves */
};

/** Call before anything is opened. */
void victims_begin(const struct cluster *cluster);
void victims_end(void);
/** Starts one, which waits for victim_go(). @return its pid, a child of somebody else */
pid_t victim_start(const struct victim_order *order);
void victim_go(void);

#endif
