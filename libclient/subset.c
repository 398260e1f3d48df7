/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/subset.c - a caller that links to some instances of many only (balance.subset,
 * bus/balance_subset.h). Whom, is said where the choice of most messages is made; links follow
 * with the next tick, since a message must not wait for them, nor end one.
 */
#include "bus/balance_subset.h"
#include "libclient/internal.h"

#include <stdlib.h>

/* The same for all lives of a named instance; others are told apart by their number. */
static uint64_t self_of(const struct ringbus *bus)
{
    return bus->self.cluster + UINT64_C(0x9e3779b97f4a7c15) * (uint32_t)bus->self.instance;
}

/* Out for a reason that the message has not: it is linked to as ever. */
static bool is_apart(const struct rbi_route_entry *entry)
{
    return entry->stage == RBI_ROUTE_TAG || entry->stage == RBI_ROUTE_RULES;
}

static void leave_out(struct rbi_cluster *cluster, int32_t instance, bool out)
{
    struct rbi_member *member = rbi_member_find(cluster, instance);
    if (member != NULL) {
        member->left_out = out;
    }
}

bool rbi_subset_choose_of(const struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_route_entry *entries,
                          unsigned count,
                          const struct rbi_directory_instance *instances)
{
    struct rbi_table_member *members = malloc((count + 1U) * sizeof *members);
    uint16_t *chosen = malloc((count + 1U) * sizeof *chosen);
    const bool whole = members != NULL && chosen != NULL;
    unsigned known = 0;
    for (unsigned i = 0; whole && i < count && known < RBI_TABLE_MEMBERS_MAX; i++) {
        if (entries[i].cluster == 0 && entries[i].hash_weight > 0) {
            members[known++] = (struct rbi_table_member){
                .instance = instances[entries[i].index].instance, .weight = 1};
        } else if (entries[i].cluster == 0 && entries[i].stage != RBI_ROUTE_STATE) {
            leave_out(cluster, instances[entries[i].index].instance, !is_apart(&entries[i]));
        } /* who leaves keeps its link until it has left; who starts has none yet */
    }
    for (unsigned i = 0; whole && i < known; i++) {
        leave_out(cluster, members[i].instance, true);
    }
    const unsigned taken =
        whole ? rbi_subset_choose(self_of(bus), members, known, cluster->subset, chosen) : 0;
    for (unsigned i = 0; i < taken; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): of the known ones it has chosen */
        leave_out(cluster, members[chosen[i]].instance, false);
    }
    free(members);
    free(chosen);
    return whole;
}

void rbi_subset_follow(struct ringbus *bus, struct rbi_cluster *cluster)
{
    cluster->subset = rbi_cluster_policy(cluster)->balance.subset;
    for (unsigned i = 0; cluster->subset == 0 && i < cluster->member_count; i++) {
        cluster->members[i].left_out = false;
    }
    cluster->subset_due = true;
    rbi_target_at_most(bus, bus->now_ns);
}

void rbi_subset_tick(struct ringbus *bus, struct rbi_cluster *cluster)
{
    if (!cluster->subset_due || !cluster->all) {
        return;
    }
    cluster->subset_due = false;
    if (cluster->subset != 0 && (cluster->dispatch_stale & RBI_DISPATCH_STALE) != 0) {
        rbi_cluster_refresh(bus, cluster);
    }
    for (unsigned i = 0; i < cluster->member_count; i++) {
        struct rbi_member *member = &cluster->members[i];
        if (member->left_out && member->wanted && !member->pinned) {
            rbi_member_unwant(bus, cluster, member);
        } else if (!member->left_out && !member->wanted && member->incarnation != 0) {
            rbi_member_want(bus, member);
        }
    }
}
