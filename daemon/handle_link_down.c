/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/relink.h"
#include "daemon/request.h"

void rbi_handle_link_down(const struct rbi_request *request)
{
    const struct rbi_wire_link_down *body = &request->body->link_down;
    const struct rbi_endpoint *endpoint = request->peer->endpoint;
    struct rbi_link *link = rbi_link_find(request->daemon, body->link_id);
    if (!link || (link->requester != endpoint && link->server != endpoint)) {
        /* Told of by this end alone so far, or both ends said so at once. */
        rbi_peer_charge(request->peer);
        rbi_relink_drop(request->peer->endpoint, body->link_id);
        return;
    }
    const enum rbi_reason reason = body->reason > RBI_REASON_NONE && body->reason <= RBI_REASON_LAST
                                       ? (enum rbi_reason)body->reason
                                       : RBI_REASON_LEFT;
    rbi_link_end(link, endpoint, reason, RBI_CODE_PEER_GONE, "the instance gave the link up");
}
