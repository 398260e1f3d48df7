/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_CLUSTER_H
#define RINGBUS_TESTS_SUPPORT_CLUSTER_H
/*
 * A real ringbusd in a private directory. Functions return 0 or print what is wrong
 * and return -1, so that they serve in children as well; tests assert on that.
 */
#include "shm/handoff.h"

#include <stdbool.h>
#include <sys/types.h>

struct cluster {
    char folder[64];
    char socket[RBI_SOCKET_PATH_MAX + 1];
    char config[96];
    char log[96];
    pid_t pid;  /* of the daemon; 0 = none runs */
    int status; /* of a daemon that ended instead of becoming ready, as of waitpid() */
    /* Runs in the daemon's process before exec; may set limits, filters, ids. */
    void (*before_exec)(void *context);
    void *context;
};

/** Makes the directory; nothing runs yet. @param config  YAML, may be "" */
int cluster_make(struct cluster *cluster, const char *config);
/** Starts the daemon and waits until it says that it is ready. */
int cluster_start(struct cluster *cluster);
/** Both. */
int cluster_up(struct cluster *cluster, const char *config);
/** SIGTERM; @return exit code of the daemon, or -1 when it did not end by itself within 5 s */
int cluster_stop(struct cluster *cluster);
/** SIGKILL. */
void cluster_kill(struct cluster *cluster);
/** Stops what runs and removes the directory. */
void cluster_down(struct cluster *cluster);
/** Writes the configuration file anew. */
int cluster_configure(struct cluster *cluster, const char *config);

/**
 * Runs ringbusd with arguments (NULL-terminated, without its name).
 * @return its exit code, or -1 when it did not end by itself within 5 s
 */
int cluster_run_daemon(struct cluster *cluster, const char *const *arguments);
/** Waits up to @p timeout_ms for @p text to appear in the daemon's log. */
bool cluster_log_wait(const struct cluster *cluster, const char *text, unsigned timeout_ms);
/** How often @p text is in the log. */
unsigned cluster_log_count(const struct cluster *cluster, const char *text);
/** Open descriptors of the daemon, or -1. */
int cluster_fd_count(const struct cluster *cluster);
/** Waits up to 2 s for that number. @return the number at the end */
int cluster_fd_wait(const struct cluster *cluster, int count);
/** CPU time of the daemon in clock ticks (1/100 s). */
long cluster_cpu_ticks(const struct cluster *cluster);

uint64_t test_now_ms(void);
void test_sleep_ms(unsigned ms);

#endif
