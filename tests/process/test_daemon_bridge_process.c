/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringbusd starts, watches and stops a bridge: with a script in its place, that writes down how it
 * was started and what it was told (issue 6; scenario group I: a bridge that dies).
 */
#include "daemon/process.h"
#include "support/loops.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BRIDGE(more) "bridge: {host: alpha, insecure: true" more "}\n"

static char script[128];
static char notes[128];

/** Writes the program. @param rest  what it does behind the note of its start */
static void make_script(const char *rest)
{
    (void)snprintf(script, sizeof(script), "%s/bridge.sh", loops_cluster.folder);
    (void)snprintf(notes, sizeof(notes), "%s/notes", loops_cluster.folder);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\necho \"start $$ $*\" >>%s\n%s\n", notes, rest) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(script, 0755), 0);
    assert_int_equal(setenv("RINGBUS_BRIDGE", script, 1), 0);
}

/* Waits for signals, and says of each that it came. */
#define WAITS                                                                                      \
    "trap 'echo told >>$0.told; exit 0' TERM\n"                                                    \
    "trap 'echo again >>$0.again' HUP\n"                                                           \
    "echo ready >>$0.ready\n"                                                                      \
    "while :; do sleep 0.02; done"

static void up(void **state, const char *rest, const char *program)
{
    assert_int_equal(loops_make(state, "", rest), 0);
    make_script(program);
    assert_int_equal(cluster_start(&loops_cluster), 0);
}

/** Lines of a file that the script writes. @param end  of its name, or "" the notes */
static unsigned lines(const char *end, char *last, size_t size)
{
    char name[160];
    char line[512];
    unsigned count = 0;
    (void)snprintf(name, sizeof(name), "%s%s", end[0] ? script : notes, end);
    FILE *file = fopen(name, "r");
    while (file && fgets(line, sizeof(line), file)) {
        count++;
        if (last) {
            (void)snprintf(last, size, "%s", line);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return count;
}

static void await_lines(const char *end, unsigned count)
{
    for (unsigned i = 0; i < 2000; i++) {
        if (lines(end, NULL, 0) >= count) {
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("%u lines of \"%s\" have not come", count, end);
}

/** Waits until the daemon has said so often that it has started one, and noted which. */
static void await_spawned(unsigned count)
{
    for (unsigned i = 0; i < 2000; i++) {
        if (cluster_log_count(&loops_cluster, "event=bridge_spawned") >= count) {
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("not started %u times", count);
}

/** Number of the process that was started last. */
static pid_t last_pid(void)
{
    char last[512] = "";
    (void)lines("", last, sizeof(last));
    int pid = 0;
    assert_int_equal(sscanf(last, "start %d", &pid), 1);
    return pid;
}

static void await_gone(pid_t pid)
{
    for (unsigned i = 0; i < 2000; i++) {
        if (rbi_process_started((uint32_t)pid) == 0) { /* whoever is to collect it may be slow */
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("it lives on");
}

static void reconfigure(const char *rest)
{
    char text[1024];
    const unsigned before = cluster_log_count(&loops_cluster, "event=reloaded");
    (void)snprintf(text, sizeof(text), "daemon: {log_level: debug}\n%s", rest);
    assert_int_equal(cluster_configure(&loops_cluster, text), 0);
    assert_int_equal(kill(loops_cluster.pid, SIGHUP), 0);
    for (unsigned i = 0; i < 1000; i++) {
        if (cluster_log_count(&loops_cluster, "event=reloaded") > before) {
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("not reloaded in time");
}

static void test_is_started_with_what_it_needs_and_stopped_in_order(void **state)
{
    char last[512] = "";
    char wanted[512];
    up(state, BRIDGE(""), WAITS);
    await_lines(".ready", 1);
    assert_int_equal(lines("", last, sizeof(last)), 1);
    const pid_t pid = last_pid();
    (void)snprintf(wanted, sizeof(wanted),
                   "start %d --config %s --socket %s --folder %s.bridge --child\n", (int)pid,
                   loops_cluster.config, loops_cluster.socket, loops_cluster.socket);
    assert_string_equal(last, wanted);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    assert_int_equal(lines(".told", NULL, 0), 1);
    assert_true(kill(pid, 0) < 0);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=bridge_ended"), 1);
    assert_int_equal(cluster_log_count(&loops_cluster, "asked=yes"), 1);
}

/* The end is logged with its reason, and it is started again: at once, then later each time. */
static void test_is_started_again_with_back_off(void **state)
{
    up(state, BRIDGE(""), WAITS);
    await_lines(".ready", 1);
    const uint64_t begin_ms = test_now_ms();
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(kill(last_pid(), SIGKILL), 0);
        await_lines(".ready", i + 1);
    }
    /* 100 + 200 + 400 ms of waiting; how much longer it takes is the machine's. */
    assert_true(test_now_ms() - begin_ms >= 690);
    assert_true(cluster_log_wait(&loops_cluster, "event=bridge_ended", 1000));
    assert_int_equal(cluster_log_count(&loops_cluster, "signal=9"), 3);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=bridge_spawned"), 4);
}

static void test_what_cannot_be_started_is_said_and_tried_again(void **state)
{
    assert_int_equal(loops_make(state, "", BRIDGE("")), 0);
    make_script(WAITS);
    assert_int_equal(chmod(script, 0644), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=bridge_not_started program=", 2000));
    assert_int_equal(chmod(script, 0755), 0);
    await_lines(".ready", 1);
}

static void test_status_is_told(void **state)
{
    up(state, BRIDGE(""), "exit 3");
    assert_true(cluster_log_wait(&loops_cluster, "status=3 lived_ms=", 2000));
    await_lines("", 2);
}

static void test_reload_follows_the_section(void **state)
{
    up(state, "", WAITS);
    reconfigure(BRIDGE(""));
    await_lines(".ready", 1);
    const pid_t first = last_pid();
    /* Anything that it can take over while it runs: it is told to read again. */
    reconfigure(BRIDGE(", peers: [{host: beta}]"));
    await_lines(".again", 1);
    assert_int_equal(last_pid(), first);
    /* Another listener: another process, without back-off. */
    reconfigure(BRIDGE(", listen: [\"127.0.0.1:0\"]"));
    await_lines(".ready", 2);
    const pid_t second = last_pid();
    assert_int_not_equal(second, first);
    assert_true(kill(first, 0) < 0);
    /* By hand from now on. */
    reconfigure(BRIDGE(", start: false"));
    await_gone(second);
    await_lines(".told", 2);
    reconfigure("");
    test_sleep_ms(150); /* longer than the shortest back-off */
    assert_int_equal(lines("", NULL, 0), 2);
}

static void test_one_that_does_not_end_is_killed(void **state)
{
    up(state, BRIDGE(""), "trap '' TERM\necho ready >>$0.ready\nwhile :; do sleep 0.02; done");
    await_lines(".ready", 1);
    const pid_t pid = last_pid();
    reconfigure("");
    assert_true(cluster_log_wait(&loops_cluster, "event=bridge_killed", 5000));
    await_gone(pid);
    assert_true(cluster_log_wait(&loops_cluster, "signal=9", 2000));
}

/* A daemon that is killed leaves it to the next one, which watches it as its own. */
static void test_next_daemon_takes_it_over(void **state)
{
    char mark[160];
    up(state, BRIDGE(""), WAITS);
    await_lines(".ready", 1);
    await_spawned(1);
    const pid_t pid = last_pid();
    cluster_kill(&loops_cluster);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=bridge_adopted", 2000));
    await_lines(".again", 1); /* it reads again what may have changed */
    assert_int_equal(lines("", NULL, 0), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(cluster_log_wait(&loops_cluster, "event=bridge_ended pid=", 2000));
    assert_int_equal(cluster_log_count(&loops_cluster, "status=unknown"), 1);
    await_lines(".ready", 2);
    await_spawned(2);
    /* One that is dead by then is not looked for. */
    cluster_kill(&loops_cluster);
    assert_int_equal(kill(last_pid(), SIGKILL), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    await_lines(".ready", 3);
    await_spawned(3);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=bridge_adopted"), 1);
    /* Stopped in order it is told as a child is, and nothing is left for the next. */
    cluster_kill(&loops_cluster);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    const pid_t last = last_pid();
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    assert_int_equal(lines(".told", NULL, 0), 1);
    await_gone(last);
    (void)snprintf(mark, sizeof(mark), "%s.child", loops_cluster.socket);
    assert_int_equal(access(mark, F_OK), -1);
}

static void test_what_has_changed_meanwhile_counts(void **state)
{
    char text[1024];
    up(state, BRIDGE(""), WAITS);
    await_lines(".ready", 1);
    await_spawned(1);
    const pid_t first = last_pid();
    cluster_kill(&loops_cluster);
    (void)snprintf(text, sizeof(text), "%s", BRIDGE(", listen: [\"127.0.0.1:0\"]"));
    assert_int_equal(cluster_configure(&loops_cluster, text), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    await_lines(".ready", 2); /* another listener: another bridge */
    await_gone(first);
    await_spawned(2);
    const pid_t second = last_pid();
    cluster_kill(&loops_cluster);
    assert_int_equal(cluster_configure(&loops_cluster, "{}"), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    await_gone(second);
    assert_int_equal(lines("", NULL, 0), 2);
}

/* A number without the time that belongs to it is nobody's. */
static void test_marks_that_are_none(void **state)
{
    char mark[160];
    const char *const texts[] = {"", "x", "1 1 1\n", "%d 1 1\n", "-5 1 1\n"};
    assert_int_equal(loops_make(state, "", BRIDGE("")), 0);
    make_script(WAITS);
    (void)snprintf(mark, sizeof(mark), "%s.child", loops_cluster.socket);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(texts); i++) {
        FILE *file = fopen(mark, "w");
        assert_non_null(file);
        if (strchr(texts[i], '%')) {
            assert_true(fprintf(file, "%d 1 1\n", (int)getpid()) > 0); /* must live on */
        } else {
            assert_true(fputs(texts[i], file) >= 0);
        }
        assert_int_equal(fclose(file), 0);
        assert_int_equal(cluster_start(&loops_cluster), 0);
        await_lines(".ready", i + 1);
        assert_int_equal(cluster_stop(&loops_cluster), 0);
    }
    assert_int_equal(cluster_log_count(&loops_cluster, "event=bridge_adopted"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_is_started_with_what_it_needs_and_stopped_in_order),
        LOOPS_TEST(test_is_started_again_with_back_off, "epoll"),
        LOOPS_TEST(test_what_cannot_be_started_is_said_and_tried_again, "uring"),
        LOOPS_TEST(test_status_is_told, "epoll"),
        LOOPS_BOTH(test_reload_follows_the_section),
        LOOPS_TEST(test_one_that_does_not_end_is_killed, "epoll"),
        LOOPS_BOTH(test_next_daemon_takes_it_over),
        LOOPS_TEST(test_what_has_changed_meanwhile_counts, "epoll"),
        LOOPS_TEST(test_marks_that_are_none, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
