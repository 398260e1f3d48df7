/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy says of requests reaches callers, and changes under them: mocks for a cluster in
 * which nobody has ever been, retries, and a configuration that takes both back.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>

#define SHOP "/game/eu/pc/w1/trade/shop"

static struct cluster cluster;
static struct node caller, shops[2];
static struct ringbus_addr shop;

static const char offered[] =
    "clusters:\n"
    "  - match: " SHOP "\n"
    "    retry: {mode: failover, tries: 1, budget_min: 1000}\n"
    "    degrade:\n"
    "      - {id: closed, action: mock, on: [no_instance], mock: closed}\n";

static struct ringbus_result last;
static char answer[128];
static bool mocked;
static unsigned results;

static void take_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last = *result;
    answer[0] = '\0';
    mocked = false;
    if (result->message != NULL) {
        CHECK(result->message->size < sizeof answer);
        memcpy(answer, result->message->data, result->message->size);
        answer[result->message->size] = '\0';
        mocked = (result->message->flags & RINGBUS_MESSAGE_MOCKED) != 0;
    }
    results++;
}

static void ask(void)
{
    const unsigned before = results;
    const int r = ringbus_request(caller.bus, &shop, 0, "?", 1, 0, 5000, take_result, NULL);
    if (r < 0) {
        last = (struct ringbus_result){.outcome = RINGBUS_NOT_SENT, .error = r};
        answer[0] = '\0';
        mocked = false;
        return;
    }
    RUN_UNTIL(results == before + 1, NODE_MS, &caller, &shops[0], &shops[1]);
}

static void refuse(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply_refused(node->bus, &message->reply_to, RINGBUS_E_SHED, 0) == 1);
}

static void serve(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "open", 4, 0) == 1);
    }
}

static void test_mock_and_retry(void **state)
{
    (void)state;
    memset(shops, 0, sizeof shops);
    memset(&caller, 0, sizeof caller);
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, SHOP, NULL, &shop) == 0);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    do {
        CHECK(test_now_ms() < end_ms);
        struct node *const all[] = {&caller};
        nodes_step(all, 1);
        ask();
    } while (strcmp(answer, "closed") != 0);
    assert_true(mocked);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);

    /* One refuses for load, the other serves: whoever is asked first, it is answered. */
    shops[0].on_message = refuse;
    shops[1].on_message = serve;
    node_open(&shops[0], &cluster, SHOP "/1");
    node_open(&shops[1], &cluster, SHOP "/2");
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &shops[0], &shops[1]);
    for (unsigned i = 0; i < 4 || shops[0].messages == 0; i++) {
        assert_true(i < 1000);
        ask();
        assert_string_equal(answer, "open");
        assert_false(mocked);
    }

    /* The configuration takes it back: a refusal ends the request, nobody stands in. */
    node_close(&shops[1]);
    memset(&shops[1], 0, sizeof shops[1]);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &shops[0]);
    CHECK(cluster_configure(&cluster, "{}\n") == 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    const uint64_t late_ms = test_now_ms() + NODE_MS;
    node_close(&shops[0]);
    memset(&shops[0], 0, sizeof shops[0]);
    do {
        CHECK(test_now_ms() < late_ms);
        struct node *const all[] = {&caller};
        nodes_step(all, 1);
        ask();
    } while (last.outcome != RINGBUS_NOT_SENT || last.error != RINGBUS_E_NO_INSTANCE);
    node_close(&caller);
}

/* Shaping (features 2.8): what a limit has wait goes out at its rate, and nothing is refused. */
static void test_delayed_by_a_limit(void **state)
{
    (void)state;
    enum { MANY = 40, RATE = 100, BURST = 10 };
    static const char shaped[] =
        "clusters:\n"
        "  - match: " SHOP "\n"
        "    limits:\n"
        "      - {id: pace, scope: caller, rate: 100, burst: 10, max_wait: 5s}\n";
    CHECK(cluster_configure(&cluster, shaped) == 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    memset(shops, 0, sizeof shops);
    memset(&caller, 0, sizeof caller);
    results = 0;
    shops[0].on_message = serve;
    node_open(&shops[0], &cluster, SHOP "/1");
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, SHOP, NULL, &shop) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &caller, &shops[0]);
    /* The reload has come when what is no request is kept until it is due. */
    int r = 1;
    const uint64_t late_ms = test_now_ms() + NODE_MS;
    while (r == 1) {
        struct node *const all[] = {&caller, &shops[0]};
        CHECK(test_now_ms() < late_ms);
        nodes_step(all, 2);
        for (unsigned i = 0; i <= BURST && r == 1; i++) {
            r = ringbus_send(caller.bus, &shop, 0, "", 0, 0);
        }
    }
    assert_int_equal(r, 0);
    results = 0;
    const uint64_t start_ms = test_now_ms();
    for (unsigned i = 0; i < MANY; i++) {
        CHECK(ringbus_request(caller.bus, &shop, 0, "", 0, 0, 60000, take_result, NULL) == 1);
    }
    RUN_UNTIL(results == MANY, NODE_MS, &caller, &shops[0]);
    /* Nothing was left of the burst: at the rate. A late machine makes it later, never sooner. */
    assert_true(test_now_ms() - start_ms >= (MANY - BURST) * 1000 / RATE);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    node_close(&caller);
    node_close(&shops[0]);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, offered);
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
        cmocka_unit_test_setup_teardown(test_mock_and_retry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delayed_by_a_limit, setup, teardown),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
