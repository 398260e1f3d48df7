/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features 2.11, scenario 120: one-way messages that come without the right to them are dropped,
 * and not in silence: their sender is told how many, once a second at most, and before the link
 * ends. A request is answered, and not counted there.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define SENDER   "/game/eu/pc/w1/core/gate/1"
#define RECEIVER "/game/eu/pc/w1/core/battle/1"

static const char config[] = "rights:\n"
                             "  otherwise: realm\n"
                             "  rules:\n"
                             "    - {id: some, verbs: [send], from: /game/**/gate/*, to: "
                             "/game/**/battle/*, methods: 1..99}\n"
                             "    - {id: rest, action: deny, verbs: [send], from: "
                             "/game/**/gate/*, to: /game/**/battle/*}\n";

static struct cluster cluster;
static struct node sender;
static struct node receiver;
static struct ringbus_addr to;
static uint64_t refused;
static uint32_t last_method;
static unsigned refused_before_down;

static void on_event(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_REFUSED) {
        CHECK(event->error == RINGBUS_E_DENIED && event->reason == RINGBUS_REASON_NONE);
        CHECK(event->addr.instance == to.instance && strcmp(event->path, RECEIVER) == 0);
        refused += event->count;
        last_method = event->method;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        refused_before_down = (unsigned)refused;
    }
}

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "y", 1, 0) == 1);
    }
}

static struct rbi_end *link_of_sender(void)
{
    return rbi_end_find(sender.bus, to.cluster, to.instance);
}

/* The sender's library does not know yet that a right is gone, as when a rule changes. */
static void forget_rights(void)
{
    struct rbi_end *end = link_of_sender();
    CHECK(end != NULL && end->may_send != NULL);
    free(end->may_send);
    end->may_send = NULL;
    end->hindered = 0;
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(cluster_up(&cluster, config), 0);
    sender = (struct node){.on_event = on_event};
    receiver = (struct node){.on_message = answer};
    refused = last_method = refused_before_down = 0;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    to = node_target(&sender, RECEIVER, 1, &receiver);
    forget_rights();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&sender);
    if (receiver.bus != NULL) {
        node_close(&receiver);
    }
    cluster_down(&cluster);
    return 0;
}

static int send_method(uint32_t method)
{
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .method = method};
    return ringbus_send_with(sender.bus, &to, &part, 1, &options);
}

static void test_sender_is_told_how_many(void **state)
{
    (void)state;
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options asks = {
        .struct_size = sizeof asks, .method = 300, .timeout_ms = 60000};
    /* The first at once. */
    assert_int_equal(send_method(200), 1);
    RUN_UNTIL(refused == 1, NODE_MS, &sender, &receiver);
    const uint64_t first_ms = test_now_ms();
    assert_int_equal(last_method, 200);
    /* Others among those that may come, with the next word. */
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(send_method(201 + i), 1);
        assert_int_equal(send_method(1 + i), 1);
        assert_int_equal(ringbus_send(sender.bus, &to, 0, "x", 1, 0), 1); /* method 0 */
    }
    CHECK(ringbus_request_with(sender.bus, &to, &part, 1, &asks, node_on_result, &sender) == 1);
    RUN_UNTIL(refused == 21, NODE_MS, &sender, &receiver);
    assert_true(test_now_ms() - first_ms >= 900);
    assert_int_equal(sender.events[RINGBUS_EVENT_REFUSED], 2);
    assert_int_equal(last_method, 0);
    assert_int_equal(receiver.messages, 10);
    RUN_UNTIL(sender.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &sender, &receiver);
    assert_int_equal(sender.reply_error, RINGBUS_E_DENIED);
    assert_int_equal(node_stats(&receiver).denied, 22);
    assert_int_equal(refused, 21);
    assert_int_equal(sender.events[RINGBUS_EVENT_DOWN], 0);
}

/* What it has not said yet when the link ends it says before that. */
static void test_told_before_the_end(void **state)
{
    (void)state;
    assert_int_equal(send_method(200), 1);
    RUN_UNTIL(refused == 1, NODE_MS, &sender, &receiver);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(send_method(200), 1);
    }
    RUN_UNTIL(node_stats(&receiver).denied == 6, NODE_MS, &receiver);
    node_close(&receiver);
    receiver.bus = NULL;
    RUN_UNTIL(sender.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &sender);
    assert_int_equal(refused_before_down, 6);
    assert_int_equal(sender.events[RINGBUS_EVENT_UNDELIVERED], 0);
}

static void put_record(uint64_t count, int32_t error)
{
    unsigned char body[RBI_CONTROL_BODY_MAX];
    const struct rbi_refused_body refusal = {.error = error, .method = 9, .count = count};
    const struct rbi_record record = {.kind = RBI_RECORD_REFUSED,
                                      .payload = body,
                                      .payload_size = rbi_refused_encode(&refusal, body)};
    rbi_end_control_record(sender.bus, link_of_sender(), &record);
}

/* A peer that says so without end is one event, and no more messages than there were. */
static void test_a_peer_that_does_not_stop(void **state)
{
    (void)state;
    put_record(5, -1234); /* a reason that is not known here */
    put_record(0, RINGBUS_E_DENIED);
    RUN_UNTIL(ringbus_poll(sender.bus, 1) == 0, NODE_MS, &receiver);
    assert_int_equal(sender.events[RINGBUS_EVENT_REFUSED], 0);
    assert_int_equal(send_method(1), 1);
    for (unsigned i = 0; i < 10000; i++) {
        put_record(UINT64_MAX, RINGBUS_E_DENIED);
    }
    RUN_UNTIL(sender.events[RINGBUS_EVENT_REFUSED] == 1, NODE_MS, &sender, &receiver);
    assert_int_equal(refused, 1);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_REFUSED] == 2, NODE_MS, &sender, &receiver);
    assert_int_equal(refused, 2);
    assert_int_equal(link_of_sender()->phase, RBI_END_LINKED);
    assert_int_equal(rbi_refused_due_ns(link_of_sender()), RBI_NEVER);
}

#define REFUSED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFUSED_TEST(test_sender_is_told_how_many),
        REFUSED_TEST(test_told_before_the_end),
        REFUSED_TEST(test_a_peer_that_does_not_stop),
    };
    return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
