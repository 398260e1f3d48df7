/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the node tree: who asks may do it, the tree stays one, quotas hold; then nodes.h.
 *
 *              user node            cluster                     instance           above
 *   CREATE     own                  admin: known, nobody there  by registering     by itself
 *   SET        admin, its revision  by the configuration        by itself          -
 *   REMOVE     admin, no children   admin: nobody there         admin: a dead one  -
 *
 * What belongs to an endpoint is changed by others without becoming theirs.
 */
#include "daemon/handle_node.h"

#include "daemon/code.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define ANONYMOUS_PREFIX "/anon/"

/** What the registry says went wrong with a change. */
static void node_refuse(const struct rbi_request *request, int result, const struct rbi_text *why)
{
    if (result > 0) {
        rbi_request_refuse_quota(request, why);
    } else {
        rbi_request_refuse_errno(request, "the node could not be kept", result);
    }
}

static struct rbi_node *node_find(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->node.path;
    return rbi_nodes_find(&request->daemon->nodes, path->bytes, path->length);
}

/** Asks for ADMIN of a node. @return false: the client has been told */
static bool node_admin(const struct rbi_request *request, const struct rbi_node *node)
{
    struct rbi_text why;
    if (rbi_rights_may_path_of(request->peer, RBI_ACL_ADMIN, node->path, node->path_length,
                               node->uid, &why)) {
        return true;
    }
    rbi_rights_refuse(request, &why);
    return false;
}

/** The node that is to be changed, or NULL: the client has been told why not. */
static struct rbi_node *node_to_change(const struct rbi_request *request)
{
    const struct rbi_wire_node *body = &request->body->node;
    struct rbi_node *node = node_find(request);
    if (!node) {
        rbi_request_refuse(request, RBI_CODE_NO_SERVICE, "there is no node %.200s",
                           body->path.bytes);
        return NULL;
    }
    if (!node_admin(request, node)) {
        return NULL;
    }
    if (body->revision != 0 && body->revision != node->revision) {
        rbi_request_refuse(request, RBI_CODE_IN_USE,
                           "revision %" PRIu64 " was expected, it has %" PRIu64
                           ": get it, and try again",
                           body->revision, node->revision);
        return NULL;
    }
    return node;
}

/* ---- CREATE ---------------------------------------------------------------------------- */

/** A cluster that nobody is in is made known: who targets it learns that it is waited for. */
static void create_cluster(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->node.path;
    struct rbi_daemon *daemon = request->daemon;
    const uint64_t id = rbi_cluster_id(path->bytes, path->length);
    if (!rbi_rights_admin_path(request, path->bytes, path->length)) {
        return;
    }
    struct rbi_cluster *cluster = rbi_registry_cluster(&daemon->registry, id);
    if (cluster) {
        const bool same = cluster->path.length == path->length &&
                          memcmp(cluster->path.bytes, path->bytes, path->length) == 0;
        rbi_request_refuse(request, same ? RBI_CODE_IN_USE : RBI_CODE_CLASH,
                           same ? "%.200s is known already" : "cluster %.200s has the same id",
                           cluster->path.bytes);
        return;
    }
    cluster = rbi_registry_restore(daemon, id, path->bytes, path->length, 0);
    if (!cluster) {
        rbi_request_refuse_errno(request, "cluster", -ENOMEM);
        return;
    }
    rbi_registry_refresh(daemon, cluster);
    rbi_known_sync(daemon);
    rbi_request_ok(request, 0);
}

/** @return whether a node may be there; if not the client has been told */
static bool create_check_place(const struct rbi_request *request,
                               const struct rbi_node_path *parsed)
{
    const struct rbi_text *path = &request->body->node.path;
    const struct rbi_nodes *nodes = &request->daemon->nodes;
    if (strncmp(path->bytes, ANONYMOUS_PREFIX, sizeof(ANONYMOUS_PREFIX) - 1) == 0) {
        rbi_request_refuse(request, RBI_CODE_DENIED, ANONYMOUS_PREFIX " is for anonymous clients");
        return false;
    }
    if (parsed->parent_length == parsed->meta_length) {
        return true;
    }
    const struct rbi_node *parent = rbi_nodes_find(nodes, path->bytes, parsed->parent_length);
    if (!parent) {
        rbi_request_refuse(request, RBI_CODE_NO_SERVICE, "there is no node %.*s: create it first",
                           (int)rbi_min_u64(parsed->parent_length, 200), path->bytes);
        return false;
    }
    if (parent->flags & RBI_NODE_EPHEMERAL) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "%.200s is ephemeral, and has no children: it could end before them",
                           parent->path);
        return false;
    }
    return true;
}

/** @return whether the path is free; if not the client has been told */
static bool create_check_free(const struct rbi_request *request)
{
    struct rbi_node *node = node_find(request);
    const bool again = (request->body->node.flags & RBI_NODE_AGAIN) != 0;
    if (!node && again && request->daemon->nodes.store.whole) {
        /* Somebody has removed it, and that is not to be undone by whoever has not heard of it. */
        rbi_request_refuse(request, RBI_CODE_NO_SERVICE, "%.200s has been removed",
                           request->body->node.path.bytes);
        return false;
    }
    if (!node) {
        return true;
    }
    if (again && request->peer->endpoint &&
        rbi_node_return(request->daemon, node, request->peer->endpoint)) {
        rbi_request_ok(request, node->revision);
        return false;
    }
    rbi_request_refuse(
        request, RBI_CODE_IN_USE, "%.150s is there already, with revision %" PRIu64 "%s",
        node->path, node->revision,
        node->flags & RBI_NODE_EPHEMERAL && !node->owner ? ", of an endpoint that may come back"
                                                         : "");
    return false;
}

static void create_user(const struct rbi_request *request, const struct rbi_node_path *parsed)
{
    const struct rbi_wire_node *body = &request->body->node;
    struct rbi_peer *peer = request->peer;
    const bool ephemeral = (body->flags & RBI_NODE_EPHEMERAL) != 0;
    const char *creator = peer->endpoint ? peer->endpoint->path.bytes : peer->program;
    struct rbi_text why;
    if (!rbi_rights_may_path_of(peer, RBI_ACL_OWN, body->path.bytes, body->path.length, peer->uid,
                                &why)) {
        rbi_rights_refuse(request, &why);
        return;
    }
    if (ephemeral && !peer->endpoint) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "an ephemeral node needs an endpoint that it ends with");
        return;
    }
    if (!create_check_place(request, parsed) || !create_check_free(request)) {
        return;
    }
    const struct rbi_node_plan plan = {.path = body->path.bytes,
                                       .path_length = body->path.length,
                                       .creator = creator,
                                       .creator_length = (uint16_t)strlen(creator),
                                       .value = body->value.bytes,
                                       .value_length = body->value.length,
                                       .flags = body->flags,
                                       .uid = peer->uid,
                                       .owner = ephemeral ? peer->endpoint : NULL};
    struct rbi_node *node = NULL;
    const int result = rbi_node_create(request->daemon, &plan, &node, &why);
    if (result != 0) {
        node_refuse(request, result, &why);
        return;
    }
    rbi_request_ok(request, node->revision);
}

static void node_create(const struct rbi_request *request, const struct rbi_node_path *parsed)
{
    const struct rbi_text *path = &request->body->node.path;
    switch (parsed->kind) {
    case RBI_NODE_USER:
        create_user(request, parsed);
        break;
    case RBI_NODE_CLUSTER:
        create_cluster(request);
        break;
    case RBI_NODE_INSTANCE:
        rbi_request_refuse(request, RBI_CODE_DENIED,
                           "%.180s is an instance: it comes by registering, and goes with its "
                           "process",
                           path->bytes);
        break;
    case RBI_NODE_PREFIX:
    case RBI_NODE_META:
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "%.150s is there by itself while something is below it: nodes are made "
                           "below \"meta\"",
                           path->bytes);
        break;
    }
}

/* ---- SET ------------------------------------------------------------------------------- */

static void node_set(const struct rbi_request *request, const struct rbi_node_path *parsed)
{
    const struct rbi_wire_node *body = &request->body->node;
    struct rbi_text why;
    if (parsed->kind != RBI_NODE_USER) {
        const bool instance = parsed->kind == RBI_NODE_INSTANCE;
        rbi_request_refuse(request, instance ? RBI_CODE_DENIED : RBI_CODE_ARGUMENT,
                           instance ? "%.150s is an instance: what it says of itself is its own, "
                                      "what an operator says of it is configuration"
                                    : "%.150s has no value: policies of clusters are configuration",
                           body->path.bytes);
        return;
    }
    struct rbi_node *node = node_to_change(request);
    if (!node) {
        return;
    }
    const int result = rbi_node_set(request->daemon, node, &body->value, &why);
    if (result != 0) {
        node_refuse(request, result, &why);
        return;
    }
    rbi_request_ok(request, node->revision);
}

/* ---- REMOVE ---------------------------------------------------------------------------- */

static void remove_user(const struct rbi_request *request)
{
    struct rbi_node *node = node_to_change(request);
    if (!node) {
        return;
    }
    if (node->children != 0) {
        rbi_request_refuse(request, RBI_CODE_IN_USE,
                           "%.180s has children, %" PRIu32 ": remove those first", node->path,
                           node->children);
        return;
    }
    const int result = rbi_node_remove(request->daemon, node);
    if (result != 0) {
        node_refuse(request, result, NULL);
        return;
    }
    rbi_request_ok(request, request->daemon->nodes.revision);
}

static void remove_cluster(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->node.path;
    struct rbi_daemon *daemon = request->daemon;
    struct rbi_cluster *cluster =
        rbi_registry_cluster(&daemon->registry, rbi_cluster_id(path->bytes, path->length));
    if (!rbi_rights_admin_path(request, path->bytes, path->length)) {
        return;
    }
    if (!cluster) {
        rbi_request_refuse(request, RBI_CODE_NO_SERVICE, "there is no cluster %.200s", path->bytes);
    } else if (rbi_nodes_below(&daemon->nodes, path->bytes, path->length)) {
        rbi_request_refuse(request, RBI_CODE_IN_USE,
                           "%.180s has nodes below \"meta\": remove those first", path->bytes);
    } else if (!rbi_registry_forget(daemon, cluster)) {
        rbi_request_refuse(request, RBI_CODE_IN_USE,
                           "%.150s has instances, %" PRIu32 ", or expects some back", path->bytes,
                           cluster->member_count);
    } else {
        rbi_request_ok(request, 0);
    }
}

/** One that was there before this daemon, or died just now, is not waited for any more. */
static void remove_instance(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->node.path;
    struct rbi_daemon *daemon = request->daemon;
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(path->bytes, path->length, &pidf, &info) != 0) {
        rbi_request_refuse(request, RBI_CODE_PATH, "not the path of an instance");
        return;
    }
    struct rbi_cluster *cluster = rbi_registry_cluster(&daemon->registry, pidf.cluster);
    if (cluster && rbi_cluster_member(cluster, pidf.instance)) {
        rbi_request_refuse(request, RBI_CODE_DENIED,
                           "%.150s lives: it goes when its process ends, or drains and leaves",
                           path->bytes);
        return;
    }
    if (!rbi_rights_admin_path(request, path->bytes, path->length)) {
        return;
    }
    const uint32_t absent = cluster ? cluster->absent.count : 0;
    bool any = cluster && rbi_unconfirmed_drop(cluster, pidf.instance);
    if (absent != 0) {
        rbi_absent_drop(request->daemon, cluster, pidf.instance);
        any = any || cluster->absent.count != absent;
    }
    if (!any) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "no instance %.200s", path->bytes);
        return;
    }
    rbi_registry_refresh(daemon, cluster);
    rbi_request_ok(request, 0);
}

static void node_remove(const struct rbi_request *request, const struct rbi_node_path *parsed)
{
    switch (parsed->kind) {
    case RBI_NODE_USER:
        remove_user(request);
        break;
    case RBI_NODE_CLUSTER:
        remove_cluster(request);
        break;
    case RBI_NODE_INSTANCE:
        remove_instance(request);
        break;
    case RBI_NODE_PREFIX:
    case RBI_NODE_META:
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "%.150s goes by itself with the last that is below it",
                           request->body->node.path.bytes);
        break;
    }
}

/* ---- all of them ----------------------------------------------------------------------- */

void rbi_handle_node(const struct rbi_request *request)
{
    const struct rbi_wire_node *body = &request->body->node;
    struct rbi_node_path parsed;
    if (rbi_node_path_parse(body->path.bytes, body->path.length, &parsed) != 0) {
        rbi_request_refuse(request, RBI_CODE_PATH, "path is wrong at byte %u: %s",
                           parsed.error_offset, rbi_path_error_text(parsed.error));
        return;
    }
    switch (body->what) {
    case RBI_NODE_CREATE:
        node_create(request, &parsed);
        break;
    case RBI_NODE_SET:
        node_set(request, &parsed);
        break;
    case RBI_NODE_REMOVE:
        node_remove(request, &parsed);
        break;
    case RBI_NODE_GET:
        rbi_node_get(request, &parsed);
        break;
    case RBI_NODE_SCAN:
        rbi_node_scan(request);
        break;
    default:
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "nothing to do: %" PRIu32, body->what);
        break;
    }
}
