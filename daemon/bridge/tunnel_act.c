/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/tunnel_act.c - what the state machine of a stream asks for, carried out. */
#include "daemon/bridge/ends.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/code.h"
#include "daemon/log.h"

#include <inttypes.h>
#include <string.h>

static struct rbi_frame_envelope envelope_to(const struct rbi_tunnel *tunnel)
{
    return (struct rbi_frame_envelope){
        .from = tunnel->bridge->self, .to = tunnel->far->id, .hops = RBI_FRAME_HOPS_MAX};
}

static void
endpoint_set(struct rbi_frame_endpoint *out, const struct rbi_pidf *pidf, const char *path)
{
    out->pidf = *pidf;
    rbi_frame_path_set(&out->path, path);
}

/* @return whether there was a way to send it by */
static bool send_open(struct rbi_tunnel *tunnel)
{
    struct rbi_session *session = rbi_far_way(tunnel->far);
    if (session == NULL || !rbi_tunnel_enter_session(tunnel, session)) {
        return false;
    }
    struct rbi_frame_open open = {.envelope = envelope_to(tunnel),
                                  .stream = tunnel->stream.id,
                                  .handle = tunnel->handle,
                                  .attempt = tunnel->stream.attempt,
                                  .opened = tunnel->stream.opened,
                                  .expect = tunnel->stream.rx.expect,
                                  .begin = tunnel->stream.tx.acked,
                                  .granted = rbi_stream_rx_offer(&tunnel->stream.rx),
                                  .uid = UINT32_MAX};
    if (tunnel->half != NULL) {
        open.uid = rbi_half_peer_uid(tunnel->half);
        open.lane = rbi_half_peer_lane_bytes(tunnel->half);
        endpoint_set(&open.requester, &tunnel->local, rbi_half_peer_path(tunnel->half));
    }
    endpoint_set(&open.server, &tunnel->end->pidf, tunnel->end->remote.path);
    (void)rbi_session_send(session, RBI_FRAME_OPEN, open.opened != 0 ? RBI_FRAME_F_AGAIN : 0, 0,
                           &open);
    return true;
}

static void send_opened(struct rbi_tunnel *tunnel)
{
    if (tunnel->session == NULL) {
        return;
    }
    const struct rbi_frame_opened opened = {
        .envelope = envelope_to(tunnel),
        .stream = tunnel->stream.id,
        .handle = tunnel->handle,
        .attempt = tunnel->stream.attempt,
        .expect = tunnel->stream.rx.expect,
        .begin = tunnel->stream.tx.acked,
        .granted = rbi_stream_rx_offer(&tunnel->stream.rx),
        .life = tunnel->bridge->incarnation,
        .number = tunnel->bridge->stream_count,
        .lane = tunnel->half != NULL ? rbi_half_peer_lane_bytes(tunnel->half) : 0};
    (void)rbi_session_send(tunnel->session, RBI_FRAME_OPENED, 0, tunnel->peer_handle, &opened);
    tunnel->bridge->counters.streams_opened++;
}

static void send_refused(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions)
{
    tunnel->bridge->counters.streams_refused++;
    if (tunnel->session != NULL) {
        struct rbi_frame_refused refused = {.envelope = envelope_to(tunnel),
                                            .stream = actions->id,
                                            .attempt = actions->attempt,
                                            .code = actions->code != 0 ? actions->code
                                                                       : RBI_CODE_TIMEOUT};
        rbi_frame_text_set(&refused.text, tunnel->refusal);
        (void)rbi_session_send(tunnel->session, RBI_FRAME_REFUSED,
                               actions->forgotten ? RBI_FRAME_F_FORGOTTEN : 0, tunnel->peer_handle,
                               &refused);
    }
}

static void send_close(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions)
{
    struct rbi_stream *stream = &tunnel->stream;
    struct rbi_frame_ack ack;
    if (tunnel->session == NULL) {
        return;
    }
    (void)rbi_tunnel_settle(tunnel);
    rbi_stream_rx_ack(&stream->rx, &ack.position, &ack.granted);
    const struct rbi_frame_close bye = {.reason = (uint32_t)actions->reason,
                                        .position = stream->tx.pos,
                                        .settled = stream->rx.settled,
                                        .seen = rbi_tunnel_seen(tunnel)};
    if (rbi_session_send(tunnel->session, RBI_FRAME_ACK, 0, tunnel->peer_handle, &ack) == 0) {
        (void)rbi_session_send(tunnel->session, RBI_FRAME_CLOSE, actions->now ? RBI_FRAME_F_NOW : 0,
                               tunnel->peer_handle, &bye);
    }
}

static void step_back(struct rbi_tunnel *tunnel)
{
    tunnel->out.active = false;
    if (tunnel->half == NULL) {
        return;
    }
    if (rbi_half_release(tunnel->half, tunnel->stream.tx.acked) < 0 ||
        rbi_half_back(tunnel->half, tunnel->stream.tx.pos) < 0) {
        rbi_log(RBI_LOG_ERROR, "stream_cannot_go_back", "host=%s end=%s", tunnel->far->name,
                tunnel->end->remote.path);
        tunnel->broken_due = true; /* not here: what asked for this goes on */
        rbi_tunnel_touch(tunnel);
    }
    tunnel->bridge->counters.resumed++;
}

static void end_local(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions)
{
    struct rbi_half *half = tunnel->half;
    rbi_tunnel_drop_all(tunnel);
    tunnel->half = NULL;
    if (half == NULL) {
        return;
    }
    if (actions->reason == RBI_REASON_UNREACHABLE || actions->reason == RBI_REASON_CRASHED) {
        tunnel->bridge->counters.streams_lost++;
    }
    /* What it has sent and nobody has done with is its own again: as far as seen, maybe seen. */
    int result = rbi_half_release(half, tunnel->stream.tx.acked);
    if (result == 0 && rbi_stream_behind(rbi_half_pos(half), actions->seen)) {
        result = rbi_half_back(half, actions->seen);
    }
    if (result < 0) {
        rbi_log(RBI_LOG_ERROR, "stream_cannot_go_back", "host=%s end=%s", tunnel->far->name,
                tunnel->end->remote.path);
    }
    rbi_half_end(half, actions->reason);
}

static void refuse_local(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions)
{
    struct rbi_half *half = tunnel->half;
    tunnel->half = NULL;
    if (half != NULL) {
        rbi_half_refuse(half, actions->code != 0 ? actions->code : RBI_CODE_TIMEOUT,
                        tunnel->refusal[0] != '\0' ? tunnel->refusal
                                                   : "its host did not answer in time");
    }
}

static void accept_local(struct rbi_tunnel *tunnel)
{
    if (tunnel->half != NULL && rbi_half_phase(tunnel->half) == RBI_HALF_INTRODUCED &&
        rbi_half_accept(tunnel->half, rbi_tunnel_lane_bytes(tunnel)) < 0) {
        struct rbi_stream_input left = {
            .type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_NO_RESOURCES, .now = true};
        rbi_half_end(tunnel->half, RBI_REASON_NO_RESOURCES);
        tunnel->half = NULL;
        rbi_tunnel_step(tunnel, &left);
    }
}

void rbi_tunnel_actions(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions)
{
    const unsigned todo = actions->todo;
    if (todo & RBI_STREAM_DO_DROP_PART) {
        rbi_tunnel_drop_part(tunnel);
    }
    if (todo & (RBI_STREAM_DO_HOLD | RBI_STREAM_DO_RELEASE)) {
        rbi_tunnel_say_hold(tunnel, (todo & RBI_STREAM_DO_HOLD) != 0);
    }
    if (todo & RBI_STREAM_DO_BACK) {
        step_back(tunnel);
    }
    if ((todo & RBI_STREAM_DO_SEND_OPEN) && !send_open(tunnel)) {
        rbi_tunnel_cut(tunnel); /* it is not under way: WAY is to be heeded; it may be gone now */
        return;
    }
    if (todo & RBI_STREAM_DO_SEND_OPENED) {
        send_opened(tunnel);
    }
    if (todo & RBI_STREAM_DO_SEND_REFUSED) {
        send_refused(tunnel, actions);
    }
    if (todo & RBI_STREAM_DO_SEND_CLOSE) {
        send_close(tunnel, actions);
    }
    if (todo & RBI_STREAM_DO_END_LOCAL) {
        end_local(tunnel, actions);
    }
    if (todo & RBI_STREAM_DO_REFUSE_LOCAL) {
        refuse_local(tunnel, actions);
    }
    if (todo & RBI_STREAM_DO_FORGET) {
        rbi_tunnel_free(tunnel);
        return;
    }
    if (tunnel->stream.state == RBI_STREAM_OPEN) {
        rbi_tunnel_touch(tunnel); /* what was read while it was cut is to be acknowledged */
        rbi_tunnel_wake(tunnel);
    }
    if (todo & RBI_STREAM_DO_ACCEPT) {
        accept_local(tunnel); /* last: it may step, and what it steps may be gone then */
    }
}
