/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features D34, D36: "nobody is there now" and "there is no such service" stay apart over restarts
 * of the daemon, for daemon.cluster_linger; and what is in the file is not believed when it is
 * damaged.
 */
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LATER "/game/eu/pc/w1/core/later"
#define GATE  "/game/eu/pc/w1/core/gate"

static struct cluster cluster;

static int set_up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "daemon: {return_time: 100ms}\n");
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

/** What is said of a cluster: a code, as the library tells it; 0: somebody is there. */
static int get(const char *path)
{
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_node body = {.what = RBI_NODE_GET};
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_send(&raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
    assert_int_equal(raw_receive(&raw, &message, RAW_TIMEOUT_MS), 0);
    int code = 0;
    if (message.header.type == RBI_WIRE_ERROR) {
        code = message.body.error.code;
    } else if (message.body.node_state.instances == 0) {
        code = RBI_CODE_NO_INSTANCE;
    }
    raw_message_deinit(&message);
    raw_close(&raw);
    return code;
}

static void create(const char *path)
{
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_node body = {.what = RBI_NODE_CREATE};
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_send(&raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
    assert_int_equal(raw_expect(&raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    raw_close(&raw);
}

static void file_name(char name[RBI_SOCKET_PATH_MAX + 16])
{
    (void)snprintf(name, RBI_SOCKET_PATH_MAX + 16, "%s.clusters", cluster.socket);
}

/** The file names a path. It is written within a second. */
static void wait_for_file(const char *path, bool there)
{
    char name[RBI_SOCKET_PATH_MAX + 16];
    char text[4096];
    const uint64_t end_ms = test_now_ms() + RAW_TIMEOUT_MS;
    bool found = false;
    file_name(name);
    do {
        FILE *file = fopen(name, "rb");
        const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
        text[n] = '\0';
        found = strstr(text, path) != NULL;
        if (file) {
            (void)fclose(file);
        }
        assert_true(test_now_ms() < end_ms);
    } while (found != there && usleep(1000) == 0);
}

static void restart(void)
{
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
}

static void test_what_was_made_is_known_to_the_next_daemon(void **state)
{
    (void)state;
    create(LATER);
    restart(); /* killed right after the answer */
    assert_int_equal(get(LATER), RBI_CODE_NO_INSTANCE);
    assert_int_equal(get(GATE), RBI_CODE_NO_SERVICE);
    restart();
    assert_int_equal(get(LATER), RBI_CODE_NO_INSTANCE);
}

static void test_whoever_was_there_is_known_to_the_next_daemon(void **state)
{
    (void)state;
    struct raw owner;
    assert_int_equal(raw_up(&owner, cluster.socket, GATE "/1"), 0);
    wait_for_file(GATE, true);
    cluster_kill(&cluster);
    raw_close(&owner); /* and does not come back */
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(get(GATE), RBI_CODE_NO_INSTANCE);
    assert_int_equal(raw_up(&owner, cluster.socket, GATE "/1"), 0);
    assert_int_equal(get(GATE), 0);
    raw_close(&owner);
}

static void test_linger_ends(void **state)
{
    (void)state;
    assert_int_equal(cluster_stop(&cluster), 0);
    assert_int_equal(cluster_configure(&cluster, "daemon: {cluster_linger: 2s}\n"), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    create(LATER);
    restart(); /* the time goes on */
    assert_int_equal(get(LATER), RBI_CODE_NO_INSTANCE);
    wait_for_file(LATER, false);
    assert_int_equal(get(LATER), RBI_CODE_NO_SERVICE);
}

static void test_damaged_file_is_not_believed(void **state)
{
    (void)state;
    char name[RBI_SOCKET_PATH_MAX + 16];
    create(LATER);
    cluster_kill(&cluster);
    file_name(name);
    FILE *file = fopen(name, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 30, SEEK_SET), 0);
    assert_int_equal(fputc('x', file), 'x');
    assert_int_equal(fclose(file), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(cluster_log_count(&cluster, "event=clusters_ignored"), 1);
    assert_int_equal(get(LATER), RBI_CODE_NO_SERVICE);
    /* And it does not stand in the way of the next one. */
    create(LATER);
    restart();
    assert_int_equal(get(LATER), RBI_CODE_NO_INSTANCE);
}

static void test_without_a_place_it_runs(void **state)
{
    (void)state;
    assert_int_equal(cluster_stop(&cluster), 0);
    assert_int_equal(cluster_configure(&cluster, "daemon: {state_dir: /proc/none}\n"), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    create(LATER);
    assert_true(cluster_log_wait(&cluster, "event=clusters_not_kept", 5000));
    assert_int_equal(get(LATER), RBI_CODE_NO_INSTANCE);
}

#define KNOWN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KNOWN_TEST(test_what_was_made_is_known_to_the_next_daemon),
        KNOWN_TEST(test_whoever_was_there_is_known_to_the_next_daemon),
        KNOWN_TEST(test_linger_ends),
        KNOWN_TEST(test_damaged_file_is_not_believed),
        KNOWN_TEST(test_without_a_place_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
