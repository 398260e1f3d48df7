/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load words (features 2.3): what a receiver publishes in its page, and what a peer that maps it
 * sees without asking: messages that wait, time that one takes, age.
 */
#include "libclient/internal.h"
#include "shm/load.h"
#include "support/bus.h"
#include "support/test.h"

#include <string.h>

#define SERVICE    "/game/eu/pc/w1/core/service"
#define HANDLER_MS 3U

static struct cluster cluster;
static struct node server;
static struct node client;
static struct ringbus_addr to;
static unsigned handler_ms;

static void handle(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    (void)message;
    if (handler_ms > 0) {
        test_sleep_ms(handler_ms);
    }
}

static struct rbi_load seen(void)
{
    struct rbi_load load;
    const struct rbi_end *end = rbi_end_find(client.bus, to.cluster, to.instance);
    CHECK(end != NULL && end->peer_page.base != NULL);
    rbi_load_read(end->peer_page.base, rbi_now_ns(), &load);
    return load;
}

static void send_some(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(ringbus_send(client.bus, &to, 0, "hi", 2, 0) == 1);
    }
}

/** A poll that is a tick: the first after a while. */
static void poll_server(int max)
{
    test_sleep_ms(20);
    CHECK(ringbus_poll(server.bus, max) >= 0);
    CHECK(ringbus_poll(server.bus, 1) >= 0);
}

static int open_pair(void **state)
{
    (void)state;
    memset(&server, 0, sizeof server);
    memset(&client, 0, sizeof client);
    handler_ms = 0;
    server.on_message = handle;
    node_open(&server, &cluster, SERVICE "/1");
    node_open(&client, &cluster, NULL);
    to = node_target(&client, SERVICE "/1", 1, &server);
    send_some(1);
    RUN_UNTIL(server.messages == 1, NODE_MS, &server, &client);
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    node_close(&client);
    node_close(&server);
    return 0;
}

static void test_depth_is_what_waits(void **state)
{
    (void)state;
    server.messages = 0;
    send_some(40);
    while (seen().depth == 0) {
        poll_server(1);
        assert_true(server.messages < 30);
    }
    const uint64_t depth = seen().depth;
    print_message("%llu wait, as it said; %llu were handled\n", (unsigned long long)depth,
                  (unsigned long long)server.messages);
    assert_true(depth <= 40 && depth + server.messages >= 40);
    RUN_UNTIL(server.messages == 40 && seen().depth == 0, NODE_MS, &server);
}

/* More than is counted in one lane: at least so many. */
static void test_depth_of_a_full_lane_is_bounded(void **state)
{
    (void)state;
    send_some(500);
    while (seen().depth == 0) {
        poll_server(1);
        assert_true(server.messages < 200);
    }
    assert_true(seen().depth >= 32 && seen().depth <= 500);
    RUN_UNTIL(server.messages == 501 && seen().depth == 0, NODE_MS, &server);
}

static void test_time_of_a_message_is_smoothed(void **state)
{
    (void)state;
    handler_ms = HANDLER_MS;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (seen().ewma_ns < HANDLER_MS * RBI_NS_PER_MS * 8 / 10) {
        assert_true(test_now_ms() < deadline_ms);
        send_some(1);
        poll_server(16);
    }
    handler_ms = 0;
    while (seen().ewma_ns > HANDLER_MS * RBI_NS_PER_MS / 4) {
        assert_true(test_now_ms() < deadline_ms);
        send_some(1);
        poll_server(16);
    }
    assert_true(seen().ewma_ns > 0);
}

static void test_age_tells_of_one_that_does_not_poll(void **state)
{
    (void)state;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    poll_server(1);
    assert_int_equal(seen().state, RBI_ENDPOINT_READY);
    test_sleep_ms(60);
    assert_true(seen().age_ns >= 60 * RBI_NS_PER_MS);
    while (seen().age_ns >= 50 * RBI_NS_PER_MS) {
        assert_true(test_now_ms() < deadline_ms);
        (void)ringbus_poll(server.bus, 1);
    }
}

static void test_reader_bounds_what_a_liar_writes(void **state)
{
    (void)state;
    static struct rbi_page page;
    struct rbi_load load;
    rbi_load_read(&page, 1000, &load);
    assert_int_equal(load.age_ns, UINT64_MAX);
    assert_int_equal(load.depth, 0);
    rbi_load_write(&page, UINT64_MAX, UINT64_MAX, 5000);
    rbi_load_read(&page, 1000, &load);
    assert_int_equal(load.depth, RBI_LOAD_DEPTH_MAX);
    assert_int_equal(load.ewma_ns, RBI_LOAD_EWMA_MAX);
    assert_int_equal(load.age_ns, 0);
    rbi_load_read(&page, 9000, &load);
    assert_int_equal(load.age_ns, 4000);
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}");
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_depth_is_what_waits, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_depth_of_a_full_lane_is_bounded, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(test_time_of_a_message_is_smoothed, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_age_tells_of_one_that_does_not_poll, open_pair,
                                        close_pair),
        cmocka_unit_test(test_reader_bounds_what_a_liar_writes),
    };
    return cmocka_run_group_tests(tests, up, down);
}
