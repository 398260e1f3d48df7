/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and load (features 2.2): with balance.hash_bound what is too much for a key's owner goes to
 * the next rank, marked where a message can be, and comes home when the owner has less to do; one
 * that is read in time never leaves.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define CACHE "/game/eu/pc/w1/data/cache"
#define MANY  3U
#define BURST 90U

static const char config[] = "clusters:\n"
                             "  - match: \"" CACHE "\"\n"
                             "    balance: {mode: hash, hash_bound: 150%, ranks: 2}\n";

static struct cluster cluster;
static struct node caller;
static struct node caches[MANY];
static uint64_t diverted;

#define ALL &caller, &caches[0], &caches[1], &caches[2]

static void take(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    diverted += (message->flags & RINGBUS_MESSAGE_DIVERTED) != 0;
}

static struct ringbus_addr open_all(void)
{
    struct ringbus_addr any;
    memset(&caller, 0, sizeof caller);
    diverted = 0;
    for (unsigned i = 0; i < MANY; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, CACHE "/%u", i + 1);
        memset(&caches[i], 0, sizeof caches[i]);
        caches[i].on_message = take;
        node_open(&caches[i], &cluster, path);
    }
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, CACHE, NULL, &any) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == MANY, NODE_MS, ALL);
    return any;
}

static void close_all(void)
{
    node_close(&caller);
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&caches[i]);
    }
}

static uint64_t got(void)
{
    return caches[0].messages + caches[1].messages + caches[2].messages;
}

static void send_waited(const struct ringbus_addr *any, uint64_t key)
{
    const uint64_t sum = got();
    CHECK(ringbus_send(caller.bus, any, key, "x", 1, RINGBUS_KEY) == 1);
    RUN_UNTIL(got() == sum + 1, NODE_MS, ALL);
}

/* Whose a key is while nobody has anything to do. */
static unsigned home_of(const struct ringbus_addr *any, uint64_t key)
{
    uint64_t before[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = caches[i].messages;
    }
    send_waited(any, key);
    for (unsigned i = 0; i < MANY; i++) {
        if (caches[i].messages > before[i]) {
            return i;
        }
    }
    return MANY;
}

static void test_busy_owner(void **state)
{
    (void)state;
    struct ringbus_addr any = open_all();
    const unsigned home = home_of(&any, 7);
    /* One after the other: the owner has read each before the next, and no tick need see it. */
    for (unsigned i = 0; i < 100; i++) {
        send_waited(&any, 7);
    }
    assert_int_equal(caches[home].messages, 101);
    assert_int_equal(node_stats(&caller).diverted, 0);
    /* Many at once, which nobody reads: the owner gets half as much again as its share. */
    struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = 7};
    const struct ringbus_part part = {"x", 1};
    for (unsigned i = 0; i < BURST; i++) { /* marked with options and without */
        CHECK((i % 2 == 0 ? ringbus_send_with(caller.bus, &any, &part, 1, &options)
                          : ringbus_send(caller.bus, &any, 7, "x", 1, RINGBUS_KEY)) == 1);
    }
    RUN_UNTIL(got() == 101 + BURST, NODE_MS, ALL);
    const uint64_t stayed = caches[home].messages - 101;
    /* Only two ranks are asked: when both are over the bound it is the owner's after all. */
    assert_in_range(stayed, BURST * 4 / 10, BURST * 6 / 10);
    assert_int_equal(diverted, BURST - stayed);
    assert_int_equal(node_stats(&caller).diverted, BURST - stayed);
    unsigned used = 0;
    for (unsigned i = 0; i < MANY; i++) {
        used += caches[i].messages > 0;
    }
    assert_int_equal(used, 2);
    /* Read, and home again. */
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(home_of(&any, 7), home);
    }
    close_all();
}

/* Keys that are many fill their owners alike: few of them leave. */
static void test_many_keys(void **state)
{
    (void)state;
    struct ringbus_addr any = open_all();
    for (uint64_t key = 0; key < 600; key++) {
        RUN_UNTIL(ringbus_send(caller.bus, &any, key, "x", 1, RINGBUS_KEY) == 1, NODE_MS, ALL);
    }
    RUN_UNTIL(got() == 600, NODE_MS, ALL);
    for (unsigned i = 0; i < MANY; i++) {
        assert_in_range(caches[i].messages, 120, 300);
    }
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
        cmocka_unit_test_setup_teardown(test_busy_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_keys, setup, teardown),
    };
    return cmocka_run_group_tests_name("bound", tests, NULL, NULL);
}
