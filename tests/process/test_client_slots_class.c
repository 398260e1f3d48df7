/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots and classes of messages (features 2.2, 2.6; scenarios 84, 88): an instance that refuses the
 * keys of others judges a message as its sender did, by tag, canary and rule; a canary owns the
 * keys of the canary; and who is moved to another set owns what callers of that set send it.
 */
#include "bus/table.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define STORE    "/game/eu/pc/w1/data/store"
#define STORES   4U
#define REQUESTS 300U
#define RULES                                                                                      \
    "clusters:\n"                                                                                  \
    "  - match: " STORE "\n"                                                                       \
    "    set: {mode: strict}\n"                                                                    \
    "    rules: [{id: reads, methods: 7, mode: strict, instance: '2'}]\n"                          \
    "    tags: {canaries: [{id: early, tag: v2, share: 30%}]}\n"

static struct cluster cluster;
static struct node caller;
static struct node stores[STORES];
static unsigned got[STORES];

static void take(struct node *node, const struct ringbus_message *message)
{
    got[node - stores]++;
    CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
}

static void step(void)
{
    struct node *all[STORES + 1] = {&caller};
    for (unsigned i = 0; i < STORES; i++) {
        all[i + 1] = &stores[i];
    }
    nodes_step(all, STORES + 1);
}

#define STEP_UNTIL(condition)                                                                      \
    do {                                                                                           \
        const uint64_t end_ms = test_now_ms() + NODE_MS;                                           \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < end_ms);                                                         \
            step();                                                                                \
        }                                                                                          \
    } while (0)

static unsigned replies(void)
{
    return caller.replies[0] + caller.replies[1] + caller.replies[2] + caller.replies[3];
}

/* Each key once. A refusal would be asked again, once: so it is counted at the receivers. */
static void ask_all(uint32_t method, const char *tag)
{
    const struct ringbus_addr to = {.cluster = ringbus_key(STORE, strlen(STORE))};
    const struct ringbus_part part = {"", 0};
    memset(got, 0, sizeof got);
    memset(caller.replies, 0, sizeof caller.replies);
    for (uint64_t key = 0; key < REQUESTS; key++) {
        const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                        .flags = RINGBUS_KEY,
                                                        .key = key,
                                                        .method = method,
                                                        .tag = tag,
                                                        .timeout_ms = NODE_MS};
        CHECK(ringbus_request_with(caller.bus, &to, &part, 1, &options, node_on_result, &caller) ==
              1);
        STEP_UNTIL(replies() == key + 1);
    }
    assert_int_equal(caller.replies[RINGBUS_REPLIED], REQUESTS);
    for (unsigned i = 0; i < STORES; i++) {
        assert_int_equal(node_stats(&stores[i]).not_owner, 0);
    }
}

static void open_store(unsigned i, const char *set, const char *tags)
{
    char path[64];
    (void)snprintf(path, sizeof path, STORE "/%u", i + 1);
    struct ringbus_options options = node_options(&cluster, path);
    options.slots = RINGBUS_SLOTS_REFUSE;
    options.set = set;
    options.tags = tags;
    stores[i].on_message = take;
    node_open_with(&stores[i], &options);
}

static uint32_t slots_of(const struct node *node)
{
    static struct ringbus_slot_range ranges[RBI_TABLE_SLOTS_LARGE];
    const int count = ringbus_slots(node->bus, ranges, RBI_TABLE_SLOTS_LARGE);
    uint32_t sum = 0;
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        sum += ranges[i].last - ranges[i].first + 1;
    }
    return sum;
}

static void test_refuses_as_it_was_dealt(void **state)
{
    (void)state;
    open_store(0, NULL, NULL);
    open_store(1, NULL, NULL);
    open_store(2, NULL, "v2");
    open_store(3, NULL, "v2,v3");
    node_open(&caller, &cluster, NULL);
    struct ringbus_addr to;
    assert_int_equal(ringbus_target(caller.bus, STORE, NULL, &to), 0);
    STEP_UNTIL(caller.events[RINGBUS_EVENT_READY] == STORES);
    STEP_UNTIL(slots_of(&stores[0]) + slots_of(&stores[1]) == RBI_TABLE_SLOTS_LARGE);
    STEP_UNTIL(slots_of(&stores[2]) + slots_of(&stores[3]) == RBI_TABLE_SLOTS_LARGE);
    ask_all(0, NULL);
    for (unsigned i = 0; i < STORES; i++) {
        assert_in_range(got[i], 1, REQUESTS);
    }
    ask_all(0, "v2");
    assert_int_equal(got[2] + got[3], REQUESTS);
    ask_all(0, "v3");
    assert_int_equal(got[3], REQUESTS);
    ask_all(7, "v9"); /* nobody has it: untagged ones, and of these the rule's */
    assert_int_equal(got[1], REQUESTS);
}

/* What is another's is refused as ever. */
static void test_refuses_what_is_anothers(void **state)
{
    (void)state;
    struct ringbus_addr to;
    open_store(0, NULL, NULL);
    open_store(1, NULL, NULL);
    node_open(&caller, &cluster, NULL);
    /* Callers that know of one only send it all. */
    assert_int_equal(ringbus_target(caller.bus, STORE "/1", NULL, &to), 0);
    STEP_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1);
    STEP_UNTIL(slots_of(&stores[0]) + slots_of(&stores[1]) == RBI_TABLE_SLOTS_LARGE);
    to = (struct ringbus_addr){.cluster = to.cluster};
    for (uint64_t key = 0; key < 20; key++) {
        (void)ringbus_request(caller.bus, &to, key, "", 0, RINGBUS_KEY, NODE_MS, node_on_result,
                              &caller);
    }
    STEP_UNTIL(replies() == 20);
    assert_in_range(node_stats(&stores[0]).not_owner, 1, 40);
}

static void test_moved_to_another_set(void **state)
{
    (void)state;
    open_store(0, "app.a.1", NULL);
    open_store(1, "app.a.1", NULL);
    STEP_UNTIL(slots_of(&stores[0]) + slots_of(&stores[1]) == RBI_TABLE_SLOTS_LARGE);
    assert_in_range(slots_of(&stores[1]), 1, RBI_TABLE_SLOTS_LARGE - 1);
    assert_int_equal(
        cluster_configure(&cluster, RULES "instances: {" STORE "/2: {set: app.b.1}}\n"), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    STEP_UNTIL(slots_of(&stores[0]) == RBI_TABLE_SLOTS_LARGE);
    STEP_UNTIL(slots_of(&stores[1]) == RBI_TABLE_SLOTS_LARGE);
}

static int setup(void **state)
{
    (void)state;
    memset(&caller, 0, sizeof caller);
    memset(stores, 0, sizeof stores);
    return cluster_up(&cluster, RULES);
}

static int teardown(void **state)
{
    (void)state;
    if (caller.bus != NULL) {
        node_close(&caller);
    }
    for (unsigned i = 0; i < STORES; i++) {
        if (stores[i].bus != NULL) {
            node_close(&stores[i]);
        }
    }
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refuses_as_it_was_dealt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_what_is_anothers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moved_to_another_set, setup, teardown),
    };
    return cmocka_run_group_tests_name("slots_class", tests, NULL, NULL);
}
