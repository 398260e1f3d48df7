/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/route.h"

#include "daemon/broker/face.h"
#include "daemon/broker/rename.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- routes --------------------------------------------------------------------------------- */

static struct rbi_route *find_inner(const struct rbi_broker *broker,
                                    const struct rbi_broker_export *export,
                                    const char *cluster,
                                    size_t length)
{
    RBI_LIST_EACH(node, spare, &broker->routes)
    {
        struct rbi_route *route = RBI_CONTAINER_OF(node, struct rbi_route, link);
        if (!route->portal->leaving && route->export == export && strlen(route->inner) == length &&
            memcmp(route->inner, cluster, length) == 0) {
            return route;
        }
    }
    return NULL;
}

struct rbi_route *rbi_routes_find(struct rbi_face *side, uint64_t cluster)
{
    return rbi_map_get(&side->names, cluster);
}

/* The portal is one instance of the cluster as it is shown: the same as of the side. */
static int make_portal(struct rbi_route *route)
{
    char path[RINGBUS_PATH_MAX + 1];
    const char *instance = strrchr(route->to->path, '/');
    const int n = snprintf(path, sizeof path, "%s%s", route->outer, instance);
    if (n < 0 || (size_t)n >= sizeof path) {
        rbi_log(RBI_LOG_WARNING, "broker_long_name", "export=%s cluster=%s", route->export->id,
                route->inner);
        return -ENAMETOOLONG;
    }
    route->portal = rbi_face_new(route->to->broker, route->to->side, path);
    if (route->portal == NULL) {
        return -ENOMEM;
    }
    route->portal->route = route;
    return 0;
}

static void target(struct rbi_route *route)
{
    struct ringbus_target_options options = {.struct_size = sizeof options};
    options.on_down = route->export->redeliver ? RINGBUS_ON_DOWN_REDELIVER : RINGBUS_ON_DOWN_REPORT;
    if (route->targeted || route->from->bus == NULL) {
        return;
    }
    const int r = ringbus_target(route->from->bus, route->inner, &options, NULL);
    if (r != 0) {
        rbi_log(RBI_LOG_WARNING, "broker_no_target", "cluster=%s error=%s", route->inner,
                ringbus_error_name(r));
    }
    route->targeted = r == 0;
}

/* 0; -ENOMEM; 1 its new name would be too long */
static int make(struct rbi_broker *broker,
                const struct rbi_broker_export *export,
                const char *cluster,
                size_t length)
{
    struct rbi_route *route = calloc(1, sizeof *route);
    if (route == NULL) {
        return -ENOMEM;
    }
    rbi_list_init(&route->link);
    route->export = export;
    route->brokers = export->brokers != 0;
    route->from = broker->sides[export->from_side];
    route->to = broker->sides[export->to_side];
    memcpy(route->inner, cluster, length);
    if (rbi_rename(export->match, export->as, cluster, length, route->outer) != 0 ||
        ringbus_resolve(route->inner, &route->inner_addr) != 0 ||
        ringbus_resolve(route->outer, &route->outer_addr) != 0 || make_portal(route) != 0) {
        free(route);
        return 1;
    }
    if (rbi_map_put(&route->to->names, route->outer_addr.cluster, route) != 0) {
        rbi_log(RBI_LOG_WARNING, "broker_shown_twice", "export=%s cluster=%s as=%s", export->id,
                route->inner, route->outer);
        rbi_face_free(route->portal);
        free(route);
        return 1;
    }
    rbi_list_push_back(&broker->routes, &route->link);
    rbi_log(RBI_LOG_INFO, "broker_route", "export=%s cluster=%s as=%s", export->id, route->inner,
            route->outer);
    target(route);
    return 0;
}

/* Those without a star that are not there yet. 0; -ENOMEM */
static int make_plain(struct rbi_broker *broker)
{
    const struct rbi_broker_config *config = broker->config;
    for (uint32_t i = 0; i < config->export_count; i++) {
        const struct rbi_broker_export *export = &config->exports[i];
        const size_t length = strlen(export->match);
        if (rbi_rename_is_plain(export->match) &&
            find_inner(broker, export, export->match, length) == NULL &&
            make(broker, export, export->match, length) == -ENOMEM) {
            return -ENOMEM;
        }
    }
    return 0;
}

int rbi_routes_init(struct rbi_broker *broker)
{
    return make_plain(broker);
}

void rbi_routes_deinit(struct rbi_broker *broker)
{
    RBI_LIST_EACH(node, spare, &broker->routes)
    {
        struct rbi_route *route = RBI_CONTAINER_OF(node, struct rbi_route, link);
        rbi_list_remove(&route->link);
        free(route);
    }
}

/* ---- what is seen on the bus ---------------------------------------------------------------- */

static void prefix_of(const struct rbi_broker_export *export, char prefix[RINGBUS_PATH_MAX + 1])
{
    const size_t length = rbi_rename_prefix(export->match);
    (void)snprintf(prefix, RINGBUS_PATH_MAX + 1, "%.*s", length > 0 ? (int)length : 1,
                   length > 0 ? export->match : "/");
}

static void watch(struct rbi_face *side, const struct rbi_broker_export *export)
{
    char prefix[RINGBUS_PATH_MAX + 1];
    prefix_of(export, prefix);
    const int r = ringbus_watch(side->bus, prefix);
    if (r != 0) {
        rbi_log(RBI_LOG_WARNING, "broker_no_watch", "export=%s prefix=%s error=%s", export->id,
                prefix, ringbus_error_name(r));
    }
    side->active = true;
}

static void unwatch(struct rbi_face *side, const struct rbi_broker_export *export)
{
    char prefix[RINGBUS_PATH_MAX + 1];
    prefix_of(export, prefix);
    (void)ringbus_unwatch(side->bus, prefix); /* another export of the same may have been before */
}

static void watch_exports(struct rbi_broker *broker, struct rbi_face *side)
{
    const struct rbi_broker_config *config = broker->config;
    for (uint32_t i = 0; i < config->export_count; i++) {
        const struct rbi_broker_export *export = &config->exports[i];
        if (broker->sides[export->from_side] == side && !rbi_rename_is_plain(export->match)) {
            watch(side, export);
        }
    }
}

void rbi_routes_side_up(struct rbi_broker *broker, struct rbi_face *side)
{
    watch_exports(broker, side);
    RBI_LIST_EACH(node, spare, &broker->routes)
    {
        struct rbi_route *route = RBI_CONTAINER_OF(node, struct rbi_route, link);
        if (route->from == side && route->export != NULL) {
            target(route);
        }
    }
}

/*
 * Whether a name is one that this file makes: what is shown is not shown once more, also not what
 * another broker of the same file shows.
 */
static bool is_shown(const struct rbi_broker *broker,
                     const struct rbi_face *side,
                     const char *cluster,
                     size_t length)
{
    const struct rbi_broker_config *config = broker->config;
    for (uint32_t i = 0; i < config->export_count; i++) {
        const struct rbi_broker_export *export = &config->exports[i];
        if (strcmp(broker->sides[export->to_side]->side->socket, side->side->socket) == 0 &&
            rbi_rename_matches(export->as, cluster, length)) {
            return true;
        }
    }
    return false;
}

void rbi_routes_seen(struct rbi_broker *broker, struct rbi_face *side, const char *path)
{
    const struct rbi_broker_config *config = broker->config;
    const char *last = strrchr(path, '/');
    const size_t length = last != NULL ? (size_t)(last - path) : 0;
    if (is_shown(broker, side, path, length)) {
        return;
    }
    for (uint32_t i = 0; i < config->export_count; i++) {
        const struct rbi_broker_export *export = &config->exports[i];
        if (broker->sides[export->from_side] == side &&
            rbi_rename_matches(export->match, path, length) &&
            find_inner(broker, export, path, length) == NULL) {
            (void)make(broker, export, path, length); /* without memory the next one is seen */
        }
    }
}

/* ---- another configuration ------------------------------------------------------------------- */

/* The export of the new one that says the same of names, or NULL. */
static const struct rbi_broker_export *same_export(const struct rbi_broker_config *config,
                                                   const struct rbi_broker_export *old)
{
    for (uint32_t i = 0; i < config->export_count; i++) {
        const struct rbi_broker_export *export = &config->exports[i];
        if (export->from_side == old->from_side && export->to_side == old->to_side &&
            strcmp(export->match, old->match) == 0 && strcmp(export->as, old->as) == 0) {
            return export;
        }
    }
    return NULL;
}

static void leave(struct rbi_route *route)
{
    struct rbi_face *portal = route->portal;
    rbi_log(RBI_LOG_INFO, "broker_route_ends", "cluster=%s as=%s", route->inner, route->outer);
    (void)rbi_map_remove(&route->to->names, route->outer_addr.cluster);
    route->export = NULL;
    portal->leaving = true;
    portal->leave_ns = rbi_broker_now_ns();
    if (portal->bus != NULL) {
        (void)ringbus_drain(portal->bus);
        portal->active = true;
    }
}

void rbi_routes_follow(struct rbi_broker *broker, const struct rbi_broker_config *old)
{
    RBI_LIST_EACH(node, spare, &broker->routes)
    {
        struct rbi_route *route = RBI_CONTAINER_OF(node, struct rbi_route, link);
        if (route->export == NULL) {
            continue;
        }
        const bool redelivered = route->export->redeliver;
        route->export = same_export(broker->config, route->export);
        if (route->export == NULL) {
            leave(route);
        } else {
            route->brokers = route->export->brokers != 0;
        }
        if (route->export != NULL && route->export->redeliver != redelivered) {
            route->targeted = false;
            target(route);
        }
    }
    (void)make_plain(broker); /* without memory the next one makes it */
    for (uint32_t i = 0; i < old->export_count; i++) {
        struct rbi_face *side = broker->sides[old->exports[i].from_side];
        if (side->bus != NULL && !rbi_rename_is_plain(old->exports[i].match)) {
            unwatch(side, &old->exports[i]);
        }
    }
    for (uint32_t i = 0; i < broker->config->side_count; i++) {
        if (broker->sides[i]->bus != NULL) {
            watch_exports(broker, broker->sides[i]);
        }
    }
}

void rbi_routes_left(struct rbi_broker *broker, struct rbi_route *route)
{
    bool needed = false;
    rbi_list_remove(&route->link);
    RBI_LIST_EACH(node, spare, &broker->routes)
    {
        const struct rbi_route *other = RBI_CONTAINER_OF(node, struct rbi_route, link);
        needed = needed || (other->from == route->from && strcmp(other->inner, route->inner) == 0);
    }
    if (route->targeted && !needed && route->from->bus != NULL) {
        (void)ringbus_untarget(route->from->bus, route->inner);
        route->from->active = true;
    }
    free(route);
}
