/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call's result is counted (features T11, T27): requests by themselves, what is made of
 * one-way messages by ringbus_report(); what says nothing of the instance is not.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define SERVICE "/game/eu/pc/w1/core/service"

static struct cluster cluster;

enum behaviour { ANSWER = 0, FAIL = 1, IGNORE = 2 };

static void serve(struct node *node, const struct ringbus_message *message)
{
    const enum behaviour *behaviour = node->context;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    if (*behaviour == ANSWER) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    } else if (*behaviour == FAIL) {
        CHECK(ringbus_reply_error(node->bus, &message->reply_to, "no such player") == 1);
    }
}

static unsigned ended(const struct node *node)
{
    return node->replies[0] + node->replies[1] + node->replies[2] + node->replies[3];
}

static void
ask(struct node *client, struct node *server, const struct ringbus_addr *to, uint32_t timeout_ms)
{
    const unsigned before = ended(client);
    CHECK(ringbus_request(client->bus, to, 0, "hi", 2, 0, timeout_ms, node_on_result, client) == 1);
    RUN_UNTIL(ended(client) == before + 1, NODE_MS, client, server);
}

/** What the client has counted of an instance, in its own memory. */
static struct rbi_outcome_copy counted(struct node *client, const struct ringbus_addr *of)
{
    struct rbi_outcome_copy copy = {0};
    const struct rbi_end *end = rbi_end_find(client->bus, of->cluster, of->instance);
    CHECK(end != NULL && end->outcome != 0);
    rbi_outcome_read(&client->bus->outcomes.slots[end->outcome], &copy);
    return copy;
}

static void wait_status(const char *name, uint64_t value)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (raw_status(cluster.socket, name) != value) {
        if (test_now_ms() > deadline_ms) {
            print_message("%s is %llu\n", name,
                          (unsigned long long)raw_status(cluster.socket, name));
            assert_true(false);
        }
        test_sleep_ms(20);
    }
}

struct pair {
    struct node server;
    struct node client;
    struct ringbus_addr to;
    enum behaviour behaviour;
};

static void pair_open(struct pair *pair, int errors_count)
{
    struct ringbus_target_options options = {.struct_size = sizeof options,
                                             .errors_count = errors_count};
    memset(pair, 0, sizeof *pair);
    pair->server.on_message = serve;
    pair->server.context = &pair->behaviour;
    node_open(&pair->server, &cluster, SERVICE "/1");
    node_open(&pair->client, &cluster, NULL);
    CHECK(ringbus_target(pair->client.bus, SERVICE "/1", &options, &pair->to) == 0);
    RUN_UNTIL(pair->client.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &pair->client, &pair->server);
}

static void pair_close(struct pair *pair)
{
    node_close(&pair->client);
    node_close(&pair->server);
}

static void pair_ask(struct pair *pair, enum behaviour behaviour, uint32_t timeout_ms)
{
    pair->behaviour = behaviour;
    ask(&pair->client, &pair->server, &pair->to, timeout_ms);
}

static void test_requests_are_counted_by_how_they_end(void **state)
{
    (void)state;
    struct pair pair;
    const uint64_t ok = raw_status(cluster.socket, "calls_ok");
    const uint64_t failed = raw_status(cluster.socket, "calls_failed");
    const uint64_t lost = raw_status(cluster.socket, "calls_lost");
    pair_open(&pair, 1);
    pair_ask(&pair, ANSWER, 5000);
    pair_ask(&pair, ANSWER, 5000);
    struct rbi_outcome_copy seen = counted(&pair.client, &pair.to);
    assert_int_equal(seen.ok, 2);
    assert_int_equal(seen.who >> 32, pair.client.peer.incarnation);
    assert_true(seen.latency_ns > 0 && seen.latency_ns < 10000 * RBI_NS_PER_MS);
    pair_ask(&pair, FAIL, 5000);
    pair_ask(&pair, IGNORE, 20);
    seen = counted(&pair.client, &pair.to);
    assert_int_equal(seen.ok, 2);
    assert_int_equal(seen.failed, 1);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(seen.in_a_row, 2);
    pair_ask(&pair, ANSWER, 5000);
    assert_int_equal(counted(&pair.client, &pair.to).in_a_row, 0);
    wait_status("calls_ok", ok + 3);
    wait_status("calls_failed", failed + 1);
    wait_status("calls_lost", lost + 1);
    pair_close(&pair);
}

static void test_errors_of_handlers_count_as_answered_by_default(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, 0);
    pair_ask(&pair, FAIL, 5000);
    assert_int_equal(counted(&pair.client, &pair.to).ok, 1);
    assert_int_equal(counted(&pair.client, &pair.to).failed, 0);
    /* Asked for again, with the option: for the link that is up as well. */
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .errors_count = 1};
    assert_int_equal(ringbus_target(pair.client.bus, SERVICE "/1", &options, NULL), 0);
    while (!rbi_end_find(pair.client.bus, pair.to.cluster, 1)->errors_count) {
        RUN_UNTIL(true, NODE_MS, &pair.client);
        (void)ringbus_poll(pair.client.bus, 16);
    }
    pair_ask(&pair, FAIL, 5000);
    assert_int_equal(counted(&pair.client, &pair.to).failed, 1);
    const struct ringbus_target_options wrong = {.struct_size = sizeof wrong, .errors_count = 2};
    assert_int_equal(ringbus_target(pair.client.bus, SERVICE "/1", &wrong, NULL),
                     RINGBUS_E_ARGUMENT);
    pair_close(&pair);
}

static void test_own_doing_is_not_counted(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, 1);
    pair.behaviour = IGNORE;
    CHECK(ringbus_request(pair.client.bus, &pair.to, 0, "hi", 2, 0, 60000, node_on_result,
                          &pair.client) == 1);
    const uint32_t slot = rbi_end_find(pair.client.bus, pair.to.cluster, 1)->outcome;
    assert_int_equal(ringbus_untarget(pair.client.bus, SERVICE "/1"), 0);
    RUN_UNTIL(ended(&pair.client) == 1, NODE_MS, &pair.client, &pair.server);
    struct rbi_outcome_copy seen;
    rbi_outcome_read(&pair.client.bus->outcomes.slots[slot], &seen);
    assert_int_equal(seen.lost + seen.failed + seen.ok, 0);
    pair_close(&pair);
}

/* A server that is killed in the middle of a call has failed it. */
static void child_serve(const struct cluster *where, void *context)
{
    enum behaviour behaviour = IGNORE;
    struct node node = {.on_message = serve, .context = &behaviour};
    (void)context;
    node_open(&node, where, SERVICE "/2");
    for (;;) {
        RUN_UNTIL(node.messages > 1000000, 3600000, &node);
    }
}

static void test_death_in_the_middle_is_counted(void **state)
{
    (void)state;
    struct node client = {0};
    const pid_t pid = child_start(child_serve, &cluster, NULL);
    node_open(&client, &cluster, NULL);
    const struct ringbus_addr to = node_target(&client, SERVICE "/2", 1, NULL);
    const uint32_t slot = rbi_end_find(client.bus, to.cluster, to.instance)->outcome;
    CHECK(ringbus_request(client.bus, &to, 0, "hi", 2, 0, 60000, node_on_result, &client) == 1);
    child_kill(pid);
    RUN_UNTIL(ended(&client) == 1, NODE_MS, &client);
    struct rbi_outcome_copy seen;
    rbi_outcome_read(&client.bus->outcomes.slots[slot], &seen);
    assert_int_equal(seen.lost, 1);
    node_close(&client);
}

static void test_report_counts_what_is_made_of_one_way_messages(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, 0);
    struct ringbus *bus = pair.client.bus;
    assert_int_equal(ringbus_report(bus, &pair.to, RINGBUS_REPORT_OK, 250), 0);
    assert_int_equal(ringbus_report(bus, &pair.client.peer, RINGBUS_REPORT_ERROR, 0), 0);
    assert_int_equal(ringbus_report(bus, &pair.to, RINGBUS_REPORT_TIMEOUT, UINT64_MAX), 0);
    const struct rbi_outcome_copy seen = counted(&pair.client, &pair.to);
    assert_int_equal(seen.ok, 1);
    assert_int_equal(seen.latency_ns, 250000 + UINT64_C(3600000000000)); /* bounded */
    assert_int_equal(seen.failed, 1);
    assert_int_equal(seen.lost, 1);
    struct ringbus_addr other = pair.to;
    assert_int_equal(ringbus_report(bus, NULL, RINGBUS_REPORT_OK, 0), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_report(bus, &other, 3, 0), RINGBUS_E_ARGUMENT);
    other.instance = RINGBUS_ANY;
    assert_int_equal(ringbus_report(bus, &other, RINGBUS_REPORT_OK, 0), RINGBUS_E_ARGUMENT);
    other.instance = 7;
    assert_int_equal(ringbus_report(bus, &other, RINGBUS_REPORT_OK, 0), RINGBUS_E_NOT_TARGET);
    other = pair.client.peer;
    other.incarnation++;
    assert_int_equal(ringbus_report(bus, &other, RINGBUS_REPORT_OK, 0), RINGBUS_E_PEER_GONE);
    pair_close(&pair);
}

/* More instances than a page has room for: the figures move, none is lost, slots come back. */
#define MANY 150U

static struct node many[MANY];

static void open_many(unsigned from, unsigned to_count, struct node *client)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    for (unsigned i = from; i < to_count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, SERVICE "s/%u", i + 1);
        struct ringbus_options options = node_options(&cluster, path);
        options.lane_bytes = 4096;
        node_open_with(&many[i], &options);
    }
    while (client->events[RINGBUS_EVENT_READY] < to_count) {
        assert_true(test_now_ms() < deadline_ms);
        for (unsigned i = 0; i < to_count; i++) {
            (void)ringbus_poll(many[i].bus, 16);
        }
        (void)ringbus_poll(client->bus, 256);
    }
}

static void report_each(struct node *client, uint64_t cluster_id, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct ringbus_addr to = {.cluster = cluster_id, .instance = (int32_t)i + 1};
        assert_int_equal(ringbus_report(client->bus, &to, RINGBUS_REPORT_OK, 10), 0);
        assert_int_equal(ringbus_report(client->bus, &to, RINGBUS_REPORT_ERROR, 5), 0);
    }
}

static void test_slots_grow_and_are_used_again(void **state)
{
    (void)state;
    struct node client = {0};
    struct ringbus_addr all;
    const uint64_t ok = raw_status(cluster.socket, "calls_ok");
    node_open(&client, &cluster, NULL);
    assert_int_equal(ringbus_target(client.bus, SERVICE "s", NULL, &all), 0);
    open_many(0, 30, &client);
    report_each(&client, all.cluster, 30);
    open_many(30, MANY, &client);
    report_each(&client, all.cluster, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        const struct ringbus_addr to = {.cluster = all.cluster, .instance = (int32_t)i + 1};
        const struct rbi_outcome_copy seen = counted(&client, &to);
        const unsigned times = i < 30 ? 2 : 1;
        assert_int_equal(seen.ok, times);
        assert_int_equal(seen.failed, times);
        assert_int_equal(seen.latency_ns, times * 15000);
        assert_int_equal(seen.in_a_row, 1);
    }
    wait_status("calls_ok", ok + MANY + 30);
    const uint32_t count = client.bus->outcomes.slot_count;
    assert_true(count > MANY);
    node_close(&many[MANY - 1]);
    while (client.events[RINGBUS_EVENT_DOWN] == 0) {
        (void)ringbus_poll(client.bus, 256);
    }
    node_open(&many[MANY - 1], &cluster, SERVICE "s/150");
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == MANY + 1, NODE_MS, &client, &many[MANY - 1]);
    const struct ringbus_addr last = {.cluster = all.cluster, .instance = (int32_t)MANY};
    assert_int_equal(ringbus_report(client.bus, &last, RINGBUS_REPORT_OK, 0), 0);
    assert_int_equal(client.bus->outcomes.slot_count, count);
    node_close(&client);
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&many[i]);
    }
}

static void test_a_new_daemon_is_told_and_does_not_count_the_past(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, 1);
    pair_ask(&pair, IGNORE, 10);
    pair_ask(&pair, ANSWER, 5000);
    assert_int_equal(cluster_stop(&cluster), 0);
    pair_ask(&pair, ANSWER, 5000);
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(pair.client.events[RINGBUS_EVENT_DAEMON_BACK] == 1 &&
                  pair.server.events[RINGBUS_EVENT_DAEMON_BACK] == 1,
              NODE_MS, &pair.client, &pair.server);
    uint64_t ok = 0;
    while (raw_status(cluster.socket, "calls_ok") == 0) { /* both ends must have told the link */
        pair_ask(&pair, ANSWER, 5000);
        assert_true(ok++ < 100000);
    }
    assert_int_equal(raw_status(cluster.socket, "calls_lost"), 0);
    pair_close(&pair);
}

/* Who meets five failures in a row goes elsewhere for a second, before anybody else has judged. */
static void test_five_failures_in_a_row_are_avoided_at_once(void **state)
{
    (void)state;
    enum behaviour behaviours[2] = {ANSWER, IGNORE};
    struct node servers[2] = {{.on_message = serve, .context = &behaviours[0]},
                              {.on_message = serve, .context = &behaviours[1]}};
    struct node client = {0};
    node_open(&servers[0], &cluster, SERVICE "2/1");
    node_open(&servers[1], &cluster, SERVICE "2/2");
    node_open(&client, &cluster, NULL);
    struct ringbus_addr any;
    assert_int_equal(ringbus_target(client.bus, SERVICE "2", NULL, &any), 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &client, &servers[0], &servers[1]);
    struct ringbus_addr bad = {.cluster = any.cluster, .instance = 2};
    for (unsigned i = 0; i < 5; i++) {
        assert_false(rbi_end_find(client.bus, any.cluster, 2)->avoided);
        assert_int_equal(ringbus_report(client.bus, &bad, RINGBUS_REPORT_TIMEOUT, 0), 0);
    }
    assert_true(rbi_end_find(client.bus, any.cluster, 2)->avoided);
    for (unsigned i = 0; i < 50; i++) {
        CHECK(ringbus_send(client.bus, &any, 0, "x", 1, 0) == 1);
    }
    RUN_UNTIL(servers[0].messages == 50, NODE_MS, &client, &servers[0], &servers[1]);
    assert_int_equal(servers[1].messages, 0);
    /* What names it goes there all the same, and after the second so does the rest. */
    CHECK(ringbus_send(client.bus, &bad, 0, "x", 1, 0) == 1);
    RUN_UNTIL(servers[1].messages == 1, NODE_MS, &client, &servers[0], &servers[1]);
    RUN_UNTIL(!rbi_end_find(client.bus, any.cluster, 2)->avoided, NODE_MS, &client, &servers[0],
              &servers[1]);
    node_close(&client);
    node_close(&servers[0]);
    node_close(&servers[1]);
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
        cmocka_unit_test(test_requests_are_counted_by_how_they_end),
        cmocka_unit_test(test_errors_of_handlers_count_as_answered_by_default),
        cmocka_unit_test(test_own_doing_is_not_counted),
        cmocka_unit_test(test_death_in_the_middle_is_counted),
        cmocka_unit_test(test_report_counts_what_is_made_of_one_way_messages),
        cmocka_unit_test(test_five_failures_in_a_row_are_avoided_at_once),
        cmocka_unit_test(test_slots_grow_and_are_used_again),
        cmocka_unit_test(test_a_new_daemon_is_told_and_does_not_count_the_past),
    };
    return cmocka_run_group_tests(tests, up, down);
}
