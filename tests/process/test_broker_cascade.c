/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cascade of two broker clusters (features D76, B19 to B21), as configs/broker.yaml and
 * configs/cascade.yaml have it: a subsystem on a bus of its own is hidden behind portals, of which
 * members know through brokers of their own. Only what is exported has a name outside; who began a
 * message is told over both, by those whose word is taken.
 */
#include "broker_process.h"

#define SHOP    "/trade/eu/pc/w1/core/shop"
#define AUDIT   "/trade/eu/pc/w1/core/audit"
#define PORTAL  "/game/eu/pc/w1/portal/shop"
#define SHOWN   "/game/eu/pc/w1/trade/shop"
#define GATE    "/game/eu/pc/w1/gate/gate/1"
#define BROKERS "/game/eu/pc/w1/edge/broker"
#define SHOPS   2U
#define TIMEOUT 5000U
#define NUMBERS 256U

static struct cluster outside, inside;
static struct broker brokers[2], portals[2];
static struct node gate, shops[SHOPS], audit;

static struct {
    struct ringbus_origin origin;
    int originated;
    char from[RINGBUS_PATH_MAX + 1];
} seen;
static unsigned char had[SHOPS][NUMBERS];

static void serve(struct node *node, const struct ringbus_message *message)
{
    unsigned char number = 0;
    seen.originated = ringbus_origin(node->bus, message, &seen.origin);
    (void)snprintf(seen.from, sizeof seen.from, "%s", message->from_path);
    CHECK(message->size == 1);
    memcpy(&number, message->data, 1);
    had[node - shops][number]++;
    CHECK(message->attributes == NULL || message->attributes->dest.cluster == 0);
    if (message->kind == RINGBUS_KIND_REQUEST && number == 13) {
        CHECK(ringbus_reply_error(node->bus, &message->reply_to, "out of stock") == 1);
    } else if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "sold", 4, 0) == 1);
    }
}

static char text[64];

static void on_answer(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)snprintf(text, sizeof text, "%.*s",
                   result->message != NULL ? (int)result->message->size : 0,
                   result->message != NULL ? (const char *)result->message->data : "");
    node_on_result(bus, result, context);
}

/* As an operator would: the file with the name of the instance. */
static void start(struct broker *broker, const char *file, char kind, unsigned i)
{
    char config[8192];
    char name[8];
    char shipped[8];
    (void)snprintf(name, sizeof name, "/%c%u", kind, i + 1);
    (void)snprintf(shipped, sizeof shipped, "/%c1", kind);
    (void)broker_file(file, shipped, name, config, sizeof config);
    char *at = strstr(config, "/run/ringbus-trade/bus.sock");
    if (at != NULL) {
        char rest[8192];
        (void)snprintf(rest, sizeof rest, "%s", at + strlen("/run/ringbus-trade/bus.sock"));
        (void)snprintf(at, sizeof config - (size_t)(at - config), "%s%s", inside.socket, rest);
    }
    broker_start(broker, &outside, name + 1, config);
}

static bool all_linked(void)
{
    for (unsigned i = 0; i < SHOPS; i++) {
        if (node_stats(&shops[i]).links != 2) {
            return false;
        }
    }
    return true;
}

/* Until the way is open to its end. */
static struct ringbus_addr open_all(void)
{
    char path[RINGBUS_PATH_MAX + 1];
    memset(had, 0, sizeof had);
    memset(&gate, 0, sizeof gate);
    memset(&audit, 0, sizeof audit);
    for (unsigned i = 0; i < SHOPS; i++) {
        memset(&shops[i], 0, sizeof shops[i]);
        shops[i].on_message = serve;
        (void)snprintf(path, sizeof path, SHOP "/%u", i + 1);
        node_open(&shops[i], &inside, path);
    }
    node_open(&audit, &inside, AUDIT "/1");
    for (unsigned i = 0; i < 2; i++) {
        start(&portals[i], "cascade.yaml", 'p', i);
        start(&brokers[i], "broker.yaml", 'b', i);
    }
    node_open(&gate, &outside, GATE);
    const struct ringbus_addr to = node_target(&gate, SHOWN, 2, &shops[0]);
    RUN_UNTIL(all_linked(), NODE_MS, &gate, &shops[0], &shops[1], &audit);
    unsigned char number = 0;
    unsigned answered = 0;
    /* The brokers' links to the portals come up by themselves. */
    while (answered < 8) {
        const unsigned done = gate.replies[RINGBUS_REPLIED] + gate.replies[RINGBUS_NOT_SENT];
        CHECK(ringbus_request(gate.bus, &to, 0, &number, 1, 0, TIMEOUT, on_answer, &gate) == 1);
        RUN_UNTIL(gate.replies[RINGBUS_REPLIED] + gate.replies[RINGBUS_NOT_SENT] == done + 1,
                  NODE_MS, &gate, &shops[0], &shops[1]);
        answered = gate.reply_error == 0 ? answered + 1 : 0;
    }
    memset(had, 0, sizeof had);
    memset(gate.replies, 0, sizeof gate.replies);
    return to;
}

static void close_all(void)
{
    node_close(&gate);
    node_close(&audit);
    for (unsigned i = 0; i < 2; i++) {
        node_close(&shops[i]);
        broker_kill(&brokers[i]);
        broker_kill(&portals[i]);
    }
}

static void request(const struct ringbus_addr *to, unsigned char number, int32_t instance)
{
    const struct ringbus_part part = {&number, 1};
    struct ringbus_message_options options = {.struct_size = sizeof options, .timeout_ms = TIMEOUT};
    const unsigned before = gate.replies[0] + gate.replies[1] + gate.replies[2] + gate.replies[3];
    if (instance != 0) {
        options.dest = *to;
        options.dest.instance = instance;
    }
    CHECK(ringbus_request_with(gate.bus, to, &part, 1, &options, on_answer, &gate) == 1);
    RUN_UNTIL(gate.replies[0] + gate.replies[1] + gate.replies[2] + gate.replies[3] == before + 1,
              NODE_MS, &gate, &shops[0], &shops[1]);
}

static uint64_t cluster_of(const char *path)
{
    struct ringbus_addr addr;
    CHECK(ringbus_resolve(path, &addr) == 0);
    return addr.cluster;
}

static void test_request_through_both(void **state)
{
    (void)state;
    struct ringbus_addr self;
    const struct ringbus_addr to = open_all();
    CHECK(ringbus_self(gate.bus, &self) == 0);
    request(&to, 1, 0);
    assert_int_equal(gate.replies[RINGBUS_REPLIED], 1);
    assert_string_equal(text, "sold");
    /* The caller is told inside, and over whom it came. */
    assert_int_equal(seen.originated, 1);
    assert_string_equal(seen.origin.path, GATE);
    assert_memory_equal(&seen.origin.addr, &self, sizeof self);
    assert_int_equal(seen.origin.hops, 2);
    assert_true(seen.origin.via[0] == cluster_of(BROKERS));
    assert_true(seen.origin.via[1] == cluster_of("/trade/eu/pc/w1/edge/portal"));
    assert_memory_equal(seen.from, "/trade/eu/pc/w1/edge/portal/", 28);
    /* A failure is the handler's own, with its text. */
    request(&to, 13, 0);
    assert_int_equal(gate.replies[RINGBUS_FAILED], 1);
    assert_int_equal(gate.reply_error, RINGBUS_E_HANDLER_FAILED);
    assert_string_equal(text, "out of stock");
    /* One of those behind both. */
    for (unsigned char i = 0; i < 20; i++) {
        request(&to, (unsigned char)(100 + i), i % 2 + 1);
        assert_int_equal(had[i % 2][100 + i], 1);
        assert_int_equal(had[1 - i % 2][100 + i], 0);
    }
    request(&to, 2, 77);
    assert_int_equal(gate.replies[RINGBUS_NOT_SENT], 1);
    assert_int_equal(gate.reply_error, RINGBUS_E_NO_INSTANCE);
    close_all();
}

/* Nobody outside has a name for what is not exported, nor for what is, but the one given to it. */
static void test_the_rest_is_hidden(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all();
    static const char *const hidden[] = {SHOP, AUDIT, "/game/eu/pc/w1/portal/audit",
                                         "/game/eu/pc/w1/trade/audit"};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(ringbus_instances(gate.bus, hidden[i], NULL, 0), RINGBUS_E_NO_SERVICE);
        /* Nor to the brokers. */
        const struct ringbus_part part = {"x", 1};
        struct ringbus_message_options options = {.struct_size = sizeof options,
                                                  .timeout_ms = TIMEOUT};
        CHECK(ringbus_resolve(hidden[i], &options.dest) == 0);
        CHECK(ringbus_request_with(gate.bus, &to, &part, 1, &options, on_answer, &gate) == 1);
        RUN_UNTIL(gate.replies[RINGBUS_NOT_SENT] == i + 1, NODE_MS, &gate, &shops[0]);
        assert_int_equal(gate.reply_error, RINGBUS_E_NO_SERVICE);
    }
    assert_int_equal(audit.messages, 0);
    /* Inside nobody outside has a name either. */
    assert_int_equal(ringbus_instances(audit.bus, "/game/eu/pc/w1/gate/gate", NULL, 0),
                     RINGBUS_E_NO_SERVICE);
    /* Outside: two instances of each name, which are the portals and the brokers. */
    assert_int_equal(ringbus_instances(gate.bus, PORTAL, NULL, 0), 2);
    assert_int_equal(ringbus_instances(gate.bus, SHOWN, NULL, 0), 2);
    close_all();
}

static struct ringbus_reply_to asked;

static void on_passed(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const struct ringbus_ending ending = {.struct_size = sizeof ending,
                                          .outcome = result->outcome,
                                          .error = result->error,
                                          .parts = result->message->parts,
                                          .part_count = result->message->part_count};
    (void)context;
    CHECK(ringbus_reply_as(bus, &asked, &ending) == 1);
}

/* A broker that the portals do not know: its word for the origin is the sender's. */
static void pass_on(struct node *node, const struct ringbus_message *message)
{
    struct ringbus_forwarding how = {
        .struct_size = sizeof how, .via = 4711, .timeout_ms = TIMEOUT, .on_reply = on_passed};
    CHECK(ringbus_resolve(PORTAL, &how.to) == 0);
    asked = message->reply_to;
    CHECK(ringbus_forward(node->bus, message, node->bus, &how) == 1);
}

/* Scenario of B21: the origin is for audit. Who is not named as a broker does not say who it is. */
static void test_word_of_strangers_is_not_taken(void **state)
{
    (void)state;
    struct node stranger = {.on_message = pass_on};
    (void)open_all();
    node_open(&stranger, &outside, "/game/eu/pc/w1/gate/stranger/1");
    (void)node_target(&stranger, PORTAL, 2, &shops[0]);
    const struct ringbus_addr to = node_target(&gate, "/game/eu/pc/w1/gate/stranger", 1, &stranger);
    CHECK(ringbus_request(gate.bus, &to, 0, "x", 1, 0, TIMEOUT, on_answer, &gate) == 1);
    RUN_UNTIL(gate.replies[RINGBUS_REPLIED] == 1, NODE_MS, &gate, &stranger, &shops[0], &shops[1]);
    assert_string_equal(text, "sold");
    assert_string_equal(seen.origin.path, "/game/eu/pc/w1/gate/stranger/1");
    /* The way is what it was: by that loops end. */
    assert_int_equal(seen.origin.hops, 2);
    assert_true(seen.origin.via[0] == 4711);
    node_close(&stranger);
    close_all();
}

/* To all, from a member: each of those inside once. */
static void test_all_through_both(void **state)
{
    (void)state;
    struct ringbus_addr to = open_all();
    const uint64_t before = shops[0].messages + shops[1].messages;
    to.instance = RINGBUS_ALL;
    for (unsigned char i = 1; i <= 100; i++) {
        int r = 0;
        RUN_UNTIL((r = ringbus_send(gate.bus, &to, 0, &i, 1, 0)) == 1, NODE_MS, &gate, &shops[0],
                  &shops[1]);
    }
    RUN_UNTIL(shops[0].messages + shops[1].messages == before + 200, NODE_MS, &gate, &shops[0],
              &shops[1]);
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(had[0][i], 1);
        assert_int_equal(had[1][i], 1);
    }
    close_all();
}

static int setup(void **state)
{
    (void)state;
    if (cluster_up(&inside, "{}\n") != 0 || cluster_up(&outside, "{}\n") != 0) {
        return -1;
    }
    return setenv("RINGBUS_SOCKET", outside.socket, 1);
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&inside);
    cluster_down(&outside);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_through_both),
        cmocka_unit_test(test_the_rest_is_hidden),
        cmocka_unit_test(test_word_of_strangers_is_not_taken),
        cmocka_unit_test(test_all_through_both),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
