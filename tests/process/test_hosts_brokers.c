/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers over two hosts (features D56, D75): a cluster of brokers, one on each host, stands for
 * instances on both. What is sent to any, by key and to all arrives as on one host, over one bridge
 * or two; a broadcast at each receiver once, whichever way; and the origin is the caller.
 */
#include "broker_process.h"
#include "support/hosts.h"

#define AREA    "/Game/eu/pc/w1/"
#define LOBBY   AREA "inner/lobby"
#define SHOWN   AREA "shown/lobby"
#define LOBBIES 3U
#define NUMBERS 1024U
#define TIMEOUT 10000U

static struct hosts hosts;
static struct broker brokers[2];
static struct node gates[2], lobbies[LOBBIES];
static unsigned char had[LOBBIES][NUMBERS];

#define ALL_NODES &gates[0], &gates[1], &lobbies[0], &lobbies[1], &lobbies[2]

static const struct cluster *at(unsigned index)
{
    return &hosts.host[index].cluster;
}

/* Messages say of which gate they are, in their parity. */
static void count(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus_origin origin;
    CHECK(message->size == sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number < NUMBERS);
    had[node - lobbies][number]++;
    (void)snprintf(path, sizeof path, AREA "gate/gate/%u", (unsigned)(number % 2) + 1);
    CHECK(ringbus_origin(node->bus, message, &origin) == 1);
    CHECK(strcmp(origin.path, path) == 0);
    CHECK(origin.hops == 1);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, &number, sizeof number, 0) == 1);
    }
}

static void open_all(struct ringbus_addr *to)
{
    char path[RINGBUS_PATH_MAX + 1];
    char config[1024];
    char name[8];
    memset(had, 0, sizeof had);
    for (unsigned i = 0; i < LOBBIES; i++) {
        lobbies[i].on_message = count;
        (void)snprintf(path, sizeof path, LOBBY "/%u", i + 1);
        node_open(&lobbies[i], at(i % 2), path);
    }
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "b%u", i + 1);
        (void)snprintf(config, sizeof config,
                       "sides:\n"
                       "  - {name: bus, socket: %s, path: " AREA "edge/broker/%s}\n"
                       "exports:\n"
                       "  - {id: inner, from: bus, to: bus, match: " LOBBY ", as: " SHOWN "}\n",
                       at(i)->socket, name);
        broker_start(&brokers[i], at(i), name, config);
    }
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, AREA "gate/gate/%u", i + 1);
        node_open(&gates[i], at(i), path);
        CHECK(ringbus_target(gates[i].bus, SHOWN, NULL, to) == 0);
    }
    RUN_UNTIL(gates[0].events[RINGBUS_EVENT_READY] == 2 &&
                  gates[1].events[RINGBUS_EVENT_READY] == 2 && node_stats(&lobbies[0]).links == 2 &&
                  node_stats(&lobbies[1]).links == 2 && node_stats(&lobbies[2]).links == 2,
              3 * NODE_MS, ALL_NODES);
}

static void ask(unsigned gate, const struct ringbus_addr *to, uint64_t number, unsigned flags)
{
    const unsigned before = gates[gate].replies[RINGBUS_REPLIED];
    CHECK(ringbus_request(gates[gate].bus, to, number / 2, &number, sizeof number, flags, TIMEOUT,
                          node_on_result, &gates[gate]) == 1);
    RUN_UNTIL(gates[gate].replies[RINGBUS_REPLIED] == before + 1, 2 * TIMEOUT, ALL_NODES);
}

static unsigned owner_of(unsigned number)
{
    unsigned owner = LOBBIES;
    for (unsigned i = 0; i < LOBBIES; i++) {
        if (had[i][number] != 0) {
            assert_int_equal(had[i][number], 1);
            assert_int_equal(owner, LOBBIES);
            owner = i;
        }
    }
    assert_true(owner < LOBBIES);
    return owner;
}

static void test_two_brokers_on_two_hosts(void **state)
{
    (void)state;
    struct ringbus_addr to;
    open_all(&to);
    /* Members have links to the brokers alone, whichever host they are on. */
    assert_int_equal(node_stats(&gates[0]).links, 2);
    assert_int_equal(node_stats(&gates[1]).links, 2);
    /* A key has one owner, for both gates, over both brokers. */
    for (unsigned key = 0; key < 60; key++) {
        ask(0, &to, 2 * (uint64_t)key, RINGBUS_KEY);
        ask(1, &to, 2 * (uint64_t)key + 1, RINGBUS_KEY);
        assert_int_equal(owner_of(2 * key), owner_of(2 * key + 1));
    }
    for (unsigned i = 0; i < LOBBIES; i++) {
        assert_true(lobbies[i].messages > 0);
    }
    /* To all, from both: each once. */
    const uint64_t before = lobbies[0].messages + lobbies[1].messages + lobbies[2].messages;
    struct ringbus_addr all = to;
    all.instance = RINGBUS_ALL;
    for (uint64_t number = 200; number < 300; number++) {
        struct node *gate = &gates[number % 2];
        RUN_UNTIL(ringbus_send(gate->bus, &all, 0, &number, sizeof number, 0) == 1, NODE_MS,
                  ALL_NODES);
    }
    RUN_UNTIL(lobbies[0].messages + lobbies[1].messages + lobbies[2].messages == before + 300,
              3 * NODE_MS, ALL_NODES);
    for (unsigned number = 200; number < 300; number++) {
        for (unsigned i = 0; i < LOBBIES; i++) {
            assert_int_equal(had[i][number], 1);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        broker_kill(&brokers[i]);
        node_close(&gates[i]);
    }
    for (unsigned i = 0; i < LOBBIES; i++) {
        node_close(&lobbies[i]);
    }
}

static int setup(void **state)
{
    static const struct hosts_options options = {.count = 2};
    (void)state;
    bus_shared_reset();
    hosts_up(&hosts, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hosts_down(&hosts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_brokers_on_two_hosts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
