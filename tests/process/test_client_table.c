/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slot tables in the directory (scenarios 84 and 85): once somebody sends to a cluster by key the
 * daemon has its table ready, byte by byte the one that a caller builds, and follows each change
 * before it tells of it; what nobody names any more goes. Who comes later builds nothing.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE "/game/eu/pc/w1/data/store"
#define MANY  24U

static struct cluster cluster;
static struct node first, second;
static struct node stores[MANY + 1];

static const struct rbi_keyed *keyed_of(const struct node *node)
{
    const struct rbi_cluster *store =
        rbi_cluster_find(node->bus, rbi_cluster_id(STORE, strlen(STORE)));
    return store != NULL && store->choice != NULL ? &store->choice->keyed : NULL;
}

/* Whether the directory has a table of this name; it is then the same as ours. */
static bool is_published(const struct node *node, uint64_t fingerprint)
{
    const struct rbi_keyed *keyed = keyed_of(node);
    const size_t bytes = rbi_table_owner_bytes(&keyed->table.shape);
    unsigned char *owners = malloc(bytes);
    uint64_t size = 0;
    CHECK(owners != NULL);
    const int r = rbi_directory_read_blob(&node->bus->directory, fingerprint, owners, bytes, &size);
    CHECK(r == RBI_DIRECTORY_ABSENT || (r == RBI_DIRECTORY_OK && size == bytes));
    if (r == RBI_DIRECTORY_OK && fingerprint == keyed->fingerprint) {
        CHECK(memcmp(owners, keyed->owners, bytes) == 0);
    }
    free(owners);
    return r == RBI_DIRECTORY_OK;
}

static void open_store(unsigned i)
{
    char path[64];
    (void)snprintf(path, sizeof path, STORE "/%u", i + 1);
    memset(&stores[i], 0, sizeof stores[i]);
    node_open(&stores[i], &cluster, path);
}

static void step(void)
{
    struct node *all[MANY + 3];
    unsigned count = 0;
    all[count++] = &first;
    all[count++] = &second;
    for (unsigned i = 0; i <= MANY; i++) {
        if (stores[i].bus != NULL) {
            all[count++] = &stores[i];
        }
    }
    nodes_step(all, count);
}

#define STEP_UNTIL(condition)                                                                      \
    do {                                                                                           \
        const uint64_t end_ms = test_now_ms() + NODE_MS;                                           \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < end_ms);                                                         \
            step();                                                                                \
        }                                                                                          \
    } while (0)

static void test_tables(void **state)
{
    (void)state;
    struct ringbus_addr store;
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    memset(stores, 0, sizeof stores);
    for (unsigned i = 0; i < MANY; i++) {
        open_store(i);
    }
    node_open(&first, &cluster, NULL);
    CHECK(ringbus_target(first.bus, STORE, NULL, &store) == 0);
    STEP_UNTIL(first.events[RINGBUS_EVENT_READY] == MANY);
    CHECK(ringbus_send(first.bus, &store, 0, "", 0, 0) == 1);
    for (unsigned i = 0; i < 20; i++) {
        step();
    }
    assert_int_equal(keyed_of(&first)->fingerprint, 0); /* no key, no table */

    CHECK(ringbus_send(first.bus, &store, 7, "", 0, RINGBUS_KEY) == 1);
    const uint64_t before = keyed_of(&first)->fingerprint;
    assert_true(before != 0);
    STEP_UNTIL(is_published(&first, before));

    /* Whoever comes now finds it. */
    node_open(&second, &cluster, NULL);
    CHECK(ringbus_target(second.bus, STORE, NULL, &store) == 0);
    STEP_UNTIL(second.events[RINGBUS_EVENT_READY] == MANY);
    CHECK(ringbus_send(second.bus, &store, 7, "", 0, RINGBUS_KEY) == 1);
    assert_true(keyed_of(&second)->fingerprint == before);

    /* One joins: its table is there before anybody can ask for it. */
    open_store(MANY);
    STEP_UNTIL(first.events[RINGBUS_EVENT_READY] == MANY + 1);
    CHECK(ringbus_send(first.bus, &store, 7, "", 0, RINGBUS_KEY) == 1);
    const uint64_t with = keyed_of(&first)->fingerprint;
    assert_true(with != before);
    assert_true(is_published(&first, with));
    assert_false(is_published(&first, before));

    /* It leaves: the table of before is there again, by the same name. */
    CHECK(ringbus_close(stores[MANY].bus, 0) == 0);
    stores[MANY].bus = NULL;
    STEP_UNTIL(first.events[RINGBUS_EVENT_DOWN] == 1);
    STEP_UNTIL(is_published(&first, before));
    CHECK(ringbus_send(first.bus, &store, 7, "", 0, RINGBUS_KEY) == 1);
    assert_true(keyed_of(&first)->fingerprint == before);
    assert_false(is_published(&first, with));

    for (unsigned i = 0; i < MANY; i++) {
        node_close(&stores[i]);
    }
    node_close(&first);
    node_close(&second);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000}\n");
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
        cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
