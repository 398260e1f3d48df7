/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Degrade switch and mock (features 2.10, J34): what ends a request when nobody is to be asked, or
 * nobody handled it; flagged, and counted apart from replies.
 */
#include "support/bus.h"
#include "support/test.h"

#include <string.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"

static struct cluster cluster;
static struct node server;
static struct node client;
static struct ringbus_addr any;
static const struct ringbus_part part = {"abc", 3};
static int refusal; /* 0: it answers */

static void serve(struct node *node, const struct ringbus_message *message)
{
    const struct ringbus_reply_to *to = &message->reply_to;
    if (refusal != 0) {
        CHECK(ringbus_reply_refused(node->bus, to, refusal, 0) == 1);
    } else {
        CHECK(ringbus_reply(node->bus, to, "true", 4, 0) == 1);
    }
}

static void open_client(void)
{
    node_open(&client, &cluster, NULL);
    assert_int_equal(ringbus_target(client.bus, SERVER, NULL, &any), 0);
}

static void open_pair(void)
{
    refusal = 0;
    server.on_message = serve;
    node_open(&server, &cluster, SERVER_1);
    node_open(&client, &cluster, NULL);
    any = node_target(&client, SERVER, 1, &server);
}

static void close_pair(void)
{
    node_close(&client);
    node_close(&server);
}

static struct ringbus_result last;
static unsigned ended;
static bool mocked;
static char reply[256];
static char kept_reply[256];
static uint32_t reply_method;

static void note(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const struct ringbus_message *message = result->message;
    struct ringbus_kept *kept = NULL;
    (void)context;
    last = *result;
    mocked = false;
    reply[0] = kept_reply[0] = '\0';
    if (message != NULL) {
        mocked = (message->flags & RINGBUS_MESSAGE_MOCKED) != 0;
        CHECK(message->kind == RINGBUS_KIND_REPLY && message->size < sizeof reply);
        CHECK(message->part_count == 1 && message->parts[0].size == message->size);
        if (message->size > 0) {
            memcpy(reply, message->data, message->size);
        }
        reply[message->size] = '\0';
        reply_method = message->attributes != NULL ? message->attributes->method : 0;
        CHECK(ringbus_keep(bus, message, &kept) == 0);
        memcpy(kept_reply, kept->data, kept->size);
        kept_reply[kept->size] = '\0';
        CHECK(ringbus_release(bus, kept) == 0);
    }
    ended++;
}

static int begin(uint32_t method)
{
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .timeout_ms = 60000, .method = method};
    return ringbus_request_with(client.bus, &any, &part, 1, &options, note, NULL);
}

static void ask(uint32_t method)
{
    const unsigned before = ended;
    assert_int_equal(begin(method), 1);
    assert_int_equal(ended, before);
    RUN_UNTIL(ended == before + 1, NODE_MS, &client, server.bus != NULL ? &server : NULL);
}

static struct ringbus_degrade rule(enum ringbus_degrade_action action, unsigned triggers)
{
    return (struct ringbus_degrade){
        .struct_size = sizeof(struct ringbus_degrade), .action = action, .triggers = triggers};
}

static void set(const struct ringbus_degrade *rules, unsigned count)
{
    assert_int_equal(ringbus_degrade(client.bus, SERVER, rules, count), 0);
}

/* ---- switched by hand --------------------------------------------------------------------- */

/* Methods 10 to 19 are mocked, 30 and above fail, all others go where they always go. */
static void test_manual(void **state)
{
    (void)state;
    open_pair();
    struct ringbus_degrade rules[2] = {rule(RINGBUS_DEGRADE_MOCK, RINGBUS_DEGRADE_MANUAL),
                                       rule(RINGBUS_DEGRADE_FAIL, RINGBUS_DEGRADE_MANUAL)};
    rules[0].method_low = 10;
    rules[0].method_high = 19;
    rules[0].mock = "mock";
    rules[0].mock_size = 4;
    rules[1].method_low = 30;
    set(rules, 2);
    for (uint32_t method = 8; method <= 21; method++) {
        ask(method);
        const bool covered = method >= 10 && method <= 19;
        assert_int_equal(last.outcome, RINGBUS_REPLIED);
        assert_int_equal(mocked, covered);
        assert_string_equal(reply, covered ? "mock" : "true");
        assert_string_equal(kept_reply, reply);
        assert_int_equal(reply_method, method);
        assert_int_equal(last.tries, covered ? 0 : 1);
    }
    assert_int_equal(begin(30), RINGBUS_E_DENIED);
    assert_int_equal(begin(UINT32_MAX), RINGBUS_E_DENIED);
    assert_int_equal(server.messages, 4);
    assert_int_equal(node_stats(&client).mocked, 10);
    assert_int_equal(node_stats(&client).replies, 4);
    assert_int_equal(node_stats(&client).requests, 4);
    /* Plain requests have method 0; one instance that is named is asked. */
    const unsigned before = ended;
    rules[0].method_low = rules[0].method_high = 0;
    set(rules, 1);
    assert_int_equal(ringbus_request(client.bus, &any, 0, "x", 1, 0, 60000, note, NULL), 1);
    RUN_UNTIL(ended == before + 1, NODE_MS, &client, &server);
    assert_true(mocked);
    assert_int_equal(ringbus_request(client.bus, &client.peer, 0, "x", 1, 0, 60000, note, NULL), 1);
    RUN_UNTIL(ended == before + 2, NODE_MS, &client, &server);
    assert_false(mocked);
    /* And off again. */
    set(NULL, 0);
    ask(10);
    assert_string_equal(reply, "true");
    close_pair();
}

/* ---- when nobody handles it ---------------------------------------------------------------- */

static void test_triggers(void **state)
{
    (void)state;
    struct ringbus_degrade mock = rule(RINGBUS_DEGRADE_MOCK, RINGBUS_DEGRADE_NO_INSTANCE);
    mock.mock = "none";
    mock.mock_size = 4;
    server.bus = NULL;
    open_client();
    assert_true(begin(1) < 0); /* nobody is there */
    set(&mock, 1);
    ask(1);
    assert_true(mocked);
    assert_string_equal(reply, "none");
    close_pair();
    /* Who is there is asked; its own failure is not one of these. */
    open_pair();
    set(&mock, 1);
    ask(1);
    assert_false(mocked);
    refusal = RINGBUS_E_LIMITED;
    ask(1);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_LIMITED);
    mock.triggers = RINGBUS_DEGRADE_LIMITED;
    set(&mock, 1);
    ask(1);
    assert_true(mocked);
    assert_int_equal(last.tries, 1);
    refusal = RINGBUS_E_SHED;
    ask(1);
    assert_true(mocked);
    refusal = RINGBUS_E_DENIED;
    ask(1);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_DENIED);
    /* "fail" is what happens anyhow. */
    refusal = RINGBUS_E_LIMITED;
    mock = rule(RINGBUS_DEGRADE_FAIL, RINGBUS_DEGRADE_LIMITED);
    set(&mock, 1);
    ask(1);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    close_pair();
}

/* ---- a callback of the application's -------------------------------------------------------- */

static unsigned local_calls;
static int local_result;

static int answer_here(struct ringbus *bus,
                       const struct ringbus_message *request,
                       struct ringbus_part *out,
                       void *context)
{
    struct ringbus_addr self;
    CHECK(context == &local_calls);
    CHECK(ringbus_self(bus, &self) == 0 && memcmp(&self, &request->from, sizeof self) == 0);
    CHECK(request->size == 3 && memcmp(request->data, "abc", 3) == 0);
    CHECK(request->attributes->method == 7 && request->kind == RINGBUS_KIND_REQUEST);
    CHECK(ringbus_poll(bus, 1) == RINGBUS_E_BUSY);
    struct ringbus_kept *kept = NULL;
    CHECK(ringbus_keep(bus, request, &kept) == 0 && memcmp(kept->data, "abc", 3) == 0);
    CHECK(ringbus_release(bus, kept) == 0);
    local_calls++;
    out->data = "local";
    out->size = 5;
    /* It may switch itself off while it runs. */
    CHECK(ringbus_degrade(bus, SERVER, NULL, 0) == 0);
    return local_result;
}

static void test_local_callback(void **state)
{
    (void)state;
    struct ringbus_degrade local = rule(RINGBUS_DEGRADE_LOCAL, RINGBUS_DEGRADE_MANUAL);
    local.local = answer_here;
    local.context = &local_calls;
    open_pair();
    local_calls = 0;
    local_result = 0;
    set(&local, 1);
    ask(7);
    assert_int_equal(local_calls, 1);
    assert_true(mocked);
    assert_string_equal(reply, "local");
    local_result = RINGBUS_E_HANDLER_FAILED;
    set(&local, 1);
    ask(7);
    assert_int_equal(local_calls, 2);
    assert_int_equal(last.outcome, RINGBUS_FAILED);
    assert_int_equal(last.error, RINGBUS_E_HANDLER_FAILED);
    assert_int_equal(node_stats(&client).mocked, 2);
    assert_int_equal(server.messages, 0);
    close_pair();
}

/* ---- wrong rules ----------------------------------------------------------------------------- */

static void test_wrong_rules(void **state)
{
    (void)state;
    open_pair();
    const struct ringbus_degrade right = rule(RINGBUS_DEGRADE_MOCK, RINGBUS_DEGRADE_MANUAL);
    struct ringbus_degrade wrong[8];
    for (unsigned i = 0; i < 8; i++) {
        wrong[i] = right;
    }
    wrong[0].struct_size = 8;
    wrong[1].action = (enum ringbus_degrade_action)3;
    wrong[2].triggers = 0;
    wrong[3].triggers = 0x10;
    wrong[4].method_low = 2;
    wrong[4].method_high = 1;
    wrong[5].local = answer_here;
    wrong[6].action = RINGBUS_DEGRADE_LOCAL;
    wrong[7].mock_size = 1;
    for (unsigned i = 0; i < 8; i++) {
        const struct ringbus_degrade two[2] = {right, wrong[i]};
        assert_int_equal(ringbus_degrade(client.bus, SERVER, two, 2), RINGBUS_E_ARGUMENT);
    }
    ask(1);
    assert_false(mocked); /* a list with one wrong rule changes nothing */
    assert_int_equal(ringbus_degrade(client.bus, SERVER, &right, 65), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_degrade(client.bus, SERVER, NULL, 1), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_degrade(client.bus, SERVER_1, &right, 1), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_degrade(client.bus, "/no", &right, 1), RINGBUS_E_PATH);
    assert_int_equal(ringbus_degrade(client.bus, "/a/b/c/d/e/f", &right, 1), RINGBUS_E_NOT_TARGET);
    close_pair();
}

/* A program built against a later version, whose rules are larger. */
static void test_rules_of_a_later_version(void **state)
{
    (void)state;
    struct later {
        struct ringbus_degrade rule;
        uint64_t more;
    } later[2] = {{.rule = rule(RINGBUS_DEGRADE_MOCK, RINGBUS_DEGRADE_MANUAL), .more = UINT64_MAX},
                  {.rule = rule(RINGBUS_DEGRADE_MOCK, RINGBUS_DEGRADE_MANUAL), .more = UINT64_MAX}};
    open_pair();
    for (unsigned i = 0; i < 2; i++) {
        later[i].rule.struct_size = sizeof later[i];
        later[i].rule.method_low = later[i].rule.method_high = i + 1;
        later[i].rule.mock = &"abc"[i];
        later[i].rule.mock_size = 3 - i;
    }
    set(&later[0].rule, 2);
    ask(2);
    assert_true(mocked);
    assert_string_equal(reply, "bc");
    later[0].rule.struct_size = sizeof later[0] - 1;
    assert_int_equal(ringbus_degrade(client.bus, SERVER, &later[0].rule, 2), RINGBUS_E_ARGUMENT);
    close_pair();
}

/* ---------------------------------------------------------------------------------------------- */

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
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_triggers),
        cmocka_unit_test(test_local_callback),
        cmocka_unit_test(test_wrong_rules),
        cmocka_unit_test(test_rules_of_a_later_version),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
