/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of the key space as units of hand-over (features 2.2): what an instance is told that it
 * owns is what callers send it, what one gains another loses, an instance that died keeps its own
 * for its time, and a key that came to the wrong place is refused, looked up again and asked once
 * more.
 */
#include "bus/table.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE    "/game/eu/pc/w1/data/store"
#define SLOTS    RBI_TABLE_SLOTS_LARGE
#define MANY     3U
#define DELAY_MS 300U

static struct cluster cluster;
static struct node caller;
static struct node stores[MANY + 1];
static unsigned char owned[MANY + 1][SLOTS]; /* as the events have told */
static unsigned wrong; /* messages for a key that their receiver does not own */

static const char config[] =
    "clusters:\n"
    "  - {match: \"" STORE "\", balance: {mode: hash, rehash_delay: 300ms}}\n";

static void take_slots(struct node *node, const struct ringbus_event *event)
{
    unsigned char *own = owned[node - stores];
    const bool gained = event->type == RINGBUS_EVENT_SLOTS_GAINED;
    if (!gained && event->type != RINGBUS_EVENT_SLOTS_LOST) {
        CHECK(event->slots == NULL && event->slot_count == 0);
        return;
    }
    CHECK(event->slot_count > 0 && event->epoch > 0);
    for (size_t i = 0; i < event->slot_count; i++) {
        for (uint32_t slot = event->slots[i].first; slot <= event->slots[i].last; slot++) {
            CHECK(own[slot] != gained); /* nothing is gained twice, or lost that was not there */
            own[slot] = gained;
        }
    }
}

static void take_message(struct node *node, const struct ringbus_message *message)
{
    const int owns = ringbus_owns(node->bus, message->key);
    CHECK(owns >= 0);
    CHECK(owns == owned[node - stores][rbi_table_slot(message->key, SLOTS)]);
    wrong += owns == 0;
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    }
}

static void open_store(unsigned i, int option)
{
    char path[64];
    (void)snprintf(path, sizeof path, STORE "/%u", i + 1);
    struct ringbus_options options = node_options(&cluster, path);
    options.slots = option;
    memset(&stores[i], 0, sizeof stores[i]);
    memset(owned[i], 0, sizeof owned[i]);
    stores[i].on_event = take_slots;
    stores[i].on_message = take_message;
    node_open_with(&stores[i], &options);
}

/* Whether each slot has one owner among the first @p count. */
static bool whole(unsigned count)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        unsigned owners = 0;
        for (unsigned i = 0; i < count; i++) {
            owners += owned[i][slot];
        }
        if (owners != 1) {
            return false;
        }
    }
    return true;
}

static size_t told(unsigned i)
{
    size_t sum = 0;
    static struct ringbus_slot_range ranges[SLOTS];
    const int count = ringbus_slots(stores[i].bus, ranges, SLOTS);
    for (int r = 0; r < count; r++) {
        sum += ranges[r].last - ranges[r].first + 1;
    }
    return sum;
}

static size_t marked(unsigned i)
{
    size_t sum = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        sum += owned[i][slot];
    }
    return sum;
}

#define ALL_STORES &stores[0], &stores[1], &stores[2], &stores[3]

static void test_gained_and_lost(void **state)
{
    (void)state;
    struct ringbus_addr store;
    memset(stores, 0, sizeof stores);
    memset(&caller, 0, sizeof caller);
    wrong = 0;
    for (unsigned i = 0; i < MANY; i++) {
        open_store(i, RINGBUS_SLOTS_REPORT);
    }
    RUN_UNTIL(whole(MANY), NODE_MS, ALL_STORES);
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_owns(caller.bus, 1) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_target(caller.bus, STORE, NULL, &store) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == MANY, NODE_MS, &caller, ALL_STORES);
    for (uint64_t key = 0; key < 2000; key++) {
        RUN_UNTIL(ringbus_send(caller.bus, &store, key, "", 0, RINGBUS_KEY) == 1, NODE_MS, &caller,
                  ALL_STORES);
    }
    RUN_UNTIL(stores[0].messages + stores[1].messages + stores[2].messages == 2000, NODE_MS,
              ALL_STORES);
    assert_int_equal(wrong, 0);

    /* One joins: it gains what the others lose. */
    size_t before[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = marked(i);
        assert_int_equal(told(i), before[i]);
        assert_in_range(before[i], SLOTS / 4, SLOTS / 2);
    }
    open_store(MANY, RINGBUS_SLOTS_REPORT);
    RUN_UNTIL(whole(MANY + 1) && marked(MANY) > 0, NODE_MS, ALL_STORES);
    size_t lost = 0;
    for (unsigned i = 0; i < MANY; i++) {
        lost += before[i] - marked(i);
        assert_int_equal(stores[i].events[RINGBUS_EVENT_SLOTS_GAINED], 1); /* the first one */
        assert_int_equal(stores[i].events[RINGBUS_EVENT_SLOTS_LOST], 1);
    }
    assert_int_equal(lost, marked(MANY));
    assert_int_equal(told(MANY), marked(MANY));

    /* It leaves in order: each gets back at once what it had. */
    CHECK(ringbus_close(stores[MANY].bus, 0) == 0);
    memset(&stores[MANY], 0, sizeof stores[MANY]);
    memset(owned[MANY], 0, sizeof owned[MANY]);
    RUN_UNTIL(whole(MANY), NODE_MS, &stores[0], &stores[1], &stores[2]);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(marked(i), before[i]);
    }
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&stores[i]);
    }
    node_close(&caller);
}

static void be_store(const struct cluster *at, void *context)
{
    struct node node = {0};
    (void)context;
    node_open(&node, at, STORE "/3");
    for (;;) {
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        CHECK(ringbus_wait(node.bus, 100) >= 0);
    }
}

/* Slots of one that died wait for it; callers are told so, and nothing goes elsewhere. */
static void test_death(void **state)
{
    (void)state;
    struct ringbus_addr store;
    memset(stores, 0, sizeof stores);
    memset(&caller, 0, sizeof caller);
    open_store(0, RINGBUS_SLOTS_REPORT);
    open_store(1, RINGBUS_SLOTS_REPORT);
    RUN_UNTIL(whole(2), NODE_MS, &stores[0], &stores[1]);
    pid_t pid = child_start(be_store, &cluster, NULL);
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, STORE, NULL, &store) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 3 &&
                  stores[0].events[RINGBUS_EVENT_SLOTS_LOST] == 1 &&
                  stores[1].events[RINGBUS_EVENT_SLOTS_LOST] == 1,
              NODE_MS, &caller, &stores[0], &stores[1]);
    uint64_t key = 0;
    while (ringbus_owns(stores[0].bus, key) == 1 || ringbus_owns(stores[1].bus, key) == 1) {
        key++;
    }
    assert_int_equal(ringbus_send(caller.bus, &store, key, "", 0, RINGBUS_KEY), 1);
    const size_t had = marked(0);
    const uint64_t died_ms = test_now_ms();
    child_kill(pid);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &stores[0], &stores[1]);
    int r = ringbus_send(caller.bus, &store, key, "", 0, RINGBUS_KEY);
    if (test_now_ms() - died_ms < DELAY_MS) {
        assert_int_equal(r, RINGBUS_E_RESTARTING);
        assert_int_equal(marked(0), had);
    }
    /* Back within the time: nothing has moved for it. */
    pid = child_start(be_store, &cluster, NULL);
    RUN_UNTIL(ringbus_send(caller.bus, &store, key, "", 0, RINGBUS_KEY) == 1, NODE_MS, &caller,
              &stores[0], &stores[1]);
    child_kill(pid);
    /* Not back: when the time is over another owns them. */
    RUN_UNTIL(whole(2), NODE_MS, &stores[0], &stores[1], &caller);
    RUN_UNTIL(ringbus_send(caller.bus, &store, key, "", 0, RINGBUS_KEY) == 1, NODE_MS, &caller,
              &stores[0], &stores[1]);
    node_close(&stores[0]);
    node_close(&stores[1]);
    node_close(&caller);
}

static struct ringbus_result last_result;
static unsigned results;

static void take_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last_result = *result;
    results++;
}

/* A caller that has not looked since asks the owner of before, which knows better. */
static void test_not_owner(void **state)
{
    (void)state;
    struct ringbus_addr store;
    memset(stores, 0, sizeof stores);
    memset(&caller, 0, sizeof caller);
    wrong = 0;
    results = 0;
    open_store(0, RINGBUS_SLOTS_REFUSE);
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, STORE, NULL, &store) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1 && whole(1), NODE_MS, &caller, &stores[0]);
    CHECK(ringbus_send(caller.bus, &store, 0, "", 0, RINGBUS_KEY) == 1);
    RUN_UNTIL(stores[0].messages == 1, NODE_MS, &stores[0]);
    open_store(1, RINGBUS_SLOTS_REFUSE);
    RUN_UNTIL(whole(2) && marked(1) > 0, NODE_MS, &stores[0], &stores[1]);
    uint64_t key = 0;
    while (ringbus_owns(stores[1].bus, key) != 1) {
        key++;
    }
    CHECK(ringbus_request(caller.bus, &store, key, "", 0, RINGBUS_KEY, 5000, take_result, NULL) ==
          1);
    /* One that the policy has asked again goes to the new owner, once it is linked. */
    struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = key, .timeout_ms = 5000};
    const struct ringbus_part part = {.data = "", .size = 0};
    RUN_UNTIL(results == 1, NODE_MS, &stores[0], &stores[1], &caller);
    assert_int_equal(last_result.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last_result.error, RINGBUS_E_NOT_OWNER);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &stores[0], &stores[1], &caller);
    CHECK(ringbus_request_with(caller.bus, &store, &part, 1, &options, take_result, NULL) == 1);
    RUN_UNTIL(results == 2, NODE_MS, &stores[0], &stores[1], &caller);
    assert_int_equal(last_result.outcome, RINGBUS_REPLIED);
    assert_int_equal(last_result.peer.instance, 2);
    assert_int_equal(wrong, 0);
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    CHECK(ringbus_stats(stores[0].bus, &stats) == 0);
    assert_int_equal(stats.not_owner, 1);
    node_close(&stores[0]);
    node_close(&stores[1]);
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
        cmocka_unit_test_setup_teardown(test_gained_and_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_death, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_owner, setup, teardown),
    };
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
