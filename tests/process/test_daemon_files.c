/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon finds where it keeps its files (features J16, 3.2): only what nobody else can have
 * written holds, and nothing that lies in the way stops it.
 */
#include "bus/record.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO_1 "/game/eu/pc/w1/core/echo/1"
#define NODE   "/game/eu/pc/w1/core/echo/meta/flag"
#define NOBODY 65534U

static struct rbi_wire_applied applied;

static void ask(struct raw *raw, enum rbi_wire_type type, const void *body, int fd)
{
    struct raw_message message;
    assert_int_equal(raw_send(raw, type, body, &fd, fd >= 0 ? 1 : 0), 0);
    do {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
        assert_int_not_equal(message.header.type, RBI_WIRE_ERROR);
    } while (message.header.type != RBI_WIRE_APPLIED && message.header.type != RBI_WIRE_OK);
    if (message.header.type == RBI_WIRE_APPLIED) {
        applied = message.body.applied;
    }
    raw_message_deinit(&message);
}

static void apply(struct raw *raw, const char *text)
{
    const struct rbi_wire_apply body = {.size = (uint32_t)strlen(text)};
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(pwrite(fd, text, body.size, 0), (ssize_t)body.size);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    ask(raw, RBI_WIRE_APPLY, &body, fd);
    assert_int_equal(close(fd), 0);
}

static void up(struct raw *raw)
{
    assert_int_equal(raw_connect(raw, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
}

static void place(const char *name, char out[160])
{
    (void)snprintf(out, 160, "%s.%s", loops_cluster.socket, name);
}

/** A whole version whose rules let nobody in, left by a daemon. */
static void leave_version(void **state, char file[160])
{
    struct raw raw;
    assert_int_equal(loops_up(state, "", ""), 0);
    up(&raw);
    apply(&raw, "rights: {rules: [{id: shut, action: deny, verbs: [own]}]}\n");
    assert_int_equal(applied.warning.length, 0);
    raw_close(&raw);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    place("version.01", file);
}

/** @return whether the version of the file is the one that holds in a daemon that starts now */
static bool holds(void)
{
    struct raw raw;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    const bool shut = raw_up(&raw, loops_cluster.socket, ECHO_1) != 0;
    raw_close(&raw);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    return shut;
}

/* Whoever can write it could give himself every right. */
static void test_version_that_others_can_write_is_none(void **state)
{
    char file[160];
    leave_version(state, file);
    assert_int_equal(chmod(file, 0620), 0);
    assert_false(holds());
    assert_int_equal(chmod(file, 0602), 0);
    assert_false(holds());
    assert_int_equal(cluster_log_count(&loops_cluster, "others than its user"), 2);
    assert_int_equal(chmod(file, 0644), 0);
    assert_true(holds());
    if (geteuid() == 0) {
        assert_int_equal(chown(file, NOBODY, NOBODY), 0);
        assert_false(holds());
    }
}

static void test_version_behind_a_link_is_none(void **state)
{
    char file[160];
    char elsewhere[160];
    leave_version(state, file);
    place("elsewhere", elsewhere);
    assert_int_equal(rename(file, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, file), 0);
    assert_false(holds());
    assert_int_equal(cluster_log_count(&loops_cluster, "event=version_ignored"), 1);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_false(holds());
}

/* The daemon writes beside the place, and renames: what is there already is not written into. */
static void test_what_lies_in_the_way_is_replaced(void **state)
{
    struct raw raw;
    char beside[160];
    struct stat found;
    assert_int_equal(loops_up(state, "", ""), 0);
    up(&raw);
    place("version.01.new", beside);
    assert_int_equal(mkfifo(beside, 0666), 0);
    apply(&raw, "{}\n"); /* answered: nobody waits for a reader */
    assert_int_equal(applied.warning.length, 0);
    place("version.02.new", beside);
    const int kept = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(kept >= 0);
    apply(&raw, "{}\n");
    assert_int_equal(applied.warning.length, 0);
    assert_int_equal(fstat(kept, &found), 0);
    assert_int_equal(found.st_size, 0);
    assert_int_equal(found.st_nlink, 0);
    assert_int_equal(close(kept), 0);
    place("nodes.new", beside);
    assert_int_equal(mkfifo(beside, 0666), 0);
    struct rbi_wire_node body = {.what = RBI_NODE_CREATE};
    rbi_text_set(&body.path, NODE);
    ask(&raw, RBI_WIRE_NODE, &body, -1);
    raw_close(&raw);
}

static void test_nodes_that_others_can_write_are_set_aside(void **state)
{
    struct raw raw;
    char file[160];
    char aside[160];
    assert_int_equal(loops_up(state, "", ""), 0);
    up(&raw);
    struct rbi_wire_node body = {.what = RBI_NODE_CREATE};
    rbi_text_set(&body.path, NODE);
    ask(&raw, RBI_WIRE_NODE, &body, -1);
    raw_close(&raw);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    place("nodes", file);
    assert_int_equal(chmod(file, 0666), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_status(loops_cluster.socket, "nodes"), 0);
    assert_int_equal(cluster_log_count(&loops_cluster, "event=nodes_ignored"), 1);
    place("nodes.damaged", aside); /* the next change does not write over it */
    assert_int_equal(access(aside, F_OK), 0);
    up(&raw);
    ask(&raw, RBI_WIRE_NODE, &body, -1);
    raw_close(&raw);
    assert_int_equal(cluster_stop(&loops_cluster), 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(raw_status(loops_cluster.socket, "nodes"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_TEST(test_version_that_others_can_write_is_none, "epoll"),
        LOOPS_TEST(test_version_behind_a_link_is_none, "epoll"),
        LOOPS_BOTH(test_what_lies_in_the_way_is_replaced),
        LOOPS_TEST(test_nodes_that_others_can_write_are_set_aside, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
