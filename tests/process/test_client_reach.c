/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features D48, D55: whom a broadcast reaches. Who is out of service gets none, who is shielded
 * does unless the sender asks for the healthy; flags narrow it, and the sender is told of each
 * instance what became of the message.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NEWS  "/game/eu/pc/w1/core/news"
#define MANY  6U
#define LANE  4096U
#define LARGE 20000U

/* a, b: our set; c: another; idle: isolated; new: staged; off: weight 0. */
static const char config[] = "clusters:\n"
                             "  - match: " NEWS "\n"
                             "    shield: {consecutive: 3, open_min: 1m, open_max: 1m}\n"
                             "instances:\n"
                             "  " NEWS "/idle: {isolated: true}\n"
                             "  " NEWS "/new: {staged: true}\n";
static const char *const names[MANY] = {"a", "b", "c", "idle", "new", "off"};
enum { A, B, C, IDLE, NEW, OFF };

static struct cluster cluster;
static struct node sender; /* of the cluster itself */
static struct node nodes[MANY];
static struct ringbus_addr all;

#define EVERYONE &sender, &nodes[A], &nodes[B], &nodes[C], &nodes[IDLE], &nodes[NEW], &nodes[OFF]

static int set_up(void **state)
{
    struct ringbus_addr addr;
    (void)state;
    assert_int_equal(cluster_up(&cluster, config), 0);
    memset(&sender, 0, sizeof sender);
    for (unsigned i = 0; i < MANY; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%s", NEWS, names[i]);
        struct ringbus_options options = node_options(&cluster, path);
        memset(&nodes[i], 0, sizeof nodes[i]);
        options.set = i == C ? "app.b.1" : "app.a.1";
        options.weight = i == OFF ? RINGBUS_WEIGHT_NONE : 0;
        node_open_with(&nodes[i], &options);
    }
    struct ringbus_options options = node_options(&cluster, NEWS "/self");
    options.set = "app.a.1";
    options.lane_bytes = LANE;
    node_open_with(&sender, &options);
    assert_int_equal(ringbus_target(sender.bus, NEWS, NULL, &addr), 0);
    all = (struct ringbus_addr){.cluster = addr.cluster, .instance = RINGBUS_ALL};
    RUN_UNTIL(sender.events[RINGBUS_EVENT_READY] == MANY + 1, NODE_MS, EVERYONE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&sender);
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&nodes[i]);
    }
    cluster_down(&cluster);
    return 0;
}

static uint64_t got(void)
{
    uint64_t sum = sender.messages;
    for (unsigned i = 0; i < MANY; i++) {
        sum += nodes[i].messages;
    }
    return sum;
}

/* Sends to all, and looks who has got it: one letter each, the sender last. */
static const char *reached(unsigned flags)
{
    static char letters[MANY + 2];
    uint64_t before[MANY + 1] = {[MANY] = sender.messages};
    const uint64_t sum = got();
    unsigned count = 0;
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = nodes[i].messages;
    }
    const int taken = ringbus_send(sender.bus, &all, 0, "x", 1, flags);
    CHECK(taken >= 0);
    RUN_UNTIL(got() == sum + (unsigned)taken, NODE_MS, EVERYONE);
    for (unsigned i = 0; i < MANY; i++) {
        if (nodes[i].messages > before[i]) {
            letters[count++] = names[i][0];
        }
    }
    if (sender.messages > before[MANY]) {
        letters[count++] = 's';
    }
    letters[count] = '\0';
    assert_int_equal(count, taken);
    return letters;
}

static struct ringbus_addr addr_of(unsigned i)
{
    struct ringbus_addr addr;
    CHECK(ringbus_self(nodes[i].bus, &addr) == 0);
    return addr;
}

static void shield(unsigned i)
{
    const struct ringbus_addr addr = addr_of(i);
    for (unsigned n = 0; n < 10; n++) {
        CHECK(ringbus_report(sender.bus, &addr, RINGBUS_REPORT_TIMEOUT, 1000) == 0);
    }
    RUN_UNTIL(sender.events[RINGBUS_EVENT_SHIELDED] == 1, NODE_MS, EVERYONE);
}

static void test_flags_narrow_it(void **state)
{
    (void)state;
    assert_string_equal(reached(0), "abc");
    assert_string_equal(reached(RINGBUS_HEALTHY_ONLY), "abc");
    assert_string_equal(reached(RINGBUS_SAME_SET), "ab");
    assert_string_equal(reached(RINGBUS_WITH_SELF), "abcs");
    shield(B);
    assert_string_equal(reached(0), "abc");
    assert_string_equal(reached(RINGBUS_HEALTHY_ONLY), "ac");
    assert_string_equal(reached(RINGBUS_HEALTHY_ONLY | RINGBUS_SAME_SET | RINGBUS_WITH_SELF), "as");
}

/* Where no instance is in a set of the sender's name, nobody is outside of it. */
static void test_same_set_of_a_sender_without_one(void **state)
{
    (void)state;
    static struct node other;
    node_open(&other, &cluster, NULL);
    struct ringbus_addr addr;
    assert_int_equal(ringbus_target(other.bus, NEWS, NULL, &addr), 0);
    RUN_UNTIL(other.events[RINGBUS_EVENT_READY] == MANY + 1, NODE_MS, &other, EVERYONE);
    assert_int_equal(ringbus_send(other.bus, &all, 0, "x", 1, RINGBUS_SAME_SET), 4);
    node_close(&other);
}

static int error_of(const struct ringbus_broadcast *result, const struct ringbus_addr *addr)
{
    for (size_t i = 0; i < result->count; i++) {
        if (result->each[i].instance.instance == addr->instance) {
            assert_int_equal(result->each[i].instance.incarnation, addr->incarnation);
            return result->each[i].error;
        }
    }
    fail_msg("an instance is not told of");
    return 1;
}

static void test_each_is_told_of(void **state)
{
    (void)state;
    static unsigned char payload[LARGE];
    struct ringbus_delivery each[MANY + 1];
    struct ringbus_broadcast result = {
        .struct_size = sizeof result, .each = each, .each_max = MANY + 1};
    struct ringbus_message_options options = {.struct_size = sizeof options, .method = 3};
    const struct ringbus_part large = {payload, sizeof payload};
    const struct ringbus_part small = {payload, LANE / 8};
    struct ringbus_addr to[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        to[i] = addr_of(i);
    }
    assert_int_equal(ringbus_broadcast(sender.bus, &all, &large, 1, NULL, &result), 3);
    assert_int_equal(result.count, MANY);
    assert_int_equal(result.delivered, 3);
    assert_int_equal(result.skipped, 3);
    assert_int_equal(result.full + result.refused, 0);
    assert_int_equal(error_of(&result, &to[C]), 0);
    assert_int_equal(error_of(&result, &to[IDLE]), RINGBUS_E_NO_MATCH);
    assert_int_equal(error_of(&result, &to[NEW]), RINGBUS_E_NO_MATCH);
    assert_int_equal(error_of(&result, &to[OFF]), RINGBUS_E_NO_MATCH);
    RUN_UNTIL(got() == 3, NODE_MS, EVERYONE);
    assert_int_equal(nodes[C].bytes, LARGE);
    /* One lane is full, one instance shielded. */
    shield(C);
    while (ringbus_send(sender.bus, &to[A], 0, payload, small.size, 0) == 1) {
    }
    options.flags = RINGBUS_HEALTHY_ONLY | RINGBUS_WITH_SELF;
    assert_int_equal(ringbus_broadcast(sender.bus, &all, &small, 1, &options, &result), 2);
    assert_int_equal(result.count, MANY + 1);
    assert_int_equal(result.delivered, 2);
    assert_int_equal(result.full, 1);
    assert_int_equal(result.skipped, 4);
    assert_int_equal(result.refused, 0);
    assert_int_equal(error_of(&result, &to[A]), RINGBUS_E_FULL);
    assert_int_equal(error_of(&result, &to[B]), 0);
    assert_int_equal(error_of(&result, &to[C]), RINGBUS_E_SHIELDED);
    /* Less room than instances; none at all. */
    result.each_max = 1;
    assert_int_equal(ringbus_broadcast(sender.bus, &all, &small, 1, NULL, &result), 2);
    assert_int_equal(result.count, MANY);
    result.each = NULL;
    result.each_max = 0;
    assert_int_equal(ringbus_broadcast(sender.bus, &all, &small, 1, NULL, &result), 2);
    assert_int_equal(result.full, 1);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    const struct ringbus_part part = {"x", 1};
    struct ringbus_broadcast result = {.struct_size = sizeof result};
    struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_SAME_SET, .timeout_ms = 100};
    struct ringbus_addr any = {.cluster = all.cluster};
    struct ringbus_addr stranger = {.cluster = 77, .instance = RINGBUS_ALL};
    struct ringbus *bus = sender.bus;
    assert_int_equal(ringbus_send(bus, &any, 0, "x", 1, RINGBUS_WITH_SELF), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_send(bus, &all, 0, "x", 1, 0x80U), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_send_with(bus, &any, &part, 1, &options), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_request_with(bus, &any, &part, 1, &options, node_on_result, &sender),
                     RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_broadcast(bus, &any, &part, 1, NULL, &result), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_broadcast(bus, &all, &part, 1, NULL, NULL), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_broadcast(bus, &all, NULL, 1, NULL, &result), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_broadcast(bus, &stranger, &part, 1, NULL, &result),
                     RINGBUS_E_NOT_TARGET);
    result.each_max = 1;
    assert_int_equal(ringbus_broadcast(bus, &all, &part, 1, NULL, &result), RINGBUS_E_ARGUMENT);
    result.each_max = 0;
    result.struct_size = 0;
    assert_int_equal(ringbus_broadcast(bus, &all, &part, 1, NULL, &result), RINGBUS_E_ARGUMENT);
    assert_int_equal(got(), 0);
}

#define REACH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REACH_TEST(test_flags_narrow_it),
        REACH_TEST(test_same_set_of_a_sender_without_one),
        REACH_TEST(test_each_is_told_of),
        REACH_TEST(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
