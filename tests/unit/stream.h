/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_STREAM_H
#define RINGBUS_TESTS_UNIT_STREAM_H
/* A stream that tests feed, one in each program. */
#include "bus/stream.h"
#include "support/test.h"

#define SECOND UINT64_C(1000000000)
#define LOW    UINT64_C(10)
#define HIGH   UINT64_C(20)

static const struct rbi_stream_terms terms = {
    .window = 4096, .open_ns = 5 * SECOND, .unreachable_ns = 10 * SECOND};
static const struct rbi_stream_id ours = {.life = 7, .number = 3};
static const struct rbi_stream_id other = {.life = 9, .number = 4};

static struct rbi_stream stream;
static struct rbi_stream_actions act;
static uint64_t now_ns;

static inline unsigned feed(struct rbi_stream_input input)
{
    rbi_stream_step(&stream, &input, now_ns, &act);
    return act.todo;
}
#define FEED(...) feed((struct rbi_stream_input){__VA_ARGS__})

static inline struct rbi_stream_input opening(const struct rbi_stream_id *id, uint32_t attempt)
{
    return (struct rbi_stream_input){
        .type = RBI_STREAM_IN_OPEN, .id = *id, .attempt = attempt, .granted = 1000};
}

static inline void opener(uint64_t self)
{
    now_ns = SECOND;
    rbi_stream_init_opener(&stream, &ours, self, self == LOW ? HIGH : LOW, &terms, now_ns);
}

/** An opener whose link is up. */
static inline void open_stream(void)
{
    opener(LOW);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_WAY), RBI_STREAM_DO_SEND_OPEN);
    (void)rbi_stream_rx_offer(&stream.rx);
    assert_int_equal(
        FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 1, .granted = 1000, .theirs = other),
        RBI_STREAM_DO_ACCEPT);
    assert_int_equal(stream.state, RBI_STREAM_OPEN);
}

static inline void acceptor(void)
{
    const struct rbi_stream_input open = opening(&ours, 1);
    now_ns = SECOND;
    assert_int_equal(rbi_stream_init_acceptor(&stream, &open, HIGH, LOW, &terms, now_ns), 0);
}

static inline void accepted(void)
{
    acceptor();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LINKED), RBI_STREAM_DO_SEND_OPENED);
    (void)rbi_stream_rx_offer(&stream.rx);
    assert_int_equal(stream.state, RBI_STREAM_OPEN);
}

/** Sends @p count records of a line. */
static inline void send_lines(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        rbi_stream_tx_begin(&stream.tx, stream.tx.pos + 64);
        rbi_stream_tx_frame(&stream.tx, 80);
        rbi_stream_tx_end(&stream.tx, stream.tx.pos + 64);
    }
}

static inline void receive_line(void)
{
    assert_int_equal(
        rbi_stream_rx_data(&stream.rx, rbi_stream_mark(stream.rx.expect), 56, 56, 56, 80),
        RBI_STREAM_RECORD);
}

#endif
