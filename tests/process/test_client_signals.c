/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios 58, 77, 78: an instance that never starts, SIGPIPE, and signals all the time, through
 * the whole life of an endpoint.
 */
#include "support/bus.h"
#include "support/leak.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"
#define MUTE_1 "/game/eu/pc/w1/core/mute/1"

static struct cluster cluster;
static struct node a;

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0);
    }
}

static void serve(const struct cluster *at, void *context)
{
    struct node node = {.on_message = *(const bool *)context ? answer : NULL};
    node_open(&node, at, node.on_message ? PEER_1 : MUTE_1);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        CHECK(ringbus_wait(node.bus, -1) >= 0);
    }
}

static bool answers = true;

/* ---- scenario 77: SIGPIPE ---------------------------------------------------------------- */

static bool is_default(int number)
{
    struct sigaction action;
    CHECK(sigaction(number, NULL, &action) == 0);
    return action.sa_handler == SIG_DFL;
}

static void ask_for_something(unsigned round)
{
    char path[64];
    struct ringbus_addr addr;
    (void)snprintf(path, sizeof path, "/game/eu/pc/w1/core/none%u", round);
    CHECK(ringbus_target(a.bus, path, NULL, &addr) == 0);
    CHECK(ringbus_watch(a.bus, path) == 0);
    CHECK(ringbus_unwatch(a.bus, path) == 0);
    CHECK(ringbus_untarget(a.bus, path) == 0);
    CHECK(ringbus_drain(a.bus) == 0);
    CHECK(ringbus_undrain(a.bus) == 0);
}

/* Each round the peer, and then the daemon, ends while it is written to. */
static void test_peers_and_daemon_end(void **state)
{
    (void)state;
    assert_true(is_default(SIGPIPE));
    for (unsigned round = 0; round < FULL_OR(50U, 6U); round++) {
        memset(&a, 0, sizeof a);
        const pid_t pid = child_start(serve, &cluster, &answers);
        node_open(&a, &cluster, NULL);
        node_target(&a, PEER_1, 1, NULL);
        /* It sleeps, so that each send rings; and dies at any moment of that. */
        for (unsigned i = 0; i < 200; i++) {
            if (i == 100) {
                assert_int_equal(kill(pid, SIGKILL), 0);
            }
            const int r = ringbus_send(a.bus, &a.peer, 0, "x", 1, 0);
            assert_true(r == 1 || ringbus_error_kind(r) == RINGBUS_ERROR_GONE ||
                        r == RINGBUS_E_NOT_READY);
        }
        child_kill(pid);
        if (round % 2 == 0) {
            cluster_kill(&cluster);
        } else {
            assert_int_equal(kill(cluster.pid, SIGKILL), 0); /* and may still be ending */
        }
        for (unsigned i = 0; i < 20; i++) {
            ask_for_something(i);
        }
        cluster_kill(&cluster);
        RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_LOST] >= 1, NODE_MS, &a);
        ask_for_something(round);
        assert_int_equal(cluster_start(&cluster), 0);
        RUN_UNTIL(a.events[RINGBUS_EVENT_DAEMON_BACK] >= 1, NODE_MS, &a);
        assert_int_equal(ringbus_close(a.bus, 1000), 0);
        assert_true(is_default(SIGPIPE));
    }
}

/* The daemon answers those that are gone already. */
static void test_clients_end_under_the_daemon(void **state)
{
    const struct rbi_wire_query query = {.what = RBI_QUERY_STATUS};
    (void)state;
    for (unsigned i = 0; i < FULL_OR(500U, 50U); i++) {
        struct raw raw;
        assert_int_equal(raw_connect(&raw, cluster.socket), 0);
        assert_int_equal(raw_hello(&raw), 0);
        for (unsigned n = 0; n < 8; n++) {
            assert_int_equal(raw_send(&raw, RBI_WIRE_QUERY, &query, NULL, 0), 0);
        }
        raw_close(&raw);
    }
    assert_int_not_equal(raw_status(cluster.socket, "connections"), UINT64_MAX);
    assert_int_equal(kill(cluster.pid, 0), 0);
}

/* ---- scenario 78: 1,000 signals a second ------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms = alarms + 1;
}

static void set_alarms(suseconds_t interval_us)
{
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    const struct itimerval timer = {.it_interval = {.tv_usec = interval_us},
                                    .it_value = {.tv_usec = interval_us}};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* The daemon takes signals by descriptor; being stopped and continued interrupts its waits. */
static void pester(const struct cluster *at, void *context)
{
    (void)context;
    for (;;) {
        (void)kill(at->pid, SIGSTOP);
        (void)kill(at->pid, SIGCONT);
        test_sleep_ms(1);
    }
}

#define TIMEOUT_MS 300U

/* The time that something took, without what the machine was too late for. */
struct stopwatch {
    uint64_t start_ns;
    uint64_t delay_ns;
};

static struct stopwatch stopwatch_start(void)
{
    return (struct stopwatch){machine_now_ns(), machine_run_delay_ns(getpid())};
}

static void stopwatch_check(const struct stopwatch *watch)
{
    const uint64_t ns = machine_now_ns() - watch->start_ns;
    const uint64_t delay_ns = machine_run_delay_ns(getpid()) - watch->delay_ns;
    const uint64_t paused_ns = machine_paused_ns(watch->start_ns, watch->start_ns + ns);
    const uint64_t wanted_ns = TIMEOUT_MS * UINT64_C(1000000);
    const bool exact =
        ns >= wanted_ns - wanted_ns / 10 && ns <= wanted_ns + wanted_ns / 10 + delay_ns + paused_ns;
    if (!exact) {
        (void)fprintf(stderr, "%llu us, without a core %llu us, paused %llu us\n",
                      (unsigned long long)(ns / 1000), (unsigned long long)(delay_ns / 1000),
                      (unsigned long long)(paused_ns / 1000));
    }
    CHECK(exact); /* to a tenth */
}

static void one_life(void)
{
    memset(&a, 0, sizeof a);
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER_1, 1, NULL);
    const struct ringbus_addr peer = a.peer;
    for (unsigned i = 0; i < 50; i++) {
        CHECK(ringbus_request(a.bus, &peer, 0, &i, sizeof i, 0, NODE_MS, node_on_result, &a) == 1);
        RUN_UNTIL(a.replies[RINGBUS_REPLIED] == i + 1, NODE_MS, &a);
    }
    const struct ringbus_addr mute = node_target(&a, MUTE_1, 1, NULL);
    /* A wait that nothing ends, and a request that nobody answers. */
    while (ringbus_poll(a.bus, 100) > 0) {
    }
    struct stopwatch watch = stopwatch_start();
    uint64_t left_ms = TIMEOUT_MS;
    const uint64_t end_ms = test_now_ms() + TIMEOUT_MS;
    while (left_ms > 0) { /* PINGs end a wait, too */
        CHECK(ringbus_wait(a.bus, (int)left_ms) >= 0);
        CHECK(ringbus_poll(a.bus, 100) >= 0);
        const uint64_t now_ms = test_now_ms();
        left_ms = end_ms > now_ms ? end_ms - now_ms : 0;
    }
    stopwatch_check(&watch);
    watch = stopwatch_start();
    CHECK(ringbus_request(a.bus, &mute, 0, "", 0, 0, TIMEOUT_MS, node_on_result, &a) == 1);
    RUN_UNTIL(a.replies[RINGBUS_UNKNOWN] == 1, NODE_MS, &a);
    stopwatch_check(&watch);
    assert_int_equal(a.reply_error, RINGBUS_E_TIMEOUT);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN] + a.events[RINGBUS_EVENT_LINK_FAILED], 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DAEMON_LOST], 0);
    assert_int_equal(ringbus_close(a.bus, NODE_MS), 0);
}

static void test_signals_all_the_time(void **state)
{
    static bool mute = false;
    (void)state;
    const pid_t server = child_start(serve, &cluster, &answers);
    const pid_t silent = child_start(serve, &cluster, &mute);
    const pid_t pest = child_start(pester, &cluster, NULL);
    machine_watch_start();
    set_alarms(1000);
    const uint64_t until_ms = test_now_ms() + FULL_OR(60000U, 3000U);
    unsigned lives = 0;
    do {
        one_life();
        lives++;
    } while (test_now_ms() < until_ms);
    set_alarms(0);
    (void)machine_watch_stop();
    child_kill(pest);
    assert_int_equal(kill(cluster.pid, SIGCONT), 0);
    child_kill(server);
    child_kill(silent);
    assert_true(alarms > 100);
    (void)printf("%u lives, %d signals\n", lives, (int)alarms);
}

/* ---- scenario 58: an instance that never starts ------------------------------------------ */

static void test_instance_never_starts(void **state)
{
    struct raw starting;
    struct raw asker;
    struct ringbus_addr addr;
    struct leak_daemon before;
    (void)state;
    assert_int_equal(raw_connect(&starting, cluster.socket), 0);
    assert_int_equal(raw_hello(&starting), 0);
    assert_int_equal(raw_register(&starting, PEER_1, RBI_ENDPOINT_STARTING), 0);
    assert_int_equal(raw_up(&asker, cluster.socket, ""), 0);
    assert_int_equal(ringbus_resolve(PEER_1, &addr), 0);
    assert_int_equal(leak_daemon_read(&cluster, &before), 0);
    for (unsigned i = 0; i < FULL_OR(1000U, 200U); i++) {
        assert_int_equal(raw_introduce(&asker, addr.cluster, addr.instance, 0), 0);
        assert_int_equal(raw_expect_error(&asker), RINGBUS_E_NOT_READY);
        if (i % 10 == 0) { /* by the library, which does not even see it */
            memset(&a, 0, sizeof a);
            node_open(&a, &cluster, NULL);
            assert_int_equal(ringbus_target(a.bus, PEER_1, NULL, &addr), 0);
            assert_true(ringbus_poll(a.bus, 10) >= 0);
            const int r = ringbus_request(a.bus, &addr, 0, "", 0, 0, NODE_MS, node_on_result, &a);
            assert_true(r == RINGBUS_E_NO_SERVICE || r == RINGBUS_E_NO_INSTANCE);
            node_close(&a);
        }
    }
    assert_true(leak_daemon_wait(&cluster, &before, LEAK_SLACK_KIB, NODE_MS));
    /* Later it starts. */
    assert_int_equal(raw_set_state(&starting, RBI_ENDPOINT_READY), 0);
    assert_int_equal(raw_link(&asker, &starting, NULL), 0);
    raw_close(&asker);
    raw_close(&starting);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000, control: 100000}\n");
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
        cmocka_unit_test(test_instance_never_starts),
        cmocka_unit_test(test_clients_end_under_the_daemon),
        cmocka_unit_test(test_signals_all_the_time),
        cmocka_unit_test(test_peers_and_daemon_end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
