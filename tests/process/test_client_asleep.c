/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 24: a receiver that sleeps whenever it finds nothing, and senders that write at
 * the moment at which it falls asleep: they learn where that is from whether they had to
 * ring. One sender and four, on two cores and on one, the receiver in ringbus_wait() and
 * in a loop of its own that takes the wake-up in before it looks into the lanes, or behind.
 *
 * The senders go in rounds: each sends a message, or two, then nobody sends anything until all
 * of the round have arrived. So no wake-up that was lost is made good by a later message.
 *
 * What counts as lost: the receiver is asleep, as the kernel says, and a message that was
 * sent 50 ms ago lies there. The time is counted by the waiting sender, in small steps in
 * which it had a core, and without those in which the receiver was ready but had none.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define SINK   "/game/eu/pc/w1/core/sink"
#define SINK_1 SINK "/1"

#define SENDERS_MAX 4U
#define PING_MS     60000U /* nothing but the senders wakes the receiver */
#define END_MARK    UINT64_MAX

#define GAP_NS_MAX   20000U
#define JITTER_NS    1000U
#define STEP_NS      20U     /* by which the aim moves */
#define AWAKE_NS     100000U /* longer between two looks at the clock: we had no core */
#define SUSPECT_NS   1000000U
#define LOST_NS      50000000U
#define NEVER_NS     UINT64_C(30000000000)
#define LOOKS_PER_MS 16U

static struct cluster cluster;

/* Shared words, each in a line of its own. */
#define WORD_TAKEN     0U /* messages that the receiver has had */
#define WORD_READY     8U /* senders that are linked */
#define WORD_SLEEPS    16U
#define WORD_SENDER(i) (32U + (i)*8U)
#define RANG           0U /* of a sender: sends that rang */
#define LONGEST        1U /* wait in ns, as it was */
#define LONGEST_OWN    2U /* without the times in which somebody had no core */

enum loop { LOOP_WAIT, LOOP_DRAIN_FIRST, LOOP_DRAIN_LAST };

struct setting {
    const char *name;
    enum loop loop;
    unsigned senders;
    bool one_core;
    uint64_t sends; /* by all senders */
    int receiver_core;
    int sender_core;
};

struct sender {
    const struct setting *setting;
    unsigned index;
    pid_t receiver;
};

/* ---- receiver ------------------------------------------------------------------------------- */

static unsigned ended;

static void on_message(struct node *node, const struct ringbus_message *message)
{
    uint64_t word = 0;
    CHECK(message->size == sizeof word);
    memcpy(&word, message->data, sizeof word);
    if (word == END_MARK) {
        ended++;
    } else {
        atomic_store(&bus_shared[WORD_TAKEN], node->messages);
    }
}

static uint64_t slept; /* in poll() */

/* @return messages handled */
static int turn(const struct node *node, enum loop loop, int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (loop == LOOP_WAIT) {
        const int n = ringbus_poll(node->bus, 64);
        CHECK(n >= 0);
        if (n == 0) {
            CHECK(ringbus_wait(node->bus, -1) >= 0);
        }
        return n;
    }
    if (poll(&wait, 1, 0) == 0) {
        slept++;
        CHECK(poll(&wait, 1, -1) == 1);
    }
    if (loop == LOOP_DRAIN_FIRST) {
        /* Takes in what made the descriptor readable, before anybody looks into the lanes. */
        CHECK(ringbus_wait(node->bus, 0) >= 0);
    }
    return ringbus_poll(node->bus, 64); /* takes it in at its end */
}

static void receive(const struct cluster *at, void *context)
{
    const struct setting *setting = context;
    static struct node node = {.on_message = on_message};
    struct ringbus_options options = node_options(at, SINK_1);
    CHECK(machine_pin(setting->receiver_core) == 0);
    options.ping_interval_ms = PING_MS;
    options.spin_us = 1;
    node_open_with(&node, &options);
    const int fd = setting->loop == LOOP_WAIT ? -1 : ringbus_fd(node.bus);
    while (ended < setting->senders) {
        CHECK(turn(&node, setting->loop, fd) >= 0);
    }
    CHECK(node.messages == setting->sends + setting->senders);
    atomic_store(&bus_shared[WORD_SLEEPS],
                 setting->loop == LOOP_WAIT ? node_stats(&node).sleeps : slept);
    node_close(&node);
}

/* ---- senders -------------------------------------------------------------------------------- */

static void note_most(unsigned word, uint64_t ns)
{
    if (ns > atomic_load(&bus_shared[word])) {
        atomic_store(&bus_shared[word], ns);
    }
}

/* Asleep, although the message is there: looks three times, so that it is not just waking up. */
static bool is_asleep(pid_t receiver, uint64_t taken)
{
    for (unsigned i = 0; i < 3; i++) {
        if (machine_state(receiver) != 'S' || atomic_load(&bus_shared[WORD_TAKEN]) != taken) {
            return false;
        }
        test_sleep_ms(2);
    }
    return true;
}

static void judge(const struct sender *self, uint64_t waited_ns, uint64_t until, uint64_t taken)
{
    if (waited_ns > LOST_NS && is_asleep(self->receiver, taken)) {
        (void)fprintf(stderr, "%s: asleep, %llu of %llu messages taken, %llu ms after the last\n",
                      self->setting->name, (unsigned long long)taken, (unsigned long long)until,
                      (unsigned long long)waited_ns / 1000000);
        bus_die(__FILE__, __LINE__, "a wake-up was lost");
    }
}

/* Until so many messages have been taken. */
static void wait_taken(const struct sender *self, uint64_t until)
{
    const uint64_t start_ns = machine_now_ns();
    uint64_t last_ns = start_ns;
    uint64_t awake_ns = 0; /* of ours, in small steps */
    uint64_t delay_ns = 0; /* the receiver's, when we began to suspect */
    uint64_t taken;
    unsigned looks = 0;
    while ((taken = atomic_load(&bus_shared[WORD_TAKEN])) < until) {
        const uint64_t now_ns = machine_now_ns();
        awake_ns += now_ns - last_ns < AWAKE_NS ? now_ns - last_ns : 0;
        last_ns = now_ns;
        if (self->setting->one_core || self->setting->senders > 1) {
            (void)sched_yield();
        }
        if (awake_ns < SUSPECT_NS) {
            continue;
        }
        delay_ns = delay_ns != 0 ? delay_ns : machine_run_delay_ns(self->receiver) + 1;
        if (++looks % (1000 * LOOKS_PER_MS) == 0 || now_ns - start_ns > NEVER_NS) {
            const uint64_t had_none_ns = machine_run_delay_ns(self->receiver) + 1 - delay_ns;
            judge(self, awake_ns > had_none_ns ? awake_ns - had_none_ns : 0, until, taken);
            CHECK(now_ns - start_ns < NEVER_NS);
        }
    }
    if (delay_ns != 0) {
        const uint64_t had_none_ns = machine_run_delay_ns(self->receiver) + 1 - delay_ns;
        awake_ns = awake_ns > had_none_ns ? awake_ns - had_none_ns : 0;
    }
    note_most(WORD_SENDER(self->index) + LONGEST, last_ns - start_ns);
    note_most(WORD_SENDER(self->index) + LONGEST_OWN, awake_ns);
}

/* On one core a timer of ours comes between whatever the receiver is just doing. */
static void pause_ns(const struct setting *setting, uint64_t ns)
{
    const struct timespec gap = {.tv_nsec = (long)ns};
    if (setting->one_core) {
        (void)nanosleep(&gap, NULL);
    } else {
        machine_spin_ns(ns);
    }
}

static void send_word(const struct node *node, uint64_t word)
{
    CHECK(ringbus_send(node->bus, &node->peer, 0, &word, sizeof word, 0) == 1);
}

/* It was asleep before we came: sooner next time; else later. */
static uint64_t aim(uint64_t aim_ns, bool rang)
{
    if (rang) {
        return aim_ns > STEP_NS ? aim_ns - STEP_NS : 0;
    }
    return aim_ns + STEP_NS < GAP_NS_MAX ? aim_ns + STEP_NS : GAP_NS_MAX;
}

static void send_all(const struct cluster *at, void *context)
{
    const struct sender *self = context;
    const struct setting *setting = self->setting;
    const uint64_t rounds = setting->sends / setting->senders;
    static struct node node;
    uint64_t rng = self->index + 1;
    uint64_t aim_ns = 2000;
    uint64_t rang = 0;
    struct ringbus_options options = node_options(at, NULL);
    CHECK(machine_pin(setting->sender_core) == 0);
    CHECK(prctl(PR_SET_TIMERSLACK, 1) == 0);
    options.ping_interval_ms = PING_MS;
    node_open_with(&node, &options);
    node_target(&node, SINK, 1, NULL);
    atomic_fetch_add(&bus_shared[WORD_READY], 1);
    while (atomic_load(&bus_shared[WORD_READY]) < setting->senders) {
        test_sleep_ms(1);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        /* On one core the receiver runs only while we sleep: every second message finds it so. */
        const bool first = setting->one_core && round % 2 == 0 && round + 1 < rounds;
        const uint64_t dice = bus_random(&rng);
        const bool aimed = dice % 8 != 0 && !first;
        if (!first) {
            pause_ns(setting, aimed ? aim_ns + dice / 8 % JITTER_NS : dice / 8 % GAP_NS_MAX);
        }
        send_word(&node, round);
        const uint64_t now_rang = node_stats(&node).bells_rung;
        if (aimed) {
            aim_ns = aim(aim_ns, now_rang > rang);
        }
        rang = now_rang;
        if (!first) {
            wait_taken(self, (round + 1) * setting->senders);
        }
        if (round % 256 == 0) {
            CHECK(ringbus_poll(node.bus, 100) >= 0);
        }
    }
    atomic_store(&bus_shared[WORD_SENDER(self->index) + RANG], rang);
    send_word(&node, END_MARK);
    while (node.events[RINGBUS_EVENT_DOWN] == 0) { /* the receiver leaves when it has all */
        CHECK(ringbus_poll(node.bus, 100) >= 0);
        CHECK(ringbus_wait(node.bus, 10) >= 0);
    }
    node_close(&node);
}

/* ---- a run ---------------------------------------------------------------------------------- */

static void print_run(const struct setting *setting, uint64_t took_ns)
{
    uint64_t rang = 0;
    uint64_t longest_ns = 0;
    uint64_t own_ns = 0;
    for (unsigned i = 0; i < setting->senders; i++) {
        const _Atomic uint64_t *words = &bus_shared[WORD_SENDER(i)];
        rang += words[RANG];
        longest_ns = words[LONGEST] > longest_ns ? words[LONGEST] : longest_ns;
        own_ns = words[LONGEST_OWN] > own_ns ? words[LONGEST_OWN] : own_ns;
    }
    print_message("%s: %llu sends, %llu sleeps, %llu rang, %.1f us each; "
                  "longest gap %.2f ms, of it not the machine's %.2f ms\n",
                  setting->name, (unsigned long long)setting->sends,
                  (unsigned long long)atomic_load(&bus_shared[WORD_SLEEPS]),
                  (unsigned long long)rang, (double)took_ns / 1e3 / (double)setting->sends,
                  (double)longest_ns / 1e6, (double)own_ns / 1e6);
    /*
     * It was at the brink, and on both sides of it; a waiter that shares its core gives way
     * first, and comes there less often.
     */
    const uint64_t rare = setting->one_core && setting->loop == LOOP_WAIT ? 1000 : 100;
    assert_in_range(rang, setting->sends / rare, setting->sends - setting->sends / 1000);
    assert_true(atomic_load(&bus_shared[WORD_SLEEPS]) > setting->sends / rare / setting->senders);
    assert_true(own_ns < LOST_NS);
}

static void run(struct setting *setting)
{
    int cores[2] = {0, 0};
    struct sender senders[SENDERS_MAX];
    pid_t pids[SENDERS_MAX];
    if (machine_cores(cores, 2) < 2 && !setting->one_core) {
        print_message("%s: skipped, there is one core only\n", setting->name);
        return;
    }
    setting->receiver_core = cores[0];
    setting->sender_core = setting->one_core ? cores[0] : cores[1];
    setting->sends /= TEST_SCALE;
    bus_shared_reset();
    const uint64_t start_ns = machine_now_ns();
    const pid_t receiver = child_start(receive, &cluster, setting);
    for (unsigned i = 0; i < setting->senders; i++) {
        senders[i] = (struct sender){.setting = setting, .index = i, .receiver = receiver};
        pids[i] = child_start(send_all, &cluster, &senders[i]);
    }
    for (unsigned i = 0; i < setting->senders; i++) {
        assert_int_equal(child_wait(pids[i], 900000), 0);
    }
    assert_int_equal(child_wait(receiver, NODE_MS), 0);
    print_run(setting, machine_now_ns() - start_ns);
}

/* ---- tests ---------------------------------------------------------------------------------- */

#define SENDS(loop) FULL_OR((loop) == LOOP_WAIT ? 10000000U : 2500000U, 10000U)

static void run_all(const char *const names[4], enum loop loop)
{
    for (unsigned i = 0; i < 4; i++) {
        struct setting setting = {.name = names[i],
                                  .loop = loop,
                                  .senders = i % 2 == 0 ? 1 : SENDERS_MAX,
                                  .one_core = i >= 2,
                                  .sends = SENDS(loop)};
        run(&setting);
    }
}

static void test_receiver_in_wait(void **state)
{
    static const char *const names[4] = {"wait, 1 sender", "wait, 4 senders",
                                         "wait, 1 sender, one core", "wait, 4 senders, one core"};
    (void)state;
    run_all(names, LOOP_WAIT);
}

static void test_descriptor_drained_before_the_lanes(void **state)
{
    static const char *const names[4] = {"drained before, 1 sender", "drained before, 4 senders",
                                         "drained before, 1 sender, one core",
                                         "drained before, 4 senders, one core"};
    (void)state;
    run_all(names, LOOP_DRAIN_FIRST);
}

static void test_descriptor_drained_behind_the_lanes(void **state)
{
    static const char *const names[4] = {"drained behind, 1 sender", "drained behind, 4 senders",
                                         "drained behind, 1 sender, one core",
                                         "drained behind, 4 senders, one core"};
    (void)state;
    run_all(names, LOOP_DRAIN_LAST);
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
        ON_OWN_DAEMON(test_receiver_in_wait),
        ON_OWN_DAEMON(test_descriptor_drained_before_the_lanes),
        ON_OWN_DAEMON(test_descriptor_drained_behind_the_lanes),
    };
    return cmocka_run_group_tests_name("asleep", tests, NULL, NULL);
}
