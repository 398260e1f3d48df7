/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a node is (features D33, D35; scenario 99): what ends with whom, and what a restart of the
 * daemon leaves.
 */
#include "client_nodes.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

static void test_ephemeral_ends_with_its_owner_alone(void **state)
{
    (void)state;
    struct told told;
    struct node watcher;
    both_open(BATTLE "/1", BATTLE "/2");
    watcher_open(&watcher, &told, BATTLE);
    assert_int_equal(create(&a, LEADER, "1", RINGBUS_NODE_EPHEMERAL), 0);
    assert_int_equal(create(&b, LEADER, "2", RINGBUS_NODE_EPHEMERAL), RINGBUS_E_IN_USE);
    assert_int_equal(create(&a, LEADER "/x", "", 0), RINGBUS_E_ARGUMENT);
    assert_int_equal(create(&b, BATTLE "/meta/kept", "", 0), 0);
    /* Scenario 99: another edits it, and exits. It is no other's by that. */
    struct node tool = {.bus = NULL};
    node_open(&tool, &cluster, NULL);
    assert_int_equal(set(&tool, LEADER, "edited", 0), 0);
    node_close(&tool);
    check_value(&b, LEADER, "edited");
    assert_int_equal(answer.ephemeral, 1);
    assert_string_equal(answer.creator, BATTLE "/1");
    /* An instance is its own. */
    assert_int_equal(set(&b, BATTLE "/1", "x", 0), RINGBUS_E_DENIED);
    assert_int_equal(drop(&b, BATTLE "/1", 0), RINGBUS_E_DENIED);
    assert_int_equal(create(&b, BATTLE "/9", "", 0), RINGBUS_E_DENIED);
    assert_int_equal(drop(&b, BATTLE, 0), RINGBUS_E_IN_USE);
    catch_up(&watcher);
    check_told(&told, 2, 1, 0);
    node_close(&a);
    RUN_UNTIL(told.count[2] == 1, 5000, &watcher);
    assert_string_equal(told.path, LEADER);
    assert_int_equal(told.reason, RINGBUS_REASON_LEFT);
    /* The next one may. */
    assert_int_equal(create(&b, LEADER, "2", RINGBUS_NODE_EPHEMERAL), 0);
    node_close(&b);
    RUN_UNTIL(told.count[2] == 2, 5000, &watcher);
    assert_int_equal(get(&watcher, BATTLE "/meta/kept"), 0);
    node_close(&watcher);
}

static void crash_with_node(const struct cluster *of, void *context)
{
    struct node node = {.bus = NULL};
    (void)context;
    node_open(&node, of, BATTLE "/3");
    CHECK(create(&node, LEADER, "3", RINGBUS_NODE_EPHEMERAL) == 0);
    atomic_store(&bus_shared[0], 1);
    for (;;) {
        (void)ringbus_wait(node.bus, -1);
        (void)ringbus_poll(node.bus, 10);
    }
}

static void test_ephemeral_ends_with_a_death(void **state)
{
    (void)state;
    struct told told;
    struct node watcher;
    watcher_open(&watcher, &told, "/");
    const pid_t pid = child_start(crash_with_node, &cluster, NULL);
    RUN_UNTIL(told.count[0] == 1 && atomic_load(&bus_shared[0]) == 1, 5000, &watcher);
    child_kill(pid);
    RUN_UNTIL(told.count[2] == 1, 5000, &watcher);
    assert_int_equal(told.reason, RINGBUS_REASON_CRASHED);
    assert_int_equal(get(&watcher, LEADER), RINGBUS_E_NO_SERVICE);
    /* Scenario 99: its place, which waits for its return, is given up by hand, and stays so. */
    assert_int_equal(drop(&watcher, BATTLE, 0), RINGBUS_E_IN_USE);
    assert_int_equal(drop(&watcher, BATTLE "/3", 0), 0);
    assert_int_equal(drop(&watcher, BATTLE "/3", 0), RINGBUS_E_NO_INSTANCE);
    assert_int_equal(get(&watcher, BATTLE), RINGBUS_E_NO_INSTANCE);
    assert_int_equal(drop(&watcher, BATTLE, 0), 0);
    assert_int_equal(get(&watcher, BATTLE), RINGBUS_E_NO_SERVICE);
    node_close(&watcher);
}

/* ---- restarts -------------------------------------------------------------------------------- */

static void daemon_again(struct node *one, struct node *two, struct node *three)
{
    struct node *const nodes[] = {one, two, three};
    unsigned back[3] = {0};
    for (unsigned i = 0; i < 3; i++) {
        back[i] = nodes[i] != NULL ? nodes[i]->events[RINGBUS_EVENT_DAEMON_BACK] : 0;
    }
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
    for (unsigned i = 0; i < 3; i++) {
        if (nodes[i] != NULL) {
            RUN_UNTIL(nodes[i]->events[RINGBUS_EVENT_DAEMON_BACK] > back[i], 10000, one, two,
                      three);
        }
    }
}

/* Persistent ones are there, ephemeral ones are their owners', and watchers hear nothing of it. */
static void test_restart_keeps_what_lives(void **state)
{
    (void)state;
    struct told told;
    struct node watcher;
    both_open(BATTLE "/1", BATTLE "/2");
    watcher_open(&watcher, &told, "/game");
    assert_int_equal(create(&a, SEASON, "winter", 0), 0);
    assert_int_equal(create(&a, LEADER, "1", RINGBUS_NODE_EPHEMERAL), 0);
    const uint64_t revision = answer.revision;
    RUN_UNTIL(told.count[0] == 2, 5000, &watcher);
    daemon_again(&a, &b, &watcher);
    /* Its owner is back, or expected: in neither case is it anybody else's. */
    assert_int_equal(create(&b, LEADER, "2", RINGBUS_NODE_EPHEMERAL), RINGBUS_E_IN_USE);
    assert_true(cluster_log_wait(&cluster, "event=settled", 10000));
    check_value(&b, SEASON, "winter");
    check_value(&b, LEADER, "1");
    assert_true(answer.node_revision == revision);
    catch_up(&watcher);
    catch_up(&watcher);
    check_told(&told, 2, 0, 0);
    assert_int_equal(set(&b, SEASON, "spring", 0), 0);
    assert_true(answer.revision > revision);
    RUN_UNTIL(told.count[1] == 1, 5000, &watcher);
    /* And it still ends with its owner. */
    node_close(&a);
    RUN_UNTIL(told.count[2] == 1, 5000, &watcher);
    node_close(&b);
    node_close(&watcher);
}

/* Who has died meanwhile is missed when the time for coming back is over, and not before. */
static void test_restart_ends_what_died(void **state)
{
    (void)state;
    struct told told;
    struct node watcher;
    watcher_open(&watcher, &told, "/");
    bus_shared_reset();
    const pid_t pid = child_start(crash_with_node, &cluster, NULL);
    RUN_UNTIL(told.count[0] == 1 && atomic_load(&bus_shared[0]) == 1, 5000, &watcher);
    cluster_kill(&cluster);
    child_kill(pid);
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_DAEMON_BACK] == 1, 10000, &watcher);
    RUN_UNTIL(told.count[2] == 1, 10000, &watcher);
    assert_string_equal(told.path, LEADER);
    assert_true(cluster_log_wait(&cluster, "event=node_not_returned", 1000));
    assert_int_equal(get(&watcher, LEADER), RINGBUS_E_NO_SERVICE);
    node_close(&watcher);
}

/* Scenario 99: what an operator has removed does not come back because its owner says it again. */
static void test_restart_brings_nothing_back_that_was_removed(void **state)
{
    (void)state;
    struct told told;
    memset(&told, 0, sizeof told);
    both_open(BATTLE "/1", NULL);
    a.on_event = on_event;
    a.context = &told;
    assert_int_equal(create(&a, LEADER, "1", RINGBUS_NODE_EPHEMERAL), 0);
    assert_int_equal(create(&a, BATTLE "/meta/other", "1", RINGBUS_NODE_EPHEMERAL), 0);
    /* One is removed while its owner reads, the other while it does not. */
    assert_int_equal(drop(&b, LEADER, 0), 0);
    RUN_UNTIL(told.count[2] == 1, 5000, &a); /* told, though it watches nothing */
    assert_string_equal(told.path, LEADER);
    assert_int_equal(drop(&b, BATTLE "/meta/other", 0), 0);
    daemon_again(&a, &b, NULL);
    assert_true(cluster_log_wait(&cluster, "event=settled", 10000));
    RUN_UNTIL(told.count[2] == 2, 5000, &a);
    assert_int_equal(get(&b, LEADER), RINGBUS_E_NO_SERVICE);
    assert_int_equal(get(&b, BATTLE "/meta/other"), RINGBUS_E_NO_SERVICE);
    both_close();
}

/* Without a daemon nothing can be asked; what was asked ends, once. */
static void test_without_a_daemon(void **state)
{
    (void)state;
    both_open(NULL, NULL);
    const unsigned before = answer.count;
    assert_int_equal(kill(cluster.pid, SIGSTOP), 0);
    assert_int_equal(ringbus_node_create(a.bus, SEASON, "", 0, 0, on_answer, &answer), 0);
    cluster_kill(&cluster);
    RUN_UNTIL(answer.count == before + 1, 10000, &a);
    assert_int_equal(answer.error, RINGBUS_E_UNKNOWN_OUTCOME);
    assert_int_equal(ringbus_node_get(a.bus, SEASON, NULL, on_answer, &answer),
                     RINGBUS_E_NO_DAEMON);
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_BACK] == 1 && b.events[RINGBUS_EVENT_DAEMON_BACK] == 1,
              10000, &a, &b);
    /* Closing ends what waits. */
    assert_int_equal(kill(cluster.pid, SIGSTOP), 0);
    assert_int_equal(ringbus_node_get(b.bus, SEASON, NULL, on_answer, &answer), 0);
    node_close(&b);
    assert_int_equal(answer.count, before + 2);
    assert_int_equal(answer.error, RINGBUS_E_CLOSED);
    assert_int_equal(kill(cluster.pid, SIGCONT), 0);
    node_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODES_TEST(test_ephemeral_ends_with_its_owner_alone),
        NODES_TEST(test_ephemeral_ends_with_a_death),
        NODES_TEST(test_restart_keeps_what_lives),
        NODES_TEST(test_restart_ends_what_died),
        NODES_TEST(test_restart_brings_nothing_back_that_was_removed),
        NODES_TEST(test_without_a_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
