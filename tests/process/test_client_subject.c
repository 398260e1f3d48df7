/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that are about some callers only, by the process that they are (J20, features 2.6): user,
 * group, program, control group; what the caller does, what it explains, and what a tool can know.
 */
#include "bus/wire.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HALL   "/game/eu/pc/w1/core/hall"
#define CALLER "/game/eu/pc/w1/core/gate/1"

static struct cluster cluster;
static struct node servers[2]; /* mine, other */
static struct node caller;
static struct node other;
static struct ringbus_addr to;

static void count_out(void *user, const struct ringbus_explain_row *row)
{
    unsigned *out = user;
    if (row->kind == RINGBUS_EXPLAIN_OUT && strcmp(row->path, HALL "/other") == 0) {
        CHECK(strcmp(row->stage, "rules") == 0 && strcmp(row->rule, "mine") == 0);
        (*out)++;
    }
}

/* Whether an endpoint finds that a rule keeps messages of the caller from the other one. */
static bool explained(struct node *node, const struct ringbus_explain_options *options)
{
    unsigned out = 0;
    CHECK(ringbus_explain(node->bus, HALL, options, count_out, &out) >= 0);
    return out == 1;
}

static void configure(const char *rule)
{
    char config[1024];
    (void)snprintf(config, sizeof config,
                   "clusters:\n"
                   "  - match: " HALL "\n"
                   "    balance: {keyless: rr}\n"
                   "    rules: [{id: mine, caller: %s, instance: mine}]\n",
                   rule);
    assert_int_equal(cluster_configure(&cluster, config), 0);
    const unsigned before = cluster_log_count(&cluster, "event=reloaded");
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    while (cluster_log_count(&cluster, "event=reloaded") == before) {
        test_sleep_ms(5);
    }
}

/* @return how many of 20 messages came to the other one */
static uint64_t others_share(void)
{
    const uint64_t before = servers[1].messages;
    const uint64_t all = servers[0].messages + before;
    for (unsigned i = 0; i < 20; i++) {
        CHECK(ringbus_send(caller.bus, &to, 0, "hi", 2, 0) == 1);
    }
    RUN_UNTIL(servers[0].messages + servers[1].messages == all + 20, NODE_MS, &caller, &servers[0],
              &servers[1]);
    return servers[1].messages - before;
}

/* Whether the rule is about the caller: as it explains, and as it does when it has seen it. */
static void expect(bool holds)
{
    const uint64_t expected = holds ? 0 : 10;
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    RUN_UNTIL(explained(&caller, NULL) == holds, NODE_MS, &caller, &servers[0], &servers[1]);
    while (others_share() != expected) {
        assert_true(test_now_ms() < end_ms);
    }
    assert_int_equal(others_share(), expected);
}

static void test_rule_is_about_some_callers(void **state)
{
    char rule[256];
    (void)state;
    expect(false);
    (void)snprintf(rule, sizeof rule, "{uid: %u, gid: %u}", geteuid(), getegid());
    configure(rule);
    expect(true);
    (void)snprintf(rule, sizeof rule, "{uid: %u}", geteuid() + 1);
    configure(rule);
    expect(false);
    configure("{program: test_client_subject}");
    expect(true);
    configure("{program: /usr/bin/test_client_subject}");
    expect(false);
    configure("{cgroup: /no/such/group}");
    expect(false);
}

/* The daemon says which process an instance is of, and whoever explains goes by that. */
static void test_explanation_of_another_caller(void **state)
{
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_who who = {.path = {.length = 0}};
    (void)state;
    configure("{program: test_client_subject}");
    expect(true);
    RUN_UNTIL(explained(&other, NULL), NODE_MS, &other);
    struct ringbus_explain_options options = {.struct_size = sizeof options, .caller = CALLER};
    assert_false(explained(&other, &options)); /* nothing is known of it */
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    rbi_text_set(&who.path, CALLER);
    assert_int_equal(raw_send(&raw, RBI_WIRE_WHO, &who, NULL, 0), 0);
    assert_int_equal(raw_expect(&raw, RBI_WIRE_WHO_IS, &message, RAW_TIMEOUT_MS), 0);
    const struct rbi_wire_who_is *is = &message.body.who_is;
    assert_int_equal(is->uid, geteuid());
    assert_int_equal(is->gid, getegid());
    const struct ringbus_subject subject = {
        .uid = is->uid, .gid = is->gid, .program = is->program.bytes, .cgroup = is->cgroup.bytes};
    options.subject = &subject;
    assert_true(explained(&other, &options));
    raw_message_deinit(&message);
    rbi_text_set(&who.path, HALL "/nobody");
    assert_int_equal(raw_send(&raw, RBI_WIRE_WHO, &who, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RINGBUS_E_NO_INSTANCE);
    raw_close(&raw);
}

static int up(void **state)
{
    (void)state;
    if (cluster_up(&cluster, "clusters: [{match: " HALL ", balance: {keyless: rr}}]\n") != 0) {
        return -1;
    }
    node_open(&servers[0], &cluster, HALL "/mine");
    node_open(&servers[1], &cluster, HALL "/other");
    node_open(&caller, &cluster, CALLER);
    node_open(&other, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, HALL, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &servers[0], &servers[1]);
    return 0;
}

static int down(void **state)
{
    (void)state;
    node_close(&other);
    node_close(&caller);
    node_close(&servers[0]);
    node_close(&servers[1]);
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_is_about_some_callers),
        cmocka_unit_test(test_explanation_of_another_caller),
    };
    return cmocka_run_group_tests(tests, up, down);
}
