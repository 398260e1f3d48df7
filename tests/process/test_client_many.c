/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of many instances, more than the daemon keeps events for: each is found and
 * linked, whatever had to be dropped, and leaves are seen as well (scenarios 31, 104).
 */
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MANY   "/game/eu/pc/w1/core/many"
#define COUNT  400U /* a socket takes fewer than 300 events */
#define LEAVE  60U
#define ALL_MS 10000U

static struct cluster cluster;
static struct node members[COUNT];
static struct node client;

static void open_member(unsigned i)
{
    char path[64];
    (void)snprintf(path, sizeof path, MANY "/%u", i + 1);
    struct ringbus_options options = node_options(&cluster, path);
    options.lane_bytes = 4096;
    options.refs_per_link = 16;
    options.pool[0] = (struct ringbus_pool_class){64, 1};
    node_open_with(&members[i], &options);
}

static void run_until(const unsigned *counter, unsigned wanted)
{
    struct node *nodes[COUNT + 1] = {&client};
    const uint64_t deadline_ms = test_now_ms() + ALL_MS;
    for (unsigned i = 0; i < COUNT; i++) {
        nodes[i + 1] = members[i].bus != NULL ? &members[i] : NULL;
    }
    while (*counter < wanted) {
        if (test_now_ms() > deadline_ms) {
            print_message("%u of %u; ready %u, added %u, resync %u, down %u, removed %u\n",
                          *counter, wanted, client.events[RINGBUS_EVENT_READY],
                          client.events[RINGBUS_EVENT_ADDED], client.events[RINGBUS_EVENT_RESYNC],
                          client.events[RINGBUS_EVENT_DOWN], client.events[RINGBUS_EVENT_REMOVED]);
            bus_die(__FILE__, __LINE__, "in time");
        }
        nodes_step(nodes, COUNT + 1);
    }
}

static void test_each_of_many_is_linked(void **state)
{
    (void)state;
    struct ringbus_addr all;
    for (unsigned i = 0; i < COUNT; i++) {
        open_member(i);
    }
    struct ringbus_options options = node_options(&cluster, NULL);
    options.lane_bytes = 4096;
    options.refs_per_link = 16;
    node_open_with(&client, &options);
    assert_int_equal(ringbus_target(client.bus, MANY, NULL, &all), 0);
    /* The events of all of them are more than socket and queue take before the client reads. */
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (raw_status(cluster.socket, "events_dropped") == 0) {
        CHECK(test_now_ms() < deadline_ms);
    }
    run_until(&client.events[RINGBUS_EVENT_READY], COUNT);
    run_until(&client.events[RINGBUS_EVENT_RESYNC], 1);
    assert_int_equal(client.events[RINGBUS_EVENT_DAEMON_LOST], 0);
    assert_int_equal(client.events[RINGBUS_EVENT_ADDED], COUNT);
    assert_int_equal(node_stats(&client).links, COUNT);
    all.instance = RINGBUS_ALL;
    assert_int_equal(ringbus_send(client.bus, &all, 0, "x", 1, 0), COUNT);

    for (unsigned i = 0; i < LEAVE; i++) {
        node_close(&members[i]);
    }
    run_until(&client.events[RINGBUS_EVENT_DOWN], LEAVE);
    run_until(&client.events[RINGBUS_EVENT_REMOVED], LEAVE);
    assert_int_equal(node_stats(&client).links, COUNT - LEAVE);
    assert_int_equal(client.events[RINGBUS_EVENT_REMOVED], LEAVE);
    node_close(&client);
    for (unsigned i = LEAVE; i < COUNT; i++) {
        node_close(&members[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    struct rlimit limit;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 4096) {
        print_message("needs 4096 descriptors\n");
        exit(77);
    }
    return cluster_up(&cluster, "daemon: {send_queue: 64}\n"
                                "quota: {instances: 4096, control: 1000000, connects: 1000000}\n");
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
        cmocka_unit_test_setup_teardown(test_each_of_many_is_linked, setup, teardown),
    };
    return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
