/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that takes every link, says READY, and goes: however often it does, whoever targets
 * it waits ever longer (50 ms to 5 s, twice as long each time, a quarter to either side),
 * and a link that has stood for a while makes the next try quick again.
 */
#include "hostile/attack.h"

#include <string.h>

#define READY_YES 0

/** Takes the next introduction, all the way to READY. @return whether one came in time */
static bool take_link(void)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const struct rbi_ready_ack ack = {.version = 1, .reason = READY_YES};
    const uint64_t ups = stage.scene->ups;
    if (peer_introduced(&peer) != 0) {
        return false;
    }
    assert_int_equal(peer_accept_with(&peer, peer.side.fd, peer.side.size), 0);
    assert_int_equal(peer_await(&peer, RBI_RECORD_READY, 0, PEER_TIMEOUT_MS), 0);
    const uint64_t size = 8 + rbi_ready_ack_encode(&ack, body + 8);
    peer_put(&peer, rbi_record_meta(RBI_RECORD_READY_ACK, 0, 0, 0), body, size);
    assert_true(stage_changes(&stage.scene->ups, ups, PEER_TIMEOUT_MS));
    return true;
}

static void leave_link(void)
{
    const uint64_t bye[2] = {0, RBI_REASON_LEFT};
    const uint64_t downs = stage.scene->downs;
    peer_put(&peer, rbi_record_meta(RBI_RECORD_DISCONNECT, 0, 0, 0), bye, sizeof(bye));
    assert_true(stage_changes(&stage.scene->downs, downs, PEER_TIMEOUT_MS));
}

static void test_ready_and_gone_again_and_again(void **state)
{
    static const unsigned waits_ms[] = {0, 50, 100, 200, 400, 800};
    (void)state;
    stage.scene->target_hostile = 1;
    uint64_t left_ms = 0;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(waits_ms); i++) {
        assert_true(take_link());
        const uint64_t waited_ms = test_now_ms() - left_ms;
        if (i > 0) {
            print_message("link %u after %u ms\n", i, (unsigned)waited_ms);
            assert_true(waited_ms >= waits_ms[i] * 3 / 4);
        }
        left_ms = test_now_ms();
        leave_link();
    }
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

static void test_steady_link_is_forgiven(void **state)
{
    (void)state;
    stage.scene->target_hostile = 1;
    for (unsigned i = 0; i < 5; i++) { /* the next try would be in 800 ms */
        assert_true(take_link());
        if (i < 4) {
            leave_link();
        }
    }
    /* Only who has opened the link is answered; and what it sends counts as life. */
    const struct rbi_ready ready = peer_ready(&peer);
    peer_put_ready(&peer, &ready);
    assert_int_equal(peer_await(&peer, RBI_RECORD_READY_ACK, 0, PEER_TIMEOUT_MS), 0);
    const uint64_t end_ms = test_now_ms() + 5200;
    while (test_now_ms() < end_ms) {
        assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
        test_sleep_ms(20);
    }
    leave_link();
    const uint64_t left_ms = test_now_ms();
    assert_true(take_link());
    print_message("forgiven after %u ms\n", (unsigned)(test_now_ms() - left_ms));
    assert_true(test_now_ms() - left_ms < 600);
    leave_link();
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ready_and_gone_again_and_again, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_steady_link_is_forgiven, attack_setup,
                                        attack_teardown),
    };
    return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
