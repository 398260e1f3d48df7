/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that gets no memory at the worst of times: what it cannot tell a client ends that
 * client's connection, also when that is the one whose message is being handled. The daemon
 * runs in this process, so that the moment can be chosen.
 */
#include "bus/wire.h"
#include "daemon/daemon.h"
#include "shm/handoff.h"
#include "support/test.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ECHO_1 "/game/eu/pc/w1/core/echo/1"

static struct rbi_daemon daemon_here;
static char folder[32];
static char socket_path[64];
static bool out_of_memory;

void *__real_malloc(size_t size); /* NOLINT(bugprone-reserved-identifier): the linker's names */
void *__wrap_malloc(size_t size); /* NOLINT(bugprone-reserved-identifier) */

void *__wrap_malloc(size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    return out_of_memory ? NULL : __real_malloc(size);
}

void __real_free(void *p); /* NOLINT(bugprone-reserved-identifier) */
void __wrap_free(void *p); /* NOLINT(bugprone-reserved-identifier) */

/** What is used after it was freed is not found as it was. */
void __wrap_free(void *p) /* NOLINT(bugprone-reserved-identifier) */
{
    if (p != NULL) {
        memset(p, 0, malloc_usable_size(p));
    }
    __real_free(p);
}

static void turn(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(rbi_loop_turn(daemon_here.loop, 0), 0);
    }
}

static int setup(void **state)
{
    struct rbi_daemon_options options = {.socket_path = socket_path};
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/ringbus-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(socket_path, sizeof socket_path, "%s/bus.sock", folder);
    rbi_config_defaults(&options.config);
    options.config.daemon.loop = RBI_LOOP_EPOLL;
    options.config.daemon.log_level = RBI_LOG_ERROR;
    options.config.quota.control_per_s = 1000000;
    options.config.quota.user_control_per_s = 10000000;
    return rbi_daemon_init(&daemon_here, &options);
}

static int teardown(void **state)
{
    char lock[80];
    (void)state;
    rbi_daemon_deinit(&daemon_here);
    (void)snprintf(lock, sizeof lock, "%s.lock", socket_path);
    (void)unlink(lock);
    (void)snprintf(lock, sizeof lock, "%s.names", socket_path);
    (void)unlink(lock);
    (void)snprintf(lock, sizeof lock, "%s.clusters", socket_path);
    (void)unlink(lock);
    return rmdir(folder);
}

static void say(int fd, enum rbi_wire_type type, const void *body, const int *fds)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    const size_t size = rbi_wire_encode(type, body, 1, 0, frame);
    assert_int_equal(rbi_handoff_send(fd, frame, size, fds, rbi_wire_type_fds((unsigned)type)), 0);
}

static int greet(void)
{
    const struct rbi_wire_hello hello = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                         .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                         .fingerprint = rbi_layout_fingerprint()};
    const int fd = rbi_handoff_connect(socket_path);
    assert_true(fd >= 0);
    say(fd, RBI_WIRE_HELLO, &hello, NULL);
    turn(3);
    return fd;
}

/** Only says it: the daemon has not had its turn. */
static void say_register(int fd, const struct rbi_segment *page, const struct rbi_segment *pool)
{
    struct rbi_wire_registration body = {.weight = 1,
                                         .state = RBI_ENDPOINT_READY,
                                         .page_bytes = page->size,
                                         .pool_bytes = pool->size};
    const int fds[] = {page->fd, pool->fd};
    rbi_text_set(&body.path, ECHO_1);
    say(fd, RBI_WIRE_REGISTER, &body, fds);
}

/* It registers where one has just died, and watches that: the news of the death does not reach
 * it, which ends it in the middle of its own REGISTER. */
static void test_news_that_ends_whoever_asks(void **state)
{
    struct rbi_segment page = RBI_SEGMENT_NULL;
    struct rbi_segment pool = RBI_SEGMENT_NULL;
    struct rbi_wire_watch watch;
    (void)state;
    assert_int_equal(rbi_segment_create(&page, "page", RBI_SEGMENT_PAGE, RBI_PAGE, 0), 0);
    assert_int_equal(rbi_segment_create(&pool, "pool", RBI_SEGMENT_POOL, RBI_PAGE, 0), 0);
    const int holder = greet();
    say_register(holder, &page, &pool);
    turn(3);
    assert_int_equal(daemon_here.registry.endpoint_count, 1);
    const int next = greet();
    const struct rbi_peer *peer =
        RBI_CONTAINER_OF(daemon_here.peers.all.prev, struct rbi_peer, in_peers);
    rbi_text_set(&watch.prefix, ECHO_1);
    while (peer->out_count == 0) { /* until what it does not read has to wait */
        say(next, RBI_WIRE_WATCH, &watch, NULL);
        turn(2);
    }
    say_register(next, &page, &pool);
    (void)close(holder);
    out_of_memory = true;
    turn(3);
    out_of_memory = false;
    assert_int_equal(daemon_here.peers.count, 0);
    assert_int_equal(daemon_here.registry.endpoint_count, 0);
    (void)close(next);
    /* The address is free. */
    const int third = greet();
    say_register(third, &page, &pool);
    turn(3);
    assert_int_equal(daemon_here.registry.endpoint_count, 1);
    (void)close(third);
    turn(3);
    rbi_segment_deinit(&page);
    rbi_segment_deinit(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_news_that_ends_whoever_asks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
