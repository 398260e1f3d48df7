/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a link with a peer whose words are wrong: what it says of how far it had come, and of
 * why it leaves. Whatever that is, what comes back as not seen was not seen, and nothing vanishes
 * (scenarios 5, 27, 61). What it gives back: test_end_back.c.
 */
#include "hostile/end.h"

/* ---- how far it had come --------------------------------------------------------------------- */

/* It has read, and what it says of that is garbage when it dies: who knows what it has handled. */
static void test_impossible_read_position_is_no_proof(void **state)
{
    (void)state;
    link_up((struct setting){0});
    for (unsigned char i = 1; i <= 3; i++) {
        send_bytes(i, 100);
    }
    rbi_store_seq(&peer_side(&peer)->read_pos, 8);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 0);
    assert_int_equal(back.maybe, 3);
    node_close(&node);
}

/* It has begun what was never written. */
static void test_impossible_begun_position_is_no_proof(void **state)
{
    (void)state;
    link_up((struct setting){0});
    send_bytes(1, 100);
    rbi_store_seq(&peer_side(&peer)->begun_pos, UINT64_C(1) << 40);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 0);
    assert_int_equal(back.maybe, 1);
    node_close(&node);
}

/* It was killed between a release in the middle of a batch and the next record: well behaved. */
static void test_begun_position_behind_the_release(void **state)
{
    (void)state;
    link_up((struct setting){0});
    send_bytes(1, 100);
    const uint64_t first = peer.read_pos;
    await(RBI_RECORD_ONEWAY);
    send_bytes(2, 100);
    rbi_store_seq(&peer_side(&peer)->begun_pos, first);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 1);
    assert_int_equal(back.maybe, 0);
    assert_int_equal(back.first[0], 2);
    node_close(&node);
}

/* What was looked at and not taken has not begun: its sender may send it to another. */
static void test_record_that_was_refused_has_not_begun(void **state)
{
    (void)state;
    link_up((struct setting){0});
    const uint64_t before = peer.pos;
    const uint64_t nothing[2] = {0};
    peer_put(&peer, rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_REF, 0, 0), nothing, 8);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_BAD_PEER);
    assert_int_equal(rbi_load_rlx(&peer_their_side(&peer)->begun_pos), before | RBI_SIDE_BETWEEN);
    peer_down(&peer);
    node_close(&node);
}

/* ---- why it leaves --------------------------------------------------------------------------- */

/* Who was given up ends its use in that moment: what it has not read comes back all the same. */
static void test_untargeted_by_one_that_was_given_up(void **state)
{
    (void)state;
    link_up((struct setting){.ping_ms = PING_MS});
    send_bytes(1, 100);
    send_bytes(2, 100);
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (!lies_unread(RBI_RECORD_DISCONNECT)) {
        assert_true(test_now_ms() < deadline_ms);
        assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
    }
    put_disconnect(RBI_REASON_UNTARGETED);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 0);
    assert_int_equal(back.maybe, 2);
    peer_down(&peer);
    node_close(&node);
}

/* A reason of a later version does not say that it reads nothing more. */
static void test_unknown_reason_is_no_proof(void **state)
{
    (void)state;
    link_up((struct setting){0});
    send_bytes(1, 100);
    put_disconnect(99);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 0);
    assert_int_equal(back.maybe, 1);
    peer_down(&peer);
    node_close(&node);
}

static void test_left_says_that_it_reads_no_more(void **state)
{
    (void)state;
    link_up((struct setting){0});
    send_bytes(1, 100);
    put_disconnect(RBI_REASON_LEFT);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 1);
    assert_int_equal(back.maybe, 0);
    peer_down(&peer);
    node_close(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_read_position_is_no_proof),
        cmocka_unit_test(test_impossible_begun_position_is_no_proof),
        cmocka_unit_test(test_begun_position_behind_the_release),
        cmocka_unit_test(test_record_that_was_refused_has_not_begun),
        cmocka_unit_test(test_untargeted_by_one_that_was_given_up),
        cmocka_unit_test(test_unknown_reason_is_no_proof),
        cmocka_unit_test(test_left_says_that_it_reads_no_more),
    };
    return cmocka_run_group_tests_name("end", tests, setup, teardown);
}
