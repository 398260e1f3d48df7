/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features 2.6, "every rule has dry_run: count what it would do": limits and rules of the router
 * chain that are run dry change nothing, and what they would have done is counted by their ids, of
 * all callers together, where ringbusctl metrics and explain read it.
 */
#include "bus/dry_run.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>

#define PLACE   "/game/eu/pc/w1/core"
#define SERVICE PLACE "/service"
#define CALLS   40U

static struct cluster cluster;
static struct node servers[2];

static const char config[] = "clusters:\n"
                             "  - match: " SERVICE "\n"
                             "    balance: {keyless: rr}\n"
                             "    limits: [{id: tight, rate: 1, burst: 5, dry_run: true}]\n"
                             "    rules: [{id: first, instance: '1', dry_run: true}]\n";

static void serve(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
}

/** Calls in turn, all of which are answered. @return messages that the limit would have refused */
static uint64_t call_all(void)
{
    struct node caller = {.bus = NULL};
    node_open(&caller, &cluster, NULL);
    struct ringbus_addr to;
    CHECK(ringbus_target(caller.bus, SERVICE, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &servers[0], &servers[1]);
    for (unsigned i = 0; i < CALLS; i++) {
        CHECK(ringbus_request(caller.bus, &to, 0, "hi", 2, 0, NODE_MS, node_on_result, &caller) ==
              1);
        RUN_UNTIL(caller.replies[RINGBUS_REPLIED] == i + 1, NODE_MS, &caller, &servers[0],
                  &servers[1]);
    }
    const uint64_t refused = node_stats(&caller).limited_dry;
    node_close(&caller); /* what was not told yet is told now */
    return refused;
}

struct sums {
    unsigned rows;
    uint64_t limit;
    uint64_t rule;
};

static struct sums sums_now(void)
{
    const struct rbi_wire_query query = {.what = RBI_QUERY_DRY_RUNS};
    struct sums sums = {.rows = 0};
    struct raw raw;
    struct raw_message message;
    assert_int_equal(raw_up(&raw, cluster.socket, ""), 0);
    assert_int_equal(raw_send(&raw, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    for (;;) {
        assert_int_equal(raw_receive(&raw, &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_QUERY_END) {
            break;
        }
        const struct rbi_wire_row_dry_run *row = &message.body.row_dry_run;
        assert_int_equal(message.header.type, RBI_WIRE_ROW_DRY_RUN);
        assert_string_equal(row->path.bytes, SERVICE);
        sums.rows++;
        if (row->kind == RBI_DRY_LIMIT) {
            assert_string_equal(row->rule.bytes, "tight");
            sums.limit = row->count;
        } else {
            assert_int_equal(row->kind, RBI_DRY_RULE);
            assert_string_equal(row->rule.bytes, "first");
            sums.rule = row->count;
        }
    }
    raw_close(&raw);
    return sums;
}

static void wait_for(uint64_t limit, uint64_t rule)
{
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    struct sums sums;
    do {
        assert_true(test_now_ms() < end_ms);
        sums = sums_now();
    } while (sums.limit < limit || sums.rule < rule);
    assert_int_equal(sums.limit, limit);
    assert_int_equal(sums.rule, rule);
}

static void test_dry_runs_are_counted_by_rule(void **state)
{
    (void)state;
    const uint64_t first = call_all();
    assert_true(first > 0 && first <= CALLS - 5);
    /* In turn: every other one went to instance 2, which the rule would have taken out. */
    wait_for(first, CALLS / 2);
    assert_int_equal(servers[1].messages, CALLS / 2);
    const uint64_t second = call_all();
    wait_for(first + second, CALLS);
}

/* Callers may say anything: only of rules that there are, and that are run dry. */
static void test_only_rules_that_there_are_count(void **state)
{
    (void)state;
    struct raw raw;
    const struct sums before = sums_now();
    struct rbi_wire_dry_run body = {
        .cluster = rbi_cluster_id(SERVICE, sizeof SERVICE - 1), .kind = RBI_DRY_RULE, .count = 7};
    assert_int_equal(raw_up(&raw, cluster.socket, ""), 0);
    rbi_text_set(&body.rule, "made-up");
    assert_int_equal(raw_send(&raw, RBI_WIRE_DRY_RUN, &body, NULL, 0), 0);
    body.kind = RBI_DRY_SET;
    rbi_text_set(&body.rule, "");
    assert_int_equal(raw_send(&raw, RBI_WIRE_DRY_RUN, &body, NULL, 0), 0);
    body.cluster++;
    assert_int_equal(raw_send(&raw, RBI_WIRE_DRY_RUN, &body, NULL, 0), 0);
    body = (struct rbi_wire_dry_run){.cluster = rbi_cluster_id(SERVICE, sizeof SERVICE - 1),
                                     .kind = RBI_DRY_RULE,
                                     .count = UINT64_MAX};
    rbi_text_set(&body.rule, "first");
    assert_int_equal(raw_send(&raw, RBI_WIRE_DRY_RUN, &body, NULL, 0), 0);
    wait_for(before.limit, UINT64_MAX); /* no sum wraps around */
    assert_int_equal(sums_now().rows, 2);
    raw_close(&raw);
}

/* Not dry any more: forgotten. */
static void test_another_configuration_forgets(void **state)
{
    (void)state;
    assert_int_equal(sums_now().rows, 2);
    assert_int_equal(cluster_configure(&cluster, "clusters: [{match: " SERVICE ", limits: [{id: "
                                                 "tight, rate: 1, dry_run: true}]}]\n"),
                     0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (sums_now().rows != 1) {
        assert_true(test_now_ms() < end_ms);
    }
    assert_true(sums_now().limit > 0);
}

static int up(void **state)
{
    (void)state;
    if (cluster_up(&cluster, config) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < 2; i++) {
        servers[i].on_message = serve;
        node_open(&servers[i], &cluster, i == 0 ? SERVICE "/1" : SERVICE "/2");
    }
    return 0;
}

static int down(void **state)
{
    (void)state;
    node_close(&servers[0]);
    node_close(&servers[1]);
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dry_runs_are_counted_by_rule),
        cmocka_unit_test(test_only_rules_that_there_are_count),
        cmocka_unit_test(test_another_configuration_forgets),
    };
    return cmocka_run_group_tests(tests, up, down);
}
