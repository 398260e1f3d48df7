/* SPDX-License-Identifier: Apache-2.0 */
/* How a stream ends: in order, at once, by either side or both, or as something made no sense. */
#include "stream.h"

static void test_stream_ends_in_order(void **state)
{
    (void)state;
    open_stream();
    send_lines(2);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_SENT), 0); /* it has not left */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT), 0);
    assert_true(rbi_stream_sends(&stream));
    assert_true(rbi_stream_takes(&stream));
    assert_true(rbi_stream_discards(&stream));
    send_lines(1);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_SENT), RBI_STREAM_DO_SEND_CLOSE);
    assert_int_equal(act.reason, RBI_REASON_LEFT);
    assert_false(act.now);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_SENT), 0);
    /* The CLOSE is lost: it is sent again, and what was not acknowledged before it. */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CUT), 0);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(
        FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 2, .expect = 128, .granted = 1000),
        RBI_STREAM_DO_BACK);
    send_lines(1);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_SENT), RBI_STREAM_DO_SEND_CLOSE);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .settled = 192, .seen = 192),
                     RBI_STREAM_DO_FORGET);
    assert_int_equal(stream.tx.acked, 192);
}

static void test_stream_that_the_other_ends(void **state)
{
    (void)state;
    accepted();
    send_lines(4);
    receive_line();
    receive_line();
    rbi_stream_rx_put(&stream.rx, 64);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .reason = RBI_REASON_CRASHED,
                          .position = 128, .settled = 64, .seen = 128),
                     0);
    assert_false(rbi_stream_sends(&stream));
    assert_int_equal(FEED(.type = RBI_STREAM_IN_DRAINED), 0); /* not yet */
    rbi_stream_rx_put(&stream.rx, 128);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_DRAINED),
                     RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.reason, RBI_REASON_CRASHED);
    assert_int_equal(act.seen, 128);
    assert_int_equal(stream.tx.acked, 64);
    /* At once, whatever waits; and what it says of the impossible is cut to what can be. */
    accepted();
    send_lines(4);
    receive_line();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .reason = RBI_REASON_DENIED, .now = true,
                          .position = 640, .settled = 64, .seen = 1024),
                     RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.seen, 256);
    accepted();
    send_lines(4);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .now = true, .settled = 128, .seen = 0),
                     RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.seen, 128);
}

static void test_stream_end_that_makes_no_sense(void **state)
{
    (void)state;
    const unsigned aborted =
        RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET;
    accepted();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .position = 64), aborted); /* not received */
    assert_int_equal(act.reason, RBI_REASON_BAD_PEER);
    accepted();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .settled = 64), aborted); /* not sent */
    accepted(); /* in the middle of a record */
    assert_int_equal(rbi_stream_rx_data(&stream.rx, 0, 100, 0, 100, 24), RBI_STREAM_TAKE);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE), aborted | RBI_STREAM_DO_DROP_PART);
    accepted();
    send_lines(2);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_BROKEN, .reason = RBI_REASON_BAD_PEER), aborted);
    assert_true(act.now);
    assert_int_equal(act.seen, 128);
    /* Whoever has forgotten it knows nothing of what was seen. */
    accepted();
    send_lines(2);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .forgotten = true, .settled = 640),
                     RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.reason, RBI_REASON_UNREACHABLE);
    assert_int_equal(act.seen, 128);
}

static void test_stream_both_end(void **state)
{
    (void)state;
    /* Ours is under way: the other's is no answer, but as good as one. */
    open_stream();
    (void)FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT);
    (void)FEED(.type = RBI_STREAM_IN_SENT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE), RBI_STREAM_DO_FORGET);
    /* Ours has still to be sent: nobody is there to read what is before it. */
    open_stream();
    (void)FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE),
                     RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_FORGET);
    assert_true(act.now);
    /* It leaves while its lane is drained. */
    accepted();
    receive_line();
    (void)FEED(.type = RBI_STREAM_IN_CLOSE, .position = 64);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT),
                     RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_FORGET);
    assert_true(act.now);
}

static void test_stream_leaves_before_it_is_open(void **state)
{
    (void)state;
    opener(LOW); /* nobody was asked */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT),
                     RBI_STREAM_DO_FORGET);
    opener(LOW); /* somebody was: he must be told when he answers */
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 1), RBI_STREAM_DO_SEND_CLOSE);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE), RBI_STREAM_DO_FORGET);
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    (void)FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 1), RBI_STREAM_DO_FORGET);
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    (void)FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CUT), RBI_STREAM_DO_FORGET);
    acceptor();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .code = -6),
                     RBI_STREAM_DO_SEND_REFUSED | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.code, -6);
}

static void test_stream_leaves_at_once(void **state)
{
    (void)state;
    open_stream();
    send_lines(2);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_DENIED, .now = true),
                     RBI_STREAM_DO_SEND_CLOSE);
    assert_true(act.now);
    assert_false(rbi_stream_sends(&stream));
    /* While there is no way it is said as soon as there is one. */
    open_stream();
    (void)FEED(.type = RBI_STREAM_IN_CUT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_DENIED, .now = true), 0);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 2),
                     RBI_STREAM_DO_BACK | RBI_STREAM_DO_SEND_CLOSE);
    assert_true(act.now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_ends_in_order),
        cmocka_unit_test(test_stream_that_the_other_ends),
        cmocka_unit_test(test_stream_end_that_makes_no_sense),
        cmocka_unit_test(test_stream_both_end),
        cmocka_unit_test(test_stream_leaves_before_it_is_open),
        cmocka_unit_test(test_stream_leaves_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
