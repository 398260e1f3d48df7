/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/tunnel_frames.c - OPEN, OPENED, REFUSED, CLOSE: beginning and end of a stream. */
#include "daemon/bridge/ends.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/code.h"
#include "daemon/log.h"

#include <stdio.h>

void rbi_tunnel_refuse(struct rbi_session *session,
                       const struct rbi_frame_envelope *envelope,
                       const struct rbi_stream_id *id,
                       uint32_t handle,
                       uint32_t attempt,
                       const struct rbi_tunnel_refusal *why)
{
    struct rbi_frame_refused refused = {.envelope = {.from = session->bridge->self,
                                                     .to = envelope->from,
                                                     .hops = RBI_FRAME_HOPS_MAX},
                                        .stream = *id,
                                        .attempt = attempt,
                                        .code = why->code};
    rbi_frame_text_set(&refused.text, why->text);
    session->bridge->counters.streams_refused++;
    (void)rbi_session_send(session, RBI_FRAME_REFUSED, why->forgotten ? RBI_FRAME_F_FORGOTTEN : 0,
                           handle, &refused);
}

static void refuse_open(struct rbi_session *session,
                        const struct rbi_frame_open *open,
                        const struct rbi_tunnel_refusal *why)
{
    rbi_tunnel_refuse(session, &open->envelope, &open->stream, open->handle, open->attempt, why);
}

static void accept_open(struct rbi_session *session,
                        const struct rbi_frame_open *open,
                        const struct rbi_stream_input *input)
{
    static const struct rbi_tunnel_refusal forgotten = {
        .code = RBI_CODE_UNREACHABLE,
        .text = "this bridge does not know the stream: it was started anew",
        .forgotten = true};
    static const struct rbi_tunnel_refusal full = {.code = RBI_CODE_QUOTA,
                                                   .text = "too many streams on one connection"};
    if (input->again) {
        refuse_open(session, open, &forgotten);
        return;
    }
    struct rbi_tunnel *tunnel = rbi_tunnel_accept(session, open, input);
    if (tunnel == NULL) {
        return;
    }
    if (!rbi_tunnel_enter_session(tunnel, session)) {
        refuse_open(session, open, &full);
        rbi_tunnel_free(tunnel);
        return;
    }
    tunnel->peer_handle = open->handle;
    tunnel->peer_lane = open->lane;
    rbi_tunnel_introduce(tunnel);
}

/* One that is known hears of it. @return whether a new stream is to be made */
static bool feed_open(struct rbi_tunnel *tunnel,
                      struct rbi_session *session,
                      const struct rbi_frame_open *open,
                      const struct rbi_stream_input *input)
{
    const struct rbi_stream_id name = tunnel->stream.id;
    struct rbi_stream_actions actions = {.todo = 0};
    rbi_stream_step(&tunnel->stream, input, rbi_bridge_now_ns(tunnel->bridge), &actions);
    const bool again = (actions.todo & RBI_STREAM_DO_NEW) != 0;
    if ((actions.todo & RBI_STREAM_DO_SEND_REFUSED) != 0) {
        const struct rbi_tunnel_refusal why = {
            .code = actions.code, .text = "its stream has ended", .forgotten = actions.forgotten};
        refuse_open(session, open, &why);
        actions.todo &= ~RBI_STREAM_DO_SEND_REFUSED;
    }
    if (tunnel->stream.id.number != name.number || tunnel->stream.id.life != name.life) {
        (void)rbi_tunnel_rename(tunnel, &name);
    }
    if ((actions.todo & RBI_STREAM_DO_MOVE) != 0 && rbi_tunnel_enter_session(tunnel, session)) {
        tunnel->peer_handle = open->handle;
        tunnel->peer_lane = open->lane;
    }
    rbi_tunnel_carry_out(tunnel, &actions);
    return again;
}

static bool same_life(const struct rbi_pidf *a, const struct rbi_pidf *b)
{
    return a->cluster == b->cluster && a->instance == b->instance &&
           (a->incarnation == b->incarnation || a->incarnation == 0 || b->incarnation == 0);
}

/* Feeds one that names no stream to those of the same two endpoints, whoever has opened them, the
 * oldest first. @return whether none has taken it */
static bool feed_pair(struct rbi_session *session,
                      const struct rbi_frame_open *open,
                      const struct rbi_stream_input *input)
{
    const struct rbi_pidf *who = &open->requester.pidf;
    struct rbi_far_end *end = rbi_far_end_find(session->bridge, who->cluster, who->instance);
    bool again = true;
    if (end == NULL || end->far->id != open->envelope.from ||
        end->pidf.incarnation != who->incarnation) {
        return true;
    }
    end->holds++;
    RBI_LIST_EACH(node, spare, &end->tunnels)
    {
        struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_end);
        /* Not to those of an earlier life of the server: they come to their own ends. */
        if (again && same_life(&tunnel->local, &open->server.pidf)) {
            again = feed_open(tunnel, session, open, input);
        }
    }
    end->holds--;
    rbi_far_end_release(end);
    return again;
}

void rbi_tunnel_on_open(struct rbi_session *session,
                        const struct rbi_frame_header *header,
                        const struct rbi_frame_open *open)
{
    const struct rbi_stream_input input = {.type = RBI_STREAM_IN_OPEN,
                                           .id = open->stream,
                                           .attempt = open->attempt,
                                           .opened = open->opened,
                                           .again = (header->flags & RBI_FRAME_F_AGAIN) != 0,
                                           .expect = open->expect,
                                           .begin = open->begin,
                                           .granted = open->granted};
    struct rbi_tunnel *tunnel = rbi_tunnel_find(session->bridge, &open->stream);
    if (tunnel != NULL ? feed_open(tunnel, session, open, &input)
                       : feed_pair(session, open, &input)) {
        accept_open(session, open, &input);
    }
}

void rbi_tunnel_on_opened(struct rbi_session *session,
                          const struct rbi_frame_header *header,
                          const struct rbi_frame_opened *opened)
{
    struct rbi_tunnel *tunnel = rbi_tunnel_find(session->bridge, &opened->stream);
    const struct rbi_stream_input input = {
        .type = RBI_STREAM_IN_OPENED,
        .attempt = opened->attempt,
        .expect = opened->expect,
        .begin = opened->begin,
        .granted = opened->granted,
        .theirs = {.life = opened->life, .number = opened->number}};
    if (tunnel == NULL || tunnel->session != session || tunnel->handle != header->handle ||
        !tunnel->stream.opener) {
        const struct rbi_frame_close gone = {.reason = RBI_REASON_GIVEN_UP};
        (void)rbi_session_send(session, RBI_FRAME_CLOSE, RBI_FRAME_F_NOW | RBI_FRAME_F_FORGOTTEN,
                               opened->handle, &gone);
        return;
    }
    tunnel->peer_handle = opened->handle;
    tunnel->peer_lane = opened->lane;
    session->bridge->counters.streams_opened++;
    if (tunnel->end != NULL && tunnel->end->imported) {
        rbi_import_desk_alive(session->bridge->import, tunnel->end->import_entry);
    }
    rbi_tunnel_step(tunnel, &input);
}

void rbi_tunnel_on_refused(struct rbi_session *session,
                           const struct rbi_frame_header *header,
                           const struct rbi_frame_refused *refused)
{
    struct rbi_tunnel *tunnel = rbi_tunnel_find(session->bridge, &refused->stream);
    const struct rbi_stream_input input = {.type = RBI_STREAM_IN_REFUSED,
                                           .attempt = refused->attempt,
                                           .code = refused->code,
                                           .forgotten =
                                               (header->flags & RBI_FRAME_F_FORGOTTEN) != 0};
    if (tunnel == NULL || tunnel->session != session) {
        return;
    }
    struct rbi_bridge *bridge = session->bridge;
    const struct rbi_far_end *end = tunnel->end;
    const bool absent = tunnel->stream.opener && (refused->code == RBI_CODE_NO_INSTANCE ||
                                                  refused->code == RBI_CODE_NO_SERVICE);
    const uint32_t entry =
        absent && end != NULL && end->imported ? end->import_entry : RBI_IMPORT_NONE;
    (void)snprintf(tunnel->refusal, sizeof tunnel->refusal, "%s: %.120s", tunnel->far->name,
                   refused->text.bytes);
    rbi_tunnel_step(tunnel, &input);
    rbi_import_desk_dead(bridge->import, entry); /* if its own host has said so */
}

void rbi_tunnel_on_close(struct rbi_tunnel *tunnel,
                         const struct rbi_frame_header *header,
                         const struct rbi_frame_close *close)
{
    const struct rbi_stream_input input = {
        .type = RBI_STREAM_IN_CLOSE,
        .reason = close->reason <= RBI_REASON_UNREACHABLE ? (enum rbi_reason)close->reason
                                                          : RBI_REASON_LEFT,
        .position = close->position,
        .settled = close->settled,
        .seen = close->seen,
        .now = (header->flags & RBI_FRAME_F_NOW) != 0,
        .forgotten = (header->flags & RBI_FRAME_F_FORGOTTEN) != 0};
    if ((header->flags & RBI_FRAME_F_CUT) != 0) {
        /* Our way may be as good as before when we hear of it: nobody tells us again. */
        tunnel->begin_due = true;
        rbi_tunnel_touch(tunnel);
        rbi_tunnel_cut(tunnel);
    } else {
        rbi_tunnel_step(tunnel, &input);
    }
}

void rbi_tunnel_on_ack(struct rbi_tunnel *tunnel, const struct rbi_frame_ack *ack)
{
    if (rbi_stream_tx_ack(&tunnel->stream.tx, ack->position, ack->granted) < 0) {
        rbi_tunnel_broken(tunnel, RBI_REASON_BAD_PEER, "ACK of what was never sent");
    } else if (tunnel->half != NULL &&
               rbi_half_release(tunnel->half, tunnel->stream.tx.acked) < 0) {
        rbi_tunnel_broken(tunnel, RBI_REASON_BAD_PEER, "ACK within a record");
    } else {
        rbi_tunnel_wake(tunnel);
    }
}
