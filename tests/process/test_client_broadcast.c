/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 53: one sender, eight receivers, 20 KB by reference 10,000 times a second, and one
 * of the eight is stopped. The others lose nothing and wait for nothing; the sender never
 * sleeps in a call; what the stopped one does not get is counted, and what it holds is its
 * share and comes back when it dies.
 *
 * A message is late by the time from before its send to its arrival, without the times in
 * which its receiver was ready to run and had no core, the sender was not run in the call, or
 * a core was not run at all.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define SINK "/game/eu/pc/w1/core/sink"

#define RECEIVERS  8U
#define STOPPED    3U /* the one that is stopped */
#define BYTES      20480U
#define WORDS      (BYTES / sizeof(uint64_t))
#define PERIOD_NS  100000U
#define PING_MS    60000U /* nobody is given up for being stopped */
#define SHARE      2048U  /* payloads that a receiver may hold: a fifth of a second */
#define LANE_BYTES (4U * SHARE * 64U)
#define LATE_NS    5000000U
#define NOTE_NS    2000000U
#define NOTES_MAX  65536U
#define SAMPLE_NS  500000U

static struct cluster cluster;

struct note {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t had_no_core_ns; /* the noting process, meanwhile */
};

/** What one process tells the main one. */
struct report {
    _Atomic uint64_t ready;
    _Atomic uint64_t received;
    _Atomic uint64_t missed; /* by gaps in the numbers */
    _Atomic uint64_t longest_ns;
    _Atomic uint64_t note_count;
    struct note notes[NOTES_MAX];
};

static struct report *reports; /* of each receiver, then of the sender; shared */
static struct report *own;

/* How long this process had no core so far, at some times of late. */
#define SAMPLES 1024U
static struct {
    uint64_t at_ns;
    uint64_t delay_ns;
} samples[SAMPLES];
static uint64_t sample_count;

static uint64_t delay_since_ns(uint64_t from_ns)
{
    const uint64_t now_ns = machine_run_delay_ns(getpid());
    uint64_t then_ns = 0;
    for (uint64_t k = sample_count; k-- > 0 && k + SAMPLES >= sample_count;) {
        then_ns = samples[k % SAMPLES].delay_ns;
        if (samples[k % SAMPLES].at_ns <= from_ns) {
            break;
        }
    }
    return now_ns - then_ns;
}

static void sample_delay(uint64_t now_ns)
{
    samples[sample_count % SAMPLES].at_ns = now_ns;
    samples[sample_count % SAMPLES].delay_ns = machine_run_delay_ns(getpid());
    sample_count++;
}

static void note(uint64_t from_ns, uint64_t to_ns)
{
    const uint64_t n = own->note_count;
    if (to_ns - from_ns > own->longest_ns) {
        own->longest_ns = to_ns - from_ns;
    }
    if (to_ns - from_ns > NOTE_NS && n < NOTES_MAX) {
        own->notes[n] = (struct note){from_ns, to_ns, delay_since_ns(from_ns)};
        own->note_count = n + 1;
    }
    if (sample_count == 0 || to_ns - samples[(sample_count - 1) % SAMPLES].at_ns > SAMPLE_NS) {
        sample_delay(to_ns);
    }
}

/* ---- receivers ------------------------------------------------------------------------------ */

static uint64_t expected;
static bool never_misses;

static void on_message(struct node *node, const struct ringbus_message *message)
{
    const uint64_t *words = message->data;
    const uint64_t now_ns = machine_now_ns();
    CHECK(message->size == BYTES && (message->flags & RINGBUS_MESSAGE_REFERENCED) != 0);
    CHECK((message->flags & RINGBUS_MESSAGE_BROADCAST) != 0);
    CHECK(words[0] >= expected && (words[0] == expected || !never_misses));
    own->missed += words[0] - expected;
    expected = words[0] + 1;
    for (size_t i = 2; i < WORDS; i += 8) {
        CHECK(words[i] == words[0]); /* a word of each line */
    }
    note(words[1], now_ns);
    atomic_store(&own->received, node->messages);
}

static void receive(const struct cluster *at, void *context)
{
    const unsigned index = *(const unsigned *)context;
    static struct node node = {.on_message = on_message};
    char path[64];
    (void)snprintf(path, sizeof path, SINK "/%u", index + 1);
    struct ringbus_options options = node_options(at, path);
    own = &reports[index];
    never_misses = index != STOPPED;
    options.ping_interval_ms = PING_MS;
    options.refs_per_link = SHARE;
    node_open_with(&node, &options);
    atomic_store(&own->ready, 1);
    while (node.events[RINGBUS_EVENT_DOWN] == 0) {
        CHECK(ringbus_poll(node.bus, 64) >= 0);
        CHECK(node.events[RINGBUS_EVENT_DOWN] > 0 || ringbus_wait(node.bus, 1000) >= 0);
    }
    node_close(&node);
}

/* ---- sender --------------------------------------------------------------------------------- */

struct sender {
    struct node node;
    struct ringbus_addr all;
    pid_t pids[RECEIVERS];
    unsigned indexes[RECEIVERS];
    uint64_t sent;    /* broadcasts */
    uint64_t refused; /* receivers that one did not reach */
    uint64_t paused;  /* times that a receiver had no core for longer than its share lasts */
    long slept;       /* voluntary switches inside calls */
};

static long voluntary_switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

/* Sends one to all. @return how many have it */
static int broadcast(struct sender *self)
{
    struct ringbus_loan loan;
    CHECK(ringbus_loan(self->node.bus, BYTES, &loan) == 0);
    uint64_t *words = loan.data;
    for (size_t i = 0; i < WORDS; i++) {
        words[i] = self->sent;
    }
    const uint64_t start_ns = machine_now_ns();
    words[1] = start_ns;
    const int r = ringbus_send_loan(self->node.bus, &self->all, 0, &loan, BYTES, 0);
    note(start_ns, machine_now_ns());
    CHECK(r >= 0);
    CHECK(ringbus_loan_return(self->node.bus, &loan) == 0);
    self->sent++;
    return r;
}

/*
 * A receiver that has no core for a fifth of a second has to lose something: not the bus's
 * doing, so it is waited for. It must be ready to run, though.
 */
static void let_run(struct sender *self)
{
    for (unsigned i = 0; i < RECEIVERS; i++) {
        if (i == STOPPED || self->sent - atomic_load(&reports[i].received) < SHARE - 64) {
            continue;
        }
        self->paused++;
        const uint64_t end_ms = test_now_ms() + NODE_MS;
        while (self->sent - atomic_load(&reports[i].received) > SHARE / 2) {
            CHECK(machine_state(self->pids[i]) == 'R' || test_now_ms() < end_ms);
        }
    }
}

/* At the pace for so long. @return least that had one of them */
static unsigned send_for(struct sender *self, unsigned receivers, unsigned ms)
{
    const uint64_t count = (uint64_t)ms * 1000000U / PERIOD_NS;
    uint64_t next_ns = machine_now_ns();
    unsigned least = receivers;
    const long before = voluntary_switches();
    for (uint64_t i = 0; i < count; i++, next_ns += PERIOD_NS) {
        while (machine_now_ns() < next_ns) {
        }
        let_run(self);
        const unsigned had = (unsigned)broadcast(self);
        CHECK(had <= receivers);
        self->refused += receivers - had;
        least = had < least ? had : least;
        CHECK(ringbus_poll(self->node.bus, 100) >= 0);
        if (machine_now_ns() > next_ns + 20 * PERIOD_NS) {
            next_ns = machine_now_ns(); /* we were not run: no burst to make up for it */
        }
    }
    self->slept += voluntary_switches() - before;
    return least;
}

/* Until all but one have everything. */
static void settle(struct sender *self, unsigned but)
{
    for (unsigned i = 0; i < RECEIVERS; i++) {
        if (i != but) {
            RUN_UNTIL(atomic_load(&reports[i].received) == self->sent, NODE_MS, &self->node);
        }
    }
    nodes_step((struct node *[]){&self->node}, 1);
}

static void open_all(struct sender *self, uint32_t chunks)
{
    for (unsigned i = 0; i < RECEIVERS; i++) {
        self->indexes[i] = i;
        self->pids[i] = child_start(receive, &cluster, &self->indexes[i]);
        RUN_UNTIL(atomic_load(&reports[i].ready) == 1, NODE_MS, NULL);
    }
    struct ringbus_options options = node_options(&cluster, NULL);
    options.ping_interval_ms = PING_MS;
    options.lane_bytes = LANE_BYTES;
    options.pool[0] = (struct ringbus_pool_class){BYTES, chunks};
    node_open_with(&self->node, &options);
    own = &reports[RECEIVERS];
    self->all = node_target(&self->node, SINK, RECEIVERS, NULL);
    self->all.instance = RINGBUS_ALL;
}

static void stop(pid_t pid)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    RUN_UNTIL(machine_state(pid) == 'T', NODE_MS, NULL);
}

/* Looks at the pool as a send does, which takes in what came back. */
static uint64_t held(struct sender *self)
{
    struct ringbus_loan loan;
    (void)ringbus_poll(self->node.bus, 100);
    CHECK(ringbus_wait(self->node.bus, 0) >= 0);
    CHECK(ringbus_loan(self->node.bus, BYTES, &loan) == 0);
    CHECK(ringbus_loan_return(self->node.bus, &loan) == 0);
    return node_pool_used(&self->node);
}

/* ---- what it shows -------------------------------------------------------------------------- */

static uint64_t overlap_ns(const struct report *report, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t sum_ns = 0;
    for (uint64_t k = 0; k < report->note_count; k++) {
        const struct note *other = &report->notes[k];
        const uint64_t low_ns = other->from_ns > from_ns ? other->from_ns : from_ns;
        const uint64_t high_ns = other->to_ns < to_ns ? other->to_ns : to_ns;
        sum_ns += high_ns > low_ns ? high_ns - low_ns : 0;
    }
    return sum_ns;
}

/* @return the longest of what a process has noted, in ns, without what the machine did */
static uint64_t longest_own_ns(const struct report *report)
{
    const struct report *sender = &reports[RECEIVERS];
    uint64_t longest = 0;
    for (uint64_t k = 0; k < report->note_count; k++) {
        const struct note *long_one = &report->notes[k];
        uint64_t machine_ns =
            long_one->had_no_core_ns + machine_paused_ns(long_one->from_ns, long_one->to_ns) +
            (report != sender ? overlap_ns(sender, long_one->from_ns, long_one->to_ns) : 0);
        machine_ns += machine_ns / 2; /* what had piled up meanwhile takes its time */
        const uint64_t ns = long_one->to_ns - long_one->from_ns;
        longest = ns > machine_ns && ns - machine_ns > longest ? ns - machine_ns : longest;
    }
    return longest;
}

/** @return nobody was later than LATE_NS by the bus's doing */
static bool in_time(const struct sender *self)
{
    uint64_t as_it_was_ns = 0;
    uint64_t own_ns = 0;
    for (unsigned i = 0; i < RECEIVERS; i++) {
        const struct report *report = &reports[i];
        if (i != STOPPED) {
            as_it_was_ns = report->longest_ns > as_it_was_ns ? report->longest_ns : as_it_was_ns;
            own_ns = longest_own_ns(report) > own_ns ? longest_own_ns(report) : own_ns;
            assert_int_equal(report->missed, 0);
            assert_in_range(report->note_count, 0, NOTES_MAX - 1);
        }
    }
    print_message("%llu broadcasts, %llu refused by the stopped one; of the others the latest "
                  "%.2f ms, of it not the machine's %.2f ms; longest call %.2f ms; %llu pauses\n",
                  (unsigned long long)self->sent, (unsigned long long)self->refused,
                  (double)as_it_was_ns / 1e6, (double)own_ns / 1e6,
                  (double)reports[RECEIVERS].longest_ns / 1e6, (unsigned long long)self->paused);
    assert_int_equal(self->slept, 0);
    return own_ns < LATE_NS && longest_own_ns(&reports[RECEIVERS]) < LATE_NS;
}

static bool one_of_eight_is_stopped(void)
{
    static struct sender self;
    const unsigned phase_ms = FULL_OR(15000U, 500U);
    memset(&self, 0, sizeof self);
    memset(reports, 0, (RECEIVERS + 1) * sizeof *reports);
    open_all(&self, 2 * SHARE + 512);
    machine_watch_start();

    assert_int_equal(send_for(&self, RECEIVERS, phase_ms), RECEIVERS);
    assert_int_equal(self.refused, 0);
    stop(self.pids[STOPPED]);
    send_for(&self, RECEIVERS, phase_ms);
    settle(&self, STOPPED);
    assert_true(self.refused > 0);
    assert_int_equal(held(&self), SHARE);
    assert_int_equal(node_stats(&self.node).full, self.refused);
    assert_int_equal(kill(self.pids[STOPPED], SIGCONT), 0);
    RUN_UNTIL(atomic_load(&reports[STOPPED].received) + self.refused == self.sent, NODE_MS,
              &self.node);
    assert_int_equal(held(&self), 0);

    /* Again, and this time it does not come back. */
    stop(self.pids[STOPPED]);
    send_for(&self, RECEIVERS, phase_ms);
    settle(&self, STOPPED);
    assert_int_equal(held(&self), SHARE);
    assert_int_equal(node_stats(&self.node).full, self.refused);
    child_kill(self.pids[STOPPED]);
    RUN_UNTIL(self.node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &self.node);
    assert_int_equal(held(&self), 0);
    assert_int_equal(send_for(&self, RECEIVERS - 1, phase_ms), RECEIVERS - 1);
    settle(&self, STOPPED);

    assert_int_equal(node_stats(&self.node).no_chunk, 0);
    test_sleep_ms(10); /* so that the watch has seen the last pause */
    const bool good = in_time(&self);
    (void)machine_watch_stop();
    node_close(&self.node);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        assert_true(i == STOPPED || child_wait(self.pids[i], NODE_MS) == 0);
    }
    return good;
}

static void test_one_of_eight_is_stopped(void **state)
{
    (void)state;
    unsigned rounds = 1;
    while (!one_of_eight_is_stopped()) {
        assert_true(rounds++ < MACHINE_ROUNDS);
    }
}

static void test_stopped_one_leaves_chunks_to_the_others(void **state)
{
    (void)state;
    static struct sender self;
    memset(&self, 0, sizeof self);
    open_all(&self, 64); /* fewer than one receiver would hold */
    /* One at a time: a receiver without a core must not be taken for one that holds on. */
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(broadcast(&self), RECEIVERS);
        settle(&self, RECEIVERS);
    }
    stop(self.pids[STOPPED]);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(broadcast(&self) >= (int)RECEIVERS - 1);
        settle(&self, STOPPED);
    }
    node_close(&self.node);
    child_kill(self.pids[STOPPED]);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        assert_true(i == STOPPED || child_wait(self.pids[i], NODE_MS) == 0);
    }
}

static int setup(void **state)
{
    (void)state;
    const size_t size = (RECEIVERS + 1) * sizeof *reports; /* touched as far as it is used */
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    reports = memory;
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return munmap(reports, (RECEIVERS + 1) * sizeof *reports);
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Without arguments the scenario; with "share" a pool that is small for the receivers. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {ON_OWN_DAEMON(test_one_of_eight_is_stopped)};
    const struct CMUnitTest share[] = {ON_OWN_DAEMON(test_stopped_one_leaves_chunks_to_the_others)};
    return argc > 1 && strcmp(argv[1], "share") == 0
               ? cmocka_run_group_tests_name("broadcast, share", share, NULL, NULL)
               : cmocka_run_group_tests_name("broadcast", tests, NULL, NULL);
}
