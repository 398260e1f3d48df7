/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features 2.10: the answer of a mock lies in a file beside the configuration. It is read when the
 * text that names it is taken, up to 64 KiB, nothing outside of that folder is, and what is wrong
 * with it is said with its place.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOP "/game/eu/pc/w1/core/shop"
#define MAX  65536U

static struct cluster cluster;
static struct node client;
static struct ringbus_addr shop;
static unsigned char reply[MAX + 1];
static size_t reply_size;
static int error;
static unsigned ended;

static const char one_file[] =
    "clusters:\n"
    "  - match: " SHOP "\n"
    "    degrade:\n"
    "      - {id: closed, action: mock, on: [no_instance], mock_file: %s}\n";

static void path_of(const char *name, char *path, size_t size)
{
    CHECK(snprintf(path, size, "%s/%s", cluster.folder, name) < (int)size);
}

static void put_file(const char *name, unsigned char letter, size_t size)
{
    char path[256];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (size_t i = 0; i < size; i++) {
        CHECK(fputc(letter, file) == letter);
    }
    CHECK(fclose(file) == 0);
}

static void drop_file(const char *name)
{
    char path[256];
    path_of(name, path, sizeof path);
    CHECK(unlink(path) == 0);
}

static void configure(const char *name)
{
    char text[512];
    (void)snprintf(text, sizeof text, one_file, name);
    CHECK(cluster_configure(&cluster, text) == 0);
}

static void reload(void)
{
    CHECK(kill(cluster.pid, SIGHUP) == 0);
}

/* @return exit code of ringbusctl */
static int ctl(const char *arguments)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "%s %s --socket %s >>%s/ctl.log 2>&1", RINGBUSCTL_PATH,
                   arguments, cluster.socket, cluster.folder);
    const int status = system(command); /* NOLINT(cert-env33-c): of this test's own making */
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool ctl_said(const char *text)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "grep -qF '%s' %s/ctl.log", text, cluster.folder);
    return system(command) == 0; /* NOLINT(cert-env33-c) */
}

static void note(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    error = result->error;
    reply_size = 0;
    if (result->message != NULL) {
        CHECK((result->message->flags & RINGBUS_MESSAGE_MOCKED) != 0);
        reply_size = result->message->size;
        CHECK(reply_size <= MAX);
        memcpy(reply, result->message->data, reply_size);
    }
    ended++;
}

static void ask(void)
{
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .timeout_ms = 60000};
    const struct ringbus_part part = {"x", 1};
    const unsigned before = ended;
    error = ringbus_request_with(client.bus, &shop, &part, 1, &options, note, NULL);
    reply_size = 0;
    if (error == 1) {
        error = 0;
        RUN_UNTIL(ended == before + 1, NODE_MS, &client);
    }
}

/* Until the answer is so many bytes of that letter: what was published has come. */
static void expect(unsigned char letter, size_t size)
{
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    do {
        CHECK(test_now_ms() < end_ms);
        struct node *const all[] = {&client};
        nodes_step(all, 1);
        ask();
    } while (error != 0 || reply_size != size || (size > 0 && reply[0] != letter));
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(reply[i], letter);
    }
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(cluster_make(&cluster, "{}\n"), 0);
    put_file("closed.json", 'a', MAX);
    configure("closed.json");
    assert_int_equal(cluster_start(&cluster), 0);
    memset(&client, 0, sizeof client);
    node_open(&client, &cluster, NULL);
    assert_int_equal(ringbus_target(client.bus, SHOP, NULL, &shop), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&client);
    cluster_down(&cluster);
    return 0;
}

static void test_is_the_answer(void **state)
{
    (void)state;
    expect('a', MAX);
    /* It is read again with the text that names it, and not sooner. */
    put_file("closed.json", 'b', 3);
    expect('a', MAX);
    reload();
    expect('b', 3);
    put_file("closed.json", 'b', 0);
    reload();
    expect('b', 0);
    /* Without a file it is the text again. */
    CHECK(cluster_configure(&cluster, "clusters:\n  - match: " SHOP "\n    degrade:\n"
                                      "      - {id: closed, action: mock, on: [no_instance], "
                                      "mock: cc}\n") == 0);
    reload();
    expect('c', 2);
}

static void expect_refused(const char *name, const char *why)
{
    const unsigned before = cluster_log_count(&cluster, "event=reload_failed");
    configure(name);
    reload();
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (cluster_log_count(&cluster, "event=reload_failed") == before) {
        CHECK(test_now_ms() < end_ms);
        test_sleep_ms(1);
    }
    if (!cluster_log_wait(&cluster, why, 1000)) {
        fail_msg("%s: not refused because %s", name, why);
    }
    assert_true(cluster_log_wait(&cluster, "line=4 column=66", 1000));
    expect('a', MAX); /* the old configuration stays */
}

static void test_what_is_refused(void **state)
{
    (void)state;
    char path[256];
    char link_path[256];
    put_file("large.json", 'x', MAX + 1);
    path_of("folder", path, sizeof path);
    CHECK(mkdir(path, 0700) == 0);
    path_of("closed.json", path, sizeof path);
    path_of("link.json", link_path, sizeof link_path);
    CHECK(symlink(path, link_path) == 0);
    expect('a', MAX);
    expect_refused("absent.json", "mock_file: absent.json: No such file");
    expect_refused("large.json", "large.json: it has more than 65536 bytes");
    expect_refused("folder", "folder: expected a file");
    expect_refused("link.json", "link.json: a symbolic link leads to it");
    expect_refused("/etc/passwd", "/etc/passwd: expected a file");
    expect_refused("../secret", "../secret: expected a file");
    expect_refused("folder/../closed.json", "folder/../closed.json: expected a file");
    path_of("folder", path, sizeof path);
    CHECK(rmdir(path) == 0);
}

/* Pushed over the file of the daemon: the same, and kept over edits and restarts. */
static void test_pushed(void **state)
{
    (void)state;
    char command[300];
    char text[512];
    char path[256];
    CHECK(cluster_configure(&cluster, "{}\n") == 0);
    reload();
    put_file("pushed.json", 'p', 1000);
    path_of("push.yaml", path, sizeof path);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    (void)snprintf(text, sizeof text, one_file, "pushed.json");
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
    (void)snprintf(command, sizeof command, "apply %s", path);
    assert_int_equal(ctl(command), 0);
    expect('p', 1000);
    /* An edit of something else does not depend on it. */
    drop_file("pushed.json");
    assert_int_equal(ctl("weight " SHOP "/1 50"), 0);
    expect('p', 1000);
    /* Pushed anew it has to be there, and the place is said. */
    assert_int_not_equal(ctl(command), 0);
    assert_true(ctl_said("pushed.json: No such file"));
    /* Another daemon goes on without it. */
    cluster_kill(&cluster);
    CHECK(cluster_start(&cluster) == 0);
    assert_true(cluster_log_wait(&cluster, "event=mock_absent", NODE_MS));
    assert_true(cluster_log_wait(&cluster, "event=version_resumed", NODE_MS));
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    do {
        CHECK(test_now_ms() < end_ms);
        struct node *const all[] = {&client};
        nodes_step(all, 1);
        ask();
    } while (error != RINGBUS_E_NO_SERVICE && error != RINGBUS_E_NO_INSTANCE);
    put_file("pushed.json", 'q', 5);
    assert_int_equal(ctl(command), 0);
    expect('q', 5);
    drop_file("push.yaml");
    drop_file("ctl.log");
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_is_the_answer),
        FILE_TEST(test_what_is_refused),
        FILE_TEST(test_pushed),
    };
    return cmocka_run_group_tests_name("mock_file", tests, NULL, NULL);
}
