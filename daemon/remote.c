/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remote.h"

#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/hosts.h"
#include "daemon/log.h"
#include "daemon/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LIMIT_NS (UINT64_C(10) * 1000 * 1000 * 1000)

bool rbi_remote_may(const struct rbi_peer *peer)
{
    const struct rbi_daemon *daemon = peer->daemon;
    const uint32_t user = daemon->config.bridge.user;
    return peer->uid == 0 || peer->uid == daemon->rights.uid ||
           (user != RBI_BRIDGE_NO_USER && peer->uid == user);
}

/* ---- registration -------------------------------------------------------------------------- */

static bool remote_is_host(const struct rbi_text *name)
{
    return rbi_host_name_valid(name->bytes, name->length);
}

/** @return what is wrong with a proxy, or NULL */
static const char *remote_fault(const struct rbi_daemon *daemon,
                                const struct rbi_wire_registration *body)
{
    if (!remote_is_host(&body->host)) {
        return "host: not the name of one";
    }
    if (daemon->config.bridge.given && strcmp(body->host.bytes, daemon->config.bridge.host) == 0) {
        return "host: it is this one";
    }
    if (body->via.length != 0 && !remote_is_host(&body->via)) {
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

bool rbi_remote_check(const struct rbi_request *request)
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
    if (!rbi_remote_may(request->peer)) {
        struct rbi_text why;
        rbi_text_format(&why,
                        "uid %" PRIu32 " may not register instances of other hosts: root, the "
                        "daemon's user and bridge.user may",
                        request->peer->uid);
        rbi_rights_refuse(request, &why);
        return false;
    }
    const char *fault = remote_fault(request->daemon, body);
    if (fault) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%s", fault);
    }
    return !fault;
}

int rbi_remote_pay(struct rbi_peer *peer)
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

int rbi_remote_init(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    struct rbi_host *host = rbi_hosts_take(&request->daemon->hosts, body->host.bytes);
    struct rbi_remote *remote = calloc(1, sizeof(*remote));
    if (!host || !remote || rbi_remote_pay(request->peer) < 0) {
        free(remote);
        if (host) {
            rbi_hosts_drop(&request->daemon->hosts, host);
        }
        return -ENOMEM;
    }
    if (host->proxies++ == 0) {
        rbi_routes_touch(request->daemon);
    }
    remote->number = host->number;
    memcpy(remote->host, body->host.bytes, body->host.length);
    memcpy(remote->via, body->via.bytes, body->via.length);
    remote->cost = body->cost;
    remote->uid = body->origin_uid;
    remote->health = body->health;
    remote->reported = (uint16_t)body->reported;
    remote->hidden = body->hidden != 0;
    remote->stale = body->stale != 0;
    endpoint->remote = remote;
    return 0;
}

void rbi_remote_deinit(struct rbi_endpoint *endpoint)
{
    if (!endpoint->remote) {
        return;
    }
    struct rbi_hosts *hosts = &endpoint->daemon->hosts;
    struct rbi_host *host = rbi_hosts_find(hosts, endpoint->remote->host);
    RBI_ASSERT(host && host->proxies > 0);
    if (--host->proxies == 0) {
        rbi_routes_touch(endpoint->daemon);
    }
    rbi_hosts_drop(hosts, host);
    free(endpoint->remote);
    endpoint->remote = NULL;
}

/* ---- what others see ----------------------------------------------------------------------- */

uint32_t rbi_remote_health(const struct rbi_endpoint *endpoint)
{
    /* Probes are its own daemon's: to us it is out, or it is not. */
    const bool out = endpoint->remote && (endpoint->remote->health == RBI_HEALTH_OPEN ||
                                          endpoint->remote->health == RBI_HEALTH_HALF_OPEN);
    return out ? RBI_HEALTH_OPEN : endpoint->health.health;
}

void rbi_remote_describe(const struct rbi_endpoint *endpoint, struct rbi_directory_instance *out)
{
    const struct rbi_remote *remote = endpoint->remote;
    if (!remote) {
        return;
    }
    out->host = remote->number;
    out->flags = remote->stale ? RBI_INSTANCE_STALE : 0;
    out->reported = endpoint->seen.weight_given ? 0 : remote->reported;
}

struct rbi_endpoint *rbi_remote_find_hidden(const struct rbi_daemon *daemon,
                                            const struct rbi_endpoint *like)
{
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        struct rbi_endpoint *endpoint = RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->remote && endpoint->remote->hidden &&
            endpoint->cluster_id == like->cluster_id && endpoint->instance == like->instance &&
            strcmp(endpoint->remote->host, like->remote->host) == 0) {
            return endpoint;
        }
    }
    return NULL;
}

void rbi_remote_conflict(struct rbi_daemon *daemon, const struct rbi_endpoint *endpoint)
{
    uint64_t suppressed = 0;
    daemon->counters.host_conflicts++;
    if (rbi_log_limit_pass(&daemon->conflict_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "host_conflict",
                "path=%s host=%s why=\"the name is taken here\" suppressed=%" PRIu64,
                endpoint->path.bytes, endpoint->remote->host, suppressed);
    }
}
