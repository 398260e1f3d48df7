/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios 5, 9, 12: many lives, one after another; nothing of them is left. */
#include "support/bus.h"
#include "support/leak.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

static struct cluster cluster;

/* ---- scenario 12: open and close without a pause -------------------------------------------- */

#define WARM_UP 64U

static void many_lives(const struct cluster *at, void *context)
{
    const unsigned lives = WARM_UP + FULL_OR(10000U, 2000U) / TEST_SCALE;
    struct node b = {0};
    struct leak_process before = {0};
    struct ringbus_options options = node_options(at, NULL);
    (void)context;
    options.pool[0].chunk_bytes = 4096;
    options.pool[0].count = 4;
    options.lane_bytes = 4096;
    node_open(&b, at, PEER_1);
    const unsigned fds = bus_fd_count();
    const unsigned maps = bus_map_count();
    const struct rlimit limit = {64, 64};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (unsigned i = 1; i <= lives; i++) {
        struct node a = {0};
        node_open_with(&a, &options);
        if (i % 4 == 0) {
            node_target(&a, PEER, 1, &b);
            CHECK(ringbus_send(a.bus, &a.peer, 0, "x", 1, 0) == 1);
        } else if (i % 4 == 1) {
            CHECK(ringbus_target(a.bus, PEER, NULL, NULL) == 0); /* and never waits for it */
            CHECK(ringbus_poll(a.bus, 10) >= 0);
        }
        node_close(&a);
        CHECK(ringbus_poll(b.bus, 100) >= 0);
        CHECK(ringbus_wait(b.bus, 0) >= 0);
        if (i == WARM_UP) {
            RUN_UNTIL(bus_fd_count() == fds && bus_map_count() == maps, NODE_MS, &b);
            CHECK(leak_process_read(0, &before) == 0);
        }
    }
    RUN_UNTIL(b.messages == lives / 4, NODE_MS, &b);
    RUN_UNTIL(bus_fd_count() == fds && bus_map_count() == maps, NODE_MS, &b);
    CHECK(leak_process_wait(&before, LEAK_SLACK_KIB * TEST_SCALE, NODE_MS));
    node_close(&b);
}

static void test_many_lives(void **state)
{
    struct leak_daemon before;
    struct leak_traces traces;
    (void)state;
    /* The first child warms up the daemon's tables, too. */
    assert_int_equal(child_wait(child_start(many_lives, &cluster, NULL), 120000), 0);
    assert_int_equal(leak_daemon_read(&cluster, &before), 0);
    assert_int_equal(leak_traces_read(&traces), 0);
    assert_int_equal(child_wait(child_start(many_lives, &cluster, NULL), 120000), 0);
    assert_true(leak_daemon_wait(&cluster, &before, LEAK_SLACK_KIB, NODE_MS));
    assert_true(leak_traces_same(&traces));
}

/* ---- scenario 5: a receiver that outlives all its senders ------------------------------------ */

#define LARGE        20000U /* by reference: the receiver maps the sender's pool */
#define PER_LIFE     8U
#define HELD_AT_ONCE 4U

enum { SHARED_GENERATIONS = 0, SHARED_SENT = 1, SHARED_OVER = 2 };

struct receiver {
    struct ringbus_kept *held[HELD_AT_ONCE]; /* of lives that are over */
    unsigned next;
};

static void hold(struct node *node, const struct ringbus_message *message)
{
    struct receiver *receiver = node->context;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        node->messages--; /* counts what was sent one way */
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    } else if (message->size == LARGE) {
        struct ringbus_kept **place = &receiver->held[receiver->next++ % HELD_AT_ONCE];
        CHECK(ringbus_release(node->bus, *place) == 0);
        CHECK(ringbus_keep(node->bus, message, place) == 0);
    }
}

static void release_all(struct node *node)
{
    struct receiver *receiver = node->context;
    for (unsigned i = 0; i < HELD_AT_ONCE; i++) {
        CHECK(ringbus_release(node->bus, receiver->held[i]) == 0);
        receiver->held[i] = NULL;
    }
}

static void receive_generations(const struct cluster *at, void *context)
{
    struct receiver receiver = {.next = 0};
    struct node b = {.on_message = hold, .context = &receiver};
    struct leak_process before;
    (void)context;
    node_open(&b, at, PEER_1);
    /* Begun with the first lives over: tables have their size. */
    RUN_UNTIL(bus_shared[SHARED_GENERATIONS] >= 8 && node_stats(&b).links == 0, NODE_MS, &b);
    release_all(&b);
    CHECK(leak_process_read(0, &before) == 0);
    bus_shared[SHARED_GENERATIONS] = 0; /* the starter goes on */
    RUN_UNTIL(bus_shared[SHARED_OVER] != 0, 600000, &b);
    RUN_UNTIL(node_stats(&b).links == 0, NODE_MS, &b);
    release_all(&b);
    RUN_UNTIL(leak_process_is_back(&before, LEAK_SLACK_KIB), NODE_MS, &b);
    /* What they had committed has come, however they ended. */
    CHECK(b.messages == bus_shared[SHARED_SENT]);
    node_close(&b);
}

static void sender_life(const struct cluster *at, void *context)
{
    static unsigned char large[LARGE];
    const bool clean = context != NULL;
    struct node a = {0};
    node_open(&a, at, NULL);
    node_target(&a, PEER, 1, NULL);
    CHECK(ringbus_request(a.bus, &a.peer, 0, "", 0, 0, NODE_MS, node_on_result, &a) == 1);
    RUN_UNTIL(a.replies[RINGBUS_REPLIED] == 1, NODE_MS, &a);
    for (unsigned i = 0; i < PER_LIFE; i++) {
        const size_t size = i % 4 == 0 ? LARGE : i;
        CHECK(ringbus_send(a.bus, &a.peer, 0, large, size, 0) == 1);
        bus_shared[SHARED_SENT]++;
    }
    if (!clean) {
        (void)raise(SIGKILL);
    }
    CHECK(ringbus_close(a.bus, NODE_MS) == 0);
}

static void generations(unsigned count)
{
    static char yes;
    for (unsigned i = 0; i < count; i++) {
        const bool clean = i % 2 == 0;
        const pid_t pid = child_start(sender_life, &cluster, clean ? &yes : NULL);
        assert_int_equal(child_wait(pid, 20000), clean ? 0 : 128 + SIGKILL);
        bus_shared[SHARED_GENERATIONS]++;
    }
}

static void test_sender_generations(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(receive_generations, &cluster, NULL);
    generations(8);
    while (bus_shared[SHARED_GENERATIONS] != 0) {
        test_sleep_ms(1); /* bounded by the receiver's own patience */
        assert_int_equal(kill(pid, 0), 0);
    }
    generations(FULL_OR(500U, 100U) / TEST_SCALE);
    bus_shared[SHARED_OVER] = 1;
    assert_int_equal(child_wait(pid, 30000), 0);
}

/* ---- scenario 9: an instance dies in a loop while others connect ----------------------------- */

#define CLIENTS     8U
#define SHARED_STOP 10
#define SHARED_OK   20 /* one for each client: replies */
#define SHARED_LIFE 40 /* lives of the instance so far */

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(node->bus, &message->reply_to, "", 0, 0);
    }
}

static void dying_instance(const struct cluster *at, void *context)
{
    struct node x = {.on_message = answer};
    (void)context;
    node_open(&x, at, PEER_1);
    bus_shared[SHARED_LIFE]++;
    for (;;) {
        CHECK(ringbus_poll(x.bus, 100) >= 0);
        CHECK(ringbus_wait(x.bus, 100) >= 0);
    }
}

/* What there is to say about an instance that dies: nothing else may come out. */
static bool is_expected(int error)
{
    switch (error) {
    case RINGBUS_E_NOT_READY:
    case RINGBUS_E_NO_SERVICE:
    case RINGBUS_E_NO_INSTANCE:
    case RINGBUS_E_PEER_GONE:
        return true;
    default:
        (void)fprintf(stderr, "unexpected: %s\n", ringbus_error_name(error));
        return false;
    }
}

static void watch_errors(struct node *node, const struct ringbus_event *event)
{
    if (event->type == RINGBUS_EVENT_LINK_FAILED) {
        if (!is_expected(event->error)) {
            bus_die(__FILE__, __LINE__, ringbus_errmsg(node->bus));
        }
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        CHECK(event->error == 0 && (event->reason == RINGBUS_REASON_CRASHED ||
                                    event->reason == RINGBUS_REASON_REPLACED));
    }
}

static void connecting_client(const struct cluster *at, void *context)
{
    const unsigned number = *(const unsigned *)context;
    for (unsigned life = 0; bus_shared[SHARED_STOP] == 0; life++) {
        struct node a = {.on_event = watch_errors};
        struct ringbus_addr addr;
        node_open(&a, at, NULL);
        CHECK(ringbus_target(a.bus, life % 2 ? PEER : PEER_1, NULL, &addr) == 0);
        for (unsigned i = 0; i < 40 && bus_shared[SHARED_STOP] == 0; i++) {
            struct ringbus_instance instance;
            const int found = ringbus_instances(a.bus, PEER, &instance, 1);
            CHECK(found == 0 || found == 1 || found == RINGBUS_E_NO_SERVICE);
            const int r = ringbus_request(a.bus, &addr, 0, "", 0, 0, NODE_MS, node_on_result, &a);
            CHECK(r == 1 || is_expected(r));
            CHECK(ringbus_poll(a.bus, 100) >= 0);
            CHECK(a.reply_error == 0 || is_expected(a.reply_error));
            CHECK(ringbus_wait(a.bus, 1) >= 0);
        }
        bus_shared[SHARED_OK + number] += a.replies[RINGBUS_REPLIED];
        node_close(&a);
    }
}

static void test_instance_dies_in_a_loop(void **state)
{
    static unsigned numbers[CLIENTS];
    pid_t clients[CLIENTS];
    struct leak_daemon before;
    uint64_t random = 9;
    (void)state;
    bus_shared_reset();
    assert_int_equal(leak_daemon_read(&cluster, &before), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        numbers[i] = i;
        clients[i] = child_start(connecting_client, &cluster, &numbers[i]);
    }
    const unsigned lives = FULL_OR(1000U, 150U) / TEST_SCALE;
    for (uint64_t life = 1; life <= lives; life++) {
        const pid_t pid = child_start(dying_instance, &cluster, NULL);
        while (bus_shared[SHARED_LIFE] < life) {
            assert_int_equal(kill(pid, 0), 0);
            test_sleep_ms(1);
        }
        test_sleep_ms((unsigned)(bus_random(&random) % 20)); /* any moment of its life */
        child_kill(pid);
    }
    /* The last life stays, and everybody reaches it. */
    const pid_t last = child_start(dying_instance, &cluster, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        const uint64_t seen = bus_shared[SHARED_OK + i];
        const uint64_t deadline_ms = test_now_ms() + 20000;
        while (bus_shared[SHARED_OK + i] == seen) {
            assert_true(test_now_ms() < deadline_ms);
            test_sleep_ms(1);
        }
    }
    bus_shared[SHARED_STOP] = 1;
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(child_wait(clients[i], 20000), 0);
    }
    child_kill(last);
    assert_true(leak_daemon_wait(&cluster, &before, LEAK_SLACK_KIB, NODE_MS));
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000}\n");
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
        cmocka_unit_test(test_many_lives),
        cmocka_unit_test(test_sender_generations),
        cmocka_unit_test(test_instance_dies_in_a_loop),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
