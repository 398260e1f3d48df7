/* SPDX-License-Identifier: Apache-2.0 */
/*
 * again.c - targets that redeliver: what was for any instance, and its receiver ended without
 * having had it, goes on to another. It is handled once all the same, and messages with one key in
 * the order in which they were sent, unless somebody joined, or went and lives, in between.
 */
#include "libclient/internal.h"
#include "tests/sim/network/world.h"

bool again_may_be(const struct message *message)
{
    return message->any && message->from->slot->redelivers;
}

/** Whom the sender's library may choose: bit s. */
static uint32_t choosable(const struct life *from, unsigned cluster)
{
    uint32_t mask = 0;
    const struct rbi_cluster *of = rbi_cluster_find(from->bus, world.clusters[cluster].cluster);
    for (unsigned i = 0; of != NULL && i < from->bus->end_count; i++) {
        const struct rbi_end *end = from->bus->ends[i];
        const struct rbi_member *member = rbi_member_find(of, end->peer.instance);
        const bool takes = end->usable && !end->drain.peer && member != NULL &&
                           member->state != RBI_ENDPOINT_DRAINING;
        for (unsigned s = 0; s < world.slot_count && takes; s++) {
            if (end->peer.cluster == world.clusters[cluster].cluster &&
                end->peer.cluster == world.slots[s].addr.cluster &&
                end->peer.instance == world.slots[s].addr.instance) {
                mask |= UINT32_C(1) << s;
            }
        }
    }
    return mask;
}

void again_choosing(struct life *from, const struct message *message)
{
    if (!again_may_be(message)) {
        return;
    }
    uint32_t *owners = &from->owners[message->cluster];
    const uint32_t now = choosable(from, message->cluster);
    uint32_t changed = now & ~*owners;
    for (unsigned s = 0; s < world.slot_count; s++) {
        const bool left = ((*owners & ~now) >> s & 1) != 0;
        const struct rbi_end *end = left ? rbi_end_find(from->bus, world.slots[s].addr.cluster,
                                                        world.slots[s].addr.instance)
                                         : NULL;
        changed |= end != NULL && end->phase == RBI_END_LINKED ? UINT32_C(1) << s : 0;
    }
    *owners = now;
    if (changed != 0 || from->untargets) {
        from->unordered_until[message->cluster] = world.message_count - 1;
    }
}

static void check_key_order(struct life *to, uint32_t idx)
{
    const struct message *message = &world.messages[idx];
    struct life *from = message->from;
    uint32_t *last = &from->key_last[message->cluster][message->key];
    if (idx < *last && idx > from->unordered_until[message->cluster]) {
        violation(to, "message %u with key %u of %s came after %u (1, order of the key)", idx,
                  message->key, from->slot->path, *last);
    }
    *last = idx > *last ? idx : *last;
}

void again_delivered(struct life *to, uint32_t idx)
{
    const struct message *message = &world.messages[idx];
    bool doubtful = false;
    for (uint32_t i = 0; i < world.copy_count; i++) {
        const struct copy *copy = &world.copies[i];
        if (copy->message != idx) {
            continue;
        }
        doubtful = doubtful || copy->maybe_seen;
        if (copy->to != to && copy->delivered) {
            violation(to, "message %u came to %s %u before (2, twice)", idx, copy->to->slot->path,
                      copy->to->addr.incarnation);
        }
        if (copy->to != to && copy->given_back && !copy->maybe_seen) {
            violation(to, "message %u came, and was given back as not seen (3)", idx);
        }
        world.figures.redelivered += copy->to != to;
    }
    if (message->keyed && world.policy.by_key && !doubtful) {
        check_key_order(to, idx);
    }
}

void again_given_back(struct life *from, const struct copy *copy)
{
    for (uint32_t i = 0; i < world.copy_count; i++) {
        const struct copy *other = &world.copies[i];
        if (other->message != copy->message || other == copy) {
            continue;
        }
        if (other->given_back) {
            violation(from, "message %u given back by two (3)", copy->message);
        }
        if (other->delivered && !copy->maybe_seen) {
            violation(from, "message %u given back as not seen, it was handled by %s (3)",
                      copy->message, other->to->slot->path);
        }
    }
}

bool again_accounted(uint32_t message)
{
    for (uint32_t i = 0; i < world.copy_count; i++) {
        const struct copy *copy = &world.copies[i];
        if (copy->message == message && (copy->delivered || copy->given_back)) {
            return true;
        }
    }
    return false;
}
