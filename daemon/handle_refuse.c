/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

void rbi_handle_refuse(const struct rbi_request *request)
{
    const struct rbi_wire_refuse *body = &request->body->refuse;
    struct rbi_endpoint *server = request->peer->endpoint;
    struct rbi_link *link = rbi_link_find(request->daemon, body->link_id);
    if (!link || link->server != server || link->linked) {
        rbi_peer_charge(request->peer);
        return; /* over already: it was told */
    }
    if (body->code == RBI_CODE_NO_MEMORY || body->code == RBI_CODE_NO_FDS) {
        rbi_health_unreachable(server); /* else it had its reasons, or the requester is at fault */
    }
    const int code = body->code < 0 ? body->code : RBI_CODE_DENIED;
    rbi_link_end(link, server, RBI_REASON_REFUSED, code,
                 body->text.length ? body->text.bytes : "the instance refused");
}
