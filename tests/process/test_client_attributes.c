/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sender says of a message beside its payload: it arrives whole by every way a message can
 * take, stays with what is sent on or given back, and is inherited by what a handler sends
 * (features D17, J18, J22, 2.9).
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define SERVER_2 SERVER "/2"
#define BACK     "/game/eu/pc/w1/core/back"
#define BACK_1   BACK "/1"

static struct cluster cluster;
static struct node server;
static struct node client;
static struct node back;

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- a message that says everything -------------------------------------------------------- */

static struct ringbus_message_options everything(void)
{
    struct ringbus_message_options options = {.struct_size = sizeof options,
                                              .flags = RINGBUS_KEY,
                                              .key = 77,
                                              .tag = "canary",
                                              .method = 12,
                                              .labels = {1, 2, 3, 4},
                                              .priority = 2,
                                              .timeout_ms = 60000,
                                              .span_id = 9,
                                              .codec = 5,
                                              .schema = 6};
    memset(options.trace_id, 0xab, sizeof options.trace_id);
    return options;
}

static struct ringbus_attributes seen;
static char seen_tag[RINGBUS_TAG_MAX + 1];
static unsigned char seen_data[32768];
static size_t seen_size;
static unsigned seen_parts;
static uint64_t seen_key;
static unsigned seen_flags;
static unsigned seen_count;
static bool seen_none;

static void look(const struct ringbus_message *message)
{
    seen_count++;
    seen_none = message->attributes == NULL;
    seen_size = message->size;
    seen_parts = message->part_count;
    seen_key = message->key;
    seen_flags = message->flags;
    CHECK(message->size <= sizeof seen_data);
    if (message->size > 0) {
        memcpy(seen_data, message->data, message->size);
    }
    if (message->attributes != NULL) {
        seen = *message->attributes;
        (void)snprintf(seen_tag, sizeof seen_tag, "%s", seen.tag);
    }
}

static void on_look(struct node *node, const struct ringbus_message *message)
{
    look(message);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "yes", 3, 0) == 1);
    }
}

static void check_everything(void)
{
    const struct ringbus_message_options sent = everything();
    assert_false(seen_none);
    assert_string_equal(seen_tag, "canary");
    assert_int_equal(seen.method, 12);
    assert_memory_equal(seen.labels, sent.labels, sizeof seen.labels);
    assert_int_equal(seen.priority, 2);
    assert_int_equal(seen.codec, 5);
    assert_int_equal(seen.schema, 6);
    assert_memory_equal(seen.trace_id, sent.trace_id, 16);
    assert_true(seen.span_id == 9);
    assert_true(seen.sent_ns <= now_ns() && now_ns() - seen.sent_ns < 30000000000U);
    assert_true(seen.deadline_ns - seen.sent_ns == 60000000000U);
    assert_true(seen_key == 77);
    assert_int_equal(seen_flags & RINGBUS_MESSAGE_KEY, RINGBUS_MESSAGE_KEY);
}

static struct ringbus_addr to;

static void open_pair(void)
{
    seen_count = 0;
    server.on_message = on_look;
    node_open(&server, &cluster, SERVER_1);
    node_open(&client, &cluster, NULL);
    to = node_target(&client, SERVER, 1, &server);
}

static void close_pair(void)
{
    node_close(&client);
    node_close(&server);
}

/* One piece and several, in the lane and by reference, one way and as a request, to one and to
 * all. */
static void test_arrive_by_every_way(void **state)
{
    (void)state;
    static unsigned char large[20000];
    const struct ringbus_message_options options = everything();
    open_pair();
    memset(large, 'x', sizeof large);
    const struct ringbus_part small[] = {{"abc", 3}, {"de", 2}};
    const struct ringbus_part big[] = {{large, sizeof large}, {"de", 2}};
    const struct {
        const struct ringbus_part *parts;
        unsigned count;
        int32_t instance;
    } ways[] = {{small, 1, 1},         {small, 2, 1},           {big, 1, 1},
                {big, 2, 1},           {small, 1, RINGBUS_ANY}, {small, 1, RINGBUS_ALL},
                {big, 2, RINGBUS_ALL}, {big, 1, RINGBUS_ALL}};
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct ringbus_addr whom = to;
        whom.instance = ways[i].instance;
        for (unsigned request = 0; request < 2; request++) {
            if (request != 0 && whom.instance < 0) {
                continue;
            }
            memset(&seen, 0, sizeof seen);
            const unsigned before = seen_count;
            const int r =
                request != 0
                    ? ringbus_request_with(client.bus, &whom, ways[i].parts, ways[i].count,
                                           &options, node_on_result, &client)
                    : ringbus_send_with(client.bus, &whom, ways[i].parts, ways[i].count, &options);
            assert_int_equal(r, 1);
            RUN_UNTIL(seen_count == before + 1, NODE_MS, &server, &client);
            check_everything();
            assert_int_equal(seen_parts, ways[i].count);
            assert_int_equal(seen_size, ways[i].parts[0].size +
                                            (ways[i].count > 1 ? ways[i].parts[1].size : 0));
            assert_memory_equal(seen_data, ways[i].parts[0].data, 3);
        }
    }
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 5, NODE_MS, &server, &client);
    /* Who says nothing sends nothing of it. */
    assert_int_equal(ringbus_send(client.bus, &to, 0, "plain", 5, 0), 1);
    RUN_UNTIL(seen_none, NODE_MS, &server, &client);
    close_pair();
}

static void test_options_out_of_range(void **state)
{
    (void)state;
    char tag[RINGBUS_TAG_MAX + 2];
    const struct ringbus_part part = {"", 0};
    const struct ringbus_message_options right = everything();
    open_pair();
    memset(tag, 't', sizeof tag - 1);
    tag[sizeof tag - 1] = '\0';
    struct ringbus_message_options wrong[8];
    for (unsigned i = 0; i < 8; i++) {
        wrong[i] = right;
    }
    wrong[0].struct_size = 4;
    wrong[1].flags = 0x100;
    wrong[2].priority = RINGBUS_PRIORITY_MAX + 1;
    wrong[3].timeout_ms = 3600001;
    wrong[4].try_timeout_ms = 3600001;
    wrong[5].tag = tag;
    wrong[6].tag = "a,b";
    wrong[7].tag = "a b";
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &wrong[i]),
                         RINGBUS_E_ARGUMENT);
        assert_int_equal(
            ringbus_request_with(client.bus, &to, &part, 1, &wrong[i], node_on_result, &client),
            RINGBUS_E_ARGUMENT);
    }
    assert_int_equal(ringbus_send_with(client.bus, &to, NULL, 1, &right), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_send_with(client.bus, &to, &part, 0, &right), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_send_with(client.bus, NULL, &part, 1, &right), RINGBUS_E_ARGUMENT);
    struct ringbus_message_options timeless = right;
    timeless.timeout_ms = 0;
    assert_int_equal(
        ringbus_request_with(client.bus, &to, &part, 1, &timeless, node_on_result, &client),
        RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_request_with(client.bus, &to, &part, 1, &right, NULL, NULL),
                     RINGBUS_E_ARGUMENT);
    /* The edges are right; without options it is a plain message. */
    tag[RINGBUS_TAG_MAX] = '\0';
    struct ringbus_message_options most = right;
    most.tag = tag;
    most.priority = RINGBUS_PRIORITY_MAX;
    most.timeout_ms = 3600000;
    assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &most), 1);
    RUN_UNTIL(seen_count == 1, NODE_MS, &server, &client);
    assert_string_equal(seen_tag, tag);
    assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, NULL), 1);
    RUN_UNTIL(seen_count == 2, NODE_MS, &server, &client);
    /* A caller of an earlier release, whose options end with the key. */
    struct ringbus_message_options early = right;
    early.struct_size = offsetof(struct ringbus_message_options, tag);
    assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &early), 1);
    RUN_UNTIL(seen_count == 3, NODE_MS, &server, &client);
    assert_string_equal(seen_tag, "");
    assert_int_equal(seen_key, 77);
    close_pair();
}

/* ---- what a handler sends ------------------------------------------------------------------- */

static bool say_no;   /* RINGBUS_NO_INHERIT */
static bool say_own;  /* options of its own */
static bool by_plain; /* by ringbus_request() */
static bool replied;
static struct ringbus_reply_to asked;

static void answer_later(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)context;
    CHECK(result->outcome == RINGBUS_REPLIED);
    CHECK(ringbus_reply(bus, &asked, "done", 4, 0) == 1);
}

static void ask_back(struct node *node, const struct ringbus_message *message)
{
    const struct ringbus_addr whom = node->peer;
    const struct ringbus_part part = {"q", 1};
    struct ringbus_message_options options = {.struct_size = sizeof options};
    struct ringbus_addr any = whom;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    any.instance = 1;
    CHECK(ringbus_resolve(BACK, &any) == 0);
    asked = message->reply_to;
    if (say_no) {
        options.flags = RINGBUS_NO_INHERIT;
        options.timeout_ms = 50000;
    }
    if (say_own) {
        options.tag = "own";
        options.priority = 1;
        options.timeout_ms = 3600000;
        options.span_id = 4;
        options.method = 99;
    }
    const int r =
        by_plain ? ringbus_request(node->bus, &any, 0, "q", 1, 0, 3600000, answer_later, NULL)
                 : ringbus_request_with(node->bus, &any, &part, 1, &options, answer_later, NULL);
    CHECK(r == 1);
}

static struct ringbus_attributes reply_seen;
static char reply_tag[RINGBUS_TAG_MAX + 1];

static void on_done(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    CHECK(result->outcome == RINGBUS_REPLIED && result->message->attributes != NULL);
    CHECK(result->tries == 1 && result->message->size == 4);
    reply_seen = *result->message->attributes;
    (void)snprintf(reply_tag, sizeof reply_tag, "%s", reply_seen.tag);
    replied = true;
}

static void ask_through(void)
{
    const struct ringbus_message_options options = everything();
    const struct ringbus_part part = {"q", 1};
    const unsigned before = seen_count;
    replied = false;
    struct ringbus_addr one = to;
    one.instance = 1;
    assert_int_equal(ringbus_request_with(client.bus, &one, &part, 1, &options, on_done, NULL), 1);
    RUN_UNTIL(replied, NODE_MS, &server, &back, &client);
    assert_int_equal(seen_count, before + 1);
    /* The reply tells what its request said, though its handler answered much later. */
    assert_string_equal(reply_tag, "canary");
    assert_int_equal(reply_seen.span_id, 9);
    assert_int_equal(reply_seen.method, 12);
}

/* Deadline, tag, trace and priority go with what the handler asks; never later, never more. */
static void test_nested_requests_inherit(void **state)
{
    (void)state;
    const struct ringbus_message_options first = everything();
    seen_count = 0;
    say_no = say_own = by_plain = false;
    server.on_message = ask_back;
    back.on_message = on_look;
    node_open(&back, &cluster, BACK_1);
    node_open(&server, &cluster, SERVER_1);
    node_open(&client, &cluster, NULL);
    (void)node_target(&server, BACK, 1, &back);
    to = node_target(&client, SERVER, 1, &server);
    const uint64_t most_ns = now_ns() + 60000000000U;
    for (unsigned plain = 0; plain < 2; plain++) {
        by_plain = plain != 0;
        ask_through();
        assert_string_equal(seen_tag, "canary");
        assert_memory_equal(seen.trace_id, first.trace_id, 16);
        assert_int_equal(seen.span_id, 9);
        assert_int_equal(seen.priority, 2);
        assert_int_equal(seen.method, 0); /* it is another method */
        assert_int_equal(seen.labels[0], 0);
        assert_true(seen.deadline_ns >= most_ns && seen.deadline_ns < most_ns + 30000000000U);
    }
    by_plain = false;
    say_own = true;
    ask_through();
    assert_string_equal(seen_tag, "own");
    assert_int_equal(seen.span_id, 4);
    assert_int_equal(seen.priority, 1);
    assert_int_equal(seen.method, 99);
    assert_true(seen.deadline_ns < most_ns + 30000000000U); /* an hour was asked for */
    say_own = false;
    say_no = true;
    ask_through();
    assert_string_equal(seen_tag, "");
    assert_int_equal(seen.span_id, 0);
    assert_int_equal(seen.priority, 0);
    node_close(&client);
    node_close(&server);
    node_close(&back);
}

/* ---- a receiver that ends ------------------------------------------------------------------- */

enum { WORD_READY };

static void be_deaf(const struct cluster *at, void *context)
{
    static struct node node;
    struct ringbus_options options = node_options(at, SERVER_2);
    options.tags = context;
    node_open_with(&node, &options);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &node);
    atomic_store(&bus_shared[WORD_READY], 1);
    for (;;) {
        test_sleep_ms(1000);
    }
}

static unsigned given_back;

static void take_back(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        given_back++;
        look(event->message);
    }
}

static pid_t open_with_deaf(enum ringbus_on_down on_down, char *tags)
{
    bus_shared_reset();
    seen_count = given_back = 0;
    const pid_t pid = child_start(be_deaf, &cluster, tags);
    client.on_event = take_back;
    node_open(&client, &cluster, NULL);
    const struct ringbus_target_options options = {
        .struct_size = sizeof options, .on_down = on_down, .redeliver_ms = 60000};
    assert_int_equal(ringbus_target(client.bus, SERVER, &options, &to), 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 1 && atomic_load(&bus_shared[WORD_READY]) == 1,
              NODE_MS, &client);
    return pid;
}

static void test_given_back_with_them(void **state)
{
    (void)state;
    const struct ringbus_message_options options = everything();
    const struct ringbus_part part = {"abc", 3};
    const pid_t pid = open_with_deaf(RINGBUS_ON_DOWN_REPORT, NULL);
    assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, &options), 1);
    child_kill(pid);
    RUN_UNTIL(given_back == 1, NODE_MS, &client);
    check_everything();
    node_close(&client);
    client.on_event = NULL;
}

static void test_redelivered_with_them(void **state)
{
    (void)state;
    static unsigned char large[20000];
    const struct ringbus_message_options options = everything();
    const struct ringbus_part parts[] = {{"abc", 3}, {"de", 2}};
    const struct ringbus_part big = {large, sizeof large};
    const pid_t pid = open_with_deaf(RINGBUS_ON_DOWN_REDELIVER, NULL);
    assert_int_equal(ringbus_send_with(client.bus, &to, parts, 2, &options), 1);
    assert_int_equal(ringbus_send_with(client.bus, &to, &big, 1, &options), 1);
    assert_int_equal(
        ringbus_request_with(client.bus, &to, parts, 2, &options, node_on_result, &client), 1);
    server.on_message = on_look;
    child_kill(pid);
    node_open(&server, &cluster, SERVER_1);
    for (unsigned i = 1; i <= 3; i++) {
        RUN_UNTIL(seen_count >= i, NODE_MS, &client, &server);
        check_everything();
    }
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &client, &server);
    assert_int_equal(given_back, 0);
    assert_int_equal(node_stats(&client).redelivered, 3);
    close_pair();
    client.on_event = NULL;
}

/* A tag says where a message may go: also when it goes on because its receiver ended. */
static void test_tag_leads(void **state)
{
    (void)state;
    static char canary[] = "canary";
    static struct node tagged;
    const struct ringbus_part part = {"abc", 3};
    const struct ringbus_message_options with_tag = {.struct_size = sizeof with_tag, .tag = canary};
    const pid_t pid = open_with_deaf(RINGBUS_ON_DOWN_REDELIVER, canary);
    server.on_message = NULL;
    struct ringbus_options options = node_options(&cluster, SERVER "/7");
    options.tags = canary;
    node_open_with(&tagged, &options);
    node_open(&server, &cluster, SERVER_1);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &client, &tagged, &server);
    for (unsigned i = 0; i < 40; i++) {
        const struct ringbus_message_options *which = i % 2 == 0 ? &with_tag : NULL;
        assert_int_equal(ringbus_send_with(client.bus, &to, &part, 1, which), 1);
    }
    child_kill(pid);
    RUN_UNTIL(server.messages == 20 && tagged.messages == 20, NODE_MS, &client, &tagged, &server);
    assert_true(node_stats(&client).redelivered > 0);
    node_close(&client);
    node_close(&tagged);
    node_close(&server);
    client.on_event = NULL;
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
        cmocka_unit_test(test_arrive_by_every_way),     cmocka_unit_test(test_options_out_of_range),
        cmocka_unit_test(test_nested_requests_inherit), cmocka_unit_test(test_given_back_with_them),
        cmocka_unit_test(test_redelivered_with_them),   cmocka_unit_test(test_tag_leads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
