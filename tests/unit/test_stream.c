/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a stream, an input at a time. tests/sim/stream runs two of them against each other;
 * here is what only one can be seen to do. Scenarios 108, 110, 111.
 */
#include "stream.h"

#include <errno.h>

static void test_stream_refused_at_the_beginning(void **state)
{
    (void)state;
    opener(LOW);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 0), 0); /* nothing was asked */
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 1, .code = -9),
                     RBI_STREAM_DO_REFUSE_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.code, -9);
    assert_int_equal(stream.state, RBI_STREAM_CLOSED);
    assert_int_equal(rbi_stream_deadline_ns(&stream), UINT64_MAX);
    for (int type = RBI_STREAM_IN_WAY; type <= RBI_STREAM_IN_TICK; type++) {
        assert_int_equal(FEED(.type = (enum rbi_stream_input_type)type), 0);
    }
}

static void test_stream_open_again_over_another_connection(void **state)
{
    (void)state;
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_WAY), 0); /* one is under way */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CUT), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 1), 0); /* of what is cut */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_WAY), RBI_STREAM_DO_SEND_OPEN);
    assert_int_equal(stream.attempt, 2);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 1), 0); /* an old one */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 1), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 2, .theirs = other),
                     RBI_STREAM_DO_ACCEPT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 2), 0); /* twice */
}

static void test_stream_open_that_nobody_answers(void **state)
{
    (void)state;
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    now_ns = rbi_stream_deadline_ns(&stream) - 1;
    assert_int_equal(now_ns, 6 * SECOND - 1);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_TICK), 0);
    now_ns++;
    assert_int_equal(FEED(.type = RBI_STREAM_IN_TICK),
                     RBI_STREAM_DO_REFUSE_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.code, 0);
    /* At the other side: the local link is not made in time. */
    acceptor();
    now_ns += 5 * SECOND;
    assert_int_equal(FEED(.type = RBI_STREAM_IN_TICK),
                     RBI_STREAM_DO_SEND_REFUSED | RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.id.number, ours.number);
    assert_int_equal(act.attempt, 1);
}

static void test_stream_acceptor_refuses(void **state)
{
    (void)state;
    acceptor();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_WAY), 0); /* only an opener asks */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_FAILED, .code = -5),
                     RBI_STREAM_DO_SEND_REFUSED | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.code, -5);
    assert_false(act.forgotten);
    acceptor();
    (void)FEED(.type = RBI_STREAM_IN_CUT);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_FAILED, .code = -5), RBI_STREAM_DO_FORGET);
    /* What goes on with something was never begun here. */
    struct rbi_stream_input open = opening(&ours, 2);
    open.again = true;
    assert_int_equal(rbi_stream_init_acceptor(&stream, &open, HIGH, LOW, &terms, 1), -EPROTO);
    open.again = false;
    open.begin = 64;
    assert_int_equal(rbi_stream_init_acceptor(&stream, &open, HIGH, LOW, &terms, 1), -EPROTO);
    open.begin = 0;
    open.expect = 64;
    assert_int_equal(rbi_stream_init_acceptor(&stream, &open, HIGH, LOW, &terms, 1), -EPROTO);
}

static void test_stream_linked_after_a_cut(void **state)
{
    (void)state;
    acceptor();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CUT), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LINKED), RBI_STREAM_DO_HOLD);
    assert_int_equal(stream.state, RBI_STREAM_HELD);
    assert_int_equal(feed(opening(&ours, 1)), 0); /* the same one, late */
    assert_int_equal(feed(opening(&ours, 2)), RBI_STREAM_DO_MOVE | RBI_STREAM_DO_RELEASE |
                                                  RBI_STREAM_DO_BACK | RBI_STREAM_DO_SEND_OPENED);
    assert_int_equal(rbi_stream_tx_room(&stream.tx), 1000);
    /* While the link is being made, a newer OPEN just takes the older one's place. */
    acceptor();
    assert_int_equal(feed(opening(&ours, 2)), RBI_STREAM_DO_MOVE);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LINKED), RBI_STREAM_DO_SEND_OPENED);
    assert_int_equal(stream.attempt, 2);
}

static void test_stream_resumes_where_the_other_expects(void **state)
{
    (void)state;
    open_stream();
    send_lines(5);
    receive_line();
    assert_int_equal(rbi_stream_tx_ack(&stream.tx, 64, 1000), 0);
    assert_int_equal(rbi_stream_rx_data(&stream.rx, 1, 100, 0, 100, 24), RBI_STREAM_TAKE);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CUT), RBI_STREAM_DO_DROP_PART | RBI_STREAM_DO_HOLD);
    assert_false(rbi_stream_sends(&stream));
    assert_false(rbi_stream_takes(&stream));
    rbi_stream_rx_free(&stream.rx, 24);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CUT), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_WAY), RBI_STREAM_DO_SEND_OPEN);
    assert_int_equal(stream.state, RBI_STREAM_RESUMING);
    assert_int_equal(stream.opened, 1);
    assert_int_equal(stream.rx.expect, 64);
    assert_int_equal(rbi_stream_rx_offer(&stream.rx), 4096 - 80);
    /* Nothing is sent again before the answer. */
    assert_false(rbi_stream_sends(&stream));
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 2, .expect = 192, .begin = 64,
                          .granted = 500, .theirs = other),
                     RBI_STREAM_DO_RELEASE | RBI_STREAM_DO_BACK);
    assert_int_equal(stream.tx.pos, 192);
    assert_int_equal(stream.tx.furthest, 320);
    assert_int_equal(rbi_stream_tx_room(&stream.tx), 500);
}

/** An answer that cannot be true ends the stream, both sides. */
static void expect_impossible(uint64_t expect, uint64_t begin)
{
    open_stream();
    send_lines(5);
    receive_line();
    assert_int_equal(rbi_stream_tx_ack(&stream.tx, 64, 1000), 0);
    (void)FEED(.type = RBI_STREAM_IN_CUT);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(
        FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 2, .expect = expect, .begin = begin),
        RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.reason, RBI_REASON_BAD_PEER);
    assert_true(act.now);
    assert_int_equal(act.seen, 320);
}

static void test_stream_impossible_positions(void **state)
{
    (void)state;
    expect_impossible(0, 0);     /* it was acknowledged, and is not there any more */
    expect_impossible(384, 0);   /* was never sent */
    expect_impossible(128, 128); /* what we expect cannot be sent any more */
    accepted();
    send_lines(1);
    struct rbi_stream_input open = opening(&ours, 2);
    open.again = true;
    open.opened = 1;
    open.expect = 128;
    assert_int_equal(feed(open), RBI_STREAM_DO_MOVE | RBI_STREAM_DO_SEND_REFUSED |
                                     RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_true(act.forgotten);
}

static void test_stream_that_the_other_has_forgotten(void **state)
{
    (void)state;
    open_stream();
    send_lines(5);
    assert_int_equal(rbi_stream_tx_ack(&stream.tx, 128, 1000), 0);
    (void)FEED(.type = RBI_STREAM_IN_CUT);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 1, .forgotten = true), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 2, .forgotten = true),
                     RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.reason, RBI_REASON_UNREACHABLE);
    assert_int_equal(act.seen, 320);
    assert_int_equal(stream.tx.acked, 128);
    /* Its bridge has another life, which is known before anything is asked of it. */
    open_stream();
    send_lines(1);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LOST),
                     RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.seen, 64);
    opener(LOW); /* this one had nothing there yet */
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LOST), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_WAY), RBI_STREAM_DO_SEND_OPEN);
}

static void test_stream_made_by_an_open_that_came_too_late(void **state)
{
    (void)state;
    /* This one was OPENED at its second attempt, and has been given up here since. Then the first
     * comes, and makes another of its name, which knows nothing of what went on. */
    const unsigned refused = RBI_STREAM_DO_MOVE | RBI_STREAM_DO_SEND_REFUSED |
                             RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET;
    struct rbi_stream_input again = opening(&ours, 3);
    again.again = true;
    again.opened = 2;
    accepted();
    assert_int_equal(feed(again), refused);
    assert_true(act.forgotten);
    assert_int_equal(act.attempt, 3);
    acceptor();
    assert_int_equal(feed(again), refused);
    again.opened = 1;
    accepted();
    assert_int_equal(feed(again),
                     RBI_STREAM_DO_MOVE | RBI_STREAM_DO_BACK | RBI_STREAM_DO_SEND_OPENED);
}

static void test_stream_without_a_way_asks_again_later(void **state)
{
    (void)state;
    open_stream();
    (void)FEED(.type = RBI_STREAM_IN_CUT);
    uint64_t waited = 0;
    uint64_t last = 0;
    for (uint32_t attempt = 2; attempt < 9; attempt++) {
        const enum rbi_stream_input_type again =
            attempt == 2 ? RBI_STREAM_IN_WAY : RBI_STREAM_IN_TICK;
        assert_int_equal(FEED(.type = again), RBI_STREAM_DO_SEND_OPEN);
        assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = attempt, .code = -7), 0);
        assert_int_equal(stream.state, RBI_STREAM_HELD);
        last = rbi_stream_deadline_ns(&stream) - now_ns;
        waited += last;
        now_ns = rbi_stream_deadline_ns(&stream) - 1;
        assert_int_equal(FEED(.type = RBI_STREAM_IN_TICK), 0);
        now_ns++;
    }
    assert_int_equal(last, RBI_STREAM_RETRY_MAX_NS);
    assert_true(waited < 4 * SECOND);
    /* Not for ever: 10 s after the cut it is over, whatever is under way. */
    assert_int_equal(FEED(.type = RBI_STREAM_IN_TICK), RBI_STREAM_DO_SEND_OPEN);
    assert_int_equal(rbi_stream_deadline_ns(&stream), 11 * SECOND);
    now_ns = 11 * SECOND;
    assert_int_equal(FEED(.type = RBI_STREAM_IN_TICK),
                     RBI_STREAM_DO_END_LOCAL | RBI_STREAM_DO_FORGET);
    assert_int_equal(act.reason, RBI_REASON_UNREACHABLE);
}

static void test_stream_both_open_the_same_pair(void **state)
{
    (void)state;
    /* The lower host ignores the other's OPEN: the other will take its own. */
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(feed(opening(&other, 1)), 0);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 1, .theirs = other),
                     RBI_STREAM_DO_ACCEPT);
    assert_int_equal(feed(opening(&other, 2)), 0); /* late, by a slow way */
    /* The higher host takes it, and forgets its own: its link is there already. */
    opener(HIGH);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(feed(opening(&other, 1)),
                     RBI_STREAM_DO_MOVE | RBI_STREAM_DO_ACCEPT | RBI_STREAM_DO_SEND_OPENED);
    assert_false(stream.opener);
    assert_int_equal(stream.id.life, other.life);
    assert_int_equal(stream.id.number, other.number);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_OPENED, .attempt = 1), 0);
    assert_int_equal(feed(opening(&other, 2)),
                     RBI_STREAM_DO_MOVE | RBI_STREAM_DO_BACK | RBI_STREAM_DO_SEND_OPENED);
    /* The lower one has sent none yet: it takes it as well. */
    opener(LOW);
    assert_int_equal(feed(opening(&other, 1)),
                     RBI_STREAM_DO_MOVE | RBI_STREAM_DO_ACCEPT | RBI_STREAM_DO_SEND_OPENED);
    /* An OPEN that stood and fails takes the other one with it. */
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    (void)feed(opening(&other, 5));
    assert_int_equal(FEED(.type = RBI_STREAM_IN_REFUSED, .attempt = 1, .code = -7),
                     RBI_STREAM_DO_SEND_REFUSED | RBI_STREAM_DO_REFUSE_LOCAL |
                         RBI_STREAM_DO_FORGET);
    assert_int_equal(act.id.number, other.number);
    assert_int_equal(act.attempt, 5);
    /* Of two whose endpoint has left meanwhile, one is for the other's OPEN to be made. */
    opener(HIGH);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    assert_int_equal(FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT), 0);
    assert_int_equal(feed(opening(&other, 1)), RBI_STREAM_DO_FORGET | RBI_STREAM_DO_NEW);
    opener(LOW);
    (void)FEED(.type = RBI_STREAM_IN_WAY);
    (void)FEED(.type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_LEFT);
    assert_int_equal(feed(opening(&other, 1)), 0);
}

static void test_stream_another_one_of_the_same_pair(void **state)
{
    (void)state;
    const struct rbi_stream_id next = {.life = 7, .number = 4};
    const struct rbi_stream_id old = {.life = 7, .number = 2};
    const unsigned replaced = RBI_STREAM_DO_SEND_CLOSE | RBI_STREAM_DO_END_LOCAL |
                              RBI_STREAM_DO_FORGET | RBI_STREAM_DO_NEW;
    accepted();
    assert_int_equal(feed(opening(&old, 8)), 0); /* older than this stream */
    assert_int_equal(feed(opening(&next, 1)), replaced);
    assert_int_equal(act.reason, RBI_REASON_UNREACHABLE);
    open_stream();
    assert_int_equal(feed(opening(&other, 1)),
                     0); /* the other side counted as far when it opened */
    const struct rbi_stream_id newer = {.life = other.life, .number = other.number + 1};
    assert_int_equal(feed(opening(&newer, 1)), replaced);
    /* One that only waits for its lane to drain is left to it. */
    accepted();
    receive_line();
    assert_int_equal(FEED(.type = RBI_STREAM_IN_CLOSE, .position = 64), 0);
    assert_int_equal(feed(opening(&next, 1)), RBI_STREAM_DO_NEW);
    assert_int_equal(stream.state, RBI_STREAM_OPEN);
    /* And what goes on with an unknown one is refused, whatever we have. */
    accepted();
    struct rbi_stream_input again = opening(&next, 1);
    again.again = true;
    assert_int_equal(feed(again), RBI_STREAM_DO_SEND_REFUSED);
    assert_true(act.forgotten);
    assert_int_equal(stream.state, RBI_STREAM_OPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_refused_at_the_beginning),
        cmocka_unit_test(test_stream_open_again_over_another_connection),
        cmocka_unit_test(test_stream_open_that_nobody_answers),
        cmocka_unit_test(test_stream_acceptor_refuses),
        cmocka_unit_test(test_stream_linked_after_a_cut),
        cmocka_unit_test(test_stream_resumes_where_the_other_expects),
        cmocka_unit_test(test_stream_impossible_positions),
        cmocka_unit_test(test_stream_that_the_other_has_forgotten),
        cmocka_unit_test(test_stream_made_by_an_open_that_came_too_late),
        cmocka_unit_test(test_stream_without_a_way_asks_again_later),
        cmocka_unit_test(test_stream_both_open_the_same_pair),
        cmocka_unit_test(test_stream_another_one_of_the_same_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
