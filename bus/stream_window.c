/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/stream_window.h"

#include "shm/lane.h"

#include <errno.h>

uint64_t rbi_stream_next(uint64_t pos, uint64_t size)
{
    return pos + rbi_align_up(RBI_LANE_HEADER + size, RBI_LINE);
}

/* ---- sending ------------------------------------------------------------------------------ */

void rbi_stream_tx_init(struct rbi_stream_tx *tx, uint64_t begin)
{
    *tx = (struct rbi_stream_tx){.acked = begin, .pos = begin, .furthest = begin, .asked = begin};
}

void rbi_stream_tx_begin(struct rbi_stream_tx *tx, uint64_t next)
{
    RBI_ASSERT(rbi_stream_behind(next, tx->pos));
    if (rbi_stream_behind(next, tx->furthest)) {
        tx->furthest = next;
    } else {
        tx->resent += next - tx->pos;
    }
}

void rbi_stream_tx_frame(struct rbi_stream_tx *tx, uint64_t bytes)
{
    RBI_ASSERT(bytes <= rbi_stream_tx_room(tx));
    tx->sent += bytes;
}

void rbi_stream_tx_end(struct rbi_stream_tx *tx, uint64_t next)
{
    RBI_ASSERT(rbi_stream_behind(next, tx->pos) && !rbi_stream_behind(next, tx->furthest));
    tx->pos = next;
}

bool rbi_stream_tx_ask(struct rbi_stream_tx *tx, uint64_t lane_capacity)
{
    if (tx->pos - tx->acked < lane_capacity / 2 || tx->pos - tx->asked < lane_capacity / 2) {
        return false;
    }
    tx->asked = tx->pos;
    return true;
}

int rbi_stream_tx_ack(struct rbi_stream_tx *tx, uint64_t position, uint64_t granted)
{
    if (position % RBI_LINE != 0 || rbi_stream_behind(tx->acked, position) ||
        rbi_stream_behind(position, tx->pos) || granted < tx->granted) {
        return -EPROTO;
    }
    tx->acked = position;
    tx->granted = granted;
    return 0;
}

int rbi_stream_tx_resume(struct rbi_stream_tx *tx, uint64_t expect, uint64_t granted)
{
    if (expect % RBI_LINE != 0 || rbi_stream_behind(tx->acked, expect) ||
        rbi_stream_behind(expect, tx->furthest)) {
        return -EPROTO;
    }
    tx->pos = expect;
    tx->asked = tx->acked;
    tx->sent = 0;
    tx->granted = granted;
    return 0;
}

/* ---- receiving ---------------------------------------------------------------------------- */

void rbi_stream_rx_init(struct rbi_stream_rx *rx, uint64_t expect, uint64_t window)
{
    *rx = (struct rbi_stream_rx){
        .expect = expect, .put = expect, .settled = expect, .told = expect, .window = window};
}

/** Bytes of a frame that came. @return false: more than was granted */
static bool count(struct rbi_stream_rx *rx, uint64_t bytes)
{
    if (bytes > rx->granted - rx->got) {
        return false;
    }
    rx->got += bytes;
    return true;
}

/** Where a mark lies, seen from what is expected: below 0 before it. In lines. */
static int32_t distance(const struct rbi_stream_rx *rx, uint32_t mark)
{
    return (int32_t)(mark - rbi_stream_mark(rx->expect));
}

static int whole(struct rbi_stream_rx *rx)
{
    rx->partial = false;
    rx->expect = rbi_stream_next(rx->expect, rx->begun_size);
    return RBI_STREAM_RECORD;
}

int rbi_stream_rx_data(struct rbi_stream_rx *rx,
                       uint32_t mark,
                       uint32_t size,
                       uint64_t from,
                       uint64_t end,
                       uint64_t bytes)
{
    const int32_t lines = distance(rx, mark);
    if (rx->partial || rx->skipping || lines > 0 || from > end || !count(rx, bytes)) {
        return -EPROTO;
    }
    rx->piece_at = from;
    rx->piece_end = end;
    if (lines < 0) {
        rx->duplicates++;
        rx->skipping = from != end;
        rbi_stream_rx_free(rx, bytes);
        return RBI_STREAM_DUPLICATE;
    }
    rx->begun_size = size;
    rx->partial = from != end;
    return rx->partial ? RBI_STREAM_TAKE : whole(rx);
}

int rbi_stream_rx_piece(struct rbi_stream_rx *rx,
                        uint32_t mark,
                        uint64_t offset,
                        uint64_t size,
                        bool last,
                        uint64_t bytes)
{
    const int32_t lines = distance(rx, mark);
    const bool fits = offset == rx->piece_at && size <= rx->piece_end - rx->piece_at &&
                      last == (size == rx->piece_end - rx->piece_at);
    if (!(rx->partial ? lines == 0 : rx->skipping && lines < 0) || !fits || !count(rx, bytes)) {
        return -EPROTO;
    }
    rx->piece_at += size;
    if (rx->skipping) {
        rx->skipping = !last;
        rbi_stream_rx_free(rx, bytes);
        return RBI_STREAM_DUPLICATE;
    }
    return last ? whole(rx) : RBI_STREAM_TAKE;
}

void rbi_stream_rx_free(struct rbi_stream_rx *rx, uint64_t bytes)
{
    RBI_ASSERT(bytes <= rx->held + rx->got - rx->freed);
    rx->freed += bytes;
}

void rbi_stream_rx_put(struct rbi_stream_rx *rx, uint64_t position)
{
    RBI_ASSERT(!rbi_stream_behind(rx->put, position) && !rbi_stream_behind(position, rx->expect));
    rx->put = position;
}

void rbi_stream_rx_settle(struct rbi_stream_rx *rx, uint64_t position)
{
    RBI_ASSERT(!rbi_stream_behind(rx->settled, position) && !rbi_stream_behind(position, rx->put));
    rx->settled = position;
}

void rbi_stream_rx_window(struct rbi_stream_rx *rx, uint64_t window)
{
    rx->window = window;
}

/** What may be granted in all: never less than what was. */
static uint64_t grant(const struct rbi_stream_rx *rx)
{
    const uint64_t room = rx->freed + rx->window;
    return rbi_max_u64(rx->granted, room > rx->held ? room - rx->held : 0);
}

bool rbi_stream_rx_ack_due(struct rbi_stream_rx *rx, uint64_t now_ns)
{
    const uint64_t records = rx->settled - rx->told;
    const uint64_t bytes = grant(rx) - rx->granted;
    if (rx->owed) {
        return true;
    }
    if (records == 0 && bytes == 0) {
        rx->wait_ns = 0;
        return false;
    }
    if ((rx->asked && records != 0) || records >= RBI_STREAM_ACK_BYTES || bytes >= rx->window / 4) {
        return true;
    }
    if (rx->wait_ns == 0) {
        rx->wait_ns = now_ns;
    }
    return now_ns - rx->wait_ns >= RBI_STREAM_ACK_DELAY_NS;
}

uint64_t rbi_stream_rx_ack_ns(const struct rbi_stream_rx *rx)
{
    return rx->wait_ns == 0 ? UINT64_MAX : rx->wait_ns + RBI_STREAM_ACK_DELAY_NS;
}

void rbi_stream_rx_ack(struct rbi_stream_rx *rx, uint64_t *position, uint64_t *granted)
{
    rx->told = rx->settled;
    rx->granted = grant(rx);
    rx->wait_ns = 0;
    rx->asked = false;
    rx->owed = false;
    rx->acked = true;
    *position = rx->told;
    *granted = rx->granted;
}

bool rbi_stream_rx_cut(struct rbi_stream_rx *rx)
{
    const bool partial = rx->partial;
    rx->partial = false;
    rx->skipping = false;
    rx->asked = false;
    rx->owed = rx->acked;
    return partial;
}

uint64_t rbi_stream_rx_offer(struct rbi_stream_rx *rx)
{
    rx->held += rx->got - rx->freed;
    rx->got = 0;
    rx->freed = 0;
    rx->granted = rx->window > rx->held ? rx->window - rx->held : 0;
    return rx->granted;
}
