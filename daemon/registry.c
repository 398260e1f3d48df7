/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/registry.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/policy.h"
#include "daemon/registry_numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int rbi_registry_init(struct rbi_registry *registry)
{
    *registry = (struct rbi_registry){.next_number = 1};
    rbi_list_init(&registry->endpoints);
    rbi_list_init(&registry->idle);
    rbi_list_init(&registry->unconfirmed);
    uint32_t base[2] = {0};
    if (getrandom(base, sizeof(base), 0) != (ssize_t)sizeof(base)) {
        return -EIO;
    }
    /* Random, so that the lives of a new daemon are not taken for those of the last. */
    registry->next_incarnation = (base[0] & 0x3fffffffU) + 1;
    /* And so that its anonymous clients do not meet those that come back from the last. */
    registry->next_anonymous = (base[1] & 0x3fffffffU) + 1;
    return rbi_map_init(&registry->clusters);
}

static void cluster_free(struct rbi_cluster *cluster)
{
    rbi_health_cluster_gone(cluster);
    rbi_list_remove(&cluster->in_reported);
    rbi_unconfirmed_free(cluster);
    rbi_absent_free(cluster);
    rbi_table_free(cluster);
    free(cluster->members);
    free(cluster);
}

void rbi_registry_deinit(struct rbi_registry *registry)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_cluster *cluster = NULL;
    if (registry->clusters.ready) {
        while ((cluster = rbi_map_next(&registry->clusters, &cursor)) != NULL) {
            cluster_free(cluster);
        }
    }
    rbi_map_deinit(&registry->clusters);
    free(registry->free_slots);
}

/* ---- clusters -------------------------------------------------------------------------- */

struct rbi_cluster *rbi_registry_cluster(struct rbi_registry *registry, uint64_t id)
{
    return rbi_map_get(&registry->clusters, id);
}

/** Index of the first member whose instance is not below @p instance. */
static uint32_t cluster_lower_bound(const struct rbi_cluster *cluster, int32_t instance)
{
    uint32_t low = 0;
    uint32_t high = cluster->member_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (cluster->members[middle]->instance < instance) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct rbi_endpoint *rbi_cluster_member(const struct rbi_cluster *cluster, int32_t instance)
{
    const uint32_t idx = cluster_lower_bound(cluster, instance);
    return idx < cluster->member_count && cluster->members[idx]->instance == instance
               ? cluster->members[idx]
               : NULL;
}

static bool cluster_insert(struct rbi_cluster *cluster, struct rbi_endpoint *endpoint)
{
    if (cluster->member_count == cluster->member_capacity) {
        const uint32_t capacity = cluster->member_capacity ? cluster->member_capacity * 2 : 4;
        struct rbi_endpoint **members =
            realloc(cluster->members, capacity * sizeof(struct rbi_endpoint *));
        if (!members) {
            return false;
        }
        cluster->members = members;
        cluster->member_capacity = capacity;
    }
    const uint32_t idx = cluster_lower_bound(cluster, endpoint->instance);
    memmove(&cluster->members[idx + 1], &cluster->members[idx],
            (cluster->member_count - idx) * sizeof(struct rbi_endpoint *));
    cluster->members[idx] = endpoint;
    cluster->member_count++;
    return true;
}

static struct rbi_cluster *
cluster_new(struct rbi_registry *registry, uint64_t id, const char *path, uint32_t length)
{
    struct rbi_cluster *cluster = calloc(1, sizeof(*cluster));
    if (!cluster) {
        return NULL;
    }
    cluster->id = id;
    cluster->path.length = (uint16_t)length;
    memcpy(cluster->path.bytes, path, length);
    rbi_list_init(&cluster->in_idle);
    rbi_list_init(&cluster->in_reported);
    rbi_list_init(&cluster->unconfirmed.in_registry);
    rbi_list_init(&cluster->absent.in_absences);
    if (rbi_map_put(&registry->clusters, cluster->id, cluster) < 0) {
        free(cluster);
        return NULL;
    }
    return cluster;
}

void rbi_registry_set_idle(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    struct rbi_registry *registry = &daemon->registry;
    if (cluster->member_count || cluster->unconfirmed.count || cluster->absent.count ||
        !rbi_list_empty(&cluster->in_idle) || daemon->stopping) {
        return;
    }
    cluster->empty_ns = rbi_loop_now_ns(daemon->loop);
    rbi_list_push_back(&registry->idle, &cluster->in_idle);
    if (++registry->idle_count <= RBI_IDLE_CLUSTERS_MAX) {
        return;
    }
    struct rbi_cluster *oldest = RBI_LIST_FIRST(&registry->idle, struct rbi_cluster, in_idle);
    (void)rbi_registry_forget(daemon, oldest);
}

bool rbi_registry_forget(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    struct rbi_registry *registry = &daemon->registry;
    if (rbi_list_empty(&cluster->in_idle)) {
        return false;
    }
    rbi_list_remove(&cluster->in_idle);
    registry->idle_count--;
    daemon->known.dirty |= cluster->known;
    rbi_publish_withdraw(daemon, cluster);
    (void)rbi_map_remove(&registry->clusters, cluster->id);
    cluster_free(cluster);
    return true;
}

void rbi_registry_linger(struct rbi_daemon *daemon)
{
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    const uint64_t linger_ns = (uint64_t)daemon->config.daemon.cluster_linger_ms * 1000000;
    struct rbi_list *idle = &daemon->registry.idle;
    while (!rbi_list_empty(idle)) {
        struct rbi_cluster *oldest = RBI_LIST_FIRST(idle, struct rbi_cluster, in_idle);
        if (now_ns - oldest->empty_ns < linger_ns) {
            break;
        }
        (void)rbi_registry_forget(daemon, oldest);
    }
}

/* ---- publishing ------------------------------------------------------------------------ */

static int registry_publish(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    cluster->epoch = ++daemon->registry.revision;
    return rbi_publish_cluster(daemon, cluster);
}

/** Publishes what cannot be refused; a full directory is the one thing left to say. */
static void registry_publish_or_log(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    const int result = registry_publish(daemon, cluster);
    if (result < 0) {
        rbi_log(RBI_LOG_ERROR, "directory_stale", "cluster=%s error=\"%s\"", cluster->path.bytes,
                rbi_log_errno(-result));
        rbi_publish_withdraw(daemon, cluster);
    }
}

void rbi_registry_refresh(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    registry_publish_or_log(daemon, cluster);
    rbi_registry_set_idle(daemon, cluster);
}

struct rbi_cluster *rbi_registry_restore(
    struct rbi_daemon *daemon, uint64_t id, const char *path, uint32_t length, uint64_t epoch)
{
    struct rbi_cluster *cluster = cluster_new(&daemon->registry, id, path, length);
    if (cluster) {
        cluster->epoch = epoch;
        cluster->known = true;
        daemon->known.dirty = true;
    }
    return cluster;
}

void rbi_registry_know(struct rbi_daemon *daemon,
                       const char *path,
                       uint32_t length,
                       uint64_t empty_for_ns)
{
    const uint64_t id = rbi_cluster_id(path, length);
    if (rbi_registry_cluster(&daemon->registry, id)) {
        return;
    }
    struct rbi_cluster *cluster = rbi_registry_restore(daemon, id, path, length, 0);
    if (cluster) {
        rbi_registry_refresh(daemon, cluster);
        cluster->empty_ns -= empty_for_ns; /* may be before the clock began: differences count */
    }
}

void rbi_registry_expect(struct rbi_daemon *daemon, const struct rbi_text *path)
{
    struct rbi_registry *registry = &daemon->registry;
    const uint64_t id = rbi_cluster_id(path->bytes, path->length);
    if (rbi_registry_cluster(registry, id)) {
        return;
    }
    struct rbi_cluster *cluster = cluster_new(registry, id, path->bytes, path->length);
    if (!cluster) {
        return;
    }
    const struct rbi_policy *policy = rbi_daemon_policy(daemon, cluster);
    if (policy->realm.count == 0 && policy->degrade_count == 0) {
        (void)rbi_map_remove(&registry->clusters, id);
        cluster_free(cluster);
        return;
    }
    rbi_registry_refresh(daemon, cluster);
}

/* ---- members --------------------------------------------------------------------------- */

static int registry_check(const struct rbi_cluster *cluster,
                          const struct rbi_endpoint *endpoint,
                          struct rbi_text *why)
{
    const uint32_t cluster_length = endpoint->name_offset - 1;
    if (cluster->path.length != cluster_length ||
        memcmp(cluster->path.bytes, endpoint->path.bytes, cluster_length) != 0) {
        rbi_text_format(why, "%.100s has the same id as cluster %.100s", endpoint->path.bytes,
                        cluster->path.bytes);
        return RBI_REGISTRY_CLASH;
    }
    const struct rbi_endpoint *other = rbi_cluster_member(cluster, endpoint->instance);
    if (!other) {
        return RBI_REGISTRY_OK;
    }
    const char *name = endpoint->path.bytes + endpoint->name_offset;
    const char *other_name = other->path.bytes + other->name_offset;
    if (strcmp(name, other_name) != 0) {
        rbi_text_format(why, "instance names %s and %s have the same id %" PRId32, name, other_name,
                        other->instance);
        return RBI_REGISTRY_CLASH;
    }
    rbi_text_format(why, "%.180s is taken by a living instance, incarnation %" PRIu32,
                    other->path.bytes, other->incarnation);
    return RBI_REGISTRY_IN_USE;
}

/** Puts a named endpoint into its cluster. */
static int
registry_join(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint, struct rbi_text *why)
{
    struct rbi_registry *registry = &daemon->registry;
    struct rbi_cluster *cluster = rbi_registry_cluster(registry, endpoint->cluster_id);
    const bool found = cluster != NULL;
    if (found) {
        const int result = registry_check(cluster, endpoint, why);
        if (result != RBI_REGISTRY_OK) {
            return result;
        }
    } else {
        cluster = cluster_new(registry, endpoint->cluster_id, endpoint->path.bytes,
                              endpoint->name_offset - 1);
        if (!cluster) {
            return -ENOMEM;
        }
    }
    if (!cluster_insert(cluster, endpoint)) {
        if (!found) {
            (void)rbi_map_remove(&registry->clusters, cluster->id);
            cluster_free(cluster);
        }
        return -ENOMEM;
    }
    if (!rbi_list_empty(&cluster->in_idle)) {
        rbi_list_remove(&cluster->in_idle);
        registry->idle_count--;
    }
    daemon->known.dirty |= !cluster->known;
    cluster->known = true;
    endpoint->cluster = cluster;
    return RBI_REGISTRY_OK;
}

static void registry_leave(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    struct rbi_cluster *cluster = endpoint->cluster;
    const uint32_t idx = cluster_lower_bound(cluster, endpoint->instance);
    RBI_ASSERT(idx < cluster->member_count && cluster->members[idx] == endpoint);
    cluster->member_count--;
    memmove(&cluster->members[idx], &cluster->members[idx + 1],
            (cluster->member_count - idx) * sizeof(struct rbi_endpoint *));
    endpoint->cluster = NULL;
    rbi_registry_set_idle(daemon, cluster);
}

int rbi_registry_add(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint, struct rbi_text *why)
{
    struct rbi_registry *registry = &daemon->registry;
    const int slot_result = rbi_registry_take_slot(daemon, &endpoint->slot);
    if (slot_result < 0) {
        return slot_result;
    }
    if (rbi_endpoint_is_member(endpoint)) {
        const int result = registry_join(daemon, endpoint, why);
        if (result != RBI_REGISTRY_OK) {
            rbi_registry_give_slot(registry, endpoint->slot);
            return result;
        }
    }
    const bool awaited =
        endpoint->cluster && rbi_unconfirmed_drop(endpoint->cluster, endpoint->instance);
    if (!endpoint->origin) { /* else it is another host's: nothing of ours lies near it */
        endpoint->incarnation = rbi_registry_incarnation(registry, endpoint->incarnation);
    }
    endpoint->number = registry->next_number++;
    rbi_list_push_back(&registry->endpoints, &endpoint->in_registry);
    registry->endpoint_count++;
    if (awaited && !rbi_registry_state_visible(endpoint->state)) {
        registry_publish_or_log(daemon, endpoint->cluster);
    }
    return RBI_REGISTRY_OK;
}

int rbi_registry_reveal(struct rbi_daemon *daemon,
                        struct rbi_endpoint *endpoint,
                        struct rbi_text *why)
{
    const int result = registry_join(daemon, endpoint, why);
    if (result == RBI_REGISTRY_OK && rbi_unconfirmed_drop(endpoint->cluster, endpoint->instance)) {
        registry_publish_or_log(daemon, endpoint->cluster);
    }
    return result;
}

void rbi_registry_conceal(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    RBI_ASSERT(!endpoint->visible);
    registry_leave(daemon, endpoint);
}

void rbi_registry_remove(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    if (rbi_list_empty(&endpoint->in_registry)) {
        return;
    }
    if (endpoint->cluster) {
        registry_leave(daemon, endpoint);
    }
    rbi_list_remove(&endpoint->in_registry);
    daemon->registry.endpoint_count--;
    rbi_registry_give_slot(&daemon->registry, endpoint->slot);
}

/* ---- what others see ------------------------------------------------------------------- */

bool rbi_registry_state_visible(uint32_t state)
{
    return state == RBI_ENDPOINT_READY || state == RBI_ENDPOINT_BUSY ||
           state == RBI_ENDPOINT_DRAINING;
}

/* A slow start begins here, not at registration; anew after a drain that was taken back. */
static void registry_note_ready(const struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    if (endpoint->state != RBI_ENDPOINT_READY && endpoint->state != RBI_ENDPOINT_BUSY) {
        endpoint->ready_ns = 0;
    } else if (endpoint->ready_ns == 0) {
        endpoint->ready_ns = rbi_loop_now_ns(daemon->loop);
    }
}

int rbi_registry_show(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    if (!endpoint->cluster || endpoint->visible) {
        return 0;
    }
    endpoint->visible = true;
    registry_note_ready(daemon, endpoint);
    rbi_absent_drop(daemon, endpoint->cluster, endpoint->instance);
    const int result = registry_publish(daemon, endpoint->cluster);
    if (result < 0) {
        endpoint->visible = false;
        return result;
    }
    rbi_health_member(endpoint);
    rbi_watch_notify(daemon, endpoint, RBI_CHANGE_ADDED, RBI_REASON_NONE);
    return 0;
}

void rbi_registry_update(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    if (endpoint->visible) {
        registry_note_ready(daemon, endpoint);
        rbi_health_member(endpoint);
        endpoint->health.changed = false;
        registry_publish_or_log(daemon, endpoint->cluster);
        rbi_watch_notify(daemon, endpoint, RBI_CHANGE_UPDATED, RBI_REASON_NONE);
    }
}

/** Looks at the marked members of a cluster. @return whether others see one of them */
static bool registry_prepare_stale(struct rbi_daemon *daemon, const struct rbi_cluster *cluster)
{
    bool any = false;
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        struct rbi_endpoint *endpoint = cluster->members[i];
        if (endpoint->stale && endpoint->visible) {
            registry_note_ready(daemon, endpoint);
            rbi_health_member(endpoint);
            endpoint->health.changed = false;
            any = true;
        }
    }
    return any;
}

uint64_t rbi_registry_update_stale(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    uint64_t changed = 0;
    uint64_t told = 0;
    if (registry_prepare_stale(daemon, cluster)) {
        registry_publish_or_log(daemon, cluster);
    }
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        struct rbi_endpoint *endpoint = cluster->members[i];
        if (!endpoint->stale) {
            continue;
        }
        endpoint->stale = false;
        changed++;
        if (endpoint->visible) {
            /* The snapshot has all of them; each event has a revision of its own all the same. */
            daemon->registry.revision += told++ != 0;
            rbi_watch_notify(daemon, endpoint, RBI_CHANGE_UPDATED, RBI_REASON_NONE);
        }
    }
    if (told > 1) {
        rbi_publish_revision(daemon);
    }
    return changed;
}

void rbi_registry_hide(struct rbi_daemon *daemon,
                       struct rbi_endpoint *endpoint,
                       enum rbi_reason reason)
{
    /* A daemon that stops leaves the directory as it is: clients hold it until the next one. */
    if (endpoint->visible && !daemon->stopping) {
        endpoint->visible = false;
        rbi_health_member(endpoint);
        if (reason != RBI_REASON_LEFT && reason != RBI_REASON_REPLACED) {
            rbi_absent_add(daemon, endpoint);
        }
        registry_publish_or_log(daemon, endpoint->cluster);
        rbi_watch_notify(daemon, endpoint, RBI_CHANGE_REMOVED, reason);
    }
}
