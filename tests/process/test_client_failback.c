/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RINGBUS_RETRY_FAILBACK (features 2.10): what cannot be sent is kept, in order, bounded, and sent
 * when somebody is there; what never can is given back.
 */
#include "support/bus.h"
#include "support/test.h"

#include <string.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"

static struct cluster cluster;
static struct node server;
static struct node client;
static struct ringbus_addr any;

static unsigned next; /* number that is to come */
static unsigned given_back;
static int given_back_error;
static unsigned wrong;

static void take(struct node *node, const struct ringbus_message *message)
{
    unsigned number = 0;
    (void)node;
    CHECK(message->size == sizeof number && message->part_count == 2);
    CHECK(message->attributes != NULL && message->attributes->method == 3);
    CHECK((message->flags & RINGBUS_MESSAGE_KEY) != 0);
    memcpy(&number, message->data, sizeof number);
    CHECK(message->key == number);
    wrong += number != next;
    next = number + 1;
}

static void take_back(struct node *node, const struct ringbus_event *event)
{
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        CHECK(event->message->size == sizeof(unsigned) && event->maybe_seen == 0);
        CHECK(event->message->attributes->method == 3);
        CHECK(event->to.instance == RINGBUS_ANY && event->to.cluster == any.cluster);
        CHECK(strcmp(event->path, SERVER) == 0);
        struct ringbus_kept *kept = NULL;
        CHECK(ringbus_keep(node->bus, event->message, &kept) == 0);
        CHECK(ringbus_release(node->bus, kept) == 0);
        given_back++;
        given_back_error = event->error;
    }
}

static void open_client(void)
{
    next = given_back = wrong = 0;
    given_back_error = 0;
    client.on_event = take_back;
    node_open(&client, &cluster, NULL);
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .retry = RINGBUS_RETRY_FAILBACK};
    assert_int_equal(ringbus_target(client.bus, SERVER, &options, &any), 0);
}

static void open_server(void)
{
    server.on_message = take;
    node_open(&server, &cluster, SERVER_1);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &client, &server);
}

static int send_number(unsigned number, uint32_t timeout_ms)
{
    const struct ringbus_part parts[] = {{&number, 2}, {(const char *)&number + 2, 2}};
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = RINGBUS_KEY,
                                                    .key = number,
                                                    .method = 3,
                                                    .timeout_ms = timeout_ms};
    return ringbus_send_with(client.bus, &any, parts, 2, &options);
}

/* A hundred are kept while nobody is there, the next is refused; all arrive in order. */
static void test_kept_until_somebody_comes(void **state)
{
    (void)state;
    open_client();
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(send_number(i, 0), 0);
    }
    assert_int_equal(send_number(100, 0), RINGBUS_E_FULL);
    open_server();
    /* Those that come now wait for those that came before. */
    int r;
    while ((r = send_number(100, 0)) == RINGBUS_E_FULL) {
        struct node *const both[] = {&client, &server};
        nodes_step(both, 2);
    }
    assert_true(r == 0 || r == 1);
    RUN_UNTIL(server.messages == 101, NODE_MS, &client, &server);
    assert_int_equal(wrong, 0);
    assert_int_equal(send_number(101, 0), 1); /* at once */
    RUN_UNTIL(server.messages == 102, NODE_MS, &client, &server);
    assert_int_equal(wrong, 0);
    assert_int_equal(node_stats(&client).sent, 102);
    assert_int_equal(given_back, 0);
    node_close(&client);
    node_close(&server);
}

/* A lane that is full is no end either. */
static void test_kept_while_the_lane_is_full(void **state)
{
    (void)state;
    unsigned number = 0;
    open_client();
    open_server();
    while (send_number(number, 0) == 1) {
        number++;
    }
    number++; /* the first that was kept */
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(send_number(number++, 0), 0);
    }
    /* There is room now, and those that are kept come first all the same. */
    while (ringbus_poll(server.bus, 64) > 0) {
    }
    assert_int_equal(send_number(number++, 0), 0);
    RUN_UNTIL(server.messages == number, NODE_MS, &client, &server);
    assert_int_equal(wrong, 0);
    node_close(&client);
    node_close(&server);
}

/* Whose time is over comes back, in its order; the others stay. */
static void test_given_back_when_late(void **state)
{
    (void)state;
    open_client();
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(send_number(i, i % 2 == 0 ? 20 : 60000), 0);
    }
    RUN_UNTIL(given_back == 3, NODE_MS, &client);
    assert_int_equal(given_back_error, RINGBUS_E_TIMEOUT);
    assert_int_equal(node_stats(&client).undelivered, 3);
    open_server();
    RUN_UNTIL(server.messages == 3, NODE_MS, &client, &server);
    assert_int_equal(next, 6);
    node_close(&client);
    node_close(&server);
}

static void test_given_back_at_the_end(void **state)
{
    (void)state;
    open_client();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(send_number(i, 0), 0);
    }
    node_close(&client);
    assert_int_equal(given_back, 3);
    assert_int_equal(given_back_error, RINGBUS_E_CLOSED);
    /* What cannot become right is refused at once. */
    open_client();
    static unsigned char huge[4 << 20];
    const struct ringbus_part part = {huge, sizeof huge};
    assert_int_equal(ringbus_send_with(client.bus, &any, &part, 1, NULL), RINGBUS_E_TOO_BIG);
    node_close(&client);
    assert_int_equal(given_back, 0);
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
        cmocka_unit_test(test_kept_until_somebody_comes),
        cmocka_unit_test(test_kept_while_the_lane_is_full),
        cmocka_unit_test(test_given_back_when_late),
        cmocka_unit_test(test_given_back_at_the_end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
