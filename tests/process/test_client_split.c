/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that cannot be made at all, for want of room or a link: counted apart from those that
 * failed, and judged where the policy says so (features 2.4, shield.split).
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define SPLIT  "/game/eu/pc/w1/core/split"
#define PLAIN  "/game/eu/pc/w1/core/plain"
#define CALLER "/game/eu/pc/w1/core/caller/1"

static const char config[] = "liveness: {interval: 60s}\n" /* nobody is judged for not polling */
                             "daemon: {request_timeout: 100ms}\n"
                             "clusters:\n"
                             "  - {match: " SPLIT ", shield: {split: true, open_min: 60s}}\n";

#define SERVERS 3U

static struct cluster cluster;
static struct node servers[SERVERS];
static struct node caller;
static struct ringbus_addr to;

static void open_all(const char *target)
{
    memset(servers, 0, sizeof servers);
    caller = (struct node){.bus = NULL};
    for (unsigned i = 0; i < SERVERS; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        (void)snprintf(path, sizeof path, "%s/%u", target, i + 1);
        node_open(&servers[i], &cluster, path);
    }
    struct ringbus_options options = node_options(&cluster, CALLER);
    options.lane_bytes = 4096;
    node_open_with(&caller, &options);
    CHECK(ringbus_target(caller.bus, target, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == SERVERS, NODE_MS, &caller, &servers[0],
              &servers[1], &servers[2]);
}

static void close_all(void)
{
    node_close(&caller);
    for (unsigned i = 0; i < SERVERS; i++) {
        node_close(&servers[i]);
    }
}

/* A request to the second one, which does not poll. */
static int ask(void)
{
    const struct ringbus_addr second = {.cluster = to.cluster, .instance = 2};
    return ringbus_request(caller.bus, &second, 0, "hi", 2, 0, 60000, node_on_result, &caller);
}

static void fill(void)
{
    int r = 0;
    while ((r = ask()) == 1) {
    }
    CHECK(r == RINGBUS_E_FULL);
}

static struct rbi_outcome_copy counted(void)
{
    struct rbi_outcome_copy copy = {0};
    const struct rbi_end *end = rbi_end_find(caller.bus, to.cluster, 2);
    CHECK(end != NULL && end->outcome != 0);
    rbi_outcome_read(&caller.bus->outcomes.slots[end->outcome], &copy);
    return copy;
}

/* Who tries again at once says nothing new. */
static void test_no_room_is_counted_apart(void **state)
{
    (void)state;
    open_all(PLAIN);
    fill();
    struct rbi_outcome_copy seen = counted();
    assert_int_equal(seen.local, 1);
    assert_true(seen.ok == 0 && seen.failed == 0 && seen.lost == 0);
    const uint64_t begin_ms = test_now_ms();
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(ask(), RINGBUS_E_FULL);
    }
    assert_true(counted().local <= 1 + (test_now_ms() - begin_ms) / 10 + 1);
    const uint32_t before = counted().local;
    test_sleep_ms(11);
    assert_int_equal(ask(), RINGBUS_E_FULL);
    assert_int_equal(counted().local, before + 1);
    close_all();
}

/* Until something of it is known, or it is sure that nothing will be. */
static void run(unsigned tries)
{
    for (unsigned i = 0; i < tries && caller.events[RINGBUS_EVENT_SHIELDED] == 0; i++) {
        struct node *const nodes[] = {&caller, &servers[0], &servers[2]};
        CHECK(ask() == RINGBUS_E_FULL);
        nodes_step(nodes, 3);
        test_sleep_ms(11);
    }
}

static void test_no_room_shields_where_it_is_split(void **state)
{
    (void)state;
    open_all(SPLIT);
    fill();
    run(1000);
    assert_int_equal(caller.events[RINGBUS_EVENT_SHIELDED], 1);
    assert_int_equal(cluster_log_count(&cluster, "because=\"local\""), 1);
    assert_int_equal(raw_status(cluster.socket, "calls_failed"), 0);
    close_all();
}

static void test_no_room_shields_nobody_else(void **state)
{
    (void)state;
    open_all(PLAIN);
    fill();
    run(120); /* five sweeps after the numbers of the first window */
    assert_int_equal(caller.events[RINGBUS_EVENT_SHIELDED], 0);
    close_all();
}

/* An instance that does not answer introductions: nobody calls it, and the daemon knows. */
static void test_links_that_come_to_nothing_shield(void **state)
{
    (void)state;
    struct raw raws[3];
    struct raw asker;
    for (unsigned i = 0; i < 3; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        (void)snprintf(path, sizeof path, SPLIT "/%u", i + 1);
        assert_int_equal(raw_up(&raws[i], cluster.socket, path), 0);
    }
    assert_int_equal(raw_up(&asker, cluster.socket, CALLER), 0);
    const uint64_t before = raw_status(cluster.socket, "shields");
    const uint64_t end_ms = test_now_ms() + 3 * NODE_MS;
    while (raw_status(cluster.socket, "shields") == before) {
        assert_true(test_now_ms() < end_ms);
        assert_int_equal(
            raw_introduce(&asker, raws[1].registered.cluster, raws[1].registered.instance, 0), 0);
        assert_int_equal(raw_expect_error(&asker), RINGBUS_E_TIMEOUT);
    }
    raw_close(&asker);
    for (unsigned i = 0; i < 3; i++) {
        raw_close(&raws[i]);
    }
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_room_is_counted_apart),
        cmocka_unit_test(test_no_room_shields_where_it_is_split),
        cmocka_unit_test(test_no_room_shields_nobody_else),
        cmocka_unit_test(test_links_that_come_to_nothing_shield),
    };
    return cmocka_run_group_tests(tests, up, down);
}
