/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways over other hosts: a host in between that dies and comes back, a diamond whose shorter arm
 * breaks under load, broadcast over both arms, a host that forwards for nobody. Scenario 113, and
 * features 2.12: the order of a pair survives another way, each receiver gets one copy, nobody is
 * picked anew on the way.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_MS  4U
#define CLUSTER "/Game/eu/pc/w1/core/Battle"

static struct hosts hosts;
static struct node near;
static struct node far;
static struct ringbus_addr addr;
static uint64_t sent;
static uint64_t expected;
static uint64_t wrong;
static uint64_t start_ms;

static void on_numbered(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    (void)node;
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
        return;
    }
    memcpy(&number, message->data, sizeof number);
    wrong += number != expected || message->size != 8 + number % 300 ? 1U : 0U;
    expected = number + 1;
}

static void step(void)
{
    struct node *const nodes[] = {&near, &far};
    unsigned char bytes[320] = {0};
    const uint64_t due = (test_now_ms() - start_ms) * PER_MS;
    for (unsigned burst = 0; sent < due && burst < 200; burst++) {
        memcpy(bytes, &sent, sizeof sent);
        const int result = ringbus_send(near.bus, &addr, 0, bytes, 8 + sent % 300, 0);
        if (result != 1) {
            CHECK(result == RINGBUS_E_FULL);
            break;
        }
        sent++;
    }
    nodes_step(nodes, 2);
}

static void run_for(unsigned ms)
{
    const uint64_t until_ms = test_now_ms() + ms;
    while (test_now_ms() < until_ms) {
        step();
    }
}

/* An endpoint on host 0 that sends to one on the last host. */
static void up(const struct hosts_options *options)
{
    hosts_up(&hosts, options);
    sent = expected = wrong = 0;
    near = (struct node){.on_message = NULL};
    far = (struct node){.on_message = on_numbered};
    node_open(&far, &hosts.host[options->count - 1].cluster, CLUSTER "/1");
    node_open(&near, &hosts.host[0].cluster, NULL);
    CHECK(ringbus_target(near.bus, CLUSTER "/1", NULL, &addr) == 0);
    RUN_UNTIL(near.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &near, &far);
    start_ms = test_now_ms();
}

/* Everything that was sent has come, once and in order, over one and the same link. */
static void check_all(void)
{
    RUN_UNTIL(expected == sent, 30000, &near, &far);
    assert_int_equal(wrong, 0);
    assert_int_equal(near.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(near.events[RINGBUS_EVENT_UNDELIVERED], 0);
    assert_int_equal(far.events[RINGBUS_EVENT_GAP], 0);
    assert_int_equal(far.events[RINGBUS_EVENT_DOWN], 0);
}

static void close_both(void)
{
    node_close(&near);
    node_close(&far);
    hosts_down(&hosts);
}

static void test_a_host_in_between_dies_and_comes_back(void **state)
{
    const struct hosts_options options = {
        .count = 3, .chain = true, .bridge = "  unreachable_after: 60s"};
    (void)state;
    up(&options);
    run_for(200);
    for (unsigned i = 0; i < 2; i++) {
        hosts_bridge_kill(&hosts, 1);
        run_for(200);
        hosts_bridge_start(&hosts, 1);
        hosts_wait_joined(&hosts, 0, 1);
        hosts_wait_joined(&hosts, 1, 2);
        run_for(300);
    }
    fault_proxy_cut(hosts.proxy[0][1], true);
    run_for(100);
    fault_proxy_cut(hosts.proxy[1][2], false);
    run_for(300);
    check_all();
    assert_int_equal(ringbus_request(near.bus, &addr, 0, "x", 1, 0, 5000, node_on_result, &near),
                     1);
    RUN_UNTIL(near.replies[RINGBUS_REPLIED] == 1, NODE_MS, &near, &far);
    close_both();
}

/* Bytes that have gone to the last host of a diamond over host 1, and over host 2. */
static void passed(uint64_t bytes[2])
{
    bytes[0] = fault_proxy_passed(hosts.proxy[1][3], FAULT_TO);
    bytes[1] = fault_proxy_passed(hosts.proxy[2][3], FAULT_TO);
}

/* Over which of the two the messages go now. */
static unsigned arm_in_use(void)
{
    uint64_t before[2];
    uint64_t after[2];
    passed(before);
    const uint64_t from = expected;
    while (expected < from + 500) {
        step();
    }
    passed(after);
    return after[0] - before[0] > after[1] - before[1] ? 0 : 1;
}

static void test_the_order_of_a_pair_survives_another_way(void **state)
{
    const struct hosts_options options = {
        .count = 4, .diamond = true, .bridge = "  unreachable_after: 60s"};
    (void)state;
    up(&options);
    for (unsigned i = 0; i < 3; i++) {
        const unsigned arm = arm_in_use();
        struct fault_proxy *broken = hosts.proxy[i == 1 ? 1 + arm : 0][i == 1 ? 3 : 1 + arm];
        fault_proxy_door(broken, FAULT_CLOSED);
        fault_proxy_cut(broken, i != 2);
        assert_int_equal(arm_in_use(), 1 - arm);
        fault_proxy_door(broken, FAULT_OPEN);
        hosts_wait_joined(&hosts, i == 1 ? 1 + arm : 0, i == 1 ? 3 : 1 + arm);
        run_for(100);
    }
    check_all();
    close_both();
}

static uint64_t copies[4];

static void on_copy(struct node *node, const struct ringbus_message *message)
{
    (void)message;
    copies[(uintptr_t)node->context]++;
}

static void test_each_receiver_gets_one_copy_of_a_broadcast(void **state)
{
    const struct hosts_options options = {.count = 4, .diamond = true};
    struct node nodes[4];
    struct ringbus_addr all;
    (void)state;
    memset(copies, 0, sizeof copies);
    hosts_up(&hosts, &options);
    for (unsigned i = 0; i < 4; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, CLUSTER "/%u", i + 1);
        nodes[i] = (struct node){.on_message = on_copy, .context = (void *)(uintptr_t)i};
        node_open(&nodes[i], &hosts.host[i].cluster, path);
    }
    CHECK(ringbus_target(nodes[0].bus, CLUSTER, NULL, &all) == 0);
    RUN_UNTIL(nodes[0].events[RINGBUS_EVENT_READY] >= 4, NODE_MS, &nodes[0], &nodes[1], &nodes[2],
              &nodes[3]);
    all.instance = RINGBUS_ALL;
    for (unsigned i = 0; i < 100; i++) {
        if (i == 50) {
            fault_proxy_cut(hosts.proxy[1][3], true); /* on the way to the last, perhaps */
        }
        assert_int_equal(ringbus_send(nodes[0].bus, &all, 0, &i, sizeof i, 0), 3);
        nodes_step((struct node *const[]){&nodes[0], &nodes[1], &nodes[2], &nodes[3]}, 4);
    }
    RUN_UNTIL(copies[1] >= 100 && copies[2] >= 100 && copies[3] >= 100, NODE_MS, &nodes[0],
              &nodes[1], &nodes[2], &nodes[3]);
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(copies[i], 100);
    }
    for (unsigned i = 0; i < 4; i++) {
        node_close(&nodes[i]);
    }
    hosts_down(&hosts);
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
        cmocka_unit_test_teardown(test_a_host_in_between_dies_and_comes_back, tear_down),
        cmocka_unit_test_teardown(test_the_order_of_a_pair_survives_another_way, tear_down),
        cmocka_unit_test_teardown(test_each_receiver_gets_one_copy_of_a_broadcast, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
