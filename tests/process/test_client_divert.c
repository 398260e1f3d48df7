/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 89, features 2.2 (on_shield): a key whose owner is shielded goes to the next rank where
 * the policy says so, and whichever way it is sent, the receiver is told that it is not the owner:
 * one that refuses keys of others takes it. Nothing else is marked, and nothing afterwards.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define CACHE "/game/eu/pc/w1/core/cache"
#define MANY  3U
#define LARGE 20000U

static const char config[] = "clusters:\n"
                             "  - match: " CACHE "\n"
                             "    balance: {on_shield: failover}\n"
                             "    shield: {consecutive: 3, open_min: 1m, open_max: 1m}\n";

static struct cluster cluster;
static struct node caller;
static struct node caches[MANY];
static struct ringbus_addr any;
static uint64_t key;            /* of the shielded owner */
static uint64_t other_key;      /* of the instance that stands in for it */
static unsigned marked;         /* messages with RINGBUS_MESSAGE_DIVERTED */
static uint64_t bytes;          /* of the last message */
static unsigned char last_byte; /* of it */

#define ALL &caller, &caches[0], &caches[1], &caches[2]

static void take(struct node *node, const struct ringbus_message *message)
{
    marked += (message->flags & RINGBUS_MESSAGE_DIVERTED) != 0;
    bytes = message->size;
    last_byte = message->size > 0 ? ((const unsigned char *)message->data)[message->size - 1] : 0;
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    }
}

static uint64_t got(void)
{
    return caches[0].messages + caches[1].messages + caches[2].messages;
}

static unsigned home_of(uint64_t of)
{
    uint64_t before[MANY];
    const uint64_t sum = got();
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = caches[i].messages;
    }
    CHECK(ringbus_send(caller.bus, &any, of, "x", 1, RINGBUS_KEY) == 1);
    RUN_UNTIL(got() == sum + 1, NODE_MS, ALL);
    unsigned home = 0;
    while (caches[home].messages == before[home]) {
        home++;
    }
    return home;
}

static int set_up(void **state)
{
    struct ringbus_addr addr;
    (void)state;
    assert_int_equal(cluster_up(&cluster, config), 0);
    memset(&caller, 0, sizeof caller);
    memset(caches, 0, sizeof caches);
    for (unsigned i = 0; i < MANY; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, CACHE "/%u", i + 1);
        struct ringbus_options options = node_options(&cluster, path);
        options.slots = RINGBUS_SLOTS_REFUSE;
        caches[i].on_message = take;
        node_open_with(&caches[i], &options);
    }
    node_open(&caller, &cluster, NULL);
    assert_int_equal(ringbus_target(caller.bus, CACHE, NULL, &any), 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == MANY &&
                  caches[0].events[RINGBUS_EVENT_SLOTS_GAINED] > 0 &&
                  caches[1].events[RINGBUS_EVENT_SLOTS_GAINED] > 0 &&
                  caches[2].events[RINGBUS_EVENT_SLOTS_GAINED] > 0,
              NODE_MS, ALL);
    key = 1;
    marked = 0;
    const unsigned owner = home_of(key);
    CHECK(ringbus_self(caches[owner].bus, &addr) == 0);
    for (unsigned n = 0; n < 10; n++) {
        CHECK(ringbus_report(caller.bus, &addr, RINGBUS_REPORT_TIMEOUT, 1000) == 0);
    }
    RUN_UNTIL(caller.events[RINGBUS_EVENT_SHIELDED] == 1, NODE_MS, ALL);
    const unsigned stand_in = home_of(key);
    CHECK(stand_in != owner);
    other_key = 2;
    assert_int_equal(marked, 1);
    while (home_of(other_key) != stand_in || marked > 1) { /* not one that is diverted, too */
        other_key++;
        marked = 1;
    }
    marked = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&caller);
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&caches[i]);
    }
    cluster_down(&cluster);
    return 0;
}

/* One more has come, is marked, and has all of its bytes. */
static void expect_marked(uint64_t sum, uint64_t size, unsigned char last)
{
    const unsigned before = marked;
    const uint64_t diverted = node_stats(&caller).diverted;
    RUN_UNTIL(got() == sum + 1, NODE_MS, ALL);
    assert_int_equal(marked, before + 1);
    assert_int_equal(bytes, size);
    assert_int_equal(last_byte, last);
    /* What is its own, and what is sent to it by its name, is not. */
    struct ringbus_addr one = any;
    (void)home_of(other_key);
    for (unsigned i = 0; i < MANY; i++) {
        one.instance = (int32_t)i + 1;
        CHECK(ringbus_send(caller.bus, &one, key, "x", 1, RINGBUS_KEY) == 1);
        CHECK(ringbus_send(caller.bus, &one, 0, "x", 1, 0) == 1);
    }
    RUN_UNTIL(got() == sum + 2 + 2 * MANY, NODE_MS, ALL);
    assert_int_equal(marked, before + 1);
    assert_int_equal(node_stats(&caller).diverted, diverted);
}

static void test_each_way_of_sending(void **state)
{
    (void)state;
    static unsigned char payload[LARGE];
    const struct ringbus_part parts[2] = {{payload, 5}, {payload + LARGE - 1, 1}};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = key, .method = 3};
    struct ringbus_loan loan;
    payload[LARGE - 1] = 7;
    uint64_t sum = got();
    assert_int_equal(ringbus_send(caller.bus, &any, key, "x", 1, RINGBUS_KEY), 1);
    expect_marked(sum, 1, 'x');
    sum = got();
    assert_int_equal(ringbus_send(caller.bus, &any, key, payload, LARGE, RINGBUS_KEY), 1);
    expect_marked(sum, LARGE, 7);
    sum = got();
    assert_int_equal(ringbus_sendv(caller.bus, &any, key, parts, 2, RINGBUS_KEY), 1);
    expect_marked(sum, 6, 7);
    sum = got();
    assert_int_equal(ringbus_send_with(caller.bus, &any, parts, 2, &options), 1);
    expect_marked(sum, 6, 7);
    sum = got();
    assert_int_equal(ringbus_loan(caller.bus, LARGE, &loan), 0);
    memset(loan.data, 9, LARGE);
    assert_int_equal(ringbus_send_loan(caller.bus, &any, key, &loan, LARGE, RINGBUS_KEY), 1);
    expect_marked(sum, LARGE, 9);
    assert_int_equal(ringbus_loan_return(caller.bus, &loan), 0);
    assert_int_equal(node_stats(&caller).diverted, 6); /* with that of set_up() */
}

static void test_claims(void **state)
{
    (void)state;
    struct ringbus_claim claim;
    const size_t sizes[] = {1, 100, 1000, LARGE};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(sizes); i++) {
        const uint64_t sum = got();
        assert_int_equal(ringbus_claim(caller.bus, &any, key, sizes[i], RINGBUS_KEY, &claim), 0);
        assert_int_equal((uintptr_t)claim.data % 16, 0);
        memset(claim.data, 5, sizes[i]);
        ((unsigned char *)claim.data)[sizes[i] - 1] = 8;
        assert_int_equal(ringbus_commit(caller.bus, &claim, sizes[i]), 1);
        expect_marked(sum, sizes[i], 8);
    }
    /* One that is given up marks nothing. */
    assert_int_equal(ringbus_claim(caller.bus, &any, key, 8, RINGBUS_KEY, &claim), 0);
    assert_int_equal(ringbus_abort(caller.bus, &claim), 0);
    const uint64_t sum = got();
    assert_int_equal(ringbus_send(caller.bus, &any, key, "x", 1, RINGBUS_KEY), 1);
    expect_marked(sum, 1, 'x');
}

/* Each of them refuses the keys of others: but not this one. */
static void test_requests(void **state)
{
    (void)state;
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = key, .timeout_ms = 60000};
    uint64_t sum = got();
    CHECK(ringbus_request(caller.bus, &any, key, "x", 1, RINGBUS_KEY, 60000, node_on_result,
                          &caller) == 1);
    expect_marked(sum, 1, 'x');
    sum = got();
    CHECK(ringbus_request_with(caller.bus, &any, &part, 1, &options, node_on_result, &caller) == 1);
    expect_marked(sum, 1, 'x');
    RUN_UNTIL(caller.replies[RINGBUS_REPLIED] == 2, NODE_MS, ALL);
    assert_int_equal(node_stats(&caches[0]).not_owner + node_stats(&caches[1]).not_owner +
                         node_stats(&caches[2]).not_owner,
                     0);
}

#define DIVERT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIVERT_TEST(test_each_way_of_sending),
        DIVERT_TEST(test_claims),
        DIVERT_TEST(test_requests),
    };
    return cmocka_run_group_tests_name("divert", tests, NULL, NULL);
}
