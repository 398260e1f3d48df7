/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/tunnel_send.c - from the local lane into frames. A record goes whole where it can;
 * what is large, or more than may go now, goes in pieces, and others have their turn between them.
 */
#include "bus/record_times.h"
#include "daemon/bridge/ends.h"
#include "daemon/bridge/tunnel.h"

#include <errno.h>
#include <string.h>

/* Sent for one stream in one turn. */
#define TURN_BYTES (UINT64_C(64) << 10)
/* A first part holds at least this of a record: its tag, extension and reference. */
#define HEAD_MIN UINT64_C(2112)
/* A piece is at least so large, unless it is the last: the rest is worth waiting for room. */
#define PIECE_MIN UINT64_C(1024)

enum sent { SENT = 0, NOTHING, NO_CREDIT, NO_ROOM, ENDED };

/* What may go into one frame: bytes of a record behind @p head. 0: not enough */
static uint64_t part_that_fits(
    struct rbi_tunnel *tunnel, uint64_t head, uint64_t rest, uint64_t least, enum sent *why)
{
    const uint64_t wanted = rbi_min_u64(rest, RBI_FRAME_PART_MAX);
    const uint64_t enough = head + rbi_min_u64(wanted, least);
    const uint64_t credit = rbi_stream_tx_room(&tunnel->stream.tx);
    const uint64_t room = rbi_session_room(tunnel->session);
    if (credit < enough || room < enough) {
        *why = credit < enough ? NO_CREDIT : NO_ROOM;
        return 0;
    }
    *why = SENT;
    return rbi_min_u64(wanted, rbi_min_u64(credit, room) - head);
}

static unsigned ask_flag(struct rbi_tunnel *tunnel)
{
    return rbi_stream_tx_ask(&tunnel->stream.tx, rbi_half_peer_lane_bytes(tunnel->half))
               ? RBI_FRAME_F_ASK
               : 0;
}

/* struct iovec serves reading as well, and knows no const. */
static struct iovec piece_of(const void *at, size_t size)
{
    struct iovec piece = {.iov_len = size};
    memcpy(&piece.iov_base, &at, sizeof at);
    return piece;
}

static enum sent write_frame(struct rbi_tunnel *tunnel,
                             const void *head,
                             size_t head_size,
                             const unsigned char *part,
                             size_t part_size)
{
    const struct iovec pieces[] = {piece_of(head, head_size), piece_of(part, part_size)};
    if (rbi_conn_writev(tunnel->session->conn, pieces, part_size > 0 ? 2 : 1) < 0) {
        return NO_ROOM; /* or it has ended, and cuts us soon */
    }
    rbi_stream_tx_frame(&tunnel->stream.tx, head_size + part_size);
    tunnel->session->frames_out++;
    return SENT;
}

static enum sent send_piece(struct rbi_tunnel *tunnel)
{
    struct rbi_tunnel_out *out = &tunnel->out;
    unsigned char head[RBI_FRAME_PIECE_HEAD];
    enum sent why = SENT;
    const uint64_t part =
        part_that_fits(tunnel, sizeof head, out->size - out->done, PIECE_MIN, &why);
    if (why != SENT) {
        return why;
    }
    const bool last = out->done + part == out->size;
    rbi_frame_piece_head(head, (last ? RBI_FRAME_F_LAST : 0) | ask_flag(tunnel),
                         tunnel->peer_handle, rbi_stream_mark(tunnel->stream.tx.pos), out->done,
                         (uint32_t)part);
    why = write_frame(tunnel, head, sizeof head, out->rest + out->done, part);
    if (why == SENT) {
        out->done += part;
    }
    if (why == SENT && last) {
        out->active = false;
        rbi_stream_tx_end(&tunnel->stream.tx, out->record.next);
    }
    return why;
}

/* A record that goes on in pieces: what they hold. @retval 0; 1 nothing more; -errno */
static int
rest_of(struct rbi_tunnel *tunnel, const struct rbi_lane_record *record, struct rbi_tunnel_out *out)
{
    int result = 0;
    *out = (struct rbi_tunnel_out){.record = *record, .rest = record->body, .size = record->size};
    if ((record->meta >> 8 & RBI_RECORD_REF) != 0) {
        result = rbi_half_payload(tunnel->half, record, &out->rest, &out->size);
    }
    return result;
}

/* Before the record itself: what others tell of it comes behind what we do. */
static unsigned follow_flag(struct rbi_tunnel *tunnel,
                            const struct rbi_lane_record *record,
                            const unsigned char *body,
                            uint64_t now_ns)
{
    return rbi_follow_tunnel(tunnel, RBI_FOLLOW_OUT, record->meta, body, record->size, now_ns)
               ? RBI_FRAME_F_FOLLOW
               : 0;
}

static enum sent send_first(struct rbi_tunnel *tunnel, const struct rbi_lane_record *record)
{
    static _Alignas(8) unsigned char body[RBI_FRAME_PART_MAX]; /* one thread, nobody calls back */
    unsigned char head[RBI_FRAME_DATA_HEAD];
    struct rbi_stream_tx *tx = &tunnel->stream.tx;
    struct rbi_tunnel_out out;
    enum sent why = SENT;
    const bool by_reference = (record->meta >> 8 & RBI_RECORD_REF) != 0;
    const uint64_t part = part_that_fits(tunnel, sizeof head, record->size, HEAD_MIN, &why);
    if (why != SENT) {
        return why;
    }
    if (by_reference && part < record->size) {
        return part < HEAD_MIN ? NO_CREDIT : ENDED; /* no record of ours is so long */
    }
    const int result = rest_of(tunnel, record, &out);
    if (result < 0) {
        return result == -EPROTO ? ENDED : NOTHING;
    }
    const bool more = by_reference ? out.size > 0 : part < record->size;
    if (rbi_half_step(tunnel->half, record) != 0) {
        return ENDED; /* it has taken its records back */
    }
    rbi_stream_tx_begin(tx, record->next);
    memcpy(body, record->body, part);
    const uint64_t now_ns = rbi_bridge_now_ns(tunnel->bridge);
    unsigned flags = more ? RBI_FRAME_F_MORE : 0;
    if (RBI_UNLIKELY(rbi_record_shift_times(record->meta, body, record->size, 0 - now_ns) ||
                     tunnel->follow.count != 0)) {
        flags |= follow_flag(tunnel, record, body, now_ns);
    }
    rbi_frame_data_head(head, flags | ask_flag(tunnel), tunnel->peer_handle,
                        rbi_stream_mark(tx->pos), record->meta, (uint32_t)record->size,
                        (uint32_t)part);
    why = write_frame(tunnel, head, sizeof head, body, part);
    if (why != SENT) {
        return rbi_half_back(tunnel->half, tx->pos) == 0 ? why : ENDED; /* nothing has left */
    }
    tunnel->records_out++;
    out.active = more;
    out.done = by_reference ? 0 : part;
    tunnel->out = out;
    if (!more) {
        rbi_stream_tx_end(tx, record->next);
    }
    return SENT;
}

static enum sent send_next(struct rbi_tunnel *tunnel)
{
    struct rbi_lane_record record;
    if (tunnel->out.active) {
        return send_piece(tunnel);
    }
    const int result = rbi_half_peek(tunnel->half, &record);
    if (result != RBI_LANE_OK) {
        return result == RBI_LANE_EMPTY ? NOTHING : ENDED;
    }
    return send_first(tunnel, &record);
}

static void set_hold(struct rbi_tunnel *tunnel, bool hold)
{
    if (tunnel->half != NULL && tunnel->held != hold) {
        tunnel->held = hold;
        rbi_half_hold(tunnel->half, hold);
    }
}

static bool may_send(const struct rbi_tunnel *tunnel)
{
    return tunnel->half != NULL && tunnel->linked && tunnel->session != NULL &&
           tunnel->peer_handle != 0 && rbi_stream_sends(&tunnel->stream);
}

void rbi_tunnel_wake(struct rbi_tunnel *tunnel)
{
    if (may_send(tunnel) && (tunnel->held || tunnel->out.active || tunnel->stream.local_ended)) {
        tunnel->send_due = true;
        rbi_tunnel_touch(tunnel);
    }
}

void rbi_tunnel_send(struct rbi_tunnel *tunnel)
{
    const uint64_t until = tunnel->stream.tx.sent + TURN_BYTES;
    enum sent why = SENT;
    if (!may_send(tunnel)) {
        set_hold(tunnel, true); /* until it may: rbi_tunnel_wake() */
        return;
    }
    while (why == SENT && !rbi_stream_behind(tunnel->stream.tx.sent, until)) {
        why = send_next(tunnel);
    }
    set_hold(tunnel, why == NO_CREDIT || why == NO_ROOM);
    if (why == NO_ROOM) {
        rbi_session_choke(tunnel->session, &tunnel->choked);
    } else if (why == SENT && tunnel->out.active) {
        tunnel->send_due = true; /* the lane may have nothing more: nobody would call */
        rbi_tunnel_touch(tunnel);
    } else if ((why == NOTHING || why == ENDED) && tunnel->stream.local_ended) {
        rbi_tunnel_feed(tunnel, RBI_STREAM_IN_SENT);
    }
}
