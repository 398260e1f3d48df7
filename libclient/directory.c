/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/directory.c - the directory as we have it mapped. That of a new daemon is empty
 * at first: until everybody has had time to come back to it, the one of its predecessor is
 * held beside it, so that nobody who lives vanishes for those who ask in between.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/* Epochs are a daemon's own: those of another one may be the same, and mean something else. */
static void forget_epochs(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        bus->clusters[i]->looked_epoch = 0;
        bus->clusters[i]->policy_epoch = 0;
    }
    if (bus->owned != NULL) {
        bus->owned->cluster->looked_epoch = 0;
    }
    bus->gate.epoch = 0;
    bus->directory_revision = 0;
}

int rbi_directory_map(struct ringbus *bus, int fd, uint64_t bytes, bool hold)
{
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    struct rbi_directory_view view;
    int r = rbi_segment_adopt(&segment, fd, RBI_SEGMENT_DIRECTORY, bytes, bytes);
    if (r == 0) {
        r = rbi_directory_view_init(&view, segment.base, segment.size);
    }
    if (r < 0) {
        rbi_segment_deinit(&segment);
        return r;
    }
    if (hold && bus->directory_mapped && bus->held_segment.base == NULL) {
        bus->held_segment = bus->directory_segment;
        bus->held_directory = bus->directory;
    } else {
        rbi_segment_deinit(&bus->directory_segment);
    }
    bus->directory_segment = segment;
    bus->directory = view;
    bus->directory_mapped = true;
    forget_epochs(bus);
    return 0;
}

void rbi_directory_release_held(struct ringbus *bus)
{
    rbi_segment_deinit(&bus->held_segment);
    bus->held_segment = (struct rbi_segment)RBI_SEGMENT_NULL;
    free(bus->gone);
    bus->gone = NULL;
    bus->gone_count = 0;
}

void rbi_directory_settled(struct ringbus *bus)
{
    const bool differs = bus->held_segment.base != NULL || bus->gone_count > 0;
    rbi_directory_release_held(bus);
    if (differs) {
        forget_epochs(bus); /* whom it alone listed counts no more, also for which slots are ours */
    }
}

#define READ_TRIES 4U

bool rbi_directory_is_far(const struct ringbus *bus, const struct rbi_pidf *pidf)
{
    struct rbi_directory_cluster head = {.instance_count = 0};
    bool absent = false;
    bool far = false;
    struct rbi_directory_instance *instances =
        bus->directory_mapped
            ? rbi_directory_snapshot(&bus->directory, pidf->cluster, &head, &absent)
            : NULL;
    for (unsigned i = 0; instances != NULL && i < head.instance_count; i++) {
        far = far || (instances[i].instance == pidf->instance && instances[i].host != 0);
    }
    free(instances);
    return far;
}

struct rbi_directory_instance *rbi_directory_snapshot(const struct rbi_directory_view *view,
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
        const int r = rbi_directory_read_all(view, cluster, head, instances, room);
        if (r == RBI_DIRECTORY_OK) {
            return instances;
        }
        if (r == RBI_DIRECTORY_ABSENT) {
            *absent = true;
            break;
        }
        if (r == RBI_DIRECTORY_ROOM) {
            room = head->instance_count + head->absent_count + 16; /* it may have grown by then */
        }
    }
    free(instances);
    return NULL;
}

void rbi_directory_look(struct ringbus *bus)
{
    const uint64_t revision = rbi_directory_revision(&bus->directory);
    if (RBI_LIKELY(revision == bus->directory_revision)) {
        return;
    }
    bus->directory_revision = revision;
    rbi_labels_look(bus); /* first: our set and tags say what is ours */
    if (bus->owned != NULL) {
        rbi_owned_look(bus);
    }
    rbi_gate_look(bus);
    /* The policy of one may bring others, or let go of them: those are looked at as well. */
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        struct rbi_cluster *cluster = bus->clusters[i];
        rbi_cluster_look_policy(bus, cluster);
        if (rbi_directory_epoch(&bus->directory, cluster->id) != cluster->looked_epoch) {
            rbi_directory_look_at(bus, cluster);
        }
    }
}

void rbi_directory_look_at(struct ringbus *bus, struct rbi_cluster *cluster)
{
    struct rbi_directory_cluster head = {.epoch = 0};
    if (!bus->directory_mapped) {
        return;
    }
    const int r = rbi_directory_read(&bus->directory, cluster->id, &head, NULL, 0);
    if (r == RBI_DIRECTORY_BUSY) {
        rbi_cluster_changed(bus, cluster);
        bus->directory_revision = 0; /* looked at again with the next tick */
    } else if (head.epoch != cluster->looked_epoch) {
        /* Only then: of clusters that import each other, each look would make the others anew. */
        rbi_cluster_changed(bus, cluster);
        if (r == RBI_DIRECTORY_ABSENT || rbi_cluster_take_policy(bus, cluster, head.policy)) {
            cluster->looked_epoch = head.epoch;
        }
    }
}

/* ---- who is known to be dead ---------------------------------------------------------------- */

static bool is_gone(const struct ringbus *bus, uint64_t cluster, int32_t instance, uint32_t life)
{
    for (unsigned i = 0; i < bus->gone_count; i++) {
        const struct rbi_pidf *gone = &bus->gone[i];
        if (gone->cluster == cluster && gone->instance == instance && gone->incarnation == life) {
            return true;
        }
    }
    return false;
}

void rbi_directory_note_gone(struct ringbus *bus, const struct rbi_pidf *pidf)
{
    if (is_gone(bus, pidf->cluster, pidf->instance, pidf->incarnation)) {
        return;
    }
    struct rbi_pidf *gone = realloc(bus->gone, (bus->gone_count + 1U) * sizeof *gone);
    if (gone != NULL) {
        bus->gone = gone;
        bus->gone[bus->gone_count++] = *pidf;
    } /* else it is listed until a daemon has settled */
}

static void leave_out_gone(const struct ringbus *bus,
                           struct rbi_directory_cluster *head,
                           struct rbi_directory_instance *instances)
{
    unsigned kept = 0;
    if (bus->gone_count == 0) {
        return;
    }
    for (unsigned i = 0; i < head->instance_count; i++) {
        if (!is_gone(bus, head->cluster, instances[i].instance, instances[i].incarnation)) {
            instances[kept++] = instances[i];
        }
    }
    memmove(&instances[kept], &instances[head->instance_count],
            head->absent_count * sizeof *instances);
    head->instance_count = kept;
}

/* ---- a list of instances -------------------------------------------------------------------- */

static bool lists(const struct rbi_directory_instance *instances, unsigned count, int32_t instance)
{
    for (unsigned i = 0; i < count; i++) {
        if (instances[i].instance == instance) {
            return true;
        }
    }
    return false;
}

/* Adds those of the predecessor's list whom the new one does not name, not even as absent. */
static struct rbi_directory_instance *add_held(struct ringbus *bus,
                                               uint64_t cluster,
                                               struct rbi_directory_cluster *head,
                                               struct rbi_directory_instance *instances)
{
    struct rbi_directory_cluster held_head;
    bool absent = false;
    struct rbi_directory_instance *held =
        rbi_directory_snapshot(&bus->held_directory, cluster, &held_head, &absent);
    if (held == NULL) {
        return instances;
    }
    unsigned added = 0;
    for (unsigned i = 0; i < held_head.instance_count; i++) {
        if (!lists(instances, head->instance_count + head->absent_count, held[i].instance) &&
            !is_gone(bus, cluster, held[i].instance, held[i].incarnation)) {
            held[added++] = held[i];
        }
    }
    struct rbi_directory_instance *all =
        realloc(instances, (head->instance_count + head->absent_count + added + 1U) * sizeof *all);
    if (all == NULL) {
        free(held);
        return instances;
    }
    memmove(&all[head->instance_count + added], &all[head->instance_count],
            head->absent_count * sizeof *all);
    memcpy(&all[head->instance_count], held, added * sizeof *all);
    head->instance_count += added;
    free(held);
    return all;
}

struct rbi_directory_instance *rbi_directory_list(struct ringbus *bus,
                                                  uint64_t cluster,
                                                  struct rbi_directory_cluster *head,
                                                  bool *absent)
{
    /* Whom a daemon names that we are registered with lives, whatever became of a link to it. */
    bool live = bus->control.phase == RBI_CONTROL_ON;
    struct rbi_directory_instance *instances =
        rbi_directory_snapshot(&bus->directory, cluster, head, absent);
    if (bus->held_segment.base != NULL && *absent) {
        instances = rbi_directory_snapshot(&bus->held_directory, cluster, head, absent);
        live = false;
    } else if (bus->held_segment.base != NULL && instances != NULL) {
        instances = add_held(bus, cluster, head, instances);
    }
    if (instances != NULL && !live) {
        leave_out_gone(bus, head, instances);
    }
    return instances;
}
