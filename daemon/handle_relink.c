/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/side.h"

#include <errno.h>
#include <inttypes.h>

/** @return whether the claim is one that may be made; if not the client has been told */
static bool relink_check(const struct rbi_request *request)
{
    const struct rbi_wire_relink *body = &request->body->relink;
    const struct rbi_endpoint *endpoint = request->peer->endpoint;
    const uint32_t limit = request->daemon->config.quota.links;
    if (body->link_id == 0 || body->link_id == UINT64_MAX || body->incarnation == 0 ||
        body->instance <= 0 || body->requester > 1 ||
        (body->cluster == endpoint->cluster_id && body->instance == endpoint->instance)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "no link that a daemon has made");
        return false;
    }
    if (endpoint->state == RBI_ENDPOINT_CLOSED) {
        rbi_request_refuse(request, RBI_CODE_CLOSED, "this endpoint has left");
        return false;
    }
    if (endpoint->link_count + endpoint->claim_count >= limit) {
        rbi_request_refuse(request, RBI_CODE_QUOTA,
                           "%.120s of uid %" PRIu32 ": quota.links is used up: limit %" PRIu32
                           ", used %" PRIu32,
                           endpoint->path.bytes, request->peer->uid, limit,
                           endpoint->link_count + endpoint->claim_count);
        return false;
    }
    return true;
}

void rbi_handle_relink(const struct rbi_request *request)
{
    const struct rbi_wire_relink *body = &request->body->relink;
    struct rbi_charge charge = {.user = NULL};
    if (!relink_check(request) || !rbi_side_charge(request, body->side_bytes, &charge)) {
        return;
    }
    const int result = rbi_relink_claim(request->daemon, request->peer->endpoint, body, &charge);
    if (result < 0) {
        rbi_charge_release(&charge);
    }
    if (result == -EEXIST) {
        rbi_request_refuse(request, RBI_CODE_IN_USE, "this link, or one of this pair, is known");
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "link", result);
    } else {
        rbi_request_ok(request, (uint64_t)result);
    }
}
