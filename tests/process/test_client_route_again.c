/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 88, where a choice is not the first one made for a message: copies and later tries of a
 * request, one that is asked of all, and what a handler asks in turn (features 2.6: the tag goes
 * with it; 2.10). What was said of the message holds for each of them, and so do rights by method
 * (2.11): who may not be sent it gets none, and does not have it refused either.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define HALL "/game/eu/pc/w1/core/hall"
#define DOOR "/game/eu/pc/w1/core/door"

#define HALLS  5U
#define CANARY 2U /* tagged v2; the last one is tagged pre */

static struct cluster cluster;
static struct node halls[HALLS];
static struct node door;
static struct node caller;
static struct ringbus_addr hall;
static unsigned asked; /* bit by hall */
static bool refuses[HALLS];
static unsigned ends;
static struct ringbus_result last;

static void serve(struct node *node, const struct ringbus_message *message)
{
    const size_t number = (size_t)(node - halls);
    asked |= 1U << number;
    if (message->kind == RINGBUS_KIND_REQUEST && refuses[number]) {
        CHECK(ringbus_reply_refused(node->bus, &message->reply_to, RINGBUS_E_SHED, 0) == 1);
    } else if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    }
}

static void on_end(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last = *result;
    ends++;
}

static void until_ended(unsigned count)
{
    RUN_UNTIL(ends >= count, NODE_MS, &caller, &door, &halls[0], &halls[1], &halls[2], &halls[3],
              &halls[4]);
}

static void up(const char *policy)
{
    char config[1024];
    static const char *const tags[HALLS] = {"", "", "v2", "", "pre"};
    memset(halls, 0, sizeof halls);
    memset(&door, 0, sizeof door);
    memset(&caller, 0, sizeof caller);
    memset(refuses, 0, sizeof refuses);
    ends = asked = 0;
    bus_shared_reset();
    (void)snprintf(config, sizeof config, "clusters:\n  - match: " HALL "\n%s", policy);
    assert_int_equal(cluster_up(&cluster, config), 0);
    for (unsigned i = 0; i < HALLS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, HALL "/%u", i + 1);
        struct ringbus_options options = node_options(&cluster, path);
        options.tags = tags[i];
        halls[i].on_message = serve;
        node_open_with(&halls[i], &options);
    }
    node_open(&door, &cluster, DOOR "/1");
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, HALL, NULL, &hall) == 0);
    CHECK(ringbus_target(door.bus, HALL, NULL, &hall) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == HALLS &&
                  door.events[RINGBUS_EVENT_READY] == HALLS,
              NODE_MS, &caller, &door, &halls[0], &halls[1], &halls[2], &halls[3], &halls[4]);
}

static void down(void)
{
    node_close(&caller);
    node_close(&door);
    for (unsigned i = 0; i < HALLS; i++) {
        node_close(&halls[i]);
    }
    cluster_down(&cluster);
}

static void ask(uint64_t key)
{
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = key, .timeout_ms = 5000};
    const unsigned before = ends;
    CHECK(ringbus_request_with(caller.bus, &hall, &part, 1, &options, on_end, NULL) == 1);
    until_ended(before + 1);
}

/* Both copies of what is of a canary by its key: a player stays on one side. */
static void test_copies_by_key(void **state)
{
    (void)state;
    up("    tags: {canaries: [{id: early, tag: v2, share: 100%}]}\n"
       "    retry: {mode: forking, forks: 2}\n");
    for (uint64_t key = 0; key < 40; key += 2) {
        ask(key);
        assert_int_equal(last.outcome, RINGBUS_REPLIED);
    }
    until_ended(20);
    assert_int_equal(asked, 1U << CANARY);
    down();
}

/* Its owner refuses: a later try is still one of those that the rule names. */
static void test_later_tries_by_key(void **state)
{
    (void)state;
    up("    rules: [{id: low, key: {mask: 1, value: 1}, mode: strict, instance: '1*'},\n"
       "            {id: high, key: {mask: 1, value: 0}, mode: strict, tag: v2}]\n"
       "    retry: {mode: failover, tries: 3, budget: 100%, once_per_instance: false}\n");
    refuses[0] = true;
    refuses[CANARY] = true;
    for (uint64_t key = 0; key < 20; key++) {
        ask(key);
        assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
        assert_int_equal(last.error, RINGBUS_E_SHED);
    }
    assert_int_equal(asked, 1U << 0 | 1U << CANARY);
    down();
}

/* "All" are all that the stages leave: nobody that is tagged. */
static void test_asked_of_all(void **state)
{
    (void)state;
    up("    retry: {mode: broadcast}\n"
       "instances: {" HALL "/4: {isolated: true}}\n");
    ask(1);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(asked, 1U << 0 | 1U << 1);
    down();
}

/* Of the untagged ones the first may be sent no orders, and the second nothing at all. */
static void test_by_rights_to_methods(void **state)
{
    (void)state;
    enum { ORDER = 5, MANY = 60 };
    up("    balance: {keyless: random}\n"
       "rights: {rules: [{id: orders, action: deny, verbs: [send], methods: 5, to: " HALL "/1},\n"
       "                 {id: never, action: deny, verbs: [send], to: " HALL "/2},\n"
       "                 {id: none-of-it, action: deny, verbs: [send], methods: 6}]}\n");
    const struct ringbus_part part = {"x", 1};
    struct ringbus_message_options options = {.struct_size = sizeof options, .timeout_ms = 5000};
    for (unsigned i = 0; i < MANY; i++) {
        options.method = i % 2 == 0 ? ORDER : 7;
        options.flags = i % 3 == 0 ? RINGBUS_KEY : 0;
        options.key = i;
        asked = 0;
        CHECK(ringbus_request_with(caller.bus, &hall, &part, 1, &options, on_end, NULL) == 1);
        until_ended(i + 1);
        assert_int_equal(last.outcome, RINGBUS_REPLIED);
        assert_true(asked == 1U << 3 || (asked == 1U << 0 && options.method != ORDER));
    }
    options.method = 6;
    assert_int_equal(ringbus_request_with(caller.bus, &hall, &part, 1, &options, on_end, NULL),
                     RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "\"acl\": ringbusctl explain"));
    asked = 0;
    for (unsigned i = 0; i < MANY; i++) { /* method 0, and nothing is said of it */
        CHECK(ringbus_request(caller.bus, &hall, i, "x", 1, i % 2 == 0 ? RINGBUS_KEY : 0, 5000,
                              on_end, NULL) == 1);
    }
    until_ended(2 * MANY);
    assert_int_equal(asked, 1U << 0 | 1U << 3);
    down();
}

/* All bar the same: nobody is rather chosen, and plain messages go the short way. */
static void test_by_rights_that_do_not_differ(void **state)
{
    (void)state;
    up("rights: {rules: [{id: none, action: deny, verbs: [send], methods: 5}]}\n");
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .method = 5, .timeout_ms = 5000};
    CHECK(ringbus_send(caller.bus, &hall, 0, "x", 1, 0) == 1);
    const struct rbi_cluster *at = rbi_cluster_find(caller.bus, hall.cluster);
    assert_false(at->barring);
    assert_int_equal(at->dispatch_stale, RBI_DISPATCH_FRESH);
    assert_int_equal(ringbus_request_with(caller.bus, &hall, &part, 1, &options, on_end, NULL),
                     RINGBUS_E_DENIED);
    down();
}

static bool by_plain;

static void pass_on(struct node *node, const struct ringbus_message *message)
{
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options options = {.struct_size = sizeof options};
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    if (by_plain) {
        CHECK(ringbus_request(node->bus, &hall, 0, "x", 1, 0, 5000, on_end, NULL) == 1);
    } else {
        CHECK(ringbus_request_with(node->bus, &hall, &part, 1, &options, on_end, NULL) == 1);
    }
}

/* The tag of what a handler has at hand is that of what it asks, however it asks. */
static void test_nested_ones_go_where_their_tag_leads(void **state)
{
    (void)state;
    struct ringbus_addr to;
    up("    tags: {mode: strict}\n");
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .tag = "v2", .timeout_ms = 5000};
    door.on_message = pass_on;
    CHECK(ringbus_target(caller.bus, DOOR, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == HALLS + 1, NODE_MS, &caller, &door);
    for (unsigned i = 0; i < 20; i++) {
        by_plain = i % 2 == 1;
        CHECK(ringbus_request_with(caller.bus, &to, &part, 1, &options, on_end, NULL) == 1);
        until_ended(2 * i + 2);
        assert_int_equal(asked, 1U << CANARY);
    }
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_by_key),
        cmocka_unit_test(test_later_tries_by_key),
        cmocka_unit_test(test_asked_of_all),
        cmocka_unit_test(test_by_rights_to_methods),
        cmocka_unit_test(test_by_rights_that_do_not_differ),
        cmocka_unit_test(test_nested_ones_go_where_their_tag_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
