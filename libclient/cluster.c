/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/cluster.c - what we know of the instances of a targeted cluster, and the choice
 * of one of them. The choice touches nothing but this process's own memory.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A link that was READY for so long has worked: as long as the longest wait for another try. */
#define STEADY_NS (5000 * RBI_NS_PER_MS)

struct rbi_cluster *rbi_cluster_find(struct ringbus *bus, uint64_t id)
{
    struct rbi_cluster *last = bus->last_cluster;
    if (RBI_LIKELY(last != NULL && last->id == id)) {
        return last;
    }
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        if (bus->clusters[i]->id == id) {
            bus->last_cluster = bus->clusters[i];
            return bus->clusters[i];
        }
    }
    return NULL;
}

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

void rbi_cluster_free(struct rbi_cluster *cluster)
{
    if (cluster != NULL) {
        free(cluster->members);
        free(cluster->ready);
        free(cluster->turn);
        free(cluster->owner);
        rbi_caller_free(cluster->caller);
        free(cluster);
    }
}

/* An instance that is leaving, or whose weight is 0, stays reachable by its id only. */
static bool takes_dispatch(const struct rbi_member *member)
{
    return member->end != NULL && member->end->usable && !member->end->drain.peer &&
           member->weight > 0 &&
           (member->state == RBI_ENDPOINT_READY || member->state == RBI_ENDPOINT_BUSY);
}

static bool grow_tables(struct rbi_cluster *cluster)
{
    const size_t bytes = cluster->member_count * sizeof *cluster->ready;
    struct rbi_end **ready = realloc(cluster->ready, bytes);
    if (ready == NULL) {
        return false;
    }
    cluster->ready = ready;
    struct rbi_end **turn = realloc(cluster->turn, bytes);
    if (turn == NULL) {
        return false;
    }
    cluster->turn = turn;
    cluster->ready_room = cluster->member_count;
    return true;
}

/* Somebody suspect has his turn only where everybody is. */
static RBI_COLD void choose_turn(struct rbi_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->ready_count; i++) {
        if (!cluster->ready[i]->fsm.suspect) {
            cluster->turn[cluster->turn_count++] = cluster->ready[i];
        }
    }
    if (cluster->turn_count == 0) {
        memcpy(cluster->turn, cluster->ready, cluster->ready_count * sizeof *cluster->turn);
        cluster->turn_count = cluster->ready_count;
    }
}

void rbi_cluster_suspicion(struct ringbus *bus, const struct rbi_end *end)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster != NULL) {
        cluster->turn_count = 0; /* the next pick finds its turn over */
    }
}

void rbi_cluster_refresh(struct ringbus *bus, struct rbi_cluster *cluster)
{
    const bool stale = cluster->dispatch_stale != RBI_DISPATCH_HELD;
    cluster->held = rbi_redeliver_holds(bus, cluster->id);
    cluster->dispatch_stale = cluster->held ? RBI_DISPATCH_HELD : RBI_DISPATCH_FRESH;
    if (!stale) {
        return;
    }
    cluster->owner_stale = true;
    cluster->ready_count = 0;
    cluster->turn_count = 0;
    if (cluster->ready_room < cluster->member_count && !grow_tables(cluster)) {
        cluster->dispatch_stale = RBI_DISPATCH_STALE; /* tried again at the next pick */
        return;
    }
    for (unsigned i = 0; i < cluster->member_count; i++) {
        if (takes_dispatch(&cluster->members[i])) {
            cluster->ready[cluster->ready_count++] = cluster->members[i].end;
        }
    }
}

/* Cold: after a change of membership only. */
static RBI_COLD bool build_owners(struct rbi_cluster *cluster)
{
    if (cluster->owner == NULL) {
        cluster->owner = malloc(RBI_HRW_SLOTS * sizeof *cluster->owner);
        if (cluster->owner == NULL) {
            return false;
        }
    }
    struct rbi_hrw_member *members = malloc(cluster->ready_count * sizeof *members);
    if (members == NULL) {
        return false;
    }
    for (unsigned i = 0; i < cluster->ready_count; i++) {
        const struct rbi_member *member =
            rbi_member_find(cluster, cluster->ready[i]->peer.instance);
        members[i].instance = cluster->ready[i]->peer.instance;
        members[i].weight = member != NULL ? member->weight : 0;
    }
    rbi_hrw_build(cluster->owner, RBI_HRW_SLOTS, members, cluster->ready_count);
    free(members);
    cluster->owner_stale = false;
    return true;
}

static inline struct rbi_end *pick(struct rbi_cluster *cluster, bool keyed, uint64_t key)
{
    if (RBI_UNLIKELY(cluster->ready_count == 0)) {
        return NULL;
    }
    if (keyed) {
        if (RBI_UNLIKELY(cluster->owner_stale) && !build_owners(cluster)) {
            return NULL;
        }
        const uint16_t owner = cluster->owner[rbi_hrw_slot(key, RBI_HRW_SLOTS)];
        return RBI_LIKELY(owner < cluster->ready_count) ? cluster->ready[owner] : NULL;
    }
    /* The cursor outlives changes of membership, so that nobody is favoured by them. */
    if (++cluster->cursor >= cluster->turn_count) {
        cluster->cursor = 0;
        if (RBI_UNLIKELY(cluster->turn_count == 0)) {
            choose_turn(cluster);
        }
    }
    return cluster->turn[cluster->cursor];
}

struct rbi_end *
rbi_cluster_pick(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key)
{
    if (RBI_UNLIKELY(cluster->dispatch_stale)) {
        rbi_cluster_refresh(bus, cluster);
        if (cluster->held) {
            return NULL;
        }
    }
    return pick(cluster, keyed, key);
}

RBI_COLD struct rbi_end *
rbi_cluster_pick_held(struct rbi_cluster *cluster, bool keyed, uint64_t key)
{
    return pick(cluster, keyed, key);
}

void rbi_cluster_end_changed(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster == NULL) {
        return;
    }
    cluster->dispatch_stale = true;
    struct rbi_member *member = rbi_member_find(cluster, end->peer.instance);
    if (member == NULL) {
        return;
    }
    if (end->phase == RBI_END_LINKED) {
        member->end = end;
        if (end->usable) {
            member->denied = false;
            member->retry_ns = RBI_NEVER;
            member->up_ns = member->up_ns == 0 ? bus->now_ns : member->up_ns;
            rbi_asks_link_up(bus);
            end->errors_count =
                member->named ? member->target.errors_count : cluster->target.errors_count;
            if (member->wanted) {
                (void)rbi_outcomes_attach(bus, end); /* without memory it goes uncounted */
            }
        }
    } else if (member->end == end) {
        member->end = NULL;
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
