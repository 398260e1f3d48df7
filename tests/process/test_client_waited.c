/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios 84 and 88, features 2.2 and 2.6: the slots of an instance that died wait for it, and
 * for no one else's keys. Whom the chain kept from it while it lived (another set, a canary, one
 * taken out by the operator, an instance that is not targeted) keeps every owner; whom it served
 * waits, also where it is of another business that stands in.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define STORE  "/game/eu/pc/w1/data/store"
#define OTHERS "/trade/eu/pc/w1/data/store"
#define KEYS   256U
#define NOBODY 0U

static const char config[] = "realms: {game: {imports: [trade]}}\n"
                             "rights: {otherwise: allow}\n"
                             "clusters:\n"
                             "  - {match: \"/*/eu/pc/w1/data/store\", set: {mode: strict},\n"
                             "     tags: {mode: prefer}, balance: {rehash_delay: 60s}}\n"
                             "instances:\n"
                             "  " STORE "/4: {isolated: true}\n";

struct store {
    const char *path;
    const char *set;
    const char *tags;
};

static struct cluster cluster;
static struct node caller;

/* bus_shared[key] is the instance that got it; then how many are open. */
#define WORD_OPEN KEYS

static void take(struct node *node, const struct ringbus_message *message)
{
    CHECK(message->key < KEYS);
    atomic_store(&bus_shared[message->key], (uint64_t)(uintptr_t)node->context);
}

static void be_store(const struct cluster *at, void *context)
{
    const struct store *store = context;
    const char *name = strrchr(store->path, '/') + 1;
    struct node node = {.on_message = take, .context = (void *)(uintptr_t)strtoul(name, NULL, 10)};
    struct ringbus_options options = node_options(at, store->path);
    options.set = store->set;
    options.tags = store->tags;
    node_open_with(&node, &options);
    atomic_fetch_add(&bus_shared[WORD_OPEN], 1);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        CHECK(ringbus_wait(node.bus, 100) >= 0);
    }
}

static pid_t start(const struct store *store)
{
    const uint64_t open = atomic_load(&bus_shared[WORD_OPEN]);
    const pid_t pid = child_start(be_store, &cluster, (void *)(uintptr_t)store);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_OPEN]) == open + 1, NODE_MS, NULL);
    return pid;
}

static void open_caller(const char *set)
{
    struct ringbus_options options = node_options(&cluster, "/game/eu/pc/w1/core/gate/1");
    options.set = set;
    memset(&caller, 0, sizeof caller);
    node_open_with(&caller, &options);
}

static unsigned waited_for(const char *path)
{
    struct rbi_directory_cluster head;
    return rbi_directory_read(&caller.bus->directory, rbi_cluster_id(path, strlen(path)), &head,
                              NULL, 0) == RBI_DIRECTORY_ABSENT
               ? 0
               : head.absent_count;
}

/* It is dead for the daemon and for the caller. */
static void await_death(pid_t pid, const char *path, bool linked)
{
    const unsigned downs = caller.events[RINGBUS_EVENT_DOWN];
    const unsigned waited = waited_for(path);
    child_kill(pid);
    RUN_UNTIL(waited_for(path) == waited + 1 &&
                  caller.events[RINGBUS_EVENT_DOWN] == downs + (linked ? 1U : 0U),
              NODE_MS, &caller);
}

/* Sends each key, tagged or not. @p owners: who got it; NOBODY: its owner is waited for */
static void send_all(const char *tag, uint64_t *owners)
{
    const struct ringbus_addr to = {.cluster = rbi_cluster_id(STORE, strlen(STORE))};
    const struct ringbus_part part = {"", 0};
    for (uint64_t key = 0; key < KEYS; key++) {
        const struct ringbus_message_options options = {
            .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = key, .tag = tag};
        atomic_store(&bus_shared[key], NOBODY);
        const int r = ringbus_send_with(caller.bus, &to, &part, 1, &options);
        CHECK(r == 1 || r == RINGBUS_E_RESTARTING);
        if (r == 1) {
            RUN_UNTIL(atomic_load(&bus_shared[key]) != NOBODY, NODE_MS, &caller);
        }
        owners[key] = atomic_load(&bus_shared[key]);
    }
}

static unsigned share_of(const uint64_t *owners, uint64_t instance)
{
    unsigned count = 0;
    for (unsigned key = 0; key < KEYS; key++) {
        count += owners[key] == instance ? 1U : 0U;
    }
    return count;
}

static void target(const char *path, unsigned ready)
{
    struct ringbus_addr to;
    const unsigned before = caller.events[RINGBUS_EVENT_READY];
    CHECK(ringbus_target(caller.bus, path, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == before + ready, NODE_MS, &caller);
}

/* Exactly what was the dead one's waits, the rest stays. */
static void assert_waits(const uint64_t *before, const uint64_t *after, uint64_t dead)
{
    for (unsigned key = 0; key < KEYS; key++) {
        assert_int_equal(after[key], before[key] == dead ? NOBODY : before[key]);
    }
}

static void test_waits_for_those_it_served(void **state)
{
    static const struct store stores[] = {{STORE "/1", "app.a.1", NULL},
                                          {STORE "/2", "app.a.1", NULL},
                                          {STORE "/3", "app.a.1", "v2"},
                                          {STORE "/4", "app.a.1", NULL}, /* isolated */
                                          {STORE "/5", "app.b.1", NULL}};
    pid_t pids[RBI_ARRAY_SIZE(stores)];
    uint64_t plain[KEYS];
    uint64_t tagged[KEYS];
    uint64_t now[KEYS];
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(stores); i++) {
        pids[i] = start(&stores[i]);
    }
    open_caller("app.a.1");
    target(STORE, RBI_ARRAY_SIZE(stores));
    send_all(NULL, plain);
    send_all("v2", tagged);
    assert_int_equal(share_of(plain, 1) + share_of(plain, 2), KEYS);
    assert_int_equal(share_of(tagged, 3), KEYS);

    await_death(pids[4], STORE, true); /* of another set */
    send_all(NULL, now);
    assert_memory_equal(now, plain, sizeof now);
    await_death(pids[3], STORE, true); /* isolated */
    send_all(NULL, now);
    assert_memory_equal(now, plain, sizeof now);
    await_death(pids[2], STORE, true); /* the canary */
    send_all(NULL, now);
    assert_memory_equal(now, plain, sizeof now);
    send_all("v2", now); /* are not served by others, who lack its state */
    assert_int_equal(share_of(now, NOBODY), KEYS);
    await_death(pids[1], STORE, true);
    send_all(NULL, now);
    assert_waits(plain, now, 2);
    await_death(pids[0], STORE, true); /* the last of its set, and of the cluster */
    send_all(NULL, now);
    assert_int_equal(share_of(now, NOBODY), KEYS);

    pids[2] = start(&stores[2]);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == RBI_ARRAY_SIZE(stores) + 1, NODE_MS, &caller);
    send_all("v2", now);
    assert_memory_equal(now, tagged, sizeof now);
    send_all(NULL, now);
    assert_int_equal(share_of(now, NOBODY), KEYS);
    child_kill(pids[2]);
    node_close(&caller);
}

/* Of a cluster that is targeted in part the rest is as if it was not there. */
static void test_waits_for_targets_only(void **state)
{
    static const struct store stores[] = {
        {STORE "/11", NULL, NULL}, {STORE "/12", NULL, NULL}, {STORE "/13", NULL, NULL}};
    pid_t pids[RBI_ARRAY_SIZE(stores)];
    uint64_t before[KEYS];
    uint64_t now[KEYS];
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(stores); i++) {
        pids[i] = start(&stores[i]);
    }
    open_caller(NULL);
    target(stores[0].path, 1);
    target(stores[1].path, 1);
    send_all(NULL, before);
    assert_int_equal(share_of(before, 11) + share_of(before, 12), KEYS);
    await_death(pids[2], STORE, false);
    send_all(NULL, now);
    assert_memory_equal(now, before, sizeof now);
    await_death(pids[1], STORE, true);
    send_all(NULL, now);
    assert_waits(before, now, 12);
    child_kill(pids[0]);
    node_close(&caller);
}

/* A business that stands in keeps its keys as the own one does. */
static void test_waits_for_imports(void **state)
{
    static const struct store stores[] = {{OTHERS "/21", NULL, NULL}, {OTHERS "/22", NULL, NULL}};
    pid_t pids[RBI_ARRAY_SIZE(stores)];
    uint64_t before[KEYS];
    uint64_t now[KEYS];
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(stores); i++) {
        pids[i] = start(&stores[i]);
    }
    open_caller(NULL);
    target(STORE, RBI_ARRAY_SIZE(stores));
    send_all(NULL, before);
    assert_int_equal(share_of(before, 21) + share_of(before, 22), KEYS);
    await_death(pids[1], OTHERS, true);
    send_all(NULL, now);
    assert_waits(before, now, 22);
    child_kill(pids[0]);
    node_close(&caller);
}

static int setup(void **state)
{
    (void)state;
    bus_shared_reset();
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
        cmocka_unit_test_setup_teardown(test_waits_for_those_it_served, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_for_targets_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_for_imports, setup, teardown),
    };
    return cmocka_run_group_tests_name("waited", tests, NULL, NULL);
}
