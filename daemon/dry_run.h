/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_DRY_RUN_H
#define RINGBUS_DAEMON_DRY_RUN_H
/*
 * daemon/dry_run.h - what rules that are run dry would have done, summed over the callers of the
 * host: what callers tell (DRY_RUN) of rules that there are. A rule that is not run dry any more
 * is forgotten with its count.
 */
#include "bus/dry_run.h"
#include "bus/wire.h"
#include "daemon/list.h"

struct rbi_daemon;

/** One rule of one cluster. */
struct rbi_dry_sum {
    struct rbi_list in_desk;
    uint64_t number; /* grows along the list */
    uint64_t cluster;
    uint32_t kind; /* enum rbi_dry_kind */
    uint64_t count;
    struct rbi_text path;
    struct rbi_text rule;
};

struct rbi_dry_desk {
    struct rbi_list sums;
    uint64_t next_number;
};

void rbi_dry_desk_init(struct rbi_dry_desk *desk);
void rbi_dry_desk_deinit(struct rbi_dry_desk *desk);
/** The configuration has changed. */
void rbi_dry_desk_update(struct rbi_daemon *daemon);

#endif
