/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 47, beside a large pool: the death of a client whose memory takes long to free is
 * told at once, and meanwhile the daemon serves the others. What the loop itself spends on it
 * is measured, which is the same on a busy machine.
 */
#include "bus/record.h"
#include "support/loops.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ECHO_1     "/game/eu/pc/w1/core/echo/1"
#define FRONT_1    "/game/eu/pc/w1/core/front/1"
#define POOL_BYTES (UINT64_C(128) << 20)
#define ROUNDS     3U

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

/** CPU time of the daemon's first thread, which is its loop. */
static uint64_t loop_ns(void)
{
    char path[64];
    char text[128] = {0};
    unsigned long long cpu_ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)loops_cluster.pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    (void)close(fd);
    assert_int_equal(sscanf(text, "%llu", &cpu_ns), 1);
    return cpu_ns;
}

static void up_with_pool(struct raw *raw, const char *path, uint64_t pool_bytes)
{
    struct raw_message message;
    struct rbi_wire_registration body = {
        .state = RBI_ENDPOINT_READY, .weight = 1, .pool_bytes = pool_bytes};
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_connect(raw, socket_path()), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw->registered = message.body.registered;
}

/** @return what the loop spends on the end of a client with such a pool, until all is freed */
static uint64_t death_costs_ns(uint64_t pool_bytes)
{
    struct raw server;
    struct raw client;
    struct raw_message message;
    uint64_t link_id = 0;
    assert_int_equal(raw_up(&server, socket_path(), ECHO_1), 0);
    up_with_pool(&client, FRONT_1, pool_bytes);
    assert_int_equal(raw_link(&client, &server, &link_id), 0);
    const int fds = cluster_fd_count(&loops_cluster);
    /* The last who holds the pool is the daemon, as after the death of a process. */
    rbi_segment_deinit(&client.pool);
    client.pool = (struct rbi_segment)RBI_SEGMENT_NULL;
    const uint64_t before_ns = loop_ns();
    raw_close(&client);
    assert_int_equal(raw_expect(&server, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.link_down.link_id, link_id);
    /* Served at once: the answer does not wait for the pages. */
    assert_int_equal(raw_set_state(&server, RBI_ENDPOINT_BUSY), 0);
    /* Socket, process, page, pool; and what it was closing when they were counted. */
    const uint64_t end_ms = test_now_ms() + RAW_TIMEOUT_MS;
    while (cluster_fd_count(&loops_cluster) > fds - 4) {
        assert_true(test_now_ms() < end_ms);
        test_sleep_ms(2);
    }
    const uint64_t cost_ns = loop_ns() - before_ns;
    raw_close(&server);
    return cost_ns;
}

static void test_large_pool_is_freed_beside_the_loop(void **state)
{
    assert_int_equal(loops_up(state, "log_level: error", ""), 0);
    uint64_t small_ns = 0;
    uint64_t large_ns = UINT64_MAX;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint64_t small = death_costs_ns(UINT64_C(64) << 10);
        const uint64_t large = death_costs_ns(POOL_BYTES);
        small_ns = small > small_ns ? small : small_ns;
        large_ns = large < large_ns ? large : large_ns;
    }
    print_message("a death costs the loop %llu us, with a pool of 128 MiB %llu us\n",
                  (unsigned long long)small_ns / 1000, (unsigned long long)large_ns / 1000);
    /* Freeing takes some 15 ms. */
    assert_true(large_ns < small_ns + 3000000);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_large_pool_is_freed_beside_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
