/* SPDX-License-Identifier: Apache-2.0 */
/* Names, lives, the directory, watches and queries. */
#include "bus/directory.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP  "/game/eu/pc/w1/core"
#define ECHO   GROUP "/echo"
#define ECHO_1 ECHO "/1"

#define FAST "quota: {connects: 100000, control: 100000, instances: 100000}\n"

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

static int register_code(struct raw *raw, const char *path, size_t length)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    body.path.length = (uint16_t)length;
    memcpy(body.path.bytes, path, length);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    return message.header.type == RBI_WIRE_ERROR ? message.body.error.code : 0;
}

/* Scenario 97. */
static void test_paths_that_look_alike(void **state)
{
    static const char *const bad[] = {"game/eu/pc/w1/core/echo/1",
                                      GROUP "//echo/1",
                                      ECHO "/1/",
                                      ECHO "/.",
                                      ECHO "/..",
                                      ECHO,
                                      ECHO "/1/2",
                                      ECHO "/\xc3\xa4",
                                      ECHO "/a b",
                                      "/anon/local/host/uid0/client/x/1"};
    struct raw raw;
    struct raw other;
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        const int code = register_code(&raw, bad[i], strlen(bad[i]));
        assert_true(code == RBI_CODE_PATH || code == RBI_CODE_DENIED);
    }
    assert_int_equal(raw_up(&other, socket_path(), GROUP "/ab/c"), 0);
    assert_int_equal(register_code(&raw, GROUP "/a/bc", strlen(GROUP "/a/bc")), 0);
    raw_close(&raw);
    raw_close(&other);
}

/* Two names with one id: refused, naming both. */
static void test_clash(void **state)
{
    struct raw raw;
    struct raw other;
    struct rbi_text text;
    char path[128];
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO "/alpha"), 0);
    (void)snprintf(path, sizeof(path), ECHO "/%" PRId32, rbi_instance_id("alpha", 5));
    assert_int_equal(raw_connect(&other, socket_path()), 0);
    assert_int_equal(raw_hello(&other), 0);
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_send_register(&other, &body), 0);
    assert_int_equal(raw_expect_error_text(&other, &text), RBI_CODE_CLASH);
    assert_non_null(strstr(text.bytes, "alpha"));
    assert_non_null(strstr(text.bytes, path + sizeof(ECHO)));
    raw_close(&raw);
    raw_close(&other);
}

/* Scenario 100: 50 at once for one address; exactly one gets it. */
static void test_fifty_at_once(void **state)
{
    struct raw raws[50];
    unsigned winners = 0;
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    rbi_text_set(&body.path, ECHO_1);
    assert_int_equal(loops_up(state, "", FAST), 0);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(raw_connect(&raws[i], socket_path()), 0);
        assert_int_equal(raw_hello(&raws[i]), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(raw_send_register(&raws[i], &body), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        struct raw_message message;
        assert_int_equal(raw_receive(&raws[i], &message, RAW_TIMEOUT_MS), 0);
        winners += message.header.type == RBI_WIRE_REGISTERED;
        if (message.header.type != RBI_WIRE_REGISTERED) {
            assert_int_equal(message.body.error.code, RBI_CODE_IN_USE);
        }
    }
    assert_int_equal(winners, 1);
    for (unsigned i = 0; i < 50; i++) {
        raw_close(&raws[i]);
    }
}

/* A restart that is quicker than the news of the end finds its address free. */
static void test_quick_restart(void **state)
{
    struct raw raw;
    uint32_t last = 0;
    assert_int_equal(loops_up(state, "", FAST), 0);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
        assert_true(raw.registered.incarnation != last);
        last = raw.registered.incarnation;
        raw_close(&raw);
    }
}

/* The same with the order turned round by force: the newcomer is heard first. */
static void test_restart_heard_before_the_end(void **state)
{
    struct raw old;
    struct raw new;
    struct raw_message message;
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    rbi_text_set(&body.path, ECHO_1);
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&old, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_connect(&new, socket_path()), 0);
    assert_int_equal(raw_hello(&new), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGSTOP), 0);
    assert_int_equal(raw_send_register(&new, &body), 0);
    raw_close(&old);
    assert_int_equal(kill(loops_cluster.pid, SIGCONT), 0);
    assert_int_equal(raw_expect(&new, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw_close(&new);
}

/* Who says that it leaves, and is gone before it can be answered, has left and not crashed. */
static void test_last_words(void **state)
{
    struct raw watcher;
    struct raw raw;
    struct raw_message message;
    const struct rbi_wire_set_state closed = {.state = RBI_ENDPOINT_CLOSED};
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&watcher, socket_path(), ""), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO_1), 0);
    for (unsigned round = 0; round < 200; round++) {
        assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
        for (unsigned i = 0; i < 10 + round % 10; i++) {
            const struct rbi_wire_set_state body = {.state = RBI_ENDPOINT_READY + i % 2};
            assert_int_equal(raw_send(&raw, RBI_WIRE_SET_STATE, &body, NULL, 0), 0);
        }
        assert_int_equal(raw_send(&raw, RBI_WIRE_SET_STATE, &closed, NULL, 0), 0);
        raw_close(&raw);
        do {
            assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
        } while (message.body.event.change != RBI_CHANGE_REMOVED);
        assert_int_equal(message.body.event.reason, RBI_REASON_LEFT);
    }
    raw_close(&watcher);
}

/** Snapshot of a cluster through the directory of @p raw. @return number of instances */
static unsigned snapshot(const struct raw *raw,
                         uint64_t id,
                         struct rbi_directory_cluster *head,
                         struct rbi_directory_instance *instances,
                         unsigned max)
{
    struct rbi_directory_view view;
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    assert_int_equal(rbi_directory_read(&view, id, head, instances, max), RBI_DIRECTORY_OK);
    return head->instance_count;
}

/* Scenario 132: one leaves, the siblings stay as they are; an empty list is stable. */
static void test_siblings_stay(void **state)
{
    struct raw watcher;
    struct raw raws[5];
    struct raw_message message;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&watcher, socket_path(), ""), 0);
    for (unsigned i = 0; i < 5; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), ECHO "/%u", i + 1);
        assert_int_equal(raw_up(&raws[i], socket_path(), path), 0);
    }
    const uint64_t id = raws[0].registered.cluster;
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO), 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(message.body.event.instance, i + 1);
    }
    uint64_t revision = message.body.event.revision;
    for (unsigned i = 0; i < 5; i++) {
        raw_close(&raws[i]);
        assert_int_equal(raw_receive(&watcher, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(message.header.type, RBI_WIRE_EVENT);
        assert_int_equal(message.body.event.instance, i + 1);
        assert_int_equal(message.body.event.revision, ++revision);
        assert_int_equal(snapshot(&watcher, id, &head, instances, 8), 4 - i);
        for (unsigned k = 0; k < 4 - i; k++) {
            assert_int_equal(instances[k].instance, i + 2 + k);
            assert_int_equal(instances[k].incarnation, raws[i + 1 + k].registered.incarnation);
            assert_int_equal(instances[k].weight, 100);
        }
    }
    assert_true(raw_silent(&watcher, 100));
    const uint64_t epoch = head.epoch;
    assert_int_equal(snapshot(&watcher, id, &head, instances, 8), 0);
    assert_int_equal(head.epoch, epoch);
    raw_close(&watcher);
}

static void test_labels_and_weight(void **state)
{
    struct raw raw;
    struct raw_message message;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance one;
    struct rbi_wire_registration body = {.weight = 250, .state = RBI_ENDPOINT_BUSY};
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    rbi_text_set(&body.path, ECHO "/blue");
    rbi_text_set(&body.set, "a.b.c");
    rbi_text_set(&body.idc, "east/1");
    rbi_text_set(&body.tags, "canary,fast");
    assert_int_equal(raw_send_register(&raw, &body), 0);
    assert_int_equal(raw_expect(&raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    const uint64_t id = message.body.registered.cluster;
    assert_int_equal(snapshot(&raw, id, &head, &one, 1), 1);
    assert_string_equal(head.path, ECHO);
    assert_string_equal(one.name, "blue");
    assert_string_equal(one.set, "a.b.c");
    assert_string_equal(one.idc, "east/1");
    assert_string_equal(one.tags, "canary,fast");
    assert_int_equal(one.weight, 250);
    assert_int_equal(one.state, RBI_ENDPOINT_BUSY);
    const struct rbi_wire_set_state weigh = {
        .state = RBI_ENDPOINT_READY, .weight = 0, .weight_set = 1};
    assert_int_equal(raw_send(&raw, RBI_WIRE_SET_STATE, &weigh, NULL, 0), 0);
    assert_int_equal(raw_expect(&raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(snapshot(&raw, id, &head, &one, 1), 1);
    assert_int_equal(one.weight, 0);
    assert_int_equal(one.state, RBI_ENDPOINT_READY);
    raw_close(&raw);
}

/** Receives what waits and returns whether a new directory came; it is mapped then. */
static bool take_new_directory(struct raw *raw)
{
    struct raw_message message;
    bool found = false;
    while (raw_receive(raw, &message, 50) == 0) {
        if (message.header.type == RBI_WIRE_HELLO_OK && message.fds.count == 1) {
            assert_int_equal(message.header.reply_to, 0);
            rbi_segment_deinit(&raw->directory);
            assert_int_equal(rbi_segment_adopt(&raw->directory, message.fds.fds[0],
                                               RBI_SEGMENT_DIRECTORY,
                                               message.body.hello_ok.directory_bytes,
                                               message.body.hello_ok.directory_bytes),
                             0);
            found = true;
        }
        raw_message_deinit(&message);
    }
    return found;
}

/* The directory outgrows slots, clusters and snapshots; nobody loses sight of anybody. */
static void test_directory_grows(void **state)
{
    enum { COUNT = 150 };
    static struct raw raws[COUNT];
    struct raw reader;
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance one;
    assert_int_equal(
        loops_up(state, "", FAST "directory: {slots: 64, clusters: 16, snapshots: 64KiB}\n"), 0);
    const int fds = loops_idle_fds();
    assert_int_equal(raw_up(&reader, socket_path(), ""), 0);
    assert_int_equal(rbi_directory_view_init(&view, reader.directory.base, reader.directory.size),
                     0);
    for (unsigned i = 0; i < COUNT; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), GROUP "/c%u/1", i);
        assert_int_equal(raw_up(&raws[i], socket_path(), path), 0);
        assert_true(raws[i].registered.slot < COUNT + 1);
    }
    assert_true(rbi_directory_superseded(&view));
    assert_true(take_new_directory(&reader));
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(snapshot(&reader, raws[i].registered.cluster, &head, &one, 1), 1);
        assert_int_equal(one.incarnation, raws[i].registered.incarnation);
    }
    assert_int_equal(rbi_directory_view_init(&view, reader.directory.base, reader.directory.size),
                     0);
    assert_false(rbi_directory_superseded(&view));
    assert_true(view.slot_count >= COUNT + 1);
    assert_true(raw_status(socket_path(), "directory_growths") >= 3);
    for (unsigned i = 0; i < COUNT; i++) {
        raw_close(&raws[i]);
    }
    raw_close(&reader);
    assert_int_equal(cluster_fd_wait(&loops_cluster, fds), fds);
}

/* An endpoint that polls without system calls sees in the directory that something waits. */
static void test_attention(void **state)
{
    struct raw raw;
    struct raw client;
    struct rbi_directory_view view;
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_up(&client, socket_path(), ""), 0);
    assert_int_equal(rbi_directory_view_init(&view, raw.directory.base, raw.directory.size), 0);
    /* Once it serves the next, nothing of what these two were told is still on its way. */
    assert_true(raw_status(socket_path(), "endpoints") == 2);
    const uint64_t before = rbi_directory_attention(&view, raw.registered.slot);
    const uint64_t other = rbi_directory_attention(&view, client.registered.slot);
    assert_int_equal(raw_introduce(&client, raw.registered.cluster, 1, 0), 0);
    const uint64_t deadline_ms = test_now_ms() + 1000;
    while (rbi_directory_attention(&view, raw.registered.slot) == before) {
        assert_true(test_now_ms() < deadline_ms);
    }
    assert_int_equal(rbi_directory_attention(&view, client.registered.slot), other);
    raw_close(&raw);
    raw_close(&client);
}

/* Comes back to a new daemon with its life; a taken address stays taken. */
static void test_daemon_restart(void **state)
{
    struct raw a;
    struct raw thief;
    struct raw_message message;
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&a, socket_path(), ECHO_1), 0);
    const struct rbi_wire_registered was = a.registered;
    struct rbi_wire_registration body = {.weight = 1,
                                         .state = RBI_ENDPOINT_READY,
                                         .incarnation = was.incarnation,
                                         .daemon_incarnation = a.hello_ok.daemon_incarnation,
                                         .cookie = was.cookie};
    rbi_text_set(&body.path, ECHO_1);
    cluster_kill(&loops_cluster);
    assert_true(raw_closed(&a, 1000));
    raw_close(&a);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_connect(&a, socket_path()), 0);
    assert_int_equal(raw_hello(&a), 0);
    assert_true(a.hello_ok.daemon_incarnation != body.daemon_incarnation);
    assert_int_equal(raw_send_register(&a, &body), 0);
    assert_int_equal(raw_expect(&a, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.registered.incarnation, was.incarnation);
    assert_int_equal(raw_connect(&thief, socket_path()), 0);
    assert_int_equal(raw_hello(&thief), 0);
    assert_int_equal(raw_send_register(&thief, &body), 0);
    assert_int_equal(raw_expect_error(&thief), RBI_CODE_IN_USE);
    /* Lives of the new daemon do not repeat those that came back. */
    assert_int_equal(raw_register(&thief, ECHO "/2", RBI_ENDPOINT_READY), 0);
    assert_true(thief.registered.incarnation != was.incarnation);
    raw_close(&thief);
    raw_close(&a);
    /* With the number of this very daemon it is a new life. */
    assert_int_equal(raw_connect(&a, socket_path()), 0);
    assert_int_equal(raw_hello(&a), 0);
    body.daemon_incarnation = a.hello_ok.daemon_incarnation;
    assert_int_equal(raw_send_register(&a, &body), 0);
    assert_int_equal(raw_expect(&a, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    assert_true(message.body.registered.incarnation != was.incarnation);
    raw_close(&a);
}

static void test_watch_rules(void **state)
{
    struct raw raw;
    struct raw other;
    struct rbi_wire_watch body;
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    memset(&body, 0, sizeof(body));
    rbi_text_set(&body.prefix, "/game");
    assert_int_equal(raw_send(&raw, RBI_WIRE_TARGET, &body, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_PATH);
    assert_int_equal(raw_send(&raw, RBI_WIRE_UNWATCH, &body, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_ARGUMENT);
    assert_int_equal(raw_watch(&raw, RBI_WIRE_WATCH, "/"), 0);
    assert_int_equal(raw_watch(&raw, RBI_WIRE_WATCH, "/gam"), 0);
    assert_int_equal(raw_watch(&raw, RBI_WIRE_TARGET, ECHO "/2"), 0);
    assert_int_equal(raw_up(&other, socket_path(), ""), 0); /* nobody sees it */
    assert_true(raw_silent(&raw, 50));
    raw_close(&other);
    assert_true(raw_silent(&raw, 50));
    assert_int_equal(raw_watch(&raw, RBI_WIRE_UNWATCH, "/"), 0);
    assert_int_equal(raw_up(&other, socket_path(), ECHO_1), 0);
    assert_true(raw_silent(&raw, 50));
    raw_close(&other);
    assert_int_equal(raw_up(&other, socket_path(), ECHO "/2"), 0);
    assert_false(raw_silent(&raw, 500));
    raw_close(&other);
    raw_close(&raw);
}

/* Scenario 66: rows say who; an answer larger than any queue arrives whole. */
static void test_queries(void **state)
{
    enum { COUNT = 400 };
    static struct raw raws[COUNT];
    struct raw asker;
    struct raw_message message;
    struct rbi_wire_query query = {.what = RBI_QUERY_ENDPOINTS};
    assert_int_equal(loops_up(state, "send_queue: 16", FAST), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), ECHO "/%u", i + 1);
        assert_int_equal(raw_up(&raws[i], socket_path(), path), 0);
    }
    assert_int_equal(raw_link(&raws[1], &raws[0], NULL), 0);
    assert_int_equal(raw_up(&asker, socket_path(), ""), 0);
    assert_int_equal(raw_send(&asker, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    test_sleep_ms(100); /* it does not read: the daemon holds back, and serves others */
    assert_int_equal(raw_set_state(&raws[3], RBI_ENDPOINT_BUSY), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(raw_receive(&asker, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(message.header.type, RBI_WIRE_ROW_ENDPOINT);
        assert_int_equal(message.body.row_endpoint.instance, i + 1);
        assert_int_equal(message.body.row_endpoint.pid, getpid());
        assert_int_equal(message.body.row_endpoint.uid, geteuid());
        assert_int_equal(message.body.row_endpoint.links, i < 2);
        assert_int_equal(message.fds.count, 1);
        raw_message_deinit(&message);
    }
    assert_int_equal(raw_receive(&asker, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_ROW_ENDPOINT); /* the asker itself */
    assert_non_null(strstr(message.body.row_endpoint.path.bytes, "/anon/local/host/uid"));
    raw_message_deinit(&message);
    assert_int_equal(raw_receive(&asker, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_QUERY_END);
    assert_int_equal(message.body.query_end.rows, COUNT + 1);

    rbi_text_set(&query.prefix, ECHO "/7");
    assert_int_equal(raw_send(&asker, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    assert_int_equal(raw_expect(&asker, RBI_WIRE_QUERY_END, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.query_end.rows, 1);
    query = (struct rbi_wire_query){.what = RBI_QUERY_LINKS};
    assert_int_equal(raw_send(&asker, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    assert_int_equal(raw_expect(&asker, RBI_WIRE_ROW_LINK, &message, RAW_TIMEOUT_MS), 0);
    assert_string_equal(message.body.row_link.requester.bytes, ECHO "/2");
    assert_string_equal(message.body.row_link.server.bytes, ECHO_1);
    assert_int_equal(message.body.row_link.state, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        raw_close(&raws[i]);
    }
    raw_close(&asker);
}

/* A process that ends while a child holds its socket open is dead all the same. */
static void test_socket_inherited_by_a_child(void **state)
{
    struct raw watcher;
    struct raw_message message;
    int pipe_fds[2];
    assert_int_equal(loops_up(state, "", FAST), 0);
    assert_int_equal(raw_up(&watcher, socket_path(), ""), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct raw raw;
        char byte = 0;
        if (raw_up(&raw, socket_path(), ECHO_1) != 0) {
            _exit(1);
        }
        if (fork() == 0) { /* keeps everything open until the test ends */
            (void)close(pipe_fds[1]);
            (void)alarm(20);
            _exit(read(pipe_fds[0], &byte, 1) != 0);
        }
        _exit(0);
    }
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_ADDED);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, 200), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_REMOVED);
    assert_int_equal(message.body.event.reason, RBI_REASON_CRASHED);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    raw_close(&watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_paths_that_look_alike),
        LOOPS_BOTH(test_clash),
        LOOPS_BOTH(test_fifty_at_once),
        LOOPS_BOTH(test_quick_restart),
        LOOPS_BOTH(test_restart_heard_before_the_end),
        LOOPS_BOTH(test_last_words),
        LOOPS_BOTH(test_siblings_stay),
        LOOPS_BOTH(test_labels_and_weight),
        LOOPS_BOTH(test_directory_grows),
        LOOPS_BOTH(test_attention),
        LOOPS_BOTH(test_daemon_restart),
        LOOPS_BOTH(test_watch_rules),
        LOOPS_BOTH(test_queries),
        LOOPS_BOTH(test_socket_inherited_by_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
