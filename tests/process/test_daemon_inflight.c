/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 31, 33: the kernel lets a user have only so many descriptors in flight, and the
 * daemon of a common user (root is exempt) has one such limit for all its clients. Some that
 * ask and never read take all of it; the others are served all the same.
 */
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define COMMON (61000U + (unsigned)getpid() % 4000U) /* in flight is counted per user */
#define FDS    128U
#define HOGS   4U
#define HOG    (COMMON + 1)

#define MEMBERS 8U

/** The daemon's part: no privilege, few descriptors. */
static void become_common(void *context)
{
    const struct rlimit limit = {.rlim_cur = FDS, .rlim_max = FDS};
    (void)context;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(COMMON, COMMON, COMMON) < 0 || setresuid(COMMON, COMMON, COMMON) < 0) {
        _exit(1);
    }
}

static int start_common(void **state)
{
    if (loops_make(state, "", "quota: {control: 100000}\n") < 0 ||
        chmod(loops_cluster.folder, 0777) < 0) {
        return -1;
    }
    loops_cluster.before_exec = become_common;
    return cluster_start(&loops_cluster);
}

static void join_as_hog(struct raw *hog)
{
    assert_int_equal(seteuid(HOG), 0);
    const int connected = raw_connect(hog, loops_cluster.socket);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_hello(hog), 0);
}

/** Asks again and again for rows that carry descriptors, and reads none. */
static void be_hog(struct raw *hog)
{
    const struct rbi_wire_query query = {.what = RBI_QUERY_ENDPOINTS};
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(raw_send(hog, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    }
}

static uint64_t in_flight(void)
{
    return raw_status(loops_cluster.socket, "descriptors_in_flight");
}

static void wait_for_in_flight(uint64_t from, uint64_t to)
{
    const uint64_t deadline_ms = test_now_ms() + 5000;
    uint64_t now = in_flight();
    while ((now < from || now > to) && test_now_ms() < deadline_ms) {
        test_sleep_ms(10);
        now = in_flight();
    }
    assert_in_range(now, from, to);
}

static void test_unread_descriptors_block_nobody(void **state)
{
    struct raw members[MEMBERS];
    struct raw hogs[HOGS];
    struct raw late;
    char path[64];
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(start_common(state), 0);
    for (unsigned i = 0; i < MEMBERS; i++) {
        (void)snprintf(path, sizeof(path), ECHO "/%u", i + 1);
        assert_int_equal(raw_up(&members[i], loops_cluster.socket, path), 0);
    }
    for (unsigned i = 0; i < HOGS; i++) {
        join_as_hog(&hogs[i]);
    }
    for (unsigned i = 0; i < HOGS; i++) {
        be_hog(&hogs[i]);
    }
    /* One user alone gets half. The asker's own directory is in flight too. */
    wait_for_in_flight(FDS / 2, FDS / 2 + 1);
    assert_true(cluster_log_wait(&loops_cluster, "event=descriptors_in_flight", 1000));
    /* HELLO_OK carries a descriptor, INTRODUCED four: nobody else has to wait for them. */
    const uint64_t start_ms = test_now_ms();
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(raw_up(&late, loops_cluster.socket, ECHO "/99"), 0);
        assert_int_equal(raw_link(&late, &members[i % MEMBERS], NULL), 0);
        raw_close(&late);
    }
    print_message("20 linked in %u ms\n", (unsigned)(test_now_ms() - start_ms));
    assert_true(test_now_ms() - start_ms < 2000);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=descriptors_in_flight"), 1);
    for (unsigned i = 0; i < MEMBERS; i++) {
        assert_int_equal(raw_set_state(&members[i], RBI_ENDPOINT_BUSY), 0);
    }
    /* One that reads on gets all that it has asked for, when its own user leaves it some. */
    for (unsigned i = 1; i < HOGS; i++) {
        raw_close(&hogs[i]);
    }
    for (unsigned i = 0; i < 20; i++) {
        struct raw_message message;
        assert_int_equal(raw_expect(&hogs[0], RBI_WIRE_QUERY_END, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(message.body.query_end.rows, MEMBERS);
    }
    raw_close(&hogs[0]);
    wait_for_in_flight(0, 1);
    for (unsigned i = 0; i < MEMBERS; i++) {
        raw_close(&members[i]);
    }
    assert_true(loops_idle_fds() > 0);
}

/**
 * Whoever is closed with descriptors unread still has them: they count on, as its connection
 * does, until it closes as well.
 */
static void test_closing_sets_none_free(void **state)
{
    struct raw member;
    struct raw hog;
    const unsigned char garbage[64] = {0xff};
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(start_common(state), 0);
    const int idle = loops_idle_fds();
    assert_int_equal(raw_up(&member, loops_cluster.socket, ECHO "/1"), 0);
    join_as_hog(&hog);
    be_hog(&hog);
    wait_for_in_flight(20, 21);
    assert_int_equal(send(hog.fd, garbage, sizeof(garbage), 0), sizeof(garbage));
    const uint64_t deadline_ms = test_now_ms() + 3000;
    while (raw_status(loops_cluster.socket, "connections") > 2 && test_now_ms() < deadline_ms) {
        test_sleep_ms(10);
    }
    assert_int_equal(raw_status(loops_cluster.socket, "connections"), 2); /* member and asker */
    wait_for_in_flight(20, 21);
    raw_close(&hog);
    wait_for_in_flight(0, 1);
    raw_close(&member);
    assert_int_equal(cluster_fd_wait(&loops_cluster, idle), idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_unread_descriptors_block_nobody),
        LOOPS_BOTH(test_closing_sets_none_free),
    };
    return cmocka_run_group_tests_name("inflight", tests, NULL, NULL);
}
