/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/centre_turn.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>

struct turn {
    struct rbi_list in_turns;
    rbi_request_fn handle;
    struct rbi_request request; /* its body and fds are these: */
    union rbi_wire_body body;
    struct rbi_fdlist fds;
};

static struct turn *turn_new(const struct rbi_request *request, rbi_request_fn handle)
{
    struct turn *turn = calloc(1, sizeof(*turn));
    if (!turn) {
        return NULL;
    }
    turn->handle = handle;
    turn->request = *request;
    turn->body = *request->body;
    turn->request.body = &turn->body;
    turn->fds = (struct rbi_fdlist)RBI_FDLIST_NULL;
    turn->request.fds = &turn->fds;
    for (unsigned i = 0, count = request->fds->count; i < count; i++) {
        turn->fds.fds[turn->fds.count++] = rbi_fdlist_steal(request->fds, i);
    }
    return turn;
}

static void turn_free(struct turn *turn)
{
    rbi_list_remove(&turn->in_turns);
    rbi_fdlist_deinit(&turn->fds);
    free(turn);
}

bool rbi_turn_wait(const struct rbi_request *request, rbi_request_fn handle)
{
    struct rbi_centre *centre = &request->daemon->centre;
    if (!centre->change && (rbi_list_empty(&centre->turns) || centre->taking)) {
        return false;
    }
    struct turn *turn = turn_new(request, handle);
    if (!turn) {
        rbi_request_refuse_errno(request, "version", -ENOMEM);
        return true;
    }
    rbi_list_push_back(&centre->turns, &turn->in_turns);
    rbi_turn_begin(request->peer);
    return true;
}

void rbi_turn_begin(struct rbi_peer *peer)
{
    peer->governing = true;
    rbi_peer_update_want(peer);
}

void rbi_turn_over(struct rbi_peer *peer)
{
    peer->governing = false;
    if (!peer->doomed && !peer->daemon->worker.ending) {
        rbi_peer_resume(peer);
    }
}

/** As if it had come now; afterwards its client may be doomed, but it is there. */
static void turn_take(struct turn *turn)
{
    struct rbi_peer *peer = turn->request.peer;
    struct rbi_centre *centre = &peer->daemon->centre;
    rbi_list_remove(&turn->in_turns);
    rbi_list_init(&turn->in_turns);
    peer->handling++;
    peer->governing = false;
    centre->taking = true;
    turn->handle(&turn->request);
    centre->taking = false;
    if (!peer->governing) {
        rbi_turn_over(peer);
    }
    peer->handling--;
    turn_free(turn);
}

void rbi_turn_next(struct rbi_daemon *daemon)
{
    struct rbi_centre *centre = &daemon->centre;
    while (!centre->change && !rbi_list_empty(&centre->turns) && !daemon->worker.ending) {
        turn_take(RBI_CONTAINER_OF(centre->turns.next, struct turn, in_turns));
    }
}

void rbi_turn_peer_gone(struct rbi_peer *peer)
{
    RBI_LIST_EACH(node, spare, &peer->daemon->centre.turns)
    {
        struct turn *turn = RBI_CONTAINER_OF(node, struct turn, in_turns);
        if (turn->request.peer == peer) {
            turn_free(turn);
        }
    }
}
