/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream whose other side says anything, at any time, while its own bridge keeps to the rules.
 * First byte: who it is. Then an operation in each 4 bytes: what happens, and three values. What
 * must hold whatever comes: positions stay in order, no more is taken than was granted, the local
 * end is told once how it ends, and nothing is done after that.
 */
#include "bus/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WINDOW 4096U

static struct rbi_stream stream;
static uint64_t now_ns;
static bool ended; /* the local end was told, or has left itself */
static bool held;
static bool accepted;

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void check_positions(void)
{
    const struct rbi_stream_tx *tx = &stream.tx;
    const struct rbi_stream_rx *rx = &stream.rx;
    check(!rbi_stream_behind(tx->acked, tx->pos) && !rbi_stream_behind(tx->pos, tx->furthest));
    check(!rbi_stream_behind(rx->settled, rx->put) && !rbi_stream_behind(rx->put, rx->expect));
    check(tx->sent <= tx->granted && rx->got <= rx->granted);
    check(rx->freed <= rx->held + rx->got);
    check(rx->held + rx->got - rx->freed <= WINDOW);
    check(!(rx->partial && rx->skipping));
}

static void check_actions(const struct rbi_stream_actions *act, bool was_closed)
{
    const unsigned todo = act->todo;
    const bool ends = (todo & (RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_REFUSE_LOCAL)) != 0;
    check(!was_closed || todo == 0);
    check(was_closed ||
          (stream.state == RBI_STREAM_CLOSED) == ((todo & RBI_STREAM_DO_FORGET) != 0));
    check(!ends || (!ended && (todo & RBI_STREAM_DO_FORGET) != 0));
    check((todo & RBI_STREAM_DO_END_LOCAL) == 0 ||
          (!rbi_stream_behind(act->seen, stream.tx.furthest) &&
           !rbi_stream_behind(stream.tx.acked, act->seen)));
    check((todo & RBI_STREAM_DO_REFUSE_LOCAL) == 0 || !accepted);
    check((todo & RBI_STREAM_DO_ACCEPT) == 0 || !accepted);
    check((todo & RBI_STREAM_DO_HOLD) == 0 || !held);
    check((todo & RBI_STREAM_DO_RELEASE) == 0 || held);
    ended |= ends;
    accepted |= (todo & RBI_STREAM_DO_ACCEPT) != 0;
    held = (todo & RBI_STREAM_DO_HOLD) != 0 || (held && (todo & RBI_STREAM_DO_RELEASE) == 0);
}

static void step(struct rbi_stream_input input)
{
    struct rbi_stream_actions act;
    const bool was_closed = stream.state == RBI_STREAM_CLOSED;
    const bool had_part = stream.rx.partial;
    const bool fails = !stream.opener && stream.state == RBI_STREAM_OPENING;
    ended |= input.type == RBI_STREAM_IN_LEFT || (input.type == RBI_STREAM_IN_FAILED && fails);
    rbi_stream_step(&stream, &input, now_ns, &act);
    check_actions(&act, was_closed);
    check(((act.todo & RBI_STREAM_DO_DROP_PART) != 0) == (had_part && !stream.rx.partial));
    if ((act.todo & (RBI_STREAM_DO_SEND_OPEN | RBI_STREAM_DO_SEND_OPENED)) != 0) {
        rbi_stream_rx_free(&stream.rx, stream.rx.held + stream.rx.got - stream.rx.freed);
        check(rbi_stream_rx_offer(&stream.rx) == WINDOW);
    }
}

/** A value that a peer may say of a position: near one that means something. */
static uint64_t position(uint8_t byte)
{
    const uint64_t bases[] = {stream.tx.acked, stream.tx.pos, stream.tx.furthest, stream.rx.expect};
    return bases[byte % 4] + (uint64_t)((int)(byte / 4) - 32) * 32;
}

static void life(uint8_t what, const uint8_t *values)
{
    const uint8_t flags = values[0];
    struct rbi_stream_input input = {
        .type = (enum rbi_stream_input_type)(1 + what % RBI_STREAM_IN_TICK),
        .id = {.life = 7 + (flags & 1U), .number = 3 + (flags >> 1 & 1U)},
        .theirs = {.life = 8, .number = values[1] % 8},
        .attempt = stream.attempt + values[1] % 4 - 1,
        .opened = values[2] % 4,
        .again = (flags & 4) != 0,
        .forgotten = (flags & 8) != 0,
        .now = (flags & 16) != 0,
        .reason = (enum rbi_reason)(values[1] % (RBI_REASON_LAST + 1)),
        .code = -(int32_t)values[2],
        .expect = position(values[1]),
        .begin = position(values[2]),
        .granted = values[2] * UINT64_C(64),
        .position = position(values[1]),
        .settled = position(values[2]),
        .seen = position((uint8_t)(values[1] ^ values[2])),
    };
    if (input.type == RBI_STREAM_IN_TICK) {
        now_ns += values[1] * UINT64_C(100000000);
    }
    step(input);
}

/** What the other side sends of records; an impossible one ends the stream. */
static void receive(const uint8_t *values)
{
    struct rbi_stream_rx *rx = &stream.rx;
    const uint32_t mark = rbi_stream_mark(rx->expect) + (uint32_t)(values[0] % 8) - 5;
    const uint64_t bytes = RBI_FRAME_DATA_HEAD + values[1];
    const uint64_t before = rx->held + rx->got - rx->freed;
    if (!rbi_stream_takes(&stream)) {
        return;
    }
    int r = 0;
    if (values[0] & 0x80) {
        r = rbi_stream_rx_piece(rx, mark, values[2], values[1], (values[0] & 0x40) != 0, bytes);
    } else {
        r = rbi_stream_rx_data(rx, mark, values[1], values[2] % 64,
                               values[2] % 64 + (values[2] >> 6) * UINT64_C(100), bytes);
    }
    check(r == -EPROTO || (r >= RBI_STREAM_TAKE && r <= RBI_STREAM_DUPLICATE));
    const uint64_t kept = rx->held + rx->got - rx->freed;
    check(r < 0 || kept == before + (r == RBI_STREAM_DUPLICATE ? 0 : bytes));
    if (r < 0) {
        step(
            (struct rbi_stream_input){.type = RBI_STREAM_IN_BROKEN, .reason = RBI_REASON_BAD_PEER});
    } else if (rbi_stream_discards(&stream) && r != RBI_STREAM_DUPLICATE) {
        rbi_stream_rx_free(rx, bytes);
    }
}

/** The rest is our own: what the bridge does by itself. */
static void work(const uint8_t *values)
{
    struct rbi_stream_tx *tx = &stream.tx;
    struct rbi_stream_rx *rx = &stream.rx;
    const uint64_t next = rbi_stream_next(tx->pos, values[1]);
    const uint64_t bytes = RBI_FRAME_DATA_HEAD + values[1];
    if (rbi_stream_sends(&stream) && bytes <= rbi_stream_tx_room(tx) && (values[0] & 1)) {
        rbi_stream_tx_begin(tx, next);
        rbi_stream_tx_frame(tx, bytes);
        (void)rbi_stream_tx_ask(tx, 1024);
        if (values[0] & 2) {
            rbi_stream_tx_end(tx, next);
        }
    }
    if (values[0] & 4) {
        rbi_stream_rx_free(rx,
                           rbi_min_u64(values[1] * UINT64_C(16), rx->held + rx->got - rx->freed));
    }
    if ((values[0] & 8) && !rbi_stream_discards(&stream)) {
        rbi_stream_rx_put(rx, rx->expect);
    }
    if (values[0] & 16) {
        rbi_stream_rx_settle(rx, rx->put);
    }
    if ((values[0] & 32) && stream.state == RBI_STREAM_OPEN && rbi_stream_rx_ack_due(rx, now_ns)) {
        uint64_t granted = 0;
        uint64_t told = 0;
        rbi_stream_rx_ack(rx, &told, &granted);
        check(told == rx->settled && granted >= rx->got);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rbi_stream_id id = {.life = 7, .number = 3};
    const struct rbi_stream_terms terms = {.window = WINDOW,
                                           .open_ns = 1000000000,
                                           .unreachable_ns = 1000000000,
                                           .start = UINT64_MAX - 255};
    if (size < 1) {
        return 0;
    }
    now_ns = 1;
    ended = held = accepted = false;
    if (data[0] & 1) {
        rbi_stream_init_opener(&stream, &id, 10, data[0] & 2 ? 5 : 20, &terms, now_ns);
    } else {
        const struct rbi_stream_input open = {.type = RBI_STREAM_IN_OPEN,
                                              .id = id,
                                              .attempt = 1,
                                              .expect = terms.start,
                                              .begin = terms.start,
                                              .granted = 1000};
        check(rbi_stream_init_acceptor(&stream, &open, 10, 20, &terms, now_ns) == 0);
        accepted = true;
    }
    for (size_t at = 1; at + 4 <= size; at += 4) {
        const uint8_t what = data[at];
        if (what < 128) {
            life(what, data + at + 1);
        } else if (what < 192) {
            receive(data + at + 1);
        } else {
            work(data + at + 1);
        }
        check_positions();
    }
    return 0;
}
