/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/cluster.c - the choice of one of the instances of a targeted cluster. It touches
 * nothing but this process's own memory. Which there are: members.c.
 */
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void rbi_cluster_free(struct rbi_cluster *cluster)
{
    if (cluster != NULL) {
        for (unsigned i = 0; i < cluster->choice_count; i++) {
            rbi_choice_free(cluster->choices[i]);
        }
        free(cluster->members);
        free(cluster->ready);
        rbi_caller_free(cluster->caller);
        free(cluster->imports);
        free(cluster->missed);
        free(cluster->policy);
        rbi_degrade_forget(cluster);
        rbi_limiter_unref(cluster->limiter);
        rbi_inflight_unref(cluster->inflight);
        free(cluster);
    }
}

void rbi_cluster_changed(struct ringbus *bus, struct rbi_cluster *cluster)
{
    cluster->dispatch_stale |= RBI_DISPATCH_STALE;
    if (cluster->subset != 0) {
        cluster->subset_due = true;
        rbi_target_at_most(bus, bus->now_ns);
    }
    for (unsigned i = 0; cluster->importers > 0 && i < bus->cluster_count; i++) {
        if (bus->clusters[i]->import_count > 0) {
            bus->clusters[i]->dispatch_stale |= RBI_DISPATCH_STALE;
        }
    }
}

void rbi_cluster_suspicion(struct ringbus *bus, const struct rbi_end *end)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster != NULL && cluster->importers > 0) {
        rbi_cluster_changed(bus, cluster);
    }
    for (unsigned i = 0; cluster != NULL && i < cluster->choice_count; i++) {
        cluster->choices[i]->turns.stale = true; /* the next pick finds its turn over */
    }
}

static bool make_first_choice(struct ringbus *bus, struct rbi_cluster *cluster)
{
    static const struct rbi_choice_class plain;
    if (cluster->choice == NULL) {
        cluster->choice = rbi_choice_new(bus, &plain);
        if (cluster->choice != NULL) {
            cluster->choices[cluster->choice_count++] = cluster->choice;
        }
    }
    if (cluster->choice == NULL) {
        return false;
    }
    for (unsigned i = 0; i < cluster->choice_count; i++) {
        cluster->choices[i]->stale = true;
    }
    rbi_directory_look_at(bus, cluster); /* before the snapshot is read: its policy */
    return rbi_choice_make(bus, cluster, cluster->choice) == 0;
}

/* All messages have one choice, if hooks do not say otherwise. */
static bool is_classless(const struct rbi_cluster *cluster)
{
    /* What a dry run would have done is counted for each message: not in the quick way. */
    return rbi_route_classless(&cluster->classes) && !cluster->barring && !cluster->dry;
}

void rbi_cluster_refresh(struct ringbus *bus, struct rbi_cluster *cluster)
{
    const bool stale = (cluster->dispatch_stale & RBI_DISPATCH_STALE) != 0;
    cluster->held = rbi_redeliver_holds(bus, cluster->id);
    cluster->barring = rbi_rights_barring(cluster);
    cluster->dry = rbi_dry_routes(rbi_cluster_policy(cluster));
    cluster->dispatch_stale &= (uint8_t)~RBI_DISPATCH_HELD;
    cluster->dispatch_stale |= cluster->held ? RBI_DISPATCH_HELD : 0U;
    if (!stale) {
        return;
    }
    const bool made = !rbi_hooks_running(bus) && make_first_choice(bus, cluster);
    if (!rbi_reach_collect(cluster) || !made) {
        return; /* without memory, or inside a filter, it is tried again at the next pick */
    }
    cluster->dispatch_stale = (cluster->held ? RBI_DISPATCH_HELD : RBI_DISPATCH_FRESH) |
                              (is_classless(cluster) ? 0U : RBI_DISPATCH_CLASSED) |
                              rbi_hooks_bits(bus, cluster);
}

/* ---- the pick --------------------------------------------------------------------------- */

/* A choice cannot be made anew now: a filter asks for it, or there is no memory. */
static RBI_COLD void note_unmade(const struct ringbus *bus, struct rbi_cluster *cluster)
{
    const bool inside = rbi_hooks_running(bus);
    cluster->refusal.hook = inside ? RBI_HOOK_INSIDE : RBI_HOOK_NONE;
    cluster->refusal.error = inside ? RINGBUS_E_BUSY : RINGBUS_E_NO_MEMORY;
}

/* What was chosen before, and could not be made anew, may be links that are no more. */
static bool is_chosen(const struct ringbus *bus, struct rbi_cluster *cluster)
{
    const bool chosen =
        cluster->choice != NULL && (cluster->dispatch_stale & RBI_DISPATCH_STALE) == 0;
    if (!chosen) {
        note_unmade(bus, cluster);
    }
    return chosen;
}

/* A key whose owner takes nothing now, or a table that is to be made. */
static RBI_COLD struct rbi_end *pick_key_cold(struct ringbus *bus,
                                              struct rbi_cluster *cluster,
                                              struct rbi_choice *choice,
                                              uint64_t key)
{
    const struct rbi_keyed *keyed = &choice->keyed;
    struct rbi_end *end = NULL;
    bool away = false;
    if ((keyed->stale & RBI_KEYED_STALE) != 0 && rbi_keyed_make(bus, cluster, choice) != 0) {
        cluster->refusal.error = RINGBUS_E_NO_MEMORY;
        return NULL;
    }
    if ((keyed->stale & RBI_KEYED_BOUND) != 0) {
        end = rbi_bound_end(choice, key, &away);
    } else {
        const uint16_t owner = keyed->owners[rbi_table_slot(key, keyed->table.shape.slots)];
        end = owner < keyed->table.member_count ? keyed->ends[owner] : NULL;
    }
    if (end == NULL) {
        end = rbi_keyed_elsewhere(cluster, choice, key);
        away = end != NULL;
    }
    if (away) {
        rbi_divert_note(bus, end, key);
    }
    return end;
}

static inline struct rbi_end *pick_from(struct ringbus *bus,
                                        struct rbi_cluster *cluster,
                                        struct rbi_choice *choice,
                                        bool keyed,
                                        uint64_t key)
{
    if (keyed && RBI_LIKELY(choice->by_key)) {
        const struct rbi_keyed *table = &choice->keyed;
        if (RBI_LIKELY(table->stale == 0)) {
            const uint16_t owner = table->owners[rbi_table_slot(key, table->table.shape.slots)];
            if (RBI_LIKELY(owner < table->table.member_count && table->ends[owner] != NULL)) {
                return table->ends[owner];
            }
        }
        return pick_key_cold(bus, cluster, choice, key);
    }
    struct rbi_turns *turns = &choice->turns;
    if (RBI_UNLIKELY(turns->stale) && rbi_turns_make(cluster, choice) != 0) {
        cluster->refusal.error = RINGBUS_E_NO_MEMORY;
        return NULL;
    }
    turns->picked = true;
    const uint16_t at = rbi_balance_pick(&turns->balance, false, 0, false, bus->now_ns);
    if (RBI_UNLIKELY(at >= turns->count)) {
        return NULL;
    }
    turns->members[at].unread++;
    return turns->ends[at];
}

/* By the operator, all of them: nothing that passes by itself. */
static bool are_taken_out(const struct rbi_choice *choice)
{
    bool taken_out = false;
    for (unsigned i = 0; i < choice->result.entry_count; i++) {
        const uint8_t reason = choice->entries[i].reason;
        if (reason == RBI_ROUTE_STARTING || reason == RBI_ROUTE_DRAINING) {
            return false;
        }
        taken_out = taken_out || reason == RBI_ROUTE_ISOLATED || reason == RBI_ROUTE_STAGED;
    }
    return taken_out;
}

/* The chain has left nobody, or nobody that is linked. */
static RBI_COLD void
note_refusal(struct rbi_cluster *cluster, const struct rbi_choice *choice, bool keyed)
{
    const bool by_key = keyed && choice->by_key;
    const uint8_t stage = by_key ? choice->result.keyed_emptied : choice->result.emptied;
    cluster->refusal.stage = stage;
    cluster->refusal.rule = (uint8_t)rbi_route_emptied_by(
        choice->entries, choice->result.entry_count, (enum rbi_route_stage)stage);
    if (stage == RBI_ROUTE_ACL) {
        cluster->refusal.error = RINGBUS_E_DENIED;
    } else if (stage == RBI_ROUTE_HEALTH) {
        cluster->refusal.error = RINGBUS_E_SHIELDED;
    } else if (stage == RBI_ROUTE_STATE ? are_taken_out(choice) : stage != RBI_ROUTE_IN) {
        cluster->refusal.error = RINGBUS_E_NO_MATCH;
    } /* leaving, or not there at all: the members tell it better */
}

static struct rbi_end *pick_or_tell(struct ringbus *bus,
                                    struct rbi_cluster *cluster,
                                    struct rbi_choice *choice,
                                    bool keyed,
                                    uint64_t key)
{
    struct rbi_end *end = pick_from(bus, cluster, choice, keyed, key);
    if (end == NULL && cluster->refusal.error == 0) {
        note_refusal(cluster, choice, keyed);
    }
    return end;
}

static RBI_COLD struct rbi_end *
pick_cold(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key)
{
    rbi_cluster_refresh(bus, cluster);
    cluster->refusal = (struct rbi_refusal){.error = 0};
    cluster->picked = NULL;
    if (cluster->held || !is_chosen(bus, cluster)) {
        return NULL;
    }
    if ((cluster->dispatch_stale & (RBI_DISPATCH_CLASSED | RBI_DISPATCH_HOOKED)) != 0) {
        const struct rbi_pick pick = {.keyed = keyed, .key = key};
        return rbi_cluster_pick_for(bus, cluster, &pick);
    }
    return pick_or_tell(bus, cluster, cluster->choice, keyed, key);
}

struct rbi_end *
rbi_cluster_pick(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key)
{
    if (RBI_UNLIKELY(cluster->dispatch_stale != RBI_DISPATCH_FRESH)) {
        return pick_cold(bus, cluster, keyed, key);
    }
    return pick_from(bus, cluster, cluster->choice, keyed, key);
}

/* ---- messages that say more of themselves ------------------------------------------------ */

static bool same_class(const struct rbi_choice_class *a, const struct rbi_choice_class *b)
{
    return a->rules == b->rules && a->canary == b->canary && a->barred == b->barred &&
           strcmp(a->tag, b->tag) == 0;
}

struct rbi_choice_class rbi_cluster_class_of(const struct rbi_cluster *cluster,
                                             const struct rbi_pick *pick)
{
    struct rbi_choice_class class = {.method = pick->method};
    class.barred = cluster->barring ? rbi_rights_barred(cluster, pick->method) : 0;
    class.rules =
        rbi_route_rules(&cluster->classes, pick->method, pick->keyed, pick->key, pick->labels);
    if (pick->tag != NULL) {
        (void)snprintf(class.tag, sizeof class.tag, "%s", pick->tag);
    }
    if (class.tag[0] == '\0' && (pick->keyed || pick->trace != 0)) {
        class.canary = rbi_route_canary(&cluster->classes, pick->keyed ? pick->key : pick->trace);
    }
    return class;
}

/* The choice of a class, in the place of the one unused for longest if need be. */
static struct rbi_choice *
choice_of(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_choice_class *class)
{
    unsigned at = 1;
    for (unsigned i = 0; i < cluster->choice_count; i++) {
        if (same_class(&cluster->choices[i]->class, class)) {
            cluster->choices[i]->class.method =
                class->method; /* what bars the one before differs */
            return cluster->choices[i];
        }
        at = i > 0 && cluster->choices[i]->used < cluster->choices[at]->used ? i : at;
    }
    struct rbi_choice *choice = rbi_choice_new(bus, class);
    if (choice == NULL) {
        return NULL;
    }
    if (cluster->choice_count < RBI_CHOICES_MAX) {
        at = cluster->choice_count++;
    } else {
        rbi_choice_free(cluster->choices[at]);
    }
    cluster->choices[at] = choice;
    return choice;
}

bool rbi_pick_tried(const struct rbi_pick *pick, const struct rbi_end *end)
{
    for (unsigned i = 0; i < pick->tried_count; i++) {
        if (pick->tried[i] == end->peer.instance) {
            return true;
        }
    }
    return false;
}

/* Without a key: one that was not tried, from a place that differs from pick to pick. */
static struct rbi_end *untried(const struct rbi_choice *choice, const struct rbi_pick *pick)
{
    struct rbi_end *doubtful = NULL;
    for (unsigned i = 0; i < choice->ready_count; i++) {
        struct rbi_end *end = choice->ready[(choice->used + i) % choice->ready_count];
        if (!end->usable || rbi_pick_tried(pick, end)) {
            continue;
        }
        if (!end->fsm.suspect && !end->avoided) {
            return end;
        }
        doubtful = end;
    }
    return doubtful;
}

struct rbi_choice *rbi_cluster_class_choice(struct ringbus *bus,
                                            struct rbi_cluster *cluster,
                                            const struct rbi_choice_class *class)
{
    struct rbi_choice *choice = choice_of(bus, cluster, class);
    if (choice == NULL ||
        (choice->stale && (rbi_hooks_running(bus) || rbi_choice_make(bus, cluster, choice) != 0))) {
        note_unmade(bus, cluster);
        return NULL;
    }
    choice->used = ++bus->picks;
    return choice;
}

static struct rbi_end *pick_balanced(struct ringbus *bus,
                                     struct rbi_cluster *cluster,
                                     struct rbi_choice *choice,
                                     const struct rbi_pick *pick)
{
    const bool keyed = pick->keyed && !pick->spread;
    struct rbi_end *end = pick_or_tell(bus, cluster, choice, keyed, pick->key);
    const bool by_key = keyed && choice->by_key;
    if (end != NULL && rbi_pick_tried(pick, end)) {
        end = by_key ? NULL : untried(choice, pick);
    }
    if (RBI_UNLIKELY(cluster->dry) && end != NULL) {
        rbi_dry_picked(bus, cluster, choice, end);
    }
    return end;
}

static struct rbi_end *pick_chosen(struct ringbus *bus,
                                   struct rbi_cluster *cluster,
                                   struct rbi_choice *choice,
                                   const struct rbi_pick *pick)
{
    if (choice->offer.count == 0) {
        note_refusal(cluster, choice, false);
        return NULL;
    }
    return rbi_hooks_choose(bus, cluster, choice, pick);
}

#define CLASS_TRIES 3U

/* A policy that has come meanwhile makes other classes: the message is looked at once more. */
static struct rbi_choice *
class_choice_now(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_pick *pick)
{
    for (unsigned i = 0; i < CLASS_TRIES; i++) {
        const struct rbi_choice_class class = rbi_cluster_class_of(cluster, pick);
        struct rbi_choice *choice = rbi_cluster_class_choice(bus, cluster, &class);
        if (choice != NULL || (cluster->dispatch_stale & RBI_DISPATCH_STALE) == 0) {
            return choice;
        }
        rbi_cluster_refresh(bus, cluster);
        cluster->refusal = (struct rbi_refusal){.error = 0};
        if (!is_chosen(bus, cluster)) {
            return NULL;
        }
    }
    note_unmade(bus, cluster);
    return NULL;
}

/* What the routers make of it, then its choice. NULL with @p named NULL: cluster->refusal */
static struct rbi_choice *route(struct ringbus *bus,
                                struct rbi_cluster *cluster,
                                const struct rbi_pick *pick,
                                struct rbi_routed *routed)
{
    cluster->refusal = (struct rbi_refusal){.error = 0};
    cluster->picked = NULL;
    routed->end = NULL;
    if (!is_chosen(bus, cluster)) {
        return NULL;
    }
    if ((cluster->dispatch_stale & RBI_DISPATCH_HOOKED) == 0) {
        routed->pick = *pick;
    } else if (rbi_hooks_running(bus)) {
        cluster->refusal.hook = RBI_HOOK_INSIDE;
        cluster->refusal.error = RINGBUS_E_BUSY;
        return NULL;
    } else if (!rbi_hooks_route(bus, cluster, pick, routed) || routed->end != NULL) {
        return NULL;
    }
    cluster->picked = class_choice_now(bus, cluster, &routed->pick);
    return cluster->picked;
}

RBI_COLD struct rbi_choice *rbi_cluster_choice_for(struct ringbus *bus,
                                                   struct rbi_cluster *cluster,
                                                   const struct rbi_pick *pick,
                                                   struct rbi_routed *routed)
{
    if ((cluster->dispatch_stale & (RBI_DISPATCH_STALE | RBI_DISPATCH_HELD)) != 0) {
        rbi_cluster_refresh(bus, cluster);
    }
    struct rbi_choice *choice = route(bus, cluster, pick, routed);
    if (choice != NULL && choice->ready_count == 0) {
        note_refusal(cluster, choice, false);
    }
    return choice;
}

RBI_COLD struct rbi_end *rbi_cluster_pick_held_for(struct ringbus *bus,
                                                   struct rbi_cluster *cluster,
                                                   const struct rbi_pick *pick)
{
    struct rbi_routed routed;
    struct rbi_choice *choice = route(bus, cluster, pick, &routed);
    if (choice == NULL) {
        return routed.end;
    }
    switch (rbi_hooks_mode(cluster)) {
    case RBI_BALANCE_CUSTOM:
        return pick_chosen(bus, cluster, choice, &routed.pick);
    case RBI_BALANCE_ALL:
        cluster->refusal.hook = RBI_HOOK_ONE;
        cluster->refusal.error = RINGBUS_E_ARGUMENT;
        return NULL;
    default:
        return pick_balanced(bus, cluster, choice, &routed.pick);
    }
}

RBI_COLD struct rbi_end *
rbi_cluster_pick_held(struct ringbus *bus, struct rbi_cluster *cluster, bool keyed, uint64_t key)
{
    if ((cluster->dispatch_stale & (RBI_DISPATCH_CLASSED | RBI_DISPATCH_HOOKED)) != 0) {
        const struct rbi_pick pick = {.keyed = keyed, .key = key};
        return rbi_cluster_pick_held_for(bus, cluster, &pick);
    }
    cluster->refusal = (struct rbi_refusal){.error = 0};
    return is_chosen(bus, cluster) ? pick_or_tell(bus, cluster, cluster->choice, keyed, key) : NULL;
}

RBI_COLD struct rbi_end *
rbi_cluster_pick_for(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_pick *pick)
{
    cluster->picked = NULL;
    if ((cluster->dispatch_stale & (RBI_DISPATCH_STALE | RBI_DISPATCH_HELD)) != 0) {
        rbi_cluster_refresh(bus, cluster);
    }
    return cluster->held ? NULL : rbi_cluster_pick_held_for(bus, cluster, pick);
}
