/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 110: resending makes it worse. Two ends of a stream over a line that takes a second each
 * way and stands still for 10 s now and then, so that both sides take it for dead and dial anew,
 * again and again. Records go one way, as fast as the window lets them, for ten minutes of a clock
 * of our own. Each arrives once and in order; what is sent is at most 1.2 times what arrives;
 * nothing is sent again before the OPEN that asks where to go on is answered.
 */
#include "bus/stream.h"

#include <stdio.h>
#include <stdlib.h>

#define MS          UINT64_C(1000000)
#define SECOND      (1000 * MS)
#define DELAY       SECOND
#define STALL_EVERY (60 * SECOND)
#define STALL       (10 * SECOND)
#define SILENCE     (3 * SECOND) /* without a frame for so long the line is taken for dead */
#define LENGTH      (600 * SECOND)
#define WINDOW      (UINT64_C(256) << 10)
#define LANE        (UINT64_C(1) << 20)
#define BODY        1016U
#define FRAME       (RBI_FRAME_DATA_HEAD + BODY)
#define QUEUE       8192U

struct frame {
    uint64_t due_ns;
    uint32_t conn;
    enum rbi_frame_type type;
    uint32_t mark;
    struct rbi_stream_input input;
};

struct end {
    struct rbi_stream stream;
    struct frame queue[QUEUE]; /* towards it */
    uint32_t head;
    uint32_t tail;
    uint32_t conn; /* that it reads and writes; 0: none */
    uint64_t heard_ns;
};

static struct end near;
static struct end far;
static uint64_t now_ns;
static uint32_t conns;
static uint64_t sent_bytes;
static uint64_t written; /* position of the sender's lane */
static unsigned opens;
static unsigned resumptions;

static void check(bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "%llu ms: %s\n", (unsigned long long)(now_ns / MS), what);
        exit(1);
    }
}

/** When what is sent now comes: nothing moves while the line stands still, and nothing is lost. */
static uint64_t arrival_ns(const struct end *to)
{
    uint64_t due_ns = now_ns + DELAY;
    const uint64_t phase = due_ns % STALL_EVERY;
    if (due_ns >= STALL_EVERY && phase < STALL) {
        due_ns += STALL - phase;
    }
    const struct frame *last = to->tail == to->head ? NULL : &to->queue[(to->tail - 1) % QUEUE];
    return last != NULL ? rbi_max_u64(due_ns, last->due_ns) : due_ns;
}

static void send(const struct end *from, struct end *to, struct frame frame)
{
    frame.due_ns = arrival_ns(to);
    frame.conn = from->conn;
    check(to->tail - to->head < QUEUE, "more frames than a window has");
    to->queue[to->tail++ % QUEUE] = frame;
}

static void step(struct end *end, struct end *to, struct rbi_stream_input input)
{
    struct rbi_stream_actions act;
    struct rbi_stream *stream = &end->stream;
    rbi_stream_step(stream, &input, now_ns, &act);
    const unsigned opening = act.todo & (RBI_STREAM_DO_SEND_OPEN | RBI_STREAM_DO_SEND_OPENED);
    if (opening != 0) {
        const bool open = (opening & RBI_STREAM_DO_SEND_OPEN) != 0;
        send(end, to,
             (struct frame){.type = open ? RBI_FRAME_OPEN : RBI_FRAME_OPENED,
                            .input = {.type = open ? RBI_STREAM_IN_OPEN : RBI_STREAM_IN_OPENED,
                                      .id = stream->id,
                                      .theirs = {.life = 2},
                                      .attempt = stream->attempt,
                                      .opened = stream->opened,
                                      .again = stream->opened != 0,
                                      .expect = stream->rx.expect,
                                      .begin = stream->tx.acked,
                                      .granted = rbi_stream_rx_offer(&stream->rx)}});
        opens += open;
    }
    resumptions += end == &near && (act.todo & RBI_STREAM_DO_BACK) != 0;
    check((act.todo & RBI_STREAM_DO_FORGET) == 0, "the stream is given up");
}

/** The receiver reads its lane at once. */
static void take(const struct frame *frame)
{
    struct rbi_stream_rx *rx = &far.stream.rx;
    const int r = rbi_stream_rx_data(rx, frame->mark, BODY, BODY, BODY, FRAME);
    check(r == RBI_STREAM_RECORD, "a record twice, or one is missing");
    rbi_stream_rx_free(rx, FRAME);
    rbi_stream_rx_put(rx, rx->expect);
    rbi_stream_rx_settle(rx, rx->expect);
}

static void read_frames(struct end *end, struct end *to)
{
    while (end->head != end->tail && end->queue[end->head % QUEUE].due_ns <= now_ns) {
        const struct frame frame = end->queue[end->head++ % QUEUE];
        if (end == &far && frame.type == RBI_FRAME_OPEN) {
            end->conn = frame.conn; /* the new connection takes the old one's place */
        } else if (frame.conn != end->conn) {
            continue; /* of a connection that has been given up */
        }
        end->heard_ns = now_ns;
        if (frame.type == RBI_FRAME_DATA) {
            take(&frame);
        } else if (frame.type == RBI_FRAME_ACK) {
            check(rbi_stream_tx_ack(&end->stream.tx, frame.input.position, frame.input.granted) ==
                      0,
                  "an acknowledgement makes no sense");
        } else if (frame.type != RBI_FRAME_PING) {
            step(end, to, frame.input);
        }
    }
}

static void send_records(void)
{
    struct rbi_stream_tx *tx = &near.stream.tx;
    while (written - tx->acked + FRAME + RBI_LINE <= LANE) {
        written = rbi_stream_next(written, BODY);
    }
    while (rbi_stream_sends(&near.stream) && tx->pos != written &&
           rbi_stream_tx_room(tx) >= FRAME) {
        const uint64_t next = rbi_stream_next(tx->pos, BODY);
        rbi_stream_tx_begin(tx, next);
        rbi_stream_tx_frame(tx, FRAME);
        send(&near, &far, (struct frame){.type = RBI_FRAME_DATA, .mark = rbi_stream_mark(tx->pos)});
        rbi_stream_tx_end(tx, next);
        sent_bytes += FRAME;
    }
}

static void send_acks(void)
{
    if (far.stream.state == RBI_STREAM_OPEN && rbi_stream_rx_ack_due(&far.stream.rx, now_ns)) {
        struct frame frame = {.type = RBI_FRAME_ACK};
        rbi_stream_rx_ack(&far.stream.rx, &frame.input.position, &frame.input.granted);
        send(&far, &near, frame);
    }
}

/** Silence ends the connection, and another is dialled at once. */
static void judge(struct end *end, struct end *to)
{
    if (end->conn != 0 && now_ns - end->heard_ns > SILENCE) {
        end->conn = 0;
        end->heard_ns = now_ns;
        step(end, to, (struct rbi_stream_input){.type = RBI_STREAM_IN_CUT});
    }
    if (end == &near && end->conn == 0) {
        end->conn = ++conns;
        step(end, to, (struct rbi_stream_input){.type = RBI_STREAM_IN_WAY});
    }
}

int main(void)
{
    const struct rbi_stream_terms terms = {
        .window = WINDOW, .open_ns = 30 * SECOND, .unreachable_ns = 30 * SECOND};
    const struct rbi_stream_id id = {.life = 1, .number = 1};
    const struct rbi_stream_input first = {.type = RBI_STREAM_IN_OPEN, .id = id};
    rbi_stream_init_opener(&near.stream, &id, 1, 2, &terms, now_ns);
    check(rbi_stream_init_acceptor(&far.stream, &first, 2, 1, &terms, now_ns) == 0, "accepted");
    far.stream.local = true; /* its link stands: it waits for OPEN, as after a cut */
    far.stream.state = RBI_STREAM_HELD;
    far.stream.deadline_ns = UINT64_MAX;
    for (; now_ns < LENGTH; now_ns += MS) {
        judge(&near, &far);
        read_frames(&far, &near);
        read_frames(&near, &far);
        judge(&far, &near);
        send_records();
        send_acks();
        if (now_ns % SECOND == 0) { /* PING of the hosts, both ways */
            send(&near, &far, (struct frame){.type = RBI_FRAME_PING});
            send(&far, &near, (struct frame){.type = RBI_FRAME_PING});
        }
    }
    const uint64_t arrived = far.stream.rx.expect / rbi_stream_next(0, BODY) * FRAME;
    (void)printf("%llu bytes sent, %llu arrived, %u OPENs, %u resumptions, %llu duplicates\n",
                 (unsigned long long)sent_bytes, (unsigned long long)arrived, opens, resumptions,
                 (unsigned long long)far.stream.rx.duplicates);
    check(resumptions >= LENGTH / STALL_EVERY - 1, "the line never stood still");
    check(opens > resumptions, "every OPEN was answered");
    check(arrived > 200 * WINDOW, "it does not get on");
    check(sent_bytes * 10 <= arrived * 12, "resending makes it worse");
    return 0;
}
