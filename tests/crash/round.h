/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_ROUND_H
#define RINGBUS_TESTS_CRASH_ROUND_H
/*
 * One victim, from its start to its end, and the verdict on what it left behind.
 */
#include "crash/holding.h"
#include "crash/operation.h"

enum round_mode {
    ROUND_KILL = 0,    /* SIGKILL there */
    ROUND_PAUSE = 1,   /* SIGSTOP there until it was given up, then SIGCONT */
    ROUND_STALL = 2,   /* stands there while the partners look, goes on in time, then killed */
    ROUND_RESTART = 3, /* SIGKILL, and its next life begins before anybody was told */
    ROUND_OUTAGE = 4,  /* the daemon instead (outage.h) */
    ROUND_MODES = 5,
};

/** Where a victim is ended: so many system call boundaries, then so many instructions. */
struct round_point {
    unsigned calls;
    unsigned instructions;
};

struct round_result {
    bool reached;   /* the point lies in the operation; false: it was over before */
    unsigned calls; /* steps that were made */
    unsigned instructions;
    bool slept;       /* it stood in a system call that waits */
    bool refused;     /* ptrace is not permitted */
    uint32_t arrived; /* messages of the victim that the first partner has got */
    unsigned in_use;  /* times that the address was refused to the next life */
    uint64_t down_ns; /* from the kill until the last partner knew */
};

/** @param baseline  what is held between two rounds */
void round_run(const struct cluster *cluster,
               const struct operation *operation,
               enum round_mode mode,
               struct round_point at,
               const struct holding *baseline,
               struct round_result *out);
/** Rounds that had to be done again: the machine stood still before the operation began. */
unsigned round_void_count(void);

#endif
