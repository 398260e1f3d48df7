/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 83: the first lap through a fresh lane and a fresh pool costs what the tenth does,
 * on both sides: the first message maps all pages, none after it touches a new one.
 *
 * Both ends live in this one thread, each with mappings of its own, so that faults and times
 * are those of one call and of nothing else.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

#define LAPS      10U
#define BODY      40U /* one line with its header */
#define LINE      64U
#define LANE_MAX  (1U << 20)
#define BATCH     64U
#define REFS      64U
#define CHUNKS    22U /* of the default pool */
#define ROUNDS    10U
#define TIMES_MAX (LANE_MAX / LINE)

static struct cluster cluster;
static struct node a;
static struct node b;

static uint64_t sum; /* of what the receiver read */

/* Reads every line of it, as a receiver would. */
static void on_message(struct node *node, const struct ringbus_message *message)
{
    const unsigned char *bytes = message->data;
    (void)node;
    for (size_t i = 0; i < message->size; i += LINE) {
        sum += bytes[i];
    }
}

static void open_pair(uint32_t lane_bytes)
{
    struct ringbus_options options = node_options(&cluster, PEER_1);
    options.ping_interval_ms = 60000;
    options.refs_per_link = REFS;
    b.on_message = on_message;
    node_open_with(&b, &options);
    options.path = NULL;
    options.lane_bytes = lane_bytes;
    node_open_with(&a, &options);
    node_target(&a, PEER, 1, &b);
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &a, &b);
}

static void close_pair(void)
{
    node_close(&a);
    node_close(&b);
}

static uint64_t faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

static uint64_t cpu_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000U + (uint64_t)used.tv_nsec;
}

/** What one lap took. */
struct lap {
    uint64_t sender_faults;
    uint64_t receiver_faults;
    unsigned count;
    uint64_t send_ns[TIMES_MAX]; /* of each call */
    uint64_t poll_ns[TIMES_MAX];
};

static struct lap laps[LAPS];

static void send_batch(struct lap *lap, unsigned count)
{
    static const unsigned char payload[BODY];
    const uint64_t before = faults();
    for (unsigned i = 0; i < count; i++) {
        const uint64_t start_ns = cpu_ns();
        CHECK(ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0) == 1);
        lap->send_ns[lap->count + i] = cpu_ns() - start_ns;
    }
    lap->sender_faults += faults() - before;
}

static void poll_batch(struct lap *lap, unsigned count)
{
    const uint64_t before = faults();
    for (unsigned i = 0; i < count; i++) {
        const uint64_t start_ns = cpu_ns();
        CHECK(ringbus_poll(b.bus, 1) == 1);
        lap->poll_ns[lap->count + i] = cpu_ns() - start_ns;
    }
    lap->receiver_faults += faults() - before;
}

/* By copy, or by reference; its chunk is free again afterwards. */
static void first_message(bool reference)
{
    struct ringbus_loan loan;
    struct ringbus_claim claim;
    if (reference) {
        CHECK(ringbus_loan(a.bus, 1, &loan) == 0);
        memset(loan.data, 1, 1);
        CHECK(ringbus_send_loan(a.bus, &a.peer, 0, &loan, 1, 0) == 1);
        CHECK(ringbus_loan_return(a.bus, &loan) == 0);
    } else {
        CHECK(ringbus_send(a.bus, &a.peer, 0, "x", 1, 0) == 1);
    }
    CHECK(ringbus_poll(b.bus, 1) == 1);
    if (reference) {
        /* Too large for the lane: looks first what this peer has given back. */
        CHECK(ringbus_claim(a.bus, &a.peer, 0, LANE_MAX, 0, &claim) == 0);
        CHECK(ringbus_abort(a.bus, &claim) == 0);
        CHECK(node_pool_used(&a) == 0);
    }
}

static void run_laps(uint32_t lane_bytes)
{
    for (unsigned i = 0; i < LAPS; i++) {
        laps[i].sender_faults = 0;
        laps[i].receiver_faults = 0;
        laps[i].count = 0;
        while (laps[i].count < lane_bytes / LINE) {
            const unsigned left = lane_bytes / LINE - laps[i].count;
            const unsigned batch = left < BATCH / 2 ? left : BATCH / 2;
            send_batch(&laps[i], batch);
            poll_batch(&laps[i], batch);
            laps[i].count += batch;
        }
        CHECK(ringbus_poll(a.bus, 10) >= 0);
    }
}

/* Code, stack and heap of this test are touched before anything is counted. */
static void warm_up(void)
{
    open_pair(4096);
    for (unsigned i = 0; i < LAPS; i++) {
        memset(&laps[i], 1, sizeof laps[i]);
    }
    run_laps(4096);
    close_pair();
}

static void test_first_lap_of_a_lane_touches_no_new_page(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4096, 65536, LANE_MAX};
    warm_up();
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        open_pair(sizes[i]);
        first_message(false);
        run_laps(sizes[i]);
        print_message("lane of %u: faults of the sender %llu, then %llu; of the receiver %llu, "
                      "then %llu\n",
                      sizes[i], (unsigned long long)laps[0].sender_faults,
                      (unsigned long long)laps[LAPS - 1].sender_faults,
                      (unsigned long long)laps[0].receiver_faults,
                      (unsigned long long)laps[LAPS - 1].receiver_faults);
        for (unsigned lap = 0; lap < LAPS; lap++) {
            assert_int_equal(laps[lap].sender_faults, 0);
            assert_int_equal(laps[lap].receiver_faults, 0);
        }
        close_pair();
    }
}

/* Each chunk of the default pool once. @return faults of both sides */
static void pool_lap(uint64_t *sender_faults, uint64_t *receiver_faults)
{
    static const struct ringbus_pool_class classes[] = {
        {16U << 10, 16}, {128U << 10, 4}, {1U << 20, 2}};
    struct ringbus_loan loans[CHUNKS];
    unsigned count = 0;
    uint64_t before = faults();
    for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        for (unsigned k = 0; k < classes[i].count; k++, count++) {
            CHECK(ringbus_loan(a.bus, classes[i].chunk_bytes, &loans[count]) == 0);
            memset(loans[count].data, (int)count, classes[i].chunk_bytes);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        CHECK(ringbus_send_loan(a.bus, &a.peer, 0, &loans[i], loans[i].size, 0) == 1);
        CHECK(ringbus_loan_return(a.bus, &loans[i]) == 0);
    }
    *sender_faults = faults() - before;
    before = faults();
    for (unsigned i = 0; i < count; i++) {
        CHECK(ringbus_poll(b.bus, 1) == 1);
    }
    *receiver_faults = faults() - before;
}

static void test_first_lap_of_a_pool_touches_no_new_page(void **state)
{
    (void)state;
    uint64_t sender = 0;
    uint64_t receiver = 0;
    warm_up();
    open_pair(65536);
    first_message(true);
    pool_lap(&sender, &receiver);
    print_message("pool: faults of the sender %llu, of the receiver %llu\n",
                  (unsigned long long)sender, (unsigned long long)receiver);
    assert_int_equal(sender, 0);
    assert_int_equal(receiver, 0);
    close_pair();
}

static int by_size(const void *left, const void *right)
{
    const uint64_t x = *(const uint64_t *)left;
    const uint64_t y = *(const uint64_t *)right;
    return (x > y) - (x < y);
}

static uint64_t p999(uint64_t *ns, unsigned count)
{
    qsort(ns, count, sizeof *ns, by_size);
    return ns[(size_t)count * 999 / 1000];
}

/*
 * Something may disturb any lap, but not the first one of every fresh lane more than the
 * tenth: the best of some rounds counts. The message that pays for the lap is one of it.
 */
static void test_first_lap_is_as_fast_as_the_tenth(void **state)
{
    (void)state;
    double least_send = 1e9;
    double least_poll = 1e9;
    warm_up();
    for (unsigned round = 0; round < ROUNDS && (least_send > 2 || least_poll > 2); round++) {
        open_pair(LANE_MAX);
        run_laps(LANE_MAX);
        close_pair();
        const unsigned count = laps[0].count;
        const uint64_t send_ns[] = {p999(laps[0].send_ns, count),
                                    p999(laps[LAPS - 1].send_ns, count)};
        const uint64_t poll_ns[] = {p999(laps[0].poll_ns, count),
                                    p999(laps[LAPS - 1].poll_ns, count)};
        print_message("p99.9 of a send %llu ns, then %llu ns; of a poll %llu ns, then %llu ns\n",
                      (unsigned long long)send_ns[0], (unsigned long long)send_ns[1],
                      (unsigned long long)poll_ns[0], (unsigned long long)poll_ns[1]);
        const double send = (double)send_ns[0] / (double)send_ns[1];
        const double poll = (double)poll_ns[0] / (double)poll_ns[1];
        least_send = send < least_send ? send : least_send;
        least_poll = poll < least_poll ? poll : least_poll;
    }
    assert_true(least_send <= 2);
    assert_true(least_poll <= 2);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Without arguments the lanes; with "pool" the pool. */
int main(int argc, char **argv)
{
    if (TEST_SCALE > 1) {
        print_message("skipped: a sanitizer touches pages of its own\n");
        return 77;
    }
    const struct CMUnitTest lanes[] = {
        ON_OWN_DAEMON(test_first_lap_of_a_lane_touches_no_new_page),
        ON_OWN_DAEMON(test_first_lap_is_as_fast_as_the_tenth),
    };
    const struct CMUnitTest pool[] = {
        ON_OWN_DAEMON(test_first_lap_of_a_pool_touches_no_new_page),
    };
    return argc > 1 && strcmp(argv[1], "pool") == 0
               ? cmocka_run_group_tests_name("lap, pool", pool, NULL, NULL)
               : cmocka_run_group_tests_name("lap, lanes", lanes, NULL, NULL);
}
