/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watch.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** A path that somebody watches. */
struct watch_prefix {
    uint64_t key;
    struct rbi_text path;
    struct rbi_list watches;
};

/** One interest of one peer. */
struct watch {
    struct rbi_list in_prefix;
    struct rbi_list in_peer;
    struct rbi_peer *peer;
    struct watch_prefix *prefix;
    enum rbi_watch_kind kind;
    struct rbi_charge charge;
};

int rbi_watches_init(struct rbi_watches *watches)
{
    watches->count = 0;
    return rbi_map_init(&watches->prefixes);
}

void rbi_watches_deinit(struct rbi_watches *watches)
{
    RBI_ASSERT(watches->count == 0);
    rbi_map_deinit(&watches->prefixes);
}

static struct watch_prefix *
watch_prefix_find(struct rbi_watches *watches, const char *path, uint32_t length)
{
    struct watch_prefix *prefix = rbi_map_get(&watches->prefixes, rbi_cluster_id(path, length));
    if (!prefix || prefix->path.length != length || memcmp(prefix->path.bytes, path, length) != 0) {
        return NULL;
    }
    return prefix;
}

static struct watch_prefix *watch_prefix_new(struct rbi_watches *watches,
                                             const struct rbi_text *path)
{
    struct watch_prefix *prefix = calloc(1, sizeof(*prefix));
    if (!prefix) {
        return NULL;
    }
    prefix->key = rbi_cluster_id(path->bytes, path->length);
    prefix->path = *path;
    rbi_list_init(&prefix->watches);
    if (rbi_map_put(&watches->prefixes, prefix->key, prefix) < 0) {
        free(prefix);
        return NULL;
    }
    return prefix;
}

static void watch_prefix_drop_if_empty(struct rbi_watches *watches, struct watch_prefix *prefix)
{
    if (rbi_list_empty(&prefix->watches)) {
        (void)rbi_map_remove(&watches->prefixes, prefix->key);
        free(prefix);
    }
}

static struct watch *
watch_find(const struct rbi_peer *peer, const struct rbi_text *path, enum rbi_watch_kind kind)
{
    struct watch_prefix *prefix =
        watch_prefix_find(&peer->daemon->watches, path->bytes, path->length);
    if (!prefix) {
        return NULL;
    }
    RBI_LIST_EACH(node, spare, &prefix->watches)
    {
        struct watch *watch = RBI_CONTAINER_OF(node, struct watch, in_prefix);
        if (watch->peer == peer && watch->kind == kind) {
            return watch;
        }
    }
    return NULL;
}

int rbi_watch_add(struct rbi_peer *peer,
                  const struct rbi_text *path,
                  enum rbi_watch_kind kind,
                  struct rbi_charge *charge)
{
    struct rbi_watches *watches = &peer->daemon->watches;
    if (watch_find(peer, path, kind)) {
        return 1;
    }
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch) {
        return -ENOMEM;
    }
    struct watch_prefix *prefix = watch_prefix_find(watches, path->bytes, path->length);
    if (!prefix) {
        prefix = watch_prefix_new(watches, path);
    }
    if (!prefix) {
        free(watch);
        return -ENOMEM;
    }
    watch->peer = peer;
    watch->prefix = prefix;
    watch->kind = kind;
    watch->charge = *charge;
    *charge = (struct rbi_charge){.user = NULL};
    rbi_list_push_back(&prefix->watches, &watch->in_prefix);
    rbi_list_push_back(&peer->watches, &watch->in_peer);
    peer->watch_count++;
    watches->count++;
    return 0;
}

static void watch_free(struct watch *watch)
{
    struct rbi_watches *watches = &watch->peer->daemon->watches;
    rbi_list_remove(&watch->in_prefix);
    rbi_list_remove(&watch->in_peer);
    watch->peer->watch_count--;
    watches->count--;
    watch_prefix_drop_if_empty(watches, watch->prefix);
    rbi_charge_release(&watch->charge);
    free(watch);
}

int rbi_watch_remove(struct rbi_peer *peer, const struct rbi_text *path, enum rbi_watch_kind kind)
{
    struct watch *watch = watch_find(peer, path, kind);
    if (!watch) {
        return 1;
    }
    watch_free(watch);
    return 0;
}

void rbi_watch_clear(struct rbi_peer *peer)
{
    while (!rbi_list_empty(&peer->watches)) {
        watch_free(RBI_LIST_FIRST(&peer->watches, struct watch, in_peer));
    }
}

/* ---- events ---------------------------------------------------------------------------- */

static void watch_event_fill(struct rbi_wire_event *event,
                             const struct rbi_endpoint *endpoint,
                             enum rbi_change change,
                             enum rbi_reason reason)
{
    *event =
        (struct rbi_wire_event){.change = (uint32_t)change,
                                .revision = endpoint->daemon->registry.revision,
                                .cluster = endpoint->cluster_id,
                                .instance = endpoint->instance,
                                .incarnation = endpoint->incarnation,
                                .state = endpoint->state,
                                .weight = endpoint->seen.weight,
                                .path = endpoint->path,
                                .reason = (uint32_t)reason,
                                .health = rbi_origin_health(endpoint),
                                .panic = endpoint->cluster && rbi_health_panics(endpoint->cluster)};
}

/** Targets are told of whatever is there: whoever may not be linked to it is to learn why. */
static bool
watch_may(struct rbi_peer *peer, enum rbi_watch_kind kind, const struct rbi_endpoint *endpoint)
{
    struct rbi_text why;
    if (kind == RBI_WATCH_TARGET || rbi_rights_may(peer, RBI_ACL_WATCH, endpoint, &why)) {
        return true;
    }
    peer->rights.hidden = true;
    return false;
}

static void watch_send_present(struct rbi_peer *peer,
                               enum rbi_watch_kind kind,
                               const struct rbi_endpoint *endpoint)
{
    struct rbi_wire_event event;
    if (endpoint->visible && watch_may(peer, kind, endpoint)) {
        watch_event_fill(&event, endpoint, RBI_CHANGE_ADDED, RBI_REASON_NONE);
        event.initial = 1;
        rbi_peer_send_event(peer, &event);
    }
}

/** Members of a cluster: all, or the one that a path of 7 elements names. */
static void
watch_send_cluster(struct rbi_peer *peer, enum rbi_watch_kind kind, const struct rbi_pidf *pidf)
{
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&peer->daemon->registry, pidf->cluster);
    for (uint32_t i = 0; cluster && i < cluster->member_count; i++) {
        if (pidf->instance == 0 || cluster->members[i]->instance == pidf->instance) {
            watch_send_present(peer, kind, cluster->members[i]);
        }
    }
}

void rbi_watch_send_present(struct rbi_peer *peer,
                            enum rbi_watch_kind kind,
                            const struct rbi_text *path)
{
    struct rbi_pidf pidf;
    struct rbi_path_info info;
    if (rbi_pidf_parse(path->bytes, path->length, &pidf, &info) == 0) {
        watch_send_cluster(peer, kind, &pidf);
        return;
    }
    RBI_LIST_EACH(node, spare, &peer->daemon->registry.endpoints)
    {
        const struct rbi_endpoint *endpoint =
            RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (rbi_path_has_prefix(endpoint->path.bytes, endpoint->path.length, path->bytes,
                                path->length)) {
            watch_send_present(peer, kind, endpoint);
        }
    }
}

void rbi_watch_send_all_present(struct rbi_peer *peer)
{
    RBI_LIST_EACH(node, spare, &peer->watches)
    {
        const struct watch *watch = RBI_CONTAINER_OF(node, struct watch, in_peer);
        rbi_watch_send_present(peer, watch->kind, &watch->prefix->path);
        if (watch->kind == RBI_WATCH_PREFIX) {
            rbi_node_send_present(peer, &watch->prefix->path);
        }
    }
    rbi_watch_send_alarms(peer);
}

void rbi_watch_send_alarms(struct rbi_peer *peer)
{
    RBI_LIST_EACH(node, spare, &peer->watches)
    {
        const struct watch *watch = RBI_CONTAINER_OF(node, struct watch, in_peer);
        if (watch->kind == RBI_WATCH_PREFIX) {
            rbi_alarms_send_present(peer, &watch->prefix->path);
        }
    }
}

static void watch_notify_prefix(struct rbi_daemon *daemon,
                                const struct rbi_endpoint *endpoint,
                                const struct rbi_wire_event *event,
                                uint32_t length)
{
    struct watch_prefix *prefix = watch_prefix_find(&daemon->watches, event->path.bytes, length);
    if (!prefix) {
        return;
    }
    RBI_LIST_EACH(node, spare, &prefix->watches)
    {
        const struct watch *watch = RBI_CONTAINER_OF(node, struct watch, in_prefix);
        struct rbi_peer *peer = watch->peer;
        if (peer->last_event_revision != event->revision &&
            watch_may(peer, watch->kind, endpoint)) {
            peer->last_event_revision = event->revision;
            rbi_peer_send_event(peer, event);
        }
    }
}

void rbi_watch_notify(struct rbi_daemon *daemon,
                      const struct rbi_endpoint *endpoint,
                      enum rbi_change change,
                      enum rbi_reason reason)
{
    struct rbi_wire_event event;
    watch_event_fill(&event, endpoint, change, reason);
    watch_notify_prefix(daemon, endpoint, &event, 1); /* "/" */
    for (uint32_t i = 1; i < event.path.length; i++) {
        if (event.path.bytes[i] == '/') {
            watch_notify_prefix(daemon, endpoint, &event, i);
        }
    }
    watch_notify_prefix(daemon, endpoint, &event, event.path.length);
}

static void watch_each_of(struct rbi_daemon *daemon,
                          const char *path,
                          uint32_t length,
                          void (*call)(struct rbi_peer *peer, void *context),
                          void *context)
{
    struct watch_prefix *prefix = watch_prefix_find(&daemon->watches, path, length);
    if (!prefix) {
        return;
    }
    RBI_LIST_EACH(node, spare, &prefix->watches)
    {
        const struct watch *watch = RBI_CONTAINER_OF(node, struct watch, in_prefix);
        if (watch->kind == RBI_WATCH_PREFIX) {
            call(watch->peer, context);
        }
    }
}

void rbi_watch_each(struct rbi_daemon *daemon,
                    const char *path,
                    uint32_t length,
                    void (*call)(struct rbi_peer *peer, void *context),
                    void *context)
{
    watch_each_of(daemon, path, 1, call, context); /* "/" */
    for (uint32_t i = 1; i < length; i++) {
        if (path[i] == '/') {
            watch_each_of(daemon, path, i, call, context);
        }
    }
    watch_each_of(daemon, path, length, call, context);
}
