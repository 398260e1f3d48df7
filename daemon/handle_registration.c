/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/label.h"
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/numa.h"
#include "daemon/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define ANONYMOUS_PREFIX  "/anon/"
#define SEGMENT_BYTES_MAX (UINT64_C(4) << 30)

static bool label_fits(const struct rbi_text *label, bool (*is_valid)(const char *text))
{
    return strlen(label->bytes) == label->length && is_valid(label->bytes);
}

/** @return the form that one of the labels has not; NULL: all have theirs */
static const char *registration_wrong_label(const struct rbi_wire_registration *body)
{
    if (!label_fits(&body->set, rbi_label_set_valid)) {
        return "set, \"name.area.group\"";
    }
    if (!label_fits(&body->idc, rbi_label_idc_valid)) {
        return "idc, \"group\" or \"group/zone\"";
    }
    return label_fits(&body->tags, rbi_label_tags_valid) ? NULL : "tags, \"tag,tag\"";
}

/** @return whether all plain fields are in range; if not the client has been told */
static bool registration_check(const struct rbi_request *request)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    if (request->peer->endpoint) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "this connection has its endpoint already");
        return false;
    }
    if (body->weight > RBI_WEIGHT_MAX) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "weight %" PRIu32 " is above %u",
                           body->weight, RBI_WEIGHT_MAX);
        return false;
    }
    if (body->state != RBI_ENDPOINT_STARTING && !rbi_registry_state_visible(body->state)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "no state to begin with: %" PRIu32,
                           body->state);
        return false;
    }
    if (body->set.length > RBI_DIRECTORY_LABEL_MAX || body->idc.length > RBI_DIRECTORY_LABEL_MAX ||
        body->tags.length > RBI_DIRECTORY_LABEL_MAX) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "set, idc and tags have at most %u bytes",
                           RBI_DIRECTORY_LABEL_MAX);
        return false;
    }
    if (!rbi_origin_check(request)) {
        return false;
    }
    const char *form = registration_wrong_label(body);
    if (form) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "not of its form: %s", form);
        return false;
    }
    return true;
}

/** What the paths of a user's anonymous clients begin with: on joined hosts, with the host. */
static void anonymous_prefix(const struct rbi_daemon *daemon, uint32_t uid, struct rbi_text *out)
{
    rbi_text_format(out, ANONYMOUS_PREFIX "local/%s/uid%" PRIu32 "/client/",
                    daemon->config.bridge.given ? daemon->config.bridge.host : "host", uid);
}

/** Gives an endpoint that brings no path one that nobody can look up. */
static void registration_name_anonymous(struct rbi_endpoint *endpoint)
{
    const uint32_t number = rbi_registry_anonymous(&endpoint->daemon->registry);
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    struct rbi_text prefix;
    anonymous_prefix(endpoint->daemon, endpoint->peer->uid, &prefix);
    rbi_text_format(&endpoint->path, "%s%s/%" PRIu32, prefix.bytes, endpoint->peer->program,
                    number);
    RBI_ASSERT(rbi_pidf_parse(endpoint->path.bytes, endpoint->path.length, &pidf, &info) == 0);
    endpoint->cluster_id = pidf.cluster;
    endpoint->instance = pidf.instance;
}

/**
 * An anonymous client that comes back after a loss keeps its address: its links know it by
 * that. @return whether the path, which names an instance, is one of its user's and free
 */
static bool registration_return_anonymous(const struct rbi_request *request,
                                          struct rbi_endpoint *endpoint,
                                          const struct rbi_pidf *pidf)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    struct rbi_text own;
    anonymous_prefix(request->daemon, request->peer->uid, &own);
    if (body->daemon_incarnation == 0 || body->path.length <= own.length ||
        memcmp(body->path.bytes, own.bytes, own.length) != 0) {
        rbi_request_refuse(request, RBI_CODE_DENIED, ANONYMOUS_PREFIX " is for anonymous clients");
        return false;
    }
    if (rbi_registry_has_anonymous(&request->daemon->registry, pidf->cluster, pidf->instance)) {
        rbi_request_refuse(request, RBI_CODE_IN_USE, "%s is taken by a living client",
                           body->path.bytes);
        return false;
    }
    endpoint->path = body->path;
    endpoint->cluster_id = pidf->cluster;
    endpoint->instance = pidf->instance;
    return true;
}

/** @return whether the path names an instance; if not the client has been told */
static bool registration_name(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    const struct rbi_text *path = &request->body->registration.path;
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (path->length == 0) {
        registration_name_anonymous(endpoint);
        return true;
    }
    if (rbi_pidf_parse(path->bytes, path->length, &pidf, &info) != 0) {
        rbi_request_refuse(request, RBI_CODE_PATH, "path is wrong at byte %u: %s",
                           info.error_offset, rbi_path_error_text(info.error));
        return false;
    }
    if (info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH, "an instance has %u path elements, this has %u",
                           RBI_PATH_INSTANCE_ELEMENTS, info.elements);
        return false;
    }
    const bool anonymous =
        strncmp(path->bytes, ANONYMOUS_PREFIX, sizeof(ANONYMOUS_PREFIX) - 1) == 0;
    if (anonymous && request->body->registration.host.length == 0) {
        return registration_return_anonymous(request, endpoint, &pidf);
    }
    if (anonymous && !request->body->registration.hidden) {
        rbi_request_refuse(request, RBI_CODE_DENIED, "a proxy of an anonymous client is hidden");
        return false;
    }
    endpoint->path = *path;
    endpoint->cluster_id = pidf.cluster;
    endpoint->instance = pidf.instance;
    endpoint->name_offset = anonymous ? 0 : info.cluster_length + 1;
    return true;
}

/** @return whether the quotas allow it; if not the client has been told */
static bool registration_charge(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    struct rbi_quota *quota = &request->daemon->quota;
    struct rbi_text why;
    if (body->page_bytes != sizeof(struct rbi_page) || body->pool_bytes < RBI_PAGE ||
        body->pool_bytes > SEGMENT_BYTES_MAX) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "page or pool is of no possible size");
        return false;
    }
    int result = rbi_quota_charge(quota, request->peer->actor, RBI_QUOTA_INSTANCES, 1,
                                  &endpoint->instance_charge, &why);
    if (result == 0) {
        result =
            rbi_quota_charge(quota, request->peer->actor, RBI_QUOTA_BYTES,
                             body->page_bytes + body->pool_bytes, &endpoint->bytes_charge, &why);
    }
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "quota", result);
    }
    return result == 0;
}

/** @return whether page and pool are what they should be; if not the client has been told */
static bool registration_adopt(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    int result = rbi_segment_adopt(&endpoint->page, request->fds->fds[0], RBI_SEGMENT_PAGE,
                                   body->page_bytes, body->page_bytes);
    if (result < 0) {
        rbi_request_refuse_errno(request, "endpoint page", result);
        return false;
    }
    /* Peers will map it, and must not be given anything else. A proxy's has pages only where it was
     * used: there is one for each instance of other hosts, and few of them send much. */
    result = body->host.length > 0
                 ? rbi_segment_verify_sparse(request->fds->fds[1], RBI_SEGMENT_POOL,
                                             body->pool_bytes, body->pool_bytes)
                 : rbi_segment_verify(request->fds->fds[1], RBI_SEGMENT_POOL, body->pool_bytes,
                                      body->pool_bytes);
    if (result < 0) {
        rbi_request_refuse_errno(request, "pool", result);
        return false;
    }
    endpoint->page_fd = rbi_fdlist_steal(request->fds, 0);
    endpoint->pool_fd = rbi_fdlist_steal(request->fds, 1);
    endpoint->pool_bytes = body->pool_bytes;
    return true;
}

static void registration_describe(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    const struct rbi_wire_registration *body = &request->body->registration;
    endpoint->state = endpoint->own_state = body->state;
    endpoint->own.weight = body->weight;
    memcpy(endpoint->own.set, body->set.bytes, body->set.length);
    memcpy(endpoint->own.idc, body->idc.bytes, body->idc.length);
    memcpy(endpoint->own.tags, body->tags.bytes, body->tags.length);
    endpoint->node = rbi_numa_checked(body->node);
    (void)rbi_live_label(endpoint);
    endpoint->registered_ns = rbi_loop_now_ns(request->daemon->loop);
    /* A life that began under another daemon keeps its number: its links know it by that. One
     * whose connection to this very daemon was lost was told to its peers as dead. */
    if (body->incarnation && body->daemon_incarnation &&
        body->daemon_incarnation != request->daemon->incarnation) {
        endpoint->incarnation = body->incarnation;
    }
    if (endpoint->origin) {
        endpoint->incarnation = body->origin_incarnation;
    }
    if (getrandom(&endpoint->cookie, sizeof(endpoint->cookie), 0) !=
        (ssize_t)sizeof(endpoint->cookie)) {
        endpoint->cookie = 0;
    }
}

/** @return whether it may have the name; if not the client has been told */
static bool registration_own(const struct rbi_request *request, const struct rbi_endpoint *endpoint)
{
    struct rbi_text why;
    if (!rbi_token_take(request->peer, endpoint, &request->body->registration.token, &why)) {
        rbi_rights_refuse(request, &why);
        return false;
    }
    if (endpoint->name_offset == 0 ||
        rbi_rights_may_own(request->peer, endpoint, RBI_ACL_OWN, request->peer->uid, &why)) {
        return true;
    }
    rbi_rights_refuse(request, &why);
    return false;
}

/** @return whether nobody is awaited who has the name already; if not the client has been told */
static bool registration_awaited(const struct rbi_request *request,
                                 const struct rbi_endpoint *endpoint)
{
    struct rbi_text why;
    if (endpoint->name_offset == 0 ||
        rbi_names_allow(&request->daemon->names, request->peer, &endpoint->path,
                        request->body->registration.cookie, &why)) {
        return true;
    }
    rbi_request_refuse(request, RBI_CODE_IN_USE, "%s", why.bytes);
    return false;
}

/** Whoever holds the address that is asked for, alive as far as we know, or NULL. */
static struct rbi_endpoint *registration_holder(const struct rbi_request *request,
                                                const struct rbi_endpoint *endpoint)
{
    if (endpoint->origin && endpoint->origin->hidden) {
        return rbi_origin_find_hidden(request->daemon, endpoint);
    }
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, endpoint->cluster_id);
    return cluster ? rbi_cluster_member(cluster, endpoint->instance) : NULL;
}

/** Makes sure that whoever holds the address is alive: a restart can be quicker than the news. */
static void registration_verify_holder(const struct rbi_request *request,
                                       const struct rbi_endpoint *endpoint)
{
    const struct rbi_endpoint *holder = registration_holder(request, endpoint);
    if (holder) {
        rbi_peer_verify(holder->peer);
        rbi_peers_reap(request->daemon);
    }
}

static void registration_replace(const struct rbi_request *request, struct rbi_endpoint *holder)
{
    const struct rbi_wire_replaced replaced = {.uid = request->peer->uid};
    rbi_peer_send(holder->peer, RBI_WIRE_REPLACED, &replaced, 0);
    holder->replaced = true;
    rbi_peer_doom(holder->peer, "another has taken its name over");
    rbi_peers_reap(request->daemon);
}

/** Ends the instance that has the name, when that is asked for. @return false: it may not */
static bool registration_take_over(const struct rbi_request *request,
                                   const struct rbi_endpoint *endpoint)
{
    struct rbi_text why;
    struct rbi_endpoint *holder = registration_holder(request, endpoint);
    if (!holder || strcmp(holder->path.bytes, endpoint->path.bytes) != 0) {
        return true; /* free, or refused as ever */
    }
    if (holder->origin && !endpoint->origin) {
        rbi_origin_conflict(request->daemon, holder);
        registration_replace(request, holder); /* who lives here goes before its like elsewhere */
        return true;
    }
    if (!request->body->registration.takeover) {
        return true;
    }
    if (!rbi_rights_may_own(request->peer, endpoint, RBI_ACL_TAKEOVER, holder->peer->uid, &why)) {
        rbi_rights_refuse(request, &why);
        return false;
    }
    rbi_log(RBI_LOG_INFO, "taken_over",
            "path=%s incarnation=%" PRIu32 " uid=%" PRIu32 " by_uid=%" PRIu32 " by_pid=%s",
            holder->path.bytes, holder->incarnation, holder->peer->uid, request->peer->uid,
            rbi_log_pid(&(struct rbi_log_pid){{0}}, request->peer->pid));
    registration_replace(request, holder);
    request->daemon->counters.names_taken_over++;
    return true;
}

/** Whether a hidden proxy is there already: no cluster would say so. */
static bool registration_is_twice(const struct rbi_request *request,
                                  const struct rbi_endpoint *endpoint)
{
    if (!endpoint->origin || !endpoint->origin->hidden || !registration_holder(request, endpoint)) {
        return false;
    }
    rbi_request_refuse(request, RBI_CODE_IN_USE, "%.180s of host %s has its proxy already",
                       endpoint->path.bytes, endpoint->origin->host);
    return true;
}

/** Enters it and makes it visible. @return false: the client has been told */
static bool registration_enter(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    struct rbi_text why;
    registration_verify_holder(request, endpoint);
    if (request->peer->doomed || !registration_take_over(request, endpoint) ||
        request->peer->doomed) {
        return false; /* what was told of the holder's end did not reach it */
    }
    if (registration_is_twice(request, endpoint)) {
        return false;
    }
    const int result = rbi_registry_add(request->daemon, endpoint, &why);
    if (result < 0) {
        rbi_request_refuse_errno(request, "registration", result);
        return false;
    }
    if (result != RBI_REGISTRY_OK) {
        if (endpoint->origin) {
            rbi_origin_conflict(request->daemon, endpoint);
        }
        rbi_request_refuse(request, result == RBI_REGISTRY_CLASH ? RBI_CODE_CLASH : RBI_CODE_IN_USE,
                           "%s", why.bytes);
        return false;
    }
    const int shown = rbi_registry_state_visible(endpoint->state)
                          ? rbi_registry_show(request->daemon, endpoint)
                          : 0;
    if (shown < 0) {
        rbi_request_refuse_errno(request, "directory", shown);
    }
    return shown == 0;
}

static bool registration_make(const struct rbi_request *request, struct rbi_endpoint *endpoint)
{
    if (!registration_name(request, endpoint)) {
        return false;
    }
    if (request->body->registration.host.length != 0 && rbi_origin_init(request, endpoint) < 0) {
        rbi_request_refuse_errno(request, "proxy", -ENOMEM);
        return false;
    }
    registration_describe(request, endpoint);
    return registration_own(request, endpoint) && registration_awaited(request, endpoint) &&
           registration_charge(request, endpoint) && registration_adopt(request, endpoint) &&
           registration_enter(request, endpoint);
}

void rbi_handle_registration(const struct rbi_request *request)
{
    struct rbi_peer *peer = request->peer;
    /* One that ended in this very turn holds neither its address nor its quota any more. */
    rbi_peers_reap(request->daemon);
    /* One that gave up waiting for us has another connection by now: entered here, the end of
     * this one would be told as its death. */
    if (rbi_peer_is_gone(peer)) {
        return;
    }
    if (!registration_check(request)) {
        request->daemon->counters.registrations_refused++;
        return;
    }
    struct rbi_endpoint *endpoint = rbi_endpoint_new(request->daemon, peer);
    if (!endpoint) {
        rbi_request_refuse_errno(request, "registration", -ENOMEM);
        return;
    }
    if (!registration_make(request, endpoint)) {
        request->daemon->counters.registrations_refused++;
        (void)rbi_endpoint_free(endpoint);
        return;
    }
    peer->endpoint = endpoint;
    rbi_names_enter(&request->daemon->names, endpoint);
    rbi_rights_forget(peer); /* it has a path by now */
    request->daemon->counters.registrations++;
    rbi_log(endpoint->cluster ? RBI_LOG_INFO : RBI_LOG_DEBUG, "registered",
            "path=%s incarnation=%" PRIu32 " uid=%" PRIu32 " pid=%s%s%s", endpoint->path.bytes,
            endpoint->incarnation, peer->uid, rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid),
            endpoint->origin ? " host=" : "", endpoint->origin ? endpoint->origin->host : "");
    const struct rbi_wire_registered registered = {.cluster = endpoint->cluster_id,
                                                   .instance = endpoint->instance,
                                                   .incarnation = endpoint->incarnation,
                                                   .slot = endpoint->slot,
                                                   .path = endpoint->path,
                                                   .cookie = endpoint->cookie};
    rbi_peer_send(peer, RBI_WIRE_REGISTERED, &registered, request->serial);
}
