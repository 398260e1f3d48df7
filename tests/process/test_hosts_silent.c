/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that are there and say nothing. Scenario 110: a slow way, and one that stands still, do not
 * make the bridges send more than there is. Scenario 111: a connection whose other end is gone
 * without a word is found within the bound, idle, under load and behind a box that answers for it;
 * senders get UNREACHABLE, and the next connection takes its place. A host that reads nothing, and
 * an instance that reads nothing, hold up only who sends to them.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATTLE "/Game/eu/pc/w1/core/battle"
#define LOBBY  "/Game/eu/pc/w1/core/lobby"
/* PING each 100 ms, 3 misses; then 500 ms until links end. */
#define QUICK                                                                                      \
    "  ping_interval: 100ms\n  ping_misses: 3\n  unreachable_after: 500ms\n  window: 64KiB"
#define SLACK_MS 5000U

static struct hosts hosts;
static struct node a;
static struct node b;
static struct ringbus_addr to_b;
static uint64_t next; /* number that is to come at b */
static uint64_t sent;
static unsigned wrong;

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static void on_numbered(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    (void)node;
    memcpy(&number, message->data, sizeof number);
    wrong += number != next;
    next = number + 1;
}

/* @param ping_ms  how often the endpoints ask each other */
static void up_with(const char *bridge, uint32_t ping_ms)
{
    const struct hosts_options options = {
        .count = 2, .bridge = bridge, .rest = "daemon: {return_time: 10ms}"};
    hosts_up(&hosts, &options);
    next = sent = wrong = 0;
    a = (struct node){.bus = NULL};
    b = (struct node){.on_message = on_numbered};
    struct ringbus_options asks = node_options(&hosts.host[0].cluster, LOBBY "/1");
    asks.ping_interval_ms = ping_ms;
    asks.lane_bytes = 65536;
    node_open_with(&a, &asks);
    node_open(&b, &hosts.host[1].cluster, BATTLE "/1");
    to_b = node_target(&a, BATTLE "/1", 1, &b);
}

static void up(const char *bridge)
{
    up_with(bridge, 0);
}

static int teardown(void **state)
{
    (void)state;
    (void)ringbus_close(a.bus, 0);
    (void)ringbus_close(b.bus, 0);
    hosts_down(&hosts);
    return 0;
}

static int send_one(size_t size)
{
    static unsigned char data[16384];
    memcpy(data, &sent, sizeof sent);
    const int result = ringbus_send(a.bus, &to_b, 0, data, size, 0);
    sent += result == 1 ? 1 : 0;
    return result;
}

static void send_until_full(size_t size)
{
    while (send_one(size) == 1) {
    }
}

/* ---- scenario 110 -------------------------------------------------------------------------- */

static void test_a_slow_way_is_not_filled_with_what_was_sent_before(void **state)
{
    const unsigned delay_ms = is_full() ? 2000 : 200;
    const unsigned stall_ms = is_full() ? 10000 : 1000;
    const unsigned count = is_full() ? 2000 : 200;
    (void)state;
    up_with("  ping_interval: 1s\n  ping_misses: 30\n  unreachable_after: 60s", 60000);
    struct fault_proxy *proxy = hosts.proxy[0][1];
    const uint64_t wire = fault_proxy_passed(proxy, FAULT_TO);
    fault_proxy_delay(proxy, FAULT_BOTH, delay_ms);
    for (unsigned i = 0; i < count; i++) {
        RUN_UNTIL(send_one(1000) == 1, 60000, &a, &b);
        if (i == count / 2) {
            fault_proxy_stall(proxy, FAULT_BOTH);
            const uint64_t until_ms = test_now_ms() + stall_ms;
            RUN_UNTIL((send_until_full(1000), test_now_ms() >= until_ms), stall_ms + SLACK_MS, &a,
                      &b);
            fault_proxy_stall(proxy, FAULT_NONE);
        }
    }
    RUN_UNTIL(next == sent, 60000, &a, &b);
    const uint64_t payload = sent * 1000;
    fault_proxy_delay(proxy, FAULT_NONE, 0);
    const uint64_t more = fault_proxy_passed(proxy, FAULT_TO) - wire;
    print_message("%llu bytes of payload, %llu on the wire\n", (unsigned long long)payload,
                  (unsigned long long)more);
    assert_true(more <= payload + payload / 5);
    assert_int_equal(wrong, 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(hosts_log_count(&hosts, 0, "event=host_cut"), 0);
}

/* Nothing else is sent then, that would bring its acknowledgement with it. */
static void test_what_is_read_only_after_a_cut_is_acknowledged(void **state)
{
    (void)state;
    up("  unreachable_after: 60s");
    struct fault_proxy *proxy = hosts.proxy[0][1];
    const uint64_t passed = fault_proxy_passed(proxy, FAULT_TO);
    CHECK(send_one(12000) == 1); /* by reference: its chunk is out until then */
    RUN_UNTIL(fault_proxy_passed(proxy, FAULT_TO) > passed + 12000, NODE_MS, &a);
    fault_proxy_cut(proxy, true);
    RUN_UNTIL(hosts_log_count(&hosts, 0, "event=host_up") == 2, NODE_MS, &a);
    const uint64_t until_ms = test_now_ms() + 200; /* the link goes on by now */
    RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &a);
    assert_int_equal(node_pool_used(&a), 1);
    RUN_UNTIL(next == sent && node_pool_used(&a) == 0, NODE_MS, &a, &b);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN], 0);
}

/* Endpoints ask each other more often than hosts give up: they wait for the hosts' word. */
static void test_endpoints_do_not_judge_each_other_while_the_way_stands_still(void **state)
{
    struct fault_proxy *proxy = NULL;
    (void)state;
    up_with("  ping_interval: 100ms\n  ping_misses: 60\n  unreachable_after: 60s", 400);
    proxy = hosts.proxy[0][1];
    RUN_UNTIL(send_one(100) == 1, NODE_MS, &a, &b);
    RUN_UNTIL(next == sent, NODE_MS, &a, &b);
    fault_proxy_stall(proxy, FAULT_BOTH);
    const uint64_t until_ms = test_now_ms() + 2400; /* twice as long as three of their PINGs */
    RUN_UNTIL((send_until_full(1000), test_now_ms() >= until_ms), NODE_MS, &a, &b);
    fault_proxy_stall(proxy, FAULT_NONE);
    RUN_UNTIL(next == sent, NODE_MS, &a, &b);
    assert_int_equal(wrong, 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN] + b.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(hosts_log_count(&hosts, 0, "event=host_cut"), 0);
    /* And judge again when it goes on. */
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a, NULL);
    assert_int_equal(a.reason, RINGBUS_REASON_SILENT);
}

/* ---- scenario 111 -------------------------------------------------------------------------- */

/* Both sides find it, links end, and what is there again is joined again. */
static void found_and_joined_again(void (*break_it)(void), void (*mend)(void), bool load)
{
    up(QUICK);
    RUN_UNTIL(send_one(100) == 1, NODE_MS, &a, &b);
    RUN_UNTIL(next == sent, NODE_MS, &a, &b);
    break_it();
    const uint64_t from_ms = test_now_ms();
    if (load) {
        send_until_full(1000);
    }
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, SLACK_MS, &a, &b);
    assert_int_equal(a.reason, RINGBUS_REASON_UNREACHABLE);
    assert_int_equal(a.error, RINGBUS_E_UNREACHABLE);
    assert_true(test_now_ms() - from_ms >= 500);
    mend();
    hosts_wait_joined(&hosts, 0, 1);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] >= 2, 2 * NODE_MS, &a, &b);
    /* The word that the first one was read may have been lost. */
    const unsigned given_back = a.events[RINGBUS_EVENT_UNDELIVERED];
    assert_true(load ? given_back > 1 : given_back <= 1);
    assert_int_equal(b.events[RINGBUS_EVENT_DOWN], 1);
    assert_int_equal(b.reason, RINGBUS_REASON_UNREACHABLE);
    next = sent;
    RUN_UNTIL(send_one(100) == 1, NODE_MS, &a, &b);
    RUN_UNTIL(next == sent, NODE_MS, &a, &b);
}

static void swallow(void)
{
    fault_proxy_swallow(hosts.proxy[0][1], FAULT_BOTH);
}

static void swallow_no_more(void)
{
    fault_proxy_swallow(hosts.proxy[0][1], FAULT_NONE);
}

static void stop_far_bridge(void)
{
    (void)kill(hosts.host[1].bridge, SIGSTOP);
}

static void go_on_far_bridge(void)
{
    (void)kill(hosts.host[1].bridge, SIGCONT);
}

static void test_a_half_open_connection_is_found_when_idle(void **state)
{
    (void)state;
    found_and_joined_again(swallow, swallow_no_more, false);
}

static void test_a_half_open_connection_is_found_under_load(void **state)
{
    (void)state;
    found_and_joined_again(swallow, swallow_no_more, true);
}

static void test_a_bridge_that_stands_still_is_found(void **state)
{
    (void)state;
    found_and_joined_again(stop_far_bridge, go_on_far_bridge, true);
}

/* ---- who reads nothing --------------------------------------------------------------------- */

static void test_an_instance_that_reads_nothing_holds_up_its_own_senders_only(void **state)
{
    const uint64_t count = 3000;
    struct node other = {0};
    struct ringbus_addr to_other;
    (void)state;
    up("  window: 64KiB");
    node_open(&other, &hosts.host[1].cluster, BATTLE "/2");
    to_other = node_target(&a, BATTLE "/2", 1, &other);
    send_until_full(1000);
    for (uint64_t i = 0; i < count; i++) {
        RUN_UNTIL(ringbus_send(a.bus, &to_other, 0, "x", 1, 0) == 1, NODE_MS, &a, &other);
        send_until_full(1000); /* as much more as there is room for on the way */
    }
    RUN_UNTIL(other.messages == count, NODE_MS, &a, &other);
    /* What was not read is kept in the sender's lane, and that is full. */
    assert_int_equal(send_one(1000), RINGBUS_E_FULL);
    assert_true(sent * 1000 < 262144);
    assert_true(hosts_bridge_kib(&hosts, 0) < 16384 * TEST_SCALE);
    assert_true(hosts_bridge_kib(&hosts, 1) < 16384 * TEST_SCALE);
    /* And nobody looks again and again whether it reads at last. */
    const unsigned long sleeps = hosts_bridge_sleeps(&hosts, 1);
    test_sleep_ms(400);
    assert_true(hosts_bridge_sleeps(&hosts, 1) - sleeps < 100);
    RUN_UNTIL(next == sent, NODE_MS, &a, &b);
    assert_int_equal(wrong, 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&other);
}

static void test_a_host_that_reads_nothing_holds_up_its_own_senders_only(void **state)
{
    static const struct hosts_options options = {
        .count = 3, /* none is on the way to another */
        .rest = "daemon: {return_time: 10ms}",
        .bridge = "  ping_interval: 10s\n  unreachable_after: 60s\n  window: 64KiB\n"
                  "  transit: false"};
    const uint64_t count = 3000;
    struct node c = {0};
    struct ringbus_addr to_c;
    (void)state;
    hosts_up(&hosts, &options);
    next = sent = wrong = 0;
    a = (struct node){.bus = NULL};
    b = (struct node){.on_message = on_numbered};
    struct ringbus_options patient = node_options(&hosts.host[0].cluster, LOBBY "/1");
    patient.ping_interval_ms = 60000;
    node_open_with(&a, &patient);
    node_open(&b, &hosts.host[1].cluster, BATTLE "/1");
    node_open(&c, &hosts.host[2].cluster, BATTLE "/2");
    to_b = node_target(&a, BATTLE "/1", 1, &b);
    to_c = node_target(&a, BATTLE "/2", 1, &c);
    stop_far_bridge();
    for (uint64_t i = 0; i < count; i++) {
        RUN_UNTIL(ringbus_send(a.bus, &to_c, 0, "x", 1, 0) == 1, NODE_MS, &a, &c);
        send_until_full(1000);
    }
    RUN_UNTIL(c.messages == count, NODE_MS, &a, &c);
    assert_int_equal(send_one(1000), RINGBUS_E_FULL);
    assert_true(hosts_bridge_kib(&hosts, 0) < 16384 * TEST_SCALE);
    go_on_far_bridge();
    RUN_UNTIL(next == sent, NODE_MS, &a, &b);
    assert_int_equal(wrong, 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&c);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_slow_way_is_not_filled_with_what_was_sent_before),
        CASE(test_what_is_read_only_after_a_cut_is_acknowledged),
        CASE(test_endpoints_do_not_judge_each_other_while_the_way_stands_still),
        CASE(test_a_half_open_connection_is_found_when_idle),
        CASE(test_a_half_open_connection_is_found_under_load),
        CASE(test_a_bridge_that_stands_still_is_found),
        CASE(test_an_instance_that_reads_nothing_holds_up_its_own_senders_only),
        CASE(test_a_host_that_reads_nothing_holds_up_its_own_senders_only),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
