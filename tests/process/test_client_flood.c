/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 32, and features 6.11: one user floods the daemon with connections. The limits
 * hold, other users join and link as ever, and those who are linked notice nothing.
 *
 * What the machine does is not ringbus's doing: the time that daemon or client were ready
 * to run and had no core is subtracted from how long something took.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define ECHO_1 ECHO "/1"
#define NOBODY 65534U

#define FLOODERS    4U
#define HOLD_MAX    10000U
#define GAP_MS      20U
#define JOIN_MS     100U
#define PERIOD_NS   1000000U
#define LIMIT       500U
#define WINDOW_MS   220U
#define JOINS_MAX   8192U
#define WINDOWS_MAX 137U

static struct cluster cluster;

/* Shared words. */
enum {
    WORD_STOP,
    WORD_END,
    WORD_LINKED,  /* the pair is READY */
    WORD_MEASURE, /* the pair notes its gaps from now on */
    WORD_GAP_NS,  /* longest between two deliveries, less what the machine did */
    WORD_SENT,
    WORD_RECEIVED,
    WORD_WRONG,  /* out of order or lost */
    WORD_HELD,   /* connections that the holder has */
    WORD_ALL,    /* it has tried as often as it was told to */
    WORD_TRIED,  /* by all flooders */
    WORD_SENDER, /* its process */
};

/* ---- those who are linked ------------------------------------------------------------------ */

static void be_sender(const struct cluster *at, void *context)
{
    static struct node node;
    uint64_t next = 0;
    (void)context;
    node_open(&node, at, NULL);
    node_target(&node, ECHO, 1, NULL);
    atomic_store(&bus_shared[WORD_SENDER], (uint64_t)getpid());
    atomic_store(&bus_shared[WORD_LINKED], 1);
    while (atomic_load(&bus_shared[WORD_STOP]) == 0) {
        CHECK(ringbus_poll(node.bus, 16) >= 0);
        const int sent = ringbus_send(node.bus, &node.peer, 0, &next, sizeof next, 0);
        CHECK(sent == 1 || sent == RINGBUS_E_FULL);
        next += sent == 1;
        atomic_store(&bus_shared[WORD_SENT], next);
        const struct timespec pause = {.tv_nsec = PERIOD_NS};
        (void)nanosleep(&pause, NULL);
    }
    CHECK(node.events[RINGBUS_EVENT_DOWN] == 0);
    CHECK(ringbus_close(node.bus, 5000) == 0);
}

static uint64_t delayed_ns(pid_t other)
{
    return machine_run_delay_ns(other) + machine_run_delay_ns(getpid());
}

static void take(struct node *node, const struct ringbus_message *message)
{
    static uint64_t last_ns;
    static uint64_t last_delay_ns;
    const pid_t sender = (pid_t)atomic_load(&bus_shared[WORD_SENDER]);
    uint64_t number = 0;
    memcpy(&number, message->data, sizeof number);
    atomic_fetch_add(&bus_shared[WORD_WRONG], number != node->messages - 1);
    atomic_store(&bus_shared[WORD_RECEIVED], node->messages);
    const uint64_t now_ns = machine_now_ns();
    const uint64_t delay_ns = delayed_ns(sender);
    const uint64_t gap_ns = now_ns - last_ns;
    const uint64_t machine_ns = delay_ns - last_delay_ns;
    if (last_ns && atomic_load(&bus_shared[WORD_MEASURE]) && gap_ns > machine_ns &&
        gap_ns - machine_ns > atomic_load(&bus_shared[WORD_GAP_NS])) {
        atomic_store(&bus_shared[WORD_GAP_NS], gap_ns - machine_ns);
    }
    last_ns = now_ns;
    last_delay_ns = delay_ns;
}

static void be_receiver(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = take};
    (void)context;
    node_open(&node, at, ECHO_1);
    while (atomic_load(&bus_shared[WORD_END]) == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
    }
    node_close(&node);
}

/* ---- those who flood ------------------------------------------------------------------------ */

static void become_nobody(void)
{
    CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    /* The change of user has cleared it. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/** For two descriptors a connection; before_exec of the daemon. */
static void raise_fds(void *context)
{
    const struct rlimit limit = {.rlim_cur = 2 * HOLD_MAX + 1000, .rlim_max = 2 * HOLD_MAX + 1000};
    (void)context;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/** As many as were asked for, or as the descriptors that a process may have are enough for. */
static unsigned held_at_most(unsigned wanted)
{
    struct rlimit limit;
    raise_fds(NULL);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const unsigned possible = (unsigned)(limit.rlim_cur > 2000 ? (limit.rlim_cur - 1000) / 2 : 500);
    return wanted < possible ? wanted : possible;
}

/** Opens and closes at full speed. */
static void be_flooder(const struct cluster *at, void *context)
{
    (void)context;
    become_nobody();
    while (atomic_load(&bus_shared[WORD_STOP]) == 0) {
        const int fd = rbi_handoff_connect(at->socket);
        if (fd >= 0) {
            (void)close(fd);
        }
        atomic_fetch_add(&bus_shared[WORD_TRIED], 1);
    }
}

/** Holds as many connections as it is given, each greeted, and counts those that stay. */
static void be_holder(const struct cluster *at, void *context)
{
    static struct raw raws[HOLD_MAX];
    const unsigned wanted = *(const unsigned *)context;
    uint64_t held = 0;
    raise_fds(NULL);
    become_nobody();
    for (unsigned i = 0; i < wanted; i++) {
        CHECK(raw_connect(&raws[i], at->socket) == 0);
        held += raw_hello(&raws[i]) == 0;
        rbi_segment_deinit(&raws[i].directory); /* two descriptors less for each */
        atomic_store(&bus_shared[WORD_HELD], held);
    }
    atomic_store(&bus_shared[WORD_ALL], 1);
    while (atomic_load(&bus_shared[WORD_STOP]) == 0) {
        test_sleep_ms(5);
    }
}

/* ---- those who join ------------------------------------------------------------------------- */

struct joins {
    unsigned rounds;
    uint64_t connect_ns[JOINS_MAX]; /* what ringbus_open() took, less what the machine did */
    uint64_t ready_ns[JOINS_MAX];   /* from ringbus_target() to READY */
};

static uint64_t less(uint64_t took_ns, uint64_t machine_ns)
{
    return took_ns > machine_ns ? took_ns - machine_ns : 0;
}

/** One opens, links itself to the server, and leaves. */
static void join_once(struct joins *joins)
{
    struct node node = {0};
    const uint64_t delay_ns = delayed_ns(cluster.pid);
    const uint64_t begin_ns = machine_now_ns();
    node_open(&node, &cluster, NULL);
    const uint64_t open_ns = machine_now_ns();
    const uint64_t open_delay_ns = delayed_ns(cluster.pid);
    node_target(&node, ECHO, 1, NULL);
    const uint64_t ready_ns = machine_now_ns();
    const uint64_t ready_delay_ns = delayed_ns(cluster.pid);
    node_close(&node);
    joins->connect_ns[joins->rounds] = less(open_ns - begin_ns, open_delay_ns - delay_ns);
    joins->ready_ns[joins->rounds] = less(ready_ns - open_ns, ready_delay_ns - open_delay_ns);
    joins->rounds++;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t quantile_us(uint64_t *values, unsigned count, unsigned percent)
{
    qsort(values, count, sizeof *values, by_size);
    return values[(count - 1) * percent / 100] / 1000;
}

static void print_joins(struct joins *joins, const char *when)
{
    print_message("%s: %u joined; open p50 %u us, p99 %u us, longest %u us; READY p50 %u, p99 %u\n",
                  when, joins->rounds, (unsigned)quantile_us(joins->connect_ns, joins->rounds, 50),
                  (unsigned)quantile_us(joins->connect_ns, joins->rounds, 99),
                  (unsigned)quantile_us(joins->connect_ns, joins->rounds, 100),
                  (unsigned)quantile_us(joins->ready_ns, joins->rounds, 50),
                  (unsigned)quantile_us(joins->ready_ns, joins->rounds, 99));
}

/** For so long, and once in any case. */
static void join_for(struct joins *joins, unsigned ms, const char *when)
{
    const uint64_t end_ms = test_now_ms() + ms;
    joins->rounds = 0;
    do {
        join_once(joins);
        test_sleep_ms(5);
    } while (test_now_ms() < end_ms && joins->rounds < JOINS_MAX);
    print_joins(joins, when);
}

static void start_pair(pid_t pair[2])
{
    bus_shared_reset();
    pair[0] = child_start(be_receiver, &cluster, NULL);
    pair[1] = child_start(be_sender, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_RECEIVED]) > 10, NODE_MS, NULL);
}

/** Nothing of what they sent is lost, and nobody of them has noticed anything. */
static void end_pair(const pid_t pair[2])
{
    atomic_store(&bus_shared[WORD_STOP], 1);
    assert_int_equal(child_wait(pair[1], NODE_MS), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_SENT]) == atomic_load(&bus_shared[WORD_RECEIVED]),
              NODE_MS, NULL);
    atomic_store(&bus_shared[WORD_END], 1);
    assert_int_equal(child_wait(pair[0], NODE_MS), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_WRONG]), 0);
}

static uint64_t gap_since(void)
{
    const uint64_t gap_ns = atomic_exchange(&bus_shared[WORD_GAP_NS], 0);
    return gap_ns / 1000;
}

/* ---- the tests ------------------------------------------------------------------------------ */

/** Joins for several windows. @return the median of the longest gap of the pair in each, in us */
static uint64_t gaps_while_joining(struct joins *joins, unsigned windows)
{
    uint64_t gaps_us[WINDOWS_MAX];
    joins->rounds = 0;
    (void)gap_since();
    for (unsigned i = 0; i < windows; i++) {
        const uint64_t end_ms = test_now_ms() + WINDOW_MS;
        while (test_now_ms() < end_ms && joins->rounds < JOINS_MAX) {
            join_once(joins);
            test_sleep_ms(5);
        }
        gaps_us[i] = gap_since();
    }
    qsort(gaps_us, windows, sizeof gaps_us[0], by_size);
    return gaps_us[windows / 2];
}

static void test_flood_at_full_speed(void **state)
{
    static struct joins before;
    static struct joins during;
    const unsigned windows = FULL_OR(WINDOWS_MAX, 9); /* 30 s, or 2 s */
    pid_t pair[2];
    pid_t flooders[FLOODERS];
    (void)state;
    start_pair(pair);
    atomic_store(&bus_shared[WORD_MEASURE], 1);
    const uint64_t gap_before_us = gaps_while_joining(&before, 3);
    print_joins(&before, "without flood");
    for (unsigned i = 0; i < FLOODERS; i++) {
        flooders[i] = child_start(be_flooder, &cluster, NULL);
    }
    RUN_UNTIL(atomic_load(&bus_shared[WORD_TRIED]) > 2000, NODE_MS, NULL);
    const uint64_t gap_us = gaps_while_joining(&during, windows);
    print_joins(&during, "flooded");
    const uint64_t refused = raw_status(cluster.socket, "connections_refused");
    print_message("%u tried, %u refused; gaps of %u us, %u us before\n",
                  (unsigned)atomic_load(&bus_shared[WORD_TRIED]), (unsigned)refused,
                  (unsigned)gap_us, (unsigned)gap_before_us);
    end_pair(pair);
    for (unsigned i = 0; i < FLOODERS; i++) {
        assert_int_equal(child_wait(flooders[i], NODE_MS), 0);
    }
    assert_true(refused > 500);
    assert_true(during.rounds > 1);
    assert_true(quantile_us(during.connect_ns, during.rounds, 99) < JOIN_MS * 1000);
    assert_true(gap_us < GAP_MS * 1000);
}

/** Opens @p count connections in a process of another user, and waits until it has tried all. */
static pid_t hold(unsigned count)
{
    static unsigned wanted;
    wanted = count;
    const pid_t pid = child_start(be_holder, &cluster, &wanted);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_ALL]) == 1, 120000, NULL);
    return pid;
}

/** Scenario 32: 2,000 asked for, as many as the limit says are had; the others work on. */
static void test_connections_are_limited(void **state)
{
    static struct joins joins;
    pid_t pair[2];
    (void)state;
    start_pair(pair);
    const pid_t holder = hold(2000);
    assert_int_equal(atomic_load(&bus_shared[WORD_HELD]), LIMIT);
    join_for(&joins, 500, "while one user has used up its connections");
    end_pair(pair);
    assert_int_equal(child_wait(holder, NODE_MS), 0);
    assert_int_equal(raw_status(cluster.socket, "connections_refused"), 2000 - LIMIT);
    /* One line, whatever the number. */
    assert_int_equal(cluster_log_count(&cluster, "event=connection_refused"), 1);
}

/** Twice, and a millisecond for what the scheduler does and does not tell of. */
static bool as_fast(uint64_t *during, unsigned rounds, uint64_t *before, unsigned rounds_before)
{
    return quantile_us(during, rounds, 99) <= 2 * quantile_us(before, rounds_before, 99) + 1000;
}

static bool others_are_as_fast_beside(unsigned wanted, unsigned ms)
{
    static struct joins before;
    static struct joins during;
    pid_t pair[2];
    start_pair(pair);
    join_for(&before, ms, "alone");
    const unsigned count = held_at_most(wanted);
    const pid_t holder = hold(count);
    join_for(&during, ms, "beside the connections of another user");
    print_message("%u held\n", (unsigned)atomic_load(&bus_shared[WORD_HELD]));
    end_pair(pair);
    assert_int_equal(child_wait(holder, NODE_MS), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_HELD]), count);
    return as_fast(during.ready_ns, during.rounds, before.ready_ns, before.rounds) &&
           as_fast(during.connect_ns, during.rounds, before.connect_ns, before.rounds);
}

/** Features 6.11: whoever holds 10^4 connections makes nobody else's links slower. */
static void test_connections_of_one_user_slow_nobody(void **state)
{
    (void)state;
    unsigned rounds = 1;
    while (!others_are_as_fast_beside(FULL_OR(HOLD_MAX, 1500), FULL_OR(10000, 1500))) {
        assert_true(rounds++ < MACHINE_ROUNDS);
    }
}

static int setup_with(const char *limits)
{
    char text[256];
    if (geteuid() != 0) {
        print_message("skipped: no right to become another user\n");
        exit(77); /* NOLINT(concurrency-mt-unsafe) */
    }
    (void)snprintf(text, sizeof text, "quota: {connects: 100000, users: {65534: {%s}}}\n", limits);
    if (cluster_make(&cluster, text) < 0) {
        return -1;
    }
    cluster.before_exec = raise_fds;
    return cluster_start(&cluster);
}

static int setup_rate(void **state)
{
    (void)state;
    return setup_with("connects: 50");
}

static int setup_few(void **state)
{
    (void)state;
    return setup_with("connects: 1000000, connections: 500");
}

static int setup_many(void **state)
{
    (void)state;
    return setup_with("connects: 1000000, connections: 20000");
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
        cmocka_unit_test_setup_teardown(test_flood_at_full_speed, setup_rate, teardown),
        cmocka_unit_test_setup_teardown(test_connections_are_limited, setup_few, teardown),
        cmocka_unit_test_setup_teardown(test_connections_of_one_user_slow_nobody, setup_many,
                                        teardown),
    };
    return cmocka_run_group_tests_name("flood", tests, NULL, NULL);
}
