/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 104, when the daemon does not stay: what a client still meant to do about those
 * whom one daemon had not named is off when that daemon goes too. The next one begins anew, and
 * nobody is missed before it has settled. Of whom it is told that he has left is not listed.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#define SERVICE   "/game/eu/pc/w1/core/service"
#define SERVICE_1 SERVICE "/1"
#define WATCHER   "/game/eu/pc/w1/core/watcher/1"
#define SWEEP_NS  (UINT64_C(1500) * 1000 * 1000)
#define RESTARTS  5U

static struct cluster cluster;
static struct node watcher;
static struct node service;

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "daemon: {return_time: 60s}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

/** As after a daemon without a directory that could be read: in a while the unnamed are dropped. */
static uint64_t plan_sweep(void)
{
    const uint64_t at_ns = rbi_now_ns() + SWEEP_NS;
    watcher.bus->sweep_ns = at_ns;
    rbi_target_at_most(watcher.bus, at_ns);
    return at_ns;
}

static void test_the_next_daemon_begins_anew(void **state)
{
    (void)state;
    node_open(&watcher, &cluster, WATCHER);
    assert_int_equal(ringbus_watch(watcher.bus, SERVICE), 0);
    node_open(&service, &cluster, SERVICE_1);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_ADDED] == 1, NODE_MS, &watcher, &service);
    const uint64_t at_ns = plan_sweep();
    for (unsigned i = 1; i <= RESTARTS; i++) {
        cluster_kill(&cluster);
        RUN_UNTIL(watcher.events[RINGBUS_EVENT_DAEMON_LOST] == i, NODE_MS, &watcher);
        assert_true(watcher.bus->sweep_ns == RBI_NEVER);
        assert_int_equal(cluster_start(&cluster), 0);
        /* It is slow to come back: that is what the time to return is for. */
        RUN_UNTIL(watcher.events[RINGBUS_EVENT_DAEMON_BACK] == i, NODE_MS, &watcher);
    }
    RUN_UNTIL(rbi_now_ns() > at_ns + RBI_NS_PER_MS, NODE_MS, &watcher);
    assert_int_equal(watcher.events[RINGBUS_EVENT_REMOVED], 0);
    RUN_UNTIL(service.events[RINGBUS_EVENT_DAEMON_BACK] == 1, NODE_MS, &watcher, &service);
    assert_int_equal(watcher.events[RINGBUS_EVENT_REMOVED], 0);
    assert_int_equal(watcher.events[RINGBUS_EVENT_ADDED], 1);
    node_close(&service);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &watcher);
    node_close(&watcher);
}

static int listed(void)
{
    struct ringbus_instance list[4];
    return ringbus_instances(watcher.bus, SERVICE, list, 4);
}

/* The directory of the daemon before still lists it, and that is held until the new one settles. */
static void test_one_that_leaves_before_all_are_back(void **state)
{
    (void)state;
    watcher = service = (struct node){.bus = NULL};
    node_open(&watcher, &cluster, WATCHER);
    assert_int_equal(ringbus_watch(watcher.bus, SERVICE), 0);
    node_open(&service, &cluster, SERVICE_1);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_ADDED] == 1, NODE_MS, &watcher, &service);
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_DAEMON_BACK] == 1, NODE_MS, &watcher);
    assert_int_equal(listed(), 1);
    RUN_UNTIL(service.events[RINGBUS_EVENT_DAEMON_BACK] == 1, NODE_MS, &watcher, &service);
    node_close(&service);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &watcher);
    assert_int_equal(listed(), 0);
    /* Its next life is. */
    service = (struct node){.bus = NULL};
    node_open(&service, &cluster, SERVICE_1);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_ADDED] == 2, NODE_MS, &watcher, &service);
    assert_int_equal(listed(), 1);
    node_close(&service);
    node_close(&watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_next_daemon_begins_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_leaves_before_all_are_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
