/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/keyed.c - choice by key. The table is a pure function of the instances that the
 * directory names and of those that died just now, whatever is linked, near or healthy here: so
 * every caller sends a key to the same place, or waits, and never to a second best in silence.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* So long an instance that joins may take until its link is READY. */
#define JOIN_NS (1000 * RBI_NS_PER_MS)
/* So often at most the daemon is told again that a table which it did not have is in use. */
#define TELL_NS (10000 * RBI_NS_PER_MS)

static bool bit_get(const uint32_t *bits, unsigned i)
{
    return (bits[i / 32] >> (i % 32) & 1U) != 0;
}

static void bit_set(uint32_t *bits, unsigned i)
{
    bits[i / 32] |= 1U << (i % 32);
}

static unsigned words_of(unsigned bits)
{
    return bits / 32 + 1;
}

void rbi_keyed_free(struct rbi_keyed *keyed)
{
    free(keyed->shares);
    rbi_keyed_table_drop(keyed->shared);
    free(keyed->ends);
    free(keyed->absent);
    free(keyed->shielded);
    rbi_bound_free(&keyed->bound);
    memset(keyed, 0, sizeof *keyed);
    keyed->stale = RBI_KEYED_STALE;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Takes @p members, from malloc, over. @return 0; -ENOMEM: there is no table then */
static int use_members(struct ringbus *bus,
                       const struct rbi_cluster *cluster,
                       struct rbi_keyed *keyed,
                       const struct rbi_table_shape *shape,
                       struct rbi_table_member *members,
                       unsigned count)
{
    if (keyed->fingerprint == rbi_table_fingerprint(shape, members, count)) {
        free(members);
        return 0;
    }
    struct rbi_keyed_table *table = keyed->shared;
    keyed->shared = NULL;
    keyed->shared = rbi_keyed_table_take(bus, cluster, table, shape, members, count);
    table = keyed->shared;
    keyed->fingerprint = table != NULL ? table->fingerprint : 0;
    keyed->owners = table != NULL ? table->owners : NULL;
    keyed->members = table != NULL ? table->members : NULL;
    keyed->self_made = table != NULL && table->self_made;
    keyed->table = table != NULL ? table->table : (struct rbi_table){.members = NULL};
    return table != NULL ? 0 : -ENOMEM;
}

/* ---- members -------------------------------------------------------------------------------- */

static bool is_member(const struct rbi_keyed *keyed, int32_t instance)
{
    for (unsigned i = 0; keyed->fingerprint != 0 && i < keyed->table.member_count; i++) {
        if (keyed->members[i].instance == instance) {
            return true;
        }
    }
    return false;
}

/*
 * One that joins takes over keys of others: those go on to serve them until our link to it is
 * READY, so that nothing is refused in between; but not for ever. The same when it left in order
 * and is back before we made a table without it. Before the first table nobody serves a key, and
 * there is nobody to be preferred.
 */
static bool has_joined(struct ringbus *bus,
                       struct rbi_cluster *cluster,
                       const struct rbi_choice *choice,
                       int32_t instance)
{
    const bool stays = is_member(&choice->keyed, instance) &&
                       !rbi_cluster_has_handed_on(choice->keyed.realm, instance);
    if (choice->keyed.fingerprint == 0 || stays ||
        rbi_choice_end(choice->keyed.realm, instance) != NULL ||
        (!cluster->named && cluster->importers == 0)) {
        return true;
    }
    const struct rbi_member *member = rbi_member_find(choice->keyed.realm, instance);
    const uint64_t until_ns = (member != NULL ? member->joined_ns : bus->now_ns) + JOIN_NS;
    if (until_ns <= bus->now_ns) {
        return true;
    }
    rbi_cluster_again(bus, cluster, until_ns);
    return false;
}

static const struct rbi_keyed_share *share_of(const struct rbi_keyed *keyed, int32_t instance)
{
    for (unsigned i = 0; i < keyed->share_count; i++) {
        if (keyed->shares[i].instance == instance) {
            return &keyed->shares[i];
        }
    }
    return NULL;
}

static bool counts(struct ringbus *bus,
                   struct rbi_cluster *cluster,
                   const struct rbi_choice *choice,
                   const struct rbi_keyed_share *share)
{
    if (share->absent) {
        /* A caller with links to some only knows by its table whether that was one of them. */
        return cluster->subset == 0 || is_member(&choice->keyed, share->instance);
    }
    return has_joined(bus, cluster, choice, share->instance) &&
           (!cluster->redeliver || rbi_choice_end(choice->keyed.realm, share->instance) != NULL);
}

/*
 * No daemon has told of it, and what it was is forgotten: it is waited for where it had keys. One
 * that is back counts as it is now.
 */
static bool is_missed(const struct ringbus *bus,
                      const struct rbi_cluster *cluster,
                      const struct rbi_choice *choice,
                      const struct rbi_missed *missed)
{
    return missed->until_ns > bus->now_ns && choice->keyed.realm == cluster &&
           !cluster->redeliver && is_member(&choice->keyed, missed->instance) &&
           share_of(&choice->keyed, missed->instance) == NULL;
}

/* Who counts for keys: those of the directory, and those whose slots wait for them. */
static struct rbi_table_member *members_of(struct ringbus *bus,
                                           struct rbi_cluster *cluster,
                                           const struct rbi_choice *choice,
                                           unsigned *count)
{
    const struct rbi_keyed *keyed = &choice->keyed;
    struct rbi_table_member *members =
        malloc((keyed->share_count + cluster->missed_count + 1U) * sizeof *members);
    *count = 0;
    for (unsigned i = 0; members != NULL && i < keyed->share_count; i++) {
        const struct rbi_keyed_share *share = &keyed->shares[i];
        if (counts(bus, cluster, choice, share)) {
            members[(*count)++] =
                (struct rbi_table_member){.instance = share->instance, .weight = share->weight};
        }
    }
    for (unsigned i = 0; members != NULL && i < cluster->missed_count; i++) {
        const struct rbi_missed *missed = &cluster->missed[i];
        if (is_missed(bus, cluster, choice, missed)) {
            members[(*count)++] =
                (struct rbi_table_member){.instance = missed->instance, .weight = missed->weight};
        }
    }
    *count = rbi_table_sort(members, *count);
    return members;
}

static bool reserve(struct rbi_keyed *keyed, unsigned count)
{
    if (count > keyed->room || keyed->ends == NULL) {
        free(keyed->ends);
        free(keyed->absent);
        free(keyed->shielded);
        keyed->ends = malloc((count + 1U) * sizeof *keyed->ends);
        keyed->absent = malloc(words_of(count) * sizeof *keyed->absent);
        keyed->shielded = malloc(words_of(count) * sizeof *keyed->shielded);
        keyed->room = count;
        if (keyed->ends == NULL || keyed->absent == NULL || keyed->shielded == NULL) {
            free(keyed->ends);
            keyed->ends = NULL;
            return false;
        }
    }
    memset(keyed->absent, 0, words_of(count) * sizeof *keyed->absent);
    memset(keyed->shielded, 0, words_of(count) * sizeof *keyed->shielded);
    return true;
}

/* Which of the members can be sent to, and why the others cannot. */
static void look_at_members(const struct rbi_cluster *cluster, struct rbi_choice *choice)
{
    struct rbi_keyed *keyed = &choice->keyed;
    const bool hold = rbi_cluster_policy(cluster)->balance.on_shield == RBI_ON_SHIELD_HOLD;
    for (unsigned i = 0; i < keyed->table.member_count; i++) {
        const int32_t instance = keyed->members[i].instance;
        const struct rbi_keyed_share *share = share_of(keyed, instance);
        keyed->ends[i] = NULL;
        const struct rbi_member *member = rbi_member_find(keyed->realm, instance);
        const bool died = member != NULL && member->over_died && member->end == NULL &&
                          member->over == member->incarnation;
        if (share == NULL || share->absent || died) {
            bit_set(keyed->absent, i);
        } else if (!share->healthy && !hold && !keyed->shields_ignored) {
            bit_set(keyed->shielded, i);
        } else {
            keyed->ends[i] = rbi_choice_end(keyed->realm, instance);
        }
    }
}

/*
 * The daemon is to have the table ready: for the next who asks, and for the next change. It does
 * not answer, and may have no room or find no right to it: then ours does, and it is told again.
 */
static void
tell_keyed(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_keyed *keyed)
{
    const struct rbi_wire_keyed body = {.cluster = cluster->id};
    const bool told = cluster->keyed_told_ns != 0 && bus->now_ns - cluster->keyed_told_ns < TELL_NS;
    if (cluster->named && keyed->self_made && keyed->table.member_count != 0 && !told &&
        rbi_control_send(bus, RBI_WIRE_KEYED, &body, NULL, 0) != 0) {
        cluster->keyed_told_ns = bus->now_ns;
    }
}

int rbi_keyed_make(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_choice *choice)
{
    unsigned count = 0;
    struct rbi_keyed *keyed = &choice->keyed;
    const struct rbi_balance_policy *policy = &rbi_cluster_policy(cluster)->balance;
    struct rbi_table_shape shape = {.ranks = 0};
    const bool by_key = rbi_balance_shape(policy, &shape);
    const bool bound = policy->hash_bound != 0 && shape.ranks > 1;
    struct rbi_table_member *members = by_key ? members_of(bus, cluster, choice, &count) : NULL;
    if (members == NULL || !reserve(keyed, count)) {
        free(members);
        return -ENOMEM;
    }
    int r = use_members(bus, cluster, keyed, &shape, members, count);
    if (r == 0) {
        look_at_members(cluster, choice);
        tell_keyed(bus, cluster, keyed);
        r = bound ? rbi_bound_make(choice, policy->hash_bound) : 0;
    }
    if (r == 0) {
        keyed->stale = bound ? RBI_KEYED_BOUND : 0U;
    }
    return r;
}

int32_t rbi_keyed_owner(const struct rbi_choice *choice, uint64_t cluster, uint64_t key)
{
    const struct rbi_keyed *keyed = &choice->keyed;
    if (keyed->fingerprint == 0 || (keyed->stale & RBI_KEYED_STALE) != 0 ||
        keyed->realm->id != cluster) {
        return 0;
    }
    const uint16_t owner = keyed->owners[rbi_table_slot(key, keyed->table.shape.slots)];
    return owner < keyed->table.member_count ? keyed->members[owner].instance : 0;
}

/* ---- when the owner cannot be sent to ------------------------------------------------------- */

struct rbi_end *
rbi_keyed_elsewhere(struct rbi_cluster *cluster, const struct rbi_choice *choice, uint64_t key)
{
    const struct rbi_keyed *keyed = &choice->keyed;
    const uint32_t slots = keyed->table.shape.slots;
    const uint32_t slot = rbi_table_slot(key, slots);
    const uint16_t owner = rbi_table_owner(keyed->owners, slots, 0, slot);
    if (owner >= keyed->table.member_count) {
        return NULL; /* nobody owns anything: the chain says why */
    }
    cluster->refusal.instance = keyed->members[owner].instance;
    cluster->refusal.realm = keyed->realm->id;
    if (bit_get(keyed->absent, owner)) {
        cluster->refusal.error = RINGBUS_E_RESTARTING;
        return NULL;
    }
    if (!bit_get(keyed->shielded, owner)) {
        const struct rbi_member *member = rbi_member_find(keyed->realm, cluster->refusal.instance);
        cluster->refusal.error =
            member != NULL ? rbi_member_not_ready(member) : RINGBUS_E_NOT_READY;
        return NULL;
    }
    const bool failover = rbi_cluster_policy(cluster)->balance.on_shield == RBI_ON_SHIELD_FAILOVER;
    for (unsigned rank = 1; failover && rank < keyed->table.shape.ranks; rank++) {
        const uint16_t next = rbi_table_owner(keyed->owners, slots, rank, slot);
        if (next < keyed->table.member_count && keyed->ends[next] != NULL) {
            return keyed->ends[next];
        }
    }
    cluster->refusal.error = RINGBUS_E_SHIELDED;
    return NULL;
}
