/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/handle_follow.c - FOLLOW of tools, and HOP of the bridge, which goes to them. */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

#include <string.h>

static void drop(struct rbi_follower *follower)
{
    rbi_charge_release(&follower->charge);
    *follower = (struct rbi_follower){.peer = NULL};
}

void rbi_follow_peer_gone(struct rbi_peer *peer)
{
    for (unsigned i = 0; i < RBI_FOLLOWERS_MAX; i++) {
        struct rbi_follower *follower = &peer->daemon->followers.items[i];
        if (follower->peer == peer) {
            drop(follower);
        }
    }
}

static bool has_trace(const struct rbi_follower *follower, const struct rbi_data *trace)
{
    return trace->length == sizeof(follower->trace.bytes) &&
           memcmp(trace->bytes, follower->trace.bytes, sizeof(follower->trace.bytes)) == 0;
}

/** Where it goes: its old place, or a free one; NULL: all are taken. */
static struct rbi_follower *place_of(const struct rbi_request *request)
{
    struct rbi_follower *place = NULL;
    const uint64_t now_ns = rbi_loop_now_ns(request->daemon->loop);
    for (unsigned i = 0; i < RBI_FOLLOWERS_MAX; i++) {
        struct rbi_follower *follower = &request->daemon->followers.items[i];
        if (follower->peer && follower->until_ns <= now_ns) {
            drop(follower);
        }
        if (follower->peer == request->peer && has_trace(follower, &request->body->follow.trace)) {
            return follower;
        }
        place = !place && !follower->peer ? follower : place;
    }
    return place;
}

static bool may_administer(struct rbi_peer *peer)
{
    struct rbi_text why;
    return rbi_rights_may_path(peer, RBI_ACL_ADMIN, "/", 1, &why);
}

/** Whether it leaves others room to follow something too. */
static bool is_modest(const struct rbi_request *request)
{
    unsigned count = 0;
    for (unsigned i = 0; i < RBI_FOLLOWERS_MAX; i++) {
        const struct rbi_peer *peer = request->daemon->followers.items[i].peer;
        count += peer && peer->uid == request->peer->uid ? 1U : 0U;
    }
    return count < RBI_FOLLOWERS_OF_USER || may_administer(request->peer);
}

/** A free place becomes its own. @return false: it has been told why not */
static bool take_place(const struct rbi_request *request, struct rbi_follower *follower)
{
    struct rbi_charge charge = {.user = NULL};
    struct rbi_text why;
    const int result = rbi_quota_charge(&request->daemon->quota, request->peer->actor,
                                        RBI_QUOTA_WATCHES, 1, &charge, &why);
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "follow", result);
    } else {
        *follower = (struct rbi_follower){.peer = request->peer, .charge = charge};
        memcpy(follower->trace.bytes, request->body->follow.trace.bytes,
               sizeof(follower->trace.bytes));
    }
    return result == 0;
}

void rbi_handle_follow(const struct rbi_request *request)
{
    const struct rbi_data *trace = &request->body->follow.trace;
    if (trace->length != sizeof(struct rbi_trace_id)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "trace: not 16 bytes");
        return;
    }
    struct rbi_follower *follower = place_of(request);
    if (!follower || (!follower->peer && !is_modest(request))) {
        rbi_request_refuse(request, RBI_CODE_QUOTA,
                           "%u traces are followed at a time, and %u for each user: wait until one "
                           "of them is not any more",
                           RBI_FOLLOWERS_MAX, RBI_FOLLOWERS_OF_USER);
        return;
    }
    if (!follower->peer && !take_place(request, follower)) {
        return;
    }
    follower->until_ns = rbi_loop_now_ns(request->daemon->loop) + RBI_FOLLOW_FOR_NS;
    rbi_request_ok(request, 0);
}

static bool may_hear(struct rbi_peer *peer, const struct rbi_wire_hop *hop)
{
    return peer->uid == hop->uid || may_administer(peer);
}

void rbi_handle_hop(const struct rbi_request *request)
{
    const struct rbi_wire_hop *hop = &request->body->hop;
    const uint64_t now_ns = rbi_loop_now_ns(request->daemon->loop);
    if (request->daemon->routes.bridge != request->peer) {
        rbi_peer_violation(request->peer, request->serial, "HOP is the bridge's to say");
        return;
    }
    for (unsigned i = 0; i < RBI_FOLLOWERS_MAX; i++) {
        const struct rbi_follower *follower = &request->daemon->followers.items[i];
        if (follower->peer && !follower->peer->doomed && follower->until_ns > now_ns &&
            has_trace(follower, &hop->trace) && may_hear(follower->peer, hop)) {
            rbi_peer_send(follower->peer, RBI_WIRE_HOP, hop, 0);
        }
    }
}
