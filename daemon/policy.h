/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_POLICY_H
#define RINGBUS_DAEMON_POLICY_H
/*
 * daemon/policy.h - which policy holds for a cluster.
 */
#include "bus/policy.h"

struct rbi_cluster;
struct rbi_daemon;

/** Lent until the configuration changes. Never NULL; sealed. */
const struct rbi_policy *rbi_daemon_policy(struct rbi_daemon *daemon,
                                           const struct rbi_cluster *cluster);
/** Fingerprint of the defaults, which are not published: every process has them. */
uint64_t rbi_policy_default_fingerprint(void);

#endif
