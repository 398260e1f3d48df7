/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/transit.h"

#include "daemon/bridge/fars.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rbi_transit_frame {
    struct rbi_transit_frame *next;
    uint32_t size;
    unsigned char bytes[];
};

struct rbi_transit {
    struct rbi_bridge *bridge;
    struct rbi_far *to;               /* for the figures */
    struct rbi_transit_side sides[2]; /* the opener's, the other's */
    struct rbi_follow_stream follow;
};

static struct rbi_transit_side *other(struct rbi_transit_side *side)
{
    return &side->transit->sides[side == &side->transit->sides[0] ? 1 : 0];
}

/* ---- life --------------------------------------------------------------------------------- */

static void drop_queue(struct rbi_transit_side *side)
{
    while (side->queue != NULL) {
        struct rbi_transit_frame *frame = side->queue;
        side->queue = frame->next;
        free(frame);
    }
    side->queue_end = &side->queue;
    side->queued = 0;
}

static void side_free(struct rbi_transit_side *side)
{
    if (side->session != NULL) {
        rbi_handles_free(&side->session->handles, side->handle);
    }
    rbi_list_remove(&side->choked.node);
    drop_queue(side);
}

static void transit_free(struct rbi_transit *transit)
{
    side_free(&transit->sides[0]);
    side_free(&transit->sides[1]);
    transit->bridge->transit_count--;
    free(transit);
}

static void on_room(struct rbi_choked *choked)
{
    rbi_transit_room(RBI_CONTAINER_OF(choked, struct rbi_transit_side, choked));
}

static bool
side_init(struct rbi_transit *transit, struct rbi_transit_side *side, struct rbi_session *session)
{
    side->carrier.transit = true;
    side->transit = transit;
    side->queue_end = &side->queue;
    side->choked.on_room = on_room;
    rbi_list_init(&side->choked.node);
    side->handle = rbi_handles_give(&session->handles, &side->carrier);
    side->session = side->handle != 0 ? session : NULL;
    return side->handle != 0;
}

static struct rbi_transit *
transit_new(struct rbi_session *from, struct rbi_session *to, uint32_t handle, struct rbi_far *far)
{
    struct rbi_bridge *bridge = from->bridge;
    struct rbi_transit *transit =
        bridge->tunnel_count + bridge->transit_count < bridge->config.limits.streams
            ? calloc(1, sizeof *transit)
            : NULL;
    if (transit == NULL) {
        return NULL;
    }
    transit->bridge = bridge;
    transit->to = far;
    bridge->transit_count++;
    const bool first = side_init(transit, &transit->sides[0], from);
    if (!side_init(transit, &transit->sides[1], to) || !first) {
        transit_free(transit);
        return NULL;
    }
    transit->sides[0].peer_handle = handle;
    return transit;
}

/* ---- envelopes ------------------------------------------------------------------------------- */

static void refuse(struct rbi_session *session,
                   const struct rbi_frame_header *header,
                   const void *body,
                   const struct rbi_tunnel_refusal *why)
{
    static union rbi_frame_body got;
    session->bridge->counters.no_route++;
    if (header->type == RBI_FRAME_OPEN &&
        rbi_frame_decode(header, body, &got, NULL) == RBI_FRAME_WHOLE) {
        rbi_tunnel_refuse(session, &got.open.envelope, &got.open.stream, got.open.handle,
                          got.open.attempt, why);
    }
}

static bool is_visited(const struct rbi_frame_envelope *envelope, uint64_t id)
{
    bool found = envelope->from == id;
    for (uint8_t i = 0; i < envelope->visited_count; i++) {
        found = found || envelope->visited[i] == id;
    }
    return found;
}

/* Where it goes on, or NULL: @p why says why not. */
static struct rbi_session *next_of(struct rbi_session *session,
                                   const struct rbi_frame_envelope *envelope,
                                   struct rbi_far **far,
                                   struct rbi_tunnel_refusal *why)
{
    struct rbi_bridge *bridge = session->bridge;
    *why = (struct rbi_tunnel_refusal){.code = RBI_CODE_NO_ROUTE};
    *far = rbi_fars_find(bridge, envelope->to);
    struct rbi_session *next = *far != NULL ? rbi_far_way(*far) : NULL;
    if (!bridge->config.transit) {
        why->text = "that host does not forward for others (bridge.transit)";
    } else if (next == NULL) {
        why->text = "that host knows no way";
    } else if (next == session || is_visited(envelope, next->neighbour->id) ||
               is_visited(envelope, bridge->self)) {
        why->text = "the way leads back where it came from: edges are about to change";
    } else if (envelope->hops == 0) {
        why->text = "more than 8 hops";
    } else {
        return next;
    }
    return NULL;
}

static void hand_on(struct rbi_session *to,
                    const struct rbi_frame_header *header,
                    const void *body,
                    uint32_t handle,
                    uint32_t ours)
{
    static unsigned char frame[RBI_FRAME_CONTROL_MAX];
    size_t size = 0;
    if (rbi_frame_forward(header, body, to->bridge->self, handle, ours, frame, &size) ==
        RBI_FRAME_WHOLE) {
        (void)rbi_session_hand_on(to, frame, size);
    }
}

static void open_through(struct rbi_session *session,
                         struct rbi_session *next,
                         struct rbi_far *far,
                         const struct rbi_frame_header *header,
                         const void *body)
{
    static const struct rbi_tunnel_refusal full = {
        .code = RBI_CODE_QUOTA, .text = "bridge.limits.streams of a host on the way is used up"};
    static union rbi_frame_body got;
    if (rbi_frame_decode(header, body, &got, NULL) != RBI_FRAME_WHOLE) {
        return;
    }
    struct rbi_transit *transit = transit_new(session, next, got.open.handle, far);
    if (transit == NULL) {
        refuse(session, header, body, &full);
        return;
    }
    transit->follow.hosts[0] = got.open.envelope.from;
    transit->follow.hosts[1] = got.open.envelope.to;
    hand_on(next, header, body, 0, transit->sides[1].handle);
}

/* The way back was cut before OPENED came: who said it must not believe in it. */
static void
answer_late(struct rbi_session *session, const struct rbi_frame_header *header, const void *body)
{
    static const struct rbi_frame_close cut = {.reason = RBI_REASON_UNREACHABLE};
    static union rbi_frame_body got;
    if (header->type == RBI_FRAME_OPENED &&
        rbi_frame_decode(header, body, &got, NULL) == RBI_FRAME_WHOLE) {
        (void)rbi_session_send(session, RBI_FRAME_CLOSE, RBI_FRAME_F_CUT, got.opened.handle, &cut);
    }
}

/* OPENED and REFUSED go back the way that OPEN came. */
static void
answer_through(struct rbi_session *session, const struct rbi_frame_header *header, const void *body)
{
    struct rbi_carrier *carrier = rbi_handles_get(&session->handles, header->handle);
    if (carrier == NULL || !carrier->transit) {
        answer_late(session, header, body);
        return;
    }
    struct rbi_transit_side *side = RBI_CONTAINER_OF(carrier, struct rbi_transit_side, carrier);
    struct rbi_transit_side *back = other(side);
    static union rbi_frame_body got;
    if (header->type == RBI_FRAME_OPENED &&
        rbi_frame_decode(header, body, &got, NULL) == RBI_FRAME_WHOLE) {
        side->peer_handle = got.opened.handle;
    }
    hand_on(back->session, header, body, back->peer_handle, back->handle);
    if (header->type == RBI_FRAME_REFUSED) {
        transit_free(side->transit);
    }
}

void rbi_transit_envelope(struct rbi_session *session,
                          const struct rbi_frame_header *header,
                          const void *body,
                          const struct rbi_frame_envelope *envelope)
{
    struct rbi_tunnel_refusal why;
    struct rbi_far *far = NULL;
    if (header->type == RBI_FRAME_OPENED || header->type == RBI_FRAME_REFUSED) {
        answer_through(session, header, body);
        return;
    }
    struct rbi_session *next = next_of(session, envelope, &far, &why);
    if (next == NULL) {
        refuse(session, header, body, &why);
    } else if (header->type == RBI_FRAME_OPEN) {
        open_through(session, next, far, header, body);
    } else {
        hand_on(next, header, body, 0, 0);
    }
}

/* ---- frames of the stream ------------------------------------------------------------------ */

static void close_cut(struct rbi_transit_side *side)
{
    const struct rbi_frame_close cut = {.reason = RBI_REASON_UNREACHABLE};
    if (side->session != NULL && side->peer_handle != 0) {
        (void)rbi_session_send(side->session, RBI_FRAME_CLOSE, RBI_FRAME_F_CUT, side->peer_handle,
                               &cut);
    }
}

void rbi_transit_cut(struct rbi_transit_side *side)
{
    side->session = NULL; /* its handle is freed */
    close_cut(other(side));
    transit_free(side->transit);
}

/* @return whether it is under way, or waits */
static bool send_or_keep(struct rbi_transit_side *out, const unsigned char *frame, uint32_t size)
{
    if (out->queue == NULL) {
        static unsigned char copy[RBI_FRAME_MAX];
        memcpy(copy, frame, size);
        rbi_frame_set_handle(copy, out->peer_handle);
        const int result = rbi_session_forward(out->session, copy, size);
        if (result != -ENOBUFS) {
            return true; /* what cannot be sent any more is cut soon */
        }
    }
    struct rbi_transit_frame *kept =
        out->queued + size <= RBI_TRANSIT_QUEUE_MAX ? malloc(sizeof *kept + size) : NULL;
    if (kept == NULL) {
        return false;
    }
    kept->next = NULL;
    kept->size = size;
    memcpy(kept->bytes, frame, size);
    *out->queue_end = kept;
    out->queue_end = &kept->next;
    out->queued += size;
    rbi_session_choke(out->session, &out->choked);
    return true;
}

void rbi_transit_room(struct rbi_transit_side *side)
{
    while (side->queue != NULL) {
        struct rbi_transit_frame *frame = side->queue;
        rbi_frame_set_handle(frame->bytes, side->peer_handle);
        if (rbi_session_forward(side->session, frame->bytes, frame->size) == -ENOBUFS) {
            rbi_session_choke(side->session, &side->choked);
            return;
        }
        side->queue = frame->next;
        side->queue_end = side->queue != NULL ? side->queue_end : &side->queue;
        side->queued -= frame->size;
        free(frame);
    }
}

void rbi_transit_on_frame(struct rbi_transit_side *side,
                          const struct rbi_frame_header *header,
                          const unsigned char *frame)
{
    struct rbi_transit_side *out = other(side);
    if (out->session == NULL || out->peer_handle == 0) {
        return; /* nobody may send before OPENED */
    }
    side->transit->to->forwarded++;
    if (RBI_UNLIKELY((header->flags & RBI_FRAME_F_FOLLOW) != 0) && header->type == RBI_FRAME_DATA) {
        rbi_follow_transit(&side->transit->follow, side == &side->transit->sides[0] ? 0 : 1,
                           out->session, header, frame + RBI_FRAME_HEADER);
    }
    if (!send_or_keep(out, frame, RBI_FRAME_HEADER + header->size)) {
        close_cut(side);
        close_cut(out);
        transit_free(side->transit);
        return;
    }
    if (header->type == RBI_FRAME_CLOSE) {
        side->closed = true;
        out->closed |= (header->flags & RBI_FRAME_F_FORGOTTEN) != 0; /* nobody answers that */
    }
    if (side->closed && out->closed && side->queue == NULL && out->queue == NULL) {
        transit_free(side->transit);
    }
}
