/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One life after the other. Scenario 1: daemon and services are killed together and started
 * again, over and over; each start works, nothing is left in the file system, and nothing of
 * the old life can be seen. Scenario 2: a service is killed and started again at once; the
 * clean-up of the old life never touches the new one, and a peer sees the end of the one
 * before the other is READY.
 */
#include "support/bus.h"
#include "support/leak.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SERVICE   "/game/eu/pc/w1/core/service"
#define SERVICE_1 SERVICE "/1"
#define SERVICES  3U
#define OPEN_MS   2000U

static struct cluster cluster;
static struct node self;

/* ---- a service ------------------------------------------------------------------------------ */

/** What a child is to be; written before it is forked. */
static struct {
    unsigned number;
    uint32_t weight;
} service;

#define READY   bus_shared[0]
#define RETRIES bus_shared[2]

static bool echoes;

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    (void)user;
    self.messages++;
    if (echoes) {
        CHECK(ringbus_send(bus, &message->from, 0, message->data, message->size, 0) == 1);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus;
    (void)user;
    self.events[event->type]++;
}

/** The address is taken until the end of the one before is noticed: a bounded, named retry. */
static void open_service(const struct cluster *at, const char *path)
{
    const uint64_t end_ms = test_now_ms() + OPEN_MS;
    struct ringbus_options options = node_options(at, path);
    int result = RINGBUS_E_IN_USE;
    options.weight = service.weight;
    options.on_message = on_message;
    options.on_event = on_event;
    while (result == RINGBUS_E_IN_USE && test_now_ms() < end_ms) {
        result = ringbus_open(&options, &self.bus);
        if (result == RINGBUS_E_IN_USE) {
            atomic_fetch_add(&RETRIES, 1);
            test_sleep_ms(1);
        }
    }
    if (result != 0) {
        bus_die(__FILE__, __LINE__, ringbus_errmsg(NULL));
    }
}

/** Sends to its siblings, by value, by reference and from loans that it has not sent yet. */
static void busy(const struct cluster *at, void *context)
{
    static unsigned char large[20000];
    char path[64];
    struct ringbus_addr all;
    struct ringbus_loan loans[4];
    (void)context;
    (void)snprintf(path, sizeof path, SERVICE "/%u", service.number);
    open_service(at, path);
    CHECK(ringbus_target(self.bus, SERVICE, NULL, &all) == 0);
    all.instance = RINGBUS_ALL;
    for (unsigned i = 0; i < 4; i++) {
        CHECK(ringbus_loan(self.bus, 1000, &loans[i]) == 0);
    }
    for (;;) {
        (void)ringbus_send(self.bus, &all, 0, "x", 1, 0);
        (void)ringbus_send(self.bus, &all, 0, large, sizeof large, 0);
        CHECK(ringbus_poll(self.bus, 100) >= 0);
        if (self.events[RINGBUS_EVENT_READY] >= SERVICES - 1 && self.messages > 0) {
            atomic_fetch_or(&READY, 1U << service.number);
        }
        CHECK(ringbus_wait(self.bus, 1) >= 0);
    }
}

/** Answers each message with itself. */
static void quiet(const struct cluster *at, void *context)
{
    (void)context;
    echoes = true;
    open_service(at, SERVICE_1);
    for (;;) {
        CHECK(ringbus_poll(self.bus, 100) >= 0);
        CHECK(ringbus_wait(self.bus, 1000) >= 0);
    }
}

/* ---- scenario 1 --------------------------------------------------------------------------- */

static void test_all_killed_and_started_again(void **state)
{
    (void)state;
    const unsigned rounds = FULL_OR(200, 20);
    uint64_t random = 7;
    struct leak_traces traces;
    pid_t pids[SERVICES];
    static struct ringbus_instance before[SERVICES];
    static struct ringbus_instance now[SERVICES];
    struct node looker = {0};
    assert_int_equal(leak_traces_read(&traces), 0);
    const unsigned fds = bus_fd_count();
    for (unsigned round = 0; round < rounds; round++) {
        bus_shared_reset();
        assert_int_equal(cluster_start(&cluster), 0);
        service.weight = 1 + round;
        for (unsigned i = 0; i < SERVICES; i++) {
            service.number = i + 1;
            pids[i] = child_start(busy, &cluster, NULL);
        }
        const uint64_t end_ms = test_now_ms() + NODE_MS;
        while (READY != (1U << (SERVICES + 1)) - 2) {
            assert_true(test_now_ms() < end_ms);
            test_sleep_ms(1);
        }
        node_open(&looker, &cluster, NULL);
        assert_int_equal(ringbus_instances(looker.bus, SERVICE, now, SERVICES), SERVICES);
        for (unsigned i = 0; i < SERVICES; i++) {
            assert_int_equal(now[i].weight, service.weight);
            for (unsigned j = 0; j < SERVICES; j++) {
                assert_int_not_equal(now[i].addr.incarnation, before[j].addr.incarnation);
            }
        }
        memcpy(before, now, sizeof before);
        node_close(&looker);
        /* In the middle of whatever they do. */
        machine_spin_ns(bus_random(&random) % 3000000);
        for (unsigned i = 0; i < SERVICES; i++) {
            (void)kill(pids[i], SIGKILL);
        }
        cluster_kill(&cluster);
        for (unsigned i = 0; i < SERVICES; i++) {
            child_kill(pids[i]);
        }
        assert_int_equal(bus_fd_count(), fds);
        /* Other programs of the machine come and go there as well. */
        const uint64_t traces_ms = test_now_ms() + NODE_MS;
        while (!leak_traces_same(&traces)) {
            assert_true(test_now_ms() < traces_ms);
            test_sleep_ms(100);
        }
    }
}

/* ---- scenario 2 --------------------------------------------------------------------------- */

static struct {
    uint32_t up; /* incarnation of the life that is READY; 0 none */
    unsigned lives;
    unsigned wrong;
} seen;

static void on_life(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_READY) {
        seen.wrong += seen.up != 0;
        seen.up = event->addr.incarnation;
        seen.lives++;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        seen.wrong += seen.up != event->addr.incarnation;
        seen.up = 0;
    }
}

static void test_killed_and_started_again_at_once(void **state)
{
    (void)state;
    const unsigned rounds = TEST_SCALE > 1 ? 20 : 100;
    struct node peer = {.on_event = on_life};
    uint64_t random = 3;
    uint64_t answers = 0;
    struct ringbus_addr to;
    struct leak_daemon held;
    bus_shared_reset();
    memset(&seen, 0, sizeof seen);
    assert_int_equal(cluster_start(&cluster), 0);
    node_open(&peer, &cluster, NULL);
    service.weight = 10;
    pid_t pid = child_start(quiet, &cluster, NULL);
    node_target(&peer, SERVICE_1, 1, NULL);
    assert_int_equal(ringbus_resolve(SERVICE_1, &to), 0);
    for (unsigned round = 1; round <= rounds; round++) {
        const uint32_t old = seen.up;
        (void)kill(pid, SIGKILL);
        machine_spin_ns(bus_random(&random) % 5000000);
        const pid_t next = child_start(quiet, &cluster, NULL);
        child_kill(pid);
        pid = next;
        const uint64_t end_ms = test_now_ms() + NODE_MS;
        while (answers == peer.messages) {
            if (seen.up != 0 && seen.up != old) {
                (void)ringbus_send(peer.bus, &to, 0, "x", 1, 0);
            }
            nodes_step((struct node *const[]){&peer}, 1);
            assert_true(test_now_ms() < end_ms);
        }
        answers = peer.messages;
        assert_int_equal(seen.wrong, 0);
        if (round == 1) { /* what comes with the first link is there */
            assert_int_equal(leak_daemon_read(&cluster, &held), 0);
        }
    }
    /* What the daemon does about the old lives does not reach the new one, however late. */
    const uint64_t later_ms = test_now_ms() + FULL_OR(20000, 500);
    while (test_now_ms() < later_ms) {
        nodes_step((struct node *const[]){&peer}, 1);
    }
    answers = peer.messages;
    assert_int_equal(ringbus_send(peer.bus, &to, 0, "x", 1, 0), 1);
    RUN_UNTIL(peer.messages > answers, NODE_MS, &peer);
    static struct ringbus_instance one[2];
    assert_int_equal(ringbus_instances(peer.bus, SERVICE, one, 2), 1);
    assert_int_equal(one[0].addr.incarnation, seen.up);
    assert_int_equal(peer.events[RINGBUS_EVENT_DAEMON_LOST], 0);
    assert_true(leak_daemon_wait(&cluster, &held, LEAK_SLACK_KIB, NODE_MS));
    print_message("restarts: %u lives seen, %u registrations had to be tried again\n", seen.lives,
                  (unsigned)RETRIES);
    node_close(&peer);
    child_kill(pid);
}

static int setup(void **state)
{
    (void)state;
    return cluster_make(&cluster, "{}\n");
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
        ON_OWN_DAEMON(test_all_killed_and_started_again),
        ON_OWN_DAEMON(test_killed_and_started_again_at_once),
    };
    bus_shared_reset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
