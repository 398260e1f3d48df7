/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario 55: messages to oneself and to the own cluster; calls inside callbacks. */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define OWN   "/game/eu/pc/w1/core/own"
#define OWN_1 OWN "/1"
#define OWN_2 OWN "/2"
#define OWN_3 OWN "/3"

static struct cluster cluster;
static struct node one;
static struct node two;
static struct node three;

static struct ringbus_addr self_of(const struct node *node)
{
    struct ringbus_addr addr;
    CHECK(ringbus_self(node->bus, &addr) == 0);
    return addr;
}

/* ---- to oneself ------------------------------------------------------------------------------ */

static uint64_t next;
static struct ringbus_kept *kept;

static void numbered(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number == next);
    next++;
    CHECK(message->from.instance == self_of(node).instance);
    if (message->size > 10000 && !kept) {
        CHECK(ringbus_keep(node->bus, message, &kept) == 0);
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void test_send_to_oneself(void **state)
{
    (void)state;
    static unsigned char payload[12000];
    one.on_message = numbered;
    node_open(&one, &cluster, OWN_1);
    const struct ringbus_addr self = self_of(&one);
    uint64_t sent = 0;
    uint64_t requests = 0;
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0;; i++) {
            memcpy(payload, &sent, sizeof sent);
            const size_t size = i % 4 == 3 ? sizeof payload : 8 + i % 100;
            const int r = i % 5 == 4 ? ringbus_request(one.bus, &self, 0, payload, size, 0, 10000,
                                                       node_on_result, &one)
                                     : ringbus_send(one.bus, &self, 0, payload, size, 0);
            if (r != 1) {
                assert_true(r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK);
                break;
            }
            requests += i % 5 == 4;
            sent++;
            if (i > 20) {
                break;
            }
        }
        assert_int_equal(ringbus_wait(one.bus, 1000), 1);
        while (ringbus_poll(one.bus, 100) > 0) {
        }
    }
    RUN_UNTIL(next == sent && one.replies[RINGBUS_REPLIED] == requests, NODE_MS, &one);
    assert_int_equal(node_pool_used(&one), 1); /* the one that is kept */
    assert_memory_not_equal(kept->data, payload, 8);
    assert_int_equal(ringbus_release(one.bus, kept), 0);
    assert_int_equal(node_pool_used(&one), 0);
    assert_int_equal(one.events[RINGBUS_EVENT_READY], 0);
    node_close(&one);
}

static void test_lane_to_oneself_full(void **state)
{
    (void)state;
    node_open(&one, &cluster, OWN_1);
    const struct ringbus_addr self = self_of(&one);
    static const unsigned char payload[1000];
    uint64_t sent = 0;
    for (unsigned round = 0; round < 10; round++) {
        while (ringbus_send(one.bus, &self, 0, payload, sizeof payload, 0) == 1) {
            sent++;
        }
        assert_int_equal(ringbus_wait(one.bus, 1000), 1);
        RUN_UNTIL(one.messages == sent, NODE_MS, &one);
    }
    node_close(&one);
}

/* ---- the own cluster ------------------------------------------------------------------------- */

static void test_own_cluster(void **state)
{
    (void)state;
    struct ringbus_addr all;
    node_open(&one, &cluster, OWN_1);
    node_open(&two, &cluster, OWN_2);
    node_open(&three, &cluster, OWN_3);
    for (unsigned round = 1; round <= 3; round++) {
        assert_int_equal(ringbus_target(one.bus, OWN, NULL, &all), 0);
        RUN_UNTIL(one.events[RINGBUS_EVENT_READY] == 3 * round, NODE_MS, &one, &two, &three);
        one.messages = two.messages = three.messages = 0;
        /* To all: everybody but the sender. */
        struct ringbus_addr to = all;
        to.instance = RINGBUS_ALL;
        assert_int_equal(ringbus_send(one.bus, &to, 0, "x", 1, 0), 2);
        RUN_UNTIL(two.messages == 1 && three.messages == 1, NODE_MS, &one, &two, &three);
        assert_int_equal(one.messages, 0);
        /* To any: the sender is one of them, and has its turn. */
        to.instance = RINGBUS_ANY;
        for (unsigned i = 0; i < 300; i++) {
            assert_int_equal(ringbus_send(one.bus, &to, 0, "x", 1, 0), 1);
        }
        RUN_UNTIL(one.messages + two.messages + three.messages == 302, NODE_MS, &one, &two, &three);
        assert_int_equal(one.messages, 100);
        assert_int_equal(two.messages, 101);
        assert_int_equal(ringbus_untarget(one.bus, OWN), 0);
        RUN_UNTIL(one.events[RINGBUS_EVENT_DOWN] == 3 * round, NODE_MS, &one, &two, &three);
        assert_int_equal(ringbus_send(one.bus, &to, 0, "x", 1, 0), RINGBUS_E_NOT_TARGET);
        RUN_UNTIL(two.events[RINGBUS_EVENT_DOWN] == round, NODE_MS, &one, &two, &three);
        RUN_UNTIL(three.events[RINGBUS_EVENT_DOWN] == round, NODE_MS, &one, &two, &three);
    }
    node_close(&one);
    node_close(&two);
    node_close(&three);
}

/* Both ask for each other at the same moment: one link. */
static void test_both_target_each_other(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        node_open(&one, &cluster, OWN_1);
        node_open(&two, &cluster, OWN_2);
        assert_int_equal(ringbus_target(one.bus, OWN_2, NULL, NULL), 0);
        assert_int_equal(ringbus_target(two.bus, OWN_1, NULL, NULL), 0);
        RUN_UNTIL(one.events[RINGBUS_EVENT_READY] > 0 && two.events[RINGBUS_EVENT_READY] > 0,
                  NODE_MS, &one, &two);
        assert_int_equal(ringbus_send(one.bus, &one.peer, 0, "x", 1, 0), 1);
        assert_int_equal(ringbus_send(two.bus, &two.peer, 0, "x", 1, 0), 1);
        RUN_UNTIL(one.messages == 1 && two.messages == 1, NODE_MS, &one, &two);
        assert_int_equal(node_stats(&one).links, 1);
        assert_int_equal(node_stats(&two).links, 1);
        assert_int_equal(one.events[RINGBUS_EVENT_DOWN] + one.events[RINGBUS_EVENT_LINK_FAILED], 0);
        node_close(&one);
        node_close(&two);
    }
}

/* ---- inside callbacks ------------------------------------------------------------------------ */

static unsigned depth_wrong;

static void refused_inside(struct ringbus *bus)
{
    depth_wrong += ringbus_poll(bus, 1) != RINGBUS_E_BUSY;
    depth_wrong += ringbus_wait(bus, 0) != RINGBUS_E_BUSY;
    depth_wrong += ringbus_close(bus, 10) != RINGBUS_E_BUSY;
}

static void on_inner_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    refused_inside(bus);
    node_on_result(bus, result, context);
}

static void do_everything(struct node *node, const struct ringbus_message *message)
{
    struct ringbus_loan loan;
    struct ringbus_claim claim;
    struct ringbus_kept *copy = NULL;
    struct ringbus *bus = node->bus;
    const struct ringbus_addr self = self_of(node);
    refused_inside(bus);
    if (message->from.instance == self.instance) {
        return;
    }
    CHECK(ringbus_keep(bus, message, &copy) == 0);
    CHECK(copy->size == message->size);
    CHECK(ringbus_release(bus, copy) == 0);
    CHECK(ringbus_send(bus, &message->from, 0, "back", 4, 0) == 1);
    CHECK(ringbus_request(bus, &message->from, 0, "ask", 3, 0, 5000, on_inner_result, node) == 1);
    CHECK(ringbus_loan(bus, 100, &loan) == 0);
    CHECK(ringbus_send_loan(bus, &message->from, 0, &loan, 10, 0) == 1);
    CHECK(ringbus_loan_return(bus, &loan) == 0);
    CHECK(ringbus_claim(bus, &message->from, 0, 10, 0, &claim) == 0);
    CHECK(ringbus_commit(bus, &claim, 10) == 1);
    CHECK(ringbus_target(bus, OWN_3, NULL, NULL) == 0);
    CHECK(ringbus_untarget(bus, OWN_3) == 0);
    CHECK(ringbus_watch(bus, "/game") == 0);
    CHECK(ringbus_unwatch(bus, "/game") == 0);
    CHECK(ringbus_wake(bus) == 0);
    if (node->messages == 1) {
        CHECK(ringbus_send(bus, &self, 0, "self", 4, 0) == 1);
    }
}

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    }
}

static void inside_event(struct node *node, const struct ringbus_event *event)
{
    (void)event;
    refused_inside(node->bus);
}

static void test_everything_inside_a_message(void **state)
{
    (void)state;
    depth_wrong = 0;
    two.on_message = do_everything;
    two.on_event = inside_event;
    one.on_message = answer;
    node_open(&two, &cluster, OWN_2);
    node_open(&one, &cluster, OWN_1);
    node_target(&one, OWN_2, 1, &two);
    for (unsigned i = 1; i <= 50; i++) {
        assert_int_equal(ringbus_send(one.bus, &one.peer, 0, "x", 1, 0), 1);
        RUN_UNTIL(two.replies[RINGBUS_REPLIED] >= i, NODE_MS, &one, &two);
    }
    RUN_UNTIL(node_pool_used(&two) == 0, NODE_MS, &one, &two);
    assert_int_equal(depth_wrong, 0);
    node_close(&one);
    node_close(&two);
}

/* Ends the very link whose message is being handled. */
static void untarget_inside(struct node *node, const struct ringbus_message *message)
{
    (void)message;
    if (node->messages == 1) {
        CHECK(ringbus_untarget(node->bus, OWN_2) == 0);
        CHECK(ringbus_send(node->bus, &node->peer, 0, "x", 1, 0) < 0);
    }
}

static void retarget_on_down(struct node *node, const struct ringbus_event *event)
{
    if (event->type == RINGBUS_EVENT_DOWN) {
        CHECK(ringbus_target(node->bus, OWN_2, NULL, NULL) == 0);
    }
}

static void test_untarget_inside_a_message(void **state)
{
    (void)state;
    one.on_message = untarget_inside;
    one.on_event = retarget_on_down;
    node_open(&two, &cluster, OWN_2);
    node_open(&one, &cluster, OWN_1);
    node_target(&one, OWN_2, 1, &two);
    RUN_UNTIL(two.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &one, &two);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(ringbus_send(two.bus, &two.peer, 0, "x", 1, 0), 1);
    }
    RUN_UNTIL(one.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &one, &two);
    assert_true(one.messages >= 1);
    RUN_UNTIL(two.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &one, &two);
    assert_int_equal(ringbus_send(two.bus, &two.peer, 0, "x", 1, 0), 1);
    const uint64_t before = one.messages;
    RUN_UNTIL(one.messages > before, NODE_MS, &one, &two);
    one.on_event = NULL;
    node_close(&one);
    node_close(&two);
}

/* ---- keeping and releasing ------------------------------------------------------------------- */

static struct ringbus_kept *held[64];
static unsigned held_count;

static void hold(struct node *node, const struct ringbus_message *message)
{
    CHECK(held_count < 64);
    CHECK(ringbus_keep(node->bus, message, &held[held_count]) == 0);
    held_count++;
    struct ringbus_kept *again = NULL;
    CHECK(ringbus_keep(node->bus, message, &again) == 0); /* a copy */
    CHECK(again->data != message->data && again->size == message->size);
    CHECK(memcmp(again->data, message->data, message->size) == 0);
    CHECK(ringbus_release(node->bus, again) == 0);
}

static void test_kept_chunks_count_until_released(void **state)
{
    (void)state;
    static unsigned char payload[12000];
    struct ringbus_options options = node_options(&cluster, OWN_1);
    const struct ringbus_pool_class pool[] = {{16384, 4}};
    memcpy(options.pool, pool, sizeof pool);
    held_count = 0;
    two.on_message = hold;
    node_open(&two, &cluster, OWN_2);
    node_open_with(&one, &options);
    node_target(&one, OWN_2, 1, &two);
    for (unsigned i = 0; i < 4; i++) {
        memset(payload, (int)i + 1, sizeof payload);
        assert_int_equal(ringbus_send(one.bus, &one.peer, 0, payload, sizeof payload, 0), 1);
    }
    RUN_UNTIL(held_count == 4, NODE_MS, &one, &two);
    assert_int_equal(ringbus_send(one.bus, &one.peer, 0, payload, sizeof payload, 0),
                     RINGBUS_E_NO_CHUNK);
    assert_int_equal(ringbus_wait(one.bus, 20), 0);
    assert_int_equal(node_pool_used(&one), 4);
    for (unsigned i = 0; i < 4; i++) {
        const unsigned char *bytes = held[i]->data;
        assert_int_equal(bytes[0], i + 1);
        assert_int_equal(bytes[held[i]->size - 1], i + 1);
    }
    /* In another order than they came. */
    assert_int_equal(ringbus_release(two.bus, held[2]), 0);
    assert_int_equal(ringbus_wait(one.bus, 2000), 1);
    assert_int_equal(node_pool_used(&one), 3);
    memset(payload, 9, sizeof payload);
    assert_int_equal(ringbus_send(one.bus, &one.peer, 0, payload, sizeof payload, 0), 1);
    RUN_UNTIL(held_count == 5, NODE_MS, &one, &two);
    assert_int_equal(((const unsigned char *)held[0]->data)[0], 1);
    assert_int_equal(((const unsigned char *)held[3]->data)[0], 4);
    /* Somebody else's, and nobody's. */
    assert_int_equal(ringbus_release(one.bus, held[0]), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_release(two.bus, NULL), 0);
    /* The sender leaves; what is held stays until released. */
    node_close(&one);
    RUN_UNTIL(two.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &two);
    for (unsigned i = 0; i < 5; i++) {
        if (i != 2) {
            assert_int_equal(((const unsigned char *)held[i]->data)[11999], i == 4 ? 9 : i + 1);
            assert_int_equal(ringbus_release(two.bus, held[i]), 0);
        }
    }
    node_close(&two);
    assert_int_equal(bus_map_count(), 0);
}

static int setup(void **state)
{
    (void)state;
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    memset(&three, 0, sizeof three);
    next = 0;
    kept = NULL;
    return cluster_up(&cluster, "clusters:\n"
                                "  - {match: \"/**\", balance: {keyless: rr}}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_send_to_oneself),
        ON_OWN_DAEMON(test_lane_to_oneself_full),
        ON_OWN_DAEMON(test_own_cluster),
        ON_OWN_DAEMON(test_both_target_each_other),
        ON_OWN_DAEMON(test_everything_inside_a_message),
        ON_OWN_DAEMON(test_untarget_inside_a_message),
        ON_OWN_DAEMON(test_kept_chunks_count_until_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
