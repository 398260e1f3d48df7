/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_FAULTS_NTH_H
#define RINGBUS_TESTS_FAULTS_NTH_H
/*
 * Refuses the N-th system call of a process, once. A tracer of its own holds the process from
 * nth_trace_me() on: at the entry of the call it takes its number away, so that the kernel does
 * nothing, and at the exit puts an error in the place of the result. So every call is met,
 * whichever library makes it, and nothing of the process has to be replaced.
 *
 * What is to be refused stands in memory that all processes of the test share. Calls count
 * while it is armed, and only those that can fail (errors.h), of all threads.
 */
#include <stdatomic.h>
#include <stdbool.h>

struct nth {
    _Atomic bool armed;
    _Atomic unsigned n;     /* the call to refuse, from 1; 0: count only */
    _Atomic unsigned pick;  /* which of its errors */
    _Atomic unsigned calls; /* counted since it was armed */
    _Atomic long call;      /* number of the n-th call, -1: it has not come */
    _Atomic int error;      /* errno that it got; 0: it has not so many errors */
    char from[32];          /* opening this path arms it; "": nothing does */
};

/** Maps one, not armed; for the life of the process. NULL when there is no memory. */
struct nth *nth_new(void);
/** Whether this machine lets a process be traced, and this program knows how. */
bool nth_possible(void);
/**
 * Has a tracer hold the calling process; it goes with the process, and lives on over exec.
 * @retval 0; -1 it is not permitted
 */
int nth_trace_me(struct nth *nth);

/** Nothing has come yet; counting starts with nth_arm(), or at nth->from. */
void nth_set(struct nth *nth, unsigned n, unsigned pick);
void nth_arm(struct nth *nth, unsigned n, unsigned pick);
/** @return whether a call was refused */
bool nth_disarm(struct nth *nth);
/** "sendmsg with ENOMEM, call 7", of what was refused last. @return a static text */
const char *nth_text(const struct nth *nth);

#endif
