/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 132: instances leave and join one by one, the last one too. Watchers get one event for
 * each change, of the one that it is about; the others keep their links, weight, health and keys;
 * an empty cluster is as stable as a full one; a rule that moves to another cluster touches none.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SERVICE   "/game/eu/pc/w1/core/service"
#define OTHER     "/game/eu/pc/w1/core/other"
#define THIRD     "/game/eu/pc/w1/core/third"
#define INSTANCES 5U
#define SICK      4U /* the fifth */
#define KEYS      512U

/* Once shielded, it stays so for longer than the test. */
#define RULES(other)                                                                               \
    "clusters:\n"                                                                                  \
    "- {match: " SERVICE ", shield: {open_min: 1h, open_max: 1h}}\n"                               \
    "- {match: " other ", balance: {keyless: rr}, shield: {preset: envoy}}\n"

static struct cluster cluster;
static struct node members[INSTANCES];
static struct node caller;
static struct node watcher;
static struct ringbus_addr to;
static uint8_t owners[KEYS]; /* instance ids */

/* What the watcher was told, in a row. */
static struct {
    enum ringbus_event_type type;
    int32_t instance;
} told[64];
static unsigned told_count;

static void note(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    CHECK(told_count < 64);
    told[told_count].type = event->type;
    told[told_count++].instance = event->addr.instance;
}

static void poll_all(void)
{
    struct node *all[INSTANCES + 2] = {&caller, &watcher};
    for (unsigned i = 0; i < INSTANCES; i++) {
        all[i + 2] = &members[i];
    }
    nodes_step(all, INSTANCES + 2);
}

#define ALL_UNTIL(condition)                                                                       \
    do {                                                                                           \
        const uint64_t end_ms_ = test_now_ms() + NODE_MS;                                          \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > end_ms_) {                                                         \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            poll_all();                                                                            \
        }                                                                                          \
    } while (0)

static void serve(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
}

static void join(unsigned i)
{
    char path[64];
    (void)snprintf(path, sizeof path, SERVICE "/%u", i + 1);
    memset(&members[i], 0, sizeof members[i]);
    members[i].on_message = serve;
    node_open(&members[i], &cluster, path);
}

static void leave(unsigned i)
{
    node_close(&members[i]);
}

/** The directory's entry of the cluster; -1 in *at: the instance is not in it. */
static struct rbi_directory_cluster
look(struct rbi_directory_instance all[INSTANCES], unsigned i, int *at)
{
    struct rbi_directory_cluster head = {.instance_count = 0};
    CHECK(rbi_directory_read(&caller.bus->directory, to.cluster, &head, all, INSTANCES) ==
          RBI_DIRECTORY_OK);
    *at = -1;
    for (unsigned k = 0; k < head.instance_count; k++) {
        *at = all[k].instance == (int32_t)i + 1 ? (int)k : *at;
    }
    return head;
}

static uint64_t epoch(void)
{
    struct rbi_directory_instance all[INSTANCES];
    int at;
    return look(all, 0, &at).epoch;
}

static void check_sick_stays_shielded(void)
{
    struct rbi_directory_instance all[INSTANCES];
    int at;
    (void)look(all, SICK, &at);
    assert_true(at >= 0);
    assert_int_equal(all[at].health, RBI_HEALTH_OPEN);
    assert_int_equal(all[at].weight, 100);
    assert_int_equal(caller.events[RINGBUS_EVENT_UNSHIELDED], 0);
}

static void on_owner(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    CHECK(result->outcome == RINGBUS_REPLIED);
    *(uint8_t *)context = (uint8_t)result->peer.instance;
}

/** Asks for all keys. */
static void ask_owners(uint8_t into[KEYS])
{
    memset(into, 0, KEYS);
    for (unsigned key = 0; key < KEYS; key++) {
        int r = 0;
        ALL_UNTIL((r = ringbus_request(caller.bus, &to, key, "hi", 2, RINGBUS_KEY, NODE_MS,
                                       on_owner, &into[key])) == 1 ||
                  (r != RINGBUS_E_FULL && r != RINGBUS_E_NOT_READY));
        CHECK(r == 1);
    }
    ALL_UNTIL(memchr(into, 0, KEYS) == NULL);
}

/** Only keys of @p changed have another owner than before. */
static void check_keys(unsigned changed)
{
    uint8_t now[KEYS];
    unsigned moved = 0;
    ask_owners(now);
    for (unsigned key = 0; key < KEYS; key++) {
        if (now[key] != owners[key]) {
            assert_true(now[key] == changed + 1 || owners[key] == changed + 1);
            moved++;
        }
    }
    assert_true(moved > 0);
    memcpy(owners, now, KEYS);
}

/** One event of that one, and then none for a while. */
static void check_told(enum ringbus_event_type type, unsigned i)
{
    ALL_UNTIL(told_count > 0);
    const uint64_t end_ms = test_now_ms() + 50;
    while (test_now_ms() < end_ms) {
        poll_all();
    }
    assert_int_equal(told_count, 1);
    assert_int_equal(told[0].type, type);
    assert_int_equal(told[0].instance, i + 1);
    told_count = 0;
}

static void open_all(void)
{
    memset(&caller, 0, sizeof caller);
    memset(&watcher, 0, sizeof watcher);
    watcher.on_event = note;
    node_open(&watcher, &cluster, NULL);
    CHECK(ringbus_watch(watcher.bus, SERVICE) == 0);
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, SERVICE, NULL, &to) == 0);
    for (unsigned i = 0; i < INSTANCES; i++) {
        join(i);
        check_told(RINGBUS_EVENT_ADDED, i);
    }
    ALL_UNTIL(caller.events[RINGBUS_EVENT_READY] == INSTANCES);
    ask_owners(owners);
}

static void shield_sick(void)
{
    const struct ringbus_addr sick = {.cluster = to.cluster, .instance = SICK + 1};
    for (unsigned i = 0; i < 2 * KEYS; i++) { /* far more than were answered */
        CHECK(ringbus_report(caller.bus, &sick, RINGBUS_REPORT_TIMEOUT, 0) == 0);
    }
    ALL_UNTIL(caller.events[RINGBUS_EVENT_SHIELDED] == 1);
    told_count = 0; /* it is no change of who is there */
}

static void test_one_by_one(void **state)
{
    (void)state;
    open_all();
    shield_sick();
    /* As many as leave the shielded one below the cap. */
    for (unsigned i = 0; i < 3; i++) {
        leave(i);
        check_told(RINGBUS_EVENT_REMOVED, i);
        assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], i + 1);
        check_keys(i);
        check_sick_stays_shielded();
    }
    for (unsigned i = 0; i < 3; i++) {
        join(i);
        check_told(RINGBUS_EVENT_ADDED, i);
        ALL_UNTIL(caller.events[RINGBUS_EVENT_READY] == INSTANCES + i + 1);
        check_keys(i);
        check_sick_stays_shielded();
    }
    assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], 3);
}

static void test_rule_moves_to_another_cluster(void **state)
{
    (void)state;
    const uint64_t before = epoch();
    assert_int_equal(cluster_configure(&cluster, RULES(THIRD)), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    ALL_UNTIL(cluster_log_count(&cluster, "event=reloaded") == 1);
    check_sick_stays_shielded();
    assert_int_equal(epoch(), before);
    assert_int_equal(told_count, 0);
    assert_int_equal(caller.events[RINGBUS_EVENT_UPDATED], 0);
}

static void test_the_last_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < INSTANCES; i++) {
        leave(i);
        ALL_UNTIL(told_count > i);
        assert_int_equal(told[i].type, RINGBUS_EVENT_REMOVED);
        assert_int_equal(told[i].instance, i + 1);
    }
    const uint64_t empty = epoch();
    const unsigned events = told_count;
    assert_int_equal(events, INSTANCES);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ringbus_send(caller.bus, &to, i, "x", 1, RINGBUS_KEY),
                         RINGBUS_E_NO_INSTANCE);
        poll_all();
    }
    assert_int_equal(epoch(), empty);
    assert_int_equal(told_count, events);
    told_count = 0;
    /* The first of a new row has it all. */
    join(2);
    check_told(RINGBUS_EVENT_ADDED, 2);
    ask_owners(owners);
    for (unsigned key = 0; key < KEYS; key++) {
        assert_int_equal(owners[key], 3);
    }
    leave(2);
    node_close(&caller);
    node_close(&watcher);
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, RULES(OTHER));
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

/* Each goes on where the one before has ended. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_rule_moves_to_another_cluster),
        cmocka_unit_test(test_the_last_one),
    };
    return cmocka_run_group_tests(tests, up, down);
}
