/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers that die, leave and lose their daemons (features D75): callers get the codes that they
 * would get of any instance, go on with another broker of the cluster, and nothing is lost that was
 * accepted by one that leaves in order. Answers that come too late are counted and end nothing.
 */
#include "broker_process.h"

#define AREA    "/game/eu/pc/w1/"
#define SHOWN   AREA "shown/core"
#define TIMEOUT 10000U

static struct cluster cluster;
static struct broker brokers[2];
static struct node gate, server;

static void serve(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void start(unsigned i, const char *more)
{
    char config[1024];
    char name[8];
    (void)snprintf(name, sizeof name, "b%u", i + 1);
    (void)snprintf(config, sizeof config,
                   "broker: {%s}\n"
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " AREA "edge/broker/%s}\n"
                   "exports:\n"
                   "  - {id: core, from: bus, to: bus, match: " AREA "inner/core, as: " SHOWN
                   ",\n     redeliver: true}\n",
                   more, cluster.socket, name);
    broker_start(&brokers[i], &cluster, name, config);
}

static struct ringbus_addr open_all(enum ringbus_on_down on_down)
{
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .on_down = on_down};
    struct ringbus_addr to;
    memset(&gate, 0, sizeof gate);
    memset(&server, 0, sizeof server);
    server.on_message = serve;
    node_open(&server, &cluster, AREA "inner/core/1");
    start(0, "drain: 5s");
    start(1, "drain: 5s");
    node_open(&gate, &cluster, AREA "gate/gate/1");
    CHECK(ringbus_target(gate.bus, SHOWN, &options, &to) == 0);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_READY] == 2 && server.events[RINGBUS_EVENT_READY] == 2,
              NODE_MS, &gate, &server);
    return to;
}

static void close_all(void)
{
    node_close(&gate);
    node_close(&server);
    for (unsigned i = 0; i < 2; i++) {
        if (brokers[i].pid != 0) {
            broker_kill(&brokers[i]);
        }
    }
}

static unsigned ended(void)
{
    return gate.replies[0] + gate.replies[1] + gate.replies[2] + gate.replies[3];
}

/* Asks @p count times, keeping @p under_way of them open. */
static void ask_many(const struct ringbus_addr *to, unsigned count, unsigned flags)
{
    const unsigned before = ended();
    unsigned asked = 0;
    while (ended() < before + count) {
        while (asked < count && asked - (ended() - before) < 20) {
            const struct ringbus_part part = {&asked, sizeof asked};
            const struct ringbus_message_options options = {
                .struct_size = sizeof options, .flags = flags, .timeout_ms = TIMEOUT};
            const int r =
                ringbus_request_with(gate.bus, to, &part, 1, &options, node_on_result, &gate);
            if (r < 0) {
                break; /* no room, or a broker has just ended: once more after a poll */
            }
            asked++;
        }
        nodes_step((struct node *const[]){&gate, &server}, 2);
    }
}

/* kill -9 of one with requests under way: each ends, with a code that is true. */
static void test_death(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all(RINGBUS_ON_DOWN_REPORT);
    server.on_message = NULL; /* they stay under way */
    for (unsigned i = 0; i < 40; i++) {
        CHECK(ringbus_request(gate.bus, &to, 0, &i, sizeof i, 0, TIMEOUT, node_on_result, &gate) ==
              1);
    }
    RUN_UNTIL(server.messages == 40, NODE_MS, &gate, &server);
    broker_kill(&brokers[0]);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &gate, &server);
    /* All that went over it had been read: nobody knows what became of them. */
    const unsigned lost = gate.replies[RINGBUS_UNKNOWN];
    assert_in_range(lost, 1, 39);
    assert_int_equal(ended(), lost);
    assert_int_equal(gate.reply_error, RINGBUS_E_PEER_GONE);
    /* The others are still waited for, and what is new goes over the one that lives. */
    server.on_message = serve;
    ask_many(&to, 200, 0);
    assert_int_equal(gate.replies[RINGBUS_REPLIED], 200);
    close_all();
}

/* Asked again by who may be: none is lost to its caller. */
static void test_death_under_load(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all(RINGBUS_ON_DOWN_REDELIVER);
    ask_many(&to, 300, RINGBUS_IDEMPOTENT);
    CHECK(kill(brokers[0].pid, SIGKILL) == 0); /* somewhere in what comes now */
    ask_many(&to, 300, RINGBUS_IDEMPOTENT);
    CHECK(waitpid(brokers[0].pid, NULL, 0) == brokers[0].pid);
    brokers[0].pid = 0;
    assert_int_equal(gate.replies[RINGBUS_REPLIED], 600);
    /* And it comes back. */
    start(0, "drain: 5s");
    RUN_UNTIL(gate.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &gate, &server);
    ask_many(&to, 100, 0);
    assert_int_equal(ended(), 700);
    close_all();
}

/* SIGTERM under load, without asking anything twice: nothing is lost, and it ends with 0. */
static void test_leaving_in_order(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all(RINGBUS_ON_DOWN_REPORT);
    int status = -1;
    uint64_t sent = 0;
    ask_many(&to, 100, 0);
    CHECK(kill(brokers[0].pid, SIGTERM) == 0);
    bool left = false;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    const uint64_t before = server.messages;
    while (!left) {
        CHECK(test_now_ms() < deadline_ms);
        ask_many(&to, 20, 0);
        sent += (uint64_t)(ringbus_send(gate.bus, &to, 0, &sent, sizeof sent, 0) == 1);
        nodes_step((struct node *const[]){&gate, &server}, 2);
        left = waitpid(brokers[0].pid, &status, WNOHANG) == brokers[0].pid;
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    brokers[0].pid = 0;
    ask_many(&to, 100, 0);
    assert_int_equal(gate.replies[RINGBUS_REPLIED], ended());
    RUN_UNTIL(server.messages - before == sent + ended() - 100, NODE_MS, &gate, &server);
    assert_int_equal(gate.events[RINGBUS_EVENT_UNDELIVERED], 0);
    assert_int_equal(gate.events[RINGBUS_EVENT_REFUSED], 0);
    assert_int_equal(broker_log_count(&brokers[0], "event=broker_left_late"), 0);
    close_all();
}

/* An answer whose caller has gone ends nothing and is counted. */
static struct ringbus_reply_to asked;

static void note_asked(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    asked = message->reply_to;
}

static void test_answers_that_come_too_late(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all(RINGBUS_ON_DOWN_REPORT);
    broker_kill(&brokers[1]);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &gate, &server);
    server.on_message = note_asked;
    asked.id = 0;
    int r = 0;
    RUN_UNTIL((r = ringbus_request(gate.bus, &to, 0, "x", 1, 0, 200, node_on_result, &gate)) == 1,
              NODE_MS, &gate, &server);
    RUN_UNTIL(gate.replies[RINGBUS_UNKNOWN] == 1 && asked.id != 0, NODE_MS, &gate, &server);
    /* Late for the broker: it has ended there as well. */
    CHECK(ringbus_reply(server.bus, &asked, "late", 4, 0) == 1);
    /* The caller is gone while it is under way: once the broker has heard of that, it is late. */
    const uint64_t deadline_ms = test_now_ms() + 2 * NODE_MS;
    do {
        struct node leaver = {.messages = 0};
        const unsigned lines = broker_log_count(&brokers[0], "event=broker_counters");
        CHECK(test_now_ms() < deadline_ms);
        asked.id = 0;
        node_open(&leaver, &cluster, NULL);
        (void)node_target(&leaver, SHOWN, 1, &server);
        CHECK(ringbus_request(leaver.bus, &to, 0, "x", 1, 0, TIMEOUT, node_on_result, &leaver) ==
              1);
        RUN_UNTIL(asked.id != 0, NODE_MS, &leaver, &server);
        node_close(&leaver);
        test_sleep_ms(20); /* it need not be enough */
        RUN_UNTIL(ringbus_reply(server.bus, &asked, "late", 4, 0) == 1, NODE_MS, &server);
        CHECK(kill(brokers[0].pid, SIGUSR1) == 0);
        broker_log_wait(&brokers[0], "event=broker_counters", lines + 1);
    } while (broker_log_count(&brokers[0], "event=broker_counters") ==
             broker_log_count(&brokers[0], " late=0 "));
    assert_int_equal(ended(), 1);
    close_all();
}

/* ---- what an instance has not read when it dies ------------------------------------------ */

static void sleeper(const struct cluster *at, void *context)
{
    struct node node = {.messages = 0};
    struct ringbus_options options = node_options(at, AREA "inner/lazy/1");
    options.debug_hold = 1; /* however slow the machine is, silence does not end it */
    node_open_with(&node, &options);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &node);
    atomic_store(&bus_shared[0], 1);
    (void)context;
    for (;;) {
        test_sleep_ms(1000); /* it never polls again */
    }
}

static uint64_t told;
static int told_error;

static void note_refused(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_REFUSED) {
        told += event->count;
        told_error = event->error;
    }
}

static void count_origin(struct node *node, const struct ringbus_message *message)
{
    struct ringbus_origin origin;
    CHECK(ringbus_origin(node->bus, message, &origin) == 1);
    CHECK(strcmp(origin.path, AREA "gate/gate/1") == 0);
}

/* With redeliver they go on to another instance, with their origin; else their sender is told. */
static void unread(bool redeliver)
{
    char config[1024];
    struct ringbus_addr to;
    memset(&gate, 0, sizeof gate);
    memset(&server, 0, sizeof server);
    gate.on_event = note_refused;
    server.on_message = count_origin;
    bus_shared_reset();
    told = 0;
    const pid_t pid = child_start(sleeper, &cluster, NULL);
    (void)snprintf(config, sizeof config,
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " AREA "edge/broker/b1}\n"
                   "exports:\n"
                   "  - {id: lazy, from: bus, to: bus, match: " AREA "inner/lazy, as: " AREA
                   "shown/lazy,\n     redeliver: %s}\n",
                   cluster.socket, redeliver ? "true" : "false");
    broker_start(&brokers[0], &cluster, "lazy", config);
    node_open(&gate, &cluster, AREA "gate/gate/1");
    CHECK(ringbus_target(gate.bus, AREA "shown/lazy", NULL, &to) == 0);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_READY] == 1 && atomic_load(&bus_shared[0]) == 1, NODE_MS,
              &gate);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(ringbus_send(gate.bus, &to, 0, &i, sizeof i, 0) == 1);
    }
    if (redeliver) {
        node_open(&server, &cluster, AREA "inner/lazy/2");
        RUN_UNTIL(server.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &gate, &server);
    }
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (broker_log_count(&brokers[0], "forwarded=10 ") == 0) {
        CHECK(test_now_ms() < deadline_ms);
        CHECK(kill(brokers[0].pid, SIGUSR1) == 0);
        nodes_step((struct node *const[]){&gate}, 1);
    }
    child_kill(pid);
    if (redeliver) {
        RUN_UNTIL(server.messages == 10, NODE_MS, &gate, &server);
        assert_int_equal(told, 0);
        node_close(&server);
    } else {
        RUN_UNTIL(told == 10, NODE_MS, &gate);
        assert_int_equal(told_error, RINGBUS_E_PEER_GONE);
    }
    node_close(&gate);
    broker_kill(&brokers[0]);
}

static void test_unread_are_told(void **state)
{
    (void)state;
    unread(false);
}

static void test_unread_go_on(void **state)
{
    (void)state;
    unread(true);
}

/* The daemon is killed: what is linked goes on, and with the next one everything else does. */
static void test_daemon_restart(void **state)
{
    (void)state;
    const struct ringbus_addr to = open_all(RINGBUS_ON_DOWN_REPORT);
    cluster_kill(&cluster);
    ask_many(&to, 100, 0);
    assert_int_equal(gate.replies[RINGBUS_REPLIED], 100);
    CHECK(cluster_start(&cluster) == 0);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_DAEMON_BACK] == 1 &&
                  broker_log_count(&brokers[0], "event=broker_daemon_back") == 2 &&
                  broker_log_count(&brokers[1], "event=broker_daemon_back") == 2,
              NODE_MS, &gate, &server);
    ask_many(&to, 100, 0);
    assert_int_equal(gate.replies[RINGBUS_REPLIED], 200);
    struct node late = {.messages = 0};
    node_open(&late, &cluster, NULL);
    (void)node_target(&late, SHOWN, 2, &server);
    CHECK(ringbus_request(late.bus, &to, 0, "x", 1, 0, TIMEOUT, node_on_result, &late) == 1);
    RUN_UNTIL(late.replies[RINGBUS_REPLIED] == 1, NODE_MS, &late, &server);
    node_close(&late);
    close_all();
}

static int setup(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_death_under_load),
        cmocka_unit_test(test_leaving_in_order),
        cmocka_unit_test(test_answers_that_come_too_late),
        cmocka_unit_test(test_unread_are_told),
        cmocka_unit_test(test_unread_go_on),
        cmocka_unit_test(test_daemon_restart),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
