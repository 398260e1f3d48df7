/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines (features 2.9): what is late when its handler would begin is dropped and counted, and
 * its sender is told that nobody has handled it; refusals of a receiver say the same.
 */
#include "support/bus.h"
#include "support/test.h"

#include <string.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define BACK     "/game/eu/pc/w1/core/back"
#define BACK_1   BACK "/1"

static struct cluster cluster;
static struct node server;
static struct node client;
static struct ringbus_addr to;
static const struct ringbus_part part = {"abc", 3};

static void open_pair(void)
{
    node_open(&server, &cluster, SERVER_1);
    node_open(&client, &cluster, NULL);
    (void)node_target(&client, SERVER, 1, &server);
    to = client.peer;
}

static void close_pair(void)
{
    node_close(&client);
    node_close(&server);
    server.on_message = NULL;
}

static struct ringbus_message_options within(uint32_t timeout_ms)
{
    return (struct ringbus_message_options){.struct_size = sizeof(struct ringbus_message_options),
                                            .timeout_ms = timeout_ms};
}

/* Nobody looks at the lane before their time is over. */
static void test_late_ones_are_dropped(void **state)
{
    (void)state;
    const struct ringbus_message_options soon = within(20);
    const struct ringbus_message_options never = within(0);
    open_pair();
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &soon), 1);
        assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &never), 1);
    }
    test_sleep_ms(25);
    RUN_UNTIL(node_stats(&server).received == 10, NODE_MS, &server, &client);
    assert_int_equal(node_stats(&server).expired, 10);
    assert_int_equal(server.messages, 10);
    /* In time, they count as any other. */
    const struct ringbus_message_options later = within(60000);
    assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &later), 1);
    RUN_UNTIL(node_stats(&server).received == 11, NODE_MS, &server, &client);
    assert_int_equal(node_stats(&server).expired, 10);
    close_pair();
}

/* ---- requests ------------------------------------------------------------------------------- */

static struct ringbus_result last;
static unsigned ended;

static void note(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last = *result;
    ended++;
}

/* Only the server knows that it was not handled: the client has its answer before it looks at its
 * own clock. */
static void test_late_request_was_not_handled(void **state)
{
    (void)state;
    struct node *const only_server[] = {&server};
    const struct ringbus_message_options soon = within(20);
    open_pair();
    ended = 0;
    assert_int_equal(ringbus_request_with(client.bus, &to, &part, 1, &soon, note, NULL), 1);
    test_sleep_ms(25);
    while (node_stats(&server).expired == 0) {
        nodes_step(only_server, 1);
    }
    RUN_UNTIL(ended == 1, NODE_MS, &client);
    assert_int_equal(last.error, RINGBUS_E_TIMEOUT);
    assert_true(last.outcome == RINGBUS_NOT_SENT || last.outcome == RINGBUS_UNKNOWN);
    assert_int_equal(server.messages, 0);
    assert_true(last.elapsed_ns >= 20000000);
    close_pair();
}

static int refusal;
static uint32_t refusal_ms;

static void refuse(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply_refused(node->bus, &message->reply_to, refusal, refusal_ms) == 1);
}

static void test_refusals(void **state)
{
    (void)state;
    static const int refusals[] = {RINGBUS_E_SHED,       RINGBUS_E_NOT_OWNER, RINGBUS_E_LIMITED,
                                   RINGBUS_E_NOT_READY,  RINGBUS_E_DRAINING,  RINGBUS_E_DENIED,
                                   RINGBUS_E_RESTARTING, RINGBUS_E_TIMEOUT};
    const struct ringbus_message_options later = within(60000);
    server.on_message = refuse;
    open_pair();
    ended = 0;
    for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        refusal = refusals[i];
        refusal_ms = 250 + i;
        assert_int_equal(ringbus_request_with(client.bus, &to, &part, 1, &later, note, NULL), 1);
        RUN_UNTIL(ended == 2 * i + 1, NODE_MS, &server, &client);
        assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
        assert_int_equal(last.error, refusals[i]);
        assert_int_equal(last.retry_after_ms, 250 + i);
        assert_int_equal(last.tries, 1);
        /* To a plain request it says the same. */
        assert_int_equal(ringbus_request(client.bus, &to, 0, "", 0, 0, 60000, note, NULL), 1);
        RUN_UNTIL(ended == 2 * i + 2, NODE_MS, &server, &client);
        assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
        assert_int_equal(last.error, refusals[i]);
    }
    const struct ringbus_reply_to none = {.peer = to};
    assert_int_equal(ringbus_reply_refused(server.bus, &none, RINGBUS_E_SHED, 0),
                     RINGBUS_E_NOT_REQUEST);
    assert_int_equal(ringbus_reply_refused(server.bus, &none, RINGBUS_E_FULL, 0),
                     RINGBUS_E_ARGUMENT);
    close_pair();
}

/* ---- a handler whose own time is over -------------------------------------------------------- */

static int nested;
static int nested_plain;

static void ask_too_late(struct node *node, const struct ringbus_message *message)
{
    const struct ringbus_message_options hour = within(3600000);
    struct ringbus_addr whom;
    (void)message;
    CHECK(ringbus_resolve(BACK, &whom) == 0);
    test_sleep_ms(1 + (unsigned)((message->attributes->deadline_ns - message->attributes->sent_ns) /
                                 1000000U));
    nested = ringbus_request_with(node->bus, &whom, &part, 1, &hour, note, NULL);
    nested_plain = ringbus_request(node->bus, &whom, 0, "", 0, 0, 3600000, note, NULL);
}

static void test_nothing_is_asked_past_the_deadline(void **state)
{
    (void)state;
    static struct node back;
    struct ringbus_message_options soon = within(200);
    server.on_message = ask_too_late;
    node_open(&back, &cluster, BACK_1);
    node_open(&server, &cluster, SERVER_1);
    node_open(&client, &cluster, NULL);
    (void)node_target(&server, BACK, 1, &back);
    (void)node_target(&client, SERVER, 1, &server);
    to = client.peer;
    nested = nested_plain = 1;
    do {
        assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &soon), 1);
        RUN_UNTIL(server.messages + node_stats(&server).expired > 0, NODE_MS, &server, &client);
        soon.timeout_ms *= 2; /* a machine that had no time for us */
    } while (server.messages == 0 && soon.timeout_ms < 2000);
    assert_int_equal(nested, RINGBUS_E_TIMEOUT);
    assert_int_equal(nested_plain, RINGBUS_E_TIMEOUT);
    assert_int_equal(back.messages, 0);
    node_close(&client);
    node_close(&server);
    node_close(&back);
    server.on_message = NULL;
}

/* ---------------------------------------------------------------------------------------------- */

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
        cmocka_unit_test(test_late_ones_are_dropped),
        cmocka_unit_test(test_late_request_was_not_handled),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nothing_is_asked_past_the_deadline),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
