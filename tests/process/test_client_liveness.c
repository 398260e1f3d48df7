/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is alive, as peers see each other: stopped longer than the bound (scenario 39), in a
 * debugger (41), busy with one message (45), crashed (47), idle for long (15), behind a full
 * lane (61), and a judge that was stopped itself (features 6.9).
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"
#define MAIN   "/game/eu/pc/w1/core/main"
#define MAIN_1 MAIN "/1"

#define INTERVAL_MS 200U
#define MISSES      3U
#define BOUND_MS    (INTERVAL_MS * MISSES)

static struct cluster cluster;
static struct node node;

/* What the child tells. */
enum {
    WORD_READY,
    WORD_GO,
    WORD_DOWNS,
    WORD_REASON,
    WORD_SILENT_MS,
    WORD_SUSPECTS,
    WORD_ALIVES,
    WORD_RECEIVED,
    WORD_SEND_ERROR,
    WORD_DOWN_NS,
    WORD_DISORDER
};

static uint64_t word(unsigned index)
{
    return atomic_load(&bus_shared[index]);
}

/* The last event of each type, with when it came. */
static struct ringbus_event last[16];
static uint64_t last_ns[16];

static void note_event(struct node *self, const struct ringbus_event *event)
{
    (void)self;
    last[event->type] = *event;
    last_ns[event->type] = machine_now_ns();
}

static void child_event(struct node *self, const struct ringbus_event *event)
{
    static const unsigned words[] = {[RINGBUS_EVENT_READY] = WORD_READY,
                                     [RINGBUS_EVENT_DOWN] = WORD_DOWNS,
                                     [RINGBUS_EVENT_SUSPECT] = WORD_SUSPECTS,
                                     [RINGBUS_EVENT_ALIVE] = WORD_ALIVES};
    if (event->type == RINGBUS_EVENT_DOWN) {
        const struct ringbus_addr to = event->addr;
        atomic_store(&bus_shared[WORD_REASON], (uint64_t)event->reason);
        atomic_store(&bus_shared[WORD_SILENT_MS], event->silent_ms);
        atomic_store(&bus_shared[WORD_DOWN_NS], machine_now_ns());
        const int r = ringbus_send(self->bus, &to, 0, "x", 1, 0);
        atomic_store(&bus_shared[WORD_SEND_ERROR], (uint64_t)-r);
    }
    if (event->type == RINGBUS_EVENT_READY && word(WORD_READY) > word(WORD_DOWNS)) {
        atomic_store(&bus_shared[WORD_DISORDER], 1); /* the next link before the end of the last */
    }
    if (event->type < RBI_ARRAY_SIZE(words) && words[event->type] != 0) {
        atomic_fetch_add(&bus_shared[words[event->type]], 1);
    } else if (event->type == RINGBUS_EVENT_READY) {
        atomic_fetch_add(&bus_shared[WORD_READY], 1);
    }
}

static void child_message(struct node *self, const struct ringbus_message *message)
{
    (void)message;
    atomic_store(&bus_shared[WORD_RECEIVED], self->messages);
}

static void serve(struct node *self)
{
    for (;;) {
        CHECK(ringbus_wait(self->bus, -1) >= 0);
        CHECK(ringbus_poll(self->bus, 100) >= 0);
    }
}

static struct ringbus_options quick(const char *path)
{
    struct ringbus_options options = node_options(&cluster, path);
    options.ping_interval_ms = INTERVAL_MS;
    options.ping_misses = MISSES;
    return options;
}

static void plain_child(const struct cluster *at, void *context)
{
    static struct node peer = {.on_event = child_event, .on_message = child_message};
    struct ringbus_options options = quick(PEER_1);
    const int *hold = context;
    (void)at;
    options.debug_hold = hold != NULL ? *hold : 0;
    node_open_with(&peer, &options);
    if (hold != NULL) { /* it judges as well */
        CHECK(ringbus_target(peer.bus, MAIN_1, NULL, NULL) == 0);
    }
    serve(&peer);
}

static void open_main(int hold)
{
    struct ringbus_options options = quick(MAIN_1);
    options.debug_hold = hold;
    memset(last, 0, sizeof last);
    memset(&node, 0, sizeof node);
    node.on_event = note_event;
    node_open_with(&node, &options);
}

/* A link between the two that has run for a while: PINGs come at some point of their interval. */
static struct ringbus_addr link_up(unsigned phase_ms)
{
    const struct ringbus_addr peer = node_target(&node, PEER_1, 1, NULL);
    const uint64_t until_ms = test_now_ms() + INTERVAL_MS + phase_ms;
    RUN_UNTIL(test_now_ms() >= until_ms && word(WORD_READY) > 0, NODE_MS, &node);
    return peer;
}

static unsigned log_lines(void)
{
    return cluster_log_count(&cluster, "\n");
}

/*
 * What the machine added to a judgement of ours that began at @p from_ns, when we had waited
 * @p delay_ns for a core so far. A judge that is late gives an interval more.
 */
static uint64_t late_ms(uint64_t from_ns, uint64_t delay_ns)
{
    const uint64_t late =
        (machine_paused_ns(from_ns, machine_now_ns()) + machine_run_delay_ns(getpid()) - delay_ns) /
        1000000;
    return late > INTERVAL_MS / 8 ? late * 2 + INTERVAL_MS : late;
}

/* ---- stopped ---- */

/*
 * Scenario 39. The unit test has the bound to the millisecond, for a clock of its own; here the
 * machine may add what it does not run us.
 */
static void test_stopped_longer_than_the_bound(void **state)
{
    (void)state;
    for (unsigned round = 0; round < FULL_OR(20U, 2U); round++) {
        bus_shared_reset();
        const pid_t pid = child_start(plain_child, &cluster, NULL);
        open_main(0);
        const struct ringbus_addr before = link_up(round * INTERVAL_MS * 2 / 5);
        const unsigned lines = log_lines();
        const uint64_t delay_ns = machine_run_delay_ns(getpid());
        const uint64_t stop_ns = machine_now_ns();
        CHECK(kill(pid, SIGSTOP) == 0);
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] > 0, NODE_MS, &node);
        const uint64_t took_ms = (last_ns[RINGBUS_EVENT_DOWN] - stop_ns) / 1000000;
        const uint64_t paused_ms = late_ms(stop_ns, delay_ns);
        print_message("stopped: found after %u ms (paused %u)\n", (unsigned)took_ms,
                      (unsigned)paused_ms);
        assert_in_range(took_ms, BOUND_MS - INTERVAL_MS, BOUND_MS + INTERVAL_MS + paused_ms);
        assert_int_equal(node.reason, RINGBUS_REASON_SILENT);
        assert_int_equal(node.events[RINGBUS_EVENT_SUSPECT], 1);
        assert_int_equal(last[RINGBUS_EVENT_SUSPECT].paused, 0);
        assert_in_range(last[RINGBUS_EVENT_SUSPECT].silent_ms, INTERVAL_MS, BOUND_MS + paused_ms);
        assert_true(last_ns[RINGBUS_EVENT_SUSPECT] < last_ns[RINGBUS_EVENT_DOWN]);
        assert_in_range(last[RINGBUS_EVENT_DOWN].silent_ms, BOUND_MS,
                        BOUND_MS + INTERVAL_MS + paused_ms);
        /* Its PIDF is not free: it lives. Nothing more happens while it is stopped. */
        const uint64_t until_ms = test_now_ms() + 2 * BOUND_MS;
        RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &node);
        assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 1);
        CHECK(kill(pid, SIGCONT) == 0);
        const uint64_t wake_ms = test_now_ms();
        const uint64_t asleep_ns = machine_run_delay_ns(pid) + machine_run_delay_ns(getpid());
        RUN_UNTIL(word(WORD_DOWNS) > 0 && node.events[RINGBUS_EVENT_READY] > 1 &&
                      word(WORD_READY) > 1,
                  NODE_MS, &node);
        const uint64_t no_core_ms =
            (machine_run_delay_ns(pid) + machine_run_delay_ns(getpid()) - asleep_ns) / 1000000;
        assert_in_range(test_now_ms() - wake_ms, 0, 1000 + paused_ms + 2 * no_core_ms);
        assert_int_equal(word(WORD_DOWNS), 1); /* one event */
        assert_int_equal(word(WORD_REASON), RINGBUS_REASON_GIVEN_UP);
        assert_true(word(WORD_SILENT_MS) >= BOUND_MS);
        /* Its sends fail; unless a new link was there before it had been told. */
        assert_true((int)word(WORD_SEND_ERROR) == -RINGBUS_E_NOT_TARGET ||
                    (int)word(WORD_SEND_ERROR) == -1);
        assert_int_equal(word(WORD_DISORDER), 0);
        assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 1);
        /* The same life of the same instance. */
        assert_true(node.peer.cluster == before.cluster);
        assert_int_equal(node.peer.instance, before.instance);
        assert_true(log_lines() - lines <= 5);
        node_close(&node);
        child_kill(pid);
    }
}

/* Features 6.9: 10 intervals without the judge. Its peer holds for it, so that both are tried. */
static void test_stopped_judge_gives_nobody_up(void **state)
{
    (void)state;
    bus_shared_reset();
    int hold = 1;
    const pid_t pid = child_start(plain_child, &cluster, &hold);
    open_main(0);
    (void)link_up(0);
    const unsigned rounds = FULL_OR(5U, 1U);
    for (unsigned round = 0; round < rounds; round++) {
        CHECK(kill(pid, SIGSTOP) == 0);
        uint64_t until_ms = test_now_ms() + 10 * INTERVAL_MS;
        RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &node);
        CHECK(kill(pid, SIGCONT) == 0);
        until_ms = test_now_ms() + BOUND_MS + INTERVAL_MS;
        RUN_UNTIL(test_now_ms() >= until_ms && node.events[RINGBUS_EVENT_ALIVE] > round &&
                      node.events[RINGBUS_EVENT_ALIVE] == node.events[RINGBUS_EVENT_SUSPECT],
                  NODE_MS, &node);
    }
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_true(node.events[RINGBUS_EVENT_SUSPECT] >= rounds);
    assert_int_equal(word(WORD_DOWNS), 0);
    node_close(&node);
    child_kill(pid);
}

/* ---- debugger ---- */

/* Scenario 41. @p hold of the child's options */
static void stop_held(int hold)
{
    bus_shared_reset();
    const pid_t pid = child_start(plain_child, &cluster, &hold);
    open_main(0);
    const struct ringbus_addr peer = link_up(0);
    CHECK(kill(pid, SIGSTOP) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_SUSPECT] > 0, NODE_MS, &node);
    assert_int_equal(last[RINGBUS_EVENT_SUSPECT].paused, 1);
    /* Far longer than the bound; what is sent waits, until there is no room. */
    const uint64_t until_ms = test_now_ms() + FULL_OR(100U, 4U) * BOUND_MS;
    uint64_t sent = 0;
    bool full = false;
    while (test_now_ms() < until_ms) {
        struct node *const nodes[] = {&node};
        const int r = ringbus_send(node.bus, &peer, 0, "0123456789abcdef", 16, 0);
        sent += r == 1;
        full = full || r == RINGBUS_E_FULL;
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        if (full) {
            nodes_step(nodes, 1);
        }
    }
    assert_true(full);
    assert_true(sent > 900); /* PINGs have not taken the room of 64 KiB */
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(node.events[RINGBUS_EVENT_SUSPECT], 1);
    CHECK(kill(pid, SIGCONT) == 0);
    RUN_UNTIL(word(WORD_RECEIVED) == sent && node.events[RINGBUS_EVENT_ALIVE] == 1, NODE_MS, &node);
    CHECK(ringbus_send(node.bus, &peer, 0, "again", 5, 0) == 1);
    RUN_UNTIL(word(WORD_RECEIVED) == sent + 1, NODE_MS, &node);
    assert_int_equal(word(WORD_DOWNS), 0);
    /* Death is death. */
    CHECK(kill(pid, SIGSTOP) == 0);
    child_kill(pid);
    const uint64_t killed_ms = test_now_ms();
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_CRASHED);
    assert_true(test_now_ms() - killed_ms < BOUND_MS);
    node_close(&node);
}

static void test_debug_hold(void **state)
{
    (void)state;
    stop_held(1);
}

/* ---- busy ---- */

/* Works on one message for several times the bound (10 in full), and says so or not. */
static void work(struct node *self, const struct ringbus_message *message)
{
    const bool says_so = message->size == 4;
    const uint64_t until_ns = machine_now_ns() + FULL_OR(UINT64_C(10), 3U) * BOUND_MS * 1000000;
    uint64_t calls = 0;
    while (machine_now_ns() < until_ns) {
        if (says_so) {
            CHECK(ringbus_alive(self->bus) == 0);
            calls++;
        }
        test_sleep_ms(1);
    }
    CHECK(!says_so || calls > 10);
    atomic_store(&bus_shared[WORD_RECEIVED], self->messages);
}

static void busy_child(const struct cluster *at, void *context)
{
    static struct node peer = {.on_event = child_event, .on_message = work};
    struct ringbus_options options = quick(PEER_1);
    (void)at;
    (void)context;
    node_open_with(&peer, &options);
    CHECK(ringbus_target(peer.bus, MAIN_1, NULL, NULL) == 0); /* it judges, and is judged */
    serve(&peer);
}

/* Scenario 45: PONG comes from the application's loop; nothing else counts, but its own word. */
static void test_busy_is_not_dead(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(busy_child, &cluster, NULL);
    open_main(0);
    struct ringbus_addr peer = link_up(0);
    const uint64_t delay_ns = machine_run_delay_ns(pid);
    CHECK(ringbus_send(node.bus, &peer, 0, "long", 4, 0) == 1);
    RUN_UNTIL(word(WORD_RECEIVED) == 1, NODE_MS, &node);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(word(WORD_DOWNS), 0);
    /* A child that had no core could not say so. */
    if (machine_run_delay_ns(pid) - delay_ns < INTERVAL_MS * UINT64_C(1000000) / 2) {
        assert_int_equal(node.events[RINGBUS_EVENT_SUSPECT], 0);
    }
    /* Without a word: it is called silent, and told so. */
    CHECK(ringbus_send(node.bus, &peer, 0, "longer", 6, 0) == 1);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_SILENT);
    assert_true(last[RINGBUS_EVENT_DOWN].silent_ms >= BOUND_MS);
    RUN_UNTIL(word(WORD_RECEIVED) == 2 && word(WORD_DOWNS) == 1, NODE_MS, &node);
    assert_int_equal(word(WORD_REASON), RINGBUS_REASON_GIVEN_UP);
    assert_true(word(WORD_SILENT_MS) >= BOUND_MS);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &node);
    node_close(&node);
    child_kill(pid);
}

/* ringbus_alive() in a tight loop sends next to nothing. */
static void test_alive_is_cheap(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(plain_child, &cluster, NULL);
    open_main(0);
    (void)link_up(0);
    const uint64_t rung = node_stats(&node).bells_rung;
    const uint64_t until_ms = test_now_ms() + 2 * INTERVAL_MS;
    uint64_t calls = 0;
    while (test_now_ms() < until_ms) {
        CHECK(ringbus_alive(node.bus) == 0);
        calls++;
    }
    assert_true(calls > 1000);
    assert_true(node_stats(&node).bells_rung - rung <= 6);
    assert_int_equal(ringbus_alive(NULL), RINGBUS_E_ARGUMENT);
    node_close(&node);
    child_kill(pid);
}

/* ---- crash ---- */

#define CLIENTS 10U

static void client_child(const struct cluster *at, void *context)
{
    static struct node peer;
    char path[64];
    (void)snprintf(path, sizeof path, PEER "/%u", *(const unsigned *)context);
    node_open(&peer, at, path);
    CHECK(ringbus_target(peer.bus, MAIN_1, NULL, NULL) == 0);
    serve(&peer);
}

/* What a server keeps for each client, by its full address. */
static struct {
    struct ringbus_addr addr;
    unsigned freed;
} resources[CLIENTS + 1];

static void server_event(struct node *self, const struct ringbus_event *event)
{
    note_event(self, event);
    const unsigned at = (unsigned)event->addr.instance;
    if (event->type == RINGBUS_EVENT_READY) {
        assert_in_range(at, 1, CLIENTS);
        resources[at].addr = event->addr;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        assert_in_range(at, 1, CLIENTS);
        assert_memory_equal(&resources[at].addr, &event->addr, sizeof event->addr);
        resources[at].freed++;
    }
}

/* Scenario 47, with a daemon and without one. */
static void test_crash_is_told_at_once(void **state)
{
    (void)state;
    pid_t pids[CLIENTS + 1];
    bus_shared_reset();
    memset(resources, 0, sizeof resources);
    memset(&node, 0, sizeof node);
    node.on_event = server_event;
    struct ringbus_options options = node_options(&cluster, MAIN_1); /* default terms */
    node_open_with(&node, &options);
    for (unsigned i = 1; i <= CLIENTS; i++) {
        pids[i] = child_start(client_child, &cluster, &i);
    }
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == CLIENTS, NODE_MS, &node);
    for (unsigned round = 0; round < 2; round++) {
        const unsigned victim = 3 + round;
        if (round == 1) {
            cluster_kill(&cluster);
            RUN_UNTIL(node.events[RINGBUS_EVENT_DAEMON_LOST] == 1, NODE_MS, &node);
        }
        const uint64_t delay_ns = machine_run_delay_ns(getpid());
        const uint64_t kill_ns = machine_now_ns();
        child_kill(pids[victim]);
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == round + 1, NODE_MS, &node);
        const uint64_t took_ns = last_ns[RINGBUS_EVENT_DOWN] - kill_ns;
        const uint64_t paused_ns = late_ms(kill_ns, delay_ns) * 1000000;
        print_message("crash told after %u us%s\n", (unsigned)(took_ns / 1000),
                      round == 1 ? ", without a daemon" : "");
        assert_true(took_ns < 50000000 + paused_ns);
        assert_int_equal(node.reason, RINGBUS_REASON_CRASHED);
        assert_int_equal(resources[victim].freed, 1);
        assert_true(resources[victim].addr.incarnation != 0);
    }
    const uint64_t until_ms = test_now_ms() + 300;
    RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &node);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 2); /* nobody else */
    node_close(&node);
    for (unsigned i = 1; i <= CLIENTS; i++) {
        if (resources[i].freed == 0) {
            child_kill(pids[i]);
        }
    }
    assert_int_equal(cluster_start(&cluster), 0);
}

/* ---- after an idle time ---- */

/* Scenario 15: the first message after 10 bounds of nothing is built for half a bound. */
static void test_claim_after_an_idle_time(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(plain_child, &cluster, NULL);
    open_main(0);
    const struct ringbus_addr peer = link_up(0);
    const uint64_t until_ms = test_now_ms() + FULL_OR(10U, 2U) * BOUND_MS;
    RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &node);
    struct ringbus_claim claim;
    CHECK(ringbus_claim(node.bus, &peer, 0, 8, 0, &claim) == 0);
    test_sleep_ms(BOUND_MS / 2);
    memcpy(claim.data, "in place", 8);
    CHECK(ringbus_commit(node.bus, &claim, 8) == 1);
    RUN_UNTIL(word(WORD_RECEIVED) == 1, NODE_MS, &node);
    const uint64_t then_ms = test_now_ms() + INTERVAL_MS;
    RUN_UNTIL(test_now_ms() >= then_ms, NODE_MS, &node);
    assert_int_equal(word(WORD_RECEIVED), 1);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN] + word(WORD_DOWNS), 0);
    node_close(&node);
    child_kill(pid);
}

/* ---- a full lane ---- */

static unsigned fill(const struct ringbus_addr *to)
{
    unsigned sent = 0;
    while (ringbus_send(node.bus, to, 0, "0123456789abcdef", 16, 0) == 1) {
        sent++;
    }
    return sent;
}

/* Scenario 61: PING, READY and DISCONNECT pass a lane that is full of messages. */
static void test_control_passes_a_full_lane(void **state)
{
    (void)state;
    struct node peer = {.bus = NULL};
    open_main(0);
    struct ringbus_options options = quick(PEER_1);
    options.mode = RINGBUS_MODE_BUSY; /* polled one message at a time, below */
    node_open_with(&peer, &options);
    const struct ringbus_addr to = node_target(&node, PEER_1, 1, &peer);
    RUN_UNTIL(peer.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &node, &peer);
    /* PING: a reader that takes a message now and then lives, however full its lane is. */
    uint64_t sent = fill(&to);
    const uint64_t until_ms = test_now_ms() + 3 * BOUND_MS;
    while (test_now_ms() < until_ms) {
        CHECK(ringbus_poll(peer.bus, 1) >= 0);
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        sent += fill(&to);
        test_sleep_ms(5);
    }
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN] + peer.events[RINGBUS_EVENT_DOWN], 0);
    /* READY, the other way round, and its answer behind the full lane. */
    CHECK(ringbus_target(peer.bus, MAIN_1, NULL, NULL) == 0);
    sent += fill(&to);
    const uint64_t begun_ms = test_now_ms();
    RUN_UNTIL(peer.messages == sent, NODE_MS, &node, &peer);
    assert_true(test_now_ms() - begun_ms < 2000);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN] + peer.events[RINGBUS_EVENT_DOWN], 0);
    /* DISCONNECT: at once behind what was sent. */
    sent += fill(&to);
    node_close(&node);
    RUN_UNTIL(peer.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &peer);
    assert_int_equal(peer.reason, RINGBUS_REASON_LEFT);
    assert_int_equal(peer.messages, sent);
    node_close(&peer);
}

static int set_up(void **state)
{
    (void)state;
    machine_watch_start();
    return cluster_up(&cluster, "{}");
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    (void)machine_watch_stop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_longer_than_the_bound),
        cmocka_unit_test(test_stopped_judge_gives_nobody_up),
        cmocka_unit_test(test_debug_hold),
        cmocka_unit_test(test_busy_is_not_dead),
        cmocka_unit_test(test_alive_is_cheap),
        cmocka_unit_test(test_crash_is_told_at_once),
        cmocka_unit_test(test_claim_after_an_idle_time),
        cmocka_unit_test(test_control_passes_a_full_lane),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
