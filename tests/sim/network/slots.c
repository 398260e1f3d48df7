/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.c - instances that follow which keys they own. Each is told of every slot that it gains or
 * loses, once, what is lost first, and by one snapshot of the directory no slot has two owners.
 */
#include "libclient/internal.h"
#include "tests/sim/network/world.h"

#include <stdio.h>

static bool has(const struct life *life, unsigned slot)
{
    return (life->owned[slot / 64] >> (slot % 64) & 1) != 0;
}

/**
 * Epochs are a daemon's own, and one changes its meaning when a new daemon has settled.
 * @return false: they ran backwards, or what was lost came last
 */
static bool follows_on(struct life *at, const struct ringbus_event *event)
{
    const uint64_t daemon = rbi_directory_daemon(&at->bus->directory);
    const bool gained = event->type == RINGBUS_EVENT_SLOTS_GAINED;
    const bool same = daemon == at->owned_daemon;
    const bool settles = world.daemon_starts > 1;
    const bool right =
        !same || event->epoch > at->owned_epoch ||
        (event->epoch == at->owned_epoch && (settles || (gained && !at->owned_gained)));
    at->owned_daemon = daemon;
    at->owned_epoch = event->epoch;
    at->owned_gained = gained;
    return right;
}

void slots_event(struct life *at, const struct ringbus_event *event)
{
    const bool gained = event->type == RINGBUS_EVENT_SLOTS_GAINED;
    if (at->slot->follows == RINGBUS_SLOTS_OFF || !world.policy.by_key) {
        violation(at, "is told of slots, and follows none");
        return;
    }
    if (!follows_on(at, event)) {
        violation(at, "slots are %s out of turn, epoch %u (8)", gained ? "gained" : "lost",
                  (unsigned)event->epoch);
    }
    world.figures.slots++;
    for (size_t i = 0; i < event->slot_count; i++) {
        for (unsigned slot = event->slots[i].first; slot <= event->slots[i].last; slot++) {
            if (slot >= KEY_SLOTS || has(at, slot) == gained) {
                violation(at, "slot %u is %s and was so before (8)", slot,
                          gained ? "gained" : "lost");
                return;
            }
            at->owned[slot / 64] ^= UINT64_C(1) << (slot % 64);
        }
    }
}

/** Whether the two look at one snapshot, and have told all that it says. */
static bool see_the_same(const struct life *a, const struct life *b)
{
    return a->bus != NULL && b->bus != NULL && a->bus->owned != NULL && b->bus->owned != NULL &&
           a->addr.cluster == b->addr.cluster && a->bus->directory_mapped &&
           b->bus->directory_mapped &&
           rbi_directory_daemon(&a->bus->directory) == rbi_directory_daemon(&b->bus->directory) &&
           a->bus->owned->cluster->epoch == b->bus->owned->cluster->epoch &&
           a->bus->events.count == 0 && b->bus->events.count == 0 &&
           a->owned_daemon == rbi_directory_daemon(&a->bus->directory) &&
           b->owned_daemon == a->owned_daemon;
}

/** A slot that both own; KEY_SLOTS: none. */
static unsigned both_own(const struct life *a, const struct life *b)
{
    for (unsigned i = 0; i < KEY_SLOTS / 64; i++) {
        const uint64_t both = a->owned[i] & b->owned[i];
        if (both != 0) {
            return i * 64 + (unsigned)__builtin_ctzll(both);
        }
    }
    return KEY_SLOTS;
}

void slots_look(struct life *at)
{
    for (unsigned s = 0; s < world.slot_count; s++) {
        const struct life *other = world.slots[s].life;
        if (other == NULL || other == at || !see_the_same(at, other)) {
            continue;
        }
        const unsigned slot = both_own(at, other);
        if (slot < KEY_SLOTS) {
            violation(at, "owns slot %u, and so does %s, by epoch %u (8)", slot, other->slot->path,
                      (unsigned)at->bus->owned->cluster->epoch);
        }
    }
}

void slots_delivered(struct life *at, const struct ringbus_message *message)
{
    const unsigned dealt = RINGBUS_MESSAGE_KEY | RINGBUS_MESSAGE_ANY;
    if (at->slot->follows != RINGBUS_SLOTS_REFUSE || message->kind != RINGBUS_KIND_REQUEST ||
        (message->flags & dealt) != dealt || !world.policy.by_key ||
        (message->flags & (RINGBUS_MESSAGE_REDELIVERED | RINGBUS_MESSAGE_DIVERTED)) != 0) {
        return;
    }
    if (ringbus_owns(at->bus, message->key) == 0) {
        violation(at, "handles key %u, which is another's (8)", (unsigned)message->key);
    }
}

const char *slots_settled(unsigned cluster)
{
    static char text[128];
    uint64_t owned[KEY_SLOTS / 64] = {0};
    bool all = true;
    bool any = false;
    for (unsigned s = 0; s < world.slot_count; s++) {
        const struct slot *slot = &world.slots[s];
        const struct life *life = slot->life;
        if (life == NULL || slot->addr.cluster != world.clusters[cluster].cluster) {
            continue;
        }
        all = all && slot->follows != RINGBUS_SLOTS_OFF;
        any = true;
        for (unsigned i = 0; i < KEY_SLOTS / 64; i++) {
            if ((owned[i] & life->owned[i]) != 0) {
                (void)snprintf(text, sizeof text, "slots of %s (8) have two owners",
                               world.cluster_paths[cluster]);
                return text;
            }
            owned[i] |= life->owned[i];
        }
    }
    for (unsigned i = 0; world.policy.by_key && any && all && i < KEY_SLOTS / 64; i++) {
        if (owned[i] != UINT64_MAX) {
            (void)snprintf(text, sizeof text, "slots of %s (8) have no owner",
                           world.cluster_paths[cluster]);
            return text;
        }
    }
    return NULL;
}
