/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DRY_H
#define RINGBUS_LIBCLIENT_DRY_H
/*
 * libclient/dry.h - what rules that are run dry would have done: counted here for each rule, and
 * told to the daemon once a second, which sums it over the host. Costs nothing where no rule is.
 */
#include "bus/dry_run.h"

struct rbi_choice;
struct rbi_cluster;
struct rbi_end;
struct ringbus;

/** Rules of all clusters together that one handle counts apart; what is beyond is not counted. */
#define RBI_DRY_MAX 128U

/** One rule of one cluster. */
struct rbi_dry_count {
    uint64_t cluster;
    uint32_t kind; /* enum rbi_dry_kind */
    uint32_t reserved;
    uint64_t news; /* messages since it was told */
    char id[RBI_LABEL_MAX + 1];
};

struct rbi_dry_counts {
    struct rbi_dry_count *all; /* NULL: none yet */
    unsigned count;
    uint64_t due_ns; /* when the daemon is told; 0: nothing is new */
};

void rbi_dry_add(struct ringbus *bus, uint64_t cluster, uint32_t kind, const char *id);
/** A message was given to this one: a stage that is run dry may have taken it out. */
void rbi_dry_picked(struct ringbus *bus,
                    const struct rbi_cluster *cluster,
                    const struct rbi_choice *choice,
                    const struct rbi_end *end);
/** Tells the daemon what is due. @return when to look again */
uint64_t rbi_dry_tick(struct ringbus *bus, uint64_t now_ns);
/** Tells it all: the end comes. */
void rbi_dry_flush(struct ringbus *bus);
void rbi_dry_deinit(struct rbi_dry_counts *counts);

#endif
