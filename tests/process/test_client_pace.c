/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who polls fast and then seldom, as a loop that waits for its first link and then draws sixty
 * pictures a second: polls are counted instead of reading the clock, and the count that was
 * right a moment ago would be minutes now.
 */
#include "support/bus.h"
#include "support/test.h"

#include <string.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define FAST_MS  300U /* long enough for the count to grow to its most */
#define SLOW_MS  5U
#define SLOW     200U /* polls */
#define PING_MS  50U
#define MISSES   4U

static struct cluster cluster;

enum { WORD_READY, WORD_STOP, WORD_DOWN };

static void serve(const struct cluster *at, void *context)
{
    static struct node server;
    (void)context;
    node_open(&server, at, SERVER_1);
    atomic_store(&bus_shared[WORD_READY], 1);
    while (atomic_load(&bus_shared[WORD_STOP]) == 0) {
        CHECK(ringbus_wait(server.bus, 10) >= 0);
        CHECK(ringbus_poll(server.bus, 100) >= 0);
        atomic_store(&bus_shared[WORD_DOWN], server.events[RINGBUS_EVENT_DOWN]);
    }
    node_close(&server);
}

static void test_pace_may_change(void **state)
{
    (void)state;
    static struct node client;
    bus_shared_reset();
    const pid_t pid = child_start(serve, &cluster, NULL);
    struct ringbus_options options = node_options(&cluster, NULL);
    options.ping_interval_ms = PING_MS;
    options.ping_misses = MISSES;
    node_open_with(&client, &options);
    node_target(&client, SERVER, 1, NULL);
    const uint64_t fast_ms = test_now_ms() + FAST_MS;
    while (test_now_ms() < fast_ms) {
        for (unsigned i = 0; i < 1000; i++) {
            CHECK(ringbus_poll(client.bus, 10) >= 0);
        }
    }
    /* A request whose time is over is told so, and no link ends for want of a PING. */
    assert_int_equal(
        ringbus_request(client.bus, &client.peer, 0, "", 0, 0, 1, node_on_result, &client), 1);
    unsigned polls = 0;
    while (polls < SLOW && client.replies[RINGBUS_UNKNOWN] + client.replies[RINGBUS_FAILED] == 0) {
        CHECK(ringbus_poll(client.bus, 10) >= 0);
        test_sleep_ms(SLOW_MS);
        polls++;
    }
    assert_true(polls < SLOW / 4);
    for (unsigned i = 0; i < SLOW; i++) {
        CHECK(ringbus_poll(client.bus, 10) >= 0);
        test_sleep_ms(SLOW_MS);
    }
    assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_DOWN]), 0);
    atomic_store(&bus_shared[WORD_STOP], 1);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    node_close(&client);
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
        cmocka_unit_test(test_pace_may_change),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
