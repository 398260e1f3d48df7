/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request is asked: failfast, failover, forking, broadcast, failsafe; what is asked again and
 * what is not; each callback once, no instance twice, the budget kept (features 2.10).
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS     "/game/eu/pc/w1/core/worker"
#define WORKERS_MAX 12U

static struct cluster cluster;
static struct node client;
static struct ringbus_addr any;
static const struct ringbus_part part = {"abc", 3};

/* ---- workers that do as they are told ----------------------------------------------------- */

enum doing {
    DO_ANSWER,
    DO_SHED,
    DO_FAIL,
    DO_NOTHING,
    DO_NOT_OWNER,
    DO_LIMIT,
    DO_NOTHING_THEN_SHED
};

static unsigned turn; /* of NOTHING_THEN_SHED, over all workers */

struct worker {
    struct node node;
    enum doing doing;
    unsigned asked;
    bool diverted;
};
static struct worker workers[WORKERS_MAX];
static unsigned worker_count;

static void work(struct node *node, const struct ringbus_message *message)
{
    struct worker *worker = node->context;
    const struct ringbus_reply_to *to = &message->reply_to;
    worker->asked++;
    worker->diverted = (message->flags & RINGBUS_MESSAGE_DIVERTED) != 0;
    CHECK(message->kind == RINGBUS_KIND_REQUEST && message->size == 3);
    CHECK(message->attributes != NULL && memcmp(message->data, "abc", 3) == 0);
    switch (worker->doing) {
    case DO_ANSWER:
        CHECK(ringbus_reply(node->bus, to, "yes", 3, 0) == 1);
        break;
    case DO_SHED:
        CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_SHED, 0) == 1);
        break;
    case DO_LIMIT:
        CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_LIMITED, 70) == 1);
        break;
    case DO_FAIL:
        CHECK(ringbus_reply_error(node->bus, to, "no") == 1);
        break;
    case DO_NOT_OWNER:
        CHECK(ringbus_drain(node->bus) == 0); /* its keys are another's from here on */
        CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_NOT_OWNER, 0) == 1);
        break;
    case DO_NOTHING_THEN_SHED:
        if (turn++ > 0) {
            CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_SHED, 0) == 1);
        }
        break;
    case DO_NOTHING:
        break;
    }
}

static void step_all(void)
{
    struct node *nodes[WORKERS_MAX + 1] = {&client};
    for (unsigned i = 0; i < worker_count; i++) {
        nodes[i + 1] = &workers[i].node;
    }
    nodes_step(nodes, worker_count + 1);
}

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        const uint64_t deadline_ms_ = test_now_ms() + NODE_MS;                                     \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < deadline_ms_);                                                   \
            step_all();                                                                            \
        }                                                                                          \
    } while (0)

static void open_all(unsigned count, enum ringbus_retry retry, uint32_t tries)
{
    worker_count = count;
    node_open(&client, &cluster, NULL);
    const struct ringbus_target_options options = {
        .struct_size = sizeof options, .retry = retry, .retry_tries = tries};
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), 0);
    for (unsigned i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, WORKERS "/%u", i + 1);
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].node.on_message = work;
        workers[i].node.context = &workers[i];
        node_open(&workers[i].node, &cluster, path);
    }
    UNTIL(client.events[RINGBUS_EVENT_READY] == count);
}

static void close_all(void)
{
    node_close(&client);
    for (unsigned i = 0; i < worker_count; i++) {
        node_close(&workers[i].node);
    }
}

static unsigned asked_in_all(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        sum += workers[i].asked;
    }
    return sum;
}

/* ---- one request -------------------------------------------------------------------------- */

static struct ringbus_result last;
static unsigned ended;
static bool mocked;
static size_t reply_size;

static void note(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last = *result;
    mocked = result->message != NULL && (result->message->flags & RINGBUS_MESSAGE_MOCKED) != 0;
    reply_size = result->message != NULL ? result->message->size : 0;
    ended++;
}

static struct ringbus_message_options ordinary(void)
{
    return (struct ringbus_message_options){.struct_size = sizeof(struct ringbus_message_options),
                                            .timeout_ms = 60000};
}

static int begin_with(const struct ringbus_message_options *options)
{
    return ringbus_request_with(client.bus, &any, &part, 1, options, note, NULL);
}

static void ask_with(const struct ringbus_message_options *options)
{
    const unsigned before = ended;
    assert_int_equal(begin_with(options), 1);
    assert_int_equal(ended, before); /* never from within the call */
    UNTIL(ended == before + 1);
}

static void ask(void)
{
    const struct ringbus_message_options options = ordinary();
    ask_with(&options);
}

static void all_do(enum doing doing)
{
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].doing = doing;
    }
}

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

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    /* In turn: the one that refuses is quick about it, and would draw more than its budget. */
    return cluster_up(&cluster, "clusters:\n"
                                "  - {match: \"/**\", balance: {keyless: rr}}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
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
        cmocka_unit_test(test_failfast),
        cmocka_unit_test(test_forking),
        cmocka_unit_test(test_forking_and_close),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_failsafe),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_budget_and_mocks),
        cmocka_unit_test(test_options_out_of_range),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
