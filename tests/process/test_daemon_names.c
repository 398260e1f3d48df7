/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names over a restart of the daemon (scenarios 14, 43, 100): until its time for coming back is
 * over a name belongs to the endpoint that had it and lives, and to nobody else.
 */
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME  "/game/eu/pc/w1/core/gate/1"
#define OTHER "/game/eu/pc/w1/core/gate/2"

static struct cluster cluster;

static int setup(void **state)
{
    (void)state;
    cluster = (struct cluster){.pid = 0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

static void restart(void)
{
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
}

/** Asks for a name. @return 0, or the code of the refusal */
static int ask(struct raw *raw, const char *path, uint64_t cookie, struct rbi_text *why)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = RBI_ENDPOINT_READY, .cookie = cookie};
    rbi_text_set(&body.path, path);
    if (raw_connect(raw, cluster.socket) != 0 || raw_hello(raw) != 0 ||
        raw_send_register(raw, &body) != 0 || raw_receive(raw, &message, RAW_TIMEOUT_MS) != 0) {
        return -1000;
    }
    int code = message.header.type == RBI_WIRE_REGISTERED ? 0 : -1001;
    if (message.header.type == RBI_WIRE_ERROR) {
        code = message.body.error.code;
        *why = message.body.error.text;
    } else if (code == 0) {
        raw->registered = message.body.registered;
    }
    raw_message_deinit(&message);
    return code;
}

/** The same as another process, which brings that cookie. */
static int stranger(const char *path, uint64_t cookie)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct raw raw;
        struct rbi_text why = {.length = 0};
        const int code = ask(&raw, path, cookie, &why);
        if (code == RBI_CODE_IN_USE && strstr(why.bytes, "kept for uid") == NULL) {
            _exit(99);
        }
        _exit(-code);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

/** A process that has a name until it is killed. */
static pid_t holder(const char *path)
{
    int ready[2];
    char said = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct raw raw;
        (void)close(ready[0]);
        if (raw_up(&raw, cluster.socket, path) == 0 && write(ready[1], "x", 1) == 1) {
            (void)pause();
        }
        _exit(1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &said, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void end(pid_t pid)
{
    int status = 0;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_stranger_does_not_get_the_name_of_one_who_lives(void **state)
{
    struct raw raw;
    struct raw again;
    struct rbi_text why;
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    const pid_t pid = holder(OTHER);
    assert_int_equal(raw_up(&raw, cluster.socket, NAME), 0);
    const uint64_t cookie = raw.registered.cookie;
    restart();
    assert_int_equal(stranger(NAME, 0), RBI_CODE_IN_USE);
    assert_int_equal(stranger(NAME, cookie + 1), RBI_CODE_IN_USE);
    assert_int_equal(stranger(OTHER, cookie), RBI_CODE_IN_USE);
    assert_int_equal(stranger("/game/eu/pc/w1/core/gate/3", 0), 0); /* nobody had that */
    /* A second restart changes nothing: who was awaited still is. */
    restart();
    assert_int_equal(stranger(NAME, 0), RBI_CODE_IN_USE);
    assert_int_equal(ask(&again, NAME, cookie, &why), 0);
    raw_close(&again);
    /* It came back, and left: now it is free. */
    assert_int_equal(stranger(NAME, 0), 0);
    assert_int_equal(stranger(OTHER, 0), RBI_CODE_IN_USE);
    raw_close(&raw);
    end(pid);
}

static void test_cookie_proves_it_in_another_process(void **state)
{
    struct raw raw;
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    assert_int_equal(raw_up(&raw, cluster.socket, NAME), 0);
    restart();
    assert_int_equal(stranger(NAME, raw.registered.cookie), 0);
    raw_close(&raw);
}

static void test_name_of_the_dead_is_free_at_once(void **state)
{
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    const pid_t pid = holder(NAME);
    cluster_kill(&cluster);
    end(pid);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(stranger(NAME, 0), 0);
}

static void test_own_process_needs_no_proof(void **state)
{
    struct raw raw;
    struct raw again;
    struct rbi_text why;
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    assert_int_equal(raw_up(&raw, cluster.socket, NAME), 0);
    restart();
    assert_int_equal(ask(&again, NAME, 0, &why), 0);
    raw_close(&again);
    raw_close(&raw);
}

static void test_settled_frees_the_names(void **state)
{
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 1s}\n"), 0);
    const pid_t pid = holder(NAME);
    assert_true(cluster_log_wait(&cluster, "event=settled", 10000));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    restart();
    assert_int_equal(stranger(NAME, 0), RBI_CODE_IN_USE);
    for (unsigned i = 0; i < 100 && cluster_log_count(&cluster, "event=settled") < 2; i++) {
        test_sleep_ms(100);
    }
    assert_int_equal(stranger(NAME, 0), 0);
    end(pid);
}

/** In order or by force: what a daemon leaves is the same. */
static void test_orderly_stop_keeps_the_names(void **state)
{
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    const pid_t pid = holder(NAME);
    assert_int_equal(cluster_stop(&cluster), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(stranger(NAME, 0), RBI_CODE_IN_USE);
    end(pid);
}

static void book(char *out, size_t size)
{
    (void)snprintf(out, size, "%s.names", cluster.socket);
}

static void test_damaged_record_is_nobodys(void **state)
{
    char path[256];
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    const pid_t pid = holder(NAME);
    cluster_kill(&cluster);
    book(path, sizeof(path));
    const int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "Z", 1, 40), 1); /* in the path */
    (void)close(fd);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(stranger(NAME, 0), 0);
    end(pid);
}

static void test_book_that_others_could_write_is_not_believed(void **state)
{
    char path[256];
    (void)state;
    assert_int_equal(cluster_up(&cluster, "daemon: {return_time: 60s}\n"), 0);
    const pid_t pid = holder(NAME);
    cluster_kill(&cluster);
    book(path, sizeof(path));
    assert_int_equal(chmod(path, 0620), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(cluster_log_count(&cluster, "event=names_not_kept"), 1);
    assert_int_equal(stranger(NAME, 0), 0);
    end(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stranger_does_not_get_the_name_of_one_who_lives, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_cookie_proves_it_in_another_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_name_of_the_dead_is_free_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_process_needs_no_proof, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settled_frees_the_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_orderly_stop_keeps_the_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_record_is_nobodys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_book_that_others_could_write_is_not_believed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
