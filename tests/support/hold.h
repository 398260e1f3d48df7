/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_HOLD_H
#define RINGBUS_TESTS_SUPPORT_HOLD_H
/*
 * System calls of a daemon that the test holds for as long as it likes, and then lets happen or
 * fail: a disk as slow, or as broken, as it is needed. The kernel asks a thread of the test about
 * each of them (a seccomp filter that notifies), so nothing depends on time, and a daemon can be
 * killed in exactly that call.
 */
#include <pthread.h>
#include <stdbool.h>

#define HOLD_CALLS_MAX 8U
#define HOLD_ORDER_MAX 64U

struct hold {
    long calls[HOLD_CALLS_MAX]; /* SYS_*, which are asked about; of write not those of 8 bytes */
    unsigned call_count;
    int door;     /* where the daemon's process hands it over before exec */
    int listener; /* of the daemon that runs; the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool ending;
    bool armed;
    unsigned at;                /* the call to hold, from 1; 0: none */
    unsigned count;             /* of calls since it was armed */
    long order[HOLD_ORDER_MAX]; /* which they were */
    bool held;
    bool released;
    int error;
};

/** Begins to answer; all calls pass until hold_arm(). @retval 0; -1 the kernel cannot do that */
int hold_begin(struct hold *hold, const long *calls, unsigned count);
/** No daemon runs any more. */
void hold_end(struct hold *hold);
/** For cluster.before_exec, with the hold as its context. */
void hold_install(void *context);
/** Counts from now on, and holds call number @p at. */
void hold_arm(struct hold *hold, unsigned at);
/** Whether that call is held, within the time. */
bool hold_wait(struct hold *hold, unsigned timeout_ms);
/** Ends the call. @param error  errno that it gets, 0: the kernel does it */
void hold_release(struct hold *hold, int error);
/** Calls since it was armed. */
unsigned hold_count(struct hold *hold);

#endif
