/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one host knows of the instances of others, with real daemons and bridges (features 2.13, J7,
 * B16, J40; scenario group I): they come and go with their reasons; a bridge or a daemon that dies
 * takes nobody away, one that ends in order does; what was known outlives the bridge.
 */
#include "bus/directory.h"
#include "support/hosts.h"
#include "support/raw.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define CLUSTER "/Game/eu/pc/w1/core/battle"
#define ONE     CLUSTER "/1"
#define TWO     CLUSTER "/2"
#define ALPHA   0U
#define BETA    1U
#define GAMMA   2U
#define SEEN    8U

static struct hosts hosts;
static struct node watcher; /* of alpha */
static struct node service; /* of beta, or of the last host */

static const struct cluster *at(unsigned index)
{
    return &hosts.host[index].cluster;
}

/** Looks at a host through the directory that its daemon hands out. */
static struct raw eyes[HOSTS_MAX];
static bool open_eyes[HOSTS_MAX];

static void close_eye(unsigned index)
{
    if (open_eyes[index]) {
        raw_close(&eyes[index]);
        open_eyes[index] = false;
    }
}

/** How many of the cluster a host's directory has. @param stale  those of them; may be NULL */
static unsigned seen(unsigned index, unsigned *stale)
{
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[SEEN];
    struct raw *raw = &eyes[index];
    unsigned count = 0;
    unsigned of_them = 0;
    if (!open_eyes[index]) {
        CHECK(raw_connect(raw, at(index)->socket) == 0 && raw_hello(raw) == 0);
        open_eyes[index] = true;
    }
    CHECK(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size) == 0);
    if (rbi_directory_read(&view, rbi_cluster_id(CLUSTER, sizeof CLUSTER - 1), &head, instances,
                           SEEN) == RBI_DIRECTORY_OK) {
        count = head.instance_count;
        for (unsigned i = 0; i < count; i++) {
            of_them += (instances[i].flags & RBI_INSTANCE_STALE) != 0 ? 1U : 0U;
        }
    }
    if (stale) {
        *stale = of_them;
    }
    return count;
}

static bool is(unsigned index, unsigned count, unsigned stale)
{
    unsigned of_them = 0;
    return seen(index, &of_them) == count && of_them == stale;
}

static void up(unsigned count, const char *bridge)
{
    const struct hosts_options options = {
        .count = count, .chain = true, .bridge = bridge, .rest = "daemon: {return_time: 500ms}"};
    bus_shared_reset();
    memset(&watcher, 0, sizeof watcher);
    memset(&service, 0, sizeof service);
    hosts_up(&hosts, &options);
    node_open(&watcher, at(ALPHA), NULL);
    CHECK(ringbus_watch(watcher.bus, CLUSTER) == 0);
    node_open(&service, at(count - 1), ONE);
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
}

static int down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTS_MAX; i++) {
        close_eye(i);
    }
    hosts_down(&hosts);
    return 0;
}

static void close_nodes(void)
{
    node_close(&watcher);
    node_close(&service);
}

static void live(const struct cluster *cluster, void *context)
{
    struct node node = {0};
    node_open(&node, cluster, context);
    RUN_UNTIL(false, 100000, &node);
}

static void keep_reason(struct node *node, const struct ringbus_event *event)
{
    if (event->type == RINGBUS_EVENT_REMOVED) {
        node->reason = event->reason;
    }
}

static void test_instances_come_and_go(void **state)
{
    (void)state;
    static char two[] = TWO;
    up(2, NULL);
    watcher.on_event = keep_reason;
    const pid_t child = hosts_child_start(live, at(BETA), two);
    RUN_UNTIL(is(ALPHA, 2, 0), NODE_MS, &watcher, &service);
    child_kill(child);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &watcher, &service);
    assert_int_equal(watcher.reason, RINGBUS_REASON_CRASHED);
    node_close(&service);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_REMOVED] == 2, NODE_MS, &watcher);
    assert_int_equal(watcher.reason, RINGBUS_REASON_LEFT);
    assert_int_equal(seen(ALPHA, NULL), 0);
    node_open(&service, at(BETA), ONE);
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    close_nodes();
}

static void test_a_bridge_that_ends_in_order_takes_its_instances_along(void **state)
{
    (void)state;
    up(2, NULL);
    assert_int_equal(hosts_bridge_stop(&hosts, BETA), 0);
    RUN_UNTIL(is(ALPHA, 0, 0), NODE_MS, &watcher, &service); /* no grace, which is a minute */
    hosts_bridge_start(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    close_nodes();
}

static void test_a_bridge_that_dies_takes_nobody_away(void **state)
{
    (void)state;
    up(2, NULL);
    hosts_bridge_kill(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 1, 1), NODE_MS, &watcher, &service);
    hosts_bridge_start(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    assert_int_equal(watcher.events[RINGBUS_EVENT_REMOVED], 0);
    close_nodes();
}

static void test_a_host_out_of_reach_is_gone_after_a_grace(void **state)
{
    (void)state;
    up(2, "  grace: 500ms\n  mass_hold: 200ms");
    hosts_bridge_kill(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 0, 0), NODE_MS, &watcher, &service);
    hosts_bridge_start(&hosts, BETA); /* nothing has changed there: it tells it all the same */
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    close_nodes();
}

static void test_an_operator_says_who_is_gone(void **state)
{
    (void)state;
    struct rbi_wire_confirm body;
    struct raw_message message;
    up(2, NULL);
    hosts_bridge_kill(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 1, 1), NODE_MS, &watcher, &service); /* for a minute */
    memset(&body, 0, sizeof body);
    rbi_text_set(&body.host, "beta");
    assert_int_equal(raw_send(&eyes[ALPHA], RBI_WIRE_CONFIRM, &body, NULL, 0), 0);
    assert_int_equal(raw_expect(&eyes[ALPHA], RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.ok.value, 1);
    raw_message_deinit(&message);
    RUN_UNTIL(is(ALPHA, 0, 0), NODE_MS, &watcher, &service);
    hosts_bridge_start(&hosts, BETA); /* he was wrong */
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    close_nodes();
}

static void test_a_daemon_that_dies_takes_nobody_away(void **state)
{
    (void)state;
    static char two[] = TWO;
    up(2, NULL);
    watcher.on_event = keep_reason;
    const pid_t child = hosts_child_start(live, at(BETA), two);
    RUN_UNTIL(is(ALPHA, 2, 0), NODE_MS, &watcher, &service);
    close_eye(BETA);
    cluster_kill(&hosts.host[BETA].cluster);
    child_kill(child); /* nobody is there to see it, but the next daemon */
    CHECK(cluster_start(&hosts.host[BETA].cluster) == 0);
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &watcher, &service);
    assert_int_equal(watcher.reason, RINGBUS_REASON_CRASHED);
    assert_true(is(ALPHA, 1, 0));
    close_nodes();
}

/** Files of what is known, beside what else the host keeps. */
static unsigned files(unsigned index)
{
    unsigned count = 0;
    DIR *folder = opendir(at(index)->folder);
    CHECK(folder != NULL);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        count += strlen(entry->d_name) == 18 && strcmp(entry->d_name + 16, ".0") == 0 ? 1U : 0U;
    }
    (void)closedir(folder);
    return count;
}

static void test_a_bridge_remembers_whom_the_one_before_saw(void **state)
{
    (void)state;
    up(2, NULL);
    RUN_UNTIL(files(ALPHA) > 0, NODE_MS, &watcher, &service);
    hosts_bridge_kill(&hosts, BETA);
    hosts_bridge_kill(&hosts, ALPHA);
    RUN_UNTIL(is(ALPHA, 0, 0), NODE_MS, &watcher, &service);
    hosts_bridge_start(&hosts, ALPHA);
    RUN_UNTIL(is(ALPHA, 1, 1), NODE_MS, &watcher, &service); /* stale: nobody has said so yet */
    hosts_bridge_start(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 1, 0), NODE_MS, &watcher, &service);
    node_close(&service);
    RUN_UNTIL(is(ALPHA, 0, 0), NODE_MS, &watcher);
    node_open(&service, at(BETA), ONE);
    close_nodes();
}

static void test_a_host_behind_another_is_seen(void **state)
{
    (void)state;
    up(3, NULL);
    RUN_UNTIL(is(BETA, 1, 0), NODE_MS, &watcher, &service);
    hosts_bridge_kill(&hosts, BETA); /* the way is lost, and nothing else */
    RUN_UNTIL(is(ALPHA, 1, 1), NODE_MS, &watcher, &service);
    hosts_bridge_start(&hosts, BETA);
    RUN_UNTIL(is(ALPHA, 1, 0) && is(BETA, 1, 0), NODE_MS, &watcher, &service);
    node_close(&service);
    RUN_UNTIL(is(ALPHA, 0, 0) && is(BETA, 0, 0), NODE_MS, &watcher);
    node_open(&service, at(GAMMA), ONE);
    close_nodes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_instances_come_and_go, down),
        cmocka_unit_test_teardown(test_a_bridge_that_ends_in_order_takes_its_instances_along, down),
        cmocka_unit_test_teardown(test_a_bridge_that_dies_takes_nobody_away, down),
        cmocka_unit_test_teardown(test_a_host_out_of_reach_is_gone_after_a_grace, down),
        cmocka_unit_test_teardown(test_an_operator_says_who_is_gone, down),
        cmocka_unit_test_teardown(test_a_daemon_that_dies_takes_nobody_away, down),
        cmocka_unit_test_teardown(test_a_bridge_remembers_whom_the_one_before_saw, down),
        cmocka_unit_test_teardown(test_a_host_behind_another_is_seen, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
