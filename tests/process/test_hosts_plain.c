/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hosts, each with its daemon and its bridge, and what endpoints say to each other across them:
 * the same calls, events and codes as on one host. features 2.12, D53, D54.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

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
        .count = 2, .rest = "clusters: [{match: \"/**\", balance: {keyless: rr}}]"};
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

/* ---- messages that say whether they are whole ------------------------------------------------ */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_of_all_sizes_come_whole_and_in_order, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
