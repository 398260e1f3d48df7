/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/tunnel_settle.c - what the local endpoint has read is acknowledged: only then its
 * sender may forget it. So what lies unread when the endpoint dies goes back to its sender, as on
 * one host.
 *
 * Positions are those of the sender's lane. Ours has more: HOLD records, which tell the endpoint
 * that the way to its peer is cut.
 */
#include "daemon/bridge/ends.h"
#include "daemon/bridge/tunnel.h"

uint64_t rbi_tunnel_source_position(const struct rbi_tunnel *tunnel, uint64_t position)
{
    uint64_t by = tunnel->shift_base;
    for (uint32_t i = 0; i < tunnel->shift_count; i++) {
        if (!rbi_stream_behind(tunnel->shifts[i].from, position)) {
            by = tunnel->shifts[i].by;
        }
    }
    return position - by;
}

/* Those that the endpoint has read need no entry any more. */
static void forget_shifts(struct rbi_tunnel *tunnel, uint64_t read)
{
    uint32_t past = 0;
    while (past < tunnel->shift_count && !rbi_stream_behind(tunnel->shifts[past].from, read)) {
        tunnel->shift_base = tunnel->shifts[past].by;
        past++;
    }
    for (uint32_t i = past; i < tunnel->shift_count && past > 0; i++) {
        tunnel->shifts[i - past] = tunnel->shifts[i];
    }
    tunnel->shift_count -= past;
}

void rbi_tunnel_flush_hold(struct rbi_tunnel *tunnel)
{
    _Alignas(8) unsigned char body[RBI_CONTROL_BODY_MAX + RBI_RECORD_TAG] = {0};
    if (!tunnel->hold_due || tunnel->half == NULL || !tunnel->linked) {
        return;
    }
    if (tunnel->hold_on == tunnel->hold_said || tunnel->shift_count == RBI_TUNNEL_SHIFTS) {
        tunnel->hold_due = tunnel->hold_on != tunnel->hold_said;
        return;
    }
    const struct rbi_hold_body hold = {.on = tunnel->hold_on ? 1U : 0U};
    const uint64_t size = RBI_RECORD_TAG + rbi_hold_encode(&hold, body + RBI_RECORD_TAG);
    if (rbi_half_put(tunnel->half, rbi_record_meta(RBI_RECORD_HOLD, 0, 0, 0), body, size) !=
        RBI_LANE_OK) {
        return; /* on_room() */
    }
    struct rbi_half_taken taken;
    rbi_half_taken(tunnel->half, &taken);
    const uint64_t before =
        tunnel->shift_count > 0 ? tunnel->shifts[tunnel->shift_count - 1].by : tunnel->shift_base;
    tunnel->shifts[tunnel->shift_count++] = (struct rbi_tunnel_shift){
        .from = taken.written, .by = before + rbi_half_record_bytes(size)};
    tunnel->hold_said = tunnel->hold_on;
    tunnel->hold_due = false;
}

void rbi_tunnel_say_hold(struct rbi_tunnel *tunnel, bool on)
{
    tunnel->hold_on = on;
    tunnel->hold_due = true;
    rbi_tunnel_flush_hold(tunnel);
}

uint64_t rbi_tunnel_seen(const struct rbi_tunnel *tunnel)
{
    const struct rbi_stream_rx *rx = &tunnel->stream.rx;
    struct rbi_half_last last;
    if (tunnel->half == NULL || !tunnel->linked) {
        return rx->put;
    }
    rbi_half_last(tunnel->half, &last);
    const uint64_t seen = rbi_tunnel_source_position(tunnel, last.seen);
    return rbi_stream_behind(seen, rx->put) ? rx->put : seen;
}

static void settle_to(struct rbi_tunnel *tunnel, uint64_t position)
{
    struct rbi_stream_rx *rx = &tunnel->stream.rx;
    const uint64_t read = rbi_tunnel_source_position(tunnel, position);
    forget_shifts(tunnel, position);
    if (rbi_stream_behind(read, rx->settled) && !rbi_stream_behind(read, rx->put)) {
        rbi_stream_rx_settle(rx, read);
    }
}

void rbi_tunnel_settle_last(struct rbi_tunnel *tunnel)
{
    struct rbi_half_last last;
    if (tunnel->half != NULL && tunnel->linked) {
        rbi_half_last(tunnel->half, &last);
        settle_to(tunnel, last.handled);
    }
}

bool rbi_tunnel_settle(struct rbi_tunnel *tunnel)
{
    struct rbi_stream_rx *rx = &tunnel->stream.rx;
    struct rbi_half_taken taken;
    struct rbi_frame_ack ack;
    if (tunnel->half != NULL && tunnel->linked) {
        rbi_half_taken(tunnel->half, &taken);
        settle_to(tunnel, taken.read);
        rbi_tunnel_flush_hold(tunnel);
    }
    if (tunnel->session == NULL || tunnel->peer_handle == 0 ||
        tunnel->stream.state != RBI_STREAM_OPEN) {
        return true;
    }
    if (rbi_stream_rx_ack_due(rx, rbi_bridge_now_ns(tunnel->bridge))) {
        rbi_stream_rx_ack(rx, &ack.position, &ack.granted);
        (void)rbi_session_send(tunnel->session, RBI_FRAME_ACK, 0, tunnel->peer_handle, &ack);
    }
    return rx->settled == rx->put && rbi_stream_rx_ack_ns(rx) == UINT64_MAX;
}
