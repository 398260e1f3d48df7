/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hosts, each with its daemon and its bridge, and what endpoints say to each other across them:
 * the same calls, events and codes as on one host. features 2.12, D53, D54.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLUSTER "/Game/eu/pc/w1/core/battle"
#define KIB     1024U
#define MIB     (1024U * KIB)

static struct hosts hosts;

static const struct cluster *at(unsigned index)
{
    return &hosts.host[index].cluster;
}

static int setup(void **state)
{
    static const struct hosts_options options = {
        .count = 2,
        .rest =
            "daemon: {return_time: 10ms}\nclusters: [{match: \"/**\", balance: {keyless: rr}}]"};
    (void)state;
    bus_shared_reset();
    hosts_up(&hosts, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hosts_down(&hosts);
    return 0;
}

/* ---- messages that say whether they are whole ---------------------------------------------- */

struct got {
    uint64_t next; /* number of the next */
    unsigned wrong;
    unsigned flags; /* of the last */
    uint64_t key;
    unsigned parts;
};

static void fill(unsigned char *data, size_t size, uint64_t number)
{
    uint64_t seed = number + 1;
    for (size_t i = 0; i < size; i += 8) {
        const uint64_t word = bus_random(&seed);
        memcpy(data + i, &word, size - i < 8 ? size - i : 8);
    }
}

static void on_filled(struct node *node, const struct ringbus_message *message)
{
    struct got *got = node->context;
    unsigned char *wanted = malloc(message->size + 1);
    CHECK(wanted != NULL);
    fill(wanted, message->size, got->next++);
    got->wrong += message->size > 0 && memcmp(wanted, message->data, message->size) != 0;
    got->flags = message->flags;
    got->key = message->key;
    got->parts = message->part_count;
    free(wanted);
}

/* Sends, and waits for room where there is none. */
static void send_filled(struct node *from,
                        const struct ringbus_addr *to,
                        uint64_t number,
                        size_t size,
                        struct node *other)
{
    unsigned char *data = malloc(size + 1);
    int result = 0;
    CHECK(data != NULL);
    fill(data, size, number);
    RUN_UNTIL((result = ringbus_send(from->bus, to, 0, data, size, 0)) != RINGBUS_E_FULL &&
                  result != RINGBUS_E_NO_CHUNK,
              NODE_MS, from, other);
    if (result != 1) {
        bus_die(__FILE__, __LINE__, ringbus_errmsg(from->bus));
    }
    free(data);
}

static void test_messages_of_all_sizes_come_whole_and_in_order(void **state)
{
    static const size_t sizes[] = {0,      1,         7,       63,   64,     65,       1000,
                                   4095,   4096,      8191,    8192, 8193,   16 * KIB, 65536,
                                   100000, 256 * KIB, MIB - 1, MIB,  4 * MIB};
    struct got got = {.next = 0};
    struct node a = {0};
    struct node b = {.on_message = on_filled, .context = &got};
    struct ringbus_options options = node_options(at(0), "/Game/eu/pc/w1/core/lobby/1");
    (void)state;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 16 * KIB, .count = 8};
    options.pool[1] = (struct ringbus_pool_class){.chunk_bytes = MIB, .count = 4};
    options.pool[2] = (struct ringbus_pool_class){.chunk_bytes = 4 * MIB + 64, .count = 2};
    node_open_with(&a, &options);
    node_open(&b, at(1), CLUSTER "/1");
    const struct ringbus_addr to = node_target(&a, CLUSTER "/1", 1, &b);
    uint64_t number = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            send_filled(&a, &to, number++, sizes[i], &b);
        }
    }
    for (unsigned i = 0; i < 2000; i++) {
        send_filled(&a, &to, number++, i * 37 % 30000, &b);
    }
    RUN_UNTIL(got.next == number, NODE_MS, &a, &b);
    assert_int_equal(got.wrong, 0);
    RUN_UNTIL(node_pool_used(&a) == 0, NODE_MS, &a, &b);
    node_close(&a);
    node_close(&b);
}

/* What is larger than the lanes that a bridge makes by itself, in both directions of a link. */
static void test_a_lane_may_be_as_large_and_its_records_as_it_can_be(void **state)
{
    struct got got[2] = {{.next = 0}, {.next = 0}};
    struct node a = {.on_message = on_filled, .context = &got[0]};
    struct node b = {.on_message = on_filled, .context = &got[1]};
    struct ringbus_options options[2];
    struct ringbus_addr to[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        options[i] = node_options(at(i), i == 0 ? "/Game/eu/pc/w1/core/lobby/1" : CLUSTER "/1");
        options[i].lane_bytes = 4 * MIB;
        options[i].inline_max = MIB;
        options[i].refs_per_link = 4096;
    }
    node_open_with(&a, &options[0]);
    node_open_with(&b, &options[1]);
    to[1] = node_target(&a, CLUSTER "/1", 1, &b);
    CHECK(ringbus_target(b.bus, "/Game/eu/pc/w1/core/lobby/1", NULL, &to[0]) == 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &a, &b);
    for (unsigned i = 0; i < 12; i++) {
        const size_t size = i % 2 == 0 ? MIB - i : 100 * KIB + i;
        send_filled(&a, &to[1], i, size, &b);
        send_filled(&b, &to[0], i, size, &a);
    }
    RUN_UNTIL(got[0].next == 12 && got[1].next == 12, NODE_MS, &a, &b);
    assert_int_equal(got[0].wrong + got[1].wrong, 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN] + b.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&a);
    node_close(&b);
}

/* ---- requests, broadcasts, keys ------------------------------------------------------------ */

static void on_echo(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void test_requests_are_answered_both_ways_at_once(void **state)
{
    struct node a = {.on_message = on_echo};
    struct node b = {.on_message = on_echo};
    struct ringbus_addr to_a;
    struct ringbus_addr to_b;
    (void)state;
    node_open(&a, at(0), "/Game/eu/pc/w1/core/lobby/1");
    node_open(&b, at(1), CLUSTER "/1");
    /* Both ask for the link at the same moment. */
    CHECK(ringbus_target(a.bus, CLUSTER, NULL, &to_b) == 0);
    CHECK(ringbus_target(b.bus, "/Game/eu/pc/w1/core/lobby", NULL, &to_a) == 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] > 0 && b.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &a,
              &b);
    for (unsigned i = 0; i < 500; i++) {
        RUN_UNTIL(ringbus_request(a.bus, &to_b, 0, "ping", 4, 0, 20000, node_on_result, &a) == 1,
                  NODE_MS, &a, &b);
        RUN_UNTIL(ringbus_request(b.bus, &to_a, 0, "pong", 4, 0, 20000, node_on_result, &b) == 1,
                  NODE_MS, &a, &b);
    }
    RUN_UNTIL(a.replies[RINGBUS_REPLIED] == 500 && b.replies[RINGBUS_REPLIED] == 500, NODE_MS, &a,
              &b);
    assert_int_equal(a.events[RINGBUS_EVENT_LINK_FAILED] + b.events[RINGBUS_EVENT_LINK_FAILED], 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN] + b.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&a);
    node_close(&b);
}

static void test_a_broadcast_reaches_each_instance_of_both_hosts_once(void **state)
{
    static const char data[] = "all";
    const struct ringbus_part part = {.data = data, .size = sizeof data};
    struct ringbus_broadcast result = {.struct_size = sizeof result};
    struct ringbus_addr to;
    struct node sender = {0};
    struct node near = {0};
    struct node far[2] = {{0}, {0}};
    (void)state;
    node_open(&near, at(0), CLUSTER "/1");
    node_open(&far[0], at(1), CLUSTER "/2");
    node_open(&far[1], at(1), CLUSTER "/3");
    node_open(&sender, at(0), NULL);
    CHECK(ringbus_target(sender.bus, CLUSTER, NULL, &to) == 0);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &sender, &near, &far[0], &far[1]);
    to.instance = RINGBUS_ALL;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ringbus_broadcast(sender.bus, &to, &part, 1, NULL, &result), 3);
        assert_int_equal(result.count, 3);
    }
    RUN_UNTIL(near.messages == 100 && far[0].messages == 100 && far[1].messages == 100, NODE_MS,
              &sender, &near, &far[0], &far[1]);
    for (unsigned i = 0; i < 20; i++) {
        struct node *const all[] = {&sender, &near, &far[0], &far[1]};
        nodes_step(all, 4);
    }
    assert_int_equal(near.messages + far[0].messages + far[1].messages, 300);
    node_close(&sender);
    node_close(&near);
    node_close(&far[0]);
    node_close(&far[1]);
}

/* What a message said beside its bytes. */
struct said {
    unsigned count;
    unsigned flags;
    unsigned parts;
    uint64_t key;
    uint64_t came_ns;
    struct ringbus_attributes attributes;
    char tag[RINGBUS_TAG_MAX + 1];
    size_t sizes[RINGBUS_PARTS_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void on_said(struct node *node, const struct ringbus_message *message)
{
    struct said *said = node->context;
    said->came_ns = now_ns();
    said->flags = message->flags;
    said->key = message->key;
    said->parts = message->part_count;
    for (unsigned i = 0; i < message->part_count; i++) {
        said->sizes[i] = message->parts[i].size;
    }
    CHECK(message->attributes != NULL);
    said->attributes = *message->attributes;
    (void)snprintf(said->tag, sizeof said->tag, "%s", message->attributes->tag);
    said->count++;
}

static void test_parts_keys_and_attributes_come_as_they_were_said(void **state)
{
    static unsigned char large[100000];
    struct said said = {.count = 0};
    struct node a = {0};
    struct node b = {.on_message = on_said, .context = &said};
    struct ringbus_message_options options = {.struct_size = sizeof options,
                                              .flags = RINGBUS_KEY | RINGBUS_IDEMPOTENT,
                                              .key = UINT64_C(0x123456789abcdef),
                                              .tag = "blue",
                                              .method = 77,
                                              .labels = {1, 2, 3, 4},
                                              .priority = 2,
                                              .timeout_ms = 30000,
                                              .trace_id = {9, 8, 7},
                                              .span_id = 5,
                                              .codec = 6,
                                              .schema = 7};
    (void)state;
    node_open(&a, at(0), NULL);
    node_open(&b, at(1), CLUSTER "/1");
    const struct ringbus_addr to = node_target(&a, CLUSTER "/1", 1, &b);
    for (unsigned round = 1; round <= 2; round++) {
        const struct ringbus_part parts[] = {{.data = large, .size = 3},
                                             {.data = NULL, .size = 0},
                                             {.data = large, .size = round == 1 ? 100 : 99990}};
        const uint64_t sent_ns = now_ns();
        assert_int_equal(ringbus_send_with(a.bus, &to, parts, 3, &options), 1);
        RUN_UNTIL(said.count == round, NODE_MS, &a, &b);
        const struct ringbus_attributes *got = &said.attributes;
        assert_int_equal(said.parts, 3);
        assert_int_equal(said.sizes[0], 3);
        assert_int_equal(said.sizes[1], 0);
        assert_int_equal(said.sizes[2], parts[2].size);
        assert_true(said.flags & RINGBUS_MESSAGE_KEY);
        assert_true(said.flags & RINGBUS_MESSAGE_IDEMPOTENT);
        assert_true(said.key == options.key);
        assert_string_equal(said.tag, "blue");
        assert_int_equal(got->method, 77);
        assert_int_equal(got->labels[3], 4);
        assert_int_equal(got->priority, 2);
        assert_int_equal(got->span_id, 5);
        assert_memory_equal(got->trace_id, options.trace_id, 16);
        assert_int_equal(got->codec, 6);
        assert_int_equal(got->schema, 7);
        /* Told as what is left of it: later by what it was under way at most. */
        const uint64_t timeout_ns = UINT64_C(30000) * 1000000;
        assert_true(got->deadline_ns >= sent_ns + timeout_ns);
        assert_true(got->deadline_ns <= said.came_ns + timeout_ns);
    }
    node_close(&a);
    node_close(&b);
}

static void count_key(struct node *node, const struct ringbus_message *message)
{
    unsigned *by_key = node->context;
    CHECK((message->flags & RINGBUS_MESSAGE_KEY) != 0 && message->key < 64);
    by_key[message->key]++;
}

static void test_keys_have_one_owner_whichever_host_asks(void **state)
{
    unsigned by_key[2][64] = {{0}};
    struct node near = {.on_message = count_key, .context = by_key[0]};
    struct node far = {.on_message = count_key, .context = by_key[1]};
    struct node senders[2] = {{0}, {0}};
    struct ringbus_addr to;
    (void)state;
    node_open(&near, at(0), CLUSTER "/1");
    node_open(&far, at(1), CLUSTER "/2");
    for (unsigned i = 0; i < 2; i++) {
        node_open(&senders[i], at(i), NULL);
        CHECK(ringbus_target(senders[i].bus, CLUSTER, NULL, &to) == 0);
        RUN_UNTIL(senders[i].events[RINGBUS_EVENT_READY] == 2, NODE_MS, &senders[i], &near, &far);
    }
    for (uint64_t key = 0; key < 64; key++) {
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(ringbus_send(senders[i].bus, &to, key, "", 0, RINGBUS_KEY), 1);
        }
    }
    RUN_UNTIL(near.messages + far.messages == 128, NODE_MS, &near, &far, &senders[0], &senders[1]);
    assert_true(near.messages > 0 && far.messages > 0);
    for (unsigned key = 0; key < 64; key++) {
        assert_true(by_key[0][key] == 2 || by_key[1][key] == 2);
    }
    node_close(&senders[0]);
    node_close(&senders[1]);
    node_close(&near);
    node_close(&far);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_messages_of_all_sizes_come_whole_and_in_order),
        CASE(test_a_lane_may_be_as_large_and_its_records_as_it_can_be),
        CASE(test_requests_are_answered_both_ways_at_once),
        CASE(test_a_broadcast_reaches_each_instance_of_both_hosts_once),
        CASE(test_parts_keys_and_attributes_come_as_they_were_said),
        CASE(test_keys_have_one_owner_whichever_host_asks),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
