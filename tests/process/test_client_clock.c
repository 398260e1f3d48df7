/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 42: the wall clock jumps, for daemon and clients: by an hour, to 1970, to 2038, many
 * times a second. Links stay, requests are answered and time out when they should, a quota
 * gives out what it would have given. The program runs itself again under wall_clock.c.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PEER_1      "/game/eu/pc/w1/core/peer/1"
#define MAIN_1      "/game/eu/pc/w1/core/main/1"
#define INTERVAL_MS 200U
#define TIMEOUT_MS  300U
#define CONNECTS    10U /* a second; ten times as many in a burst */

static struct cluster cluster;
static _Atomic int64_t *off_s;
static struct node node;

static void jump(uint64_t *seed)
{
    const int64_t now_s = (int64_t)time(NULL) - atomic_load(off_s);
    const int64_t places[] = {0,
                              3600,
                              -3600,
                              -now_s,
                              INT64_C(0x7fffffff) - now_s,
                              INT64_C(0x80000010) - now_s,
                              (int64_t)(bus_random(seed) % 100000)};
    atomic_store(off_s, places[bus_random(seed) % RBI_ARRAY_SIZE(places)]);
}

static void answer(struct node *self, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST && message->size == 3) { /* "ask"; not "void" */
        CHECK(ringbus_reply(self->bus, &message->reply_to, "ok", 2, 0) == 1);
    }
}

static void peer_main(const struct cluster *at, void *context)
{
    static struct node peer = {.on_message = answer};
    (void)context;
    struct ringbus_options options = node_options(at, PEER_1);
    options.ping_interval_ms = INTERVAL_MS;
    node_open_with(&peer, &options);
    CHECK(ringbus_target(peer.bus, MAIN_1, NULL, NULL) == 0);
    for (;;) {
        CHECK(ringbus_wait(peer.bus, -1) >= 0);
        CHECK(ringbus_poll(peer.bus, 100) >= 0);
        CHECK(peer.events[RINGBUS_EVENT_SUSPECT] + peer.events[RINGBUS_EVENT_DAEMON_LOST] == 0);
        CHECK(peer.events[RINGBUS_EVENT_DOWN] == 0 || peer.reason == RINGBUS_REASON_LEFT);
    }
}

static uint64_t late_ms; /* the most by which a timeout came late */

static void on_void(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    unsigned *count = context;
    (void)bus;
    CHECK(result->outcome == RINGBUS_UNKNOWN && result->error == RINGBUS_E_TIMEOUT);
    CHECK(result->elapsed_ns >= TIMEOUT_MS * UINT64_C(1000000)); /* never early */
    const uint64_t over_ms = result->elapsed_ns / 1000000 - TIMEOUT_MS;
    late_ms = over_ms > late_ms ? over_ms : late_ms;
    ++*count;
}

/* What daemon and clients have read so far is the wrong time: the shim is in them. */
static bool is_preloaded(pid_t pid)
{
    char path[64];
    char line[512];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strstr(line, "wall_clock") != NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

static void test_wall_clock_jumps(void **state)
{
    (void)state;
    uint64_t seed = 42;
    unsigned voids = 0;
    unsigned timed_out = 0;
    unsigned asked = 0;
    unsigned admitted = 0;
    unsigned refused = 0;
    bus_shared_reset();
    assert_true(is_preloaded(cluster.pid));
    const pid_t pid = child_start(peer_main, &cluster, NULL);
    struct ringbus_options options = node_options(&cluster, MAIN_1);
    options.ping_interval_ms = INTERVAL_MS;
    node_open_with(&node, &options);
    const struct ringbus_addr peer = node_target(&node, PEER_1, 1, NULL);
    atomic_store(off_s, 3600);
    const int64_t before_s = (int64_t)time(NULL);
    atomic_store(off_s, 0);
    assert_true(before_s - (int64_t)time(NULL) >= 3599); /* the jumps are real */

    const uint64_t start_ms = test_now_ms();
    const uint64_t end_ms = start_ms + FULL_OR(60000U, 6000U);
    while (test_now_ms() < end_ms) {
        struct node *const nodes[] = {&node};
        jump(&seed);
        if (asked % 10 == 0) {
            voids++;
            CHECK(ringbus_request(node.bus, &peer, 0, "void", 4, 0, TIMEOUT_MS, on_void,
                                  &timed_out) == 1);
        }
        asked++;
        CHECK(ringbus_request(node.bus, &peer, 0, "ask", 3, 0, 5000, node_on_result, &node) == 1);
        RUN_UNTIL(node.replies[RINGBUS_REPLIED] == asked, NODE_MS, &node);
        /* Connections, as fast as they are let in. */
        struct ringbus_options more = node_options(&cluster, NULL);
        struct ringbus *bus = NULL;
        more.connect_timeout_ms = 1000;
        if (ringbus_open(&more, &bus) == 0) {
            admitted++;
            CHECK(ringbus_close(bus, 0) == 0);
        } else {
            refused++;
        }
        nodes_step(nodes, 1);
        test_sleep_ms(5);
    }
    const uint64_t took_ms = test_now_ms() - start_ms;
    RUN_UNTIL(timed_out == voids, NODE_MS, &node);
    const uint64_t most = CONNECTS * 10 + CONNECTS * took_ms / 1000 + 2;
    print_message(
        "%u answered, %u timed out, at most %u ms late; %u connected (quota %u), %u not\n", asked,
        timed_out, (unsigned)late_ms, admitted, (unsigned)most, refused);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(node.events[RINGBUS_EVENT_SUSPECT], 0);
    assert_int_equal(node.events[RINGBUS_EVENT_DAEMON_LOST], 0);
    assert_true(late_ms < 500 + machine_paused_ns(0, UINT64_MAX) / 1000000);
    assert_true(refused > 0); /* the quota was reached */
    assert_true(admitted <= most);
    assert_true(admitted + CONNECTS >= most * 3 / 4);
    assert_int_equal(node_stats(&node).links, 1);
    node_close(&node);
    child_kill(pid);
}

static int set_up(void **state)
{
    (void)state;
    char config[128];
    machine_watch_start();
    (void)snprintf(config, sizeof config, "daemon: {return_time: 0s}\nquota: {connects: %u}\n",
                   CONNECTS);
    return cluster_up(&cluster, config);
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    (void)machine_watch_stop();
    return unlink(getenv("RINGBUS_TEST_WALL"));
}

/* In the first life: makes the word for the offset, and runs itself again with the shim. */
static int preload(char **argv)
{
    char path[] = "/tmp/ringbus-wall-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, sizeof *off_s) != 0 || setenv("RINGBUS_TEST_WALL", path, 1) != 0 ||
        setenv("LD_PRELOAD", WALL_CLOCK_PATH, 1) != 0) {
        return 1;
    }
    (void)close(fd);
    (void)execv("/proc/self/exe", argv);
    return 1;
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *path = getenv("RINGBUS_TEST_WALL");
    if (path == NULL) {
        return preload(argv);
    }
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *word =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *off_s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (word == MAP_FAILED) {
        return 1;
    }
    off_s = word;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wall_clock_jumps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
