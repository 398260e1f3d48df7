/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_GOVERNANCE_H
#define RINGBUS_DAEMON_GOVERNANCE_H
/*
 * daemon/governance.h - what holds for clusters, instances and rights while the daemon runs: the
 * file, which a push never changes, below what was applied, below single edits. A change takes
 * effect as a whole, and only for those whom it is about: clusters whose policy is another one,
 * instances whose labels are, and the links whose rights are gone.
 */
#include "bus/governance.h"
#include "bus/wire.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_endpoint;

/** The lowest first. */
enum rbi_live_layer { RBI_LIVE_FILE = 0, RBI_LIVE_APPLIED = 1, RBI_LIVE_EDITS = 2 };
#define RBI_LIVE_LAYERS 3U

struct rbi_live {
    struct rbi_governance layers[RBI_LIVE_LAYERS];
    uint64_t generation; /* grows with each change, from 1 on */
    /* The policies in use, each once. */
    struct rbi_policy **policies;
    uint32_t policy_count;
    uint32_t policy_capacity;
};

/** Takes @p file, which becomes empty, before anybody is there. It may be NULL. */
void rbi_live_init(struct rbi_daemon *daemon, struct rbi_governance *file);
void rbi_live_deinit(struct rbi_live *live);
/** All layers, lent until the next change. */
struct rbi_governance_layers rbi_live_layers(const struct rbi_live *live);
/** How many a change is about. */
struct rbi_live_change {
    uint64_t clusters;  /* that have another policy */
    uint64_t instances; /* that are seen otherwise */
};

/** Takes @p file, which becomes empty, in the place of the one before, and makes it hold. */
void rbi_live_set_file(struct rbi_daemon *daemon, struct rbi_governance *file);
/** The same with both layers above it. */
struct rbi_live_change rbi_live_set(struct rbi_daemon *daemon,
                                    struct rbi_governance *applied,
                                    struct rbi_governance *edits);
/**
 * Whether a text may be applied over the file: of lists with ids it changes no item of that
 * (features B11).
 * @param why  written when not: both places, and the way out
 */
bool rbi_live_try_push(const struct rbi_daemon *daemon,
                       const struct rbi_governance *pushed,
                       struct rbi_text *why);
/**
 * What would change if these were the layers above the file, and whether they may be.
 * @param why  written when not: what does not fit together
 */
bool rbi_live_try(struct rbi_daemon *daemon,
                  const struct rbi_governance *applied,
                  const struct rbi_governance *edits,
                  struct rbi_live_change *change,
                  struct rbi_text *why);

/**
 * What others see of an endpoint's weight, set, location and tags, from what it says of itself and
 * what the operator says.
 * @return whether that is another than before; the caller publishes it
 */
bool rbi_live_label(struct rbi_endpoint *endpoint);

#endif
