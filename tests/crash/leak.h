/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_LEAK_H
#define RINGBUS_TESTS_CRASH_LEAK_H
/*
 * What partners and daemon hold: equal before and after a sweep, not small (scenarios.md 0.7).
 */
#include "support/cluster.h"

#include <stdbool.h>
#include <stdint.h>

struct leak {
    uint64_t own_fds;
    uint64_t own_maps;  /* of ringbus memory */
    uint64_t own_shmem; /* KiB */
    uint64_t daemon_fds;
    uint64_t daemon_maps;
    uint64_t daemon_shmem;
    uint64_t connections;
    uint64_t endpoints;
    uint64_t links;
    uint64_t watches;
    uint64_t shm_entries;    /* of /dev/shm that are ours by name */
    uint64_t folder_entries; /* beside the daemon's socket */
};

void leak_take(const struct cluster *cluster, struct leak *out);
/** What this process alone holds in descriptors and mappings: cheap. */
bool leak_own_equal(const struct leak *before);
/** Prints each figure that differs. @return whether all are equal */
bool leak_equal(const struct leak *before, const struct leak *after, bool say);

#endif
