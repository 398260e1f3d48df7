/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_HOLDING_H
#define RINGBUS_TESTS_CRASH_HOLDING_H
/*
 * What partners and daemon hold of the bus between two victims: equal before and after a
 * sweep, to the page (support/leak.h allows the allocator its slack, and more must not be).
 */
#include "support/leak.h"

/** Memory of the bus by what it is for. */
enum holding_kind { HOLDING_DIRECTORY, HOLDING_PAGE, HOLDING_POOL, HOLDING_SIDE, HOLDING_KINDS };

struct holding {
    struct leak_process own;
    struct leak_daemon daemon;
    uint64_t own_kib[HOLDING_KINDS]; /* mapped and resident, page by page */
    uint64_t daemon_kib[HOLDING_KINDS];
    uint64_t folder; /* entries beside the daemon's socket */
};

void holding_take(const struct cluster *cluster, struct holding *out);
/** What this process alone has in descriptors and mappings: cheap, for after each round. */
bool holding_own_equal(const struct holding *before);
/** All but resident memory: what was never touched before may be so in the first rounds. */
bool holding_counts_equal(const struct holding *before, const struct holding *after);
/** @param say  prints each figure that differs. @return whether all are equal */
bool holding_equal(const struct holding *before, const struct holding *after, bool say);

#endif
