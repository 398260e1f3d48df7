/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 89: the owner of a key lives, and its link is down. What has that key waits for the
 * link, bounded, or fails; it goes elsewhere only where the target says so, and is marked then.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define WORKERS "/game/eu/pc/w1/core/worker"
#define KEY     5U

static struct cluster cluster;
static struct node client;
static struct node workers[2];
static struct node *owner;
static struct node *other;
static struct ringbus_addr any;
static const struct ringbus_part part = {"abc", 3};
static unsigned marked;      /* messages with RINGBUS_MESSAGE_DIVERTED */
static uint32_t last_method; /* of the owner's messages: they come in the order asked */
static unsigned out_of_order;

static void work(struct node *node, const struct ringbus_message *message)
{
    marked += (message->flags & RINGBUS_MESSAGE_DIVERTED) != 0;
    if (node == owner && message->attributes != NULL && message->attributes->method != 0) {
        out_of_order += message->attributes->method < last_method;
        last_method = message->attributes->method;
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "yes", 3, 0) == 1);
    }
}

static struct ringbus_result last;
static unsigned ended;

static void note(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last = *result;
    ended++;
}

static int ask(uint32_t method)
{
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = RINGBUS_KEY,
                                                    .key = KEY,
                                                    .method = method,
                                                    .timeout_ms = 60000};
    return ringbus_request_with(client.bus, &any, &part, 1, &options, note, NULL);
}

static bool ask_when_ready;

/* A link has come: what waited for it goes before what is asked now. */
static void on_event(struct node *node, const struct ringbus_event *event)
{
    if (ask_when_ready && event->type == RINGBUS_EVENT_READY) {
        ask_when_ready = false;
        CHECK(node == &client && ask(1000) == 1);
    }
}

/* Two workers, one of which owns the key; then it does not run until its link is down. */
static void open_and_lose(uint32_t wait_ms, int divert)
{
    marked = out_of_order = last_method = ended = 0;
    owner = NULL;
    ask_when_ready = false;
    client.on_event = on_event;
    node_open(&client, &cluster, NULL);
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .ping_interval_ms = 20,
                                                   .ping_misses = 2,
                                                   .wait_ms = wait_ms,
                                                   .divert = divert};
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), 0);
    for (unsigned i = 0; i < 2; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, WORKERS "/%u", i + 1);
        workers[i].on_message = work;
        node_open(&workers[i], &cluster, path);
    }
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] >= 2, NODE_MS, &client, &workers[0], &workers[1]);
    assert_int_equal(ask(0), 1);
    RUN_UNTIL(ended == 1, NODE_MS, &client, &workers[0], &workers[1]);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    owner = &workers[last.peer.instance - 1];
    other = owner == &workers[0] ? &workers[1] : &workers[0];
    const unsigned downs = client.events[RINGBUS_EVENT_DOWN];
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] > downs, NODE_MS, &client, other);
    owner->messages = other->messages = 0;
}

static void close_all(void)
{
    node_close(&client);
    node_close(&workers[0]);
    node_close(&workers[1]);
}

static void test_fails_by_default(void **state)
{
    (void)state;
    open_and_lose(0, 0);
    for (unsigned i = 0; i < 20; i++) {
        const struct ringbus_message_options options = {
            .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = KEY};
        assert_int_equal(ask(1), RINGBUS_E_NOT_READY);
        assert_int_equal(ringbus_send_with(client.bus, &any, &part, 1, &options),
                         RINGBUS_E_NOT_READY);
        assert_int_equal(ringbus_send(client.bus, &any, KEY, "x", 1, RINGBUS_KEY),
                         RINGBUS_E_NOT_READY);
        assert_int_equal(
            ringbus_request(client.bus, &any, KEY, "x", 1, RINGBUS_KEY, 60000, note, NULL),
            RINGBUS_E_NOT_READY);
        struct node *const running[] = {&client, other};
        nodes_step(running, 2);
    }
    assert_int_equal(other->messages, 0);
    close_all();
    assert_int_equal(ended, 1);
}

/* They wait for it, in their order, and nobody else gets one. */
static void test_waits_for_the_link(void **state)
{
    (void)state;
    open_and_lose(60000, 0);
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(ask(i), 1);
    }
    assert_int_equal(ringbus_request(client.bus, &any, KEY, "x", 1, RINGBUS_KEY, 60000, note, NULL),
                     1);
    for (unsigned i = 0; i < 20; i++) {
        struct node *const running[] = {&client, other};
        nodes_step(running, 2);
    }
    assert_int_equal(ended, 1);
    ask_when_ready = true;
    RUN_UNTIL(ended == 13, NODE_MS, &client, owner, other);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(owner->messages, 12);
    assert_int_equal(other->messages, 0);
    assert_int_equal(out_of_order, 0);
    assert_int_equal(marked, 0);
    close_all();
}

static void test_waits_no_longer_than_it_was_told(void **state)
{
    (void)state;
    open_and_lose(30, 0);
    const uint64_t begun_ms = test_now_ms();
    assert_int_equal(ask(1), 1);
    RUN_UNTIL(ended == 2, NODE_MS, &client, other);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_NOT_READY);
    assert_int_equal(last.tries, 0);
    assert_true(test_now_ms() - begun_ms >= 29);
    assert_int_equal(other->messages, 0);
    /* One that waits ends with the handle. */
    close_all();
    open_and_lose(60000, 0);
    assert_int_equal(ask(1), 1);
    close_all();
    assert_int_equal(ended, 2);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_CLOSED);
}

/* Where the target says so it goes to another, and that one is told. */
static void test_diverted_is_marked(void **state)
{
    (void)state;
    open_and_lose(30, 1);
    assert_int_equal(ask(1), 1);
    RUN_UNTIL(ended == 2, NODE_MS, &client, other);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(other->messages, 1);
    assert_int_equal(marked, 1);
    assert_int_equal(node_stats(&client).diverted, 1);
    close_all();
    open_and_lose(0, 1);
    assert_int_equal(ask(1), 1);
    RUN_UNTIL(ended == 2, NODE_MS, &client, other);
    assert_int_equal(marked, 1);
    /* The owner is back: its key is its own again. */
    const unsigned readies = client.events[RINGBUS_EVENT_READY];
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] > readies, NODE_MS, &client, owner, other);
    assert_int_equal(ask(2), 1);
    RUN_UNTIL(ended == 3, NODE_MS, &client, owner, other);
    assert_int_equal(owner->messages, 1);
    assert_int_equal(marked, 1);
    close_all();
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fails_by_default),
        cmocka_unit_test(test_waits_for_the_link),
        cmocka_unit_test(test_waits_no_longer_than_it_was_told),
        cmocka_unit_test(test_diverted_is_marked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
