/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between businesses go through a broker (features B18 to B21): one business may not reach
 * another directly, its broker poses as the provider to the caller and as the consumer to the
 * callee, and who began it is told to the callee.
 */
#include "broker_process.h"

#define A_SHOP  "/game_a/eu/pc/w1/trade/shop"
#define B_SHOP  "/game_b/eu/pc/w1/import/shop"
#define CALLER  "/game_b/eu/pc/w1/gate/gate/7"
#define METHOD  4711U
#define KEY     UINT64_C(0xfeedfacecafe)
#define TIMEOUT 5000U

static struct cluster cluster;
static struct broker broker;
static struct node caller, shop;

static const char rules[] = "rights:\n"
                            "  otherwise: realm\n";

static char config[4096];

static const char *make_config(void)
{
    (void)snprintf(config, sizeof config,
                   "broker: {hold: 1m}\n"
                   "sides:\n"
                   "  - {name: a, socket: %s, path: /game_a/eu/pc/w1/edge/broker/b1}\n"
                   "  - {name: b, socket: %s, path: /game_b/eu/pc/w1/edge/broker/b1}\n"
                   "exports:\n"
                   "  - {id: shop, from: a, to: b, match: " A_SHOP ", as: " B_SHOP "}\n",
                   cluster.socket, cluster.socket);
    return config;
}

/* What the callee has seen. */
static struct {
    struct ringbus_origin origin;
    int originated;
    struct ringbus_attributes attributes;
    char tag[64];
    char from[RINGBUS_PATH_MAX + 1];
    unsigned flags;
    uint64_t key;
    unsigned part_count;
    char data[64];
    size_t size;
} seen;

static void serve(struct node *node, const struct ringbus_message *message)
{
    seen.originated = ringbus_origin(node->bus, message, &seen.origin);
    CHECK(message->attributes != NULL);
    seen.attributes = *message->attributes;
    (void)snprintf(seen.tag, sizeof seen.tag, "%s", message->attributes->tag);
    (void)snprintf(seen.from, sizeof seen.from, "%s", message->from_path);
    seen.flags = message->flags;
    seen.key = message->key;
    seen.part_count = message->part_count;
    seen.size = message->size;
    CHECK(message->size <= sizeof seen.data);
    memcpy(seen.data, message->data, message->size);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "sold", 4, 0) == 1);
    }
}

static char answer[64];

static void on_answer(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    answer[0] = '\0';
    if (result->message != NULL) {
        (void)snprintf(answer, sizeof answer, "%.*s", (int)result->message->size,
                       (const char *)result->message->data);
    }
    node_on_result(bus, result, context);
}

static void open_both(void)
{
    memset(&seen, 0, sizeof seen);
    memset(&caller, 0, sizeof caller);
    memset(&shop, 0, sizeof shop);
    shop.on_message = serve;
    node_open(&shop, &cluster, A_SHOP "/1");
    node_open(&caller, &cluster, CALLER);
}

static void close_both(void)
{
    node_close(&caller);
    node_close(&shop);
    broker_kill(&broker);
}

static const struct ringbus_part parts[] = {{"two", 3}, {"parts", 5}};

static const struct ringbus_message_options said = {.struct_size = sizeof said,
                                                    .flags = RINGBUS_KEY | RINGBUS_IDEMPOTENT,
                                                    .key = KEY,
                                                    .method = METHOD,
                                                    .labels = {1, 2, 3, 4},
                                                    .priority = 2,
                                                    .timeout_ms = TIMEOUT,
                                                    .trace_id = "fifteen letters",
                                                    .span_id = 99,
                                                    .codec = 5,
                                                    .schema = 6};

static void check_seen(unsigned flags)
{
    struct ringbus_addr self;
    CHECK(ringbus_self(caller.bus, &self) == 0);
    assert_int_equal(seen.originated, 1);
    assert_memory_equal(&seen.origin.addr, &self, sizeof self);
    assert_string_equal(seen.origin.path, CALLER);
    assert_int_equal(seen.origin.hops, 1);
    assert_string_equal(seen.from, "/game_a/eu/pc/w1/edge/broker/b1");
    assert_int_equal(seen.flags & ~RINGBUS_MESSAGE_REFERENCED, flags);
    assert_int_equal(seen.key, KEY);
    assert_int_equal(seen.attributes.method, METHOD);
    assert_memory_equal(seen.attributes.labels, said.labels, sizeof said.labels);
    assert_int_equal(seen.attributes.priority, 2);
    assert_memory_equal(seen.attributes.trace_id, said.trace_id, sizeof said.trace_id);
    assert_int_equal(seen.attributes.span_id, 99);
    assert_int_equal(seen.attributes.codec, 5);
    assert_int_equal(seen.attributes.schema, 6);
    assert_true(seen.attributes.deadline_ns != 0);
    assert_int_equal(seen.part_count, 2);
    assert_int_equal(seen.size, 8);
    assert_memory_equal(seen.data, "twoparts", 8);
}

/* Features B20, B21: the caller is in B, the callee in A, and neither sees the other. */
static void test_request_between_businesses(void **state)
{
    (void)state;
    struct ringbus_addr to;
    open_both();
    /* Directly there is no right. */
    CHECK(ringbus_target(caller.bus, A_SHOP, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_LINK_FAILED] > 0, NODE_MS, &caller, &shop);
    assert_int_equal(caller.error, RINGBUS_E_DENIED);
    CHECK(ringbus_untarget(caller.bus, A_SHOP) == 0);

    broker_start(&broker, &cluster, "broker", make_config());
    to = node_target(&caller, B_SHOP, 1, &shop);
    RUN_UNTIL(shop.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &caller, &shop);
    CHECK(ringbus_request_with(caller.bus, &to, parts, 2, &said, on_answer, &caller) == 1);
    RUN_UNTIL(caller.replies[RINGBUS_REPLIED] == 1, NODE_MS, &caller, &shop);
    assert_string_equal(answer, "sold");
    check_seen(RINGBUS_MESSAGE_KEY | RINGBUS_MESSAGE_IDEMPOTENT | RINGBUS_MESSAGE_ANY);
    close_both();
}

/* One-way messages and broadcasts the same. */
static void test_oneway_between_businesses(void **state)
{
    (void)state;
    open_both();
    broker_start(&broker, &cluster, "broker", make_config());
    struct ringbus_addr to = node_target(&caller, B_SHOP, 1, &shop);
    RUN_UNTIL(shop.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &caller, &shop);
    CHECK(ringbus_send_with(caller.bus, &to, parts, 2, &said) == 1);
    RUN_UNTIL(shop.messages == 1, NODE_MS, &caller, &shop);
    check_seen(RINGBUS_MESSAGE_KEY | RINGBUS_MESSAGE_IDEMPOTENT | RINGBUS_MESSAGE_ANY);

    to.instance = RINGBUS_ALL;
    memset(&seen, 0, sizeof seen);
    CHECK(ringbus_send_with(caller.bus, &to, parts, 2, &said) == 1);
    RUN_UNTIL(shop.messages == 2, NODE_MS, &caller, &shop);
    check_seen(RINGBUS_MESSAGE_KEY | RINGBUS_MESSAGE_IDEMPOTENT | RINGBUS_MESSAGE_BROADCAST);
    close_both();
}

/* The tool shows it: who receives is told of both. */
static void test_tool_shows_the_origin(void **state)
{
    (void)state;
    char out[128];
    char line[4096] = "";
    memset(&caller, 0, sizeof caller);
    (void)snprintf(out, sizeof out, "%s/recv", cluster.folder);
    const pid_t pid = fork();
    if (pid == 0) {
        const int file = open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        (void)dup2(file, STDOUT_FILENO);
        (void)execl(RINGBUSCTL_PATH, "ringbusctl", "recv", "--socket", cluster.socket, "--json",
                    "--count", "1", A_SHOP "/9", (char *)NULL);
        _exit(127);
    }
    CHECK(pid > 0);
    node_open(&caller, &cluster, CALLER);
    RUN_UNTIL(ringbus_instances(caller.bus, A_SHOP, NULL, 0) == 1, NODE_MS, &caller);
    broker_start(&broker, &cluster, "broker", make_config());
    const struct ringbus_addr to = node_target(&caller, B_SHOP, 1, NULL);
    /* One-way: it waits in the broker's hold until the receiver is linked. */
    RUN_UNTIL(ringbus_send_with(caller.bus, &to, parts, 2, &said) == 1, NODE_MS, &caller);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    FILE *file = fopen(out, "re");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    (void)fclose(file);
    assert_non_null(strstr(line, "\"from\":\"/game_a/eu/pc/w1/edge/broker/b1\""));
    assert_non_null(strstr(line, "\"origin\":\"" CALLER "\""));
    assert_non_null(strstr(line, "\"hops\":1"));
    node_close(&caller);
    broker_kill(&broker);
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
        cmocka_unit_test(test_request_between_businesses),
        cmocka_unit_test(test_oneway_between_businesses),
        cmocka_unit_test(test_tool_shows_the_origin),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
