/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_LOOPS_H
#define RINGBUS_TESTS_SUPPORT_LOOPS_H
/*
 * Runs a test against the daemon twice: on io_uring and on epoll. The test gets the
 * name of the loop as its state and starts the daemon itself, with loops_up().
 */
#include "support/cluster.h"
#include "support/test.h"

/** The one daemon of a test; taken down after it. */
extern struct cluster loops_cluster;

/**
 * Starts the daemon.
 * @param daemon_keys  further keys of "daemon:", as "log_level: debug, ...", or ""
 * @param rest         further top-level YAML, or ""
 */
int loops_up(void **state, const char *daemon_keys, const char *rest);
/** Only makes the directory and the configuration. */
int loops_make(void **state, const char *daemon_keys, const char *rest);
/** Descriptors that the daemon holds when nobody is connected; it must be so. -1 on failure */
int loops_idle_fds(void);
int loops_setup(void **state);
int loops_teardown(void **state);

#define LOOPS_TEST(test, loop)                                                                     \
    {                                                                                              \
#test " on " loop, test, loops_setup, loops_teardown, (void *)(uintptr_t)loop              \
    }
#define LOOPS_BOTH(test) LOOPS_TEST(test, "uring"), LOOPS_TEST(test, "epoll")

#endif
