/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios 102, 104: the daemon dies and comes back; the links do not notice. */
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"
#define PEER_2 PEER "/2"
#define PEER_3 PEER "/3"

static struct cluster cluster;
static struct node a;
static struct node b;

static void numbered(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size == sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number == node->messages - 1);
}

/* One more message through the link, in a few milliseconds. */
static void exchange(uint64_t *number)
{
    assert_int_equal(ringbus_send(a.bus, &a.peer, 0, number, sizeof *number, 0), 1);
    ++*number;
    RUN_UNTIL(b.messages == *number, NODE_MS, &b, &a);
}

static void test_links_go_on_while_the_daemon_is_away(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct node c = {0};
    b.on_message = numbered;
    node_open(&b, &cluster, PEER_1);
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER_1, 1, &b);
    struct ringbus_addr self_before;
    struct ringbus_addr self_after;
    assert_int_equal(ringbus_self(b.bus, &self_before), 0);
    for (unsigned round = 1; round <= 5; round++) {
        cluster_kill(&cluster);
        RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_LOST] == round &&
                      b.events[RINGBUS_EVENT_DAEMON_LOST] == round,
                  NODE_MS, &a, &b);
        for (unsigned i = 0; i < 1000; i++) {
            exchange(&number);
        }
        assert_int_equal(a.events[RINGBUS_EVENT_DAEMON_BACK], round - 1);
        /* The directory is still there to be read. */
        assert_int_equal(ringbus_instances(a.bus, PEER, NULL, 0), 1);
        assert_int_equal(cluster_start(&cluster), 0);
        RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_BACK] == round &&
                      b.events[RINGBUS_EVENT_DAEMON_BACK] == round,
                  NODE_MS, &a, &b);
        exchange(&number);
        /* The new daemon knows the link: both ends have told of it. */
        RUN_UNTIL(raw_status(cluster.socket, "links") == 1, NODE_MS, &a, &b);
        /* Introductions work again, both ways. */
        node_open(&c, &cluster, PEER_2);
        assert_int_equal(ringbus_target(a.bus, PEER_2, NULL, NULL), 0);
        RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 1 + round, NODE_MS, &a, &b, &c);
        node_target(&c, PEER_1, 1, &b);
        a.peer.instance = 1;
        a.peer.incarnation = 0;
        assert_int_equal(ringbus_untarget(a.bus, PEER_2), 0);
        node_close(&c);
        RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == round && b.events[RINGBUS_EVENT_DOWN] == round,
                  NODE_MS, &a, &b);
    }
    assert_int_equal(ringbus_self(b.bus, &self_after), 0);
    assert_int_equal(self_after.incarnation, self_before.incarnation);
    assert_int_equal(a.events[RINGBUS_EVENT_DAEMON_LOST], 5);
    assert_int_equal(node_stats(&a).daemon_lost, 5);
    node_close(&a);
    node_close(&b);
}

/* A loop that never rests and never waits: the daemon's return must be seen all the same. */
static void test_back_while_messages_flow(void **state)
{
    (void)state;
    uint64_t sent = 0;
    struct ringbus_options options = node_options(&cluster, PEER_1);
    options.mode = RINGBUS_MODE_BUSY;
    options.ping_interval_ms = 60000;
    node_open_with(&b, &options);
    options.path = NULL;
    node_open_with(&a, &options);
    node_target(&a, PEER_1, 1, &b);
    cluster_kill(&cluster);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_LOST] == 1, NODE_MS, &a, &b);
    assert_int_equal(cluster_start(&cluster), 0);
    const uint64_t deadline_ms = test_now_ms() + 4000;
    while (a.events[RINGBUS_EVENT_DAEMON_BACK] == 0 || b.events[RINGBUS_EVENT_DAEMON_BACK] == 0) {
        sent += ringbus_send(a.bus, &a.peer, 0, "x", 1, 0) == 1;
        assert_true(ringbus_send(b.bus, &b.peer, 0, "x", 1, 0) != 0);
        assert_true(ringbus_poll(b.bus, 100) >= 0);
        assert_true(ringbus_poll(a.bus, 100) >= 0);
        assert_true(test_now_ms() < deadline_ms);
    }
    assert_true(sent > 100);
    node_close(&a);
    node_close(&b);
}

static void idle(const struct cluster *at, void *context);

/* The death of a process that a daemon did not introduce is told by it all the same. */
static void test_a_new_daemon_tells_of_deaths_on_old_links(void **state)
{
    (void)state;
    static char path[] = PEER_1;
    const pid_t pid = child_start(idle, &cluster, path);
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER_1, 1, NULL);
    cluster_kill(&cluster);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_LOST] == 1, NODE_MS, &a);
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_BACK] == 1, NODE_MS, &a);
    RUN_UNTIL(raw_status(cluster.socket, "links") == 1, NODE_MS, &a);
    assert_int_equal(raw_status(cluster.socket, "links_restored"), 1);
    child_kill(pid);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a);
    RUN_UNTIL(raw_status(cluster.socket, "links") == 0, NODE_MS, &a);
    assert_int_equal(a.reason, RINGBUS_REASON_CRASHED);
    node_close(&a);
}

static void idle(const struct cluster *at, void *context)
{
    static struct node peer;
    node_open(&peer, at, context);
    for (;;) {
        CHECK(ringbus_poll(peer.bus, 100) >= 0);
        CHECK(ringbus_wait(peer.bus, 1000) >= 0);
    }
}

static struct {
    unsigned removed;
    unsigned added;
    unsigned wrong;
} seen;

static void on_change(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    seen.removed += event->type == RINGBUS_EVENT_REMOVED;
    seen.added += event->type == RINGBUS_EVENT_ADDED;
    seen.wrong += event->type == RINGBUS_EVENT_REMOVED && event->addr.instance != 2 &&
                  event->addr.instance != 3;
}

/*
 * Died meanwhile: one that was linked (its end of the bell tells), one that was restarted.
 * Who lives on is not reported as anything.
 */
static void test_deaths_and_restarts_meanwhile(void **state)
{
    (void)state;
    static char paths[][64] = {PEER_1, PEER_2, PEER_3};
    pid_t pids[3];
    memset(&seen, 0, sizeof seen);
    a.on_event = on_change;
    for (unsigned i = 0; i < 3; i++) {
        pids[i] = child_start(idle, &cluster, paths[i]);
    }
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER, 3, NULL);
    assert_int_equal(seen.added, 3);
    cluster_kill(&cluster);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_LOST] == 1, NODE_MS, &a);
    child_kill(pids[1]);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a);
    assert_int_equal(a.reason, RINGBUS_REASON_CRASHED);
    child_kill(pids[2]);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &a);
    assert_int_equal(cluster_start(&cluster), 0);
    pids[2] = child_start(idle, &cluster, paths[2]);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_BACK] == 1, NODE_MS, &a);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 4 && seen.removed >= 1, NODE_MS, &a);
    assert_int_equal(ringbus_instances(a.bus, PEER, NULL, 0), 2);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN], 2);
    assert_int_equal(a.events[RINGBUS_EVENT_DAEMON_LOST], 1);
    assert_int_equal(a.events[RINGBUS_EVENT_DAEMON_BACK], 1);
    node_close(&a);
    a.on_event = NULL;
    child_kill(pids[0]);
    child_kill(pids[2]);
}

static void test_targets_and_watches_of_the_time_without_daemon(void **state)
{
    (void)state;
    node_open(&b, &cluster, PEER_1);
    node_open(&a, &cluster, NULL);
    cluster_kill(&cluster);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_LOST] == 1, NODE_MS, &a, &b);
    assert_int_equal(ringbus_target(a.bus, PEER, NULL, NULL), 0);
    assert_int_equal(ringbus_watch(a.bus, "/game"), 0);
    struct ringbus *none = NULL;
    struct ringbus_options options = node_options(&cluster, NULL);
    assert_int_equal(ringbus_open(&options, &none), RINGBUS_E_NO_DAEMON);
    assert_non_null(strstr(ringbus_errmsg(NULL), cluster.socket));
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 1 && a.events[RINGBUS_EVENT_ADDED] >= 1, NODE_MS, &a,
              &b);
    node_close(&a);
    node_close(&b);
}

static int setup(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_links_go_on_while_the_daemon_is_away),
        ON_OWN_DAEMON(test_back_while_messages_flow),
        ON_OWN_DAEMON(test_a_new_daemon_tells_of_deaths_on_old_links),
        ON_OWN_DAEMON(test_deaths_and_restarts_meanwhile),
        ON_OWN_DAEMON(test_targets_and_watches_of_the_time_without_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
