/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/tunnel.h"

#include "daemon/bridge/ends.h"
#include "daemon/bridge/proxy.h"
#include "daemon/code.h"
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MS UINT64_C(1000000)
/* An OPEN that nobody answers. The daemon gives up an introduction after its request_timeout. */
#define OPEN_NS (4000 * MS)

static uint64_t name_of(const struct rbi_stream_id *id)
{
    const uint64_t hash = XXH3_64bits(id, sizeof *id);
    return hash == 0 || hash == UINT64_MAX ? 1 : hash;
}

struct rbi_tunnel *rbi_tunnel_find(struct rbi_bridge *bridge, const struct rbi_stream_id *id)
{
    struct rbi_tunnel *tunnel = rbi_map_get(&bridge->tunnels, name_of(id));
    return tunnel != NULL && tunnel->stream.id.life == id->life &&
                   tunnel->stream.id.number == id->number
               ? tunnel
               : NULL;
}

/* ---- time --------------------------------------------------------------------------------- */

static void tick(void *context)
{
    struct rbi_tunnel *tunnel = context;
    rbi_tunnel_feed(tunnel, RBI_STREAM_IN_TICK);
}

static void set_timer(struct rbi_tunnel *tunnel)
{
    const uint64_t due_ns = rbi_stream_deadline_ns(&tunnel->stream);
    if (due_ns == UINT64_MAX) {
        rbi_loop_timer_cancel(tunnel->bridge->loop, &tunnel->timer);
    } else {
        rbi_loop_timer_set(tunnel->bridge->loop, &tunnel->timer, due_ns, tick, tunnel);
    }
}

/* ---- life --------------------------------------------------------------------------------- */

static void on_room(struct rbi_choked *choked)
{
    struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(choked, struct rbi_tunnel, choked);
    rbi_tunnel_send(tunnel);
}

static struct rbi_stream_terms terms_of(const struct rbi_bridge *bridge)
{
    return (struct rbi_stream_terms){.window = bridge->config.window_bytes,
                                     .open_ns = OPEN_NS,
                                     .unreachable_ns = bridge->config.unreachable_after_ms * MS};
}

/* Not in the map yet: its name is not known. NULL: no memory */
static struct rbi_tunnel *make(struct rbi_far_end *end)
{
    struct rbi_bridge *bridge = end->bridge;
    struct rbi_tunnel *tunnel = calloc(1, sizeof *tunnel);
    if (tunnel == NULL) {
        return NULL;
    }
    tunnel->bridge = bridge;
    tunnel->far = end->far;
    tunnel->end = end;
    tunnel->queue_end = &tunnel->queue;
    tunnel->choked.on_room = on_room;
    rbi_list_init(&tunnel->in_touched);
    rbi_list_init(&tunnel->in_unsettled);
    rbi_list_init(&tunnel->choked.node);
    rbi_list_push_back(&end->far->tunnels, &tunnel->in_far);
    rbi_list_push_back(&end->tunnels, &tunnel->in_end);
    end->far->tunnel_count++;
    bridge->tunnel_count++;
    return tunnel;
}

static bool has_room(const struct rbi_bridge *bridge)
{
    return bridge->tunnel_count + bridge->transit_count < bridge->config.limits.streams;
}

static bool same_pair(const struct rbi_tunnel *a, const struct rbi_tunnel *b)
{
    return a->local.cluster == b->local.cluster && a->local.instance == b->local.instance;
}

/* One pair has one stream: the next begins when those before it, which may have much to send or to
 * deliver still, are gone. NULL: there is none before */
static const struct rbi_tunnel *earlier(const struct rbi_tunnel *tunnel)
{
    RBI_LIST_EACH(node, spare, &tunnel->end->tunnels)
    {
        const struct rbi_tunnel *other = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_end);
        if (other == tunnel) {
            return NULL;
        }
        if (same_pair(other, tunnel)) {
            return other;
        }
    }
    return NULL;
}

/* Whoever waits for this one, which is about to be freed, is looked at before the turn ends. */
static void let_next_begin(const struct rbi_tunnel *tunnel)
{
    RBI_LIST_EACH(node, spare, &tunnel->end->tunnels)
    {
        struct rbi_tunnel *other = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_end);
        if (other != tunnel && same_pair(other, tunnel)) {
            other->begin_due = true;
            rbi_tunnel_touch(other);
            return;
        }
    }
}

void rbi_tunnel_go_on(struct rbi_tunnel *tunnel)
{
    if (earlier(tunnel) != NULL) {
        return;
    }
    if (!tunnel->stream.opener) {
        if (tunnel->stream.state == RBI_STREAM_OPENING) {
            rbi_tunnel_introduce(tunnel);
        }
    } else if (tunnel->session == NULL && rbi_far_way(tunnel->far) != NULL) {
        rbi_tunnel_feed(tunnel, RBI_STREAM_IN_WAY);
    }
}

static int enter(struct rbi_tunnel *tunnel)
{
    return rbi_map_put(&tunnel->bridge->tunnels, name_of(&tunnel->stream.id), tunnel);
}

int rbi_tunnel_rename(struct rbi_tunnel *tunnel, const struct rbi_stream_id *old)
{
    if (rbi_map_get(&tunnel->bridge->tunnels, name_of(old)) == tunnel) {
        (void)rbi_map_remove(&tunnel->bridge->tunnels, name_of(old));
    }
    return enter(tunnel);
}

void rbi_tunnel_begin(struct rbi_far_end *end, struct rbi_half *half)
{
    struct rbi_bridge *bridge = end->bridge;
    if (!has_room(bridge)) {
        rbi_half_refuse(half, RBI_CODE_QUOTA,
                        "bridge.limits.streams is used up: end links to other hosts, or raise it");
        return;
    }
    struct rbi_tunnel *tunnel = make(end);
    if (tunnel == NULL) {
        rbi_half_refuse(half, RBI_CODE_NO_MEMORY, "the bridge has no memory for another stream");
        return;
    }
    const struct rbi_stream_id id = {.life = bridge->incarnation, .number = ++bridge->stream_count};
    const struct rbi_stream_terms terms = terms_of(bridge);
    tunnel->half = half;
    tunnel->local = *rbi_half_peer(half);
    rbi_half_set_context(half, tunnel);
    rbi_stream_init_opener(&tunnel->stream, &id, bridge->self, end->far->id, &terms,
                           rbi_bridge_now_ns(bridge));
    if (enter(tunnel) < 0) {
        rbi_half_refuse(half, RBI_CODE_NO_MEMORY, "the bridge has no memory for another stream");
        tunnel->half = NULL;
        rbi_tunnel_free(tunnel);
        return;
    }
    set_timer(tunnel);
    if (rbi_far_way(end->far) != NULL) {
        rbi_tunnel_go_on(tunnel);
    } else {
        rbi_half_refuse(half, RBI_CODE_UNREACHABLE, "there is no way to its host just now");
        tunnel->half = NULL;
        rbi_tunnel_free(tunnel);
    }
}

struct rbi_tunnel *rbi_tunnel_accept(struct rbi_session *session,
                                     const struct rbi_frame_open *open,
                                     const struct rbi_stream_input *input)
{
    struct rbi_bridge *bridge = session->bridge;
    struct rbi_far *far = rbi_fars_find(bridge, open->envelope.from);
    struct rbi_far_end *end = NULL;
    struct rbi_tunnel *tunnel = NULL;
    const struct rbi_stream_terms terms = terms_of(bridge);
    if (far == NULL || !has_room(bridge)) {
        static const struct rbi_tunnel_refusal unknown = {
            .code = RBI_CODE_NO_ROUTE, .text = "nobody has told of your host's edges yet"};
        static const struct rbi_tunnel_refusal full = {
            .code = RBI_CODE_QUOTA, .text = "bridge.limits.streams is used up there"};
        rbi_tunnel_refuse(session, &open->envelope, &open->stream, open->handle, open->attempt,
                          far == NULL ? &unknown : &full);
        return NULL;
    }
    int result = rbi_far_end_caller(bridge, far, &open->requester, open->uid, &end);
    if (result == 0) {
        tunnel = make(end);
        result = tunnel == NULL ? -ENOMEM : 0;
    }
    if (result == 0) {
        tunnel->local = open->server.pidf;
        result = rbi_stream_init_acceptor(&tunnel->stream, input, bridge->self, far->id, &terms,
                                          rbi_bridge_now_ns(bridge));
        result = result == 0 ? enter(tunnel) : result;
    }
    if (result < 0) {
        static const struct rbi_tunnel_refusal taken = {
            .code = RBI_CODE_IN_USE, .text = "another host has an endpoint of that path"};
        static const struct rbi_tunnel_refusal memory = {
            .code = RBI_CODE_NO_MEMORY, .text = "no memory for another stream there"};
        rbi_tunnel_refuse(session, &open->envelope, &open->stream, open->handle, open->attempt,
                          result == -EEXIST ? &taken : &memory);
        if (tunnel != NULL) {
            rbi_tunnel_free(tunnel);
        } else if (end != NULL) {
            rbi_far_end_release(end);
        }
        return NULL;
    }
    set_timer(tunnel);
    return tunnel;
}

void rbi_tunnel_leave_session(struct rbi_tunnel *tunnel)
{
    if (tunnel->session != NULL) {
        rbi_handles_free(&tunnel->session->handles, tunnel->handle);
    }
    rbi_list_remove(&tunnel->choked.node);
    tunnel->session = NULL;
    tunnel->handle = tunnel->peer_handle = 0;
}

bool rbi_tunnel_enter_session(struct rbi_tunnel *tunnel, struct rbi_session *session)
{
    rbi_tunnel_leave_session(tunnel);
    tunnel->handle = rbi_handles_give(&session->handles, &tunnel->carrier);
    tunnel->session = tunnel->handle != 0 ? session : NULL;
    if (tunnel->hold_on && !tunnel->stream.told_hold) {
        rbi_tunnel_say_hold(tunnel, false); /* it was the last session that was suspect */
    }
    return tunnel->handle != 0;
}

void rbi_tunnel_free(struct rbi_tunnel *tunnel)
{
    struct rbi_bridge *bridge = tunnel->bridge;
    struct rbi_far_end *end = tunnel->end;
    rbi_tunnel_leave_session(tunnel);
    rbi_tunnel_drop_all(tunnel);
    free(tunnel->in.body);
    if (tunnel->half != NULL) {
        rbi_half_end(tunnel->half, RBI_REASON_NONE);
    }
    if (rbi_tunnel_find(bridge, &tunnel->stream.id) == tunnel) {
        (void)rbi_map_remove(&bridge->tunnels, name_of(&tunnel->stream.id));
    }
    rbi_loop_timer_cancel(bridge->loop, &tunnel->timer);
    let_next_begin(tunnel);
    rbi_list_remove(&tunnel->in_far);
    rbi_list_remove(&tunnel->in_end);
    rbi_list_remove(&tunnel->in_touched);
    rbi_list_remove(&tunnel->in_unsettled);
    tunnel->far->tunnel_count--;
    tunnel->far->resends += tunnel->stream.tx.resent;
    tunnel->far->duplicates += tunnel->stream.rx.duplicates;
    bridge->tunnel_count--;
    free(tunnel);
    rbi_far_end_release(end);
}

/* ---- inputs --------------------------------------------------------------------------------- */

void rbi_tunnel_step(struct rbi_tunnel *tunnel, const struct rbi_stream_input *input)
{
    struct rbi_stream_actions actions = {.todo = 0};
    rbi_stream_step(&tunnel->stream, input, rbi_bridge_now_ns(tunnel->bridge), &actions);
    rbi_tunnel_carry_out(tunnel, &actions);
}

void rbi_tunnel_carry_out(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions)
{
    if ((actions->todo & RBI_STREAM_DO_FORGET) == 0) {
        set_timer(tunnel);
    }
    if (actions->todo != 0) {
        rbi_tunnel_actions(tunnel, actions);
    }
}

void rbi_tunnel_feed(struct rbi_tunnel *tunnel, enum rbi_stream_input_type type)
{
    const struct rbi_stream_input input = {.type = type};
    rbi_tunnel_step(tunnel, &input);
}

void rbi_tunnel_broken(struct rbi_tunnel *tunnel, enum rbi_reason reason, const char *what)
{
    const struct rbi_stream_input input = {.type = RBI_STREAM_IN_BROKEN, .reason = reason};
    rbi_log(RBI_LOG_WARNING, "stream_broken", "host=%s end=%s what=\"%s\"", tunnel->far->name,
            tunnel->end->remote.path, what);
    rbi_tunnel_step(tunnel, &input);
}

void rbi_tunnel_cut(struct rbi_tunnel *tunnel)
{
    rbi_tunnel_leave_session(tunnel);
    rbi_tunnel_feed(tunnel, RBI_STREAM_IN_CUT);
}

void rbi_tunnels_suspect(struct rbi_session *session, bool on)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    for (struct rbi_far *far = NULL;
         (far = rbi_map_next(&session->bridge->hosts, &cursor)) != NULL;) {
        RBI_LIST_EACH(node, spare, &far->tunnels)
        {
            struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_far);
            if (tunnel->session == session && tunnel->stream.state == RBI_STREAM_OPEN) {
                rbi_tunnel_say_hold(tunnel, on);
            }
        }
    }
}

void rbi_tunnels_way(struct rbi_far *far)
{
    RBI_LIST_EACH(node, spare, &far->tunnels)
    {
        struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_far);
        if (tunnel->session == NULL && tunnel->stream.opener && earlier(tunnel) == NULL) {
            rbi_tunnel_feed(tunnel, RBI_STREAM_IN_WAY);
        }
    }
}

void rbi_tunnels_lost(struct rbi_far *far, uint64_t incarnation)
{
    if (far->incarnation != 0 && far->incarnation != incarnation) {
        RBI_LIST_EACH(node, spare, &far->tunnels)
        {
            rbi_tunnel_feed(RBI_CONTAINER_OF(node, struct rbi_tunnel, in_far), RBI_STREAM_IN_LOST);
        }
    }
    far->incarnation = incarnation;
}

/* ---- acceptor: its proxy, then its link ------------------------------------------------------ */

uint64_t rbi_tunnel_lane_bytes(const struct rbi_tunnel *tunnel)
{
    const uint64_t bytes = tunnel->peer_lane;
    return rbi_is_pow2(bytes) && bytes > RBI_DESK_LANE_BYTES && bytes <= RBI_LANE_CAPACITY_MAX
               ? bytes
               : 0;
}

void rbi_tunnel_introduce(struct rbi_tunnel *tunnel)
{
    struct rbi_stream_input failed = {.type = RBI_STREAM_IN_FAILED};
    if (tunnel->introduced || tunnel->half != NULL || earlier(tunnel) != NULL ||
        !rbi_proxy_is_registered(tunnel->end->proxy)) {
        return; /* later: rbi_tunnel_go_on(), rbi_tunnels_registered() */
    }
    const int result = rbi_proxy_introduce(tunnel->end->proxy, &tunnel->local,
                                           rbi_tunnel_lane_bytes(tunnel), tunnel, &tunnel->half);
    tunnel->introduced = result == 0;
    if (result < 0 && result != -EAGAIN && result != -EEXIST) {
        failed.code = result == -ENOMEM ? RBI_CODE_NO_MEMORY : RBI_CODE_SYSTEM;
        rbi_tunnel_step(tunnel, &failed);
    }
}

void rbi_tunnels_registered(struct rbi_far_end *end)
{
    end->holds++;
    RBI_LIST_EACH(node, spare, &end->tunnels)
    {
        struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_end);
        if (!tunnel->stream.opener && tunnel->stream.state == RBI_STREAM_OPENING) {
            rbi_tunnel_introduce(tunnel);
        }
    }
    end->holds--;
    rbi_far_end_release(end);
}

void rbi_tunnels_end_refused(struct rbi_far_end *end, int code)
{
    end->holds++;
    RBI_LIST_EACH(node, spare, &end->tunnels)
    {
        struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_end);
        const struct rbi_stream_input failed = {.type = RBI_STREAM_IN_FAILED, .code = code};
        if (!tunnel->stream.opener && tunnel->stream.state == RBI_STREAM_OPENING) {
            rbi_tunnel_step(tunnel, &failed);
        }
    }
    end->holds--;
    rbi_far_end_release(end);
}
