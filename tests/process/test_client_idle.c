/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a link takes as long as no message has gone over it, and what the first one adds: most
 * links of most endpoints are idle most of the time.
 *
 * The other ends live in another process, so that everything that is counted is of one side.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER  "/game/eu/pc/w1/core/peer"
#define LINKS 32U
#define BIG   100000U /* by reference: more than a lane */

enum { WORD_OPEN, WORD_END, WORD_TALK, WORD_RECEIVED };

static struct cluster cluster;
static struct node a;
static pid_t peers;

/* ---- the other ends -------------------------------------------------------------------------- */

static void on_message(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    for (size_t i = 0; i < message->size; i++) {
        CHECK(((const unsigned char *)message->data)[i] == 7);
    }
    atomic_fetch_add(&bus_shared[WORD_RECEIVED], 1);
}

static void be_peers(const struct cluster *at, void *context)
{
    static struct node nodes[LINKS];
    static unsigned char big[BIG];
    struct node *all[LINKS];
    uint64_t talked = 0;
    (void)context;
    for (unsigned i = 0; i < LINKS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, PEER "/%u", i + 1);
        struct ringbus_options options = node_options(at, path);
        options.ping_interval_ms = 20;
        options.ping_misses = 100;
        nodes[i].on_message = on_message;
        node_open_with(&nodes[i], &options);
        all[i] = &nodes[i];
    }
    atomic_store(&bus_shared[WORD_OPEN], 1);
    while (atomic_load(&bus_shared[WORD_END]) == 0) {
        nodes_step(all, LINKS);
        for (; talked < atomic_load(&bus_shared[WORD_TALK]); talked++) {
            for (unsigned i = 0; i < LINKS; i++) {
                const size_t size = talked == 0 ? 1 : BIG;
                CHECK(ringbus_send(nodes[i].bus, &nodes[i].peer, 0, big, size, 0) == 1);
            }
        }
    }
    for (unsigned i = 0; i < LINKS; i++) {
        node_close(&nodes[i]);
    }
}

/* ---- what our side takes --------------------------------------------------------------------- */

struct taken {
    unsigned fds;
    unsigned maps;
    uint64_t kib; /* proportional: a page that two map is half each one's */
};

static struct taken taken_now(void)
{
    char line[256];
    struct taken taken = {.fds = bus_fd_count(), .maps = bus_map_count()};
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Pss:", 4) == 0) {
            taken.kib = strtoul(line + 4, NULL, 10);
        }
    }
    (void)fclose(file);
    return taken;
}

static void assert_taken(const char *what, struct taken before, unsigned fds, unsigned maps)
{
    const struct taken now = taken_now();
    print_message("%s: %u descriptors, %u mappings, %.1f KiB a link\n", what,
                  (now.fds - before.fds) / LINKS, (now.maps - before.maps) / LINKS,
                  (double)(int64_t)(now.kib - before.kib) / LINKS);
    /* And one of each for all of them together: where their calls are counted. */
    assert_int_equal(now.fds - before.fds, fds * LINKS + 1);
    assert_int_equal(now.maps - before.maps, maps * LINKS + 1);
}

static void send_to_each(const unsigned char *data, size_t size, uint64_t received)
{
    for (unsigned i = 0; i < LINKS; i++) {
        struct ringbus_addr to = a.peer;
        to.instance = (int32_t)i + 1;
        to.incarnation = 0;
        CHECK(ringbus_send(a.bus, &to, 0, data, size, 0) == 1);
        /* One chunk at a time, whatever the pool has. */
        RUN_UNTIL(atomic_load(&bus_shared[WORD_RECEIVED]) == received + i + 1, NODE_MS, &a);
    }
}

static void test_idle_link_takes_little(void **state)
{
    (void)state;
    static unsigned char payload[BIG];
    memset(payload, 7, sizeof payload);
    struct ringbus_options options = node_options(&cluster, NULL);
    options.ping_interval_ms = 20;
    options.ping_misses = 100;
    node_open_with(&a, &options);
    const struct taken before = taken_now();
    CHECK(ringbus_target(a.bus, PEER, NULL, NULL) == 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == LINKS, NODE_MS, &a);
    assert_taken("idle", before, 2, 3);
    if (TEST_SCALE == 1) { /* sanitizers keep books of their own */
        assert_true(taken_now().kib - before.kib <= LINKS * UINT64_C(24));
    }

    /* Each first message maps what it needs, once. */
    for (unsigned i = 0; i < 2; i++) {
        send_to_each(payload, 40, i * LINKS);
        assert_taken("sent", before, 2, 4);
    }
    send_to_each(payload, BIG, 2 * LINKS);
    assert_taken("sent by reference", before, 2, 4);
    atomic_store(&bus_shared[WORD_TALK], 1);
    RUN_UNTIL(a.messages == LINKS, NODE_MS, &a);
    assert_taken("received", before, 2, 5);
    for (unsigned i = 2; i <= 3; i++) {
        atomic_store(&bus_shared[WORD_TALK], i);
        RUN_UNTIL(a.messages == i * LINKS, NODE_MS, &a);
        assert_taken("received by reference", before, 1, 6);
    }

    atomic_store(&bus_shared[WORD_END], 1);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == LINKS, NODE_MS, &a);
    CHECK(ringbus_poll(a.bus, 10) >= 0);
    assert_taken("gone", before, 0, 0);
    node_close(&a);
    assert_int_equal(bus_map_count(), 0);
}

static int setup(void **state)
{
    (void)state;
    if (cluster_up(&cluster, "{}\n") != 0) {
        return -1;
    }
    bus_shared_reset();
    peers = child_start(be_peers, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_OPEN]) == 1, NODE_MS, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    atomic_store(&bus_shared[WORD_END], 1);
    const int ended = child_wait(peers, NODE_MS);
    cluster_down(&cluster);
    return ended;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_idle_link_takes_little, setup, teardown),
    };
    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
