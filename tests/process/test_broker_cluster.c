/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of brokers (features D55, D75): members have links to the brokers and none among
 * themselves. What is sent to any, to one, by key or to all arrives as it would directly: a key at
 * its owner, whichever broker brings it, and a broadcast at each once.
 */
#include "broker_process.h"

#define LOBBY   "/game/eu/pc/w1/inner/lobby"
#define SHOWN   "/game/eu/pc/w1/shown/lobby"
#define BROKERS "/game/eu/pc/w1/edge/broker"
#define LOBBIES 3U
#define NUMBERS 4096U
#define TIMEOUT 5000U
#define LARGE   100000U

static struct cluster cluster;
static struct broker brokers[2];
static struct node gate, lobbies[LOBBIES];
/* By number of a message: how often each lobby had it. */
static unsigned char had[LOBBIES][NUMBERS];
static unsigned from[2]; /* by broker */
static bool direct_caller;

static const char rules[] = "clusters:\n"
                            "  - {match: \"/**\", balance: {keyless: rr, rehash_delay: 100ms}}\n";

static void count(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    struct ringbus_origin origin;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number < NUMBERS);
    CHECK(ringbus_origin(node->bus, message, &origin) == (direct_caller ? 0 : 1));
    CHECK(direct_caller || strcmp(origin.path, "/game/eu/pc/w1/gate/gate/1") == 0);
    had[node - lobbies][number]++;
    from[strcmp(message->from_path, BROKERS "/b2") == 0]++;
    for (size_t i = sizeof number; i < message->size; i++) {
        CHECK(((const unsigned char *)message->data)[i] == (unsigned char)(number + i));
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, &number, sizeof number, 0) == 1);
    }
}

static void start(unsigned i)
{
    char config[1024];
    char name[8];
    (void)snprintf(name, sizeof name, "b%u", i + 1);
    (void)snprintf(config, sizeof config,
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " BROKERS "/%s}\n"
                   "exports:\n"
                   "  - {id: inner, from: bus, to: bus, match: /game/eu/pc/w1/inner/*,\n"
                   "     as: /game/eu/pc/w1/shown/*}\n",
                   cluster.socket, name);
    broker_start(&brokers[i], &cluster, name, config);
}

static bool all_linked(unsigned count_of_brokers)
{
    for (unsigned i = 0; i < LOBBIES; i++) {
        if (node_stats(&lobbies[i]).links != count_of_brokers) {
            return false;
        }
    }
    return true;
}

static struct ringbus_addr open_all(void)
{
    char path[RINGBUS_PATH_MAX + 1];
    memset(had, 0, sizeof had);
    memset(from, 0, sizeof from);
    memset(&gate, 0, sizeof gate);
    for (unsigned i = 0; i < LOBBIES; i++) {
        memset(&lobbies[i], 0, sizeof lobbies[i]);
        lobbies[i].on_message = count;
        (void)snprintf(path, sizeof path, LOBBY "/%u", i + 1);
        node_open(&lobbies[i], &cluster, path);
    }
    start(0);
    start(1);
    node_open(&gate, &cluster, "/game/eu/pc/w1/gate/gate/1");
    const struct ringbus_addr to = node_target(&gate, SHOWN, 2, NULL);
    RUN_UNTIL(all_linked(2), NODE_MS, &gate, &lobbies[0], &lobbies[1], &lobbies[2]);
    /* Two links each, however many there are of the others. */
    assert_int_equal(node_stats(&gate).links, 2);
    return to;
}

static void close_all(void)
{
    node_close(&gate);
    for (unsigned i = 0; i < LOBBIES; i++) {
        node_close(&lobbies[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (brokers[i].pid != 0) {
            broker_kill(&brokers[i]);
        }
    }
}

static uint64_t arrived(void)
{
    return lobbies[0].messages + lobbies[1].messages + lobbies[2].messages;
}

static void wait_arrived(uint64_t messages)
{
    RUN_UNTIL(arrived() == messages, NODE_MS, &gate, &lobbies[0], &lobbies[1], &lobbies[2]);
}

static void
send_until_taken(const struct ringbus_addr *to, uint64_t number, uint64_t key, unsigned flags)
{
    int r = 0;
    RUN_UNTIL((r = ringbus_send(gate.bus, to, key, &number, sizeof number, flags)) !=
                  RINGBUS_E_FULL,
              NODE_MS, &gate, &lobbies[0], &lobbies[1], &lobbies[2]);
    CHECK(r == 1);
}

/* Who has a message: the only one. */
static unsigned owner_of(unsigned number)
{
    unsigned owner = LOBBIES;
    for (unsigned i = 0; i < LOBBIES; i++) {
        assert_true(had[i][number] <= 1);
        if (had[i][number] == 1) {
            assert_int_equal(owner, LOBBIES);
            owner = i;
        }
    }
    assert_true(owner < LOBBIES);
    return owner;
}

static void test_any_and_by_key(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all();
    for (uint64_t i = 0; i < 60; i++) {
        CHECK(ringbus_request(gate.bus, &to, 0, &i, sizeof i, 0, TIMEOUT, node_on_result, &gate) ==
              1);
    }
    RUN_UNTIL(gate.replies[RINGBUS_REPLIED] == 60, NODE_MS, &gate, &lobbies[0], &lobbies[1],
              &lobbies[2]);
    for (unsigned i = 0; i < LOBBIES; i++) {
        assert_true(lobbies[i].messages > 0);
    }
    assert_true(from[0] > 0 && from[1] > 0);
    /* Each key twice, and once more when a broker is gone: the same instance. */
    for (uint64_t key = 0; key < 300; key++) {
        send_until_taken(&to, 100 + key, key, RINGBUS_KEY);
        send_until_taken(&to, 500 + key, key, RINGBUS_KEY);
    }
    wait_arrived(660);
    broker_kill(&brokers[0]);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_DOWN] == 1 && all_linked(1), NODE_MS, &gate, &lobbies[0],
              &lobbies[1], &lobbies[2]);
    for (uint64_t key = 0; key < 300; key++) {
        int r = 0;
        uint64_t number = 1000 + key;
        /* Keys of the broker that died wait for its return, for so long as the policy says. */
        RUN_UNTIL((r = ringbus_send(gate.bus, &to, key, &number, sizeof number, RINGBUS_KEY)) > 0,
                  NODE_MS, &gate, &lobbies[0], &lobbies[1], &lobbies[2]);
        CHECK(r == 1);
    }
    wait_arrived(960);
    unsigned owned[LOBBIES] = {0};
    for (unsigned key = 0; key < 300; key++) {
        const unsigned owner = owner_of(100 + key);
        owned[owner]++;
        assert_int_equal(owner_of(500 + key), owner);
        assert_int_equal(owner_of(1000 + key), owner);
    }
    assert_true(owned[0] > 0 && owned[1] > 0 && owned[2] > 0);
    close_all();
}

/* The owner is the one that a direct caller would find. */
static void test_owner_is_that_of_direct_callers(void **state)
{
    (void)state;
    struct node direct = {.messages = 0};
    const struct ringbus_addr to = open_all();
    for (uint64_t key = 0; key < 200; key++) {
        send_until_taken(&to, key, key, RINGBUS_KEY);
    }
    wait_arrived(200);
    direct_caller = true;
    node_open(&direct, &cluster, "/game/eu/pc/w1/gate/gate/2");
    struct ringbus_addr inner;
    CHECK(ringbus_target(direct.bus, LOBBY, NULL, &inner) == 0);
    RUN_UNTIL(direct.events[RINGBUS_EVENT_READY] == LOBBIES, NODE_MS, &direct, &lobbies[0],
              &lobbies[1], &lobbies[2]);
    for (uint64_t key = 0; key < 200; key++) {
        const uint64_t number = 1000 + key;
        CHECK(ringbus_send(direct.bus, &inner, key, &number, sizeof number, RINGBUS_KEY) == 1);
    }
    wait_arrived(400);
    for (unsigned key = 0; key < 200; key++) {
        assert_int_equal(owner_of(1000 + key), owner_of(key));
    }
    direct_caller = false;
    node_close(&direct);
    close_all();
}

/* To one behind the brokers: under the name that is shown, and under the broker's own name. */
static void test_one(void **state)
{
    (void)state;
    struct ringbus_addr broker;
    const struct ringbus_addr to = open_all();
    CHECK(ringbus_target(gate.bus, BROKERS, NULL, &broker) == 0);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_READY] == 4, NODE_MS, &gate);
    for (uint64_t i = 0; i < 90; i++) {
        const struct ringbus_part part = {&i, sizeof i};
        struct ringbus_message_options options = {
            .struct_size = sizeof options, .timeout_ms = TIMEOUT, .dest = to};
        options.dest.instance = (int32_t)(i % LOBBIES) + 1;
        CHECK(ringbus_request_with(gate.bus, i % 2 == 0 ? &to : &broker, &part, 1, &options,
                                   node_on_result, &gate) == 1);
    }
    RUN_UNTIL(gate.replies[RINGBUS_REPLIED] == 90, NODE_MS, &gate, &lobbies[0], &lobbies[1],
              &lobbies[2]);
    for (unsigned i = 0; i < 90; i++) {
        assert_int_equal(owner_of(i), i % LOBBIES);
    }
    /* Nobody of that number, and nothing of that name. */
    static const struct {
        const char *path;
        int error;
    } nobody[] = {{SHOWN "/77", RINGBUS_E_NO_INSTANCE},
                  {"/game/eu/pc/w1/shown/nothing/1", RINGBUS_E_NO_SERVICE},
                  {LOBBY "/1", RINGBUS_E_NO_SERVICE}}; /* the inner name is none here */
    for (unsigned i = 0; i < 3; i++) {
        const struct ringbus_part part = {&i, sizeof i};
        struct ringbus_message_options options = {.struct_size = sizeof options,
                                                  .timeout_ms = TIMEOUT};
        CHECK(ringbus_resolve(nobody[i].path, &options.dest) == 0);
        CHECK(ringbus_request_with(gate.bus, &broker, &part, 1, &options, node_on_result, &gate) ==
              1);
        RUN_UNTIL(gate.replies[RINGBUS_NOT_SENT] == i + 1, NODE_MS, &gate, &lobbies[0]);
        assert_int_equal(gate.reply_error, nobody[i].error);
        /* The same of a one-way message, in an event. */
        CHECK(ringbus_send_with(gate.bus, &broker, &part, 1, &options) == 1);
        RUN_UNTIL(gate.events[RINGBUS_EVENT_REFUSED] > i, NODE_MS, &gate, &lobbies[0]);
    }
    close_all();
}

/* Each has each once, whatever its size: from two brokers, from one, and with reports. */
static void test_all(void **state)
{
    (void)state;
    static unsigned char large[LARGE];
    struct ringbus_addr to = open_all();
    to.instance = RINGBUS_ALL;
    uint64_t sent = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 40; i++) {
            const size_t size = i % 4 == 0 ? LARGE : i % 4 == 1 ? 3000 : sizeof sent;
            struct ringbus_broadcast report = {.struct_size = sizeof report};
            for (size_t at = sizeof sent; at < size; at++) {
                large[at] = (unsigned char)(sent + at);
            }
            memcpy(large, &sent, sizeof sent);
            const struct ringbus_part part = {large, size};
            int r = 0;
            RUN_UNTIL((r = i % 2 == 0
                               ? ringbus_send(gate.bus, &to, 0, large, size, 0)
                               : ringbus_broadcast(gate.bus, &to, &part, 1, NULL, &report)) == 1,
                      NODE_MS, &gate, &lobbies[0], &lobbies[1], &lobbies[2]);
            if (i % 2 != 0) {
                assert_int_equal(report.delivered, 1);
                assert_int_equal(report.skipped, report.count - 1);
            }
            sent++;
        }
        wait_arrived(LOBBIES * sent);
        if (round == 0) {
            broker_kill(&brokers[0]);
            RUN_UNTIL(gate.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &gate, &lobbies[0],
                      &lobbies[1], &lobbies[2]);
        }
    }
    for (unsigned i = 0; i < LOBBIES; i++) {
        for (unsigned number = 0; number < sent; number++) {
            assert_int_equal(had[i][number], 1);
        }
    }
    close_all();
}

/* The same named behind the brokers: one of them is asked, and brings it to each. */
static void test_all_behind_one(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all();
    for (uint64_t i = 0; i < 50; i++) {
        const struct ringbus_part part = {&i, sizeof i};
        struct ringbus_message_options options = {.struct_size = sizeof options, .dest = to};
        options.dest.instance = RINGBUS_ALL;
        RUN_UNTIL(ringbus_send_with(gate.bus, &to, &part, 1, &options) == 1, NODE_MS, &gate,
                  &lobbies[0], &lobbies[1], &lobbies[2]);
    }
    wait_arrived(50 * LOBBIES);
    for (unsigned i = 0; i < LOBBIES; i++) {
        for (unsigned number = 0; number < 50; number++) {
            assert_int_equal(had[i][number], 1);
        }
    }
    assert_true(from[0] > 0 && from[1] > 0);
    /* A request to all of them is none. */
    const struct ringbus_part part = {&cluster, 8};
    struct ringbus_message_options options = {
        .struct_size = sizeof options, .timeout_ms = TIMEOUT, .dest = to};
    options.dest.instance = RINGBUS_ALL;
    CHECK(ringbus_request_with(gate.bus, &to, &part, 1, &options, node_on_result, &gate) == 1);
    RUN_UNTIL(gate.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &gate, &lobbies[0], &lobbies[1],
              &lobbies[2]);
    assert_int_equal(gate.reply_error, RINGBUS_E_ARGUMENT);
    close_all();
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, rules);
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
        cmocka_unit_test(test_any_and_by_key),
        cmocka_unit_test(test_owner_is_that_of_direct_callers),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_all_behind_one),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
