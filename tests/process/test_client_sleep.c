/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 43: the whole machine sleeps. Everybody is stopped for longer than the bound, the
 * daemon too, and goes on in a random order over 2 s: nobody is taken for dead, by nobody.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define PEERS_MAX   20U
#define CLUSTER     "/game/eu/pc/w1/core/peer"
#define INTERVAL_MS 200U
#define MISSES      12U /* a bound of 2.5 s: all are back within one */
#define WAKE_MS     2000U

/* Shared words: of each peer. */
#define WORD_LINKED(i) ((i)*4U)
#define WORD_DOWNS(i)  ((i)*4U + 1)
#define WORD_ROUND(i)  ((i)*4U + 2)     /* the last that it has had from everybody */
#define WORD_DAEMON(i) ((i)*4U + 3)     /* losses of the daemon */
#define WORD_GOAL      (PEERS_MAX * 4U) /* round up to which they send */

static struct cluster cluster;

struct role {
    unsigned index;
    unsigned peers;
};

static uint64_t had[PEERS_MAX + 1]; /* the last round of each peer */

static void on_message(struct node *self, const struct ringbus_message *message)
{
    uint64_t round = 0;
    (void)self;
    CHECK(message->size == sizeof round);
    CHECK(message->from.instance >= 1 && message->from.instance <= (int)PEERS_MAX);
    memcpy(&round, message->data, sizeof round);
    CHECK(round == had[message->from.instance] + 1); /* none is lost */
    had[message->from.instance] = round;
}

static void on_event(struct node *self, const struct ringbus_event *event)
{
    const struct role *role = self->context;
    if (event->type == RINGBUS_EVENT_READY) {
        atomic_fetch_add(&bus_shared[WORD_LINKED(role->index)], 1);
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        atomic_fetch_add(&bus_shared[WORD_DOWNS(role->index)], 1);
    } else if (event->type == RINGBUS_EVENT_DAEMON_LOST) {
        atomic_fetch_add(&bus_shared[WORD_DAEMON(role->index)], 1);
    }
}

static uint64_t least_had(const struct role *role)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 1; i <= role->peers; i++) {
        if (i != role->index + 1 && had[i] < least) {
            least = had[i];
        }
    }
    return least;
}

/* Sends each round to all when everybody's last has come: nobody runs ahead by more than one. */
static void peer_main(const struct cluster *at, void *context)
{
    static struct node self = {.on_message = on_message, .on_event = on_event};
    struct role *role = context;
    char path[64];
    struct ringbus_addr all;
    uint64_t round = 0;
    self.context = role;
    (void)snprintf(path, sizeof path, CLUSTER "/%u", role->index + 1);
    struct ringbus_options options = node_options(at, path);
    options.ping_interval_ms = INTERVAL_MS;
    options.ping_misses = MISSES;
    options.lane_bytes = 8192;
    node_open_with(&self, &options);
    CHECK(ringbus_target(self.bus, CLUSTER, NULL, &all) == 0);
    all.instance = RINGBUS_ALL;
    for (;;) {
        CHECK(ringbus_wait(self.bus, 20) >= 0);
        CHECK(ringbus_poll(self.bus, 1000) >= 0);
        atomic_store(&bus_shared[WORD_ROUND(role->index)], least_had(role));
        if (round < atomic_load(&bus_shared[WORD_GOAL]) && least_had(role) >= round) {
            round++;
            CHECK(ringbus_send(self.bus, &all, 0, &round, sizeof round, 0) == (int)role->peers - 1);
        }
    }
}

/* Waits until the word of every peer is at least this. */
static void wait_for_all(unsigned peers, unsigned first_word, uint64_t value, const char *what)
{
    const uint64_t start_ms = test_now_ms();
    for (unsigned i = 0; i < peers; i++) {
        while (atomic_load(&bus_shared[first_word + i * 4]) < value) {
            if (test_now_ms() - start_ms > 3 * NODE_MS) {
                bus_die(__FILE__, __LINE__, what);
            }
            test_sleep_ms(5);
        }
    }
}

static void shuffle(pid_t *pids, unsigned count, uint64_t *seed)
{
    for (unsigned i = count; i > 1; i--) {
        const unsigned other = (unsigned)(bus_random(seed) % i);
        const pid_t pid = pids[i - 1];
        pids[i - 1] = pids[other];
        pids[other] = pid;
    }
}

static void test_whole_machine_sleeps(void **state)
{
    (void)state;
    static struct role roles[PEERS_MAX];
    pid_t pids[PEERS_MAX + 1];
    const unsigned peers = FULL_OR(PEERS_MAX, 10U);
    const unsigned sleep_ms = FULL_OR(300000U, 4000U);
    uint64_t seed = 43;
    bus_shared_reset();
    for (unsigned i = 0; i < peers; i++) {
        roles[i] = (struct role){.index = i, .peers = peers};
        pids[i] = child_start(peer_main, &cluster, &roles[i]);
    }
    pids[peers] = cluster.pid;
    wait_for_all(peers, WORD_LINKED(0), peers, "all are linked"); /* with themselves as well */
    atomic_store(&bus_shared[WORD_GOAL], 5);
    wait_for_all(peers, WORD_ROUND(0), 5, "all have heard from all");
    for (unsigned sleep = 0; sleep < FULL_OR(3U, 1U); sleep++) {
        shuffle(pids, peers + 1, &seed);
        for (unsigned i = 0; i <= peers; i++) {
            CHECK(kill(pids[i], SIGSTOP) == 0);
        }
        test_sleep_ms(sleep_ms);
        shuffle(pids, peers + 1, &seed);
        const uint64_t wake_ms = test_now_ms();
        for (unsigned i = 0; i <= peers; i++) {
            const uint64_t due_ms = wake_ms + (uint64_t)WAKE_MS * i / (peers + 1);
            while (test_now_ms() < due_ms) {
                test_sleep_ms(1);
            }
            CHECK(kill(pids[i], SIGCONT) == 0);
        }
        /* Long enough for every count that the sleep may have spoilt to come to its end. */
        const uint64_t until_ms = test_now_ms() + (uint64_t)INTERVAL_MS * (MISSES + 2);
        const uint64_t goal = 10 + sleep;
        atomic_store(&bus_shared[WORD_GOAL], goal);
        wait_for_all(peers, WORD_ROUND(0), goal, "all hear from all again");
        while (test_now_ms() < until_ms) {
            test_sleep_ms(5);
        }
    }
    for (unsigned i = 0; i < peers; i++) {
        assert_int_equal(atomic_load(&bus_shared[WORD_DOWNS(i)]), 0);
        assert_int_equal(atomic_load(&bus_shared[WORD_LINKED(i)]), peers);
        assert_int_equal(atomic_load(&bus_shared[WORD_DAEMON(i)]), 0);
    }
    for (unsigned i = 0; i <= peers; i++) {
        if (pids[i] != cluster.pid) {
            assert_int_equal(waitpid(pids[i], NULL, WNOHANG), 0); /* it has found nothing wrong */
            child_kill(pids[i]);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}");
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_machine_sleeps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
