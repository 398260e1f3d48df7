/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon under a service manager that hands it its socket and keeps its directory over restarts
 * (scenario 102): nobody vanishes from the directory because of a restart.
 */
#include "process/daemon_manager.h"

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_kept_over(bool in_order)
{
    struct raw a;
    struct raw b;
    struct raw again;
    struct raw watcher;
    struct raw_message message;
    struct listing before;
    struct listing after;
    manage("daemon: {return_time: 1500ms}\n");
    register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
    register_at(&b, ECHO_2, 8, RBI_ENDPOINT_DRAINING, NULL);
    list(&b, &before);
    assert_int_equal(before.count, 2);
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    if (in_order) {
        assert_int_equal(cluster_stop(&cluster), 0);
    } else {
        cluster_kill(&cluster);
    }
    /* The last life of the directory is as it was, and so the next begins. */
    list(&b, &after);
    assert_memory_equal(&after, &before, sizeof before);
    start();
    wait_for_log("event=directory_restored clusters=1 instances=2");
    list_fresh(&after);
    assert_int_equal(after.count, 2);
    assert_memory_equal(after.instances, before.instances, sizeof before.instances);
    assert_int_equal(after.head.epoch, before.head.epoch);
    assert_true(after.revision >= before.revision);
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    /* Listed, but nobody is introduced to one that has not come back, and no event names it. */
    assert_int_equal(raw_connect(&watcher, cluster.socket), 0);
    assert_int_equal(raw_hello(&watcher), 0);
    assert_int_equal(watcher.hello_ok.settling, 1);
    assert_int_equal(raw_register(&watcher, "", RBI_ENDPOINT_READY), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO), 0);
    assert_int_equal(raw_introduce(&watcher, a.registered.cluster, 1, 0), 0);
    assert_int_equal(raw_expect_error(&watcher), RBI_CODE_NO_INSTANCE);
    register_at(&again, ECHO_1, 7, RBI_ENDPOINT_READY, &a);
    assert_int_equal(again.registered.incarnation, a.registered.incarnation);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_ADDED);
    assert_int_equal(message.body.event.instance, 1);
    list_fresh(&after);
    assert_int_equal(after.count, 2);
    /* Who has not come back when the time is over is gone; who has is not touched. */
    wait_for_log("event=not_returned path=" ECHO_2);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_SETTLED, &message, RAW_TIMEOUT_MS), 0);
    list_fresh(&after);
    assert_int_equal(after.count, 1);
    assert_int_equal(after.instances[0].instance, 1);
    assert_int_equal(message.body.settled.revision, after.revision);
    assert_true(after.head.epoch > before.head.epoch && after.revision > before.revision);
    assert_int_equal(cluster_log_count(&cluster, "not_returned path=" ECHO_1), 0);
    raw_close(&watcher);
    raw_close(&again);
    raw_close(&a);
    raw_close(&b);
}

static void test_directory_is_kept_when_the_daemon_is_killed(void **state)
{
    (void)state;
    check_kept_over(false);
}

static void test_directory_is_kept_when_the_daemon_is_stopped(void **state)
{
    (void)state;
    check_kept_over(true);
}

/* One that is starting again is not READY, whatever the last daemon knew of it. */
static void test_one_that_comes_back_otherwise(void **state)
{
    (void)state;
    struct raw a;
    struct raw again;
    struct listing after;
    manage("daemon: {return_time: 60s}\n");
    register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
    hear_all();
    cluster_kill(&cluster);
    raw_close(&a);
    start();
    register_at(&again, ECHO_1, 9, RBI_ENDPOINT_STARTING, NULL);
    list_fresh(&after);
    assert_int_equal(after.count, 0);
    assert_int_equal(raw_set_state(&again, RBI_ENDPOINT_READY), 0);
    list_fresh(&after);
    assert_int_equal(after.count, 1);
    assert_int_equal(after.instances[0].incarnation, again.registered.incarnation);
    assert_int_equal(after.instances[0].weight, 9);
    raw_close(&again);
    list_fresh(&after);
    assert_int_equal(after.count, 0);
}

/* A directory that has grown takes the place of the one that was kept. */
static void test_grown_directory_is_kept(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    static struct raw raws[COUNT];
    char path[96];
    manage("daemon: {return_time: 60s}\ndirectory: {clusters: 16}\n");
    for (unsigned i = 0; i < COUNT; i++) {
        (void)snprintf(path, sizeof path, "/game/eu/pc/w1/core/c%u/1", i);
        register_at(&raws[i], path, 1, RBI_ENDPOINT_READY, NULL);
        hear_all();
        assert_int_equal(manager.kept_count, 1);
    }
    wait_for_log("event=directory_grown");
    cluster_kill(&cluster);
    hear_all();
    manager.stores = 0;
    start();
    wait_for_log("event=directory_restored clusters=40 instances=40");
    hear_all();
    assert_int_equal(manager.kept_count, 1);
    /* It has grown on the way, and no part of it took the place of the whole: killed there, the
     * next would have found a part. */
    assert_true(cluster_log_count(&cluster, "event=directory_grown") > 2);
    assert_int_equal(manager.stores, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        raw_close(&raws[i]);
    }
    cluster_kill(&cluster);
    start(); /* and again from there */
    assert_int_equal(cluster_log_count(&cluster, "event=directory_restored clusters=40"), 2);
}

/* Killed at any moment, also in the middle of writing. */
static void test_killed_while_writing(void **state)
{
    (void)state;
    uint64_t random = 1;
    struct raw a;
    struct listing after;
    manage("daemon: {return_time: 60s}\nquota: {control: 1000000}\n");
    const unsigned rounds = full_or(200, 20);
    for (unsigned round = 0; round < rounds; round++) {
        register_at(&a, ECHO_1, 7, RBI_ENDPOINT_READY, NULL);
        hear_all();
        /* Many changes lie in its socket when it dies somewhere among them. */
        const unsigned changes = 20 + (unsigned)(any(&random) % 100);
        for (unsigned i = 0; i < changes; i++) {
            const struct rbi_wire_set_state body = {.state = i % 2 ? RBI_ENDPOINT_READY
                                                                   : RBI_ENDPOINT_BUSY};
            (void)raw_send(&a, RBI_WIRE_SET_STATE, &body, NULL, 0);
        }
        cluster_kill(&cluster);
        raw_close(&a);
        start();
        list_fresh(&after);
        assert_int_equal(after.count, 1);
        assert_int_equal(after.instances[0].incarnation, a.registered.incarnation);
    }
    assert_int_equal(cluster_log_count(&cluster, "stored_directory_left"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_directory_is_kept_when_the_daemon_is_killed, teardown),
        cmocka_unit_test_teardown(test_directory_is_kept_when_the_daemon_is_stopped, teardown),
        cmocka_unit_test_teardown(test_one_that_comes_back_otherwise, teardown),
        cmocka_unit_test_teardown(test_grown_directory_is_kept, teardown),
        cmocka_unit_test_teardown(test_killed_while_writing, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
