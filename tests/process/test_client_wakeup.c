/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 24 without luck: what a waiting endpoint waits for happens at each point of
 * ringbus_wait() at which it asks the kernel for anything, on its way to sleep too. It
 * must be told, and not by the end of its time.
 *
 * The points are the calls of clock_gettime() and epoll_wait(), replaced by definitions
 * of the same name in this program.
 */
#include "support/bus.h"
#include "support/test.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

#define POINTS  20U
#define WAIT_MS 2000

static struct cluster cluster;
static struct node a; /* waits */
static struct node b; /* makes it happen */

static struct {
    unsigned at; /* 0: nothing is to happen */
    unsigned passed;
    void (*happen)(void);
} point;

static void pass_point(void)
{
    if (point.at != 0 && ++point.passed == point.at) {
        point.at = 0;
        point.happen();
    }
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
    pass_point();
    return (int)syscall(SYS_clock_gettime, clock, out);
}

__attribute__((visibility("default"))) int
epoll_wait(int set, struct epoll_event *events, int count, int timeout_ms)
{
    pass_point();
    if (point.at != 0) {
        return 0; /* no time is lost with sleeping before it happens */
    }
    return (int)syscall(SYS_epoll_wait, set, events, count, timeout_ms);
}

static void open_pair(enum ringbus_mode mode)
{
    struct ringbus_options options = node_options(&cluster, PEER_1);
    const struct ringbus_pool_class pool[] = {{16384, 4}};
    options.ping_interval_ms = 60000;
    options.mode = mode;
    node_open_with(&b, &options);
    options.path = NULL;
    options.mode = RINGBUS_MODE_SLEEP;
    options.lane_bytes = 4096;
    options.refs_per_link = 16;
    memcpy(options.pool, pool, sizeof pool);
    node_open_with(&a, &options);
    node_target(&a, PEER, 1, &b);
}

static void close_pair(void)
{
    node_close(&a);
    node_close(&b);
}

static void read_all(void)
{
    while (ringbus_poll(b.bus, 1000) > 0) {
    }
}

static void be_sent_to(void)
{
    CHECK(ringbus_send(b.bus, &b.peer, 0, "x", 1, 0) == 1);
}

static void be_woken(void)
{
    CHECK(ringbus_wake(a.bus) == 0);
}

/* Makes the endpoint want something. */
static void want_nothing(void)
{
}

static void fill_lane(void)
{
    static const unsigned char payload[300];
    while (ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0) == 1) {
    }
}

static void use_chunks(void)
{
    static const unsigned char payload[10000];
    int r = 1;
    while (r == 1) {
        r = ringbus_send(a.bus, &a.peer, 0, payload, sizeof payload, 0);
    }
    CHECK(r == RINGBUS_E_NO_CHUNK);
}

static void use_slots(void)
{
    struct ringbus_loan loan;
    int r = ringbus_loan(a.bus, 64, &loan);
    CHECK(r == 0);
    r = 1;
    while (r == 1) {
        r = ringbus_send_loan(a.bus, &a.peer, 0, &loan, 64, 0);
    }
    CHECK(r == RINGBUS_E_FULL);
    CHECK(ringbus_loan_return(a.bus, &loan) == 0);
    CHECK(ringbus_wait(a.bus, 0) >= 0); /* the return of the loan itself */
    CHECK(ringbus_poll(a.bus, 10) >= 0);
    /* Wanted again, now that only the receiver can help. */
    CHECK(ringbus_loan(a.bus, 64, &loan) == 0);
    CHECK(ringbus_send_loan(a.bus, &a.peer, 0, &loan, 64, 0) == RINGBUS_E_FULL);
}

static void at_every_point(void (*want)(void), void (*happen)(void))
{
    for (unsigned mode = 0; mode < 2; mode++) {
        for (unsigned at = 1; at <= POINTS; at++) {
            open_pair(mode == 0 ? RINGBUS_MODE_SLEEP : RINGBUS_MODE_BUSY);
            RUN_UNTIL(b.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &a, &b);
            want();
            while (ringbus_wait(a.bus, 0) == 1) {
                assert_true(ringbus_poll(a.bus, 100) >= 0);
            }
            point.passed = 0;
            point.happen = happen;
            point.at = at;
            const int r = ringbus_wait(a.bus, WAIT_MS);
            if (r != 1) {
                print_error("asleep after what it waited for came at point %u\n", at);
            }
            assert_int_equal(point.at, 0);
            assert_int_equal(r, 1);
            close_pair();
        }
    }
}

static void test_message(void **state)
{
    (void)state;
    at_every_point(want_nothing, be_sent_to);
}

static void test_wake(void **state)
{
    (void)state;
    at_every_point(want_nothing, be_woken);
}

static void test_room(void **state)
{
    (void)state;
    at_every_point(fill_lane, read_all);
}

static void test_chunk(void **state)
{
    (void)state;
    at_every_point(use_chunks, read_all);
}

static void test_slot(void **state)
{
    (void)state;
    at_every_point(use_slots, read_all);
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
    point.at = 0;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_message), ON_OWN_DAEMON(test_wake), ON_OWN_DAEMON(test_room),
        ON_OWN_DAEMON(test_chunk),   ON_OWN_DAEMON(test_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
