/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/publish.h"

#include "daemon/daemon.h"
#include "daemon/demand.h"
#include "daemon/hello.h"
#include "daemon/log.h"
#include "daemon/mock.h"
#include "daemon/policy.h"
#include "daemon/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int publish_create(struct rbi_daemon *daemon, struct rbi_publish *publish)
{
    const uint64_t bytes = rbi_align_up(
        rbi_directory_size(publish->slots, publish->clusters, publish->heap_bytes), RBI_PAGE);
    if (bytes > RBI_DIRECTORY_BYTES_MAX) {
        return -ENOMEM;
    }
    const int result =
        rbi_segment_create(&publish->segment, "ringbus-directory", RBI_SEGMENT_DIRECTORY, bytes, 0);
    if (result < 0) {
        return result;
    }
    rbi_directory_writer_init(&publish->writer, publish->segment.base, publish->segment.size,
                              publish->slots, publish->clusters, daemon->incarnation);
    return 0;
}

int rbi_publish_init(struct rbi_daemon *daemon)
{
    daemon->publish = (struct rbi_publish){.segment = RBI_SEGMENT_NULL,
                                           .slots = daemon->config.directory.slots,
                                           .clusters = daemon->config.directory.clusters,
                                           .heap_bytes = daemon->config.directory.snapshot_bytes};
    const int result = rbi_blobs_init(&daemon->publish.blobs);
    return result < 0 ? result : publish_create(daemon, &daemon->publish);
}

void rbi_publish_deinit(struct rbi_publish *publish)
{
    rbi_segment_deinit(&publish->segment);
    free(publish->scratch);
    publish->scratch = NULL;
    rbi_blobs_deinit(&publish->blobs);
}

static void publish_copy(char *to, size_t size, const char *from)
{
    const size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
}

void rbi_publish_describe(struct rbi_directory_instance *out, const struct rbi_endpoint *endpoint)
{
    const char *name = endpoint->path.bytes + endpoint->name_offset;
    *out = (struct rbi_directory_instance){.instance = endpoint->instance,
                                           .incarnation = endpoint->incarnation,
                                           .state = endpoint->state,
                                           .weight = endpoint->seen.weight,
                                           .override = endpoint->seen.override,
                                           .health = rbi_origin_health(endpoint),
                                           .ramp = endpoint->health.ramp,
                                           .ready_ns = endpoint->ready_ns,
                                           .node = endpoint->node,
                                           .reported = rbi_reported_seen(endpoint),
                                           .name_length = (uint32_t)strlen(name)};
    publish_copy(out->name, sizeof(out->name), name);
    publish_copy(out->set, sizeof(out->set), endpoint->seen.set);
    publish_copy(out->idc, sizeof(out->idc), endpoint->seen.idc);
    publish_copy(out->tags, sizeof(out->tags), endpoint->seen.tags);
    rbi_origin_describe(endpoint, out);
    rbi_demand_fill(endpoint->cluster, out);
}

/** Adds those of the daemon before who are not back yet, in order of instance. */
static uint32_t publish_add_unconfirmed(struct rbi_publish *publish,
                                        const struct rbi_cluster *cluster,
                                        uint32_t count)
{
    const struct rbi_unconfirmed *unconfirmed = &cluster->unconfirmed;
    uint32_t from = count;
    uint32_t other = unconfirmed->count;
    uint32_t to = count + other;
    while (other > 0) {
        const bool later = from > 0 && publish->scratch[from - 1].instance >
                                           unconfirmed->instances[other - 1].instance;
        publish->scratch[--to] = later ? publish->scratch[--from] : unconfirmed->instances[--other];
    }
    return count + unconfirmed->count;
}

static bool publish_reserve(struct rbi_publish *publish, uint32_t count)
{
    if (count <= publish->scratch_capacity) {
        return true;
    }
    const uint32_t capacity = (uint32_t)rbi_pow2_ceil(count);
    struct rbi_directory_instance *scratch =
        realloc(publish->scratch, capacity * sizeof(struct rbi_directory_instance));
    if (!scratch) {
        return false;
    }
    publish->scratch = scratch;
    publish->scratch_capacity = capacity;
    return true;
}

/** What is to be published of a cluster, its instances, then its absent ones, in the scratch.
 * @retval 0; -ENOMEM */
static int publish_collect(struct rbi_publish *publish,
                           const struct rbi_cluster *cluster,
                           struct rbi_directory_cluster *head)
{
    *head =
        (struct rbi_directory_cluster){.cluster = cluster->id,
                                       .epoch = cluster->epoch,
                                       .flags = rbi_health_panics(cluster) ? RBI_CLUSTER_PANIC : 0U,
                                       .absent_count = cluster->absent.count,
                                       .policy = cluster->policy_key,
                                       .path_length = cluster->path.length};
    if (!publish_reserve(publish, cluster->member_count + cluster->unconfirmed.count +
                                      cluster->absent.count)) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        if (cluster->members[i]->visible) {
            rbi_publish_describe(&publish->scratch[head->instance_count++], cluster->members[i]);
        }
    }
    head->instance_count = publish_add_unconfirmed(publish, cluster, head->instance_count);
    if (cluster->absent.count > 0) {
        memcpy(&publish->scratch[head->instance_count], cluster->absent.who,
               cluster->absent.count * sizeof(*cluster->absent.who));
    }
    memcpy(head->path, cluster->path.bytes, cluster->path.length);
    return 0;
}

/** @retval RBI_PUBLISH_OK; RBI_PUBLISH_FULL; -ENOMEM */
static int publish_write(struct rbi_publish *publish, const struct rbi_cluster *cluster)
{
    struct rbi_directory_cluster head;
    const int result = publish_collect(publish, cluster, &head);
    return result < 0 ? result : rbi_directory_publish(&publish->writer, &head, publish->scratch);
}

/** Every cluster that the old segment holds; those never published wait for their turn. */
static int publish_write_all(struct rbi_publish *publish,
                             struct rbi_blobs *blobs,
                             struct rbi_registry *registry)
{
    const int blobs_result = rbi_blobs_write(blobs, &publish->writer);
    if (blobs_result != RBI_PUBLISH_OK) {
        return blobs_result;
    }
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    const struct rbi_cluster *cluster = NULL;
    while ((cluster = rbi_map_next(&registry->clusters, &cursor)) != NULL) {
        if (cluster->epoch == 0) {
            continue;
        }
        const int result = publish_write(publish, cluster);
        if (result != RBI_PUBLISH_OK) {
            return result;
        }
    }
    rbi_directory_set_revision(&publish->writer, registry->revision);
    return RBI_PUBLISH_OK;
}

/** Makes @p next take over from the segment in use. */
static void publish_switch(struct rbi_daemon *daemon, struct rbi_publish *next)
{
    struct rbi_publish old = daemon->publish;
    next->growths = old.growths + 1;
    next->scratch = old.scratch;
    next->scratch_capacity = old.scratch_capacity;
    next->blobs = old.blobs;
    daemon->publish = *next;
    rbi_restore_keep(daemon);
    rbi_hello_send_all(daemon);
    /* The mark comes last: who sees it finds the new segment in its socket. */
    rbi_directory_supersede(&old.writer);
    rbi_segment_deinit(&old.segment);
    rbi_log(RBI_LOG_INFO, "directory_grown",
            "slots=%" PRIu32 " clusters=%" PRIu32 " snapshot_bytes=%" PRIu64, next->slots,
            next->clusters, next->heap_bytes);
}

/** Moves to a segment with at least these dimensions, larger still if that is not enough. */
static int
publish_grow(struct rbi_daemon *daemon, uint32_t slots, uint32_t clusters, uint64_t heap_bytes)
{
    int result = RBI_PUBLISH_FULL;
    while (result == RBI_PUBLISH_FULL) {
        struct rbi_publish next = {.segment = RBI_SEGMENT_NULL,
                                   .slots = slots,
                                   .clusters = clusters,
                                   .heap_bytes = heap_bytes,
                                   .scratch = daemon->publish.scratch,
                                   .scratch_capacity = daemon->publish.scratch_capacity};
        result = publish_create(daemon, &next);
        if (result < 0) {
            break;
        }
        result = publish_write_all(&next, &daemon->publish.blobs, &daemon->registry);
        daemon->publish.scratch = next.scratch;
        daemon->publish.scratch_capacity = next.scratch_capacity;
        if (result == RBI_PUBLISH_OK) {
            publish_switch(daemon, &next);
            return 0;
        }
        rbi_segment_deinit(&next.segment);
        clusters *= 2;
        heap_bytes *= 2;
    }
    rbi_log(RBI_LOG_ERROR, "directory_full", "bytes=%" PRIu64 " error=\"%s\"",
            daemon->publish.segment.size, rbi_log_errno(-result));
    return result;
}

/** The segment was full: a larger one, in which what was refused has its place as well. */
static int publish_make_room(struct rbi_daemon *daemon)
{
    const struct rbi_publish *publish = &daemon->publish;
    const bool table_full = publish->writer.cluster_count >= publish->clusters;
    return publish_grow(daemon, publish->slots,
                        table_full ? publish->clusters * 2 : publish->clusters,
                        table_full ? publish->heap_bytes : publish->heap_bytes * 2);
}

int rbi_publish_blob(struct rbi_daemon *daemon, uint64_t key, const void *bytes, uint64_t size)
{
    const int result = rbi_directory_publish_blob(&daemon->publish.writer, key, bytes, size);
    return result == RBI_PUBLISH_FULL ? publish_make_room(daemon) : result;
}

/** Makes the cluster name the policy that holds for it. @return the key to be released, or 0 */
static uint64_t publish_policy(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    const struct rbi_policy *policy = rbi_daemon_policy(daemon, cluster);
    const uint64_t old = cluster->policy_key;
    uint64_t key = policy->fingerprint;
    if (key == rbi_policy_default_fingerprint()) {
        key = 0;
    }
    if (key == old) {
        return 0;
    }
    if (key != 0) {
        rbi_mocks_hold(daemon, policy);
        const int result = rbi_blob_hold(daemon, key, policy, sizeof(*policy));
        if (result < 0) {
            rbi_log(RBI_LOG_ERROR, "policy_stale", "cluster=%s error=\"%s\"", cluster->path.bytes,
                    rbi_log_errno(-result));
            return 0;
        }
    }
    cluster->policy_key = key;
    return old;
}

void rbi_publish_table(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    struct rbi_directory_cluster head;
    if (cluster->table && publish_collect(&daemon->publish, cluster, &head) == 0) {
        /* It may have the directory grow, which needs the scratch: nothing of it is used after. */
        rbi_table_follow(cluster, &head, daemon->publish.scratch);
    }
}

int rbi_publish_cluster(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    const uint64_t old_policy = publish_policy(daemon, cluster);
    rbi_reported_follow(daemon, cluster);
    rbi_origin_judge(daemon, cluster);
    rbi_publish_table(daemon, cluster);
    int result = publish_write(&daemon->publish, cluster);
    if (result == RBI_PUBLISH_FULL) {
        result = publish_make_room(daemon);
    } else if (result == RBI_PUBLISH_OK) {
        rbi_directory_set_revision(&daemon->publish.writer, daemon->registry.revision);
    }
    rbi_mocks_release(daemon, old_policy);
    rbi_blob_release(daemon, old_policy);
    rbi_table_settle(cluster);
    return result;
}

void rbi_publish_withdraw(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    rbi_directory_withdraw(&daemon->publish.writer, cluster->id);
    rbi_mocks_release(daemon, cluster->policy_key);
    rbi_blob_release(daemon, cluster->policy_key);
    cluster->policy_key = 0;
    rbi_table_free(cluster);
    rbi_directory_set_revision(&daemon->publish.writer, daemon->registry.revision);
}

void rbi_publish_revision(struct rbi_daemon *daemon)
{
    rbi_directory_set_revision(&daemon->publish.writer, daemon->registry.revision);
}

int rbi_publish_slot(struct rbi_daemon *daemon, uint32_t slot)
{
    const struct rbi_publish *publish = &daemon->publish;
    if (slot < publish->slots) {
        return 0;
    }
    return publish_grow(daemon, (uint32_t)rbi_pow2_ceil((uint64_t)slot + 1), publish->clusters,
                        publish->heap_bytes);
}

void rbi_publish_bump(struct rbi_daemon *daemon, uint32_t slot)
{
    rbi_directory_bump(&daemon->publish.writer, slot);
}
