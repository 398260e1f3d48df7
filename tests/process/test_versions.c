/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios 105 and 107: the release before this one (protocol 1), the one after it (newer
 * protocol, memory and READY, which still know ours) and this one work together, with the
 * daemon of this release and of the one before; others are refused in the first message, with
 * both versions in the text (for the protocol see test_daemon_hostile.c). Builds of the same
 * sources with other constants play them.
 */
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVICE "/game/eu/pc/w1/core/service"
#define TIME_MS 15000U

static struct cluster cluster;

/* ---- programs ------------------------------------------------------------------------------ */

struct program {
    pid_t pid;
    int input;
    int output;
    char said[1024];
};

static void run(struct program *program, const char *const *argv)
{
    int in[2];
    int out[2];
    *program = (struct program){.pid = -1};
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    program->pid = fork();
    assert_true(program->pid >= 0);
    if (program->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)dup2(open(cluster.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
                   STDERR_FILENO);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    program->input = in[1];
    program->output = out[0];
}

static void start_peer(struct program *program,
                       const char *version,
                       const char *role,
                       const char *path,
                       const char *target)
{
    char file[512];
    (void)snprintf(file, sizeof file, VERSION_PEERS "%s", version);
    const char *argv[] = {file, cluster.socket, role, path, target, NULL};
    run(program, argv);
}

/** Reads on until the text has come. @return false: its output has ended, or it took too long */
static bool says(struct program *program, const char *text)
{
    const uint64_t deadline_ms = test_now_ms() + TIME_MS;
    size_t length = strlen(program->said);
    while (strstr(program->said, text) == NULL) {
        struct pollfd more = {.fd = program->output, .events = POLLIN};
        const ssize_t n = poll(&more, 1, 100) == 1 ? read(program->output, program->said + length,
                                                          sizeof program->said - 1 - length)
                                                   : -1;
        if (n == 0 || test_now_ms() > deadline_ms) {
            return false;
        }
        length += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/** Ends its input and waits. @return its exit code */
static int finish(struct program *program)
{
    int status = 0;
    (void)close(program->input);
    (void)says(program, "\x01"); /* all that it has to say */
    (void)close(program->output);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void start_old_daemon(void)
{
    const char *argv[] = {RINGBUSD_OLD_PATH, "--config",     cluster.config,
                          "--socket",        cluster.socket, NULL};
    struct program daemon;
    run(&daemon, argv);
    cluster.pid = daemon.pid;
    const uint64_t deadline_ms = test_now_ms() + TIME_MS;
    while (raw_status(cluster.socket, "uptime_ms") == UINT64_MAX) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(5);
    }
    (void)close(daemon.input);
    (void)close(daemon.output);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_pair(const char *server_version, const char *client_version)
{
    struct program server;
    struct program client;
    start_peer(&server, server_version, "serve", SERVICE "/1", NULL);
    if (!says(&server, "ready")) {
        print_message("%s: %s\n", server_version, server.said);
        assert_true(false);
    }
    start_peer(&client, client_version, "ask", SERVICE "/2", SERVICE "/1");
    const int result = finish(&client);
    if (result != 0) {
        print_message("%s asks %s: %d %s\n", client_version, server_version, result, client.said);
    }
    assert_int_equal(result, 0);
    assert_non_null(strstr(client.said, "answered 6"));
    assert_int_equal(finish(&server), 0);
}

static void check_all_pairs(void)
{
    static const char *const versions[] = {"old", "current", "newer"};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < 3; j++) {
            check_pair(versions[i], versions[j]);
        }
    }
}

static void test_each_with_each(void **state)
{
    (void)state;
    assert_int_equal(cluster_start(&cluster), 0);
    check_all_pairs();
    assert_int_equal(raw_status(cluster.socket, "bad_frames"), 0);
}

static void test_each_with_each_at_the_daemon_before(void **state)
{
    (void)state;
    start_old_daemon();
    check_all_pairs();
    assert_int_equal(raw_status(cluster.socket, "bad_frames"), 0);
}

static void check_refused(const char *version, const char *theirs, const char *ours)
{
    struct program stranger;
    start_peer(&stranger, version, "serve", SERVICE "/9", NULL);
    assert_int_equal(finish(&stranger), 2);
    if (strstr(stranger.said, theirs) == NULL || strstr(stranger.said, ours) == NULL) {
        print_message("%s: %s", version, stranger.said);
        assert_true(false);
    }
}

static void test_strangers_are_refused_with_both_versions(void **state)
{
    (void)state;
    char ours[64];
    assert_int_equal(cluster_start(&cluster), 0);
    (void)snprintf(ours, sizeof ours, "%u to %u", RBI_LAYOUT_VERSION_MIN, RBI_LAYOUT_VERSION);
    check_refused("stranger", "1000 to 1001", ours);
    assert_int_equal(raw_status(cluster.socket, "registrations"), 0);
}

/* The daemon is replaced under those who talk, forth and back; no link notices. */
static void test_upgrade_under_way(void **state)
{
    (void)state;
    static const char *const versions[] = {"old", "current", "newer"};
    struct program servers[3];
    struct program clients[3];
    start_old_daemon();
    for (unsigned i = 0; i < 3; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, SERVICE "/%u", 1 + i);
        start_peer(&servers[i], versions[i], "serve", path, NULL);
        assert_true(says(&servers[i], "ready"));
        /* The next one asks: old is asked by current, current by newer, newer by old. */
        char own[64];
        (void)snprintf(own, sizeof own, SERVICE "/%u", 11 + i);
        start_peer(&clients[i], versions[(i + 1) % 3], "stay", own, path);
        assert_true(says(&clients[i], "ready"));
    }
    for (unsigned round = 0; round < 4; round++) {
        cluster_kill(&cluster);
        if (round % 2 == 0) {
            assert_int_equal(cluster_start(&cluster), 0);
        } else {
            start_old_daemon();
        }
        const uint64_t deadline_ms = test_now_ms() + TIME_MS;
        while (raw_status(cluster.socket, "endpoints") != 6) {
            assert_true(test_now_ms() < deadline_ms);
            test_sleep_ms(10);
        }
        if (round % 2 == 0) {
            /* Only a pair in which both speak protocol 2 can tell of its link. */
            while (raw_status(cluster.socket, "links_restored") != 1) {
                assert_true(test_now_ms() < deadline_ms);
                test_sleep_ms(10);
            }
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        const int result = finish(&clients[i]);
        if (result != 0) {
            print_message("client %u: %d %s\n", i, result, clients[i].said);
        }
        assert_int_equal(result, 0);
        assert_non_null(strstr(clients[i].said, "back 4"));
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(finish(&servers[i]), 0);
    }
}

/* A message of a later protocol is no offence: skipped by its length, with an ERROR. */
static void test_unknown_message_is_skipped(void **state)
{
    (void)state;
    struct raw raw;
    struct raw_message message;
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(raw_up(&raw, cluster.socket, SERVICE "/1"), 0);
    const struct rbi_wire_resync body = {.revision = 1};
    const size_t size = rbi_wire_encode(RBI_WIRE_RESYNC, &body, 77, 0, frame);
    frame[8] = 200;
    frame[10] = 3;
    assert_int_equal(rbi_handoff_send(raw.fd, frame, size, NULL, 0), 0);
    assert_int_equal(raw_expect(&raw, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.header.reply_to, 77);
    assert_non_null(strstr(message.body.error.text.bytes, "200"));
    assert_int_equal(raw_set_state(&raw, RBI_ENDPOINT_BUSY), 0);
    raw_close(&raw);
}

static int setup(void **state)
{
    (void)state;
    return cluster_make(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_each_with_each),
        ON_OWN_DAEMON(test_each_with_each_at_the_daemon_before),
        ON_OWN_DAEMON(test_strangers_are_refused_with_both_versions),
        ON_OWN_DAEMON(test_upgrade_under_way),
        ON_OWN_DAEMON(test_unknown_message_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
