/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests through a broker end as they do directly (features B20, D53): the same outcome, the same
 * code, the same text, the same time to wait. What the call itself refuses directly is NOT_SENT for
 * the same reason over a broker.
 */
#include "broker_process.h"

#define AREA    "/game/eu/pc/w1/"
#define TIMEOUT 5000U
#define SHORT   200U
#define LARGE   (3U << 20)

static struct cluster cluster;
static struct broker broker;
static struct node direct, through, server, limited;

static const char rules[] = "clusters:\n"
                            "  - match: " AREA "inner/limited\n"
                            "    limits: [{id: few, rate: 1, burst: 1}]\n"
                            "rights:\n"
                            "  rules:\n"
                            "    - {id: not9, action: deny, verbs: [send], methods: 9,\n"
                            "       to: " AREA "inner/core/*}\n"
                            "  otherwise: allow\n";

/* How a request ended, or why it did not begin. */
struct end {
    bool over;
    enum ringbus_outcome outcome;
    int error;
    uint32_t retry_after_ms;
    char text[64];
    size_t size;
};

static void on_end(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct end *end = context;
    (void)bus;
    end->over = true;
    end->outcome = result->outcome;
    end->error = result->error;
    end->retry_after_ms = result->retry_after_ms;
    if (result->message != NULL) {
        end->size = result->message->size;
        (void)snprintf(end->text, sizeof end->text, "%.*s", (int)result->message->size,
                       (const char *)result->message->data);
    }
}

struct question {
    const char *cluster; /* its last element */
    int32_t instance;    /* 0: any */
    uint32_t method;
    uint32_t timeout_ms;
    size_t size;
};

static char payload[LARGE];

static struct end ask(struct node *node, const struct question *question)
{
    struct end end = {.over = false};
    struct ringbus_addr to;
    char path[RINGBUS_PATH_MAX + 1];
    const struct ringbus_part part = {payload, question->size};
    struct ringbus_message_options options = {.struct_size = sizeof options,
                                              .method = question->method,
                                              .timeout_ms = question->timeout_ms};
    (void)snprintf(path, sizeof path, AREA "%s/%s", node == &direct ? "inner" : "shown",
                   question->cluster);
    CHECK(ringbus_resolve(path, &to) == 0);
    if (node == &direct) {
        to.instance = question->instance;
    } else if (question->instance != 0) {
        options.dest = to;
        options.dest.instance = question->instance;
    }
    const int r = ringbus_request_with(node->bus, &to, &part, 1, &options, on_end, &end);
    if (r < 0) {
        end = (struct end){.over = true, .outcome = RINGBUS_NOT_SENT, .error = r};
        const uint64_t us = ringbus_retry_after_us(node->bus);
        end.retry_after_ms = (uint32_t)(us / 1000 + (us % 1000 != 0));
    }
    RUN_UNTIL(end.over, NODE_MS, node, &server, &limited);
    return end;
}

/* The method says what becomes of it. */
static void serve(struct node *node, const struct ringbus_message *message)
{
    const uint32_t method = message->attributes->method;
    static const int refusals[] = {RINGBUS_E_SHED,       RINGBUS_E_NOT_OWNER, RINGBUS_E_LIMITED,
                                   RINGBUS_E_NOT_READY,  RINGBUS_E_DRAINING,  RINGBUS_E_DENIED,
                                   RINGBUS_E_RESTARTING, RINGBUS_E_TIMEOUT};
    if (method == 1) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "yes", 3, 0) == 1);
    } else if (method == 2) {
        CHECK(ringbus_reply_error(node->bus, &message->reply_to, "no such player") == 1);
    } else if (method == 3) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, payload, 200000, 0) == 1);
    } else if (method == 4) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, NULL, 0, 0) == 1);
    } else if (method >= 100) {
        CHECK(ringbus_reply_refused(node->bus, &message->reply_to, refusals[method - 100],
                                    method) == 1);
    }
    /* 5: it never answers. */
}

static void compare(const struct question *question)
{
    const struct end a = ask(&direct, question);
    const struct end b = ask(&through, question);
    if (a.outcome != b.outcome || a.error != b.error) {
        fail_msg("%s/%d method %u: directly %d %s, through a broker %d %s", question->cluster,
                 (int)question->instance, question->method, (int)a.outcome,
                 ringbus_error_name(a.error), (int)b.outcome, ringbus_error_name(b.error));
    }
    assert_string_equal(a.text, b.text);
    assert_int_equal(a.size, b.size);
}

static void test_same_outcomes(void **state)
{
    (void)state;
    static const struct question questions[] = {
        {"core", 0, 1, TIMEOUT, 10},     {"core", 0, 2, TIMEOUT, 10},
        {"core", 0, 3, TIMEOUT, 10},     {"core", 0, 4, TIMEOUT, 0},
        {"core", 0, 5, SHORT, 10},       {"core", 1, 1, TIMEOUT, 10},
        {"core", 9, 1, TIMEOUT, 10}, /* no such instance */
        {"core", 0, 9, TIMEOUT, 10}, /* no right to the method */
        {"core", 0, 1, TIMEOUT, 100000}, {"core", 0, 100, TIMEOUT, 10},
        {"core", 0, 101, TIMEOUT, 10},   {"core", 0, 102, TIMEOUT, 10},
        {"core", 0, 103, TIMEOUT, 10},   {"core", 0, 104, TIMEOUT, 10},
        {"core", 0, 105, TIMEOUT, 10},   {"core", 0, 106, TIMEOUT, 10},
        {"core", 0, 107, TIMEOUT, 10},   {"nobody", 0, 1, TIMEOUT, 10}, /* never heard of */
        {"left", 0, 1, TIMEOUT, 10},                                    /* it was there */
    };
    for (unsigned i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        compare(&questions[i]);
    }
    /* And the time to wait is the receiver's. */
    const struct end end = ask(&through, &(struct question){"core", 0, 100, TIMEOUT, 10});
    assert_int_equal(end.retry_after_ms, 100);
}

/* Of a limit: the second of two within a second, and when it is worth trying again. */
static void test_limit(void **state)
{
    (void)state;
    const struct question question = {"limited", 0, 1, TIMEOUT, 10};
    assert_int_equal(ask(&through, &question).outcome, RINGBUS_REPLIED);
    const struct end end = ask(&through, &question);
    assert_int_equal(end.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(end.error, RINGBUS_E_LIMITED);
    assert_in_range(end.retry_after_ms, 1, 1001);
}

/* Too large for the broker, whose pool is smaller than the one of who sent it. */
static void test_too_big(void **state)
{
    (void)state;
    struct node large = through;
    struct ringbus_options options = node_options(&cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){LARGE, 2};
    memset(&large, 0, sizeof large);
    node_open_with(&large, &options);
    const struct ringbus_addr to = node_target(&large, AREA "shown/core", 1, &server);
    struct end end = {.over = false};
    CHECK(ringbus_request(large.bus, &to, 0, payload, LARGE, 0, TIMEOUT, on_end, &end) == 1);
    RUN_UNTIL(end.over, NODE_MS, &large, &server);
    assert_int_equal(end.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(end.error, RINGBUS_E_TOO_BIG);
    /* One-way: in an event. */
    CHECK(ringbus_send(large.bus, &to, 0, payload, LARGE, 0) == 1);
    RUN_UNTIL(large.events[RINGBUS_EVENT_REFUSED] == 1, NODE_MS, &large, &server);
    node_close(&large);
}

/* The one asked dies in its handler, or before it: the same as directly. */
static void die(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    (void)message;
    _exit(3);
}

static void dying(const struct cluster *at, void *context)
{
    struct node node = {.on_message = die};
    (void)context;
    node_open(&node, at, AREA "inner/dying/1");
    for (;;) {
        RUN_UNTIL(false, 60000, &node);
    }
}

static void test_death_in_the_handler(void **state)
{
    (void)state;
    const struct question question = {"dying", 0, 1, TIMEOUT, 10};
    struct node *const askers[] = {&direct, &through};
    for (unsigned i = 0; i < 2; i++) {
        struct end end = {.over = false};
        const pid_t pid = child_start(dying, &cluster, NULL);
        const uint64_t deadline_ms = test_now_ms() + NODE_MS;
        /* Until it is linked. */
        do {
            nodes_step((struct node *const[]){askers[i], &server}, 2);
            end = ask(askers[i], &question);
            CHECK(test_now_ms() < deadline_ms);
        } while (end.outcome == RINGBUS_NOT_SENT);
        assert_int_equal(end.outcome, RINGBUS_UNKNOWN);
        assert_int_equal(end.error, RINGBUS_E_PEER_GONE);
        assert_int_equal(child_wait(pid, NODE_MS), 3);
    }
}

/* ---- one daemon, one broker ----------------------------------------------------------------- */

static int setup(void **state)
{
    static const char *const clusters[] = {"core", "limited", "left", "nobody", "dying"};
    struct node left = {.messages = 0};
    char config[2048];
    char path[RINGBUS_PATH_MAX + 1];
    (void)state;
    if (cluster_up(&cluster, rules) != 0) {
        return -1;
    }
    (void)snprintf(config, sizeof config,
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " AREA "edge/broker/b1}\n"
                   "exports:\n",
                   cluster.socket);
    for (unsigned i = 0; i < 5; i++) {
        const size_t used = strlen(config);
        (void)snprintf(config + used, sizeof config - used,
                       "  - {id: %s, from: bus, to: bus, match: " AREA "inner/%s, as: " AREA
                       "shown/%s}\n",
                       clusters[i], clusters[i], clusters[i]);
    }
    server.on_message = serve;
    node_open(&server, &cluster, AREA "inner/core/1");
    limited.on_message = serve;
    node_open(&limited, &cluster, AREA "inner/limited/1");
    node_open(&left, &cluster, AREA "inner/left/1");
    node_close(&left);
    broker_start(&broker, &cluster, "broker", config);
    node_open(&direct, &cluster, AREA "gate/gate/1");
    node_open(&through, &cluster, AREA "gate/gate/2");
    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(path, sizeof path, AREA "inner/%s", clusters[i]);
        CHECK(ringbus_target(direct.bus, path, NULL, NULL) == 0);
        (void)snprintf(path, sizeof path, AREA "shown/%s", clusters[i]);
        CHECK(ringbus_target(through.bus, path, NULL, NULL) == 0);
    }
    RUN_UNTIL(direct.events[RINGBUS_EVENT_READY] >= 1 && through.events[RINGBUS_EVENT_READY] == 5 &&
                  node_stats(&server).links == 2 && node_stats(&limited).links == 2,
              NODE_MS, &direct, &through, &server, &limited);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (broker.pid == 0) {
        cluster_down(&cluster); /* the set-up failed */
        return 0;
    }
    node_close(&direct);
    node_close(&through);
    node_close(&server);
    node_close(&limited);
    broker_kill(&broker);
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_outcomes),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_death_in_the_handler),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
