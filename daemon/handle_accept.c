/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/side.h"

/** Hands the server's side to the requester: the answer to its INTRODUCE. @retval 0; -errno */
static int accept_tell(struct rbi_link *link, int side_fd)
{
    const struct rbi_endpoint *server = link->server;
    struct rbi_text methods[2];
    rbi_rights_methods_of(link, methods);
    const struct rbi_wire_linked linked = {.link_id = link->id,
                                           .cluster = server->cluster_id,
                                           .instance = server->instance,
                                           .incarnation = server->incarnation,
                                           .path = server->path,
                                           .side_bytes = link->side_bytes[1],
                                           .relayed = server->origin != NULL,
                                           .pool_bytes = server->pool_bytes,
                                           .get = methods[1],
                                           .send = methods[0]};
    const int fds[] = {side_fd, server->pool_fd, server->page_fd};
    return rbi_peer_send_with_fds(link->requester->peer, RBI_WIRE_LINKED, &linked, link->serial,
                                  fds, RBI_ARRAY_SIZE(fds));
}

void rbi_handle_accept(const struct rbi_request *request)
{
    const struct rbi_wire_accept *body = &request->body->accept;
    struct rbi_endpoint *server = request->peer->endpoint;
    struct rbi_link *link = rbi_link_find(request->daemon, body->link_id);
    if (!link || link->server != server || link->linked) {
        rbi_peer_charge(request->peer);
        rbi_request_refuse(request, RBI_CODE_PEER_GONE, "this introduction is over");
        return;
    }
    struct rbi_text why;
    const int code = rbi_side_admit(request, link->requester->peer->actor, request->fds->fds[0],
                                    body->side_bytes, &link->charges.sides[1], &why);
    if (code != 0) {
        /* The server was told why, but of no link that is over: its end of it goes with that. */
        rbi_link_end(link, NULL, RBI_REASON_REFUSED, code, why.bytes);
        return;
    }
    link->side_bytes[1] = body->side_bytes;
    if (accept_tell(link, request->fds->fds[0]) < 0) {
        rbi_link_end(link, NULL, RBI_REASON_NO_RESOURCES, RBI_CODE_NO_FDS,
                     "the daemon could not hand over the link");
        return;
    }
    rbi_link_set_linked(link);
}
