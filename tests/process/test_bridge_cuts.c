/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between hosts through a network that fails: cut at any byte, the handshake's among
 * them, stalled, slow, in small pieces, doubled; peers that are dead behind one who answers for
 * them. Scenario 111 as far as connections go: who replaces one keeps no old one. And that the
 * proxy which the other tests rely on does what it says.
 */
#include "support/fault_proxy.h"
#include "support/machine.h"
#include "support/net.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static struct net net;
static struct fault_proxy *proxy;

static int setup(void **state)
{
    net_up(&net, *state);
    net_open(&net.b);
    proxy = fault_proxy_start(rbi_door_address(net.b.door));
    net_dial(&net.a, &net.b, fault_proxy_address(proxy));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net.a.dial = rbi_dial_free(net.a.dial);
    fault_proxy_stop(proxy);
    net_down(&net);
    return 0;
}

static uint32_t random_below(uint32_t n)
{
    static uint64_t seed = 9;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

static bool all_came(struct net *at)
{
    return at->b.received == at->a.sent && at->a.received == at->b.sent;
}

static void exchange(uint64_t bytes)
{
    const uint64_t to = net.a.sent + bytes;
    const uint64_t back = net.b.sent + bytes;
    while (net.a.sent < to || net.b.sent < back) {
        net_send(&net.a, net.a.sent < to ? 1 + random_below(9000) : 0);
        net_send(&net.b, net.b.sent < back ? 1 + random_below(9000) : 0);
        assert_int_equal(rbi_loop_turn(net.loop, 100000), 0);
    }
    assert_true(net_until(&net, all_came));
    assert_false(net.a.wrong || net.b.wrong);
}

static void test_small_pieces_and_delays_change_nothing(void **state)
{
    (void)state;
    assert_true(net_until(&net, net_connected));
    fault_proxy_pieces(proxy, 7);
    exchange(20000);
    fault_proxy_pieces(proxy, 1000);
    fault_proxy_delay(proxy, FAULT_BOTH, 20);
    const uint64_t from = machine_now_ns();
    exchange(100000);
    assert_true(machine_now_ns() - from >= 20000000);
    fault_proxy_delay(proxy, FAULT_NONE, 0);
    exchange(1000000);
    assert_int_equal(net.b.ups, 1);
}

/** Sends both ways until the connection is over. What has come is what was sent until then. */
static void run_into_cut(void)
{
    const unsigned downs = net.a.downs + net.b.downs;
    while (net.a.downs + net.b.downs == downs) {
        net_send(&net.a, 1 + random_below(5000));
        net_send(&net.b, 1 + random_below(5000));
        assert_int_equal(rbi_loop_turn(net.loop, 1000000), 0);
    }
    assert_false(net.a.wrong || net.b.wrong);
}

static bool both_are_down(struct net *at)
{
    return !at->a.conn && !at->b.conn;
}

/** Connected anew, both by the same connection; its stream begins at its beginning. */
static void begin_anew(void)
{
    assert_true(net_until(&net, net_connected));
    net.a.sent = net.b.received = net.b.sent = net.a.received = 0;
}

static void test_cuts_at_any_byte_end_both_sides(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FULL_OR(200U, 8U); i++) {
        begin_anew();
        fault_proxy_cut_after(proxy, i % 2 ? FAULT_TO : FAULT_BACK, 1 + random_below(200000),
                              i % 4 < 2);
        run_into_cut();
        assert_true(net_until(&net, both_are_down));
        assert_true(net.a.why[0] && net.b.why[0]);
    }
    begin_anew();
    exchange(100000);
    assert_int_equal(fault_proxy_there(proxy), 1);
}

/** Inside the handshake, which with TLS is a few kilobytes each way. */
static void test_cuts_in_the_handshake_are_tried_again(void **state)
{
    (void)state;
    const unsigned cuts = FULL_OR(100U, 4U);
    assert_true(net_until(&net, net_connected));
    for (unsigned i = 0; i < cuts; i++) {
        fault_proxy_cut(proxy, true);
        assert_true(net_until(&net, both_are_down));
        const uint64_t came = fault_proxy_came(proxy);
        fault_proxy_cut_after(proxy, i % 2 ? FAULT_BACK : FAULT_TO, random_below(1200), i % 4 < 2);
        while (fault_proxy_came(proxy) < came + 2) {
            assert_int_equal(rbi_loop_turn(net.loop, 1000000), 0);
            if (net.a.conn && net.b.conn) {
                net_send(&net.a, 1000);
                net_send(&net.b, 1000);
            }
        }
    }
    fault_proxy_cut(proxy, true);
    assert_true(net_until(&net, both_are_down));
    begin_anew();
    exchange(1000);
}

static void test_a_stalled_connection_fills_its_queue_and_goes_on(void **state)
{
    (void)state;
    struct rbi_conn_figures figures;
    assert_true(net_until(&net, net_connected));
    exchange(1000);
    fault_proxy_stall(proxy, FAULT_TO);
    uint64_t sent = 0;
    do { /* until the kernel's buffers and the queue are full */
        sent = net.a.sent;
        while (net_send(&net.a, 65536)) {
        }
        net_turn_ms(&net, 50);
    } while (net.a.sent != sent);
    rbi_conn_figures(net.a.conn, &figures);
    assert_in_range(figures.queued_max, net.a.terms.queue_bytes / 2,
                    net.a.terms.queue_bytes + 65536);
    fault_proxy_stall(proxy, FAULT_NONE);
    assert_true(net_until(&net, all_came));
    assert_int_equal(net.a.ups, 1);
    exchange(100000);
}

static bool dial_has_given_up_once(struct net *at)
{
    struct rbi_dial_report report;
    rbi_dial_report(at->a.dial, &report);
    return strstr(report.why, "no answer in the TLS handshake") != NULL;
}

/** Scenario 111: a proxy answers for the dead. */
static void test_who_answers_for_the_dead_is_found_by_the_handshake(void **state)
{
    (void)state;
    net.a.terms.handshake_ns = 200000000;
    assert_true(net_until(&net, net_connected));
    fault_proxy_door(proxy, FAULT_DEAF);
    fault_proxy_cut(proxy, true);
    assert_true(net_until(&net, dial_has_given_up_once));
    assert_int_equal(net.a.ups, 1);
    fault_proxy_door(proxy, FAULT_OPEN);
    net.a.terms.handshake_ns = 0;
    begin_anew();
    exchange(1000);
}

static bool b_has_another(struct net *at)
{
    return at->b.ups == 2 && at->a.ups == 2;
}

static bool one_each_is_left(struct net *at)
{
    return at->a.terms.alive == 1 && at->b.terms.alive == 1;
}

/** Scenario 111: half-open; whoever dials finds out and comes anew, the old one is not kept. */
static void test_a_new_connection_replaces_a_half_open_one(void **state)
{
    (void)state;
    assert_true(net_until(&net, net_connected));
    exchange(1000);
    fault_proxy_swallow(proxy, FAULT_BOTH);
    net_send(&net.a, 1000);
    net_turn_ms(&net, 50);
    assert_int_equal(net.b.received, net.a.sent - 1000);
    /* What a PING of the bridges would find out. The far side is not told: FIN is swallowed. */
    net.b.replaces = true;
    fault_proxy_swallow(proxy, FAULT_NONE);
    fault_proxy_stall(proxy, FAULT_BOTH);
    rbi_conn_cut(net.a.conn, "no answer");
    net.a.conn = NULL;
    net_turn_ms(&net, 20);
    assert_non_null(net.b.conn);
    fault_proxy_stall(proxy, FAULT_NONE);
    assert_true(net_until(&net, b_has_another));
    assert_true(net_until(&net, one_each_is_left));
    net.a.sent = net.b.received = net.b.sent = net.a.received = 0;
    exchange(1000);
}

static bool silent_one_is_gone(struct net *at)
{
    return at->b.terms.alive == 1;
}

static void test_a_second_connection_that_says_nothing_is_ended(void **state)
{
    (void)state;
    net.b.terms.handshake_ns = 200000000;
    assert_true(net_until(&net, net_connected));
    fault_proxy_door(proxy, FAULT_TWICE);
    fault_proxy_cut(proxy, true);
    assert_true(net_until(&net, both_are_down));
    begin_anew();
    exchange(1000);
    assert_true(net_until(&net, silent_one_is_gone));
    exchange(1000);
}

#define MODE(test, mode)                                                                           \
    {                                                                                              \
#test " " mode, test, setup, teardown, (void *)(uintptr_t)mode                             \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODE(test_small_pieces_and_delays_change_nothing, "uring tls"),
        MODE(test_small_pieces_and_delays_change_nothing, "epoll tls"),
        MODE(test_small_pieces_and_delays_change_nothing, "uring plain"),
        MODE(test_cuts_at_any_byte_end_both_sides, "uring tls"),
        MODE(test_cuts_at_any_byte_end_both_sides, "epoll tls"),
        MODE(test_cuts_at_any_byte_end_both_sides, "uring plain"),
        MODE(test_cuts_at_any_byte_end_both_sides, "epoll plain"),
        MODE(test_cuts_in_the_handshake_are_tried_again, "uring tls"),
        MODE(test_cuts_in_the_handshake_are_tried_again, "epoll tls"),
        MODE(test_a_stalled_connection_fills_its_queue_and_goes_on, "uring tls"),
        MODE(test_a_stalled_connection_fills_its_queue_and_goes_on, "epoll plain"),
        MODE(test_who_answers_for_the_dead_is_found_by_the_handshake, "uring tls"),
        MODE(test_a_new_connection_replaces_a_half_open_one, "uring tls"),
        MODE(test_a_new_connection_replaces_a_half_open_one, "epoll tls"),
        MODE(test_a_second_connection_that_says_nothing_is_ended, "uring tls"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
