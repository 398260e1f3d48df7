/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/victim.h"

#include "crash/trace.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM_UP  3U
#define DRAIN_MS 5000U

static pid_t zygote;
static int orders[2] = {-1, -1}; /* ours, the zygote's */
static int starts[2] = {-1, -1};

/* ---- in the victim -------------------------------- */

static void step(struct victim *victim)
{
    CHECK(ringbus_wait(victim->node.bus, -1) >= 0);
    CHECK(ringbus_poll(victim->node.bus, 1000) >= 0);
}

/* Each way once, in the lane and by reference: lanes and pools are mapped on both sides. */
static void warm_up(struct victim *victim)
{
    const size_t sizes[WARM_UP] = {MESSAGE_SMALL, MESSAGE_REFERENCED, MESSAGE_SMALL};
    for (unsigned i = 0; i < WARM_UP; i++) {
        CHECK(operation_send(victim, sizes[i], 0) >= 1);
    }
    while (!message_seen(WARM_UP - 1)) {
        step(victim);
    }
}

/* Sends one message to each partner, and leaves when they have it. */
static _Noreturn void say_and_leave(struct victim *victim, const struct operation *operation)
{
    CHECK(operation_send(victim, MESSAGE_SMALL, 0) == (int)operation->partners);
    word_set(WORD_BACK, victim->next);
    CHECK(ringbus_close(victim->node.bus, DRAIN_MS) == 0);
    word_set(WORD_DONE, 1);
    _exit(0);
}

/* It was given up while it stood still: learns it once for each link, and is linked again. */
static _Noreturn void come_back(struct victim *victim, const struct operation *operation)
{
    struct node *node = &victim->node;
    while (node->events[RINGBUS_EVENT_DOWN] < operation->partners) {
        step(victim);
    }
    while (node->events[RINGBUS_EVENT_READY] < 2 * operation->partners) {
        step(victim);
    }
    CHECK(node->events[RINGBUS_EVENT_DOWN] == operation->partners);
    CHECK(ringbus_release(node->bus, victim->kept) == 0);
    say_and_leave(victim, operation);
}

/*
 * Scenario 2: the old life may not be known dead yet. The address is refused at most until
 * the daemon has heard of it. And it may be the daemon that is dead.
 */
static void open_again(struct victim *victim)
{
    int r = 0;
    while ((r = operation_try_open(victim)) != 0) {
        CHECK(r == RINGBUS_E_IN_USE || r == RINGBUS_E_NO_DAEMON);
        if (r == RINGBUS_E_IN_USE) {
            word_set(WORD_IN_USE, word_get(WORD_IN_USE) + 1);
        } else {
            test_sleep_ms(1);
        }
    }
}

static _Noreturn void live(const struct cluster *cluster, const struct victim_order *order)
{
    static struct victim victim;
    const struct operation *operation = order->operation;
    victim.cluster = cluster;
    victim.operation = operation;
    victim.round = order->round;
    victim.ping_interval_ms = order->ping_interval_ms;
    if (order->again) {
        open_again(&victim);
        operation_link(&victim, operation);
        say_and_leave(&victim, operation);
    }
    victim.keeping = operation->keeps;
    if (!operation->unlinked) {
        operation_open(&victim);
        operation_link(&victim, operation);
        if (!operation->cold) {
            warm_up(&victim);
        }
    }
    if (operation->before) {
        operation->before(&victim);
    }
    trace_mark_begin();
    operation->run(&victim);
    trace_mark_end();
    if (order->comes_back) {
        come_back(&victim, operation);
    }
    for (;;) {
        (void)pause();
    }
}

/* ---- in the zygote -------------------------------- */

static _Noreturn void breed(const struct cluster *cluster)
{
    struct victim_order order;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGCHLD, SIG_IGN); /* the dead are nobody's: the tracer has reaped them */
    while (read(orders[1], &order, sizeof order) == (ssize_t)sizeof order) {
        pid_t pid = fork();
        if (pid == 0) {
            char go = 0;
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)signal(SIGCHLD, SIG_DFL);
            trace_markers_init();
            CHECK(read(starts[1], &go, 1) == 1);
            (void)close(orders[1]);
            (void)close(starts[1]);
            live(cluster, &order);
        }
        CHECK(write(orders[1], &pid, sizeof pid) == (ssize_t)sizeof pid);
    }
    _exit(0);
}

/* ---- in the driver -------------------------------- */

void victims_begin(const struct cluster *cluster)
{
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, starts) == 0);
    zygote = fork();
    CHECK(zygote >= 0);
    if (zygote == 0) {
        (void)close(orders[0]);
        (void)close(starts[0]);
        breed(cluster);
    }
    (void)close(orders[1]);
    (void)close(starts[1]);
}

void victims_end(void)
{
    (void)close(orders[0]);
    (void)close(starts[0]);
    (void)waitpid(zygote, NULL, 0);
}

pid_t victim_start(const struct victim_order *order)
{
    pid_t pid = -1;
    CHECK(write(orders[0], order, sizeof *order) == (ssize_t)sizeof *order);
    CHECK(read(orders[0], &pid, sizeof pid) == (ssize_t)sizeof pid && pid > 0);
    return pid;
}

void victim_go(void)
{
    CHECK(write(starts[0], "", 1) == 1);
}
