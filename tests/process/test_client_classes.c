/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios 85 and 88: messages of many classes by turns. What the policy's canaries and rules tell
 * apart is chosen for once, whatever the order; and classes that the same instances serve have one
 * table, so that tags which nobody has cost no build and no memory of its size.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define HALL      "/game/eu/pc/w1/core/hall"
#define PLAIN     2U
#define CANARIES  8U
#define INSTANCES (PLAIN + CANARIES)
#define KINDS     3U /* read, write, neither */
#define MESSAGES  3000U
#define STRANGERS 200U

static struct cluster cluster;
static struct node caller;
static struct node instances[INSTANCES];
static struct ringbus_addr to;
static unsigned outside;
static unsigned got;
static unsigned sent;

/* The key says the canary: who is none of its own takes nothing of it. */
static void on_message(struct node *node, const struct ringbus_message *message)
{
    const uint32_t share = rbi_route_share(message->key) / 1000;
    const unsigned self = (unsigned)(uintptr_t)node->context;
    const bool canary = share < CANARIES;
    got++;
    outside += canary ? self != PLAIN + share : self >= PLAIN;
}

static void step(void)
{
    struct node *all[INSTANCES + 1] = {&caller};
    for (unsigned i = 0; i < INSTANCES; i++) {
        all[i + 1] = &instances[i];
    }
    nodes_step(all, INSTANCES + 1);
}

static int send_one(uint64_t key, uint32_t method, const char *tag)
{
    const struct ringbus_part part = {"", 0};
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = RINGBUS_KEY,
                                                    .key = key,
                                                    .method = method,
                                                    .tag = tag};
    int r = ringbus_send_with(caller.bus, &to, &part, 1, &options);
    while (r == RINGBUS_E_FULL) {
        step();
        r = ringbus_send_with(caller.bus, &to, &part, 1, &options);
    }
    sent += r == 1 ? 1U : 0U;
    return r;
}

static void take_all(void)
{
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (got < sent) {
        CHECK(test_now_ms() < end_ms);
        step();
    }
}

static const struct rbi_cluster *hall_of(void)
{
    return rbi_cluster_find(caller.bus, rbi_cluster_id(HALL, strlen(HALL)));
}

static unsigned count_tables(const struct rbi_cluster *hall)
{
    unsigned count = 0;
    for (unsigned i = 0; i < hall->choice_count; i++) {
        bool other = !hall->choices[i]->stale && hall->choices[i]->keyed.owners != NULL;
        for (unsigned j = 0; j < i && other; j++) {
            other = hall->choices[j]->stale ||
                    hall->choices[j]->keyed.owners != hall->choices[i]->keyed.owners;
        }
        count += other ? 1U : 0U;
    }
    return count;
}

static void send_many(uint64_t *seed)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        assert_int_equal(send_one(bus_random(seed), (uint32_t)(bus_random(seed) % KINDS), NULL), 1);
        if (i % 64 == 0) {
            step();
        }
    }
}

static void test_classes_are_kept(void **state)
{
    (void)state;
    uint64_t seed = 85;
    struct rbi_choice *kept[RBI_CHOICES_MAX];
    send_many(&seed);
    const struct rbi_cluster *hall = hall_of();
    const unsigned count = hall->choice_count;
    /* The first of the choices is that of messages without anything. */
    assert_int_equal(count, KINDS * (1 + CANARIES));
    assert_int_equal(count_tables(hall), 1 + CANARIES);
    memcpy(kept, hall->choices, sizeof kept);
    send_many(&seed);
    assert_int_equal(hall->choice_count, count);
    assert_memory_equal(kept, hall->choices, count * sizeof kept[0]);
    take_all();
    assert_int_equal(outside, 0);
}

static void test_strangers_share(void **state)
{
    (void)state;
    const struct rbi_cluster *hall = hall_of();
    const unsigned tables = count_tables(hall);
    for (unsigned i = 0; i < STRANGERS; i++) {
        char tag[32];
        (void)snprintf(tag, sizeof tag, "player-%u", i);
        /* Of no canary: whoever is in the way has the tag, or none. */
        assert_int_equal(send_one(i, 0, tag), 1);
        assert_in_range(hall->choice_count, 1, RBI_CHOICES_MAX);
        assert_in_range(count_tables(hall), 1, tables);
    }
    take_all();
    outside = 0;
}

/* One dies: each class has its new table, and nobody builds one twice. */
static void test_change_is_shared(void **state)
{
    (void)state;
    uint64_t seed = 86;
    const struct rbi_cluster *hall = hall_of();
    node_close(&instances[0]);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller);
    send_many(&seed);
    assert_int_equal(count_tables(hall), 1 + CANARIES);
    for (unsigned i = 0; i < hall->choice_count; i++) {
        const struct rbi_keyed *keyed = &hall->choices[i]->keyed;
        if (hall->choices[i]->stale) {
            continue; /* nobody has asked since */
        }
        assert_int_equal(keyed->table.member_count, 1);
        assert_ptr_equal(keyed->table.owners, keyed->owners);
        assert_ptr_equal(keyed->table.members, keyed->members);
    }
    take_all();
    assert_int_equal(outside, 0);
}

static int set_up(void **state)
{
    char config[2048];
    (void)state;
    int length = snprintf(config, sizeof config,
                          "clusters:\n"
                          "  - match: " HALL "\n"
                          "    rules:\n"
                          "      - {id: reads, methods: 1, mode: prefer, instance: 'reader-*'}\n"
                          "      - {id: writes, methods: 2, mode: prefer, instance: 'writer-*'}\n"
                          "    tags:\n"
                          "      canaries:\n");
    for (unsigned i = 0; i < CANARIES; i++) {
        length += snprintf(config + length, sizeof config - (size_t)length,
                           "        - {id: c%u, tag: t%u, share: 10%%}\n", i, i);
    }
    assert_int_equal(cluster_up(&cluster, config), 0);
    for (unsigned i = 0; i < INSTANCES; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        char tag[8];
        (void)snprintf(path, sizeof path, HALL "/%u", i + 1);
        (void)snprintf(tag, sizeof tag, "t%u", i - PLAIN);
        struct ringbus_options options = node_options(&cluster, path);
        options.tags = i >= PLAIN ? tag : NULL;
        instances[i].on_message = on_message;
        instances[i].context = (void *)(uintptr_t)i;
        node_open_with(&instances[i], &options);
    }
    node_open(&caller, &cluster, NULL);
    assert_int_equal(ringbus_target(caller.bus, HALL, NULL, &to), 0);
    while (caller.events[RINGBUS_EVENT_READY] < INSTANCES) {
        step();
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&caller);
    for (unsigned i = 0; i < INSTANCES; i++) {
        if (instances[i].bus != NULL) {
            node_close(&instances[i]);
        }
    }
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_are_kept),
        cmocka_unit_test(test_strangers_share),
        cmocka_unit_test(test_change_is_shared),
    };
    return cmocka_run_group_tests_name("classes", tests, set_up, tear_down);
}
