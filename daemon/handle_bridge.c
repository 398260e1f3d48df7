/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/handle_bridge.c - what the bridge says of itself, of other hosts and of the edges between
 * them, and what a tool has to say to it. Nobody else is heard: whoever says such things without
 * being the bridge breaks the protocol.
 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- itself -------------------------------------------------------------------------------- */

/** @return what speaks against it, or NULL */
static const char *bridge_fault(const struct rbi_request *request)
{
    const struct rbi_wire_bridge *body = &request->body->bridge;
    const struct rbi_bridge_config *config = &request->daemon->config.bridge;
    if (!rbi_host_name_valid(body->host.bytes, body->host.length) || body->incarnation == 0) {
        return "the bridge of a host has its name, and an incarnation";
    }
    if (request->peer->endpoint) {
        return "this connection has an endpoint: the bridge's main one has none";
    }
    if (config->given && strcmp(config->host, body->host.bytes) != 0) {
        return "bridge.host of the daemon is another";
    }
    return NULL;
}

/** Makes room for a new bridge: of one that is gone it may not be known yet. @return false: no */
static bool bridge_seat(const struct rbi_request *request)
{
    struct rbi_routes *routes = &request->daemon->routes;
    if (routes->bridge && routes->bridge != request->peer) {
        rbi_peer_verify(routes->bridge);
        rbi_peers_reap(request->daemon);
    }
    return !routes->bridge || routes->bridge == request->peer;
}

/** Ways from a host of this name; what was known of them is kept where it is the same. */
static bool bridge_make_ways(struct rbi_daemon *daemon, const char *host)
{
    struct rbi_routes *routes = &daemon->routes;
    if (routes->ways && strcmp(routes->own, host) == 0) {
        return true;
    }
    struct rbi_ways *ways = calloc(1, sizeof(*ways));
    if (!ways) {
        return false;
    }
    rbi_ways_init(ways, host);
    free(routes->ways);
    routes->ways = ways;
    memset(routes->own, 0, sizeof(routes->own));
    memcpy(routes->own, host, strlen(host));
    return true;
}

void rbi_handle_bridge(const struct rbi_request *request)
{
    struct rbi_peer *peer = request->peer;
    struct rbi_routes *routes = &request->daemon->routes;
    const struct rbi_wire_bridge *body = &request->body->bridge;
    if (!rbi_origin_may(peer)) {
        struct rbi_text why;
        rbi_text_format(&why,
                        "uid %" PRIu32 " is not the bridge: root, the daemon's user and "
                        "bridge.user may be",
                        peer->uid);
        rbi_rights_refuse(request, &why);
        return;
    }
    const char *fault = bridge_fault(request);
    if (fault) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%s", fault);
        return;
    }
    if (!bridge_seat(request) || peer->doomed) {
        rbi_request_refuse(request, RBI_CODE_IN_USE, "host %s has a bridge, pid %s", routes->own,
                           rbi_log_pid(&(struct rbi_log_pid){{0}}, routes->bridge_pid));
        return;
    }
    if (!bridge_make_ways(request->daemon, body->host.bytes) || rbi_origin_pay(peer) < 0) {
        rbi_request_refuse(request, RBI_CODE_NO_MEMORY, "the daemon is out of memory");
        return;
    }
    routes->bridge = peer;
    routes->bridge_pid = peer->pid;
    routes->bridge_uid = peer->uid;
    routes->incarnation = body->incarnation;
    routes->since_ns = rbi_loop_now_ns(request->daemon->loop);
    rbi_log(RBI_LOG_INFO, "bridge_up", "host=%s pid=%s uid=%" PRIu32, routes->own,
            rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid), peer->uid);
    rbi_request_ok(request, 0);
}

/** @return whether it is the bridge who says that; else it has broken the protocol */
static bool is_bridge(const struct rbi_request *request, const char *what)
{
    if (request->daemon->routes.bridge == request->peer) {
        return true;
    }
    rbi_peer_violation(request->peer, request->serial, "%s is the bridge's to say", what);
    return false;
}

/* ---- what it tells ------------------------------------------------------------------------- */

static bool host_is_sound(const struct rbi_request *request)
{
    const struct rbi_wire_host *body = &request->body->host;
    return rbi_host_name_valid(body->name.bytes, body->name.length) &&
           (body->via.length == 0 || rbi_host_name_valid(body->via.bytes, body->via.length)) &&
           body->state <= RBI_HOST_REFUSED &&
           strcmp(body->name.bytes, request->daemon->routes.own) != 0;
}

void rbi_handle_host(const struct rbi_request *request)
{
    const struct rbi_wire_host *body = &request->body->host;
    struct rbi_daemon *daemon = request->daemon;
    if (!is_bridge(request, "HOST")) {
        return;
    }
    if (!host_is_sound(request)) {
        rbi_peer_violation(request->peer, request->serial, "HOST: a name or state is none");
        return;
    }
    struct rbi_host *host = rbi_hosts_take(&daemon->hosts, body->name.bytes);
    if (!host) {
        return; /* one too many: seen by its instances only, if at all */
    }
    if (host->told && host->row.state != body->state && body->state != RBI_HOST_GONE) {
        rbi_routes_touch(daemon);
    }
    if (!host->told || body->state == RBI_HOST_GONE) {
        rbi_routes_touch(daemon);
    }
    host->told = body->state != RBI_HOST_GONE;
    host->row = *body;
    rbi_hosts_drop(&daemon->hosts, host);
}

/** Takes the edges of one frame. @return false: they are none */
static bool edges_take(struct rbi_routes_staging *staging, const struct rbi_data *data)
{
    for (uint32_t at = 0; at < data->length;) {
        const uint32_t length = data->bytes[at];
        struct rbi_ways_edge *edge = &staging->edges[staging->count];
        if (data->length - at < 1 + length + sizeof(edge->cost) ||
            !rbi_host_name_valid((const char *)&data->bytes[at + 1], length) ||
            staging->count == RBI_WAYS_EDGES_MAX) {
            return false;
        }
        memset(edge->to, 0, sizeof(edge->to));
        memcpy(edge->to, &data->bytes[at + 1], length);
        memcpy(&edge->cost, &data->bytes[at + 1 + length], sizeof(edge->cost));
        staging->count++;
        at += 1 + length + (uint32_t)sizeof(edge->cost);
    }
    return true;
}

void rbi_handle_edges(const struct rbi_request *request)
{
    const struct rbi_wire_edges *body = &request->body->edges;
    struct rbi_routes *routes = &request->daemon->routes;
    struct rbi_routes_staging *staging = &routes->staging;
    const uint64_t now_ns = rbi_loop_now_ns(request->daemon->loop);
    if (!is_bridge(request, "EDGES")) {
        return;
    }
    if (body->begin) {
        *staging = (struct rbi_routes_staging){.open = true};
        memcpy(staging->origin, body->origin.bytes, strnlen(body->origin.bytes, RBI_HOST_NAME_MAX));
    }
    if (!rbi_host_name_valid(body->origin.bytes, body->origin.length) || !staging->open ||
        strcmp(staging->origin, body->origin.bytes) != 0 || !edges_take(staging, &body->to)) {
        rbi_peer_violation(request->peer, request->serial,
                           "EDGES: a name, or their order, is wrong");
        return;
    }
    if (!body->end) {
        return;
    }
    staging->open = false;
    if (staging->count == 0) {
        rbi_ways_forget(routes->ways, staging->origin, now_ns);
    } else if (rbi_ways_set(routes->ways, staging->origin, staging->edges, staging->count, now_ns) <
               0) {
        rbi_log(RBI_LOG_WARNING, "hosts_full", "origin=%s limit=%u", staging->origin,
                RBI_WAYS_HOSTS_MAX);
    }
    rbi_routes_arm(request->daemon);
}

/* ---- what a tool tells it ------------------------------------------------------------------ */

/** Proxies that are out of sight, and meant. */
static uint64_t confirm_count(const struct rbi_daemon *daemon, const struct rbi_wire_confirm *body)
{
    uint64_t count = 0;
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        const struct rbi_endpoint *endpoint =
            RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        const struct rbi_origin *origin = endpoint->origin;
        count += origin && origin->stale && !origin->hidden &&
                 (body->host.length == 0 || strcmp(origin->host, body->host.bytes) == 0) &&
                 (body->prefix.length == 0 ||
                  rbi_path_has_prefix(endpoint->path.bytes, endpoint->path.length,
                                      body->prefix.bytes, body->prefix.length));
    }
    return count;
}

void rbi_handle_confirm(const struct rbi_request *request)
{
    const struct rbi_wire_confirm *body = &request->body->confirm;
    struct rbi_peer *bridge = request->daemon->routes.bridge;
    if (!rbi_rights_admin_path(request, "/", 1)) {
        return;
    }
    if (body->host.length != 0 && !rbi_host_name_valid(body->host.bytes, body->host.length)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "host: not the name of one");
        return;
    }
    if (!bridge || bridge->doomed) {
        rbi_request_refuse(request, RBI_CODE_NOT_READY, "no bridge is connected");
        return;
    }
    rbi_peer_send(bridge, RBI_WIRE_CONFIRM, body, 0);
    rbi_request_ok(request, confirm_count(request->daemon, body));
}
