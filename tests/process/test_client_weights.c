/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 92: odd weights, as instances and the configuration say them, give each instance its
 * share, without runs, and not the same first one to all callers; nobody with weight 0 gets
 * anything but by its own address. And sticky callers (features 2.3), who stay for their time.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define WEIGHTED  "/game/eu/pc/w1/core/weighted"
#define RANDOM    "/game/eu/pc/w1/core/random"
#define HASH      "/game/eu/pc/w1/core/hash"
#define STICKY    "/game/eu/pc/w1/core/sticky"
#define BRIEF     "/game/eu/pc/w1/core/brief"
#define LEAST     "/game/eu/pc/w1/core/least"
#define CALLERS   100U
#define PICKS_MAX 100000U

static const char config[] = "clusters:\n"
                             "  - {match: \"" WEIGHTED "\", balance: {mode: weighted}}\n"
                             "  - {match: \"" RANDOM "\", balance: {mode: random}}\n"
                             "  - {match: \"" HASH "\", balance: {mode: hash, keyless: weighted}}\n"
                             "  - {match: \"" LEAST "\", balance: {mode: least}}\n"
                             "  - {match: \"" STICKY "\", balance: {mode: rr, sticky: 1h}}\n"
                             "  - {match: \"" BRIEF "\", balance: {mode: rr, sticky: 20ms}}\n"
                             "instances:\n"
                             "  " WEIGHTED "/none: {weight: 0}\n"
                             "  " HASH "/none: {weight: 0}\n"
                             "quota: {control: 1000000, connects: 1000000}\n";

static struct cluster cluster;
static struct node caller;
static struct node pair[2];
static unsigned char to_second[PICKS_MAX]; /* by number of the message */

static void take(struct node *node, const struct ringbus_message *message)
{
    uint32_t i = 0;
    if (message->size == sizeof i) {
        memcpy(&i, message->data, sizeof i);
        to_second[i] = node == &pair[1];
    }
}

#define ALL &caller, &pair[0], &pair[1]

static void open_one(unsigned i, const char *of, const char *name, uint32_t weight)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", of, name);
    struct ringbus_options options = node_options(&cluster, path);
    options.weight = weight;
    memset(&pair[i], 0, sizeof pair[i]);
    pair[i].on_message = take;
    node_open_with(&pair[i], &options);
}

static struct ringbus_addr open_caller(const char *of)
{
    struct ringbus_addr any;
    memset(&caller, 0, sizeof caller);
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, of, NULL, &any) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, ALL);
    return any;
}

static struct ringbus_addr
open_pair(const char *of, const char *first, uint32_t a, const char *second, uint32_t b)
{
    open_one(0, of, first, a);
    open_one(1, of, second, b);
    return open_caller(of);
}

static void close_all(void)
{
    node_close(&caller);
    node_close(&pair[0]);
    node_close(&pair[1]);
}

static void send_many(const struct ringbus_addr *any, unsigned picks, unsigned flags)
{
    const uint64_t before = pair[0].messages + pair[1].messages;
    for (uint32_t i = 0; i < picks; i++) {
        RUN_UNTIL(ringbus_send(caller.bus, any, i, &i, sizeof i, flags) == 1, NODE_MS, ALL);
    }
    RUN_UNTIL(pair[0].messages + pair[1].messages == before + picks, NODE_MS, ALL);
}

static void check_share(unsigned picks, unsigned a, unsigned b)
{
    unsigned second = 0;
    for (unsigned i = 0; i < picks; i++) {
        second += to_second[i];
    }
    const double share = (double)second / picks;
    const double meant = (double)b / (a + b);
    CHECK(share > meant - 0.02 && share < meant + 0.02);
}

static unsigned longest_run(unsigned picks)
{
    unsigned longest = 0;
    unsigned run = 0;
    for (unsigned i = 0; i < picks; i++) {
        run = i > 0 && to_second[i] == to_second[i - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void test_shares(void **state)
{
    (void)state;
    const unsigned picks = FULL_OR(PICKS_MAX, 10000U / TEST_SCALE);
    struct ringbus_addr any = open_pair(WEIGHTED, "a", 21, "b", 11);
    send_many(&any, picks, 0);
    check_share(picks, 21, 11);
    assert_true(longest_run(picks) <= 3);
    close_all();

    any = open_pair(WEIGHTED, "a", 1000, "b", 1);
    send_many(&any, picks, 0);
    check_share(picks, 1000, 1);
    if (picks > 1001) {
        assert_true(pair[1].messages > 0); /* whoever has a weight gets something */
    }
    close_all();

    any = open_pair(RANDOM, "a", 21, "b", 11);
    send_many(&any, FULL_OR(PICKS_MAX, 10000U), 0); /* four sigma are 1.9 % */
    check_share(FULL_OR(PICKS_MAX, 10000U), 21, 11);
    close_all();

    any = open_pair(HASH, "a", 21, "b", 11);
    send_many(&any, FULL_OR(PICKS_MAX, 10000U), RINGBUS_KEY);
    check_share(FULL_OR(PICKS_MAX, 10000U), 21, 11);
    close_all();
}

static void test_weight_0(void **state)
{
    (void)state;
    struct ringbus_addr any = open_pair(WEIGHTED, "none", 100, "b", 1);
    struct ringbus_addr one;
    send_many(&any, 1000, 0);
    assert_int_equal(pair[0].messages, 0);
    CHECK(ringbus_self(pair[0].bus, &one) == 0);
    CHECK(ringbus_send(caller.bus, &one, 0, "", 0, 0) == 1); /* by its own address */
    RUN_UNTIL(pair[0].messages == 1, NODE_MS, ALL);
    close_all();

    any = open_pair(HASH, "none", 100, "b", 1);
    send_many(&any, 1000, 0);
    send_many(&any, 1000, RINGBUS_KEY);
    assert_int_equal(pair[0].messages, 0);
    /* All have 0: nobody is chosen, and the error says what is the matter. */
    node_close(&pair[1]);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &pair[0]);
    RUN_UNTIL(ringbus_send(caller.bus, &any, 1, "", 0, 0) == RINGBUS_E_NO_INSTANCE, NODE_MS,
              &caller, &pair[0]);
    assert_int_equal(pair[0].messages, 0);
    node_close(&caller);
    node_close(&pair[0]);

    /* Out of the range: refused where it is said, not cut off. */
    static const uint32_t wrong[] = {1001, 1000000, 1U << 31};
    for (unsigned i = 0; i < 3; i++) {
        struct node node = {0};
        struct ringbus_options options = node_options(&cluster, WEIGHTED "/z");
        options.weight = wrong[i];
        assert_int_equal(node_try_open(&node, &options), RINGBUS_E_ARGUMENT);
    }
}

static void test_first_picks_differ(void **state)
{
    (void)state;
    unsigned second = 0;
    open_one(0, WEIGHTED, "a", 1);
    open_one(1, WEIGHTED, "b", 1);
    for (unsigned i = 0; i < CALLERS; i++) {
        struct ringbus_addr any = open_caller(WEIGHTED);
        send_many(&any, 1, 0);
        second += to_second[0];
        node_close(&caller);
    }
    assert_in_range(second, 20, CALLERS - 20); /* 50 on the average, and six sigma to each side */
    node_close(&pair[0]);
    node_close(&pair[1]);
}

static void test_sticky(void **state)
{
    (void)state;
    struct ringbus_addr any = open_pair(STICKY, "a", 100, "b", 100);
    send_many(&any, 200, 0);
    assert_int_equal(longest_run(200), 200);
    const unsigned stays = to_second[0];
    /* Somebody else comes and goes: no reason to leave. */
    struct node third = {0};
    struct ringbus_options options = node_options(&cluster, STICKY "/c");
    node_open_with(&third, &options);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 3, NODE_MS, ALL, &third);
    send_many(&any, 50, 0);
    node_close(&third);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, ALL);
    send_many(&any, 50, 0);
    assert_int_equal(pair[stays].messages, 300);
    /* It goes itself: the other, and that one then. */
    node_close(&pair[stays]);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &caller, &pair[1 - stays]);
    for (unsigned i = 0; i < 20; i++) {
        RUN_UNTIL(ringbus_send(caller.bus, &any, 0, "", 0, 0) == 1, NODE_MS, &caller,
                  &pair[1 - stays]);
    }
    RUN_UNTIL(pair[1 - stays].messages == 20, NODE_MS, &caller, &pair[1 - stays]);
    node_close(&caller);
    node_close(&pair[1 - stays]);

    /* When its time is over it chooses anew, in turn. */
    any = open_pair(BRIEF, "a", 100, "b", 100);
    RUN_UNTIL(ringbus_send(caller.bus, &any, 0, "", 0, 0) == 1 && pair[0].messages > 0 &&
                  pair[1].messages > 0,
              NODE_MS, ALL);
    close_all();
}

/* One that does not come to reading has what was sent to it, whatever it said before. */
static void test_least_sees_who_is_stuck(void **state)
{
    (void)state;
    struct ringbus_addr any = open_pair(LEAST, "a", 100, "b", 100);
    for (unsigned i = 0; i < 400; i++) {
        const uint64_t before = pair[0].messages;
        CHECK(ringbus_send(caller.bus, &any, 0, "", 0, 0) == 1);
        for (unsigned steps = 0; steps < 8 && pair[0].messages == before; steps++) {
            struct node *const nodes[] = {&caller, &pair[0]};
            nodes_step(nodes, 2);
        }
    }
    RUN_UNTIL(pair[0].messages + pair[1].messages == 400, NODE_MS, ALL);
    assert_true(pair[0].messages > 300);
    close_all();
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
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
        cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
        cmocka_unit_test_setup_teardown(test_weight_0, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_picks_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sticky, setup, teardown),
        cmocka_unit_test_setup_teardown(test_least_sees_who_is_stuck, setup, teardown),
    };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
