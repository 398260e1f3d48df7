/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/resync.c - what we know of targets and watched prefixes is compared with the
 * directory in shared memory, and the differences are handled as events: after the daemon
 * had to drop events for us (asking for everything again would only overflow its queue once
 * more), after there was no memory for one, and after a new daemon has heard from everybody who
 * came back to it.
 *
 * In an order that makes sense: who has left goes first, then those come who are new or
 * have changed.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Without SETTLED, or a directory to read: the time that clients need to come back. */
#define SWEEP_AFTER_MS 3000U
/* What could not be read, or found no memory, is read again so soon. */
#define AGAIN_MS 50U

/* ---- one pass over the directory ---------------------------------------------------------- */

typedef void (*instance_fn)(struct ringbus *bus,
                            const struct rbi_directory_cluster *head,
                            const struct rbi_directory_instance *instance);

/* @param wanted  a target: else it may be below no watched prefix */
static bool each_instance_of(struct ringbus *bus, uint64_t id, bool wanted, instance_fn use)
{
    struct rbi_directory_cluster head = {.instance_count = 0};
    bool absent = false;
    struct rbi_directory_instance *instances =
        rbi_directory_snapshot(&bus->directory, id, &head, &absent);
    if (instances == NULL) {
        return absent;
    }
    wanted = wanted || rbi_watched_cluster(bus, head.path, head.path_length);
    for (unsigned i = 0; wanted && i < head.instance_count; i++) {
        use(bus, &head, &instances[i]);
    }
    free(instances);
    return true;
}

/* Targets first, then what is only watched. @return whether all could be read */
static bool each_instance(struct ringbus *bus, instance_fn use)
{
    uint64_t cursor = 0;
    uint64_t id = 0;
    bool whole = true;
    for (unsigned c = 0; c < bus->cluster_count && whole; c++) {
        whole = each_instance_of(bus, bus->clusters[c]->id, true, use);
    }
    while (whole && bus->watches.count > 0 &&
           rbi_directory_next(&bus->directory, &cursor, &id) == RBI_DIRECTORY_OK) {
        if (rbi_cluster_find(bus, id) == NULL) {
            whole = each_instance_of(bus, id, false, use);
        }
    }
    return whole;
}

/* ---- what is seen, what has gone, what is new --------------------------------------------- */

static void see_instance(struct ringbus *bus,
                         const struct rbi_directory_cluster *head,
                         const struct rbi_directory_instance *instance)
{
    const struct rbi_pidf pidf = {.cluster = head->cluster,
                                  .instance = instance->instance,
                                  .incarnation = instance->incarnation};
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, head->cluster);
    struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, instance->instance) : NULL;
    if (member != NULL && member->incarnation == instance->incarnation) {
        member->seen = true;
    }
    rbi_watched_see(bus, &pidf);
}

static void take_instance(struct ringbus *bus,
                          const struct rbi_directory_cluster *head,
                          const struct rbi_directory_instance *instance)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, head->cluster);
    struct rbi_wire_event event = {.change = RBI_CHANGE_ADDED,
                                   .cluster = head->cluster,
                                   .instance = instance->instance,
                                   .incarnation = instance->incarnation,
                                   .state = instance->state,
                                   .weight = instance->weight,
                                   .health = instance->health,
                                   .panic = (head->flags & RBI_CLUSTER_PANIC) != 0};
    rbi_text_format(&event.path, "%.*s/%.*s", (int)head->path_length, head->path,
                    (int)instance->name_length, instance->name);
    const bool targeted =
        cluster != NULL && (cluster->all || rbi_member_find(cluster, instance->instance) != NULL);
    if (targeted || rbi_watched_path(bus, event.path.bytes, event.path.length)) {
        rbi_target_event(bus, &event);
    }
}

/* Nothing of what we know is confirmed any more. */
static void unsee(struct ringbus *bus)
{
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        for (unsigned m = 0; m < bus->clusters[c]->member_count; m++) {
            struct rbi_member *member = &bus->clusters[c]->members[m];
            /* Ourselves we know without the daemon. */
            member->seen = member->end != NULL && member->end->loop;
        }
    }
    rbi_watched_unsee(bus);
}

/*
 * Whoever is linked to us lives, whatever the daemon knows of it: it may be slow to come
 * back, or stand in a debugger. Its link tells when that changes (rbi_target_link_over).
 */
static void drop_unseen(struct ringbus *bus, enum rbi_reason reason, bool spare_linked)
{
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        const struct rbi_cluster *cluster = bus->clusters[c];
        for (unsigned m = cluster->member_count; m-- > 0;) {
            const struct rbi_member *member = &cluster->members[m];
            const bool linked = member->end != NULL && member->end->usable;
            if (!member->seen && member->incarnation != 0 && !(linked && spare_linked)) {
                const struct rbi_pidf pidf = rbi_member_pidf(cluster, member);
                rbi_target_removed(bus, &pidf, member->path, reason);
            }
        }
    }
    rbi_watched_drop_unseen(bus, reason, spare_linked);
}

static bool is_of_the_daemon(const struct ringbus *bus)
{
    return bus->directory_mapped &&
           rbi_directory_daemon(&bus->directory) == bus->control.daemon_incarnation;
}

/* @return false: the directory cannot be read, or is not the daemon's; nothing was dropped */
static bool compare(struct ringbus *bus, enum rbi_reason reason, bool drop, bool spare_linked)
{
    if (!is_of_the_daemon(bus)) {
        return false;
    }
    const uint64_t revision = rbi_directory_revision(&bus->directory);
    if (drop) {
        unsee(bus);
        if (!each_instance(bus, see_instance)) {
            return false;
        }
        drop_unseen(bus, reason, spare_linked);
    }
    const bool whole = each_instance(bus, take_instance);
    if (whole) {
        bus->control.compared_revision = revision;
    }
    return whole;
}

/* ---- when ---------------------------------------------------------------------------------- */

void rbi_target_resync(struct ringbus *bus)
{
    /* While others are still coming back, nobody is missed. */
    const bool drop = !bus->control.settling && bus->sweep_ns == RBI_NEVER;
    if (!compare(bus, RBI_REASON_LEFT, drop, false)) {
        rbi_target_resend(bus); /* without a directory that can be read: ask */
    }
    rbi_emit_simple(bus, RINGBUS_EVENT_RESYNC, NULL, NULL, RBI_REASON_NONE, 0);
}

static void set_reread(struct ringbus *bus)
{
    bus->reread_ns = bus->now_ns + AGAIN_MS * RBI_NS_PER_MS;
    rbi_target_at_most(bus, bus->reread_ns);
}

void rbi_target_missed(struct ringbus *bus)
{
    (void)rbi_fail_errno(bus, -ENOMEM, "news of an instance");
    set_reread(bus);
}

void rbi_target_reread(struct ringbus *bus)
{
    const bool drop = !bus->control.settling && bus->sweep_ns == RBI_NEVER;
    bus->reread_ns = RBI_NEVER; /* taking something in may set it once more */
    if (bus->control.phase == RBI_CONTROL_ON && !compare(bus, RBI_REASON_LEFT, drop, false)) {
        set_reread(bus);
    } /* else the next daemon tells everything anew */
}

void rbi_target_returned(struct ringbus *bus)
{
    unsee(bus);
    rbi_target_resend(bus);
    if (bus->control.protocol < 2) {
        bus->sweep_ns = bus->now_ns + SWEEP_AFTER_MS * RBI_NS_PER_MS;
        rbi_target_at_most(bus, bus->sweep_ns);
    } else if (!bus->control.settling) {
        rbi_target_settled(bus);
        /* Once more when the daemon has surely read our targets: whoever left before it did, and
         * after we looked, is in no event. */
        bus->sweep_ns = bus->now_ns + SWEEP_AFTER_MS * RBI_NS_PER_MS;
        rbi_target_at_most(bus, bus->sweep_ns);
    }
}

void rbi_target_settled(struct ringbus *bus)
{
    bus->control.settling = false;
    rbi_directory_settled(bus);
    if (!compare(bus, RBI_REASON_CRASHED, true, true)) {
        bus->sweep_ns = bus->now_ns + SWEEP_AFTER_MS * RBI_NS_PER_MS;
        rbi_target_at_most(bus, bus->sweep_ns);
    }
}

void rbi_target_sweep(struct ringbus *bus)
{
    bus->sweep_ns = RBI_NEVER;
    rbi_directory_settled(bus);
    if (bus->control.protocol < 2 || !is_of_the_daemon(bus)) {
        drop_unseen(bus, RBI_REASON_CRASHED, true);
    } else if (!compare(bus, RBI_REASON_CRASHED, true, true)) {
        /* It is there and could not be read, as without memory: who was not seen may live. */
        bus->sweep_ns = bus->now_ns + AGAIN_MS * RBI_NS_PER_MS;
        rbi_target_at_most(bus, bus->sweep_ns);
    }
}
