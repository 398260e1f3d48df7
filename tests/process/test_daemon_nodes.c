/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NODE on the control socket: what no library of ours sends, and who is told of what (features D31,
 * D32; scenarios 97, 99, 132).
 */
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NODE_PATH "/game/eu/meta/season"
#define OWNER     "/game/eu/pc/w1/core/gate/1"

static struct cluster cluster;

static int set_up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "daemon: {return_time: 500ms}\n"
                                "quota: {control: 100000, user_control: 1000000}\n");
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

static void up(struct raw *raw)
{
    assert_int_equal(raw_connect(raw, cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
}

static void ask(struct raw *raw, uint32_t what, const char *path, uint32_t flags)
{
    struct rbi_wire_node body = {.what = what, .flags = flags};
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_send(raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
}

static int refused(struct raw *raw, uint32_t what, const char *path, uint32_t flags)
{
    ask(raw, what, path, flags);
    return raw_expect_error(raw);
}

static uint64_t done(struct raw *raw, uint32_t what, const char *path, uint32_t flags)
{
    struct raw_message message;
    ask(raw, what, path, flags);
    assert_int_equal(raw_expect(raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    const uint64_t value = message.body.ok.value;
    raw_message_deinit(&message);
    return value;
}

static void test_refuses_what_makes_no_sense(void **state)
{
    (void)state;
    struct raw raw;
    up(&raw);
    assert_int_equal(refused(&raw, 0, NODE_PATH, 0), RBI_CODE_ARGUMENT);
    assert_int_equal(refused(&raw, 6, NODE_PATH, 0), RBI_CODE_ARGUMENT);
    assert_int_equal(refused(&raw, UINT32_MAX, NODE_PATH, 0), RBI_CODE_ARGUMENT);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "", 0), RBI_CODE_PATH);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "game/meta/a", 0), RBI_CODE_PATH);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "/game/meta/a\xff", 0), RBI_CODE_PATH);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "/game/meta", 0), RBI_CODE_ARGUMENT);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "/game", 0), RBI_CODE_ARGUMENT);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "/", 0), RBI_CODE_ARGUMENT);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, "/anon/meta/a", 0), RBI_CODE_DENIED);
    /* Who has no endpoint has nothing that it could end with. */
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL),
                     RBI_CODE_ARGUMENT);
    /* AGAIN from whom it never was: a node of others is not to be had so. */
    assert_true(done(&raw, RBI_NODE_CREATE, NODE_PATH, 0) != 0);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_AGAIN), RBI_CODE_IN_USE);
    assert_int_equal(refused(&raw, RBI_NODE_CREATE, NODE_PATH, UINT32_MAX), RBI_CODE_ARGUMENT);
    raw_close(&raw);
}

/* A name that no element can be, as where to go on: there is nothing behind it, or all is. */
static void test_pages_begin_anywhere(void **state)
{
    (void)state;
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_node body = {.what = RBI_NODE_GET};
    static const struct {
        const char *after;
        const char *names;
    } pages[] = {{"", "a\nb\n"}, {"a", "b\n"}, {"\xff", ""}, {"\x01", "a\nb\n"}, {"aa", "b\n"}};
    up(&raw);
    (void)done(&raw, RBI_NODE_CREATE, "/game/meta/a", 0);
    (void)done(&raw, RBI_NODE_CREATE, "/game/meta/b", 0);
    rbi_text_set(&body.path, "/game/meta");
    for (size_t i = 0; i < RBI_ARRAY_SIZE(pages); i++) {
        rbi_text_set(&body.after, pages[i].after);
        assert_int_equal(raw_send(&raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
        assert_int_equal(raw_expect(&raw, RBI_WIRE_NODE_STATE, &message, RAW_TIMEOUT_MS), 0);
        const struct rbi_data *names = &message.body.node_state.names;
        assert_int_equal(names->length, strlen(pages[i].names));
        assert_memory_equal(names->bytes, pages[i].names, names->length);
        raw_message_deinit(&message);
    }
    /* The same of SCAN: any text is a place to go on from. */
    body.what = RBI_NODE_SCAN;
    rbi_text_set(&body.path, "/game");
    for (size_t i = 0; i < RBI_ARRAY_SIZE(pages); i++) {
        rbi_text_set(&body.after, i == 0 ? "/game/meta/a" : pages[i].after);
        assert_int_equal(raw_send(&raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
        assert_int_equal(raw_expect(&raw, RBI_WIRE_NODE_STATE, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(message.body.node_state.more, 0);
        raw_message_deinit(&message);
    }
    raw_close(&raw);
}

/** Next NODE_EVENT: its change; @p initial is checked. */
static uint32_t event_of(struct raw *raw, uint64_t *revision)
{
    struct raw_message message;
    assert_int_equal(raw_expect(raw, RBI_WIRE_NODE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    const uint32_t change = message.body.node_event.change;
    *revision = message.body.node_event.revision;
    raw_message_deinit(&message);
    return change;
}

/* One event a change, in order, each with a higher revision; the owner is told without watching. */
static void test_one_event_a_change(void **state)
{
    (void)state;
    struct raw owner;
    struct raw watcher;
    struct raw tool;
    uint64_t revision = 0;
    up(&watcher);
    up(&tool);
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_WATCH, "/game"), 0);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_WATCH, NODE_PATH), 0);
    const uint64_t made = done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL);
    const uint64_t set = done(&tool, RBI_NODE_SET, NODE_PATH, 0);
    const uint64_t gone = done(&tool, RBI_NODE_REMOVE, NODE_PATH, 0);
    assert_true(made < set && set < gone);
    assert_int_equal(event_of(&watcher, &revision), RBI_CHANGE_ADDED);
    assert_true(revision == made);
    assert_int_equal(event_of(&watcher, &revision), RBI_CHANGE_UPDATED);
    assert_true(revision == set);
    assert_int_equal(event_of(&watcher, &revision), RBI_CHANGE_REMOVED);
    assert_true(revision == gone);
    assert_true(raw_silent(&watcher, 50));
    assert_int_equal(event_of(&owner, &revision), RBI_CHANGE_UPDATED);
    assert_int_equal(event_of(&owner, &revision), RBI_CHANGE_REMOVED);
    assert_true(raw_silent(&owner, 50));
    raw_close(&owner);
    raw_close(&watcher);
    raw_close(&tool);
}

/*
 * Scenario 99: an owner that has not heard of the removal says under the next daemon that its node
 * is there. It is not.
 */
static void test_what_was_removed_is_not_brought_back(void **state)
{
    (void)state;
    struct raw owner;
    struct raw tool;
    up(&tool);
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    (void)done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL);
    (void)done(&tool, RBI_NODE_REMOVE, NODE_PATH, 0);
    raw_close(&tool);
    cluster_kill(&cluster);
    raw_close(&owner);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    assert_int_equal(
        refused(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL | RBI_NODE_AGAIN),
        RBI_CODE_NO_SERVICE);
    raw_close(&owner);
}

/* The same where no file could tell: then its owner's word is all there is. */
static void test_without_a_file_its_owner_is_believed(void **state)
{
    (void)state;
    struct raw owner;
    char name[RBI_SOCKET_PATH_MAX + 16];
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    (void)done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL);
    cluster_kill(&cluster);
    raw_close(&owner);
    (void)snprintf(name, sizeof name, "%s.nodes", cluster.socket);
    assert_int_equal(remove(name), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    assert_true(done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL | RBI_NODE_AGAIN) != 0);
    raw_close(&owner);
}

/* Another life of the instance is another owner: the name is free when the time is over. */
static void test_another_life_has_to_wait(void **state)
{
    (void)state;
    struct raw owner;
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    (void)done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL);
    cluster_kill(&cluster);
    raw_close(&owner);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(raw_up(&owner, cluster.socket, "/game/eu/pc/w1/core/gate/2"), 0);
    assert_int_equal(
        refused(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL | RBI_NODE_AGAIN),
        RBI_CODE_IN_USE);
    assert_true(cluster_log_wait(&cluster, "event=node_not_returned", 5000));
    (void)done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL);
    raw_close(&owner);
}

/* A journal is written anew when it has become long, and what was in it is there. */
static void test_journal_does_not_grow(void **state)
{
    (void)state;
    struct raw raw;
    struct rbi_wire_node body = {.what = RBI_NODE_SET};
    char name[RBI_SOCKET_PATH_MAX + 16];
    up(&raw);
    (void)done(&raw, RBI_NODE_CREATE, NODE_PATH, 0);
    (void)done(&raw, RBI_NODE_CREATE, "/game/meta/still", 0);
    rbi_text_set(&body.path, NODE_PATH);
    body.value.length = RBI_WIRE_DATA_MAX;
    for (unsigned i = 0; i < 500; i++) { /* over 500 KiB */
        struct raw_message message;
        memset(body.value.bytes, (int)i, RBI_WIRE_DATA_MAX);
        assert_int_equal(raw_send(&raw, RBI_WIRE_NODE, &body, NULL, 0), 0);
        assert_int_equal(raw_expect(&raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
        raw_message_deinit(&message);
    }
    (void)snprintf(name, sizeof name, "%s.nodes", cluster.socket);
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_in_range(ftell(file), 1024, 80 * 1024);
    (void)fclose(file);
    raw_close(&raw);
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(raw_status(cluster.socket, "nodes"), 2);
}

/* What could not outlive the daemon is not promised to; what need not, is had all the same. */
static void test_without_a_place_nothing_is_promised(void **state)
{
    (void)state;
    struct raw owner;
    assert_int_equal(cluster_stop(&cluster), 0);
    assert_int_equal(cluster_configure(&cluster, "daemon: {state_dir: /proc/none}\n"), 0);
    assert_int_equal(cluster_start(&cluster), 0);
    assert_int_equal(raw_up(&owner, cluster.socket, OWNER), 0);
    assert_int_equal(refused(&owner, RBI_NODE_CREATE, NODE_PATH, 0), RBI_CODE_SYSTEM);
    assert_true(cluster_log_wait(&cluster, "event=nodes_not_kept file=/proc/none/nodes", 1000));
    assert_int_equal(refused(&owner, RBI_NODE_GET, NODE_PATH, 0), RBI_CODE_NO_SERVICE);
    assert_true(done(&owner, RBI_NODE_CREATE, NODE_PATH, RBI_NODE_EPHEMERAL) != 0);
    assert_true(done(&owner, RBI_NODE_SET, NODE_PATH, 0) != 0);
    assert_true(done(&owner, RBI_NODE_REMOVE, NODE_PATH, 0) != 0);
    assert_int_equal(raw_status(cluster.socket, "nodes"), 0);
    raw_close(&owner);
}

#define NODES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODES_TEST(test_refuses_what_makes_no_sense),
        NODES_TEST(test_pages_begin_anywhere),
        NODES_TEST(test_one_event_a_change),
        NODES_TEST(test_what_was_removed_is_not_brought_back),
        NODES_TEST(test_without_a_file_its_owner_is_believed),
        NODES_TEST(test_another_life_has_to_wait),
        NODES_TEST(test_journal_does_not_grow),
        NODES_TEST(test_without_a_place_nothing_is_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
