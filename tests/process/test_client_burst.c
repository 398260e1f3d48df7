/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 23: bursts without a pause, every message accounted for. And what a sender that
 * was refused waits for: room, chunks, slots; it is woken at once, by nothing else. PING is
 * a minute away in all of them, so that a lost wake-up shows.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SINK "/game/eu/pc/w1/core/sink"

#define RECEIVERS 3U
#define OFFERED   (1000000U / TEST_SCALE)
#define END_MARK  UINT64_MAX

static struct cluster cluster;

/* ---- receivers ---------------------------------------------------------------------------- */

struct receiver {
    unsigned index; /* instance number is one more */
    bool slow;      /* half speed: rests as long as it worked */
    enum ringbus_mode mode;
};

/* Shared words of receiver i: */
#define WORD_RECEIVED(i) ((i)*4U)
#define WORD_STATS(i)    ((i)*4U + 1U)
#define WORD_READY(i)    ((i)*4U + 2U)

static bool ended;

static void on_message(struct node *node, const struct ringbus_message *message)
{
    uint64_t word = 0;
    (void)node;
    if (message->size >= sizeof word) {
        memcpy(&word, message->data, sizeof word);
    }
    ended = ended || word == END_MARK;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void rest_ns(uint64_t ns)
{
    const uint64_t until_ns = now_ns() + ns;
    while (now_ns() < until_ns) {
    }
}

static void receive(const struct cluster *at, void *context)
{
    const struct receiver *self = context;
    static struct node node = {.on_message = on_message};
    char path[64];
    (void)snprintf(path, sizeof path, SINK "/%u", self->index + 1);
    struct ringbus_options options = node_options(at, path);
    options.mode = self->mode;
    options.ping_interval_ms = 60000;
    node_open_with(&node, &options);
    atomic_store(&bus_shared[WORD_READY(self->index)], 1);
    while (!ended) {
        const uint64_t start_ns = now_ns();
        CHECK(ringbus_poll(node.bus, 64) >= 0);
        if (self->slow) {
            rest_ns(now_ns() - start_ns);
        }
        CHECK(ended || ringbus_wait(node.bus, 1000) >= 0);
    }
    CHECK(node.events[RINGBUS_EVENT_DOWN] == 0);
    atomic_store(&bus_shared[WORD_RECEIVED(self->index)], node.messages);
    atomic_store(&bus_shared[WORD_STATS(self->index)], node_stats(&node).received);
    node_close(&node);
}

static void open_sender(struct node *node, struct ringbus_options *options)
{
    options->ping_interval_ms = 60000;
    node_open_with(node, options);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, SINK "/%u", i + 1);
        if (atomic_load(&bus_shared[WORD_READY(i)]) > 0) {
            node_target(node, path, 1, NULL);
        }
    }
}

static void send_end(struct node *node, const struct ringbus_addr *to)
{
    const uint64_t mark = END_MARK;
    int r = ringbus_send(node->bus, to, 0, &mark, sizeof mark, 0);
    while (r == RINGBUS_E_FULL) {
        CHECK(ringbus_wait(node->bus, 5000) == 1);
        CHECK(ringbus_poll(node->bus, 100) >= 0);
        r = ringbus_send(node->bus, to, 0, &mark, sizeof mark, 0);
    }
    CHECK(r == 1);
}

static void burst(bool slow)
{
    struct receiver receivers[RECEIVERS];
    pid_t pids[RECEIVERS];
    struct ringbus_addr to[RECEIVERS];
    uint64_t refused[RECEIVERS] = {0};
    uint64_t payload[8] = {0};
    struct node node = {0};
    struct ringbus_options options = node_options(&cluster, NULL);
    uint64_t refused_all = 0;
    bus_shared_reset();
    for (unsigned i = 0; i < RECEIVERS; i++) {
        receivers[i] = (struct receiver){.index = i, .slow = slow};
        pids[i] = child_start(receive, &cluster, &receivers[i]);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_READY(i)]) > 0, NODE_MS, NULL);
    }
    open_sender(&node, &options);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        to[i] = node.peer;
        to[i].instance = (int32_t)i + 1;
        to[i].incarnation = 0;
    }
    const uint64_t start_ms = test_now_ms();
    for (uint64_t k = 0; k < OFFERED; k++) {
        payload[0] = k;
        for (unsigned i = 0; i < RECEIVERS; i++) {
            const int r = ringbus_send(node.bus, &to[i], 0, payload, sizeof payload, 0);
            assert_true(r == 1 || r == RINGBUS_E_FULL);
            refused[i] += r != 1;
        }
    }
    const uint64_t took_ms = test_now_ms() - start_ms;
    const struct ringbus_stats stats = node_stats(&node);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        refused_all += refused[i];
        send_end(&node, &to[i]);
    }
    for (unsigned i = 0; i < RECEIVERS; i++) {
        assert_int_equal(child_wait(pids[i], 20000), 0);
        const uint64_t received = atomic_load(&bus_shared[WORD_RECEIVED(i)]) - 1;
        assert_int_equal(received + refused[i], OFFERED);
        assert_int_equal(atomic_load(&bus_shared[WORD_STATS(i)]), received + 1);
        assert_true(received > 0);
    }
    assert_int_equal(stats.full, refused_all);
    assert_int_equal(stats.sent, (uint64_t)OFFERED * RECEIVERS - refused_all);
    assert_int_equal(stats.sent_bytes, stats.sent * sizeof payload);
    print_message("%u to each of %u, %llu refused, %llu ms\n", OFFERED, RECEIVERS,
                  (unsigned long long)refused_all, (unsigned long long)took_ms);
    node_close(&node);
}

static void test_burst_at_full_speed(void **state)
{
    (void)state;
    burst(false);
}

static void test_burst_at_half_speed(void **state)
{
    (void)state;
    burst(true);
}

/* ---- waiting ------------------------------------------------------------------------------- */

struct flood {
    unsigned sends;
    size_t size;
    bool by_loan; /* one loan again and again: its slots run out, the pool does not */
    int refusal;  /* what the sender meets */
};

/* Sends without pause, waits whenever refused. @return longest wait in ns */
static uint64_t flood(struct node *node, const struct ringbus_addr *to, const struct flood *what)
{
    static unsigned char payload[65536];
    struct ringbus_loan loan = {0};
    uint64_t longest_ns = 0;
    if (what->by_loan) {
        assert_int_equal(ringbus_loan(node->bus, what->size, &loan), 0);
        memset(loan.data, 0, what->size);
    }
    for (unsigned sent = 0; sent < what->sends;) {
        const int r = what->by_loan ? ringbus_send_loan(node->bus, to, 0, &loan, what->size, 0)
                                    : ringbus_send(node->bus, to, 0, payload, what->size, 0);
        if (r == 1) {
            sent++;
            continue;
        }
        const uint64_t start_ns = now_ns();
        assert_int_equal(r, what->refusal);
        assert_int_equal(ringbus_wait(node->bus, 5000), 1);
        const uint64_t took_ns = now_ns() - start_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        assert_true(ringbus_poll(node->bus, 100) >= 0);
    }
    if (what->by_loan) {
        assert_int_equal(ringbus_loan_return(node->bus, &loan), 0);
    }
    return longest_ns;
}

static void wait_case(const char *name,
                      const struct flood *what,
                      enum ringbus_mode receiver_mode,
                      enum ringbus_mode sender_mode)
{
    struct receiver receiver = {.index = 0, .mode = receiver_mode};
    const struct ringbus_pool_class pool[] = {{16384, 4}};
    struct node node = {0};
    struct ringbus_options options = node_options(&cluster, NULL);
    bus_shared_reset();
    const pid_t pid = child_start(receive, &cluster, &receiver);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY(0)]) > 0, NODE_MS, NULL);
    options.lane_bytes = 4096;
    options.refs_per_link = 16;
    options.mode = sender_mode;
    memcpy(options.pool, pool, sizeof pool);
    open_sender(&node, &options);
    const struct ringbus_addr to = node.peer;
    const uint64_t longest_ns = flood(&node, &to, what);
    print_message("%s: longest wait %llu us\n", name, (unsigned long long)longest_ns / 1000);
    /* A lost wake-up would have lasted until the PING. */
    assert_true(longest_ns < 500000000);
    send_end(&node, &to);
    assert_int_equal(child_wait(pid, 10000), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_RECEIVED(0)]), what->sends + 1);
    node_close(&node);
}

static void test_wait_for_room(void **state)
{
    (void)state;
    const struct flood what = {.sends = 5000U / TEST_SCALE, .size = 200, .refusal = RINGBUS_E_FULL};
    wait_case("room, both sleep", &what, RINGBUS_MODE_SLEEP, RINGBUS_MODE_SLEEP);
    wait_case("room, receiver busy", &what, RINGBUS_MODE_BUSY, RINGBUS_MODE_SLEEP);
    wait_case("room, sender busy", &what, RINGBUS_MODE_SLEEP, RINGBUS_MODE_BUSY);
    wait_case("room, both busy", &what, RINGBUS_MODE_BUSY, RINGBUS_MODE_BUSY);
}

static void test_wait_for_chunks(void **state)
{
    (void)state;
    const struct flood what = {.sends = 2000, .size = 10000, .refusal = RINGBUS_E_NO_CHUNK};
    wait_case("chunks, both sleep", &what, RINGBUS_MODE_SLEEP, RINGBUS_MODE_SLEEP);
    wait_case("chunks, receiver busy", &what, RINGBUS_MODE_BUSY, RINGBUS_MODE_SLEEP);
    wait_case("chunks, sender busy", &what, RINGBUS_MODE_SLEEP, RINGBUS_MODE_BUSY);
}

static void test_wait_for_slots(void **state)
{
    (void)state;
    const struct flood what = {
        .sends = 5000, .size = 10000, .by_loan = true, .refusal = RINGBUS_E_FULL};
    wait_case("slots, both sleep", &what, RINGBUS_MODE_SLEEP, RINGBUS_MODE_SLEEP);
    wait_case("slots, receiver busy", &what, RINGBUS_MODE_BUSY, RINGBUS_MODE_SLEEP);
}

static void test_receiver_that_stops_and_goes_on(void **state)
{
    (void)state;
    static const unsigned char payload[200];
    struct receiver receiver = {.index = 0};
    struct node node = {0};
    struct ringbus_options options = node_options(&cluster, NULL);
    uint64_t sent = 0;
    bus_shared_reset();
    const pid_t pid = child_start(receive, &cluster, &receiver);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY(0)]) > 0, NODE_MS, NULL);
    open_sender(&node, &options);
    const struct ringbus_addr to = node.peer;
    for (unsigned round = 0; round < 5; round++) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        int r = 1;
        /* It may take a moment to stop. */
        do {
            assert_true(ringbus_poll(node.bus, 100) >= 0); /* a PONG may have come */
            r = ringbus_send(node.bus, &to, 0, payload, sizeof payload, 0);
            sent += r == 1;
        } while (r == 1 || ringbus_wait(node.bus, 20) == 1);
        assert_int_equal(r, RINGBUS_E_FULL);
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_int_equal(ringbus_wait(node.bus, 5000), 1);
        assert_true(ringbus_poll(node.bus, 100) >= 0);
    }
    send_end(&node, &to);
    assert_int_equal(child_wait(pid, 10000), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_RECEIVED(0)]), sent + 1);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&node);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_burst_at_full_speed),
        ON_OWN_DAEMON(test_burst_at_half_speed),
        ON_OWN_DAEMON(test_wait_for_room),
        ON_OWN_DAEMON(test_wait_for_chunks),
        ON_OWN_DAEMON(test_wait_for_slots),
        ON_OWN_DAEMON(test_receiver_that_stops_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
