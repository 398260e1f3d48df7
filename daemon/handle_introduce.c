/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/relink.h"
#include "daemon/request.h"
#include "daemon/side.h"
#include "shm/bell.h"

#include <errno.h>
#include <inttypes.h>

/** The instance that is meant, or NULL: the client has been told why not. */
static struct rbi_endpoint *introduce_server(const struct rbi_request *request)
{
    const struct rbi_wire_introduce *body = &request->body->introduce;
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, body->cluster);
    if (!cluster) {
        rbi_request_refuse(request, RBI_CODE_NO_SERVICE, "no cluster #%016" PRIx64, body->cluster);
        return NULL;
    }
    struct rbi_endpoint *server = rbi_cluster_member(cluster, body->instance);
    if (!server || server->peer->doomed || server->state == RBI_ENDPOINT_CLOSED ||
        (body->incarnation && body->incarnation != server->incarnation)) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE,
                           "%.180s has no instance %" PRId32 " of incarnation %" PRIu32,
                           cluster->path.bytes, body->instance, body->incarnation);
        return NULL;
    }
    if (server == request->peer->endpoint) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "an endpoint needs no link to itself");
        return NULL;
    }
    if (server->origin && request->peer->endpoint->origin) {
        /* Whoever asks from there knows of its own: what goes on to a third host is not a link. */
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "%.140s is of host %s, not of this one",
                           server->path.bytes, server->origin->host);
        return NULL;
    }
    if (server->state == RBI_ENDPOINT_STARTING) {
        rbi_request_refuse(request, RBI_CODE_NOT_READY, "%.200s is still starting",
                           server->path.bytes);
        return NULL;
    }
    if (server->state == RBI_ENDPOINT_DRAINING) {
        rbi_request_refuse(request, RBI_CODE_DRAINING, "%.200s is leaving", server->path.bytes);
        return NULL;
    }
    return server;
}

/** Whether @p endpoint has place for one more link. @retval 0; 1 @p why says why not */
static int
introduce_place(const struct rbi_endpoint *endpoint, uint32_t actor, struct rbi_text *why)
{
    const uint32_t uid = endpoint->peer->actor;
    const uint32_t limit = rbi_quota_limits(&endpoint->daemon->quota, uid)->links;
    const uint32_t used = endpoint->link_count + endpoint->claim_count;
    if (used >= limit) {
        rbi_text_format(why,
                        "%.100s of uid %" PRIu32 ": quota.links is used up: limit %" PRIu32
                        ", used %" PRIu32 "; end some, or raise it for this uid",
                        endpoint->path.bytes, uid, limit, used);
        return 1;
    }
    if (uid != actor && rbi_shares_room(&endpoint->foreign_links, limit - used, actor) == 0) {
        rbi_text_format(why,
                        "uid %" PRIu32 ": its share of quota.links of %.80s is used up: limit "
                        "%" PRIu32 ", used %" PRIu32 ", by uid %" PRIu32 " %" PRIu64
                        "; the rest is kept for others",
                        actor, endpoint->path.bytes, limit, used, actor,
                        rbi_shares_used(&endpoint->foreign_links, actor));
        return 1;
    }
    return 0;
}

/** @return whether a link of this pair may be made; if not the client has been told */
static bool introduce_check(const struct rbi_request *request, const struct rbi_endpoint *server)
{
    const struct rbi_endpoint *requester = request->peer->endpoint;
    const struct rbi_link *link = rbi_link_find_pair(request->daemon, requester, server);
    const uint64_t link_id = link ? link->id : rbi_relink_claimed(requester, server);
    if (link_id) {
        rbi_peer_send_error(request->peer, request->serial, RBI_CODE_IN_USE, link_id,
                            "the two have a link already");
        return false;
    }
    if (requester->state == RBI_ENDPOINT_CLOSED) {
        rbi_request_refuse(request, RBI_CODE_CLOSED, "this endpoint has left");
        return false;
    }
    if (rbi_bell_check(request->fds->fds[1]) < 0) {
        rbi_request_refuse(request, RBI_CODE_BAD_PEER, "bell: not a connected stream socket");
        return false;
    }
    return true;
}

/** Charges the requester for a link, and its fair share of the server's places. */
static bool introduce_charge(const struct rbi_request *request,
                             struct rbi_endpoint *server,
                             struct rbi_link_charges *charges)
{
    const uint32_t uid = request->peer->actor;
    struct rbi_text why;
    int result = introduce_place(request->peer->endpoint, uid, &why);
    if (result == 0) {
        result = introduce_place(server, uid, &why);
    }
    if (result == 0) {
        result = rbi_quota_charge(&request->daemon->quota, uid, RBI_QUOTA_LINKS, 1, &charges->link,
                                  &why);
    }
    if (result == 0 && server->peer->actor != uid) {
        charges->place = rbi_share_take(&server->foreign_links, uid, 1);
        result = charges->place ? 0 : -ENOMEM;
    }
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "link", result);
    }
    return result == 0 &&
           rbi_side_admit(request, uid, request->fds->fds[0], request->body->introduce.side_bytes,
                          &charges->sides[0], &why) == 0;
}

/** Hands the offer of the requester to the server. @retval 0; -errno */
static int introduce_tell(const struct rbi_request *request, struct rbi_link *link)
{
    const struct rbi_endpoint *requester = link->requester;
    struct rbi_text methods[2];
    rbi_rights_methods_of(link, methods);
    const struct rbi_wire_introduced introduced = {.link_id = link->id,
                                                   .cluster = requester->cluster_id,
                                                   .instance = requester->instance,
                                                   .incarnation = requester->incarnation,
                                                   .path = requester->path,
                                                   .side_bytes = link->side_bytes[0],
                                                   .pool_bytes = requester->pool_bytes,
                                                   .uid = requester->origin ? requester->origin->uid
                                                                            : requester->peer->uid,
                                                   .relayed = requester->origin != NULL,
                                                   .get = methods[0],
                                                   .send = methods[1]};
    const int fds[] = {request->fds->fds[0], requester->pool_fd, requester->page_fd,
                       request->fds->fds[1]};
    return rbi_peer_send_with_fds(link->server->peer, RBI_WIRE_INTRODUCED, &introduced, 0, fds,
                                  RBI_ARRAY_SIZE(fds));
}

void rbi_handle_introduce(const struct rbi_request *request)
{
    struct rbi_link_charges charges = {.place = NULL};
    struct rbi_link *link = NULL;
    struct rbi_endpoint *server = introduce_server(request);
    struct rbi_text why;
    if (!server || !introduce_check(request, server)) {
        return;
    }
    if (!rbi_rights_may_link(request->peer->endpoint, server, &why)) {
        request->daemon->counters.introductions_failed++;
        rbi_rights_refuse(request, &why);
        return;
    }
    if (!introduce_charge(request, server, &charges)) {
        rbi_link_charges_release(&charges);
        return;
    }
    int result =
        rbi_link_new(request->daemon, request->peer->endpoint, server, request->serial, &link);
    if (result < 0) {
        rbi_link_charges_release(&charges);
        rbi_request_refuse_errno(request, "link", result);
        return;
    }
    link->charges = charges;
    rbi_rights_note_link(link);
    link->side_bytes[0] = request->body->introduce.side_bytes;
    result = introduce_tell(request, link);
    if (result < 0) {
        (void)rbi_link_free(link);
        rbi_request_refuse_errno(request, "introduction", result);
        return;
    }
    request->daemon->counters.introductions++;
}
