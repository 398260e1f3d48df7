/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/choice.c - from a cluster's snapshot to those who take messages: reads the directory,
 * runs the router chain, collects the links. Off the hot path: after a change only.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------- */

struct rbi_choice *rbi_choice_new(struct ringbus *bus, const struct rbi_choice_class *class)
{
    struct rbi_choice *choice = calloc(1, sizeof *choice);
    if (choice != NULL) {
        choice->class = *class;
        choice->stale = true;
        rbi_turns_init(bus, &choice->turns);
    }
    return choice;
}

void rbi_choice_free(struct rbi_choice *choice)
{
    if (choice != NULL) {
        rbi_keyed_free(&choice->keyed);
        free(choice->entries);
        free(choice->ready);
        free(choice->weights);
        rbi_turns_free(&choice->turns);
        rbi_offer_free(&choice->offer);
        free(choice);
    }
}

static bool reserve_entries(struct rbi_choice *choice, unsigned count)
{
    if (count <= choice->entry_room) {
        return true;
    }
    struct rbi_route_entry *entries = realloc(choice->entries, count * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    choice->entries = entries;
    choice->entry_room = count;
    return true;
}

static bool reserve_ready(struct rbi_choice *choice, unsigned count)
{
    if (count <= choice->ready_room) {
        return true;
    }
    struct rbi_end **ready = realloc(choice->ready, count * sizeof *ready);
    choice->ready = ready != NULL ? ready : choice->ready;
    uint32_t *weights = realloc(choice->weights, count * sizeof *weights);
    choice->weights = weights != NULL ? weights : choice->weights;
    if (ready == NULL || weights == NULL) {
        return false;
    }
    choice->ready_room = count;
    return true;
}

/* ---- what the directory says ---------------------------------------------------------------- */

/* The clusters that may serve, the target first, as far as they can be read. */
struct offers {
    unsigned count;
    bool listed;     /* the target, in a directory: */
    uint64_t policy; /* key of the policy that its snapshot names */
    struct rbi_cluster *clusters[1 + RBI_REALMS_MAX];
    struct rbi_route_cluster routes[1 + RBI_REALMS_MAX];
    struct rbi_directory_instance *instances[1 + RBI_REALMS_MAX];
    uint64_t *invisible[1 + RBI_REALMS_MAX];
    uint8_t *filtered[1 + RBI_REALMS_MAX];
};

static void offers_free(struct offers *offers)
{
    for (unsigned i = 0; i < offers->count; i++) {
        free(offers->instances[i]);
        free(offers->invisible[i]);
        free(offers->filtered[i]);
    }
}

/* Without a directory that has it: what the daemon's events have told. */
static struct rbi_directory_instance *instances_told(const struct rbi_cluster *cluster,
                                                     struct rbi_directory_cluster *head)
{
    struct rbi_directory_instance *instances =
        calloc(cluster->member_count + 1U, sizeof *instances);
    *head = (struct rbi_directory_cluster){.cluster = cluster->id};
    for (unsigned i = 0; instances != NULL && i < cluster->member_count; i++) {
        const struct rbi_member *member = &cluster->members[i];
        if (member->incarnation != 0) {
            struct rbi_directory_instance *instance = &instances[head->instance_count++];
            instance->instance = member->instance;
            instance->incarnation = member->incarnation;
            instance->state = member->state;
            instance->weight = member->weight;
        }
    }
    return instances;
}

/*
 * Between the word of an instance in its lane, that it leaves or has left, and that of the daemon:
 * what it was acknowledged counts.
 */
static void note_leaving(const struct rbi_cluster *cluster,
                         struct rbi_directory_instance *instances,
                         unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct rbi_member *member = rbi_member_find(cluster, instances[i].instance);
        if (member != NULL && member->end != NULL && member->end->drain.peer) {
            instances[i].state = RBI_ENDPOINT_DRAINING;
        } else if (member != NULL && member->over == instances[i].incarnation &&
                   !member->over_died) {
            instances[i].state = RBI_ENDPOINT_CLOSED;
        }
    }
}

/* Bit by instance: rights hide it. NULL: none are hidden, or no memory, and the links say so. */
static uint64_t *invisible_of(const struct rbi_cluster *cluster,
                              const struct rbi_choice_class *class,
                              const struct rbi_directory_instance *instances,
                              unsigned count)
{
    uint64_t *bits = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct rbi_member *member = rbi_member_find(cluster, instances[i].instance);
        const bool barred =
            class->barred != 0 && member != NULL && rbi_rights_bars(member, class->method);
        if (member == NULL || (!rbi_member_is_denied(member) && !barred)) {
            continue;
        }
        if (bits == NULL) {
            bits = calloc(count / 64 + 1U, sizeof *bits);
        }
        if (bits != NULL) {
            bits[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
    return bits;
}

/* Whom the application's filters leave out for @p target. @return false: no memory */
static bool
filter(struct ringbus *bus, struct offers *offers, const struct rbi_cluster *target, unsigned at)
{
    bool failed = false;
    const struct rbi_route_cluster *route = &offers->routes[at];
    const struct rbi_filtering filtering = {.target = target->id,
                                            .cluster = offers->clusters[at]->id,
                                            .path = offers->clusters[at]->path,
                                            .instances = offers->instances[at],
                                            .count = route->count + route->absent_count};
    /* Which keys are ours says what others send: our own filters are nothing to them. */
    if (bus->owned == NULL || bus->owned->cluster != target) {
        offers->filtered[at] = rbi_hooks_filter(bus, &filtering, &failed);
    }
    offers->routes[at].filtered = offers->filtered[at];
    return !failed;
}

/* @return false: no memory, or the directory cannot be read now */
static bool read_offer(struct ringbus *bus,
                       struct offers *offers,
                       struct rbi_cluster *cluster,
                       const struct rbi_choice_class *class)
{
    struct rbi_directory_cluster head = {.absent_count = 0};
    bool absent = false;
    struct rbi_directory_instance *instances = NULL;
    if (bus->directory_mapped) {
        instances = rbi_directory_list(bus, cluster->id, &head, &absent);
    }
    if (instances != NULL) {
        cluster->epoch = head.epoch;
    } else if (!bus->directory_mapped || absent) {
        instances = instances_told(cluster, &head);
    } /* else it cannot be read now: events know no sets, tags and overrides, and all would mix */
    if (instances == NULL) {
        return false;
    }
    note_leaving(cluster, instances, head.instance_count);
    if (offers->count == 0) {
        offers->listed = head.path_length > 0;
        offers->policy = head.policy;
    }
    offers->clusters[offers->count] = cluster;
    offers->instances[offers->count] = instances;
    offers->filtered[offers->count] = NULL;
    offers->invisible[offers->count] =
        invisible_of(cluster, class, instances, head.instance_count + head.absent_count);
    offers->routes[offers->count] = (struct rbi_route_cluster){
        .instances = instances,
        .count = head.instance_count,
        /* Who asked that messages go on to another instance waits for none. */
        .absent_count = offers->clusters[0]->redeliver ? 0 : head.absent_count,
        .panic = (head.flags & RBI_CLUSTER_PANIC) != 0,
        .invisible = offers->invisible[offers->count],
    };
    offers->count++;
    return true;
}

/* Whom broadcasts reach, before a filter can send one. @return false: no memory */
static bool look_reach(struct ringbus *bus,
                       const struct offers *offers,
                       struct rbi_cluster *cluster,
                       struct rbi_choice *choice)
{
    if (choice != cluster->choice) {
        return true;
    }
    if (!reserve_entries(choice, offers->routes[0].count)) {
        return false;
    }
    rbi_reach_look(bus, cluster, &offers->routes[0], choice->entries);
    return true;
}

/* @param made  the choice is to be made of them: else they are looked at only */
static bool read_offers(struct ringbus *bus,
                        struct offers *offers,
                        struct rbi_cluster *cluster,
                        struct rbi_choice *choice,
                        bool made)
{
    offers->count = 0;
    if (!read_offer(bus, offers, cluster, &choice->class) ||
        (made && !look_reach(bus, offers, cluster, choice)) || !filter(bus, offers, cluster, 0)) {
        return false;
    }
    for (unsigned i = 0; i < cluster->import_count; i++) {
        if (!read_offer(bus, offers, cluster->imports[i], &choice->class) ||
            !filter(bus, offers, cluster, offers->count - 1)) {
            return false;
        }
    }
    return true;
}

/* ---- a choice ------------------------------------------------------------------------------- */

struct rbi_end *rbi_choice_end(const struct rbi_cluster *cluster, int32_t instance)
{
    const struct rbi_member *member = rbi_member_find(cluster, instance);
    struct rbi_end *end = member != NULL && member->wanted ? member->end : NULL;
    return end != NULL && end->phase == RBI_END_LINKED && end->usable && !end->drain.peer ? end
                                                                                          : NULL;
}

/* Of a cluster that is targeted in part the rest is as if it was not there. */
bool rbi_choice_targets(const struct rbi_cluster *cluster, int32_t instance)
{
    const struct rbi_member *member = rbi_member_find(cluster, instance);
    if (cluster->all && (member == NULL || !member->left_out)) {
        return true;
    }
    return member != NULL && (cluster->all ? member->pinned : member->wanted);
}

static bool collect_ready(struct rbi_choice *choice, const struct offers *offers, bool custom)
{
    choice->ready_count = 0;
    choice->turns.stale = true;
    if (!reserve_ready(choice, choice->result.in_count) ||
        !rbi_offer_begin(&choice->offer, custom ? choice->result.in_count : 0)) {
        return false;
    }
    for (unsigned i = 0; i < choice->result.entry_count; i++) {
        struct rbi_route_entry *entry = &choice->entries[i];
        const struct rbi_cluster *cluster = offers->clusters[entry->cluster];
        const struct rbi_directory_instance *from =
            &offers->instances[entry->cluster][entry->index];
        const int32_t instance = from->instance;
        entry->index = (uint32_t)instance; /* the snapshot ends here */
        if (!rbi_choice_targets(cluster, instance)) {
            entry->weight = 0;
            entry->hash_weight = 0;
        }
        struct rbi_end *end = entry->weight > 0 ? rbi_choice_end(cluster, instance) : NULL;
        if (end != NULL) {
            choice->weights[choice->ready_count] = entry->weight;
            choice->ready[choice->ready_count++] = end;
            if (custom) {
                rbi_offer_add(&choice->offer, end, from, entry);
            }
        }
    }
    return true;
}

/* What the chain is run on. Points into itself. */
struct chain {
    struct rbi_route_caller caller;
    struct rbi_route_message message;
    struct rbi_route_input input;
};

static void chain_init(struct chain *chain,
                       const struct ringbus *bus,
                       const struct rbi_cluster *cluster,
                       const struct rbi_choice *choice,
                       const struct offers *offers)
{
    chain->caller = (struct rbi_route_caller){
        .set = bus->labels.set, .idc = bus->labels.idc, .node = bus->place.node};
    chain->message = (struct rbi_route_message){
        .tag = choice->class.tag, .rules = choice->class.rules, .canary = choice->class.canary};
    chain->input = (struct rbi_route_input){.caller = &chain->caller,
                                            .message = &chain->message,
                                            .policy = rbi_cluster_policy(cluster),
                                            .clusters = offers->routes,
                                            .cluster_count = offers->count,
                                            .now_ns = bus->now_ns};
}

/* Policies that follow each other while one is read; more are looked at with the next message. */
#define POLICY_TRIES 4U

/*
 * The same, with the policy that this snapshot names and no other. Classes of messages are by the
 * policy, too: with a new one all choices are to be made anew, the first of them first.
 */
static bool read_whole(struct ringbus *bus,
                       struct offers *offers,
                       struct rbi_cluster *cluster,
                       struct rbi_choice *choice)
{
    for (unsigned i = 0; i < POLICY_TRIES; i++) {
        if (!read_offers(bus, offers, cluster, choice, true)) {
            return false;
        }
        if (!offers->listed || rbi_cluster_has_policy(cluster, offers->policy)) {
            return true;
        }
        if (choice != cluster->choice) {
            rbi_cluster_changed(bus, cluster);
            return false;
        }
        offers_free(offers);
        offers->count = 0;
        if (!rbi_cluster_take_policy(bus, cluster, offers->policy)) {
            return false;
        }
    }
    return false;
}

int rbi_choice_make(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_choice *choice)
{
    struct offers offers;
    struct chain chain;
    bool whole = read_whole(bus, &offers, cluster, choice);
    const uint32_t mode = rbi_hooks_mode(cluster);
    chain_init(&chain, bus, cluster, choice, &offers);
    whole = whole && reserve_entries(choice, rbi_route_room(&chain.input));
    if (whole) {
        rbi_route_run(&chain.input, &choice->memory, choice->entries, &choice->result);
        choice->realm = offers.clusters[choice->result.realm];
        if (cluster->subset != 0 && choice == cluster->choice) {
            whole = rbi_subset_choose_of(bus, cluster, choice->entries, choice->result.entry_count,
                                         offers.instances[0]);
        }
        whole = whole && rbi_keyed_deal(choice, &chain.input, offers.clusters) &&
                collect_ready(choice, &offers, mode == RBI_BALANCE_CUSTOM);
    }
    offers_free(&offers);
    choice->by_key =
        mode == RBI_BALANCE_AUTO || mode == RBI_BALANCE_HASH || mode == RBI_BALANCE_MAGLEV;
    choice->keyed.stale = RBI_KEYED_STALE;
    choice->probe = 0;
    choice->stale = !whole;
    if (whole && choice->result.again_ns != 0) {
        rbi_cluster_again(bus, cluster, choice->result.again_ns);
    }
    return whole ? 0 : -ENOMEM;
}

/* ---- as if one of them was well ------------------------------------------------------------- */

/* Makes it healthy, and its cluster calm. @return which of the entries it is, or UINT_MAX */
static unsigned heal(struct offers *offers, uint64_t of, int32_t instance)
{
    unsigned entry = 0;
    for (unsigned i = 0; i < offers->count; i++) {
        for (unsigned j = 0; j < offers->routes[i].count; j++, entry++) {
            if (offers->clusters[i]->id == of && offers->instances[i][j].instance == instance) {
                offers->instances[i][j].health = RBI_HEALTH_OK;
                offers->routes[i].panic = false;
                return rbi_choice_targets(offers->clusters[i], instance) ? entry : UINT_MAX;
            }
        }
    }
    return UINT_MAX;
}

/* A newer snapshot is for the next choices, which are made with the next tick. */
static bool is_current(const struct ringbus *bus, const struct rbi_cluster *cluster)
{
    return bus->directory_mapped &&
           rbi_directory_epoch(&bus->directory, cluster->id) == cluster->epoch;
}

bool rbi_choice_would_take(struct ringbus *bus,
                           struct rbi_cluster *cluster,
                           struct rbi_choice *choice,
                           uint64_t of,
                           int32_t instance)
{
    struct offers offers;
    struct chain chain;
    struct rbi_route_result result;
    struct rbi_route_memory memory = choice->memory; /* nothing is to be remembered of this */
    struct rbi_route_entry *entries = NULL;
    bool takes = false;
    bool current = is_current(bus, cluster);
    for (unsigned i = 0; i < cluster->import_count; i++) {
        current = current && is_current(bus, cluster->imports[i]);
    }
    if (!current) {
        return false;
    }
    if (read_offers(bus, &offers, cluster, choice, false)) {
        const unsigned at = heal(&offers, of, instance);
        chain_init(&chain, bus, cluster, choice, &offers);
        entries = at != UINT_MAX ? calloc(rbi_route_room(&chain.input), sizeof *entries) : NULL;
        if (entries != NULL) {
            rbi_route_run(&chain.input, &memory, entries, &result);
            takes = entries[at].weight > 0;
        }
    }
    offers_free(&offers);
    free(entries);
    return takes;
}
