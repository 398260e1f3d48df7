/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 84: the same key goes to the same instance, whoever sends it. 100 callers in several
 * processes, which learn of five instances in different order, agree on each key, before and after
 * an instance is killed and started again; and the owners of some names never change, from release
 * to release.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define STORE     "/game/eu/pc/w1/data/store"
#define STORES    5U
#define PROCESSES 4U
#define HANDLES   25U
#define CALLERS   (PROCESSES * HANDLES)
#define KEYS_MAX  100000U
#define LONG_MS   50000U

static const char config[] =
    "clusters:\n"
    "  - {match: \"" STORE "\", balance: {mode: hash, rehash_delay: 60s}}\n"
    "quota: {instances: 4096, control: 1000000, connects: 1000000}\n";

/*
 * Of ringbus_key("player-0") and so on. Callers of two releases share a bus: never to be changed.
 */
static const unsigned char golden[] = {3, 2, 1, 1, 2, 3, 5, 3, 5, 1, 1, 4, 3, 4, 3, 1, 2, 4, 5, 1};

static struct cluster cluster;
static unsigned keys;

/* Owner of each key as the first message with it has shown; shared by all processes. */
static void *owners_memory;
static _Atomic unsigned char *owners;

/* Shared words. */
enum { WORD_ROUND, WORD_SEES_ALL, WORD_SENT, WORD_GOT, WORD_WRONG, WORD_OPEN, WORD_LIFE };

static uint64_t key_of(unsigned i)
{
    char name[32];
    const int length = snprintf(name, sizeof name, "player-%u", i);
    return ringbus_key(name, (size_t)length);
}

static void take(struct node *node, const struct ringbus_message *message)
{
    const unsigned self = (unsigned)(uintptr_t)node->context;
    uint32_t i = 0;
    CHECK(message->size == sizeof i);
    memcpy(&i, message->data, sizeof i);
    CHECK(i < keys && message->key == key_of(i));
    unsigned char expected = 0;
    if (!atomic_compare_exchange_strong(&owners[i], &expected, (unsigned char)self) &&
        expected != self) {
        atomic_fetch_add(&bus_shared[WORD_WRONG], 1);
    }
    atomic_fetch_add(&bus_shared[WORD_GOT], 1);
}

static void be_store(const struct cluster *at, void *context)
{
    char path[64];
    struct node node = {.on_message = take, .context = context};
    (void)snprintf(path, sizeof path, STORE "/%u", (unsigned)(uintptr_t)context);
    struct ringbus_options options = node_options(at, path);
    options.lane_bytes = 16384;
    options.refs_per_link = 16;
    node_open_with(&node, &options);
    atomic_fetch_add(&bus_shared[WORD_OPEN], 1);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 100) >= 0);
    }
}

static void poll_all(struct node *nodes)
{
    for (unsigned h = 0; h < HANDLES; h++) {
        CHECK(ringbus_poll(nodes[h].bus, 100) >= 0);
    }
}

static void send_all(struct node *nodes, const struct ringbus_addr *any)
{
    const uint64_t end_ms = test_now_ms() + LONG_MS;
    for (uint32_t i = 0; i < keys; i++) {
        const uint64_t key = key_of(i);
        for (unsigned h = 0; h < HANDLES; h++) {
            int r = ringbus_send(nodes[h].bus, any, key, &i, sizeof i, RINGBUS_KEY);
            while (r < 0 && ringbus_error_kind(r) == RINGBUS_ERROR_RETRY) {
                CHECK(test_now_ms() < end_ms);
                CHECK(ringbus_wait(nodes[h].bus, 1) >= 0);
                poll_all(nodes);
                r = ringbus_send(nodes[h].bus, any, key, &i, sizeof i, RINGBUS_KEY);
            }
            CHECK(r == 1);
        }
    }
    atomic_fetch_add(&bus_shared[WORD_SENT], HANDLES);
}

static void be_callers(const struct cluster *at, void *context)
{
    static struct node nodes[HANDLES];
    struct ringbus_addr any;
    uint64_t round = 0;
    (void)context;
    for (unsigned h = 0; h < HANDLES; h++) {
        struct ringbus_options options = node_options(at, NULL);
        options.lane_bytes = 16384;
        options.refs_per_link = 16;
        options.pool[0] = (struct ringbus_pool_class){64, 1};
        node_open_with(&nodes[h], &options);
        CHECK(ringbus_target(nodes[h].bus, STORE, NULL, &any) == 0);
    }
    unsigned seen = 0;
    for (;;) {
        poll_all(nodes);
        CHECK(ringbus_wait(nodes[0].bus, 1) >= 0);
        for (; seen < HANDLES && nodes[seen].events[RINGBUS_EVENT_READY] >= STORES; seen++) {
            atomic_fetch_add(&bus_shared[WORD_SEES_ALL], 1);
        }
        if (atomic_load(&bus_shared[WORD_ROUND]) > round) {
            round++;
            send_all(nodes, &any);
        }
    }
}

static void run_round(uint64_t round)
{
    atomic_store(&bus_shared[WORD_ROUND], round);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_SENT]) == round * CALLERS, LONG_MS, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_GOT]) == round * CALLERS * keys, LONG_MS, NULL);
    assert_int_equal(atomic_load(&bus_shared[WORD_WRONG]), 0);
}

static void test_all_callers_agree(void **state)
{
    static const unsigned order[STORES] = {4, 2, 5, 1, 3};
    pid_t stores[STORES + 1];
    pid_t callers[PROCESSES];
    (void)state;
    keys = FULL_OR(KEYS_MAX, 1000U / TEST_SCALE);
    bus_shared_reset();
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        atomic_store(&owners[i], 0);
    }
    for (unsigned i = 0; i < STORES; i++) {
        stores[order[i]] = child_start(be_store, &cluster, (void *)(uintptr_t)order[i]);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_OPEN]) == i + 1, NODE_MS, NULL);
        if (i < PROCESSES) {
            callers[i] = child_start(be_callers, &cluster, NULL);
        }
    }
    RUN_UNTIL(atomic_load(&bus_shared[WORD_SEES_ALL]) == CALLERS, LONG_MS, NULL);
    run_round(1);
    /* Another process, another start, other descriptors. */
    child_kill(stores[3]);
    stores[3] = child_start(be_store, &cluster, (void *)(uintptr_t)3);
    run_round(2);
    unsigned shares[STORES + 1] = {0};
    for (unsigned i = 0; i < keys; i++) {
        shares[atomic_load(&owners[i])]++;
    }
    /* Of a few keys, as sanitizers leave time for, no even share can be asked. */
    for (unsigned i = 1; i <= STORES && keys >= 1000; i++) {
        assert_in_range(shares[i], keys / STORES * 7 / 10, keys / STORES * 13 / 10);
    }
    for (unsigned i = 0; i < sizeof golden; i++) {
        if (atomic_load(&owners[i]) != golden[i]) {
            print_message("player-%u: %u, and was %u\n", i, atomic_load(&owners[i]), golden[i]);
        }
        assert_int_equal(atomic_load(&owners[i]), golden[i]);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        child_kill(callers[i]);
    }
    for (unsigned i = 1; i <= STORES; i++) {
        child_kill(stores[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    owners_memory = mmap(NULL, KEYS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    owners = owners_memory;
    return owners_memory != MAP_FAILED ? cluster_up(&cluster, config) : -1;
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return munmap(owners_memory, KEYS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_callers_agree, setup, teardown),
    };
    return cmocka_run_group_tests_name("agree", tests, NULL, NULL);
}
