/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - whom a key belongs to, worked out anew from what the directory says: rendezvous by its
 * definition, one slot, no table. A key goes to its owner, or waits; another gets it only while the
 * owner has just joined and the sender has no link with it yet. And who died is waited for.
 */
#include "bus/hrw_score.h"
#include "bus/table.h"
#include "libclient/internal.h"
#include "tests/sim/network/world.h"

#define JOIN_NS SIM_S
#define ROOM    (2U * SLOTS_MAX)

/** What the directory of a process says of a cluster. */
struct snapshot {
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[ROOM + RBI_DIRECTORY_ABSENT_MAX];
    const struct rbi_directory_instance *absent; /* behind the others */
};

static bool take(const struct life *life, uint64_t cluster, struct snapshot *out)
{
    if (!life->bus->directory_mapped ||
        rbi_directory_read_all(&life->bus->directory, cluster, &out->head, out->instances,
                               ROOM + RBI_DIRECTORY_ABSENT_MAX) != RBI_DIRECTORY_OK) {
        return false;
    }
    out->absent = &out->instances[out->head.instance_count];
    return true;
}

static struct slot *slot_of(uint64_t cluster, int32_t instance)
{
    for (unsigned s = 0; s < world.slot_count; s++) {
        if (world.slots[s].addr.cluster == cluster && world.slots[s].addr.instance == instance) {
            return &world.slots[s];
        }
    }
    return NULL;
}

/* ---- the owner ------------------------------------------------------------------------------ */

static uint64_t score_of(uint64_t key, int32_t instance)
{
    const uint64_t slot_seed = rbi_hrw_slot_seed(rbi_table_slot(key, KEY_SLOTS));
    return rbi_hrw_minus_log2(rbi_hrw_hash(rbi_hrw_seed(instance), slot_seed));
}

/** Whether @p a has a better right to the key than @p b: all weigh the same here. */
static bool better(uint64_t key, int32_t a, int32_t b)
{
    return rbi_hrw_better(score_of(key, a), 1, a, score_of(key, b), 1, b);
}

/** Whether the sender, who saw it die while no daemon could say so, still waits for it. */
static bool is_missed(const struct life *life, const struct rbi_cluster *cluster, int32_t instance)
{
    for (unsigned i = 0; i < cluster->missed_count; i++) {
        if (cluster->missed[i].instance == instance &&
            cluster->missed[i].until_ns > life->bus->now_ns) {
            return true;
        }
    }
    return false;
}

/** Whether one with a better right may be passed over. */
static bool may_be_passed(const struct life *life,
                          const struct rbi_cluster *cluster,
                          const struct rbi_directory_instance *named)
{
    const struct rbi_member *member = rbi_member_find(cluster, named->instance);
    if (member == NULL) {
        return true; /* not told of it yet */
    }
    if (member->end != NULL) {
        return !member->end->usable || member->end->drain.peer;
    }
    const struct ringbus_addr addr = {
        .cluster = cluster->id, .instance = named->instance, .incarnation = named->incarnation};
    const struct life *of = life_of(&addr);
    if (life->slot->redelivers) {
        return true; /* it deals its keys among those it is linked to */
    }
    const bool joins = member->joined_ns + JOIN_NS > life->bus->now_ns;
    /* And no daemon was there to say so. */
    const bool is_over = of != NULL && (of->ended || of->leaving);
    return joins ||
           (is_over && !(of->killed && !of->drains && is_missed(life, cluster, named->instance)));
}

void keys_sent(struct life *life, uint32_t message, uint64_t cluster, uint64_t key, int32_t to)
{
    static struct snapshot snapshot;
    const struct rbi_cluster *view = rbi_cluster_find(life->bus, cluster);
    if (!world.policy.by_key || view == NULL || !take(life, cluster, &snapshot) ||
        snapshot.head.epoch != view->epoch ||
        rbi_directory_revision(&life->bus->directory) != life->bus->directory_revision) {
        return; /* it has changed since the choice was made, or is another daemon's */
    }
    world.figures.keys++;
    for (unsigned i = 0; i < snapshot.head.instance_count; i++) {
        const struct rbi_directory_instance *instance = &snapshot.instances[i];
        const bool takes =
            instance->state == RBI_ENDPOINT_READY || instance->state == RBI_ENDPOINT_BUSY;
        if (takes && instance->instance != to && better(key, instance->instance, to) &&
            !may_be_passed(life, view, instance)) {
            violation(life, "message %u with key %u went to %d, its owner is %d (8)", message,
                      (unsigned)key, to, instance->instance);
        }
    }
    for (unsigned i = 0; i < snapshot.head.absent_count && !life->slot->redelivers; i++) {
        const int32_t absent = snapshot.absent[i].instance;
        if (absent != to && better(key, absent, to)) {
            violation(life, "message %u with key %u went to %d, its owner %d may come back (8)",
                      message, (unsigned)key, to, absent);
        }
    }
}

/* ---- who died ------------------------------------------------------------------------------- */

static bool is_named(const struct snapshot *snapshot, const struct ringbus_addr *addr)
{
    for (unsigned i = 0; i < snapshot->head.instance_count; i++) {
        if (snapshot->instances[i].instance == addr->instance &&
            snapshot->instances[i].incarnation == addr->incarnation) {
            return true;
        }
    }
    return false;
}

static bool is_waited_for(const struct snapshot *snapshot, int32_t instance)
{
    for (unsigned i = 0; i < snapshot->head.absent_count; i++) {
        if (snapshot->absent[i].instance == instance) {
            return true;
        }
    }
    return false;
}

/** Notes who is there by this directory, for when they have gone. */
static void note_named(const struct snapshot *snapshot, uint64_t daemon)
{
    for (unsigned i = 0; i < snapshot->head.instance_count; i++) {
        const struct rbi_directory_instance *instance = &snapshot->instances[i];
        const struct ringbus_addr addr = {.cluster = snapshot->head.cluster,
                                          .instance = instance->instance,
                                          .incarnation = instance->incarnation};
        struct life *life = life_of(&addr);
        if (life != NULL && instance->state == RBI_ENDPOINT_READY && !life->drains) {
            life->named_by = daemon;
        }
    }
}

void keys_absences(struct life *life, uint64_t cluster)
{
    static struct snapshot snapshot;
    if (!world.policy.by_key || !take(life, cluster, &snapshot)) {
        return;
    }
    const uint64_t daemon = rbi_directory_daemon(&life->bus->directory);
    note_named(&snapshot, daemon);
    for (unsigned i = 0; i < world.life_count; i++) {
        const struct life *dead = &world.lives[i];
        if (!dead->killed || dead->leave || dead->addr.cluster != cluster ||
            dead->named_by != daemon || slot_of(cluster, dead->addr.instance)->life != NULL ||
            dead->slot->last != dead || is_named(&snapshot, &dead->addr) ||
            sim.now_ns >= dead->ended_ns + world.policy.rehash_delay_ms * SIM_MS) {
            continue;
        }
        world.figures.absences++;
        if (!is_waited_for(&snapshot, dead->addr.instance)) {
            violation(life, "the slots of %s do not wait for it (8)", dead->slot->path);
        }
    }
}

bool keys_wait(const struct life *life, uint64_t cluster)
{
    static struct snapshot snapshot;
    return take(life, cluster, &snapshot) && snapshot.head.absent_count != 0;
}
