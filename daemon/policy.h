/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_POLICY_H
#define RINGBUS_DAEMON_POLICY_H
/*
 * daemon/policy.h - which policy holds for a cluster.
 */
#include "bus/policy.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_live;

/** Lent until the configuration changes. Never NULL; sealed. */
const struct rbi_policy *rbi_daemon_policy(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** The defaults, which are not published: every process has them. */
const struct rbi_policy *rbi_policy_default(void);
/** Their fingerprint. */
uint64_t rbi_policy_default_fingerprint(void);
/** Forgets all that were lent. */
void rbi_policies_clear(struct rbi_live *live);

#endif
