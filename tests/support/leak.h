/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_LEAK_H
#define RINGBUS_TESTS_SUPPORT_LEAK_H
/*
 * The leak oracle: what a process, the daemon and the file system held before a loop, to be
 * compared with what they hold after it. Take the first reading after a warm-up, so that what
 * is taken once and kept on purpose (tables that grow, the allocator's arenas) is in it.
 *
 * Descriptors and mappings of memfds are compared exactly. Other mappings and resident memory
 * belong to the allocator as well, which gives back when it likes: they get a slack.
 *
 * Nothing here asserts, so that it serves in children, too.
 */
#include "support/cluster.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Allocator noise that a loop of any length may leave. */
#define LEAK_SLACK_KIB 512U

/** What a process holds. */
struct leak_process {
    pid_t pid;
    unsigned fds;
    unsigned memfd_maps; /* mappings of our memfds */
    unsigned maps;       /* all lines of its maps */
    uint64_t rss_kib;
    uint64_t shmem_kib; /* its share of resident shared memory */
};

/** Reads it; @p pid 0 is the caller. @retval 0; -1 it cannot be read (said on stderr) */
int leak_process_read(pid_t pid, struct leak_process *out);
/** Whether the process holds no more than it did, now. For RUN_UNTIL. */
bool leak_process_is_back(const struct leak_process *before, uint64_t slack_kib);
/** Waits for that; says what is too much when the time is over. */
bool leak_process_wait(const struct leak_process *before, uint64_t slack_kib, unsigned timeout_ms);
/** What it holds now beside what it did, on stderr. */
void leak_process_print(const struct leak_process *before);

/** What the daemon holds and counts. Asking connects to it, which is counted each time alike. */
struct leak_daemon {
    struct leak_process process;
    uint64_t connections;
    uint64_t endpoints;
    uint64_t links;
    uint64_t watches;
};

int leak_daemon_read(const struct cluster *cluster, struct leak_daemon *out);
bool leak_daemon_wait(const struct cluster *cluster,
                      const struct leak_daemon *before,
                      uint64_t slack_kib,
                      unsigned timeout_ms);

/** Entries of ours in the places where traces used to be left. */
struct leak_traces {
    unsigned dev_shm; /* all entries: nothing of ours has a name, so a new one is suspicious */
    unsigned run;     /* ringbus* */
    unsigned tmp;     /* ringbus* but for ringbus-*: the private directories of tests */
};

int leak_traces_read(struct leak_traces *out);
/** Whether there are no more than before; says so if not. */
bool leak_traces_same(const struct leak_traces *before);

#endif
