/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 66: the daemon and two services are each process 1 of a PID namespace of their
 * own and share the socket alone. They meet, talk, are killed and come back; nobody is
 * taken for somebody else with that number, and where a number is shown there is none.
 */
#include "support/bus.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ONE   "/game/eu/pc/w1/core/one"
#define TWO   "/game/eu/pc/w1/core/two"
#define ONE_1 ONE "/1"
#define TWO_1 TWO "/1"

#define KILLS 20U

static struct cluster cluster;
static int home = -1; /* the namespace that we came from */

/* Shared words. */
enum { WORD_ECHOED, WORD_READY, WORD_DOWN, WORD_OPENED, WORD_END };

/* The next child is process 1 of a new namespace. */
static void leave_home(void)
{
    CHECK(unshare(CLONE_NEWPID) == 0);
}

static void come_home(void)
{
    CHECK(setns(home, CLONE_NEWPID) == 0);
}

static pid_t start_apart(void (*body)(const struct cluster *at, void *context),
                         const struct cluster *at)
{
    leave_home();
    const pid_t pid = child_start(body, at, NULL);
    come_home();
    return pid;
}

/* ---- the services --------------------------------------------------------------------------- */

static void echo(struct node *node, const struct ringbus_message *message)
{
    const int r = ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0);
    CHECK(r == 1 || r == RINGBUS_E_PEER_GONE); /* who asked may have been killed since */
}

static void be_one(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = echo};
    (void)context;
    CHECK(getpid() == 1);
    node_open(&node, at, ONE_1);
    atomic_fetch_add(&bus_shared[WORD_OPENED], 1);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 64) >= 0);
        CHECK(ringbus_wait(node.bus, 1000) >= 0);
    }
}

static void be_two(const struct cluster *at, void *context)
{
    static struct node node;
    (void)context;
    CHECK(getpid() == 1);
    node_open(&node, at, TWO_1);
    CHECK(ringbus_target(node.bus, ONE, NULL, NULL) == 0);
    while (atomic_load(&bus_shared[WORD_END]) == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
        atomic_store(&bus_shared[WORD_READY], node.events[RINGBUS_EVENT_READY]);
        atomic_store(&bus_shared[WORD_DOWN], node.events[RINGBUS_EVENT_DOWN]);
        if (node.events[RINGBUS_EVENT_READY] > node.events[RINGBUS_EVENT_DOWN]) {
            (void)ringbus_request(node.bus, &node.peer, 0, "x", 1, 0, 1000, node_on_result, &node);
        }
        atomic_store(&bus_shared[WORD_ECHOED], node.replies[RINGBUS_REPLIED]);
    }
    CHECK(node.events[RINGBUS_EVENT_DAEMON_LOST] == 0);
    node_close(&node);
}

/* ---- what the tool shows -------------------------------------------------------------------- */

static void run_tool(const char *command, const char *option, char *text, size_t size)
{
    int ends[2];
    size_t length = 0;
    ssize_t n = 0;
    int status = 0;
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(RINGBUSCTL_PATH, "ringbusctl", command, "--socket", cluster.socket, ONE_1,
                    option, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    while (length + 1 < size && (n = read(ends[0], text + length, size - 1 - length)) > 0) {
        length += (size_t)n;
    }
    text[length] = '\0';
    (void)close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_tool(void)
{
    static char text[65536];
    run_tool("ls", NULL, text, sizeof text);
    assert_non_null(strstr(text, ONE_1));
    assert_non_null(strstr(text, " unknown "));
    run_tool("show", NULL, text, sizeof text);
    assert_non_null(strstr(text, "pid unknown"));
    run_tool("ls", "--json", text, sizeof text);
    assert_non_null(strstr(text, ONE_1));
    assert_null(strstr(text, "\"pid\""));
    run_tool("show", "--json", text, sizeof text);
    assert_null(strstr(text, "\"pid\""));
}

/* ---- the test ------------------------------------------------------------------------------- */

static void test_three_namespaces(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t two = start_apart(be_two, &cluster);
    for (uint64_t life = 1; life <= KILLS; life++) {
        const pid_t one = start_apart(be_one, &cluster);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == life, NODE_MS, NULL);
        const uint64_t echoed = atomic_load(&bus_shared[WORD_ECHOED]);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_ECHOED]) >= echoed + 10, NODE_MS, NULL);
        if (life == 1) {
            check_tool();
        }
        child_kill(one);
        /* Its death is seen, though its number is everybody's. */
        RUN_UNTIL(atomic_load(&bus_shared[WORD_DOWN]) == life, NODE_MS, NULL);
    }
    assert_int_equal(atomic_load(&bus_shared[WORD_OPENED]), KILLS);
    atomic_store(&bus_shared[WORD_END], 1);
    assert_int_equal(child_wait(two, NODE_MS), 0);
    /* No process has number 0: what has none here is said to be unknown. */
    assert_int_equal(cluster_log_count(&cluster, "pid=0"), 0);
    assert_true(cluster_log_count(&cluster, "pid=unknown") > KILLS);
    /* It lives, and answers to its own stop. */
    assert_int_equal(cluster_stop(&cluster), 0);
}

static int setup(void **state)
{
    (void)state;
    home = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (home < 0 || unshare(CLONE_NEWPID) != 0) {
        print_message("skipped: no right to make PID namespaces\n");
        exit(77); /* NOLINT(concurrency-mt-unsafe) */
    }
    const int r = cluster_up(&cluster, "{}\n");
    come_home();
    return r;
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return close(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_three_namespaces, setup, teardown),
    };
    return cmocka_run_group_tests_name("namespace", tests, NULL, NULL);
}
