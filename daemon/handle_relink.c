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
    const uint32_t limit = rbi_quota_limits(&request->daemon->quota, request->peer->actor)->links;
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
        struct rbi_text why;
        rbi_text_format(&why,
                        "%.100s of uid %" PRIu32 ": quota.links is used up: limit %" PRIu32
                        ", used %" PRIu32 "; end some, or raise it for this uid",
                        endpoint->path.bytes, request->peer->actor, limit,
                        endpoint->link_count + endpoint->claim_count);
        rbi_request_refuse_quota(request, &why);
        return false;
    }
    return true;
}

/** Charges its side, and the link if it was the one who asked for it. */
static bool relink_charge(const struct rbi_request *request, struct rbi_claim_charges *charges)
{
    const struct rbi_wire_relink *body = &request->body->relink;
    struct rbi_text why;
    if (rbi_side_charge(request, request->peer->actor, body->side_bytes, &charges->side, &why) !=
        0) {
        return false;
    }
    const int result = body->requester
                           ? rbi_quota_charge(&request->daemon->quota, request->peer->actor,
                                              RBI_QUOTA_LINKS, 1, &charges->link, &why)
                           : 0;
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "link", result);
    }
    return result == 0;
}

void rbi_handle_relink(const struct rbi_request *request)
{
    const struct rbi_wire_relink *body = &request->body->relink;
    struct rbi_claim_charges charges = {.side = {.user = NULL}};
    if (!relink_check(request)) {
        return;
    }
    if (!relink_charge(request, &charges)) {
        rbi_claim_charges_release(&charges);
        return;
    }
    const int result = rbi_relink_claim(request->daemon, request->peer->endpoint, body, &charges);
    rbi_claim_charges_release(&charges);
    if (result == -EEXIST) {
        rbi_request_refuse(request, RBI_CODE_IN_USE, "this link, or one of this pair, is known");
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "link", result);
    } else {
        rbi_request_ok(request, (uint64_t)result);
    }
}
