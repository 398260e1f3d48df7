/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops and long ways (features D54, 2.12): brokers that show each other what they have from each
 * other end a message with RINGBUS_E_NO_ROUTE at its origin, at once, and so does the ninth of a
 * chain of them; the eighth still brings it.
 */
#include "broker_process.h"

#define AREA    "/game/eu/pc/w1/"
#define TIMEOUT 20000U
#define CHAIN   (RINGBUS_HOPS_MAX + 1U)

static struct cluster cluster;
static struct broker brokers[CHAIN];
static struct node gate, last;
static unsigned hops;

static void serve(struct node *node, const struct ringbus_message *message)
{
    struct ringbus_origin origin;
    CHECK(ringbus_origin(node->bus, message, &origin) == 1);
    CHECK(strcmp(origin.path, AREA "gate/gate/1") == 0);
    hops = origin.hops;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "here", 4, 0) == 1);
    }
}

/* Broker @p i of its own cluster shows the name @p from under the name @p as. */
static void start(unsigned i, const char *from, const char *as)
{
    char config[1024];
    char name[16];
    (void)snprintf(name, sizeof name, "broker%u", i);
    (void)snprintf(config, sizeof config,
                   "broker: {hold: 100ms}\n"
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " AREA "edge/%s/b1,\n"
                   "     upstream: [\"" AREA "edge/*/*\"]}\n"
                   "exports:\n"
                   "  - {id: e, from: bus, to: bus, match: " AREA "%s, as: " AREA "%s}\n",
                   cluster.socket, name, from, as);
    broker_start(&brokers[i], &cluster, name, config);
}

static void close_all(unsigned count)
{
    node_close(&gate);
    for (unsigned i = 0; i < count; i++) {
        broker_kill(&brokers[i]);
    }
}

static unsigned ended(void)
{
    return gate.replies[0] + gate.replies[1] + gate.replies[2] + gate.replies[3];
}

/* Asks until it ends with @p outcome: links between brokers come up one by one. */
static void ask_until(const struct ringbus_addr *to, enum ringbus_outcome outcome, int error)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    do {
        const unsigned before = ended();
        CHECK(test_now_ms() < deadline_ms);
        CHECK(ringbus_request(gate.bus, to, 0, "?", 1, 0, TIMEOUT, node_on_result, &gate) == 1);
        RUN_UNTIL(ended() == before + 1, NODE_MS, &gate, last.bus != NULL ? &last : &gate);
    } while (gate.replies[outcome] == 0 || gate.reply_error != error);
}

static void test_loop_ends_at_its_origin(void **state)
{
    (void)state;
    memset(&last, 0, sizeof last);
    memset(&gate, 0, sizeof gate);
    start(0, "core/b", "core/a");
    start(1, "core/c", "core/b");
    start(2, "core/a", "core/c");
    node_open(&gate, &cluster, AREA "gate/gate/1");
    const struct ringbus_addr to = node_target(&gate, AREA "core/a", 1, NULL);
    const uint64_t begin_ms = test_now_ms();
    ask_until(&to, RINGBUS_NOT_SENT, RINGBUS_E_NO_ROUTE);
    assert_true(test_now_ms() - begin_ms < TIMEOUT / 2); /* it did not run until its deadline */
    /* A one-way message ends too: the broker that saw it twice told the one before, and logged. */
    CHECK(ringbus_send(gate.bus, &to, 0, "!", 1, 0) == 1);
    broker_log_wait(&brokers[2], "event=broker_dropped_beyond", 1);
    /* To all: the same. */
    struct ringbus_addr all = to;
    all.instance = RINGBUS_ALL;
    CHECK(ringbus_send(gate.bus, &all, 0, "!", 1, 0) == 1);
    broker_log_wait(&brokers[2], "event=broker_dropped_beyond", 2);
    close_all(3);
}

static void test_as_many_as_may_be(void **state)
{
    (void)state;
    char from[32];
    char as[32];
    memset(&last, 0, sizeof last);
    memset(&gate, 0, sizeof gate);
    last.on_message = serve;
    node_open(&last, &cluster, AREA "core/s0/1");
    for (unsigned i = 0; i < CHAIN; i++) {
        (void)snprintf(from, sizeof from, "core/s%u", i);
        (void)snprintf(as, sizeof as, "core/s%u", i + 1);
        start(i, from, as);
    }
    node_open(&gate, &cluster, AREA "gate/gate/1");
    const struct ringbus_addr eight = node_target(&gate, AREA "core/s8", 1, &last);
    ask_until(&eight, RINGBUS_REPLIED, 0);
    assert_int_equal(hops, RINGBUS_HOPS_MAX);
    const struct ringbus_addr nine = node_target(&gate, AREA "core/s9", 1, &last);
    ask_until(&nine, RINGBUS_NOT_SENT, RINGBUS_E_NO_ROUTE);
    node_close(&last);
    close_all(CHAIN);
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
        cmocka_unit_test(test_loop_ends_at_its_origin),
        cmocka_unit_test(test_as_many_as_may_be),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
