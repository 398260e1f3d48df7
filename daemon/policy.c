/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/policy.h"

#include "daemon/daemon.h"

static const struct rbi_policy *policy_default(void)
{
    static struct rbi_policy defaults; /* one thread */
    if (defaults.fingerprint == 0) {
        rbi_policy_defaults(&defaults);
    }
    return &defaults;
}

uint64_t rbi_policy_default_fingerprint(void)
{
    return policy_default()->fingerprint;
}

const struct rbi_policy *rbi_daemon_policy(struct rbi_daemon *daemon,
                                           const struct rbi_cluster *cluster)
{
    (void)daemon;
    (void)cluster;
    return policy_default();
}
