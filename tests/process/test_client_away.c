/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 104: what happens while the daemon is away is made good when it is back. Of 20
 * services 3 die, 3 are new and 3 are restarted meanwhile; whoever targets or watches them is
 * told of each once, in an order that makes sense, and of nothing else.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SERVICE   "/game/eu/pc/w1/core/service"
#define SERVICES  20
#define NEW       3
#define ALL       (SERVICES + NEW)
#define DEAD(i)   ((i) < 3)
#define REBORN(i) ((i) >= 3 && (i) < 6)

static struct cluster cluster;
static char paths[ALL][64];
static pid_t pids[ALL];

/* One that comes when there is a daemon. */
static void service(const struct cluster *at, void *context)
{
    struct ringbus_options options = node_options(at, context);
    struct ringbus *bus = NULL;
    while (ringbus_open(&options, &bus) != 0) {
        test_sleep_ms(5);
    }
    for (;;) {
        CHECK(ringbus_poll(bus, 100) >= 0);
        CHECK(ringbus_wait(bus, 1000) >= 0);
    }
}

/** What one node was told of each service, in order: 'A'dded, 'U'pdated, 'R'emoved. */
struct view {
    char told[ALL][8];
    uint32_t incarnation[ALL]; /* of the life that is in the view; 0 none */
    unsigned wrong;
};

static struct node targeter;
static struct node watcher;
static struct node both;
static struct view views[3];
static struct node *const nodes[3] = {&targeter, &watcher, &both};

static void on_change(struct node *node, const struct ringbus_event *event)
{
    struct view *view = node->context;
    const unsigned i = (unsigned)event->addr.instance - 1;
    const char letter = event->type == RINGBUS_EVENT_ADDED     ? 'A'
                        : event->type == RINGBUS_EVENT_UPDATED ? 'U'
                        : event->type == RINGBUS_EVENT_REMOVED ? 'R'
                                                               : 0;
    if (letter == 0) {
        return;
    }
    assert_true(i < ALL);
    const size_t length = strlen(view->told[i]);
    assert_true(length < sizeof view->told[i] - 1);
    view->told[i][length] = letter;
    view->wrong += view->incarnation[i] != (letter == 'A' ? 0 : event->addr.incarnation);
    view->incarnation[i] = letter == 'R' ? 0 : event->addr.incarnation;
}

static unsigned known(const struct view *view)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ALL; i++) {
        count += view->incarnation[i] != 0;
    }
    return count;
}

static unsigned told(const struct view *view, unsigned first, unsigned end, const char *what)
{
    unsigned count = 0;
    for (unsigned i = first; i < end; i++) {
        count += strcmp(view->told[i], what) == 0;
    }
    return count;
}

static void step(void)
{
    nodes_step(nodes, 3);
}

/** Runs the nodes until all three views hold. */
static void until(bool (*holds)(const struct view *view))
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (!holds(&views[0]) || !holds(&views[1]) || !holds(&views[2])) {
        if (test_now_ms() > deadline_ms) {
            for (unsigned v = 0; v < 3; v++) {
                for (unsigned i = 0; i < ALL; i++) {
                    print_message("view %u service %u: %s\n", v, i + 1, views[v].told[i]);
                }
            }
            bus_die(__FILE__, __LINE__, "the views in time");
        }
        step();
    }
}

static bool complete(const struct view *view)
{
    return known(view) == SERVICES;
}

static bool reborn_again(const struct view *view)
{
    return told(view, 3, 6, "RA") == 3;
}

static bool caught_up(const struct view *view)
{
    return told(view, 0, 3, "R") == 3 && reborn_again(view) &&
           told(view, SERVICES, ALL, "A") == NEW;
}

/** Whether each of those who live all the time is listed. */
static bool lists_the_living(struct node *node)
{
    static struct ringbus_instance list[64];
    const int count = ringbus_instances(node->bus, SERVICE, list, 64);
    bool found[ALL] = {false};
    for (int i = 0; i < count && i < 64; i++) {
        found[list[i].addr.instance - 1] = true;
    }
    for (unsigned i = 6; i < SERVICES; i++) {
        if (!found[i]) {
            return false;
        }
    }
    return true;
}

static void check_truth(struct node *node, const struct view *view)
{
    static struct ringbus_instance list[64];
    const int count = ringbus_instances(node->bus, SERVICE, list, 64);
    assert_int_equal(count, SERVICES);
    for (int i = 0; i < count; i++) {
        assert_int_equal(view->incarnation[list[i].addr.instance - 1], list[i].addr.incarnation);
    }
    assert_int_equal(view->wrong, 0);
    assert_int_equal(known(view), SERVICES);
    assert_int_equal(told(view, 6, SERVICES, ""), SERVICES - 6);
}

static void start_services(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        pids[i] = child_start(service, &cluster, paths[i]);
    }
}

static void open_nodes(void)
{
    memset(views, 0, sizeof views);
    for (unsigned i = 0; i < 3; i++) {
        memset(nodes[i], 0, sizeof *nodes[i]);
        nodes[i]->on_event = on_change;
        nodes[i]->context = &views[i];
        node_open(nodes[i], &cluster, NULL);
    }
    assert_int_equal(ringbus_target(targeter.bus, SERVICE, NULL, NULL), 0);
    assert_int_equal(ringbus_watch(watcher.bus, "/game"), 0);
    assert_int_equal(ringbus_target(both.bus, SERVICE, NULL, NULL), 0);
    assert_int_equal(ringbus_watch(both.bus, "/game/eu"), 0);
    until(complete);
    RUN_UNTIL(targeter.events[RINGBUS_EVENT_READY] == SERVICES &&
                  both.events[RINGBUS_EVENT_READY] == SERVICES,
              NODE_MS, &targeter, &both, &watcher);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(told(&views[i], 0, SERVICES, "A"), SERVICES);
        memset(views[i].told, 0, sizeof views[i].told);
    }
}

static void lose_daemon(void)
{
    cluster_kill(&cluster);
    RUN_UNTIL(targeter.events[RINGBUS_EVENT_DAEMON_LOST] == 1 &&
                  watcher.events[RINGBUS_EVENT_DAEMON_LOST] == 1 &&
                  both.events[RINGBUS_EVENT_DAEMON_LOST] == 1,
              NODE_MS, &targeter, &watcher, &both);
}

static void test_what_was_missed_is_told_once(void **state)
{
    (void)state;
    open_nodes();
    lose_daemon();
    for (unsigned i = 0; i < ALL; i++) {
        if (DEAD(i) || REBORN(i)) {
            child_kill(pids[i]);
        }
    }
    /* Who is linked hears of it without a daemon; who only watches cannot. */
    RUN_UNTIL(known(&views[0]) == SERVICES - 6 && known(&views[2]) == SERVICES - 6, NODE_MS,
              &targeter, &both, &watcher);
    assert_int_equal(known(&views[1]), SERVICES);
    assert_int_equal(targeter.events[RINGBUS_EVENT_DOWN], 6);
    start_services(3, 6);
    start_services(SERVICES, ALL);
    const uint64_t back_ms = test_now_ms() + FULL_OR(2000, 200);
    while (test_now_ms() < back_ms) {
        step();
    }
    assert_int_equal(cluster_start(&cluster), 0);
    while (!caught_up(&views[1])) {
        step();
        assert_true(lists_the_living(&targeter));
        assert_true(lists_the_living(&watcher));
        assert_true(test_now_ms() < back_ms + NODE_MS);
    }
    until(caught_up);
    /* Long after everybody had his time there is nothing more to say. */
    assert_true(cluster_log_wait(&cluster, "event=settled", NODE_MS));
    RUN_UNTIL(targeter.events[RINGBUS_EVENT_READY] == SERVICES + 6, NODE_MS, &targeter, &watcher,
              &both);
    const uint64_t later_ms = test_now_ms() + 300;
    while (test_now_ms() < later_ms) {
        step();
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_true(caught_up(&views[i]));
        check_truth(nodes[i], &views[i]);
    }
    assert_int_equal(targeter.events[RINGBUS_EVENT_DOWN], 6);
    for (unsigned i = 0; i < 3; i++) {
        node_close(nodes[i]);
    }
}

/* One that is stopped for longer than it may take to come back is dead for nobody linked. */
static void test_one_that_is_stopped_is_missed_by_those_only_who_cannot_know(void **state)
{
    (void)state;
    const unsigned slow = 10;
    open_nodes();
    assert_int_equal(kill(pids[slow], SIGSTOP), 0);
    lose_daemon();
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(strcmp(views[1].told[slow], "R") == 0, NODE_MS, &targeter, &watcher, &both);
    assert_string_equal(views[0].told[slow], "");
    assert_string_equal(views[2].told[slow], "");
    assert_int_equal(targeter.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(kill(pids[slow], SIGCONT), 0);
    RUN_UNTIL(strcmp(views[1].told[slow], "RA") == 0, NODE_MS, &targeter, &watcher, &both);
    RUN_UNTIL(raw_status(cluster.socket, "links") == 2 * SERVICES, NODE_MS, &targeter, &watcher,
              &both);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(known(&views[i]), SERVICES);
        assert_int_equal(views[i].wrong, 0);
        node_close(nodes[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ALL; i++) {
        (void)snprintf(paths[i], sizeof paths[i], SERVICE "/%u", i + 1);
    }
    if (cluster_up(&cluster, "{}\n") != 0) {
        return -1;
    }
    start_services(0, SERVICES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ALL; i++) {
        if (pids[i] > 0) {
            child_kill(pids[i]);
            pids[i] = 0;
        }
    }
    cluster_down(&cluster);
    return 0;
}

#define WITH_SERVICES(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVICES(test_what_was_missed_is_told_once),
        WITH_SERVICES(test_one_that_is_stopped_is_missed_by_those_only_who_cannot_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
