/* SPDX-License-Identifier: Apache-2.0 */
/* The two directions of a stream: positions, acknowledgements, grants. Scenarios 108, 110. */
#include "bus/frame.h"
#include "bus/stream_window.h"
#include "support/test.h"

#include <errno.h>

#define WINDOW 4096U
#define DATA   (RBI_FRAME_DATA_HEAD + 56U) /* a record of one line */

/** Sends records of a line each. @return position behind them */
static uint64_t send_lines(struct rbi_stream_tx *tx, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const uint64_t next = rbi_stream_next(tx->pos, 56);
        assert_int_equal(next - tx->pos, 64);
        rbi_stream_tx_begin(tx, next);
        rbi_stream_tx_frame(tx, DATA);
        rbi_stream_tx_end(tx, next);
    }
    return tx->pos;
}

static int take_line(struct rbi_stream_rx *rx, uint64_t pos)
{
    return rbi_stream_rx_data(rx, rbi_stream_mark(pos), 56, 56, 56, DATA);
}

static void test_stream_positions_are_lanes(void **state)
{
    (void)state;
    assert_int_equal(rbi_stream_next(0, 0), 64);
    assert_int_equal(rbi_stream_next(0, 56), 64);
    assert_int_equal(rbi_stream_next(64, 57), 192);
    assert_int_equal(rbi_stream_next(UINT64_MAX - 63, 8), 0);
    assert_true(rbi_stream_behind(64, 0));
    assert_false(rbi_stream_behind(64, 64));
    assert_true(rbi_stream_behind(0, UINT64_MAX - 63));
    assert_int_equal(rbi_stream_mark(UINT64_C(64) << 32), 0);
    assert_int_equal(rbi_stream_mark(UINT64_MAX - 63), UINT32_MAX);
}

static void test_stream_ack_within_what_was_sent(void **state)
{
    (void)state;
    static const uint64_t begins[] = {0, UINT64_MAX - 127}; /* the second wraps */
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(begins); i++) {
        struct rbi_stream_tx tx;
        rbi_stream_tx_init(&tx, begins[i]);
        assert_int_equal(rbi_stream_tx_room(&tx), 0);
        assert_int_equal(rbi_stream_tx_resume(&tx, begins[i], WINDOW), 0);
        const uint64_t end = send_lines(&tx, 4);
        assert_int_equal(rbi_stream_tx_room(&tx), WINDOW - 4 * DATA);
        assert_int_equal(rbi_stream_tx_ack(&tx, end + 64, WINDOW), -EPROTO); /* not sent */
        assert_int_equal(rbi_stream_tx_ack(&tx, end - 1, WINDOW), -EPROTO);
        assert_int_equal(rbi_stream_tx_ack(&tx, end - 64, WINDOW - 1), -EPROTO); /* less */
        assert_int_equal(tx.acked, begins[i]);
        assert_int_equal(rbi_stream_tx_ack(&tx, end - 64, WINDOW + 10), 0);
        assert_int_equal(tx.acked, end - 64);
        assert_int_equal(rbi_stream_tx_room(&tx), WINDOW + 10 - 4 * DATA);
        assert_int_equal(rbi_stream_tx_ack(&tx, end - 128, WINDOW + 10), -EPROTO); /* before */
        assert_int_equal(rbi_stream_tx_ack(&tx, end - 64, WINDOW + 10), 0);        /* the same */
        assert_int_equal(rbi_stream_tx_ack(&tx, end, WINDOW + 10), 0);
    }
}

static void test_stream_resume_goes_back_to_what_is_expected(void **state)
{
    (void)state;
    static const uint64_t begins[] = {0, UINT64_MAX - 127};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(begins); i++) {
        const uint64_t begin = begins[i];
        struct rbi_stream_tx tx;
        rbi_stream_tx_init(&tx, begin);
        assert_int_equal(rbi_stream_tx_resume(&tx, begin, WINDOW), 0);
        (void)send_lines(&tx, 5);
        assert_int_equal(rbi_stream_tx_ack(&tx, begin + 64, WINDOW), 0);
        rbi_stream_tx_begin(&tx, begin + 6 * 64); /* and a sixth is begun */
        assert_int_equal(rbi_stream_tx_resume(&tx, begin, WINDOW), -EPROTO); /* acknowledged */
        assert_int_equal(rbi_stream_tx_resume(&tx, begin + 7 * 64, WINDOW),
                         -EPROTO); /* never sent */
        assert_int_equal(rbi_stream_tx_resume(&tx, begin + 130, WINDOW), -EPROTO);
        assert_int_equal(tx.pos, begin + 5 * 64);
        assert_int_equal(rbi_stream_tx_resume(&tx, begin + 2 * 64, 1000), 0);
        assert_int_equal(tx.pos, begin + 2 * 64);
        assert_int_equal(tx.acked, begin + 64);
        assert_int_equal(tx.furthest, begin + 6 * 64);
        assert_int_equal(rbi_stream_tx_room(&tx), 1000);
        assert_int_equal(tx.resent, 0);
        (void)send_lines(&tx, 2);
        assert_int_equal(tx.resent, 128);
        /* What was sent before the cut may still be what is expected after the next. */
        assert_int_equal(rbi_stream_tx_resume(&tx, begin + 6 * 64, 1000), 0);
        assert_int_equal(tx.pos, begin + 6 * 64);
        /* But not what was only sent before the last: an ACK is of this connection. */
        assert_int_equal(rbi_stream_tx_resume(&tx, begin + 2 * 64, 1000), 0);
        assert_int_equal(rbi_stream_tx_ack(&tx, begin + 3 * 64, 1000), -EPROTO);
    }
}

static void test_stream_asks_once_a_half_lane(void **state)
{
    (void)state;
    struct rbi_stream_tx tx;
    unsigned asked = 0;
    rbi_stream_tx_init(&tx, 0);
    tx.granted = UINT64_MAX / 2;
    for (unsigned i = 0; i < 16; i++) { /* a lane of 16 lines */
        (void)send_lines(&tx, 1);
        asked += rbi_stream_tx_ask(&tx, 1024);
    }
    assert_int_equal(asked, 2);
    assert_int_equal(rbi_stream_tx_ack(&tx, 1024 - 64, tx.granted), 0);
    assert_false(rbi_stream_tx_ask(&tx, 1024));
}

static void test_stream_takes_each_record_once_and_in_order(void **state)
{
    (void)state;
    static const uint64_t begins[] = {0, (UINT64_C(64) << 32) - 64, UINT64_MAX - 63};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(begins); i++) {
        const uint64_t begin = begins[i];
        struct rbi_stream_rx rx;
        rbi_stream_rx_init(&rx, begin, WINDOW);
        assert_int_equal(take_line(&rx, begin), -EPROTO); /* nothing is granted yet */
        assert_int_equal(rbi_stream_rx_offer(&rx), WINDOW);
        assert_int_equal(take_line(&rx, begin + 64), -EPROTO); /* one is missing */
        assert_int_equal(take_line(&rx, begin), RBI_STREAM_RECORD);
        assert_int_equal(take_line(&rx, begin + 64), RBI_STREAM_RECORD);
        assert_int_equal(rx.expect, begin + 128);
        assert_int_equal(take_line(&rx, begin), RBI_STREAM_DUPLICATE);
        assert_int_equal(take_line(&rx, begin + 64), RBI_STREAM_DUPLICATE);
        assert_int_equal(rx.expect, begin + 128);
        assert_int_equal(rx.duplicates, 2);
        rbi_stream_rx_free(&rx, 2 * DATA); /* the duplicates' are free already */
        assert_int_equal(rx.freed, rx.got);
    }
}

static void test_stream_pieces_belong_to_their_record(void **state)
{
    (void)state;
    struct rbi_stream_rx rx;
    rbi_stream_rx_init(&rx, 0, WINDOW);
    (void)rbi_stream_rx_offer(&rx);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 0, 10, false, 34), -EPROTO); /* of nothing */
    assert_int_equal(rbi_stream_rx_data(&rx, 0, 32, 0, 300, 56), RBI_STREAM_TAKE);
    assert_int_equal(take_line(&rx, 0), -EPROTO); /* the other one is not whole */
    assert_int_equal(rbi_stream_rx_piece(&rx, 1, 0, 100, false, 124), -EPROTO);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 1, 100, false, 124), -EPROTO);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 0, 301, false, 325), -EPROTO);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 0, 100, true, 124), -EPROTO); /* not the last */
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 0, 100, false, 124), RBI_STREAM_TAKE);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 0, 100, false, 124), -EPROTO); /* again */
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 100, 200, false, 224),
                     -EPROTO); /* it is the last */
    assert_int_equal(rx.expect, 0);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 100, 200, true, 224), RBI_STREAM_RECORD);
    assert_int_equal(rx.expect, 64);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 300, 1, true, 25), -EPROTO);
    /* The same again is a duplicate as a whole. */
    assert_int_equal(rbi_stream_rx_data(&rx, 0, 32, 0, 300, 56), RBI_STREAM_DUPLICATE);
    assert_int_equal(take_line(&rx, 64), -EPROTO);
    assert_int_equal(rbi_stream_rx_piece(&rx, 0, 0, 300, true, 324), RBI_STREAM_DUPLICATE);
    assert_int_equal(take_line(&rx, 64), RBI_STREAM_RECORD);
    assert_int_equal(rbi_stream_rx_data(&rx, 2, 32, 10, 9, 56), -EPROTO);
}

static void test_stream_grants_are_kept(void **state)
{
    (void)state;
    struct rbi_stream_rx rx;
    uint64_t position = 0;
    uint64_t granted = 0;
    rbi_stream_rx_init(&rx, 0, 200);
    assert_int_equal(rbi_stream_rx_offer(&rx), 200);
    assert_int_equal(take_line(&rx, 0), RBI_STREAM_RECORD);
    assert_int_equal(take_line(&rx, 64), RBI_STREAM_RECORD);
    assert_int_equal(take_line(&rx, 128), -EPROTO); /* more than granted */
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(position, 0);
    assert_int_equal(granted, 200);
    rbi_stream_rx_free(&rx, DATA);
    rbi_stream_rx_put(&rx, 64);
    rbi_stream_rx_settle(&rx, 64);
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(position, 64);
    assert_int_equal(granted, 200 + DATA);
    assert_int_equal(take_line(&rx, 128), RBI_STREAM_RECORD);
    /* A smaller window takes nothing back. */
    rbi_stream_rx_window(&rx, 50);
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(granted, 200 + DATA);
    rbi_stream_rx_free(&rx, 2 * DATA);
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(granted, rbi_max_u64(200 + DATA, 3 * DATA + 50));
}

static void test_stream_counts_anew_with_each_connection(void **state)
{
    (void)state;
    struct rbi_stream_rx rx;
    uint64_t position = 0;
    uint64_t granted = 0;
    rbi_stream_rx_init(&rx, 0, 1000);
    (void)rbi_stream_rx_offer(&rx);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(take_line(&rx, 64 * (uint64_t)i), RBI_STREAM_RECORD);
    }
    rbi_stream_rx_free(&rx, DATA);
    assert_int_equal(rbi_stream_rx_data(&rx, 3, 100, 0, 100, RBI_FRAME_DATA_HEAD), RBI_STREAM_TAKE);
    assert_true(rbi_stream_rx_cut(&rx));
    assert_false(rbi_stream_rx_cut(&rx));
    rbi_stream_rx_free(&rx, RBI_FRAME_DATA_HEAD); /* of the part */
    /* Two records are kept: so much less may come. */
    assert_int_equal(rbi_stream_rx_offer(&rx), 1000 - 2 * DATA);
    assert_int_equal(rbi_stream_rx_offer(&rx), 1000 - 2 * DATA); /* an OPEN that was lost */
    rbi_stream_rx_free(&rx, 2 * DATA);
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(granted, 1000);
    assert_int_equal(rx.expect, 192);
    assert_int_equal(rbi_stream_rx_piece(&rx, 3, 0, 100, true, 124), -EPROTO); /* begin anew */
    assert_int_equal(take_line(&rx, 192), RBI_STREAM_RECORD);
}

static void test_stream_offers_nothing_while_it_keeps_a_window(void **state)
{
    (void)state;
    struct rbi_stream_rx rx;
    rbi_stream_rx_init(&rx, 0, 4 * DATA);
    (void)rbi_stream_rx_offer(&rx);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(take_line(&rx, 64 * (uint64_t)i), RBI_STREAM_RECORD);
    }
    rbi_stream_rx_window(&rx, 3 * DATA); /* it shrinks */
    (void)rbi_stream_rx_cut(&rx);
    assert_int_equal(rbi_stream_rx_offer(&rx), 0);
    rbi_stream_rx_free(&rx, DATA);
    assert_int_equal(rbi_stream_rx_offer(&rx), 0);
    rbi_stream_rx_free(&rx, DATA);
    assert_int_equal(rbi_stream_rx_offer(&rx), DATA);
}

static void test_stream_ack_is_due(void **state)
{
    (void)state;
    struct rbi_stream_rx rx;
    uint64_t position = 0;
    uint64_t granted = 0;
    const uint64_t now = 1000;
    rbi_stream_rx_init(&rx, 0, 1U << 20);
    (void)rbi_stream_rx_offer(&rx);
    assert_false(rbi_stream_rx_ack_due(&rx, now));
    assert_int_equal(rbi_stream_rx_ack_ns(&rx), UINT64_MAX);
    /* A little waits for more. */
    assert_int_equal(take_line(&rx, 0), RBI_STREAM_RECORD);
    rbi_stream_rx_free(&rx, DATA);
    rbi_stream_rx_put(&rx, 64);
    rbi_stream_rx_settle(&rx, 64);
    assert_false(rbi_stream_rx_ack_due(&rx, now));
    assert_int_equal(rbi_stream_rx_ack_ns(&rx), now + RBI_STREAM_ACK_DELAY_NS);
    assert_false(rbi_stream_rx_ack_due(&rx, now + RBI_STREAM_ACK_DELAY_NS - 1));
    assert_true(rbi_stream_rx_ack_due(&rx, now + RBI_STREAM_ACK_DELAY_NS));
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_false(rbi_stream_rx_ack_due(&rx, now));
    /* Asked for, it waits for the record that it is to be of, and for nothing else. */
    rx.asked = true;
    assert_int_equal(take_line(&rx, 64), RBI_STREAM_RECORD);
    assert_false(rbi_stream_rx_ack_due(&rx, now));
    rbi_stream_rx_put(&rx, 128);
    rbi_stream_rx_settle(&rx, 128);
    assert_true(rbi_stream_rx_ack_due(&rx, now));
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_false(rbi_stream_rx_ack_due(&rx, now));
    /* Many records do not wait. */
    for (uint64_t pos = 128; pos < 128 + RBI_STREAM_ACK_BYTES; pos += 64) {
        assert_int_equal(take_line(&rx, pos), RBI_STREAM_RECORD);
    }
    rbi_stream_rx_put(&rx, rx.expect);
    rbi_stream_rx_settle(&rx, rx.expect);
    assert_true(rbi_stream_rx_ack_due(&rx, now));
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(position, rx.expect);
    /* An ACK may have been lost with its connection. */
    (void)rbi_stream_rx_cut(&rx);
    assert_true(rbi_stream_rx_ack_due(&rx, now));
    rbi_stream_rx_ack(&rx, &position, &granted);
    assert_int_equal(position, rx.expect);
    assert_false(rbi_stream_rx_ack_due(&rx, now));
}

static void test_stream_ack_of_a_quarter_of_the_window(void **state)
{
    (void)state;
    struct rbi_stream_rx rx;
    rbi_stream_rx_init(&rx, 0, 4 * DATA);
    (void)rbi_stream_rx_offer(&rx);
    assert_int_equal(take_line(&rx, 0), RBI_STREAM_RECORD);
    rbi_stream_rx_free(&rx, DATA - 1);
    assert_false(rbi_stream_rx_ack_due(&rx, 1));
    rbi_stream_rx_free(&rx, 1);
    assert_true(rbi_stream_rx_ack_due(&rx, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_positions_are_lanes),
        cmocka_unit_test(test_stream_ack_within_what_was_sent),
        cmocka_unit_test(test_stream_resume_goes_back_to_what_is_expected),
        cmocka_unit_test(test_stream_asks_once_a_half_lane),
        cmocka_unit_test(test_stream_takes_each_record_once_and_in_order),
        cmocka_unit_test(test_stream_pieces_belong_to_their_record),
        cmocka_unit_test(test_stream_grants_are_kept),
        cmocka_unit_test(test_stream_counts_anew_with_each_connection),
        cmocka_unit_test(test_stream_offers_nothing_while_it_keeps_a_window),
        cmocka_unit_test(test_stream_ack_is_due),
        cmocka_unit_test(test_stream_ack_of_a_quarter_of_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
