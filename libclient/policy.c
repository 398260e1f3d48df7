/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/policy.c - the policy of a targeted cluster, as the directory has it. */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * One for the process, made when the library is loaded: handles of several threads read it, and
 * nobody writes it.
 */
static struct rbi_policy defaults;

__attribute__((constructor)) static void make_defaults(void)
{
    rbi_policy_defaults(&defaults);
}

const struct rbi_policy *rbi_cluster_policy(const struct rbi_cluster *cluster)
{
    return cluster->policy != NULL ? cluster->policy : &defaults;
}

uint64_t rbi_cluster_slow_ns(const struct rbi_cluster *cluster)
{
    const uint32_t slow_ms = rbi_cluster_policy(cluster)->shield.slow_ms;
    return slow_ms != 0 ? slow_ms * RBI_NS_PER_MS : RBI_NEVER;
}

static void use_policy(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_policy *policy)
{
    struct rbi_own_subject self;
    free(cluster->policy);
    cluster->policy = policy;
    rbi_degrade_follow(bus, cluster);
    rbi_own_subject_init(&self, rbi_cluster_policy(cluster));
    rbi_route_classes_init(&cluster->classes, rbi_cluster_policy(cluster), &self.subject);
    rbi_own_subject_deinit(&self);
    rbi_caller_changed(cluster);
    rbi_outcomes_follow_all(cluster);
}

int rbi_policy_read(struct ringbus *bus, uint64_t key, struct rbi_policy **out)
{
    uint64_t size = 0;
    struct rbi_policy *policy = malloc(sizeof *policy);
    if (policy == NULL) {
        return RBI_DIRECTORY_BUSY;
    }
    int r = rbi_directory_read_blob(&bus->directory, key, policy, sizeof *policy, &size);
    if (r == RBI_DIRECTORY_ABSENT && bus->held_segment.base != NULL) {
        r = rbi_directory_read_blob(&bus->held_directory, key, policy, sizeof *policy, &size);
    }
    const bool sound = r == RBI_DIRECTORY_OK && size == sizeof *policy &&
                       policy->fingerprint == key && rbi_policy_valid(policy);
    if (!sound) {
        free(policy);
        policy = NULL;
    }
    *out = policy;
    return r == RBI_DIRECTORY_ROOM ? RBI_DIRECTORY_OK : r;
}

bool rbi_cluster_has_policy(const struct rbi_cluster *cluster, uint64_t key)
{
    return key == cluster->policy_key;
}

bool rbi_cluster_take_policy(struct ringbus *bus, struct rbi_cluster *cluster, uint64_t key)
{
    struct rbi_policy *policy = NULL;
    if (rbi_cluster_has_policy(cluster, key)) {
        return true;
    }
    if ((key == 0 || rbi_policy_read(bus, key, &policy) == RBI_DIRECTORY_OK) &&
        rbi_limit_follow(bus, cluster, policy) == 0) {
        rbi_cluster_changed(bus, cluster); /* what was chosen by the one before */
        use_policy(bus, cluster, policy);
        cluster->policy_key = key;
        if (cluster->subset != rbi_cluster_policy(cluster)->balance.subset) {
            rbi_subset_follow(bus, cluster);
        }
        cluster->dispatch_stale |= rbi_hooks_bits(bus, cluster);
        bus->balance_all = bus->balance_all || rbi_hooks_mode(cluster) == RBI_BALANCE_ALL;
        rbi_realm_follow(bus, cluster);
        return true;
    }
    free(policy);
    bus->directory_revision = 0; /* replaced meanwhile: looked at again with the next tick */
    return false;
}

void rbi_cluster_look_policy(struct ringbus *bus, struct rbi_cluster *cluster)
{
    struct rbi_directory_cluster head;
    if (!bus->directory_mapped ||
        rbi_directory_epoch(&bus->directory, cluster->id) == cluster->policy_epoch) {
        return;
    }
    const int r = rbi_directory_read(&bus->directory, cluster->id, &head, NULL, 0);
    if (r == RBI_DIRECTORY_OK || r == RBI_DIRECTORY_ROOM) {
        if (rbi_cluster_take_policy(bus, cluster, head.policy)) {
            cluster->policy_epoch = head.epoch;
        }
    }
}
