/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 49: one sender and four fast receivers; five slow ones come for a while and leave,
 * are killed, or fall silent. A second later nothing of them is left: not in what a send
 * takes, nor in how late the fast ones get it, nor in any counter.
 *
 * Figures are the 99th percentile of the work of a call and of the way to a receiver; each
 * is the median of several windows. The machine may be slower at any moment for reasons of
 * its own, but not each time: a round that shows no difference says that nothing stays
 * behind.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define SINK "/game/eu/pc/w1/core/sink"

#define FAST       4U
#define SLOW       5U
#define ROUNDS     10U
#define SLOW_MAX   20U
#define PERIOD_NS  50000U
#define PHASE_MS   300U
#define WINDOWS    6U
#define TIMES_MAX  (PHASE_MS * 1000000U / PERIOD_NS + 1000U)
#define LANE_BYTES 65536U
#define PING_MS    200U /* behind a full lane a slow one reads it in half a second */
#define MISSES     4U   /* a stopped one is found before a second is over */

static struct cluster cluster;

enum phase { PHASE_OTHER = 0, PHASE_BEFORE = 1, PHASE_AFTER = 2, PHASES = 3 };

/** Times that one process measured, in the order in which it did. */
struct times {
    uint32_t count;
    uint32_t ns[TIMES_MAX];
};

/** Shared by all processes. */
static struct shared {
    _Atomic uint32_t ready;
    struct times calls[PHASES];
    struct times ways[FAST][PHASES];
} * shared;

static void add_time(struct times *times, uint64_t ns)
{
    if (times->count < TIMES_MAX) {
        times->ns[times->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    }
}

static int by_size(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Sorts the windows. @return median of their 99th percentiles */
static uint32_t p99(struct times *times)
{
    uint32_t p99s[WINDOWS];
    const uint32_t count = times->count / WINDOWS;
    CHECK(count >= 200);
    for (unsigned i = 0; i < WINDOWS; i++) {
        qsort(times->ns + (size_t)i * count, count, sizeof *times->ns, by_size);
        p99s[i] = times->ns[(size_t)i * count + count * 99 / 100];
    }
    qsort(p99s, WINDOWS, sizeof *p99s, by_size);
    return p99s[WINDOWS / 2];
}

/* ---- receivers ------------------------------------------------------------------------------ */

struct payload {
    uint64_t sent_ns;
    uint64_t phase;
    uint64_t filler[4];
};

struct receiver {
    unsigned instance; /* the fast ones come first */
};

static unsigned own_index;

static void on_message(struct node *node, const struct ringbus_message *message)
{
    struct payload payload;
    (void)node;
    CHECK(message->size == sizeof payload);
    memcpy(&payload, message->data, sizeof payload);
    CHECK(payload.phase < PHASES);
    if (own_index < FAST && payload.phase != PHASE_OTHER) {
        add_time(&shared->ways[own_index][payload.phase], machine_now_ns() - payload.sent_ns);
    }
}

static void rest(void)
{
    const struct timespec half_ms = {.tv_nsec = 450000};
    (void)nanosleep(&half_ms, NULL);
}

static void receive(const struct cluster *at, void *context)
{
    const struct receiver *self = context;
    static struct node node = {.on_message = on_message};
    char path[64];
    own_index = self->instance - 1;
    (void)snprintf(path, sizeof path, SINK "/%u", self->instance);
    struct ringbus_options options = node_options(at, path);
    options.ping_interval_ms = 60000;
    node_open_with(&node, &options);
    atomic_fetch_add(&shared->ready, 1);
    while (node.events[RINGBUS_EVENT_DOWN] == 0) {
        const int n = ringbus_poll(node.bus, own_index < FAST ? 64 : 1);
        CHECK(n >= 0);
        if (own_index >= FAST) {
            rest(); /* a tenth of what comes */
        } else if (n == 0) {
            CHECK(ringbus_wait(node.bus, 1000) >= 0);
        }
    }
    node_close(&node);
}

/* ---- sender --------------------------------------------------------------------------------- */

static struct node node;
static struct ringbus_addr all;
static pid_t pids[FAST + SLOW];
static struct receiver receivers[FAST + SLOW];

static void start_receivers(unsigned from, unsigned to)
{
    const uint32_t ready = atomic_load(&shared->ready);
    for (unsigned i = from; i < to; i++) {
        receivers[i].instance = i + 1;
        pids[i] = child_start(receive, &cluster, &receivers[i]);
    }
    RUN_UNTIL(atomic_load(&shared->ready) == ready + to - from, NODE_MS, &node);
    RUN_UNTIL(node_stats(&node).links == to, NODE_MS, &node);
}

/* A bell may let its receiver run in our place: not the call's time. */
static uint64_t cpu_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000U + (uint64_t)used.tv_nsec;
}

static bool disturbed;

/* As many as fit into that time when nothing disturbs. */
static void send_for(unsigned ms, enum phase phase, unsigned receivers_now)
{
    struct payload payload = {.phase = phase};
    for (uint64_t i = 0; i < (uint64_t)ms * 1000000U / PERIOD_NS; i++) {
        payload.sent_ns = machine_now_ns();
        const uint64_t start_ns = cpu_ns();
        const int r = ringbus_send(node.bus, &all, 0, &payload, sizeof payload, 0);
        add_time(&shared->calls[phase], cpu_ns() - start_ns);
        CHECK(r >= 0 && (unsigned)r <= FAST + SLOW);
        /* A fast one that had no core for a twentieth of a second: this round says nothing. */
        disturbed = disturbed || (phase != PHASE_OTHER && (unsigned)r != receivers_now);
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        while (machine_now_ns() < payload.sent_ns + PERIOD_NS) {
        }
    }
}

static void end_slow_ones(int signal_number)
{
    for (unsigned i = FAST; i < FAST + SLOW; i++) {
        CHECK(kill(pids[i], signal_number) == 0);
    }
}

static void reap_slow_ones(void)
{
    for (unsigned i = FAST; i < FAST + SLOW; i++) {
        child_kill(pids[i]);
    }
}

/* @return what a figure has become in hundredths of what it was */
static unsigned percent(uint32_t before_ns, uint32_t after_ns)
{
    return (unsigned)((uint64_t)after_ns * 100 / (before_ns > 0 ? before_ns : 1));
}

/** The least that was seen of what a figure had become, in hundredths. */
struct least {
    unsigned call;
    unsigned way;
};

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* One round. */
static void measure(const char *name, int signal_number, struct least *least)
{
    uint32_t way_ns[PHASES] = {0};
    disturbed = false;
    memset(shared->calls, 0, sizeof shared->calls);
    memset(shared->ways, 0, sizeof shared->ways);
    send_for(PHASE_MS, PHASE_BEFORE, FAST);
    start_receivers(FAST, FAST + SLOW);
    const uint64_t full_before = node_stats(&node).full;
    for (unsigned i = 0; i < SLOW_MAX && node_stats(&node).full < full_before + SLOW; i++) {
        send_for(FULL_OR(10000, 300), PHASE_OTHER, FAST + SLOW);
    }
    CHECK(node_stats(&node).full >= full_before + SLOW); /* they were slow */
    end_slow_ones(signal_number);
    send_for(1000 - PHASE_MS, PHASE_OTHER, FAST);
    /* Only they were ever refused anything, and nobody is any more. */
    /* At once, unless we had no core: who judges others asks first whether it slept itself. */
    RUN_UNTIL(node_stats(&node).links == FAST, 6 * NODE_MS, &node);
    const struct ringbus_stats ended = node_stats(&node);
    send_for(PHASE_MS, PHASE_AFTER, FAST);
    CHECK(disturbed || node_stats(&node).full == ended.full);
    CHECK(node_stats(&node).pool_used == 0);
    reap_slow_ones();
    for (unsigned i = 0; i < FAST; i++) {
        for (unsigned phase = PHASE_BEFORE; phase < PHASES; phase++) {
            way_ns[phase] += p99(&shared->ways[i][phase]) / FAST;
        }
    }
    const uint32_t before_ns = p99(&shared->calls[PHASE_BEFORE]);
    const uint32_t after_ns = p99(&shared->calls[PHASE_AFTER]);
    print_message("%s: p99 of a call %.1f us, then %.1f us; of the way %.1f us, then %.1f us; "
                  "%llu refused meanwhile\n",
                  name, before_ns / 1e3, after_ns / 1e3, way_ns[PHASE_BEFORE] / 1e3,
                  way_ns[PHASE_AFTER] / 1e3, (unsigned long long)(ended.full - full_before));
    if (disturbed) {
        return;
    }
    least->call = least_of(least->call, percent(before_ns, after_ns));
    least->way = least_of(least->way, percent(way_ns[PHASE_BEFORE], way_ns[PHASE_AFTER]));
}

static void recover(const char *name, int signal_number)
{
    struct rusage usage[2];
    struct ringbus_options options = node_options(&cluster, NULL);
    struct least least = {UINT32_MAX, UINT32_MAX};
    options.lane_bytes = LANE_BYTES;
    options.ping_interval_ms = PING_MS;
    options.ping_misses = MISSES;
    memset(&node, 0, sizeof node);
    node_open_with(&node, &options);
    assert_int_equal(ringbus_target(node.bus, SINK, NULL, &all), 0);
    all.instance = RINGBUS_ALL;
    start_receivers(0, FAST);
    for (unsigned round = 0; round < ROUNDS && (least.call > 110 || least.way > 110); round++) {
        measure(name, signal_number, &least);
    }
    assert_in_range(least.call, 0, 110);
    assert_in_range(least.way, 0, 110);
    /* And not by waiting in any call. */
    CHECK(getrusage(RUSAGE_SELF, &usage[0]) == 0);
    send_for(100, PHASE_OTHER, FAST);
    CHECK(getrusage(RUSAGE_SELF, &usage[1]) == 0);
    assert_int_equal(usage[1].ru_nvcsw, usage[0].ru_nvcsw);
    node_close(&node);
    for (unsigned i = 0; i < FAST; i++) {
        assert_int_equal(child_wait(pids[i], NODE_MS), 0);
    }
}

static void test_slow_ones_are_killed(void **state)
{
    (void)state;
    recover("killed", SIGKILL);
}

static void test_slow_ones_are_stopped(void **state)
{
    (void)state;
    recover("stopped", SIGSTOP);
}

static int setup(void **state)
{
    (void)state;
    const int flags = MAP_SHARED | MAP_ANONYMOUS;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_true(memory != MAP_FAILED);
    shared = memory;
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return munmap(shared, sizeof *shared);
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_slow_ones_are_killed),
        ON_OWN_DAEMON(test_slow_ones_are_stopped),
    };
    return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
