/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration centre and its disk (features J16, J42): a change holds, and is answered, when
 * it is durable; until then nobody else waits, however slow the disk is, and other changes take
 * their turns. A daemon that is killed in any call of the way leaves the version before or the new
 * one, whole; so does a disk that refuses any of them.
 */
#include "daemon/centre_store.h"
#include "daemon/code.h"
#include "support/hold.h"
#include "support/loops.h"
#include "support/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ECHO        "/game/eu/pc/w1/core/echo"
#define PATIENCE_MS 10000U

/* Texts of two versions: each whole one says how slots are dealt out. */
#define OLD "clusters: [{match: \"/game/**\", balance: {slots: 1024}}]\n"
#define NEW "clusters: [{match: \"/game/**\", balance: {slots: 2048}}]\n"

static struct hold hold;
static struct rbi_wire_applied applied;

static void begin_holding(void **state, const long *calls, unsigned count)
{
    if (hold_begin(&hold, calls, count) != 0) {
        skip();
    }
    assert_int_equal(loops_make(state, "", ""), 0);
    loops_cluster.before_exec = hold_install;
    loops_cluster.context = &hold;
    assert_int_equal(cluster_start(&loops_cluster), 0);
}

static void up(struct raw *raw)
{
    assert_int_equal(raw_connect(raw, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
}

/* ---- asking ------------------------------------------------------------------------------- */

static void send_apply(struct raw *raw, const char *text, bool expected, uint64_t expect)
{
    const size_t size = strlen(text);
    const struct rbi_wire_apply body = {
        .size = (uint32_t)size, .expected = expected, .expect = expect};
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, size, 0), (ssize_t)size);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    assert_int_equal(raw_send(raw, RBI_WIRE_APPLY, &body, &fd, 1), 0);
    assert_int_equal(close(fd), 0);
}

/** The next answer: that a daemon has settled is none. */
static void receive(struct raw *raw, struct raw_message *message)
{
    do {
        assert_int_equal(raw_receive(raw, message, PATIENCE_MS), 0);
    } while (message->header.type == RBI_WIRE_SETTLED);
}

/** @return 0 with applied, or the code of the ERROR */
static int take_answer(struct raw *raw)
{
    struct raw_message message;
    receive(raw, &message);
    const int code = message.header.type == RBI_WIRE_ERROR ? message.body.error.code : 0;
    if (code == 0) {
        assert_int_equal(message.header.type, RBI_WIRE_APPLIED);
        applied = message.body.applied;
    }
    raw_message_deinit(&message);
    return code;
}

static int apply(struct raw *raw, const char *text)
{
    send_apply(raw, text, false, 0);
    return take_answer(raw);
}

/** Number of the version that holds, and its text. */
static uint64_t what_holds(struct raw *raw, char text[256])
{
    const struct rbi_wire_get_text body = {.version = 0};
    struct raw_message message;
    text[0] = '\0';
    assert_int_equal(raw_send(raw, RBI_WIRE_GET_TEXT, &body, NULL, 0), 0);
    receive(raw, &message);
    uint64_t version = 0;
    if (message.header.type == RBI_WIRE_TEXT) {
        version = message.body.text.version;
        assert_true(message.body.text.size < 256);
        assert_int_equal(pread(message.fds.fds[0], text, 255, 0), (ssize_t)message.body.text.size);
        text[message.body.text.size] = '\0';
    }
    raw_message_deinit(&message);
    return version;
}

/** Others are greeted, registered, introduced, answered. */
static void everybody_is_served(void)
{
    struct raw server;
    struct raw client;
    assert_int_equal(raw_up(&server, loops_cluster.socket, ECHO "/1"), 0);
    assert_int_equal(raw_up(&client, loops_cluster.socket, ""), 0);
    assert_int_equal(raw_link(&client, &server, NULL), 0);
    assert_int_equal(raw_set_state(&server, RBI_ENDPOINT_BUSY), 0);
    raw_close(&client);
    raw_close(&server);
}

static void wait_for_connections(uint64_t count)
{
    const uint64_t end_ms = test_now_ms() + PATIENCE_MS;
    while (raw_status(loops_cluster.socket, "connections") != count) {
        assert_true(test_now_ms() < end_ms);
        test_sleep_ms(5);
    }
}

/* ---- slow --------------------------------------------------------------------------------- */

static const long syncs[] = {SYS_fsync};

static void test_slow_disk_holds_nobody(void **state)
{
    char text[256];
    struct raw operator;
    struct raw other;
    begin_holding(state, syncs, RBI_ARRAY_SIZE(syncs));
    up(&operator);
    up(&other);
    hold_arm(&hold, 1);
    send_apply(&operator, OLD, false, 0);
    assert_true(hold_wait(&hold, PATIENCE_MS));
    everybody_is_served();
    /* It is neither answered nor does it hold, and the next request of its operator waits. */
    assert_int_equal(what_holds(&other, text), 0);
    const struct rbi_wire_history history = {.most = 1};
    assert_int_equal(raw_send(&operator, RBI_WIRE_HISTORY, &history, NULL, 0), 0);
    assert_true(raw_silent(&operator, 50));
    hold_release(&hold, 0);
    assert_int_equal(take_answer(&operator), 0);
    assert_int_equal(applied.version, 1);
    assert_int_equal(applied.warning.length, 0);
    struct raw_message row;
    assert_int_equal(raw_receive(&operator, & row, PATIENCE_MS), 0);
    assert_int_equal(row.header.type, RBI_WIRE_ROW_VERSION);
    raw_message_deinit(&row);
    assert_int_equal(what_holds(&other, text), 1);
    assert_string_equal(text, OLD);
    raw_close(&operator);
    raw_close(&other);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    hold_end(&hold);
}

/* The journal of nodes is made durable once a second; that holds nobody either. */
static void test_slow_journal_holds_nobody(void **state)
{
    static const long data_syncs[] = {SYS_fdatasync};
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_node body = {.what = RBI_NODE_CREATE};
    begin_holding(state, data_syncs, RBI_ARRAY_SIZE(data_syncs));
    up(&raw);
    hold_arm(&hold, 1);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(body.path.bytes, sizeof(body.path.bytes), "/game/eu/meta/n%u", i);
        body.path.length = (uint16_t)strlen(body.path.bytes);
        assert_int_equal(raw_send(&raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
        assert_int_equal(raw_expect(&raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
        if (i == 0) {
            assert_true(hold_wait(&hold, PATIENCE_MS));
            everybody_is_served();
        }
    }
    hold_release(&hold, EIO);
    assert_true(cluster_log_wait(&loops_cluster, "event=nodes_not_kept", PATIENCE_MS));
    raw_close(&raw);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    hold_end(&hold);
}

/* Changes that come meanwhile take their turns, and see what the one before has made of it. */
static void test_changes_take_turns(void **state)
{
    char text[256];
    struct raw raws[3];
    begin_holding(state, syncs, RBI_ARRAY_SIZE(syncs));
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(raws); i++) {
        up(&raws[i]);
    }
    hold_arm(&hold, 1);
    send_apply(&raws[0], OLD, false, 0);
    send_apply(&raws[0], "{}\n", false, 0); /* its second comes after the first of others */
    assert_true(hold_wait(&hold, PATIENCE_MS));
    send_apply(&raws[1], NEW, true, 1);
    assert_true(raw_silent(&raws[1], 20));
    send_apply(&raws[2], "{}\n", true, 1);
    assert_true(raw_silent(&raws[2], 20));
    hold_release(&hold, 0);
    assert_int_equal(take_answer(&raws[0]), 0);
    assert_int_equal(applied.version, 1);
    assert_int_equal(take_answer(&raws[1]), 0);
    assert_int_equal(applied.version, 2);
    assert_int_equal(take_answer(&raws[2]), RBI_CODE_IN_USE); /* by now 2 holds */
    assert_int_equal(take_answer(&raws[0]), 0);
    assert_int_equal(applied.version, 3);
    assert_int_equal(what_holds(&raws[1], text), 3);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(raws); i++) {
        raw_close(&raws[i]);
    }
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    hold_end(&hold);
}

/* Of those who leave, what is being written goes on, and what waits is dropped. */
static void test_operators_leave(void **state)
{
    char text[256];
    struct raw raws[3];
    begin_holding(state, syncs, RBI_ARRAY_SIZE(syncs));
    const int fds = loops_idle_fds();
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(raws); i++) {
        up(&raws[i]);
    }
    hold_arm(&hold, 1);
    send_apply(&raws[0], OLD, false, 0);
    assert_true(hold_wait(&hold, PATIENCE_MS));
    send_apply(&raws[1], NEW, false, 0);
    assert_true(raw_silent(&raws[1], 20));
    raw_close(&raws[0]);
    raw_close(&raws[1]);
    wait_for_connections(2); /* the third, and who asks for that */
    hold_release(&hold, 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=version_applied", PATIENCE_MS));
    assert_int_equal(what_holds(&raws[2], text), 1);
    assert_string_equal(text, OLD);
    assert_int_equal(apply(&raws[2], NEW), 0);
    assert_int_equal(applied.version, 2);
    raw_close(&raws[2]);
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds), fds);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    hold_end(&hold);
}

/* A daemon that is told to stop meanwhile has answered before it says goodbye. */
static void test_stop_while_it_is_written(void **state)
{
    char text[256];
    struct raw operator;
    struct raw_message message;
    begin_holding(state, syncs, RBI_ARRAY_SIZE(syncs));
    up(&operator);
    hold_arm(&hold, 1);
    send_apply(&operator, OLD, false, 0);
    assert_true(hold_wait(&hold, PATIENCE_MS));
    assert_int_equal(kill(loops_cluster.pid, SIGTERM), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=stopping", PATIENCE_MS));
    hold_release(&hold, 0);
    assert_int_equal(take_answer(&operator), 0);
    assert_int_equal(raw_receive(&operator, & message, PATIENCE_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_STOPPING);
    raw_message_deinit(&message);
    raw_close(&operator);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    loops_cluster.before_exec = NULL;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    up(&operator);
    assert_int_equal(what_holds(&operator, text), 1);
    assert_string_equal(text, OLD);
    raw_close(&operator);
    hold_end(&hold);
}

/* ---- crash and failure at each call ------------------------------------------------------- */

static const long file_calls[] = {SYS_openat, SYS_write, SYS_fsync,
#ifdef SYS_rename
                                  SYS_rename, SYS_unlink
#else
                                  SYS_renameat, SYS_unlinkat
#endif
};

static bool is_rename(long call)
{
    return call == file_calls[3];
}

/** A daemon with an old version, and a new one on its way as far as call @p at, or answered. */
static bool new_version_until(void **state, struct raw *operator, unsigned at)
{
    begin_holding(state, file_calls, RBI_ARRAY_SIZE(file_calls));
    up(operator);
    assert_int_equal(apply(operator, OLD), 0);
    hold_arm(&hold, at);
    send_apply(operator, NEW, false, 0);
    struct pollfd ready = {.fd = operator->fd, .events = POLLIN};
    while (!hold_wait(&hold, 2)) {
        if (poll(&ready, 1, 0) == 1) { /* there are fewer calls than that */
            assert_int_equal(take_answer(operator), 0);
            return false;
        }
    }
    return true;
}

/** What the next daemon finds: the old version, or the new one, and nothing beside them. */
static uint64_t what_is_left(void)
{
    char text[256];
    char beside[192];
    struct stat found;
    struct raw raw;
    loops_cluster.before_exec = NULL;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    up(&raw);
    const uint64_t version = what_holds(&raw, text);
    assert_in_range(version, 1, 2);
    assert_string_equal(text, version == 1 ? OLD : NEW);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=version_ignored"), 0);
    /* It goes on from there, over whatever lies beside the place. */
    assert_int_equal(apply(&raw, "{}\n"), 0);
    assert_int_equal(applied.version, version + 1);
    assert_int_equal(applied.warning.length, 0);
    (void)snprintf(beside, sizeof(beside), "%s.version.%02u.new", loops_cluster.socket,
                   (unsigned)version + 1);
    assert_int_equal(stat(beside, &found), -1);
    raw_close(&raw);
    return version;
}

/* The file is durable before it takes its place, and then the place is. */
static void check_order(void)
{
    unsigned synced = 0;
    unsigned renamed = 0;
    unsigned synced_after = 0;
    for (unsigned i = 0; i < rbi_min_u64(hold_count(&hold), HOLD_ORDER_MAX); i++) {
        if (is_rename(hold.order[i])) {
            renamed++;
            assert_int_equal(synced, 1);
        } else if (hold.order[i] == SYS_fsync) {
            synced += renamed == 0;
            synced_after += renamed != 0;
        }
    }
    assert_int_equal(renamed, 1);
    assert_int_equal(synced_after, 1);
}

static void test_crash_at_each_call(void **state)
{
    unsigned found[3] = {0};
    bool held = true;
    for (unsigned at = 1; held; at++) {
        struct raw operator;
        held = new_version_until(state, &operator, at);
        if (!held) {
            check_order();
        }
        cluster_kill(&loops_cluster);
        hold_release(&hold, 0);
        raw_close(&operator);
        const uint64_t version = what_is_left();
        found[version]++;
        assert_true(held || version == 2); /* answered: it is there */
        assert_int_equal(cluster_stop(&loops_cluster), 0);
        hold_end(&hold);
        cluster_down(&loops_cluster);
    }
    print_message("killed in %u calls: %u times the old version, %u times the new one\n",
                  found[1] + found[2] - 1, found[1], found[2] - 1);
    assert_true(found[1] >= 4 && found[2] >= 2);
}

static void test_failure_of_each_call(void **state)
{
    unsigned warned = 0;
    bool held = true;
    for (unsigned at = 1; held; at++) {
        struct raw operator;
        char text[256];
        held = new_version_until(state, &operator, at);
        if (held) {
            hold_release(&hold, EIO);
            assert_int_equal(take_answer(&operator), 0);
        }
        hold_arm(&hold, 0);
        assert_int_equal(applied.version, 2);
        /* It holds all the same, and its operator knows whether it will outlive the daemon. */
        assert_int_equal(what_holds(&operator, text), 2);
        const bool kept = applied.warning.length == 0;
        warned += !kept;
        raw_close(&operator);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
        assert_int_equal(what_is_left(), kept ? 2 : 1);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
        hold_end(&hold);
        cluster_down(&loops_cluster);
    }
    print_message("%u calls had it kept for this daemon only\n", warned);
    assert_true(warned >= 4); /* unlink or open, write, fsync, rename */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_slow_disk_holds_nobody),
        LOOPS_TEST(test_slow_journal_holds_nobody, "uring"),
        LOOPS_BOTH(test_changes_take_turns),
        LOOPS_BOTH(test_operators_leave),
        LOOPS_BOTH(test_stop_while_it_is_written),
        LOOPS_TEST(test_crash_at_each_call, "uring"),
        LOOPS_TEST(test_failure_of_each_call, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
