/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/handle_proxy.c - what the bridge says of an instance of another host has changed. It is
 * not answered: who sends what makes no sense, or is no proxy, breaks the protocol.
 */
#include "bus/label.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/request.h"

#include <string.h>

static bool proxy_label_fits(const struct rbi_text *label, bool (*is_valid)(const char *text))
{
    return label->length <= RBI_DIRECTORY_LABEL_MAX && is_valid(label->bytes);
}

/** @return what is wrong with it, or NULL */
static const char *proxy_fault(const struct rbi_request *request)
{
    const struct rbi_wire_proxy *body = &request->body->proxy;
    const struct rbi_endpoint *endpoint = request->peer->endpoint;
    if (!endpoint->origin) {
        return "it is not a proxy";
    }
    if (endpoint->state == RBI_ENDPOINT_CLOSED) {
        return "it has left";
    }
    if (body->weight > RBI_WEIGHT_MAX || body->health > RBI_HEALTH_RAMP ||
        body->reported > RBI_REPORTED_MOST ||
        (body->state != RBI_ENDPOINT_STARTING && !rbi_registry_state_visible(body->state))) {
        return "state, weight, health or reported is out of range";
    }
    if (!proxy_label_fits(&body->set, rbi_label_set_valid) ||
        !proxy_label_fits(&body->idc, rbi_label_idc_valid) ||
        !proxy_label_fits(&body->tags, rbi_label_tags_valid)) {
        return "a label is not of its form";
    }
    if (body->via.length != 0 && !rbi_host_name_valid(body->via.bytes, body->via.length)) {
        return "via is not the name of a host";
    }
    if (!body->hidden && endpoint->name_offset == 0) {
        return "an anonymous client is hidden";
    }
    return NULL;
}

static void proxy_label(char *to, const struct rbi_text *from)
{
    memset(to, 0, RBI_DIRECTORY_LABEL_MAX + 1);
    memcpy(to, from->bytes, from->length);
}

/** Takes what does not change who sees it. @return whether the directory says something else */
static bool proxy_take(struct rbi_endpoint *endpoint, const struct rbi_wire_proxy *body)
{
    struct rbi_origin *origin = endpoint->origin;
    struct rbi_directory_instance before;
    struct rbi_directory_instance after;
    if (endpoint->cluster) {
        rbi_publish_describe(&before, endpoint);
    }
    const uint32_t had = rbi_origin_health(endpoint);
    const bool retagged = strcmp(endpoint->own.tags, body->tags.bytes) != 0;
    endpoint->own.weight = body->weight;
    proxy_label(endpoint->own.set, &body->set);
    proxy_label(endpoint->own.idc, &body->idc);
    proxy_label(endpoint->own.tags, &body->tags);
    memset(origin->via, 0, sizeof(origin->via));
    memcpy(origin->via, body->via.bytes, body->via.length);
    origin->cost = body->cost;
    origin->health = body->health;
    origin->reported = (uint16_t)body->reported;
    origin->stale = body->stale != 0;
    (void)rbi_live_label(endpoint);
    if (retagged) {
        rbi_rights_forget(endpoint->peer); /* a rule may name them */
    }
    endpoint->own_state = body->state;
    endpoint->state = rbi_endpoint_seen_state(endpoint, body->state);
    if (!endpoint->cluster) {
        return false;
    }
    rbi_publish_describe(&after, endpoint);
    return had != rbi_origin_health(endpoint) || memcmp(&before, &after, sizeof(before)) != 0;
}

/** Puts it where it can be seen, or takes it from there. */
static void proxy_place(struct rbi_endpoint *endpoint, bool hidden)
{
    struct rbi_text why;
    struct rbi_daemon *daemon = endpoint->daemon;
    if (hidden && endpoint->cluster) {
        rbi_registry_hide(daemon, endpoint, RBI_REASON_LEFT);
        rbi_registry_conceal(daemon, endpoint);
    }
    if (!hidden && !endpoint->cluster) {
        const int result = rbi_registry_reveal(daemon, endpoint, &why);
        if (result > 0) {
            rbi_origin_conflict(daemon, endpoint);
        }
        hidden = result != RBI_REGISTRY_OK;
    }
    endpoint->origin->hidden = hidden;
}

static void proxy_show(struct rbi_endpoint *endpoint, bool changed)
{
    struct rbi_daemon *daemon = endpoint->daemon;
    if (!rbi_registry_state_visible(endpoint->state)) {
        rbi_registry_hide(daemon, endpoint, RBI_REASON_LEFT);
    } else if (!endpoint->visible) {
        const int result = rbi_registry_show(daemon, endpoint);
        if (result < 0) {
            rbi_log(RBI_LOG_ERROR, "directory_stale", "cluster=%s error=\"%s\"",
                    endpoint->cluster->path.bytes, rbi_log_errno(-result));
        }
    } else if (changed) {
        rbi_registry_update(daemon, endpoint);
    }
}

void rbi_handle_proxy(const struct rbi_request *request)
{
    const struct rbi_wire_proxy *body = &request->body->proxy;
    struct rbi_endpoint *endpoint = request->peer->endpoint;
    const char *fault = proxy_fault(request);
    if (fault) {
        rbi_peer_violation(request->peer, request->serial, "PROXY of %.140s: %s",
                           endpoint->path.bytes, fault);
        return;
    }
    const bool changed = proxy_take(endpoint, body);
    proxy_place(endpoint, body->hidden != 0);
    proxy_show(endpoint, changed);
}
