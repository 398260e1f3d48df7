/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request is asked again: failover, what is asked again and what is not; each callback once,
 * no instance twice (features 2.10). The other modes: test_client_retry_modes.c.
 */
#include "process/client_retry.h"

/* ---- failover, the default without a key -------------------------------------------------- */

/* One of twelve refuses: each request that meets it is answered by another. */
static void test_failover(void **state)
{
    (void)state;
    open_all(12, RINGBUS_RETRY_AUTO, 0);
    workers[3].doing = DO_SHED;
    unsigned again = 0;
    for (unsigned i = 0; i < 120; i++) {
        ask();
        assert_int_equal(last.outcome, RINGBUS_REPLIED);
        assert_true(last.tries == 1 || last.tries == 2);
        assert_true(last.peer.instance != 4);
        again += last.tries == 2;
    }
    assert_true(again > 0);
    assert_int_equal(workers[3].asked, again);
    assert_int_equal(asked_in_all(), 120 + again);
    assert_int_equal(node_stats(&client).retried, again);
    assert_int_equal(node_stats(&client).retry_denied, 0);
    assert_int_equal(node_stats(&client).requests, 120 + again);
    close_all();
}

/* One retry by default, as many as the target says, and never one instance twice. */
static void test_failover_tries(void **state)
{
    (void)state;
    open_all(3, RINGBUS_RETRY_AUTO, 0);
    all_do(DO_SHED);
    ask();
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_SHED);
    assert_int_equal(last.tries, 2);
    assert_int_equal(asked_in_all(), 2);
    close_all();
    open_all(3, RINGBUS_RETRY_FAILOVER, 7);
    all_do(DO_SHED);
    ask();
    assert_int_equal(last.tries, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(workers[i].asked, 1);
    }
    close_all();
}

/* An answer is an answer, and who is limited is not to ask elsewhere for more. */
static void test_what_is_not_asked_again(void **state)
{
    (void)state;
    open_all(3, RINGBUS_RETRY_FAILOVER, 2);
    all_do(DO_FAIL);
    ask();
    assert_int_equal(last.outcome, RINGBUS_FAILED);
    assert_int_equal(last.error, RINGBUS_E_HANDLER_FAILED);
    all_do(DO_LIMIT);
    ask();
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_LIMITED);
    assert_int_equal(last.retry_after_ms, 70);
    assert_int_equal(asked_in_all(), 2);
    /* One that was sent may have been handled. */
    all_do(DO_NOTHING);
    struct ringbus_message_options options = ordinary();
    options.timeout_ms = 200;
    options.try_timeout_ms = 20;
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_UNKNOWN);
    assert_int_equal(last.error, RINGBUS_E_TIMEOUT);
    assert_int_equal(last.tries, 1);
    /* Unless that does no harm. All tries lie within the time of the request. */
    options.flags = RINGBUS_IDEMPOTENT;
    const uint64_t begun_ms = test_now_ms();
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_UNKNOWN);
    assert_int_equal(last.tries, 3);
    assert_true(test_now_ms() - begun_ms >= 60);
    options.timeout_ms = 30;
    options.try_timeout_ms = 0;
    ask_with(&options);
    assert_int_equal(last.tries, 1);
    close_all();
}

/* One had it and did not say more, the other refuses: that nobody handled it is not known. */
static void test_doubt_stays(void **state)
{
    (void)state;
    open_all(2, RINGBUS_RETRY_FAILOVER, 1);
    struct ringbus_message_options options = ordinary();
    options.flags = RINGBUS_IDEMPOTENT;
    options.try_timeout_ms = 20;
    turn = 0;
    all_do(DO_NOTHING_THEN_SHED);
    ask_with(&options);
    assert_int_equal(asked_in_all(), 2);
    assert_int_equal(last.tries, 2);
    assert_int_equal(last.outcome, RINGBUS_UNKNOWN);
    assert_int_equal(last.error, RINGBUS_E_TIMEOUT);
    close_all();
}

/* A key has one owner: elsewhere it is asked only when the target says so, and marked. */
static void test_keyed(void **state)
{
    (void)state;
    struct ringbus_message_options options = ordinary();
    options.flags = RINGBUS_KEY;
    options.key = 5;
    open_all(3, RINGBUS_RETRY_AUTO, 0);
    all_do(DO_SHED);
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(asked_in_all(), 1);
    close_all();
    open_all(3, RINGBUS_RETRY_FAILOVER, 0);
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    struct worker *owner = &workers[last.peer.instance - 1];
    assert_false(owner->diverted);
    owner->doing = DO_SHED;
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(last.tries, 2);
    assert_true(workers[last.peer.instance - 1].diverted);
    assert_false(owner->diverted);
    assert_int_equal(node_stats(&client).diverted, 1);
    close_all();
}

/* The owner has changed: who is not it says so, and the request follows, once, in any mode. */
static void follow_the_owner(enum ringbus_retry mode)
{
    struct ringbus_message_options options = ordinary();
    options.flags = RINGBUS_KEY;
    options.key = 5;
    open_all(2, mode, 0);
    ask_with(&options);
    struct worker *owner = &workers[last.peer.instance - 1];
    struct worker *other = owner == &workers[0] ? &workers[1] : &workers[0];
    owner->doing = DO_NOT_OWNER;
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(last.tries, 2);
    assert_int_equal(other->asked, 1);
    assert_false(other->diverted);
    /* With nobody else to turn to, that is what is told. */
    other->doing = DO_NOT_OWNER;
    ask_with(&options);
    assert_int_equal(last.outcome, RINGBUS_NOT_SENT);
    assert_int_equal(last.error, RINGBUS_E_NOT_OWNER);
    assert_int_equal(last.tries, 1);
    close_all();
}

static void test_not_owner_is_followed(void **state)
{
    (void)state;
    follow_the_owner(RINGBUS_RETRY_AUTO);
    follow_the_owner(RINGBUS_RETRY_FAILFAST);
    follow_the_owner(RINGBUS_RETRY_FAILOVER);
}

/* A lane that is full refuses at once, and another has room. */
static void test_failover_from_a_full_lane(void **state)
{
    (void)state;
    static const unsigned char bulk[4000];
    open_all(2, RINGBUS_RETRY_AUTO, 0);
    struct ringbus_addr first = any;
    first.instance = 1;
    while (ringbus_send(client.bus, &first, 0, bulk, sizeof bulk, 0) == 1) {
    }
    struct node *const those[] = {&client, &workers[1].node};
    const struct ringbus_message_options options = ordinary();
    for (unsigned i = 0; i < 8; i++) {
        const unsigned before = ended;
        assert_int_equal(begin_with(&options), 1);
        while (ended == before) {
            nodes_step(those, 2);
        }
        assert_int_equal(last.outcome, RINGBUS_REPLIED);
        assert_int_equal(last.peer.instance, 2);
    }
    assert_int_equal(workers[1].asked, 8);
    assert_true(node_stats(&client).retried <= 8);
    workers[0].node.on_message = NULL;
    close_all();
}

enum { WORD_READY };

/* Is READY, and reads nothing until it is killed. */
static void be_deaf(const struct cluster *at, void *context)
{
    static struct node node;
    (void)context;
    node_open(&node, at, WORKERS "/9");
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &node);
    atomic_store(&bus_shared[WORD_READY], 1);
    for (;;) {
        test_sleep_ms(1000);
    }
}

/* What its receiver had not read when it was killed is asked of another. */
static void test_failover_from_the_dead(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(be_deaf, &cluster, NULL);
    open_all(0, RINGBUS_RETRY_AUTO, 0);
    UNTIL(client.events[RINGBUS_EVENT_READY] == 1 && atomic_load(&bus_shared[WORD_READY]) == 1);
    const struct ringbus_message_options options = ordinary();
    const unsigned before = ended;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(begin_with(&options), 1);
    }
    worker_count = 1;
    memset(&workers[0], 0, sizeof workers[0]);
    workers[0].node.on_message = work;
    workers[0].node.context = &workers[0];
    node_open(&workers[0].node, &cluster, WORKERS "/1");
    UNTIL(client.events[RINGBUS_EVENT_READY] == 2);
    child_kill(pid);
    UNTIL(ended == before + 3);
    assert_int_equal(last.outcome, RINGBUS_REPLIED);
    assert_int_equal(last.tries, 2);
    assert_int_equal(workers[0].asked, 3);
    assert_int_equal(node_stats(&client).retried, 3);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failover),
        cmocka_unit_test(test_failover_tries),
        cmocka_unit_test(test_what_is_not_asked_again),
        cmocka_unit_test(test_doubt_stays),
        cmocka_unit_test(test_keyed),
        cmocka_unit_test(test_not_owner_is_followed),
        cmocka_unit_test(test_failover_from_a_full_lane),
        cmocka_unit_test(test_failover_from_the_dead),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
