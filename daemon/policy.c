/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/policy.h"

#include "daemon/daemon.h"
#include "daemon/log.h"

#include <stdlib.h>
#include <string.h>

const struct rbi_policy *rbi_policy_default(void)
{
    static struct rbi_policy defaults; /* one thread */
    if (defaults.fingerprint == 0) {
        rbi_policy_defaults(&defaults);
    }
    return &defaults;
}

uint64_t rbi_policy_default_fingerprint(void)
{
    return rbi_policy_default()->fingerprint;
}

/** The one copy of a policy: most clusters have the same few. NULL: no memory. */
static const struct rbi_policy *policy_intern(struct rbi_live *live,
                                              const struct rbi_policy *policy)
{
    for (uint32_t i = 0; i < live->policy_count; i++) {
        if (live->policies[i]->fingerprint == policy->fingerprint) {
            return live->policies[i];
        }
    }
    if (live->policy_count == live->policy_capacity) {
        const uint32_t capacity = live->policy_capacity ? live->policy_capacity * 2 : 8;
        struct rbi_policy **policies =
            realloc(live->policies, capacity * sizeof(struct rbi_policy *));
        if (!policies) {
            return NULL;
        }
        live->policies = policies;
        live->policy_capacity = capacity;
    }
    struct rbi_policy *copy = malloc(sizeof(*copy));
    if (copy) {
        *copy = *policy;
        live->policies[live->policy_count++] = copy;
    }
    return copy;
}

const struct rbi_policy *rbi_daemon_policy(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    struct rbi_live *live = &daemon->live;
    if (cluster->policy && cluster->policy_generation == live->generation) {
        return cluster->policy;
    }
    const struct rbi_governance_layers layers = rbi_live_layers(live);
    struct rbi_governance_fault fault;
    struct rbi_policy policy;
    struct rbi_log_text quoted;
    if (!rbi_governance_policy(&layers, cluster->path.bytes, cluster->path.length, &policy,
                               &fault)) {
        rbi_log(RBI_LOG_WARNING, "policy_cut", "cluster=%s why=%s", cluster->path.bytes,
                rbi_log_quote(&quoted, fault.text, strlen(fault.text)));
    }
    const struct rbi_policy *kept = policy_intern(live, &policy);
    if (!kept) {
        rbi_log(RBI_LOG_ERROR, "policy_stale", "cluster=%s error=\"no memory\"",
                cluster->path.bytes);
        return rbi_policy_default();
    }
    cluster->policy = kept;
    cluster->policy_generation = live->generation;
    return kept;
}

void rbi_policies_clear(struct rbi_live *live)
{
    for (uint32_t i = 0; i < live->policy_count; i++) {
        free(live->policies[i]);
    }
    live->policy_count = 0;
}
