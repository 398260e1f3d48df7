/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 108: two hosts, numbered messages both ways through a network that is cut at any byte,
 * the handshake's and those within frames among them, for up to 3 s each time. Each number comes
 * once and in order, no link ends, and the bridges' memory stays within bounds.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_SECOND 10000U
#define LARGE      20000U /* by reference */
#define LARGEST    300000U
#define KIB_MORE   (8U << 10) /* queues, windows, and what waits for room in a lane */

static struct hosts hosts;
static uint64_t seed = 108;

/** One direction. */
struct flow {
    struct node *from;
    struct node *to;
    struct ringbus_addr addr;
    uint64_t sent;
    uint64_t next; /* number that is to come */
    unsigned wrong;
};

struct side {
    struct node node;
    struct flow *in;
};

static struct side sides[2];
static struct flow flows[2];
static unsigned char bytes[LARGEST];
static uint64_t start_ms;

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(bus_random(&seed) % n);
}

static size_t size_of(uint64_t number)
{
    const uint64_t small = 8 + number % 200;
    return number % 5000 == 4999 ? LARGEST : number % 250 == 249 ? LARGE : small;
}

static void on_numbered(struct node *node, const struct ringbus_message *message)
{
    struct flow *flow = ((struct side *)node->context)->in;
    uint64_t number = 0;
    memcpy(&number, message->data, sizeof number);
    if (number != flow->next || message->size != size_of(number) ||
        ((const unsigned char *)message->data)[message->size - 1] !=
            (message->size > 8 ? (unsigned char)number : (unsigned char)(number >> 56))) {
        flow->wrong++;
    }
    flow->next = number + 1;
}

static void send_due(struct flow *flow)
{
    const uint64_t due = (test_now_ms() - start_ms) * PER_SECOND / 1000;
    for (unsigned burst = 0; flow->sent < due && burst < 500; burst++) {
        const size_t size = size_of(flow->sent);
        bytes[size - 1] = (unsigned char)flow->sent;
        memcpy(bytes, &flow->sent, sizeof flow->sent);
        const int result = ringbus_send(flow->from->bus, &flow->addr, 0, bytes, size, 0);
        if (result != 1) {
            CHECK(result == RINGBUS_E_FULL || result == RINGBUS_E_NO_CHUNK);
            return;
        }
        flow->sent++;
    }
}

static void step(void)
{
    struct node *const nodes[] = {&sides[0].node, &sides[1].node};
    send_due(&flows[0]);
    send_due(&flows[1]);
    nodes_step(nodes, 2);
}

static void run_for(unsigned ms)
{
    const uint64_t until_ms = test_now_ms() + ms;
    while (test_now_ms() < until_ms) {
        step();
    }
}

/* The two sides are on the first host and on the last of @p count. */
static void up(unsigned count)
{
    const struct hosts_options options = {
        .count = count, .chain = true, .bridge = "  unreachable_after: 60s"};
    hosts_up(&hosts, &options);
    memset(flows, 0, sizeof flows);
    for (unsigned i = 0; i < 2; i++) {
        char path[64];
        struct ringbus_options node = node_options(&hosts.host[i * (count - 1)].cluster, path);
        (void)snprintf(path, sizeof path, "/Game/eu/pc/w1/core/side%u/1", i);
        node.pool[0] = (struct ringbus_pool_class){.chunk_bytes = LARGE, .count = 64};
        node.pool[1] = (struct ringbus_pool_class){.chunk_bytes = LARGEST, .count = 4};
        sides[i] = (struct side){.in = &flows[1 - i],
                                 .node = {.on_message = on_numbered, .context = &sides[i]}};
        node_open_with(&sides[i].node, &node);
        flows[i].from = &sides[i].node;
        flows[i].to = &sides[1 - i].node;
    }
    struct node *const a = &sides[0].node;
    struct node *const b = &sides[1].node;
    CHECK(ringbus_target(a->bus, "/Game/eu/pc/w1/core/side1/1", NULL, &flows[0].addr) == 0);
    CHECK(ringbus_target(b->bus, "/Game/eu/pc/w1/core/side0/1", NULL, &flows[1].addr) == 0);
    RUN_UNTIL(a->events[RINGBUS_EVENT_READY] > 0 && b->events[RINGBUS_EVENT_READY] > 0, NODE_MS, a,
              b);
    start_ms = test_now_ms();
}

static bool all_came(void)
{
    return flows[0].next == flows[0].sent && flows[1].next == flows[1].sent;
}

/* What was sent until now comes, and nothing else happened. */
static void check_all(void)
{
    RUN_UNTIL(all_came(), 60000, &sides[0].node, &sides[1].node);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(flows[i].wrong, 0);
        assert_int_equal(sides[i].node.events[RINGBUS_EVENT_DOWN], 0);
        assert_int_equal(sides[i].node.events[RINGBUS_EVENT_UNDELIVERED], 0);
        assert_int_equal(sides[i].node.events[RINGBUS_EVENT_GAP], 0);
        RUN_UNTIL(node_pool_used(&sides[i].node) == 0, NODE_MS, &sides[0].node, &sides[1].node);
    }
}

static void down(void)
{
    node_close(&sides[0].node);
    node_close(&sides[1].node);
    hosts_down(&hosts);
}

static void cut_somewhere(struct fault_proxy *proxy)
{
    /* Now and then so early that HELLO, or what follows it, does not get through. */
    const uint32_t bytes_more = below(3) == 0 ? below(600) : below(is_full() ? 400000 : 100000);
    const uint64_t until_ms = test_now_ms() + 20000;
    const uint64_t came = fault_proxy_came(proxy);
    fault_proxy_cut_after(proxy, 1 + below(2), bytes_more, below(2) == 0);
    while (fault_proxy_there(proxy) > 0 && fault_proxy_came(proxy) == came) {
        step();
        CHECK(test_now_ms() < until_ms);
    }
}

static void test_each_number_comes_once_and_in_order_over_cuts(void **state)
{
    const unsigned cuts = is_full() ? 200 : 6 / TEST_SCALE + 2;
    const unsigned most_ms = is_full() ? 3000 : 300;
    (void)state;
    up(2);
    struct fault_proxy *proxy = hosts.proxy[0][1];
    unsigned long kib[2];
    run_for(500);
    kib[0] = hosts_bridge_kib(&hosts, 0);
    kib[1] = hosts_bridge_kib(&hosts, 1);
    for (unsigned i = 0; i < cuts; i++) {
        cut_somewhere(proxy);
        if (below(2) == 0) {
            fault_proxy_door(proxy, FAULT_CLOSED);
            run_for(below(most_ms));
            fault_proxy_door(proxy, FAULT_OPEN);
        }
        /* One that is cut again and again at once is dialled later and later. */
        run_for(below(3) == 0 ? 1100 : 0);
        for (uint64_t until_ms = test_now_ms() + 20000; fault_proxy_there(proxy) == 0;) {
            step();
            CHECK(test_now_ms() < until_ms);
        }
    }
    check_all();
    assert_true(flows[0].sent > 1000 && flows[1].sent > 1000);
    assert_true(hosts_bridge_kib(&hosts, 0) < kib[0] + KIB_MORE);
    assert_true(hosts_bridge_kib(&hosts, 1) < kib[1] + KIB_MORE);
    print_message("%llu and %llu messages, %u cuts, %llu and %llu KiB more\n",
                  (unsigned long long)flows[0].sent, (unsigned long long)flows[1].sent, cuts,
                  (unsigned long long)(hosts_bridge_kib(&hosts, 0) - kib[0]),
                  (unsigned long long)(hosts_bridge_kib(&hosts, 1) - kib[1]));
    down();
}

/* The host in between holds nothing that could be lost: each connection may be cut. */
static void test_the_same_through_a_host_in_between(void **state)
{
    const unsigned cuts = is_full() ? 100 : 6;
    (void)state;
    up(3);
    run_for(300);
    for (unsigned i = 0; i < cuts; i++) {
        const unsigned which = below(2);
        struct fault_proxy *proxy = hosts.proxy[which][which + 1];
        cut_somewhere(proxy);
        run_for(below(3) == 0 ? 1100 : 0);
        for (uint64_t until_ms = test_now_ms() + 20000; fault_proxy_there(proxy) == 0;) {
            step();
            CHECK(test_now_ms() < until_ms);
        }
    }
    check_all();
    down();
}

static int tear_down(void **state)
{
    (void)state;
    hosts_down(&hosts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_each_number_comes_once_and_in_order_over_cuts, tear_down),
        cmocka_unit_test_teardown(test_the_same_through_a_host_in_between, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
