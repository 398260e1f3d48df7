/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request is asked: failfast, forking, broadcast, failsafe; and the budget of those that are
 * asked again (features 2.10).
 */
#include "process/client_retry.h"

/* ---- the other modes ----------------------------------------------------------------------- */

static void test_failfast(void **state)
{
    (void)state;
    open_all(3, RINGBUS_RETRY_FAILFAST, 0);
    all_do(DO_SHED);
    ask();
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.tries, 1);
    assert_int_equal(asked_in_all(), 1);
    close_all();
}

/* Two at once: the first answer counts, and the callback comes once. */
static void test_forking(void **state)
{
    (void)state;
    open_all(3, RINGBUS_RETRY_FORKING, 0);
    for (unsigned i = 0; i < 20; i++) {
        ask();
        assert_int_equal(last.outcome, RINGBUS_REPLIED);
        assert_int_equal(last.tries, 2);
    }
    UNTIL(asked_in_all() == 40);
    UNTIL(node_stats(&client).replies == 40);
    const unsigned before = ended;
    /* One that refuses does not end it while a copy is under way; all that refuse do. */
    workers[0].doing = DO_SHED;
    workers[1].doing = DO_SHED;
    for (unsigned i = 0; i < 6; i++) {
        ask();
        assert_true(last.outcome == RINGBUS_REPLIED || last.tries == 2);
    }
    all_do(DO_SHED);
    ask();
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_SHED);
    assert_int_equal(ended, before + 7);
    close_all();
    /* One instance is asked once. */
    open_all(1, RINGBUS_RETRY_FORKING, 0);
    ask();
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(last.tries, 1);
    close_all();
}

/* A copy is under way when the handle is closed: nothing is told twice, nothing leaks. */
static void test_forking_and_close(void **state)
{
    (void)state;
    open_all(2, RINGBUS_RETRY_FORKING, 0);
    workers[1].doing = DO_NOTHING;
    ask();
    const unsigned before = ended;
    const struct ringbus_message_options options = ordinary();
    all_do(DO_NOTHING);
    assert_int_equal(begin_with(&options), 1);
    close_all();
    assert_int_equal(ended, before + 1);
    assert_int_equal(last.outcome, RINGBUS_UNKNOWN);
    assert_int_equal(last.error, RINGBUS_E_CLOSED);
}

static void test_broadcast(void **state)
{
    (void)state;
    open_all(5, RINGBUS_RETRY_BROADCAST, 0);
    ask();
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(last.tries, 5);
    assert_int_equal(reply_size, 3);
    workers[2].doing = DO_FAIL;
    ask();
    assert_int_equal(last.outcome, RINGBUS_FAILED);
    assert_int_equal(last.error, RINGBUS_E_HANDLER_FAILED);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(workers[i].asked, 2);
    }
    close_all();
}

/* A failure counts as an empty answer: refused, or nobody there at all. */
static void test_failsafe(void **state)
{
    (void)state;
    open_all(2, RINGBUS_RETRY_FAILSAFE, 0);
    ask();
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_false(mocked);
    all_do(DO_SHED);
    ask();
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_true(mocked);
    assert_int_equal(reply_size, 0);
    assert_int_equal(last.tries, 1);
    close_all();
    open_all(0, RINGBUS_RETRY_FAILSAFE, 0);
    ask();
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_true(mocked);
    assert_int_equal(last.tries, 0);
    assert_int_equal(node_stats(&client).mocked, 1);
    close_all();
}

/* ---- the budget ---------------------------------------------------------------------------- */

/* Everybody refuses everything: what is asked stays what was asked. */
static void test_budget(void **state)
{
    (void)state;
    open_all(2, RINGBUS_RETRY_AUTO, 0);
    all_do(DO_SHED);
    for (unsigned i = 0; i < 200; i++) {
        ask();
        assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    }
    assert_true(asked_in_all() >= 201 && asked_in_all() <= 205);
    assert_true(node_stats(&client).retry_denied >= 195);
    close_all();
}

/* What is switched off asks nobody, and pays for no retries. */
static void test_budget_and_mocks(void **state)
{
    (void)state;
    open_all(2, RINGBUS_RETRY_AUTO, 0);
    const struct ringbus_degrade off = {.struct_size = sizeof off,
                                        .action = RINGBUS_DEGRADE_MOCK,
                                        .triggers = RINGBUS_DEGRADE_MANUAL};
    ask();
    assert_int_equal(ringbus_degrade(client.bus, WORKERS, &off, 1), 0);
    for (unsigned i = 0; i < 100; i++) {
        ask();
        assert_true(mocked);
    }
    const struct rbi_cluster *cluster_at = rbi_cluster_find(client.bus, any.cluster);
    uint32_t counted = 0;
    for (unsigned i = 0; i < RBI_RETRY_SECONDS; i++) {
        counted += cluster_at->caller->budget.requests[i];
    }
    assert_true(counted <= 1); /* 0 where the test has taken long */
    close_all();
}

static void test_options_out_of_range(void **state)
{
    (void)state;
    node_open(&client, &cluster, NULL);
    struct ringbus_target_options options = {.struct_size = sizeof options};
    options.retry = (enum ringbus_retry)(RINGBUS_RETRY_FAILSAFE + 1);
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), RINGBUS_E_ARGUMENT);
    options.retry = RINGBUS_RETRY_AUTO;
    options.retry_tries = 8;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), RINGBUS_E_ARGUMENT);
    options.retry_tries = 7;
    options.wait_ms = 60001;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), RINGBUS_E_ARGUMENT);
    options.wait_ms = 60000;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), 0);
    /* Nobody is there, and that is said at once. */
    const struct ringbus_message_options asking = ordinary();
    const int r = begin_with(&asking);
    assert_true(r == RINGBUS_E_NO_SERVICE || r == RINGBUS_E_NO_INSTANCE);
    node_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failfast),          cmocka_unit_test(test_forking),
        cmocka_unit_test(test_forking_and_close), cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_failsafe),          cmocka_unit_test(test_budget),
        cmocka_unit_test(test_budget_and_mocks),  cmocka_unit_test(test_options_out_of_range),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
