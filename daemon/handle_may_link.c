/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether one instance has a right to another, to link to it and to send it messages of a method,
 * and which rule says no: for who explains a route.
 * It tells what the rules hold against the first one, so only who administers that may ask.
 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/rights.h"

/** The instance that is meant, or NULL: the tool has been told why not. */
static struct rbi_endpoint *find(const struct rbi_request *request, const struct rbi_text *path)
{
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(path->bytes, path->length, &pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH, "not the path of an instance");
        return NULL;
    }
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, pidf.cluster);
    struct rbi_endpoint *endpoint = cluster ? rbi_cluster_member(cluster, pidf.instance) : NULL;
    if (!endpoint || endpoint->peer->doomed || endpoint->state == RBI_ENDPOINT_CLOSED) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "no instance %.200s", path->bytes);
        return NULL;
    }
    return endpoint;
}

void rbi_handle_may_link(const struct rbi_request *request)
{
    const struct rbi_wire_may_link *body = &request->body->may_link;
    struct rbi_wire_verdict verdict = {.allowed = 1};
    const struct rbi_endpoint *from = find(request, &body->from);
    if (!from || !rbi_rights_admin(request, from)) {
        return;
    }
    const struct rbi_endpoint *to = find(request, &body->to);
    if (!to) {
        return;
    }
    if (from != to && !(rbi_rights_may_link(from, to, &verdict.why) &&
                        rbi_rights_may_send(from, to, body->method, &verdict.why))) {
        verdict.allowed = 0;
    }
    rbi_peer_send(request->peer, RBI_WIRE_VERDICT, &verdict, request->serial);
}
