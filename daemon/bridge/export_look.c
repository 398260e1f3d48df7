/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/bridge_config.h"
#include "bus/glob.h"
#include "bus/record.h"
#include "daemon/bridge/export_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_MIN 64U
/* An event may come before what it tells of stands in the directory. */
#define REASON_LOOKS 3U

/* ---- one instance ------------------------------------------------------------------------ */

/**
 * As others are to see it: what its operator has taken out of the choice has weight 0, and who is
 * on its way back has the share of its weight that it has here.
 */
static bool describe(const struct rbi_directory_cluster *head,
                     const struct rbi_directory_instance *instance,
                     struct rbi_remote *out)
{
    char path[RBI_PATH_MAX + 1];
    const size_t length = (size_t)head->path_length + 1 + instance->name_length;
    if (instance->host != 0 || length > RBI_PATH_MAX) {
        return false;
    }
    memset(out, 0, sizeof *out);
    memcpy(path, head->path, head->path_length);
    path[head->path_length] = '/';
    memcpy(path + head->path_length + 1, instance->name, instance->name_length);
    if (rbi_remote_set_path(out, path, length) != 0) {
        return false;
    }
    out->pidf.incarnation = instance->incarnation;
    out->state = instance->state;
    out->health = instance->health;
    out->weight = instance->weight;
    out->reported = instance->reported;
    if (instance->health == RBI_HEALTH_RAMP) {
        const uint32_t ramp = (uint32_t)rbi_min_u64(instance->ramp, 100);
        out->health = RBI_HEALTH_OK;
        out->weight = (uint32_t)rbi_max_u64(out->weight * ramp / 100, out->weight > 0 ? 1 : 0);
        out->reported =
            (uint32_t)rbi_max_u64(out->reported * ramp / 100, out->reported > 0 ? 1 : 0);
    }
    if (instance->override & (RBI_OVERRIDE_ISOLATED | RBI_OVERRIDE_STAGED)) {
        out->weight = 0;
        out->reported = 0;
    }
    memcpy(out->set, instance->set, sizeof out->set);
    memcpy(out->idc, instance->idc, sizeof out->idc);
    memcpy(out->tags, instance->tags, sizeof out->tags);
    return rbi_remote_valid(out);
}

static int by_instance(const void *a, const void *b)
{
    const struct export_one *one = a;
    const struct export_one *other = b;
    return (one->remote.pidf.instance > other->remote.pidf.instance) -
           (one->remote.pidf.instance < other->remote.pidf.instance);
}

/** Why it is gone; taken out. @retval false nobody has said */
static bool take_reason(struct rbi_export *export, const struct rbi_pidf *who, uint32_t *reason)
{
    for (uint32_t i = 0; i < export->reason_count; i++) {
        const struct export_reason *known = &export->reasons[i];
        if (known->who.cluster == who->cluster && known->who.instance == who->instance &&
            known->who.incarnation == who->incarnation) {
            *reason = known->reason;
            export->reasons[i] = export->reasons[--export->reason_count];
            return true;
        }
    }
    return false;
}

/* ---- a cluster --------------------------------------------------------------------------- */

static bool exported(const struct rbi_export *export, const struct rbi_directory_cluster *head)
{
    for (uint32_t i = 0; i < export->globs->count; i++) {
        const char *glob = export->globs->items[i];
        if (rbi_glob_match(glob, strlen(glob), head->path, head->path_length)) {
            return true;
        }
    }
    return false;
}

/** One that is not there any more. @return whether it is kept for another look */
static bool gone(struct rbi_export *export, struct export_one *one, bool wanted, bool settled)
{
    uint32_t reason = RBI_REASON_LEFT; /* what is not exported any more */
    if (wanted && !settled) {
        return true; /* it may be on its way back to a new daemon */
    }
    if (wanted && !take_reason(export, &one->remote.pidf, &reason)) {
        if (!one->missing) {
            one->missing = true; /* the event is under way, perhaps */
            return true;
        }
        reason = RBI_REASON_CRASHED; /* nobody has heard it leave */
    }
    rbi_export_note(export, &one->remote, reason);
    return false;
}

/**
 * Puts two sorted lists together.
 * @param to    room for both
 * @param kept  set: how many are to be looked for again
 * @return how many are exported now
 */
static uint32_t merge(struct rbi_export *export,
                      struct export_cluster *cluster,
                      const struct export_one *now,
                      uint32_t now_count,
                      struct export_one *to,
                      bool wanted,
                      bool settled,
                      uint32_t *kept)
{
    uint32_t old = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < now_count || old < cluster->count;) {
        struct export_one *was = old < cluster->count ? &cluster->ones[old] : NULL;
        const int order = i == now_count ? -1 : !was ? 1 : by_instance(was, &now[i]);
        if (order < 0) {
            if (gone(export, was, wanted, settled)) {
                to[count++] = *was;
                (*kept)++;
            }
            old++;
            continue;
        }
        if (order == 0 && was->remote.pidf.incarnation != now[i].remote.pidf.incarnation) {
            uint32_t reason = RBI_REASON_CRASHED;
            (void)take_reason(export, &was->remote.pidf, &reason);
            rbi_export_note(export, &was->remote, reason);
        }
        if (order > 0 || !rbi_remote_equal(&was->remote, &now[i].remote)) {
            rbi_export_note(export, &now[i].remote, UINT32_MAX);
        }
        to[count++] = now[i];
        old += order == 0 ? 1U : 0U;
        i++;
    }
    return count;
}

static void forget(struct rbi_export *export, struct export_cluster *cluster)
{
    (void)rbi_map_remove(&export->by_id, cluster->id);
    rbi_list_remove(&cluster->in_clusters);
    free(cluster->ones);
    free(cluster);
}

/** What was told of a cluster, against what is there. @retval 0; -ENOMEM */
static int compare(struct rbi_export *export,
                   struct export_cluster *cluster,
                   const struct rbi_directory_cluster *head,
                   bool wanted,
                   bool settled)
{
    const uint32_t most = wanted && head ? head->instance_count : 0;
    struct export_one *now = calloc(most + 1, sizeof *now);
    struct export_one *to = calloc((size_t)most + cluster->count + 1, sizeof *to);
    uint32_t count = 0;
    uint32_t kept = 0;
    if (!now || !to) {
        free(now);
        free(to);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < most; i++) {
        count += describe(head, &export->scratch[i], &now[count].remote) ? 1U : 0U;
    }
    qsort(now, count, sizeof *now, by_instance);
    count = merge(export, cluster, now, count, to, wanted, settled, &kept);
    free(now);
    free(cluster->ones);
    export->count = export->count - cluster->count + count;
    cluster->ones = to;
    cluster->count = count;
    cluster->epoch = head ? head->epoch : 0;
    cluster->again = kept > 0;
    return 0;
}

static struct export_cluster *cluster_of(struct rbi_export *export, uint64_t id, bool make)
{
    struct export_cluster *cluster = rbi_map_get(&export->by_id, id);
    if (cluster || !make) {
        return cluster;
    }
    cluster = calloc(1, sizeof *cluster);
    if (!cluster || rbi_map_put(&export->by_id, id, cluster) < 0) {
        free(cluster);
        return NULL;
    }
    cluster->id = id;
    cluster->again = true;
    rbi_list_push_back(&export->clusters, &cluster->in_clusters);
    return cluster;
}

/** Copies a cluster out of the directory. @retval RBI_DIRECTORY_OK, _ABSENT, _BUSY; -ENOMEM */
static int read_cluster(struct rbi_export *export,
                        const struct rbi_directory_view *view,
                        uint64_t id,
                        struct rbi_directory_cluster *head)
{
    for (;;) {
        const int result = rbi_directory_read(view, id, head, export->scratch, export->scratch_max);
        if (result != RBI_DIRECTORY_ROOM) {
            return result;
        }
        const uint32_t room =
            (uint32_t)rbi_pow2_ceil(rbi_max_u64(head->instance_count, SCRATCH_MIN));
        struct rbi_directory_instance *scratch =
            realloc(export->scratch, room * sizeof *export->scratch);
        if (!scratch) {
            return -ENOMEM;
        }
        export->scratch = scratch;
        export->scratch_max = room;
    }
}

static int
look_at(struct rbi_export *export, const struct rbi_directory_view *view, uint64_t id, bool settled)
{
    struct export_cluster *cluster = cluster_of(export, id, false);
    struct rbi_directory_cluster head;
    if (cluster) {
        cluster->look = export->look;
        if (!cluster->again &&
            (cluster->unwanted || cluster->epoch == rbi_directory_epoch(view, id))) {
            return 0;
        }
    }
    const int result = read_cluster(export, view, id, &head);
    if (result != RBI_DIRECTORY_OK) {
        if (cluster && result == RBI_DIRECTORY_ABSENT) {
            cluster->look--; /* withdrawn meanwhile */
        }
        return result == RBI_DIRECTORY_ABSENT ? 0 : result;
    }
    cluster = cluster_of(export, id, true);
    if (!cluster) {
        return -ENOMEM;
    }
    cluster->look = export->look;
    cluster->unwanted = !exported(export, &head);
    return compare(export, cluster, &head, !cluster->unwanted, settled);
}

/** Clusters that the directory has no more. */
static int look_for_the_rest(struct rbi_export *export, bool settled)
{
    RBI_LIST_EACH(node, spare, &export->clusters)
    {
        struct export_cluster *cluster = RBI_CONTAINER_OF(node, struct export_cluster, in_clusters);
        if (cluster->look == export->look) {
            continue;
        }
        const int result = compare(export, cluster, NULL, !cluster->unwanted, settled);
        if (result != 0) {
            return result;
        }
        if (cluster->count == 0) {
            forget(export, cluster);
        }
    }
    return 0;
}

/** Reasons of those who are not exported, or came back: nobody asks for them any more. */
static void drop_old_reasons(struct rbi_export *export)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < export->reason_count; i++) {
        if (export->look - export->reasons[i].look < REASON_LOOKS) {
            export->reasons[kept++] = export->reasons[i];
        }
    }
    export->reason_count = kept;
}

int rbi_export_look(struct rbi_export *export, const struct rbi_directory_view *view, bool settled)
{
    const uint64_t daemon = rbi_directory_daemon(view);
    uint64_t cursor = 0;
    uint64_t id = 0;
    int result = 0;
    if (daemon != export->daemon || export->globs_changed || (settled && !export->ready)) {
        RBI_LIST_EACH(node, spare, &export->clusters)
        {
            RBI_CONTAINER_OF(node, struct export_cluster, in_clusters)->again = true;
        }
        export->daemon = daemon;
        export->globs_changed = false;
    }
    export->look++;
    while (result == 0 && rbi_directory_next(view, &cursor, &id) == RBI_DIRECTORY_OK) {
        result = look_at(export, view, id, settled);
    }
    result = result == 0 ? look_for_the_rest(export, settled) : result;
    drop_old_reasons(export);
    export->ready = export->ready || (result == 0 && settled);
    return result;
}

bool rbi_export_again(const struct rbi_export *export)
{
    RBI_LIST_EACH(node, spare, &export->clusters)
    {
        if (RBI_CONTAINER_OF(node, struct export_cluster, in_clusters)->again) {
            return true;
        }
    }
    return false;
}
