/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of other businesses (features B3 to B14): the own ones while there are any, else the
 * first import in order that has one, never mixed; a broadcast is for the own business. They come
 * and go with the target, and with the configuration.
 */
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define SHOP(realm) "/" realm "/eu/pc/w1/trade/shop"

static struct cluster cluster;
static struct node caller, own, second, third;

static const char config[] = "realms:\n"
                             "  game_a: {imports: [game_b, game_c]}\n"
                             "rights: {otherwise: allow}\n";

static uint64_t send_some(const struct ringbus_addr *to, unsigned flags)
{
    for (uint64_t i = 0; i < 8; i++) {
        CHECK(ringbus_send(caller.bus, to, i, &i, sizeof i, flags) == 1);
    }
    return 8;
}

static void expect(struct node *who, uint64_t more)
{
    const uint64_t all = own.messages + second.messages + third.messages + more;
    const uint64_t had = who->messages;
    RUN_UNTIL(own.messages + second.messages + third.messages == all, NODE_MS, &own, &second,
              &third, &caller);
    assert_int_equal(who->messages, had + more);
}

static void open_caller(struct ringbus_addr *shop)
{
    memset(&caller, 0, sizeof caller);
    memset(&own, 0, sizeof own);
    memset(&second, 0, sizeof second);
    memset(&third, 0, sizeof third);
    node_open(&caller, &cluster, "/game_a/eu/pc/w1/gate/gate/1");
    CHECK(ringbus_target(caller.bus, SHOP("game_a"), NULL, shop) == 0);
}

static void test_own_first_then_in_order(void **state)
{
    (void)state;
    struct ringbus_addr shop;
    open_caller(&shop);
    /* Nobody of the own business has ever been there: the second import alone serves. */
    node_open(&third, &cluster, SHOP("game_c") "/1");
    RUN_UNTIL(ringbus_send(caller.bus, &shop, 0, "", 0, 0) == 1, NODE_MS, &caller, &third);
    expect(&third, 1);
    expect(&third, send_some(&shop, RINGBUS_KEY) + send_some(&shop, 0));

    node_open(&second, &cluster, SHOP("game_b") "/7");
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &second, &third);
    expect(&second, send_some(&shop, RINGBUS_KEY) + send_some(&shop, 0));

    node_open(&own, &cluster, SHOP("game_a") "/3");
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &caller, &own, &second, &third);
    expect(&own, send_some(&shop, RINGBUS_KEY) + send_some(&shop, 0));
    /* All instances of an address are those of its cluster. */
    struct ringbus_addr all = shop;
    all.instance = RINGBUS_ALL;
    CHECK(ringbus_send(caller.bus, &all, 0, "", 0, 0) == 1);
    expect(&own, 1);

    node_close(&own);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &second, &third);
    memset(&own, 0, sizeof own);
    expect(&second, send_some(&shop, RINGBUS_KEY) + send_some(&shop, 0));

    /* With the target its imports go. */
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b")) == RINGBUS_E_NOT_TARGET);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_a")) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 3, NODE_MS, &caller, &second, &third);
    CHECK(ringbus_send(caller.bus, &shop, 0, "", 0, 0) == RINGBUS_E_NOT_TARGET);
    node_close(&second);
    node_close(&third);
    node_close(&caller);
}

/* A cluster that is an import and a target of its own stays when one of the two ends. */
static void test_import_and_target(void **state)
{
    (void)state;
    struct ringbus_addr shop;
    struct ringbus_addr other;
    open_caller(&shop);
    node_open(&second, &cluster, SHOP("game_b") "/7");
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &caller, &second);
    CHECK(ringbus_target(caller.bus, SHOP("game_b"), NULL, &other) == 0);
    RUN_UNTIL(ringbus_send(caller.bus, &other, 0, "", 0, 0) == 1, NODE_MS, &caller, &second);
    expect(&second, 1);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b")) == 0);
    expect(&second, send_some(&shop, 0)); /* the import is left */
    CHECK(ringbus_target(caller.bus, SHOP("game_b"), NULL, &other) == 0);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_a")) == 0);
    expect(&second, send_some(&other, 0)); /* the target is left */
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b")) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &second);
    node_close(&second);
    node_close(&caller);
}

/* An instance of it that is a target of its own stays; the others were there for the import. */
static void test_import_and_one_of_its_instances(void **state)
{
    (void)state;
    struct ringbus_addr shop;
    struct ringbus_addr one;
    open_caller(&shop);
    node_open(&second, &cluster, SHOP("game_b") "/7");
    node_open(&third, &cluster, SHOP("game_b") "/8");
    CHECK(ringbus_target(caller.bus, SHOP("game_b") "/7", NULL, &one) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &second, &third);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b")) == RINGBUS_E_NOT_TARGET);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_a")) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &second, &third);
    CHECK(ringbus_send(caller.bus, &one, 0, "", 0, 0) == 1);
    expect(&second, 1);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b") "/7") == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &caller, &second, &third);
    node_close(&second);
    node_close(&third);
    node_close(&caller);
}

/* A whole target that is an import as well does not end with one of its instances. */
static void test_target_and_one_of_its_instances(void **state)
{
    (void)state;
    struct ringbus_addr shop;
    struct ringbus_addr other;
    open_caller(&shop);
    node_open(&second, &cluster, SHOP("game_b") "/7");
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &caller, &second);
    CHECK(ringbus_target(caller.bus, SHOP("game_b"), NULL, &other) == 0);
    CHECK(ringbus_target(caller.bus, SHOP("game_b") "/7", NULL, NULL) == 0);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b") "/7") == 0);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_a")) == 0);
    RUN_UNTIL(ringbus_send(caller.bus, &other, 0, "", 0, 0) == 1, NODE_MS, &caller, &second);
    expect(&second, 1);
    assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], 0);
    CHECK(ringbus_untarget(caller.bus, SHOP("game_b")) == 0);
    node_close(&second);
    node_close(&caller);
}

/* Who has targeted an instance first imports as well, when all of the cluster is targeted. */
static void test_imports_of_a_target_that_grew(void **state)
{
    (void)state;
    struct ringbus_addr shop;
    memset(&caller, 0, sizeof caller);
    memset(&own, 0, sizeof own);
    memset(&second, 0, sizeof second);
    memset(&third, 0, sizeof third);
    node_open(&own, &cluster, SHOP("game_a") "/3");
    node_open(&second, &cluster, SHOP("game_b") "/7");
    node_open(&caller, &cluster, "/game_a/eu/pc/w1/gate/gate/1");
    CHECK(ringbus_target(caller.bus, SHOP("game_a") "/3", NULL, NULL) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &caller, &own, &second);
    CHECK(ringbus_target(caller.bus, SHOP("game_a"), NULL, &shop) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &own, &second);
    node_close(&own);
    node_close(&second);
    node_close(&caller);
}

/* A key whose owner, of another business, is not linked: the refusal names it, none of ours. */
static void test_refusal_names_the_other_business(void **state)
{
    (void)state;
    struct ringbus_addr shop;
    struct raw silent; /* registers, and answers nobody */
    open_caller(&shop);
    CHECK(raw_up(&silent, cluster.socket, SHOP("game_b") "/7") == 0);
    RUN_UNTIL(ringbus_send(caller.bus, &shop, 7, "", 0, RINGBUS_KEY) == RINGBUS_E_NOT_READY,
              NODE_MS, &caller);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), SHOP("game_b") "/7"));
    raw_close(&silent);
    node_close(&caller);
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
        cmocka_unit_test_setup_teardown(test_own_first_then_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_import_and_target, setup, teardown),
        cmocka_unit_test_setup_teardown(test_import_and_one_of_its_instances, setup, teardown),
        cmocka_unit_test_setup_teardown(test_target_and_one_of_its_instances, setup, teardown),
        cmocka_unit_test_setup_teardown(test_imports_of_a_target_that_grew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusal_names_the_other_business, setup, teardown),
    };
    return cmocka_run_group_tests_name("realm", tests, NULL, NULL);
}
