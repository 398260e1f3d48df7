/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/restore.h"

#include "bus/directory.h"
#include "bus/pidf.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A cluster with more has never been in a directory that a client could read. */
#define INSTANCES_MAX 65536U

/* Far from the end, so that it can go on growing for as long as it likes. */
#define REVISION_MAX (UINT64_MAX / 2)

/** A stored directory, mapped. */
struct stored {
    struct rbi_segment segment;
    struct rbi_directory_view view;
    /* The highest epoch found, if that is ahead: a daemon that was killed between writing a
     * snapshot and saying so has left it like that, and both are whole. */
    uint64_t revision;
};

/* ---- checking -------------------------------------------------------------------------- */

static bool instance_is_sound(const struct rbi_directory_cluster *head,
                              const struct rbi_directory_instance *instance)
{
    char path[RBI_PATH_MAX + RBI_PATH_ELEMENT_MAX + 2];
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    const int length = snprintf(path, sizeof(path), "%s/%s", head->path, instance->name);
    return length > 0 && (size_t)length <= RBI_PATH_MAX &&
           strlen(instance->name) == instance->name_length &&
           rbi_pidf_parse(path, (size_t)length, &pidf, &info) == 0 &&
           info.elements == RBI_PATH_INSTANCE_ELEMENTS && pidf.cluster == head->cluster &&
           pidf.instance == instance->instance && instance->incarnation != 0 &&
           instance->weight <= RBI_WEIGHT_MAX && rbi_registry_state_visible(instance->state);
}

static bool cluster_is_sound(const struct rbi_directory_cluster *head,
                             const struct rbi_directory_instance *instances)
{
    struct rbi_path_info info;
    if (head->epoch == 0 || head->epoch > REVISION_MAX || strlen(head->path) != head->path_length ||
        rbi_path_parse(head->path, head->path_length, &info) != 0 ||
        info.elements != RBI_PATH_CLUSTER_ELEMENTS ||
        rbi_cluster_id(head->path, head->path_length) != head->cluster) {
        return false;
    }
    for (uint32_t i = 0; i < head->instance_count; i++) {
        if (!instance_is_sound(head, &instances[i]) ||
            (i > 0 && instances[i].instance <= instances[i - 1].instance)) {
            return false;
        }
    }
    return true;
}

/** Copies a cluster's snapshot and checks it. @retval 0; -EPROTO; -ENOMEM */
static int stored_read(const struct stored *stored,
                       uint64_t id,
                       struct rbi_directory_cluster *head,
                       struct rbi_directory_instance **out)
{
    int result = rbi_directory_read(&stored->view, id, head, NULL, 0);
    if ((result != RBI_DIRECTORY_OK && result != RBI_DIRECTORY_ROOM) ||
        head->instance_count > INSTANCES_MAX) {
        return -EPROTO;
    }
    const uint32_t count = head->instance_count;
    struct rbi_directory_instance *instances = calloc(count + 1, sizeof(*instances));
    if (!instances) {
        return -ENOMEM;
    }
    result = rbi_directory_read(&stored->view, id, head, instances, count);
    if (result != RBI_DIRECTORY_OK || head->instance_count != count ||
        !cluster_is_sound(head, instances)) {
        free(instances);
        return -EPROTO;
    }
    *out = instances;
    return 0;
}

/** @param context  what the walk was given */
typedef int (*stored_fn)(void *context,
                         const struct rbi_directory_cluster *head,
                         struct rbi_directory_instance *instances);

/** Calls for each cluster; @p use takes the instances over. Stops at the first that fails. */
static int stored_each(const struct stored *stored, stored_fn use, void *context)
{
    uint64_t cursor = 0;
    uint64_t id = 0;
    while (rbi_directory_next(&stored->view, &cursor, &id) == RBI_DIRECTORY_OK) {
        struct rbi_directory_cluster head = {.cluster = 0};
        struct rbi_directory_instance *instances = NULL;
        int result = stored_read(stored, id, &head, &instances);
        if (result == 0) {
            result = use(context, &head, instances);
        }
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

static int stored_look(void *context,
                       const struct rbi_directory_cluster *head,
                       struct rbi_directory_instance *instances)
{
    struct stored *stored = context;
    stored->revision = rbi_max_u64(stored->revision, head->epoch);
    free(instances);
    return 0;
}

static void stored_close(struct stored *stored)
{
    rbi_segment_deinit(&stored->segment);
}

/** Maps one and looks at all of it. @retval 0; -errno */
static int stored_open(struct stored *stored, int fd)
{
    *stored = (struct stored){.segment = RBI_SEGMENT_NULL};
    int result = rbi_segment_adopt(&stored->segment, fd, RBI_SEGMENT_DIRECTORY, RBI_PAGE,
                                   RBI_SEGMENT_SIZE_MAX);
    if (result < 0) {
        return result;
    }
    result = rbi_directory_view_init(&stored->view, stored->segment.base, stored->segment.size);
    if (result == 0) {
        stored->revision = rbi_directory_revision(&stored->view);
        result =
            stored->revision > REVISION_MAX ? -EPROTO : stored_each(stored, stored_look, stored);
    }
    if (result < 0) {
        stored_close(stored);
    }
    return result;
}

/* ---- taking over ----------------------------------------------------------------------- */

static int stored_take(void *context,
                       const struct rbi_directory_cluster *head,
                       struct rbi_directory_instance *instances)
{
    struct rbi_daemon *daemon = context;
    if (rbi_registry_cluster(&daemon->registry, head->cluster)) {
        free(instances); /* listed twice: a look-up finds the first, and so did we */
        return 0;
    }
    struct rbi_cluster *cluster =
        rbi_registry_restore(daemon, head->cluster, head->path, head->path_length, head->epoch);
    if (!cluster) {
        free(instances);
        return -ENOMEM;
    }
    if (head->instance_count) {
        rbi_unconfirmed_set(daemon, cluster, instances, head->instance_count);
    } else {
        free(instances);
        rbi_registry_set_idle(daemon, cluster);
    }
    return rbi_publish_cluster(daemon, cluster);
}

/** Of two, the one that was written last: the manager may still hold one that was outgrown. */
static int stored_open_best(struct stored *best, const int *fds, unsigned fd_count)
{
    int found = -ENOENT;
    for (unsigned i = 0; i < fd_count; i++) {
        struct stored stored;
        if (fds[i] < 0) {
            continue;
        }
        const int result = stored_open(&stored, fds[i]);
        (void)close(fds[i]);
        if (result < 0) {
            rbi_log(RBI_LOG_WARNING, "stored_directory_left",
                    "why=\"%s\" effect=\"starts without it, from what clients tell\"",
                    result == -EPROTO ? "another layout, or not whole" : rbi_log_errno(-result));
            found = found == 0 ? 0 : result;
        } else if (found == 0 && stored.revision <= best->revision) {
            stored_close(&stored);
        } else {
            if (found == 0) {
                stored_close(best);
            }
            *best = stored;
            found = 0;
        }
    }
    return found;
}

void rbi_restore_consume_fds(struct rbi_daemon *daemon, const int *fds, unsigned fd_count)
{
    struct stored stored;
    if (stored_open_best(&stored, fds, fd_count) < 0) {
        return;
    }
    daemon->registry.revision = stored.revision;
    if (stored_each(&stored, stored_take, daemon) < 0) {
        rbi_log(RBI_LOG_ERROR, "stored_directory_cut", "why=\"out of memory\"");
    }
    rbi_log(RBI_LOG_INFO, "directory_restored",
            "clusters=%" PRIu64 " instances=%" PRIu32 " revision=%" PRIu64,
            rbi_map_count(&daemon->registry.clusters), rbi_unconfirmed_count(daemon),
            stored.revision);
    stored_close(&stored);
}

void rbi_restore(struct rbi_daemon *daemon)
{
    int fds[RBI_NOTIFY_STORED];
    for (unsigned i = 0; i < RBI_NOTIFY_STORED; i++) {
        fds[i] = rbi_notify_stored_fd(i);
    }
    rbi_restore_consume_fds(daemon, fds, RBI_NOTIFY_STORED);
    daemon->restored = true;
    rbi_restore_keep(daemon);
}

void rbi_restore_keep(struct rbi_daemon *daemon)
{
    /* Before, it holds a part only, and the manager has the whole. */
    if (daemon->restored) {
        rbi_notify_store(daemon->publish.segment.fd);
    }
}
