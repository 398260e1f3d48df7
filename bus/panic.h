/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_PANIC_H
#define RINGBUS_BUS_PANIC_H
/*
 * bus/panic.h - a cluster of which too little is healthy: to spare the few that are would
 * only drown them, so shields no longer count. A state of the cluster, beside the health of its
 * instances, which stays as it was measured. Death, draining, rights and sets count as ever.
 */
#include "bus/policy.h"

struct rbi_panic {
    bool on;
};

enum rbi_panic_change { RBI_PANIC_SAME = 0, RBI_PANIC_ENTERED = 1, RBI_PANIC_LEFT = 2 };

/**
 * Enters below policy->enter percent of healthy weight, leaves from policy->leave (not below
 * enter) on. enter 0 never panics; neither does a cluster without weight, where nobody is to ask.
 * @param healthy  weight, at most @p total
 */
enum rbi_panic_change rbi_panic_step(struct rbi_panic *panic,
                                     const struct rbi_panic_policy *policy,
                                     uint64_t healthy,
                                     uint64_t total);

#endif
