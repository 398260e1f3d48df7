/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/resync.c - after the daemon had to drop events for us: what we know of each
 * targeted cluster is compared with the directory in shared memory, and the differences are
 * handled as the events that were lost. Asking for everything again would only overflow
 * the daemon's queue once more.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_TRIES 4U

/*
 * Copies a cluster's snapshot. @return instances (freed by the caller), NULL when it cannot be had
 * now
 */
static struct rbi_directory_instance *read_snapshot(struct ringbus *bus,
                                                    uint64_t cluster,
                                                    struct rbi_directory_cluster *head,
                                                    bool *absent)
{
    struct rbi_directory_instance *instances = NULL;
    unsigned room = 64;
    *absent = false;
    for (unsigned i = 0; i < READ_TRIES; i++) {
        struct rbi_directory_instance *larger = realloc(instances, room * sizeof *larger);
        if (larger == NULL) {
            break;
        }
        instances = larger;
        const int r = rbi_directory_read(&bus->directory, cluster, head, instances, room);
        if (r == RBI_DIRECTORY_OK) {
            return instances;
        }
        if (r == RBI_DIRECTORY_ABSENT) {
            *absent = true;
            break;
        }
        if (r == RBI_DIRECTORY_ROOM) {
            room = head->instance_count + 16; /* it may have grown by then */
        }
    }
    free(instances);
    return NULL;
}

static void take_instance(struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_directory_instance *instance)
{
    const struct rbi_member *member = rbi_member_find(cluster, instance->instance);
    if (!cluster->all && member == NULL) {
        return; /* only some of its instances are ours */
    }
    struct rbi_wire_event event = {.change = member != NULL && member->incarnation != 0
                                                 ? RBI_CHANGE_UPDATED
                                                 : RBI_CHANGE_ADDED,
                                   .cluster = cluster->id,
                                   .instance = instance->instance,
                                   .incarnation = instance->incarnation,
                                   .state = instance->state,
                                   .weight = instance->weight};
    rbi_text_format(&event.path, "%s/%.*s", cluster->path, (int)instance->name_length,
                    instance->name);
    rbi_target_event(bus, &event);
}

static void drop_unseen(struct ringbus *bus, struct rbi_cluster *cluster)
{
    for (unsigned m = cluster->member_count; m-- > 0;) {
        const struct rbi_member *member = &cluster->members[m];
        if (member->seen || member->incarnation == 0) {
            continue;
        }
        struct rbi_wire_event event = {.change = RBI_CHANGE_REMOVED,
                                       .cluster = cluster->id,
                                       .instance = member->instance,
                                       .incarnation = member->incarnation,
                                       .reason = RBI_REASON_LEFT};
        rbi_text_set(&event.path, member->path);
        rbi_target_event(bus, &event);
    }
}

static bool resync_cluster(struct ringbus *bus, struct rbi_cluster *cluster)
{
    struct rbi_directory_cluster head = {.instance_count = 0};
    bool absent = false;
    struct rbi_directory_instance *instances = read_snapshot(bus, cluster->id, &head, &absent);
    if (instances == NULL && !absent) {
        return false;
    }
    for (unsigned m = 0; m < cluster->member_count; m++) {
        struct rbi_member *member = &cluster->members[m];
        /* Ourselves we know without the daemon. */
        member->seen = member->end != NULL && member->end->loop;
    }
    for (unsigned i = 0; instances != NULL && i < head.instance_count; i++) {
        take_instance(bus, cluster, &instances[i]);
    }
    free(instances);
    drop_unseen(bus, cluster);
    return true;
}

void rbi_target_resync(struct ringbus *bus)
{
    bool whole = bus->directory_mapped;
    for (unsigned c = 0; c < bus->cluster_count && whole; c++) {
        whole = resync_cluster(bus, bus->clusters[c]);
    }
    if (!whole) {
        rbi_target_resend(bus); /* without a directory that can be read: ask */
    }
    rbi_emit_simple(bus, RINGBUS_EVENT_RESYNC, NULL, NULL, RBI_REASON_NONE, 0);
}
