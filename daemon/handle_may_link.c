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

void rbi_handle_may_link(const struct rbi_request *request)
{
    const struct rbi_wire_may_link *body = &request->body->may_link;
    struct rbi_wire_verdict verdict = {.allowed = 1};
    const struct rbi_endpoint *from = rbi_request_instance(request, &body->from);
    if (!from || !rbi_rights_admin(request, from)) {
        return;
    }
    const struct rbi_endpoint *to = rbi_request_instance(request, &body->to);
    if (!to) {
        return;
    }
    if (from != to && !(rbi_rights_may_link(from, to, &verdict.why) &&
                        rbi_rights_may_send(from, to, body->method, &verdict.why))) {
        verdict.allowed = 0;
    }
    rbi_peer_send(request->peer, RBI_WIRE_VERDICT, &verdict, request->serial);
}
