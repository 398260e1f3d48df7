/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/members.c - what we know of the instances of a targeted cluster: links, deaths. */
#include "libclient/internal.h"

#include <stdlib.h>

/* A link that was READY for so long has worked: as long as the longest wait for another try. */
#define STEADY_NS (5000 * RBI_NS_PER_MS)

struct rbi_member *rbi_member_find(const struct rbi_cluster *cluster, int32_t instance)
{
    unsigned low = 0;
    unsigned high = cluster->member_count;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (cluster->members[middle].instance < instance) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < cluster->member_count && cluster->members[low].instance == instance
               ? &cluster->members[low]
               : NULL;
}

void rbi_cluster_again(struct ringbus *bus, struct rbi_cluster *cluster, uint64_t due_ns)
{
    cluster->again_ns = rbi_min_u64(cluster->again_ns, due_ns);
    rbi_target_at_most(bus, due_ns);
}

void rbi_cluster_miss(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct rbi_member *member)
{
    const uint64_t delay_ns = rbi_cluster_policy(cluster)->balance.rehash_delay_ms * RBI_NS_PER_MS;
    unsigned kept = 0;
    for (unsigned i = 0; i < cluster->missed_count; i++) {
        const struct rbi_missed *missed = &cluster->missed[i];
        if (missed->until_ns > bus->now_ns && missed->instance != member->instance) {
            cluster->missed[kept++] = *missed;
        }
    }
    cluster->missed_count = kept;
    struct rbi_missed *larger = realloc(cluster->missed, (kept + 1U) * sizeof *larger);
    if (larger != NULL && delay_ns > 0 && member->weight > 0) {
        cluster->missed = larger;
        cluster->missed[cluster->missed_count++] =
            (struct rbi_missed){.instance = member->instance,
                                .weight = member->weight,
                                .until_ns = bus->now_ns + delay_ns};
        rbi_cluster_again(bus, cluster, bus->now_ns + delay_ns);
    } else if (larger != NULL) {
        cluster->missed = larger;
    }
}

/* Position of an instance among those that left, or RBI_HANDED_ON_MAX. Ids begin with 1. */
static unsigned handed_on_at(const struct rbi_cluster *cluster, int32_t instance)
{
    unsigned at = 0;
    while (at < RBI_HANDED_ON_MAX && cluster->handed_on[at] != instance) {
        at++;
    }
    return at;
}

void rbi_cluster_hand_on(struct rbi_cluster *cluster, int32_t instance)
{
    if (handed_on_at(cluster, instance) == RBI_HANDED_ON_MAX) {
        cluster->handed_on[cluster->handed_on_next] = instance;
        cluster->handed_on_next = (cluster->handed_on_next + 1) % RBI_HANDED_ON_MAX;
    }
}

bool rbi_cluster_has_handed_on(const struct rbi_cluster *cluster, int32_t instance)
{
    return handed_on_at(cluster, instance) < RBI_HANDED_ON_MAX;
}

static void take_up_again(struct rbi_cluster *cluster, int32_t instance)
{
    const unsigned at = handed_on_at(cluster, instance);
    if (at < RBI_HANDED_ON_MAX) {
        cluster->handed_on[at] = 0;
    }
}

/*
 * What its keys do: those of one that died wait for it, those of one that left are dealt out anew.
 * One that drained had handed on its keys before it ended, however that was.
 */
static void
note_over(struct rbi_cluster *cluster, struct rbi_member *member, const struct rbi_end *end)
{
    if (end->leave_reason == RBI_REASON_UNREACHABLE) {
        member->out_of_reach = RINGBUS_E_UNREACHABLE;
    }
    if (end->leave_reason == RBI_REASON_LEFT || end->leave_reason == RBI_REASON_CRASHED) {
        member->over = end->peer.incarnation;
        member->over_died = end->leave_reason == RBI_REASON_CRASHED && !end->drain.peer;
        if (!member->over_died) {
            rbi_cluster_hand_on(cluster, member->instance);
        }
    }
}

void rbi_cluster_end_explained(struct ringbus *bus, const struct rbi_end *end)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, end->peer.instance) : NULL;
    if (member != NULL && member->end == NULL && member->over == end->peer.incarnation) {
        note_over(cluster, member, end);
        rbi_cluster_changed(bus, cluster);
    }
}

void rbi_cluster_end_changed(struct ringbus *bus, struct rbi_end *end)
{
    if (end->phase == RBI_END_LINKED) {
        rbi_gate_attach(bus, end);
    }
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster == NULL) {
        return;
    }
    rbi_cluster_changed(bus, cluster);
    struct rbi_member *member = rbi_member_find(cluster, end->peer.instance);
    if (member == NULL) {
        return;
    }
    if (end->phase == RBI_END_LINKED) {
        member->end = end;
        rbi_cluster_look_policy(bus, cluster);
        rbi_limit_attach(cluster, end, bus->now_ns);
        if (end->usable) {
            take_up_again(cluster, member->instance);
            member->denied = false;
            member->out_of_reach = 0;
            /* Else our interest in it is not said yet, and that it changes does not say it. */
            member->retry_ns = end->wanted ? RBI_NEVER : member->retry_ns;
            member->up_ns = member->up_ns == 0 ? bus->now_ns : member->up_ns;
            rbi_asks_link_up(bus);
            end->errors_count =
                member->named ? member->target.errors_count : cluster->target.errors_count;
            rbi_outcomes_follow(cluster, end);
            if (member->wanted) {
                (void)rbi_outcomes_attach(bus, end); /* without memory it goes uncounted */
            }
            rbi_failback_link_up(bus);
        }
    } else if (member->end == end) {
        member->end = NULL;
        note_over(cluster, member, end);
        /* One that says READY and goes, again and again, is asked ever more seldom. */
        if (member->up_ns != 0 && bus->now_ns - member->up_ns >= STEADY_NS) {
            member->retry_count = 0;
        }
        member->up_ns = 0;
        /*
         * Still listed by the daemon: perhaps only the link has failed, so try again; not
         * sooner than whoever has backed off from it already.
         */
        if (!member->wanted || bus->closing) {
            member->retry_ns = RBI_NEVER;
        } else if (member->retry_ns == RBI_NEVER) {
            rbi_member_back_off(bus, member);
        }
        rbi_target_at_most(bus, member->retry_ns);
    }
}
