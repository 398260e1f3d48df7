/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How links across two hosts end, or are not made: the reasons, codes and sentences are those of
 * one host, and what an endpoint that died had not handled comes back with the same marks. features
 * 2.12, D54.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BATTLE "/Game/eu/pc/w1/core/battle"
#define LOBBY  "/Game/eu/pc/w1/core/lobby"
#define SECRET "/Game/eu/pc/w1/core/secret"

static struct hosts hosts;

static const struct cluster *at(unsigned index)
{
    return &hosts.host[index].cluster;
}

static int setup(void **state)
{
    /* Each denies something: alpha its own lobby/2, beta whoever asks from another host. */
    static const struct hosts_options options = {
        .count = 2,
        .rest_of = {"daemon: {return_time: 10ms}\nrights: {rules: [{id: not-this-one, action: "
                    "deny, verbs: [connect], "
                    "from: " LOBBY "/2, to: " BATTLE "/*}]}",
                    "daemon: {return_time: 10ms}\nrights: {rules: [{id: no-strangers, action: "
                    "deny, verbs: [connect], "
                    "host: alpha, to: " SECRET "/*}]}"}};
    (void)state;
    bus_shared_reset();
    hosts_up(&hosts, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hosts_down(&hosts);
    return 0;
}

/* ---- in order ------------------------------------------------------------------------------ */

static void test_an_instance_that_leaves_has_all_that_it_sent_delivered(void **state)
{
    struct node a = {0};
    struct node b = {0};
    struct ringbus_addr to;
    (void)state;
    node_open(&a, at(0), LOBBY "/1");
    node_open(&b, at(1), BATTLE "/1");
    (void)node_target(&a, BATTLE "/1", 1, &b);
    to = node_target(&b, LOBBY "/1", 0, &a);
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &a, &b);
    for (unsigned i = 0; i < 300; i++) {
        RUN_UNTIL(ringbus_send(b.bus, &to, 0, "last words", 10, 0) == 1, NODE_MS, &a, &b);
    }
    node_close(&b); /* at once: nothing of it has been waited for */
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a, NULL);
    assert_int_equal(a.messages, 300);
    assert_int_equal(a.reason, RINGBUS_REASON_LEFT);
    /* A new life of it is linked by itself. */
    node_open(&b, at(1), BATTLE "/1");
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &a, &b);
    node_close(&a);
    node_close(&b);
}

static void on_ascending(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    uint64_t *next = node->context;
    memcpy(&number, message->data, sizeof number);
    CHECK(number == (*next)++);
}

/* More than windows and the bridge's lane hold waits in its own when it leaves. */
static void test_what_a_life_has_sent_comes_before_the_next_life(void **state)
{
    static unsigned char data[1000];
    uint64_t next = 0;
    uint64_t sent = 0;
    struct node a = {0};
    struct node b = {.on_message = on_ascending, .context = &next};
    struct ringbus_options options = node_options(at(0), LOBBY "/1");
    (void)state;
    options.lane_bytes = 1U << 20;
    node_open(&b, at(1), BATTLE "/1");
    node_open_with(&a, &options);
    struct ringbus_addr to = node_target(&a, BATTLE "/1", 1, &b);
    while (ringbus_send(a.bus, &to, 0, data, sizeof data, 0) == 1) {
        sent++;
        memcpy(data, &sent, sizeof sent);
    }
    assert_true(sent > 700);
    node_close(&a);
    options = node_options(at(0), LOBBY "/1");
    node_open_with(&a, &options);
    CHECK(ringbus_target(a.bus, BATTLE "/1", NULL, &to) == 0);
    const uint64_t until_ms = test_now_ms() + 200; /* it would overtake by now */
    RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &a);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 1, 2 * NODE_MS, &a, &b);
    CHECK(ringbus_send(a.bus, &to, 0, data, sizeof data, 0) == 1);
    RUN_UNTIL(next == sent + 1, NODE_MS, &a, &b);
    node_close(&a);
    node_close(&b);
}

static void test_a_link_that_nobody_wants_any_more_ends_as_untargeted(void **state)
{
    struct node a = {0};
    struct node b = {0};
    (void)state;
    node_open(&a, at(0), LOBBY "/1");
    node_open(&b, at(1), BATTLE "/1");
    const struct ringbus_addr to = node_target(&a, BATTLE "/1", 1, &b);
    CHECK(ringbus_send(a.bus, &to, 0, "x", 1, 0) == 1);
    CHECK(ringbus_untarget(a.bus, BATTLE "/1") == 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a, &b);
    assert_int_equal(b.reason, RINGBUS_REASON_UNTARGETED);
    assert_int_equal(b.messages, 1);
    (void)node_target(&a, BATTLE "/1", 1, &b); /* and can be made again */
    node_close(&a);
    node_close(&b);
}

static void on_echo(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    }
}

static void test_an_instance_that_drains_is_sent_nothing_new(void **state)
{
    struct node a = {0};
    struct node b[2] = {{.on_message = on_echo}, {.on_message = on_echo}};
    struct ringbus_addr to;
    (void)state;
    node_open(&a, at(0), NULL);
    node_open(&b[0], at(1), BATTLE "/1");
    node_open(&b[1], at(1), BATTLE "/2");
    CHECK(ringbus_target(a.bus, BATTLE, NULL, &to) == 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &a, &b[0], &b[1]);
    CHECK(ringbus_drain(b[0].bus) == 0);
    RUN_UNTIL(ringbus_drained(b[0].bus) == 1, NODE_MS, &a, &b[0], &b[1]);
    const uint64_t before = b[0].messages;
    for (unsigned i = 0; i < 50; i++) {
        RUN_UNTIL(ringbus_request(a.bus, &to, 0, "", 0, 0, 20000, node_on_result, &a) == 1, NODE_MS,
                  &a, &b[0], &b[1]);
    }
    RUN_UNTIL(a.replies[RINGBUS_REPLIED] == 50, NODE_MS, &a, &b[0], &b[1]);
    assert_int_equal(b[0].messages, before);
    /* Who names it still reaches it. */
    struct ringbus_addr named;
    CHECK(ringbus_resolve(BATTLE "/1", &named) == 0);
    CHECK(ringbus_request(a.bus, &named, 0, "", 0, 0, 20000, node_on_result, &a) == 1);
    RUN_UNTIL(a.replies[RINGBUS_REPLIED] == 51, NODE_MS, &a, &b[0], &b[1]);
    RUN_UNTIL(ringbus_drained(b[0].bus) == 1, NODE_MS, &a, &b[0], &b[1]);
    node_close(&b[0]);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a, &b[1]);
    assert_int_equal(a.reason, RINGBUS_REASON_LEFT);
    assert_int_equal(a.events[RINGBUS_EVENT_UNDELIVERED], 0);
    node_close(&b[1]);
    node_close(&a);
}

/* ---- refused ------------------------------------------------------------------------------- */

static void open_and_be_refused(struct node *node, const char *path, const char *target, int error)
{
    node_open(node, at(0), path);
    CHECK(ringbus_target(node->bus, target, NULL, &(struct ringbus_addr){0}) == 0);
    RUN_UNTIL(node->events[RINGBUS_EVENT_LINK_FAILED] > 0, NODE_MS, node);
    assert_int_equal(node->error, error);
    assert_int_equal(node->events[RINGBUS_EVENT_READY], 0);
}

static void test_either_host_may_deny_a_link_and_says_by_which_rule(void **state)
{
    struct node b[2] = {{0}, {0}};
    struct node a = {0};
    (void)state;
    node_open(&b[0], at(1), BATTLE "/1");
    node_open(&b[1], at(1), SECRET "/1");
    open_and_be_refused(&a, LOBBY "/2", BATTLE "/1", RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(a.bus), "not-this-one"));
    node_close(&a);
    memset(&a, 0, sizeof a);
    open_and_be_refused(&a, LOBBY "/1", SECRET "/1", RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(a.bus), "no-strangers"));
    (void)node_target(&a, BATTLE "/1", 1, &b[0]); /* what is not denied works */
    node_close(&a);
    node_close(&b[0]);
    node_close(&b[1]);
}

static void test_an_instance_that_is_not_there_cannot_be_sent_to(void **state)
{
    struct node a = {0};
    struct node b = {0};
    struct ringbus_addr to;
    (void)state;
    node_open(&a, at(0), NULL);
    node_open(&b, at(1), BATTLE "/1");
    (void)node_target(&a, BATTLE, 1, &b);
    CHECK(ringbus_resolve(BATTLE "/77", &to) == 0);
    assert_int_equal(ringbus_send(a.bus, &to, 0, "x", 1, 0), RINGBUS_E_NO_INSTANCE);
    node_close(&b);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a);
    to.instance = 1;
    RUN_UNTIL(ringbus_send(a.bus, &to, 0, "x", 1, 0) == RINGBUS_E_NO_INSTANCE, NODE_MS, &a);
    node_close(&a);
}

/* ---- deaths -------------------------------------------------------------------------------- */

enum { WORD_UP, WORD_LAST, WORD_HANDLED, WORD_STOP_AT };

static void handle_and_note(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    (void)node;
    memcpy(&number, message->data, sizeof number);
    CHECK(number == atomic_load(&bus_shared[WORD_LAST]) + 1);
    atomic_store(&bus_shared[WORD_LAST], number); /* its handler has begun */
    if (number == atomic_load(&bus_shared[WORD_STOP_AT])) {
        (void)kill(getpid(), SIGKILL);
    }
    atomic_store(&bus_shared[WORD_HANDLED], number);
}

static void receive_until_killed(const struct cluster *cluster, void *context)
{
    struct node node = {.on_message = handle_and_note};
    (void)context;
    node_open(&node, cluster, BATTLE "/1");
    atomic_store(&bus_shared[WORD_UP], 1);
    for (;;) {
        RUN_UNTIL(false, 60000, &node);
    }
}

/* What came back to the sender. */
struct back {
    uint64_t first;
    uint64_t next;
    unsigned count;
    unsigned maybe;
    unsigned wrong;
};

static void on_back(struct node *node, const struct ringbus_event *event)
{
    struct back *back = node->context;
    uint64_t number = 0;
    if (event->type != RINGBUS_EVENT_UNDELIVERED) {
        return;
    }
    memcpy(&number, event->message->data, sizeof number);
    if (back->count++ == 0) {
        back->first = number;
    } else {
        back->wrong += number != back->next;
    }
    back->maybe += event->maybe_seen ? 1 : 0;
    back->wrong += event->maybe_seen && number != back->first;
    back->next = number + 1;
}

/* @return whether the link has ended */
static bool send_next(struct node *node, const struct ringbus_addr *to, size_t size, uint64_t *sent)
{
    static unsigned char data[20000];
    const uint64_t number = *sent + 1;
    memcpy(data, &number, sizeof number);
    *sent += ringbus_send(node->bus, to, 0, data, size, 0) == 1 ? 1 : 0;
    return node->events[RINGBUS_EVENT_DOWN] > 0;
}

/* The remote instance dies in the handler of a message: what it had not handled comes back, each
 * once and in order, and the one in whose handler it died is marked, as on one host. */
static void die_under_load(size_t size)
{
    struct back back = {.count = 0};
    struct node a = {.on_event = on_back, .context = &back};
    struct ringbus_options options = node_options(at(0), LOBBY "/1");
    uint64_t sent = 0;
    bus_shared_reset();
    atomic_store(&bus_shared[WORD_STOP_AT], size > 8192 ? 50 : 2000);
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 20480, .count = 64};
    const pid_t child = hosts_child_start(receive_until_killed, at(1), NULL);
    node_open_with(&a, &options);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_UP]) == 1, NODE_MS, &a);
    const struct ringbus_addr to = node_target(&a, BATTLE "/1", 1, NULL);
    RUN_UNTIL(send_next(&a, &to, size, &sent), NODE_MS, &a);
    assert_int_equal(child_wait(child, NODE_MS), 128 + SIGKILL);
    const uint64_t handled = atomic_load(&bus_shared[WORD_HANDLED]);
    RUN_UNTIL(back.next == sent + 1, NODE_MS, &a);
    assert_int_equal(a.reason, RINGBUS_REASON_CRASHED);
    assert_int_equal(back.wrong, 0);
    assert_int_equal(back.first, handled + 1);
    assert_int_equal(back.count, sent - handled);
    assert_int_equal(back.maybe, 1);
    RUN_UNTIL(node_pool_used(&a) == 0, NODE_MS, &a);
    node_close(&a);
}

static void test_what_an_instance_that_died_had_not_handled_comes_back(void **state)
{
    (void)state;
    die_under_load(64);
    die_under_load(20000); /* by reference */
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_an_instance_that_leaves_has_all_that_it_sent_delivered),
        CASE(test_what_a_life_has_sent_comes_before_the_next_life),
        CASE(test_a_link_that_nobody_wants_any_more_ends_as_untargeted),
        CASE(test_an_instance_that_drains_is_sent_nothing_new),
        CASE(test_either_host_may_deny_a_link_and_says_by_which_rule),
        CASE(test_an_instance_that_is_not_there_cannot_be_sent_to),
        CASE(test_what_an_instance_that_died_had_not_handled_comes_back),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
