/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SOAK_GOVERN_H
#define RINGBUS_TESTS_SOAK_GOVERN_H
/*
 * soak/govern.h - the operator of the soak: gives instances other weights, takes them out of
 * dispatch, changes limits, rights and nodes with ringbusctl, one command at a time.
 */
#include "ledger.h"
#include "support/cluster.h"

#define SOAK_CLUSTER "/soak/area/platform/world/group/node"

/* Methods of messages with attributes, by what the policy says of them. */
#define SOAK_METHOD_PLAIN   1U
#define SOAK_METHOD_PACED   10U /* limited for each caller */
#define SOAK_METHOD_EACH    20U /* for each instance */
#define SOAK_METHOD_METERED 30U /* by who receives it */
#define SOAK_METHOD_SHARED  40U /* over all callers */
#define SOAK_METHOD_MOCKED  50U /* the same, and what is refused gets a mock */
#define SOAK_METHOD_FRAIL   60U /* some instances fail nearly always */
#define SOAK_MOCK           "soak"

struct soak_edits {
    unsigned done;
    unsigned failed; /* the daemon was away, stopped, or short of something */
    unsigned killed;
};

/** What the soak's daemon is configured to do with the cluster. */
extern const char soak_policy[];

/**
 * Makes the first node, after which the daemon holds the file of nodes open.
 * @param cluster  lent until the end
 */
void soak_govern_init(struct soak_ledger *ledger, const struct cluster *cluster, uint64_t seed);
/** Begins the next command when the last one has ended and its time has come. */
void soak_govern_step(uint64_t now_ms);
/** Takes all back that keeps processes apart. Waits for the daemon, which must run. */
void soak_govern_undo(void);
/** Ends what still runs. */
void soak_govern_stop(void);
struct soak_edits soak_govern_edits(void);

#endif
