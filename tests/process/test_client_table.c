/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slot tables in the directory (scenarios 84 and 85): once somebody sends to a cluster by key the
 * daemon has its table ready, byte by byte the one that a caller builds, and follows each change
 * before it tells of it; what nobody names any more goes. Who comes later builds nothing. It does
 * so for who may send there, and of each user no more than its fair share: whom it does not serve
 * builds the same.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- whose tables ---------------------------------------------------------------------------- */

#define HOSTILE  61001U
#define FRIENDLY 61002U
#define OTHERS   100U /* clusters of one instance each */
#define ALONE    64U  /* tables of a user while it is the only one */

static struct raw others[OTHERS];

static uint64_t other_id(unsigned i)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/game/eu/pc/w1/many/c%u", i);
    return rbi_cluster_id(path, strlen(path));
}

static void open_others(void)
{
    char path[64];
    for (unsigned i = 0; i < OTHERS; i++) {
        (void)snprintf(path, sizeof path, "/game/eu/pc/w1/many/c%u/1", i);
        CHECK(raw_up(&others[i], cluster.socket, path) == 0);
    }
}

static void close_others(void)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        raw_close(&others[i]);
    }
}

/* A client of a user: that is who it was when it connected. */
static void raw_up_as(struct raw *raw, unsigned uid)
{
    CHECK(seteuid(uid) == 0);
    const int up = raw_up(raw, cluster.socket, "");
    CHECK(seteuid(0) == 0);
    CHECK(up == 0);
}

/* Asks for the tables of some of the others. @return how many there are after that */
static uint64_t ask_for(struct raw *raw, unsigned from, unsigned count)
{
    for (unsigned i = from; i < from + count; i++) {
        const struct rbi_wire_keyed body = {.cluster = other_id(i)};
        CHECK(raw_send(raw, RBI_WIRE_KEYED, &body, NULL, 0) == 0);
    }
    /* It is not answered; what comes after it is. */
    CHECK(raw_set_state(raw, RBI_ENDPOINT_BUSY) == 0);
    return raw_status(cluster.socket, "slot_tables");
}

/* A caller of a user, with a link to the one store. */
static void open_caller(struct node *node, unsigned uid)
{
    struct ringbus_addr store;
    memset(node, 0, sizeof *node);
    CHECK(seteuid(uid) == 0);
    node_open(node, &cluster, NULL);
    CHECK(seteuid(0) == 0);
    CHECK(ringbus_target(node->bus, STORE, NULL, &store) == 0);
    RUN_UNTIL(node->events[RINGBUS_EVENT_READY] == 1, NODE_MS, node, &stores[1]);
    CHECK(ringbus_send(node->bus, &store, 7, "", 0, RINGBUS_KEY) == 1);
}

/* What it had said to the daemon before has been handled. */
static void wait_for_control(struct node *node)
{
    struct ringbus_addr other;
    CHECK(ringbus_target(node->bus, "/game/eu/pc/w1/many/c0", NULL, &other) == 0);
    RUN_UNTIL(rbi_cluster_find(node->bus, other_id(0))->known, NODE_MS, node);
}

/* Whoever may send to none of a cluster's instances has no table made of it. */
static void test_no_right_no_table(void **state)
{
    (void)state;
    struct raw hostile;
    if (geteuid() != 0) {
        skip();
    }
    open_others();
    raw_up_as(&hostile, HOSTILE);
    assert_int_equal(ask_for(&hostile, 0, 8), 0);
    raw_close(&hostile);
    /* Not because there is nothing to be made. */
    raw_up_as(&hostile, 0);
    assert_int_equal(ask_for(&hostile, 0, 8), 8);
    raw_close(&hostile);
    close_others();
}

/* Features 2.11: one user asks for all there are, and gets its share; the others find theirs. */
static void test_hostile_user_takes_its_share(void **state)
{
    (void)state;
    struct raw hostile;
    struct raw friendly;
    if (geteuid() != 0) {
        skip();
    }
    open_others();
    memset(stores, 0, sizeof stores);
    open_store(1); /* a table is named by its instances: another than theirs */
    raw_up_as(&hostile, HOSTILE);
    assert_int_equal(ask_for(&hostile, 0, OTHERS), ALONE);
    assert_int_equal(ask_for(&hostile, 0, OTHERS), ALONE);

    /* Of its user nobody has another one made: the caller has built its own. */
    open_caller(&first, HOSTILE);
    wait_for_control(&first);
    assert_int_equal(raw_status(cluster.socket, "slot_tables"), ALONE);
    const struct rbi_keyed *own = keyed_of(&first);
    assert_true(own->fingerprint != 0);
    assert_false(is_published(&first, own->fingerprint));

    /* Another user's is made, and is the same to the byte. */
    open_caller(&second, 0);
    RUN_UNTIL(is_published(&second, own->fingerprint), NODE_MS, &first, &second, &stores[1]);
    assert_true(is_published(&first, own->fingerprint)); /* which compares it with its own */
    assert_true(keyed_of(&second)->fingerprint == own->fingerprint);
    assert_memory_equal(keyed_of(&second)->owners, own->owners,
                        rbi_table_owner_bytes(&own->table.shape));
    assert_int_equal(raw_status(cluster.socket, "slot_tables"), ALONE + 1);

    /* The next user finds some of what is left, while the first is there; then what it left. */
    raw_up_as(&friendly, FRIENDLY);
    const uint64_t some = ask_for(&friendly, 0, OTHERS) - ALONE - 1;
    assert_in_range(some, 12, 63);
    node_close(&first);
    raw_close(&hostile);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    uint64_t left = ask_for(&friendly, 0, OTHERS);
    while (left > ALONE) { /* it is still being closed */
        CHECK(test_now_ms() < end_ms);
        left = ask_for(&friendly, 0, OTHERS);
    }
    assert_in_range(left, 1 + some + 20, ALONE);
    raw_close(&friendly);
    node_close(&second);
    node_close(&stores[1]);
    close_others();
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000}\n");
}

/* Users without a right to the clusters of others, and with one. */
static int setup_closed(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000, control: 100000}\n"
                                "rights: {rules: [{id: hostile, action: deny, uid: 61001, "
                                "verbs: [connect], to: /game/**}]}\n");
}

static int setup_open(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000, control: 100000}\n"
                                "rights: {otherwise: allow}\n");
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
        cmocka_unit_test_setup_teardown(test_no_right_no_table, setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_user_takes_its_share, setup_open, teardown),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
