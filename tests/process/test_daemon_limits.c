/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas, floods, running out of descriptors, and what is left after all that: nothing. */
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define ECHO_1 ECHO "/1"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

/** Connects and greets; wants a refusal whose text names the quota, its limit and the user. */
static void assert_connect_refused(const char *quota)
{
    struct raw raw;
    struct rbi_text text;
    char user[32];
    (void)snprintf(user, sizeof(user), "uid %u", (unsigned)geteuid());
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_expect_error_text(&raw, &text), RBI_CODE_QUOTA);
    assert_non_null(strstr(text.bytes, quota));
    assert_non_null(strstr(text.bytes, "limit"));
    assert_non_null(strstr(text.bytes, user));
    assert_true(raw_closed(&raw, 500));
    raw_close(&raw);
}

static void test_connection_quota(void **state)
{
    struct raw raws[4];
    assert_int_equal(loops_up(state, "", "quota: {connections: 4}\n"), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(raw_connect(&raws[i], socket_path()), 0);
        assert_int_equal(raw_hello(&raws[i]), 0);
    }
    assert_connect_refused("quota.connections");
    assert_int_equal(raw_register(&raws[0], ECHO_1, RBI_ENDPOINT_READY), 0);
    raw_close(&raws[3]);
    /* Its place is free again, as soon as its end has been noticed. */
    const uint64_t deadline_ms = test_now_ms() + 1000;
    int result = -1;
    do {
        assert_int_equal(raw_connect(&raws[3], socket_path()), 0);
        result = raw_hello(&raws[3]);
        if (result < 0) {
            raw_close(&raws[3]);
        }
    } while (result < 0 && test_now_ms() < deadline_ms);
    assert_int_equal(result, 0);
    for (unsigned i = 0; i < 4; i++) {
        raw_close(&raws[i]);
    }
}

static void test_connect_rate(void **state)
{
    assert_int_equal(loops_up(state, "return_time: 0s", "quota: {connects: 1}\n"), 0);
    for (unsigned i = 0; i < 10; i++) { /* burst */
        struct raw raw;
        assert_int_equal(raw_connect(&raw, socket_path()), 0);
        assert_int_equal(raw_hello(&raw), 0);
        raw_close(&raw);
    }
    assert_connect_refused("quota.connects");
    char refused[96];
    (void)snprintf(refused, sizeof(refused),
                   "event=connection_refused uid=%u pid=%d why=", (unsigned)geteuid(),
                   (int)getpid());
    assert_true(cluster_log_wait(&loops_cluster, refused, 3000));
}

static void assert_register_quota(struct raw *raw, const char *path, const char *quota)
{
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    struct rbi_text text;
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_expect_error_text(raw, &text), RBI_CODE_QUOTA);
    assert_non_null(strstr(text.bytes, quota));
}

static void test_instance_and_byte_quotas(void **state)
{
    struct raw a;
    struct raw b;
    assert_int_equal(loops_up(state, "", "quota: {instances: 1}\n"), 0);
    assert_int_equal(raw_up(&a, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_connect(&b, socket_path()), 0);
    assert_int_equal(raw_hello(&b), 0);
    const int fds = cluster_fd_count(&loops_cluster);
    assert_register_quota(&b, ECHO "/2", "quota.instances");
    /* What came with the refused request is closed after the answer. */
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds), fds);
    raw_close(&a);
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds - 4), fds - 4);
    assert_int_equal(raw_register(&b, ECHO "/2", RBI_ENDPOINT_READY), 0);
    raw_close(&b);
    cluster_down(&loops_cluster);

    assert_int_equal(loops_up(state, "", "quota: {bytes: 1MiB}\n"), 0);
    static const uint64_t pool_kb[] = {252, 252, 252, 256, 252};
    struct raw raws[5];
    for (unsigned i = 0; i < 5; i++) { /* with its page, 256 KiB each; the fourth is too much */
        struct raw_message message;
        struct rbi_wire_registration body = {
            .weight = 1, .state = RBI_ENDPOINT_READY, .pool_bytes = pool_kb[i] * 1024};
        rbi_text_format(&body.path, ECHO "/%u", i + 1);
        assert_int_equal(raw_connect(&raws[i], socket_path()), 0);
        assert_int_equal(raw_hello(&raws[i]), 0);
        assert_int_equal(raw_send_register(&raws[i], &body), 0);
        const enum rbi_wire_type answer = i == 3 ? RBI_WIRE_ERROR : RBI_WIRE_REGISTERED;
        assert_int_equal(raw_expect(&raws[i], answer, &message, RAW_TIMEOUT_MS), 0);
        if (i == 3) {
            assert_int_equal(message.body.error.code, RBI_CODE_QUOTA);
            assert_non_null(strstr(message.body.error.text.bytes, "quota.bytes"));
        }
    }
    /* A side is charged as well. */
    const uint64_t id = rbi_cluster_id(ECHO, strlen(ECHO));
    assert_int_equal(raw_introduce(&raws[0], id, 2, 0), 0);
    assert_int_equal(raw_expect_error(&raws[0]), RBI_CODE_QUOTA);
    for (unsigned i = 0; i < 5; i++) {
        raw_close(&raws[i]);
    }
}

static void test_link_quota(void **state)
{
    struct raw a;
    struct raw b;
    struct raw c;
    struct raw_message message;
    uint64_t link_id = 0;
    assert_int_equal(loops_up(state, "", "quota: {links: 1}\n"), 0);
    assert_int_equal(raw_up(&a, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_up(&b, socket_path(), ECHO "/2"), 0);
    assert_int_equal(raw_up(&c, socket_path(), ECHO "/3"), 0);
    assert_int_equal(raw_link(&a, &b, &link_id), 0);
    assert_int_equal(raw_introduce(&a, c.registered.cluster, 3, 0), 0);
    assert_int_equal(raw_expect_error(&a), RBI_CODE_QUOTA);
    assert_int_equal(raw_introduce(&c, b.registered.cluster, 2, 0), 0);
    assert_int_equal(raw_expect_error(&c), RBI_CODE_QUOTA);
    const struct rbi_wire_link_down down = {.link_id = link_id, .reason = RBI_REASON_UNTARGETED};
    assert_int_equal(raw_send(&a, RBI_WIRE_LINK_DOWN, &down, NULL, 0), 0);
    assert_int_equal(raw_expect(&b, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(raw_link(&a, &c, NULL), 0);
    raw_close(&a);
    raw_close(&b);
    raw_close(&c);
}

/* A client that asks too fast is made to wait, and loses nothing; another one does not notice. */
static void test_control_rate(void **state)
{
    struct raw fast;
    struct raw other;
    struct raw_message message;
    const struct rbi_wire_set_state body = {.state = RBI_ENDPOINT_BUSY};
    assert_int_equal(loops_up(state, "", "quota: {control: 50}\n"), 0);
    assert_int_equal(raw_up(&fast, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_up(&other, socket_path(), ECHO "/2"), 0);
    const uint64_t before_ms = test_now_ms();
    for (unsigned i = 0; i < 150; i++) {
        assert_int_equal(raw_send(&fast, RBI_WIRE_SET_STATE, &body, NULL, 0), 0);
    }
    const uint64_t ask_ms = test_now_ms();
    assert_int_equal(raw_set_state(&other, RBI_ENDPOINT_BUSY), 0);
    assert_true(test_now_ms() - ask_ms < 100);
    for (unsigned i = 0; i < 150; i++) {
        assert_int_equal(raw_expect(&fast, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    }
    /* 152 messages, 100 of them at once, the rest at 50 a second. */
    assert_in_range(test_now_ms() - before_ms, 900, 1600);
    /* Who it was, and what it used up (features 2.11). */
    char slowed[128];
    (void)snprintf(slowed, sizeof(slowed), "event=control_slowed path=" ECHO_1 " uid=%u pid=%d ",
                   (unsigned)geteuid(), (int)getpid());
    assert_int_equal(cluster_log_count(&loops_cluster, slowed), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "quota.control is used up: limit 50 "), 1);
    /* While it waits its end is noticed all the same, and what it said last is heard. */
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(raw_send(&fast, RBI_WIRE_SET_STATE, &body, NULL, 0), 0);
    }
    const struct rbi_wire_set_state closed = {.state = RBI_ENDPOINT_CLOSED};
    assert_int_equal(raw_send(&fast, RBI_WIRE_SET_STATE, &closed, NULL, 0), 0);
    assert_int_equal(raw_watch(&other, RBI_WIRE_TARGET, ECHO_1), 0);
    assert_int_equal(raw_expect(&other, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    raw_close(&fast);
    do {
        assert_int_equal(raw_expect(&other, RBI_WIRE_EVENT, &message, 500), 0);
    } while (message.body.event.change != RBI_CHANGE_REMOVED);
    assert_int_equal(message.body.event.reason, RBI_REASON_LEFT);
    raw_close(&other);
}

/* ---- scenario 33: out of descriptors --------------------------------------------------- */

static void limit_fds(void *context)
{
    const rlim_t max = *(const rlim_t *)context;
    const struct rlimit limit = {.rlim_cur = max, .rlim_max = max};
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/** 100 clients at a daemon that has descriptors for a few. */
static void starve(rlim_t max)
{
    struct raw server;
    struct raw raws[100];
    unsigned served = 0;
    loops_cluster.before_exec = limit_fds;
    loops_cluster.context = &max;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    const int before = loops_idle_fds();
    assert_int_equal(raw_up(&server, socket_path(), ECHO_1), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(raw_connect(&raws[i], socket_path()), 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        struct rbi_wire_hello hello = {
            .protocol_min = 1, .protocol_max = 1, .fingerprint = rbi_layout_fingerprint()};
        struct raw_message message;
        (void)raw_send(&raws[i], RBI_WIRE_HELLO, &hello, NULL, 0);
        /* Everybody gets an answer: yes, or no with the reason. */
        assert_int_equal(raw_receive(&raws[i], &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_HELLO_OK) {
            served++;
        } else {
            assert_int_equal(message.header.type, RBI_WIRE_ERROR);
            assert_int_equal(message.body.error.code, RBI_CODE_NO_FDS);
        }
        raw_message_deinit(&message);
    }
    assert_in_range(served, 5, 60);
    /* Idle, although it can take nobody. */
    const long cpu = cluster_cpu_ticks(&loops_cluster);
    const uint64_t start_ms = test_now_ms();
    struct raw late;
    assert_int_equal(raw_connect(&late, socket_path()), 0);
    test_sleep_ms(400);
    const long used = cluster_cpu_ticks(&loops_cluster) - cpu;
    assert_true(used * 10 <= (long)(test_now_ms() - start_ms) / 20 + 10);
    raw_close(&late);
    /* The established are served as ever. */
    assert_int_equal(raw_set_state(&server, RBI_ENDPOINT_BUSY), 0);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=cannot_accept"), 1);
    for (unsigned i = 0; i < 100; i++) {
        raw_close(&raws[i]);
    }
    raw_close(&server);
    assert_int_equal(cluster_fd_wait(&loops_cluster, before), before);
    struct raw again;
    const uint64_t deadline_ms = test_now_ms() + 1000;
    int result = -1;
    while (result < 0 && test_now_ms() < deadline_ms) {
        result = raw_up(&again, socket_path(), ECHO_1);
        raw_close(&again);
    }
    assert_int_equal(result, 0);
}

/* Each value, so that each call that needs one is the first to fail; half of them on each loop. */
static void test_out_of_descriptors(void **state)
{
    const rlim_t first = strcmp(*state, "epoll") == 0 ? 65 : 64;
    for (rlim_t max = first; max <= 80; max += 2) {
        assert_int_equal(loops_make(state, "handshake_timeout: 30s", ""), 0);
        starve(max);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
        cluster_down(&loops_cluster);
    }
}

/* Too few to start with: it says so and ends. */
static void test_hardly_any_descriptors(void **state)
{
    for (rlim_t max = 4; max < 16; max++) {
        assert_int_equal(loops_make(state, "", ""), 0);
        const char *arguments[] = {
            "--config", loops_cluster.config, "--socket", loops_cluster.socket, "--check", NULL};
        loops_cluster.before_exec = limit_fds;
        loops_cluster.context = &max;
        assert_int_equal(cluster_run_daemon(&loops_cluster, arguments), 0);
        if (cluster_start(&loops_cluster) == 0) {
            assert_int_equal(cluster_stop(&loops_cluster), 0);
        }
        cluster_down(&loops_cluster);
    }
}

/* ---- nothing is left ------------------------------------------------------------------- */

static long memory_kb(void)
{
    char path[64];
    char line[256];
    long kb = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)loops_cluster.pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtol(line + 6, NULL, 10);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return kb;
}

static void leak_round(unsigned round)
{
    struct raw server;
    struct raw client;
    char path[128];
    /* Ever new names: what is empty must be forgotten in the end. */
    (void)snprintf(path, sizeof(path), "/game/eu/pc/w1/core/echo%u/1", round);
    assert_int_equal(raw_up(&server, socket_path(), path), 0);
    assert_int_equal(raw_up(&client, socket_path(), ""), 0);
    assert_int_equal(raw_watch(&client, RBI_WIRE_WATCH, "/game"), 0);
    if (round % 3 == 0) {
        assert_int_equal(raw_introduce(&client, server.registered.cluster, 1, 0), 0);
    } else {
        assert_int_equal(raw_link(&client, &server, NULL), 0);
    }
    if (round % 2) {
        raw_close(&client);
        raw_close(&server);
    } else {
        raw_close(&server);
        raw_close(&client);
    }
}

static void test_nothing_leaks(void **state)
{
    /* Nobody's slots are waited for: what is known then depends on how fast this machine is. */
    assert_int_equal(loops_up(state, "log_level: error",
                              "quota: {connects: 10000, control: 100000}\n"
                              "clusters: [{match: /**, balance: {rehash_delay: 0s}}]\n"),
                     0);
    const int fds = loops_idle_fds();
    for (unsigned round = 0; round < 600; round++) {
        leak_round(round);
    }
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds), fds);
    const long memory = memory_kb();
    for (unsigned round = 600; round < 1600; round++) {
        leak_round(round);
    }
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds), fds);
    if (!SANITIZED) { /* which keeps freed memory on purpose */
        assert_in_range(memory_kb(), 1, memory + 128);
    }
    assert_int_equal(raw_status(socket_path(), "endpoints"), 0);
    assert_int_equal(raw_status(socket_path(), "links"), 0);
    assert_int_equal(raw_status(socket_path(), "watches"), 0);
    /* Those in which somebody died have the time of balance.rehash_delay, 3 s, to be forgotten. */
    const uint64_t end_ms = test_now_ms() + 10000;
    while (raw_status(socket_path(), "clusters") > 256 && test_now_ms() < end_ms) {
        test_sleep_ms(10);
    }
    assert_true(raw_status(socket_path(), "clusters") <= 256);
    assert_int_equal(raw_status(socket_path(), "directory_growths"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_connection_quota),
        LOOPS_BOTH(test_connect_rate),
        LOOPS_BOTH(test_instance_and_byte_quotas),
        LOOPS_BOTH(test_link_quota),
        LOOPS_BOTH(test_control_rate),
        LOOPS_BOTH(test_out_of_descriptors),
        LOOPS_BOTH(test_hardly_any_descriptors),
        LOOPS_BOTH(test_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
