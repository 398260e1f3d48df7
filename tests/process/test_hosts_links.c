/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who links whom across two hosts: clients with the same numbers, instances with the same name, and
 * links by the hundred, of which nothing is left when they have ended.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <string.h>

#define CLUSTER "/Game/eu/pc/w1/core/battle"

static struct hosts hosts;

static const struct cluster *at(unsigned index)
{
    return &hosts.host[index].cluster;
}

static int setup(void **state)
{
    static const struct hosts_options options = {.count = 2, .rest = "daemon: {return_time: 10ms}"};
    (void)state;
    hosts_up(&hosts, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hosts_down(&hosts);
    return 0;
}

static void on_echo(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void test_anonymous_clients_of_both_hosts_are_not_confused(void **state)
{
    struct node servers[2] = {{.on_message = on_echo}, {.on_message = on_echo}};
    struct node clients[2][4] = {0};
    struct ringbus_addr to[2];
    (void)state;
    node_open(&servers[0], at(0), CLUSTER "/1");
    node_open(&servers[1], at(1), CLUSTER "/2");
    for (unsigned i = 0; i < 8; i++) {
        struct node *client = &clients[i / 4][i % 4];
        node_open(client, at(i / 4), NULL); /* the same numbers on both */
        to[0] = node_target(client, CLUSTER "/1", 1, &servers[0]);
        to[1] = node_target(client, CLUSTER "/2", 1, &servers[1]);
    }
    for (unsigned i = 0; i < 80; i++) {
        struct node *client = &clients[i % 8 / 4][i % 4];
        const struct ringbus_addr *peer = &to[i / 8 % 2];
        CHECK(ringbus_request(client->bus, peer, 0, "x", 1, 0, 20000, node_on_result, client) == 1);
    }
    for (unsigned i = 0; i < 8; i++) {
        struct node *client = &clients[i / 4][i % 4];
        RUN_UNTIL(client->replies[RINGBUS_REPLIED] == 10, NODE_MS, client, &servers[0],
                  &servers[1]);
        node_close(client);
    }
    node_close(&servers[0]);
    node_close(&servers[1]);
}

/* Each host has its own then, and the other's again when that has left. */
static void test_a_name_on_both_hosts_is_the_own_one_on_each(void **state)
{
    struct node servers[2] = {{.on_message = on_echo}, {.on_message = on_echo}};
    struct node clients[2] = {{0}, {0}};
    struct ringbus_addr to;
    (void)state;
    node_open(&servers[0], at(0), CLUSTER "/1");
    for (unsigned i = 0; i < 2; i++) {
        node_open(&clients[i], at(i), NULL);
        to = node_target(&clients[i], CLUSTER "/1", 1, &servers[0]);
    }
    node_open(&servers[1], at(1), CLUSTER "/1");
    RUN_UNTIL(clients[1].events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &clients[1], &servers[0],
              &servers[1], &clients[0]);
    RUN_UNTIL(clients[1].events[RINGBUS_EVENT_READY] == 2, NODE_MS, &clients[1], &servers[0],
              &servers[1], &clients[0]);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(ringbus_request(clients[i].bus, &to, 0, "x", 1, 0, 20000, node_on_result,
                              &clients[i]) == 1);
        RUN_UNTIL(clients[i].replies[RINGBUS_REPLIED] == 1, NODE_MS, &clients[0], &servers[0],
                  &clients[1], &servers[1]);
        assert_int_equal(servers[i].messages, 1);
    }
    node_close(&servers[1]);
    RUN_UNTIL(clients[1].events[RINGBUS_EVENT_READY] == 3, NODE_MS, &clients[1], &servers[0],
              &clients[0]);
    CHECK(ringbus_request(clients[1].bus, &to, 0, "x", 1, 0, 20000, node_on_result, &clients[1]) ==
          1);
    RUN_UNTIL(clients[1].replies[RINGBUS_REPLIED] == 2, NODE_MS, &clients[1], &servers[0]);
    assert_int_equal(clients[0].events[RINGBUS_EVENT_DOWN], 0);
    node_close(&servers[0]);
    node_close(&clients[0]);
    node_close(&clients[1]);
}

#define LINKS 200U

static void links_come_and_go(unsigned count, struct node *server)
{
    static struct node clients[LINKS];
    memset(clients, 0, sizeof clients);
    for (unsigned i = 0; i < count; i++) {
        struct ringbus_options options = node_options(at(0), NULL);
        options.lane_bytes = 4096;
        options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 4096, .count = 2};
        node_open_with(&clients[i], &options);
        CHECK(ringbus_target(clients[i].bus, CLUSTER "/1", NULL, &(struct ringbus_addr){0}) == 0);
    }
    struct ringbus_addr to;
    CHECK(ringbus_resolve(CLUSTER "/1", &to) == 0);
    for (unsigned i = 0; i < count; i++) {
        struct node *client = &clients[i];
        RUN_UNTIL(client->events[RINGBUS_EVENT_READY] == 1, 3 * NODE_MS, client, server);
        CHECK(ringbus_request(client->bus, &to, 0, "x", 1, 0, 30000, node_on_result, client) == 1);
    }
    for (unsigned i = 0; i < count; i++) {
        RUN_UNTIL(clients[i].replies[RINGBUS_REPLIED] == 1, 3 * NODE_MS, &clients[i], server);
        node_close(&clients[i]);
    }
}

/* Links end on both hosts, then what they had is given back. */
static void until_descriptors(const unsigned *bridges, const int *daemons, struct node *server)
{
    for (unsigned i = 0; i < 2; i++) {
        RUN_UNTIL(hosts_bridge_fds(&hosts, i) == bridges[i], NODE_MS, server);
        RUN_UNTIL(cluster_fd_count(at(i)) == daemons[i], NODE_MS, server);
    }
}

static void test_200_links_leave_nothing_behind(void **state)
{
    struct node server = {.on_message = on_echo};
    unsigned bridges[2];
    int daemons[2];
    (void)state;
    node_open(&server, at(1), CLUSTER "/1");
    links_come_and_go(3, &server); /* what is made once and kept */
    RUN_UNTIL(server.messages == 3, NODE_MS, &server);
    test_sleep_ms(100);
    for (unsigned i = 0; i < 2; i++) {
        bridges[i] = hosts_bridge_fds(&hosts, i);
        daemons[i] = cluster_fd_count(at(i));
    }
    links_come_and_go(LINKS / TEST_SCALE, &server);
    until_descriptors(bridges, daemons, &server);
    /* What is lost is lost each time; how many live at one time, and so the heap, differs. */
    bool grown = true;
    for (unsigned round = 0; round < 4 && grown && TEST_SCALE == 1; round++) {
        const unsigned long kib[] = {hosts_bridge_kib(&hosts, 0), hosts_bridge_kib(&hosts, 1)};
        links_come_and_go(LINKS, &server);
        until_descriptors(bridges, daemons, &server);
        grown = hosts_bridge_kib(&hosts, 0) >= kib[0] + 512 ||
                hosts_bridge_kib(&hosts, 1) >= kib[1] + 512;
    }
    assert_true(!grown || TEST_SCALE != 1);
    node_close(&server);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_anonymous_clients_of_both_hosts_are_not_confused),
        CASE(test_a_name_on_both_hosts_is_the_own_one_on_each),
        CASE(test_200_links_leave_nothing_behind),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
