/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 102: the daemon is killed under load. Twenty services, in pairs, send 100,000
 * messages a second between them, the daemon is killed and started again. Nobody's flow has
 * a gap of more than 10 ms, nothing is lost, nobody is told that a living peer has gone, and
 * names and weights are back in the directory within two seconds.
 *
 * And 500 endpoints of one user that come back at once are no flood, however few connections
 * a second quota.connects allows it.
 */
#include "bus/directory.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SERVICE   "/game/eu/pc/w1/core/service"
#define PAIRS     10U
#define SERVICES  (2 * PAIRS)
#define BURST     10U
#define BURST_NS  UINT64_C(1000000) /* 10 pairs, 10 messages a millisecond each: 100,000 a second */
#define GAP_NS    UINT64_C(10000000)
#define BACK_MS   2000U
#define CROWD     500U
#define MANY_KEYS "quota: {instances: 1000, connections: 4096, connects: 1000}\n"

/* Words of bus_shared, PAIRS each. */
enum { SENT = 0, READ = 1, GAP = 2, DOWNS = 3, LOST = 4, BACK = 5, PID = 6 };
#define WORD(what, i) bus_shared[16 + (what)*PAIRS + (i)]
#define STOP          bus_shared[0]
#define MEASURE       bus_shared[1] /* the number of the phase in which gaps are noted */

static struct cluster cluster;
static pid_t pids[SERVICES];

/* ---- services ---------------------------------------------------------------------------- */

static struct node self;
static unsigned pair;

static void on_event(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_DOWN) {
        atomic_fetch_add(&WORD(DOWNS, pair), 1);
    } else if (event->type == RINGBUS_EVENT_DAEMON_LOST) {
        atomic_fetch_add(&WORD(LOST, pair), 1);
    } else if (event->type == RINGBUS_EVENT_DAEMON_BACK) {
        atomic_fetch_add(&WORD(BACK, pair), 1);
    }
}

static void open_self(const struct cluster *at, unsigned number)
{
    char path[64];
    (void)snprintf(path, sizeof path, SERVICE "/%u", number + 1);
    struct ringbus_options options = node_options(at, path);
    options.weight = 10 + number;
    self.on_event = on_event;
    node_open_with(&self, &options);
}

static void sender(const struct cluster *at, void *context)
{
    uint64_t sent = 0;
    char path[64];
    pair = (unsigned)(uintptr_t)context;
    open_self(at, pair);
    (void)snprintf(path, sizeof path, SERVICE "/%u", PAIRS + pair + 1);
    const struct ringbus_addr to = node_target(&self, path, 1, NULL);
    uint64_t next_ns = machine_now_ns();
    while (!STOP) {
        for (unsigned i = 0; i < BURST; i++) {
            while (ringbus_send(self.bus, &to, 0, &sent, sizeof sent, 0) != 1) {
                CHECK(ringbus_poll(self.bus, 100) >= 0);
                CHECK(ringbus_wait(self.bus, 100) >= 0);
            }
            sent++;
        }
        CHECK(ringbus_poll(self.bus, 100) >= 0);
        next_ns += BURST_NS;
        const uint64_t now_ns = machine_now_ns();
        if (next_ns > now_ns) {
            const struct timespec rest = {.tv_nsec = (long)(next_ns - now_ns)};
            (void)nanosleep(&rest, NULL);
        } else if (now_ns - next_ns > 100 * BURST_NS) {
            next_ns = now_ns; /* the machine was away: no use in making up for it */
        }
    }
    WORD(SENT, pair) = sent;
    while (STOP < 2) {
        CHECK(ringbus_poll(self.bus, 100) >= 0);
        CHECK(ringbus_wait(self.bus, 10) >= 0);
    }
    node_close(&self);
}

/* Time that a process was ready to run and had no core: not the doing of the bus. */
static uint64_t run_delay_ns(int schedstat)
{
    char text[128] = {0};
    unsigned long long cpu_ns = 0;
    unsigned long long delay_ns = 0;
    CHECK(pread(schedstat, text, sizeof text - 1, 0) > 0);
    CHECK(sscanf(text, "%llu %llu", &cpu_ns, &delay_ns) == 2);
    return delay_ns;
}

static int schedstat_of(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void numbered(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size == sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number == node->messages - 1);
}

static void receiver(const struct cluster *at, void *context)
{
    pair = (unsigned)(uintptr_t)context;
    self.on_message = numbered;
    open_self(at, PAIRS + pair);
    const int mine = schedstat_of(getpid());
    int theirs = -1;
    uint64_t last_ns = 0;
    uint64_t last_delay_ns = 0;
    uint64_t phase = 0;
    while (STOP < 2) {
        const uint64_t before = self.messages;
        CHECK(ringbus_poll(self.bus, 100) >= 0);
        if (self.messages == before) {
            CHECK(ringbus_wait(self.bus, 100) >= 0);
            continue;
        }
        WORD(READ, pair) = self.messages;
        if (theirs < 0) {
            theirs = schedstat_of((pid_t)WORD(PID, pair));
        }
        const uint64_t now_ns = machine_now_ns();
        const uint64_t delay_ns = run_delay_ns(mine) + run_delay_ns(theirs);
        const uint64_t idle_ns = delay_ns - last_delay_ns;
        if (phase == MEASURE && phase != 0 && now_ns - last_ns > idle_ns + GAP_NS / 2 &&
            now_ns - last_ns - idle_ns > WORD(GAP, pair)) {
            const uint64_t paused_ns = machine_paused_ns(last_ns, now_ns);
            const uint64_t gap_ns = now_ns - last_ns - idle_ns;
            if (gap_ns > paused_ns && gap_ns - paused_ns > WORD(GAP, pair)) {
                WORD(GAP, pair) = gap_ns - paused_ns;
            }
        }
        phase = MEASURE;
        last_ns = now_ns;
        last_delay_ns = delay_ns;
    }
    node_close(&self);
}

/* ---- the oracle ---------------------------------------------------------------------------- */

static uint64_t longest_gap_ns(void)
{
    uint64_t longest = 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        longest = WORD(GAP, i) > longest ? WORD(GAP, i) : longest;
        WORD(GAP, i) = 0;
    }
    return longest;
}

static uint64_t all_read(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        sum += WORD(READ, i);
    }
    return sum;
}

/** Whether the directory that a client is given has every service, as it was. */
static bool directory_is_whole(void)
{
    struct raw raw;
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    static struct rbi_directory_instance instances[64];
    unsigned right = 0;
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    assert_int_equal(rbi_directory_view_init(&view, raw.directory.base, raw.directory.size), 0);
    if (rbi_directory_read(&view, rbi_cluster_id(SERVICE, strlen(SERVICE)), &head, instances,
                           RBI_ARRAY_SIZE(instances)) == RBI_DIRECTORY_OK) {
        for (unsigned i = 0; i < head.instance_count; i++) {
            right += instances[i].weight == 10 + (uint32_t)instances[i].instance - 1 &&
                     instances[i].state == RBI_ENDPOINT_READY;
        }
    }
    raw_close(&raw);
    return right == SERVICES;
}

static void wait_until_whole(uint64_t from_ms)
{
    while (!directory_is_whole()) {
        assert_true(test_now_ms() - from_ms < NODE_MS);
        test_sleep_ms(20);
    }
}

/** The longest that one of the services has waited for a core, in all of its life. */
static uint64_t longest_delay_ms(const uint64_t *before_ns)
{
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < SERVICES; i++) {
        const uint64_t delay_ns = machine_run_delay_ns(pids[i]) - before_ns[i];
        longest_ns = delay_ns > longest_ns ? delay_ns : longest_ns;
    }
    return longest_ns / 1000000;
}

static void start_load(void)
{
    bus_shared_reset();
    for (unsigned i = 0; i < PAIRS; i++) {
        void *number = (void *)(uintptr_t)i;
        pids[PAIRS + i] = child_start(receiver, &cluster, number);
        pids[i] = child_start(sender, &cluster, number);
        WORD(PID, i) = (uint64_t)pids[i];
    }
    const uint64_t from_ms = test_now_ms();
    while (all_read() < PAIRS * 100 || !directory_is_whole()) {
        assert_true(test_now_ms() - from_ms < NODE_MS);
        test_sleep_ms(10);
    }
}

static void end_load(void)
{
    STOP = 1;
    for (unsigned i = 0; i < PAIRS; i++) {
        const uint64_t from_ms = test_now_ms();
        while (WORD(SENT, i) == 0 || WORD(READ, i) != WORD(SENT, i)) {
            assert_true(test_now_ms() - from_ms < NODE_MS);
            test_sleep_ms(1);
        }
        assert_int_equal(WORD(DOWNS, i), 0);
    }
    STOP = 2;
    for (unsigned i = 0; i < SERVICES; i++) {
        assert_int_equal(child_wait(pids[i], NODE_MS), 0);
    }
}

static void test_killed_under_load(void **state)
{
    (void)state;
    const unsigned rounds = FULL_OR(20, 4);
    uint64_t slowest_ms = 0;
    uint64_t gap_ns = 0;
    machine_watch_start();
    start_load();
    /* What this machine does to the same flow when nobody is killed. */
    MEASURE = 1;
    const uint64_t read_before = all_read();
    const uint64_t begin_ms = test_now_ms();
    test_sleep_ms(1000);
    const uint64_t rate = (all_read() - read_before) * 1000 / (test_now_ms() - begin_ms);
    const uint64_t usual_ns = longest_gap_ns();
    for (unsigned round = 1; round <= rounds; round++) {
        MEASURE = 1 + round;
        uint64_t delays_ns[SERVICES];
        for (unsigned i = 0; i < SERVICES; i++) {
            delays_ns[i] = machine_run_delay_ns(pids[i]);
        }
        cluster_kill(&cluster);
        test_sleep_ms(round % 2 == 0 ? FULL_OR(3000, 500) : 0);
        assert_int_equal(cluster_start(&cluster), 0);
        const uint64_t up_ms = test_now_ms();
        wait_until_whole(up_ms);
        /* What the services waited for a core, not for the daemon, is not its doing. */
        const uint64_t delay_ms = longest_delay_ms(delays_ns);
        const uint64_t whole_ms = test_now_ms() - up_ms;
        const uint64_t took_ms = whole_ms > delay_ms ? whole_ms - delay_ms : 0;
        slowest_ms = took_ms > slowest_ms ? took_ms : slowest_ms;
        const uint64_t longest_ns = longest_gap_ns();
        gap_ns = longest_ns > gap_ns ? longest_ns : gap_ns;
        /* Both ends of each link have told of it. */
        while (raw_status(cluster.socket, "links") != PAIRS) {
            assert_true(test_now_ms() - up_ms < NODE_MS);
            test_sleep_ms(10);
        }
    }
    end_load();
    (void)machine_watch_stop();
    print_message("load: %llu messages a second; longest gap %llu us, %llu us without a kill; "
                  "directory whole within %llu ms\n",
                  (unsigned long long)rate, (unsigned long long)gap_ns / 1000,
                  (unsigned long long)usual_ns / 1000, (unsigned long long)slowest_ms);
    assert_true(slowest_ms <= BACK_MS);
    assert_true(gap_ns <= GAP_NS || gap_ns <= 2 * usual_ns);
}

/* ---- a crowd ------------------------------------------------------------------------------- */

static struct node crowd[CROWD];

static void test_a_crowd_comes_back_at_once(void **state)
{
    (void)state;
    unsigned back = 0;
    for (unsigned i = 0; i < CROWD; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, SERVICE "/%u", i + 1);
        struct ringbus_options options = node_options(&cluster, path);
        options.lane_bytes = 4096;
        options.refs_per_link = 16;
        options.pool[0] = (struct ringbus_pool_class){64, 1};
        crowd[i].on_event = NULL;
        node_open_with(&crowd[i], &options);
    }
    cluster_kill(&cluster);
    assert_int_equal(
        cluster_configure(&cluster, "quota: {instances: 1000, connections: 4096, connects: 10}\n"),
        0);
    assert_int_equal(cluster_start(&cluster), 0);
    const uint64_t up_ms = test_now_ms();
    while (back < CROWD) {
        back = 0;
        for (unsigned i = 0; i < CROWD; i++) {
            assert_true(ringbus_poll(crowd[i].bus, 10) >= 0);
            back += crowd[i].events[RINGBUS_EVENT_DAEMON_BACK];
        }
        test_sleep_ms(1);
        if (test_now_ms() - up_ms >= NODE_MS) {
            print_message("crowd: %u of %u\n", back, CROWD);
            assert_true(back == CROWD);
        }
    }
    const uint64_t took_ms = test_now_ms() - up_ms;
    print_message("crowd: %u endpoints of one user back within %llu ms\n", CROWD,
                  (unsigned long long)took_ms);
    assert_int_equal(raw_status(cluster.socket, "connections_refused"), 0);
    assert_int_equal(raw_status(cluster.socket, "endpoints"), CROWD);
    assert_true(took_ms <= BACK_MS);
    for (unsigned i = 0; i < CROWD; i++) {
        node_close(&crowd[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, MANY_KEYS);
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed_under_load, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_crowd_comes_back_at_once, setup, teardown),
    };
    bus_shared_reset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
