/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 24: the descriptor in a loop of the application's own, woken by everything
 * that ringbus_poll() has to do; ringbus_wake(); signals all the time.
 */
#include "support/bus.h"
#include "support/test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

/* PING is a minute away: nothing but what is waited for wakes anybody. */
#define PING_MS 60000U
#define TRIPS   (100000U / TEST_SCALE)

static struct cluster cluster;
static struct node a;
static struct node b;

static void open_node(struct node *node, const struct cluster *at, const char *path)
{
    struct ringbus_options options = node_options(at, path);
    options.ping_interval_ms = PING_MS;
    node_open_with(node, &options);
}

/* Sleeps on the descriptor, then polls until there is nothing. @return whether it was readable */
static bool turn(struct node *node, int fd, int timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const int n = poll(&wait, 1, timeout_ms);
    CHECK(n >= 0 || errno == EINTR);
    if (n == 1) {
        CHECK(ringbus_poll(node->bus, 1000) >= 0);
    }
    return n == 1;
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void echo(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_send(node->bus, &message->from, 0, message->data, message->size, 0) == 1);
}

static void echo_on_descriptor(const struct cluster *at, void *context)
{
    static struct node peer = {.on_message = echo};
    (void)context;
    open_node(&peer, at, PEER_1);
    const int fd = ringbus_fd(peer.bus);
    CHECK(fd >= 0 && ringbus_fd(peer.bus) == fd);
    while (peer.events[RINGBUS_EVENT_DOWN] == 0) {
        (void)turn(&peer, fd, -1);
    }
    node_close(&peer);
}

static void echo_by_wait(const struct cluster *at, void *context)
{
    static struct node peer = {.on_message = echo};
    (void)context;
    open_node(&peer, at, PEER_1);
    while (peer.events[RINGBUS_EVENT_DOWN] == 0) {
        CHECK(ringbus_poll(peer.bus, 1000) >= 0);
        CHECK(peer.events[RINGBUS_EVENT_DOWN] > 0 || ringbus_wait(peer.bus, -1) >= 0);
    }
    node_close(&peer);
}

static void round_trips(void (*peer)(const struct cluster *at, void *context))
{
    bus_shared_reset();
    const pid_t pid = child_start(peer, &cluster, NULL);
    open_node(&a, &cluster, NULL);
    const int fd = ringbus_fd(a.bus);
    assert_true(fd >= 0);
    assert_int_equal(ringbus_target(a.bus, PEER, NULL, NULL), 0);
    while (a.events[RINGBUS_EVENT_READY] == 0) {
        assert_true(turn(&a, fd, NODE_MS));
    }
    for (uint64_t i = 0; i < TRIPS; i++) {
        assert_int_equal(ringbus_send(a.bus, &a.peer, 0, &i, sizeof i, 0), 1);
        while (a.messages == i) {
            /* In time: 5 s is a lost wake-up, PING would come after a minute. */
            assert_true(turn(&a, fd, 5000));
        }
    }
    node_close(&a);
    assert_int_equal(child_wait(pid, 5000), 0);
}

static void test_round_trips_on_descriptors(void **state)
{
    (void)state;
    round_trips(echo_on_descriptor);
}

static void test_round_trips_with_a_waiting_peer(void **state)
{
    (void)state;
    round_trips(echo_by_wait);
}

/* ---- what is done between two turns ---------------------------------------------------------- */

static void open_pair(int *fd)
{
    open_node(&b, &cluster, PEER_1);
    open_node(&a, &cluster, NULL);
    node_target(&a, PEER, 1, &b);
    *fd = ringbus_fd(a.bus);
    assert_true(*fd >= 0);
    assert_true(turn(&a, *fd, 1000)); /* the first, which was promised */
    while (turn(&a, *fd, 20)) {
    }
}

static void close_pair(void)
{
    node_close(&a);
    node_close(&b);
    a.on_message = b.on_message = NULL;
}

static void test_timeout_of_a_request_made_between_turns(void **state)
{
    (void)state;
    int fd = -1;
    open_pair(&fd);
    for (unsigned i = 1; i <= 5; i++) {
        assert_int_equal(ringbus_request(a.bus, &a.peer, 0, "x", 1, 0, 20, node_on_result, &a), 1);
        const uint64_t start_ms = test_now_ms();
        while (a.replies[RINGBUS_UNKNOWN] < i) {
            assert_true(turn(&a, fd, 2000));
        }
        assert_true(test_now_ms() - start_ms < 1500);
    }
    close_pair();
}

static void test_room_wanted_between_turns(void **state)
{
    (void)state;
    int fd = -1;
    static const unsigned char payload[1000];
    open_pair(&fd);
    for (unsigned i = 0; i < 10; i++) {
        int r = 1;
        while (r == 1) {
            r = ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0);
        }
        assert_int_equal(r, RINGBUS_E_FULL);
        /* One turn to prepare, then silence until there is room. */
        while (turn(&a, fd, 20)) {
        }
        while (ringbus_poll(b.bus, 1000) > 0) {
        }
        assert_true(turn(&a, fd, 2000));
        assert_int_equal(ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0), 1);
    }
    close_pair();
}

static void test_chunks_wanted_between_turns(void **state)
{
    (void)state;
    int fd = -1;
    static const unsigned char payload[20000];
    open_pair(&fd);
    int r = 1;
    while (r == 1) {
        r = ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0);
    }
    assert_int_equal(r, RINGBUS_E_NO_CHUNK);
    while (ringbus_poll(b.bus, 1000) > 0) {
    }
    const uint64_t deadline_ms = test_now_ms() + 2000;
    while (ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0) != 1) {
        assert_true(test_now_ms() < deadline_ms);
        assert_true(turn(&a, fd, 2000));
    }
    /* Once chunks are there again nothing ticks any more. */
    while (ringbus_poll(b.bus, 1000) > 0) {
    }
    for (unsigned i = 0; i < 10 && turn(&a, fd, 50); i++) {
        assert_true(i < 9);
    }
    close_pair();
}

#define KEPT 64U

static struct {
    struct ringbus_kept *messages[KEPT];
    unsigned count;
} kept;

static void keep(struct node *node, const struct ringbus_message *message)
{
    CHECK(kept.count < KEPT);
    CHECK(ringbus_keep(node->bus, message, &kept.messages[kept.count++]) == 0);
}

/* Payloads that come back one by one, and nothing else: each of them wakes, the last as well. */
static void test_each_returned_payload_wakes_the_loop(void **state)
{
    (void)state;
    struct ringbus_options options = node_options(&cluster, NULL);
    struct ringbus_loan loans[KEPT];
    memset(&kept, 0, sizeof kept);
    b.on_message = keep;
    open_node(&b, &cluster, PEER_1);
    options.ping_interval_ms = PING_MS;
    options.inline_max = 64;
    options.pool[0] = (struct ringbus_pool_class){4096, KEPT};
    node_open_with(&a, &options);
    node_target(&a, PEER, 1, &b);
    static unsigned char payload[4096];
    for (unsigned i = 0; i < KEPT; i++) {
        assert_int_equal(ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0), 1);
    }
    RUN_UNTIL(kept.count == KEPT, NODE_MS, &b);
    const int fd = ringbus_fd(a.bus);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < KEPT; i++) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(ringbus_loan(a.bus, 4096, &loans[i]), RINGBUS_E_NO_CHUNK);
        /* Until nothing is left that would wake it by itself. */
        do {
            assert_true(ringbus_poll(a.bus, 10) >= 0);
        } while (poll(&wait, 1, 0) == 1);
        assert_int_equal(ringbus_release(b.bus, kept.messages[i]), 0);
        assert_int_equal(poll(&wait, 1, 0), 1);
        assert_true(ringbus_poll(a.bus, 10) >= 0);
        assert_int_equal(ringbus_loan(a.bus, 4096, &loans[i]), 0);
    }
    for (unsigned i = 0; i < KEPT; i++) {
        assert_int_equal(ringbus_loan_return(a.bus, &loans[i]), 0);
    }
    node_close(&a);
    node_close(&b);
    b.on_message = NULL;
}

static void test_targets_made_between_turns(void **state)
{
    (void)state;
    int fd = -1;
    open_pair(&fd);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(ringbus_untarget(a.bus, PEER), 0);
        while (a.events[RINGBUS_EVENT_DOWN] < i) {
            assert_true(turn(&a, fd, 2000));
        }
        RUN_UNTIL(b.events[RINGBUS_EVENT_DOWN] == i, NODE_MS, &b);
        assert_int_equal(ringbus_target(a.bus, PEER, NULL, NULL), 0);
        const uint64_t deadline_ms = test_now_ms() + 5000;
        while (a.events[RINGBUS_EVENT_READY] < i + 1) {
            assert_true(test_now_ms() < deadline_ms);
            (void)turn(&a, fd, 5);
            assert_true(ringbus_poll(b.bus, 100) >= 0);
            assert_true(ringbus_wait(b.bus, 0) >= 0);
        }
    }
    close_pair();
}

static void test_daemon_lost_wakes_the_loop(void **state)
{
    (void)state;
    int fd = -1;
    open_pair(&fd);
    cluster_kill(&cluster);
    while (a.events[RINGBUS_EVENT_DAEMON_LOST] == 0) {
        assert_true(turn(&a, fd, 2000));
    }
    assert_int_equal(cluster_start(&cluster), 0);
    while (a.events[RINGBUS_EVENT_DAEMON_BACK] == 0) {
        assert_true(turn(&a, fd, 5000));
    }
    close_pair();
}

/* ---- ringbus_wake() -------------------------------------------------------------------------- */

static atomic_uint turns;
static atomic_int stop;

static void *wake_often(void *context)
{
    (void)context;
    while (!atomic_load(&stop)) {
        const unsigned before = atomic_load(&turns);
        (void)ringbus_wake(a.bus);
        const uint64_t deadline_ms = test_now_ms() + 5000;
        while (atomic_load(&turns) == before && !atomic_load(&stop)) {
            if (test_now_ms() > deadline_ms) {
                return (void *)1;
            }
        }
    }
    return NULL;
}

#define WAKES (20000U / TEST_SCALE)

static void test_wake_from_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    void *late = NULL;
    open_node(&a, &cluster, NULL);
    atomic_store(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, wake_often, NULL), 0);
    for (unsigned i = 0; i < WAKES; i++) {
        assert_int_equal(ringbus_wait(a.bus, 5000), 1);
        atomic_fetch_add(&turns, 1);
    }
    const int fd = ringbus_fd(a.bus);
    for (unsigned i = 0; i < WAKES; i++) {
        assert_true(turn(&a, fd, 5000));
        atomic_fetch_add(&turns, 1);
    }
    atomic_store(&stop, 1);
    assert_int_equal(pthread_join(thread, &late), 0);
    assert_null(late);
    node_close(&a);
    /* One that came before the wait ends the next one. */
    open_node(&a, &cluster, NULL);
    assert_int_equal(ringbus_wait(a.bus, 20), 0);
    assert_int_equal(ringbus_wake(a.bus), 0);
    assert_int_equal(ringbus_wait(a.bus, 5000), 1);
    assert_int_equal(ringbus_wait(a.bus, 20), 0);
    node_close(&a);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
    (void)signal;
    alarms = alarms + 1;
    if (a.bus && alarms % 4 == 0) {
        (void)ringbus_wake(a.bus);
    }
}

static void set_alarms(suseconds_t interval_us)
{
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    const struct itimerval timer = {.it_interval = {.tv_usec = interval_us},
                                    .it_value = {.tv_usec = interval_us}};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* A thousand signals a second, some of whose handlers call ringbus_wake(). */
static void test_signals_all_the_time(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(echo_by_wait, &cluster, NULL);
    set_alarms(1000);
    open_node(&a, &cluster, NULL);
    node_target(&a, PEER, 1, NULL);
    const uint64_t until_ms = test_now_ms() + 2000;
    for (uint64_t i = 0; test_now_ms() < until_ms; i++) {
        assert_int_equal(ringbus_send(a.bus, &a.peer, 0, &i, sizeof i, 0), 1);
        const uint64_t deadline_ms = test_now_ms() + 5000;
        while (a.messages == i) {
            assert_true(ringbus_wait(a.bus, 5000) >= 0);
            assert_true(ringbus_poll(a.bus, 100) >= 0);
            assert_true(test_now_ms() < deadline_ms);
        }
    }
    struct ringbus *going = a.bus;
    a.bus = NULL;
    assert_int_equal(ringbus_close(going, 1000), 0);
    set_alarms(0);
    assert_true(alarms > 20);
    assert_int_equal(child_wait(pid, 5000), 0);
}

static int setup(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_round_trips_on_descriptors),
        ON_OWN_DAEMON(test_round_trips_with_a_waiting_peer),
        ON_OWN_DAEMON(test_timeout_of_a_request_made_between_turns),
        ON_OWN_DAEMON(test_room_wanted_between_turns),
        ON_OWN_DAEMON(test_chunks_wanted_between_turns),
        ON_OWN_DAEMON(test_each_returned_payload_wakes_the_loop),
        ON_OWN_DAEMON(test_targets_made_between_turns),
        ON_OWN_DAEMON(test_daemon_lost_wakes_the_loop),
        ON_OWN_DAEMON(test_wake_from_a_thread),
        ON_OWN_DAEMON(test_signals_all_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
