/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/origin.h"

#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/hosts.h"
#include "daemon/log.h"
#include "daemon/policy.h"
#include "daemon/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LIMIT_NS (UINT64_C(10) * 1000 * 1000 * 1000)

bool rbi_origin_may(const struct rbi_peer *peer)
{
    const struct rbi_daemon *daemon = peer->daemon;
    const uint32_t user = daemon->config.bridge.user;
    return peer->uid == 0 || peer->uid == daemon->rights.uid ||
           (user != RBI_BRIDGE_NO_USER && peer->uid == user);
}

/* ---- registration -------------------------------------------------------------------------- */

static bool origin_is_host(const struct rbi_text *name)
{
    return rbi_host_name_valid(name->bytes, name->length);
}

/** @return what is wrong with a proxy, or NULL */
static const char *origin_fault(const struct rbi_daemon *daemon,
                                const struct rbi_wire_registration *body)
{
    if (!origin_is_host(&body->host)) {
        return "host: not the name of one";
    }
    if (daemon->config.bridge.given && strcmp(body->host.bytes, daemon->config.bridge.host) == 0) {
        return "host: it is this one";
    }
    if (body->via.length != 0 && !origin_is_host(&body->via)) {
        return "via: not the name of a host";
    }
    if (body->path.length == 0) {
        return "path: an origin has one";
    }
    if (body->origin_incarnation == 0) {
        return "origin_incarnation: lives have a number";
    }
    if (body->health > RBI_HEALTH_RAMP || body->reported > RBI_REPORTED_MOST) {
        return "health, reported: out of range";
    }
    return body->takeover ? "takeover: it is for local instances" : NULL;
}

bool rbi_origin_check(const struct rbi_request *request)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    if (request->daemon->routes.bridge == request->peer) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "the bridge's main connection has no endpoint");
        return false;
    }
    if (body->host.length == 0) {
        if (body->hidden == 0 && body->origin_incarnation == 0) {
            return true;
        }
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "a proxy says of which host");
        return false;
    }
    if (!rbi_origin_may(request->peer)) {
        struct rbi_text why;
        rbi_text_format(&why,
                        "uid %" PRIu32 " may not register instances of other hosts: root, the "
                        "daemon's user and bridge.user may",
                        request->peer->uid);
        rbi_rights_refuse(request, &why);
        return false;
    }
    const char *fault = origin_fault(request->daemon, body);
    if (fault) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%s", fault);
    }
    return !fault;
}

int rbi_origin_pay(struct rbi_peer *peer)
{
    struct rbi_charge charge = {.user = NULL};
    if (peer->actor == RBI_QUOTA_BRIDGE) {
        return 0;
    }
    const int result =
        rbi_quota_note(&peer->daemon->quota, RBI_QUOTA_BRIDGE, RBI_QUOTA_CONNECTIONS, 1, &charge);
    if (result == 0) {
        rbi_charge_release(&peer->charge);
        peer->charge = charge;
        peer->actor = RBI_QUOTA_BRIDGE;
    }
    return result;
}

int rbi_origin_init(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    struct rbi_host *host = rbi_hosts_take(&request->daemon->hosts, body->host.bytes);
    struct rbi_origin *origin = calloc(1, sizeof(*origin));
    if (!host || !origin || rbi_origin_pay(request->peer) < 0) {
        free(origin);
        if (host) {
            rbi_hosts_drop(&request->daemon->hosts, host);
        }
        return -ENOMEM;
    }
    if (host->proxies++ == 0) {
        rbi_routes_touch(request->daemon);
    }
    origin->number = host->number;
    memcpy(origin->host, body->host.bytes, body->host.length);
    memcpy(origin->via, body->via.bytes, body->via.length);
    origin->cost = body->cost;
    origin->uid = body->origin_uid;
    origin->health = body->health;
    origin->reported = (uint16_t)body->reported;
    origin->hidden = body->hidden != 0;
    origin->stale = body->stale != 0;
    endpoint->origin = origin;
    return 0;
}

void rbi_origin_deinit(struct rbi_endpoint *endpoint)
{
    if (!endpoint->origin) {
        return;
    }
    struct rbi_hosts *hosts = &endpoint->daemon->hosts;
    struct rbi_host *host = rbi_hosts_find(hosts, endpoint->origin->host);
    RBI_ASSERT(host && host->proxies > 0);
    if (--host->proxies == 0) {
        rbi_routes_touch(endpoint->daemon);
    }
    rbi_hosts_drop(hosts, host);
    free(endpoint->origin);
    endpoint->origin = NULL;
}

/* ---- what others see ----------------------------------------------------------------------- */

uint32_t rbi_origin_health(const struct rbi_endpoint *endpoint)
{
    /* Probes are its own daemon's: to us it is out, or it is not. */
    const bool out = endpoint->origin && (endpoint->origin->health == RBI_HEALTH_OPEN ||
                                          endpoint->origin->health == RBI_HEALTH_HALF_OPEN);
    return out ? RBI_HEALTH_OPEN : endpoint->health.health;
}

void rbi_origin_describe(const struct rbi_endpoint *endpoint, struct rbi_directory_instance *out)
{
    const struct rbi_origin *origin = endpoint->origin;
    if (!origin) {
        return;
    }
    out->host = origin->number;
    out->flags = origin->stale ? RBI_INSTANCE_STALE : 0;
    out->reported = endpoint->seen.weight_given ? 0 : origin->reported;
}

static bool origin_is_chosen(const struct rbi_endpoint *endpoint)
{
    return endpoint->visible && (endpoint->seen.override & RBI_OVERRIDE_ISOLATED) == 0 &&
           (endpoint->state == RBI_ENDPOINT_READY || endpoint->state == RBI_ENDPOINT_BUSY);
}

void rbi_origin_judge(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    uint64_t healthy = 0;
    uint64_t total = 0;
    bool any = false;
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        const struct rbi_endpoint *member = cluster->members[i];
        if (!origin_is_chosen(member)) {
            continue;
        }
        const uint32_t health = rbi_origin_health(member);
        any = any || member->origin;
        total += member->seen.weight;
        healthy += health == RBI_HEALTH_OK || health == RBI_HEALTH_RAMP ? member->seen.weight : 0;
    }
    (void)rbi_panic_step(&cluster->panic, &rbi_daemon_policy(daemon, cluster)->panic, healthy,
                         any ? total : 0);
}

struct rbi_endpoint *rbi_origin_find_hidden(const struct rbi_daemon *daemon,
                                            const struct rbi_endpoint *like)
{
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        struct rbi_endpoint *endpoint = RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->origin && endpoint->origin->hidden &&
            endpoint->cluster_id == like->cluster_id && endpoint->instance == like->instance &&
            strcmp(endpoint->origin->host, like->origin->host) == 0) {
            return endpoint;
        }
    }
    return NULL;
}

void rbi_origin_conflict(struct rbi_daemon *daemon, const struct rbi_endpoint *endpoint)
{
    uint64_t suppressed = 0;
    daemon->counters.host_conflicts++;
    if (rbi_log_limit_pass(&daemon->conflict_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "host_conflict",
                "path=%s host=%s why=\"the name is taken here\" suppressed=%" PRIu64,
                endpoint->path.bytes, endpoint->origin->host, suppressed);
    }
}
