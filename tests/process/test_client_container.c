/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 66: two containers that share nothing with the daemon and with each other but
 * one bind-mounted folder, each at a place of its own: user, PID, mount, network, IPC and
 * UTS namespaces are their own. And a daemon in a user namespace that has no number for
 * its clients' users.
 */
#include "daemon/code.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOX_A "/game/eu/pc/w1/core/a"
#define BOX_B "/game/eu/pc/w1/core/b"

#define SPACES                                                                                     \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define LIVES 5U

static struct cluster cluster;

/* Shared words. */
enum { WORD_PID_A, WORD_PID_B, WORD_READY, WORD_DOWN, WORD_ECHOED, WORD_ASKED_BACK, WORD_END };

struct box {
    const char *path;
    const char *target;
    unsigned pid_word;
    char place[96]; /* where the folder of the socket is in the container */
};

static struct box box_a = {.path = BOX_A "/1", .target = BOX_B, .pid_word = WORD_PID_A};
static struct box box_b = {.path = BOX_B "/1", .target = BOX_A, .pid_word = WORD_PID_B};

static bool write_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return (fd < 0 || close(fd) == 0) && done;
}

/** Root here is the user outside, and nobody else is known. */
static bool enter_spaces(int flags)
{
    char map[32];
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)geteuid());
    return unshare(flags) == 0 && write_file("/proc/self/uid_map", map) &&
           write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", map);
}

/** The folder is at the container's own place, and nothing is where it was. */
static void move_folder(const struct cluster *at, const struct box *box)
{
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount(at->folder, box->place, NULL, MS_BIND | MS_REC, NULL) == 0);
    CHECK(mount("none", at->folder, "tmpfs", 0, "size=64k") == 0);
    CHECK(access(at->socket, F_OK) != 0);
}

static void echo(struct node *node, const struct ringbus_message *message)
{
    const int r = ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0);
    CHECK(r == 1 || r == RINGBUS_E_PEER_GONE); /* who asked may have been killed since */
}

/** Serves the other, and asks it. */
static void work(const struct box *box)
{
    static struct node node = {.on_message = echo};
    struct cluster inside = cluster;
    (void)snprintf(inside.socket, sizeof inside.socket, "%s/bus.sock", box->place);
    CHECK(getpid() == 1);
    node_open(&node, &inside, box->path);
    CHECK(ringbus_target(node.bus, box->target, NULL, NULL) == 0);
    const bool second = box == &box_b;
    while (atomic_load(&bus_shared[WORD_END]) == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
        if (node.events[RINGBUS_EVENT_READY] > node.events[RINGBUS_EVENT_DOWN]) {
            (void)ringbus_request(node.bus, &node.peer, 0, "x", 1, 0, 1000, node_on_result, &node);
        }
        if (second) {
            atomic_store(&bus_shared[WORD_READY], node.events[RINGBUS_EVENT_READY]);
            atomic_store(&bus_shared[WORD_DOWN], node.events[RINGBUS_EVENT_DOWN]);
            atomic_store(&bus_shared[WORD_ECHOED], node.replies[RINGBUS_REPLIED]);
            atomic_store(&bus_shared[WORD_ASKED_BACK], node.messages);
        }
    }
    CHECK(node.events[RINGBUS_EVENT_DAEMON_LOST] == 0);
    node_close(&node);
}

/** Sets the container up; a process of it, its first, works. */
static void be_box(const struct cluster *at, void *context)
{
    const struct box *box = context;
    int status = 0;
    CHECK(enter_spaces(SPACES));
    move_folder(at, box);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(box);
        _exit(0);
    }
    atomic_store(&bus_shared[box->pid_word], (uint64_t)pid);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
}

static void make_place(struct box *box)
{
    (void)snprintf(box->place, sizeof box->place, "/tmp/ringbus-box-XXXXXX");
    assert_non_null(mkdtemp(box->place));
    assert_int_equal(chmod(box->place, 0755), 0);
}

static void test_two_containers(void **state)
{
    (void)state;
    bus_shared_reset();
    make_place(&box_a);
    make_place(&box_b);
    const pid_t b = child_start(be_box, &cluster, &box_b);
    for (uint64_t life = 1; life <= LIVES; life++) {
        atomic_store(&bus_shared[WORD_PID_A], 0);
        const pid_t a = child_start(be_box, &cluster, &box_a);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == life, NODE_MS, NULL);
        const uint64_t echoed = atomic_load(&bus_shared[WORD_ECHOED]);
        const uint64_t asked = atomic_load(&bus_shared[WORD_ASKED_BACK]);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_ECHOED]) >= echoed + 10 &&
                      atomic_load(&bus_shared[WORD_ASKED_BACK]) >= asked + 10,
                  NODE_MS, NULL);
        assert_int_equal(kill((pid_t)atomic_load(&bus_shared[WORD_PID_A]), SIGKILL), 0);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_DOWN]) == life, NODE_MS, NULL);
        assert_int_equal(child_wait(a, NODE_MS), 0);
    }
    atomic_store(&bus_shared[WORD_END], 1);
    assert_int_equal(child_wait(b, NODE_MS), 0);
    /* From outside the processes have numbers, and these are shown. */
    assert_int_equal(cluster_log_count(&cluster, "pid=0"), 0);
    assert_true(cluster_log_count(&cluster, "event=registered") >= LIVES + 1);
    assert_int_equal(rmdir(box_a.place), 0);
    assert_int_equal(rmdir(box_b.place), 0);
}

/* ---- a daemon that does not know its clients' users ---------------------------------------- */

static void enter_before_exec(void *context)
{
    (void)context;
    if (!enter_spaces(CLONE_NEWUSER)) {
        _exit(1);
    }
}

static bool join_as(struct raw *raw, uid_t uid)
{
    CHECK(seteuid(uid) == 0);
    const int connected = raw_connect(raw, cluster.socket);
    CHECK(seteuid(0) == 0);
    return connected == 0 && raw_hello(raw) == 0;
}

/** All that it does not know are one to it, and share the limits of that one. */
static void test_unknown_users_share_a_quota(void **state)
{
    struct raw raws[3];
    struct raw own;
    struct rbi_text text;
    (void)state;
    assert_true(join_as(&own, 0));
    assert_true(join_as(&raws[0], 61001));
    assert_true(join_as(&raws[1], 61002));
    assert_int_equal(raw_register(&raws[0], BOX_A "/1", RBI_ENDPOINT_READY), 0);
    assert_int_equal(seteuid(61003), 0);
    const int connected = raw_connect(&raws[2], cluster.socket);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_expect_error_text(&raws[2], &text), RBI_CODE_QUOTA);
    assert_non_null(strstr(text.bytes, "uid 65534: quota.connections is used up: limit 2"));
    /* The one that it knows has its own. */
    assert_int_equal(raw_register(&own, BOX_B "/1", RBI_ENDPOINT_READY), 0);
    for (unsigned i = 0; i < 3; i++) {
        raw_close(&raws[i]);
    }
    raw_close(&own);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static int setup_apart(void **state)
{
    (void)state;
    if (cluster_make(&cluster, "quota: {users: {65534: {connections: 2}}}\n") < 0) {
        return -1;
    }
    cluster.before_exec = enter_before_exec;
    return cluster_start(&cluster);
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    cluster.before_exec = NULL;
    return 0;
}

/** Whether this machine lets us make all these namespaces. */
static bool permitted(void)
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(geteuid() == 0 && enter_spaces(SPACES) &&
                      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
                  ? 0
                  : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_containers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_users_share_a_quota, setup_apart, teardown),
    };
    if (!permitted()) {
        print_message("skipped: no right to make namespaces\n");
        return 77;
    }
    return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
