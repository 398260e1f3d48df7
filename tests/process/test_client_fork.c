/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios 63, 65, 129: fork, exec, and two threads on one handle. */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER    "/game/eu/pc/w1/core/peer"
#define PEER_1  PEER "/1"
#define CHILD_1 "/game/eu/pc/w1/core/child/1"

static struct cluster cluster;
static struct node a;
static struct node b;

static void open_pair(void)
{
    node_open(&b, &cluster, PEER_1);
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER, 1, &b);
}

static void close_pair(void)
{
    node_close(&a);
    node_close(&b);
    a.on_message = b.on_message = NULL;
}

/* ---- fork ------------------------------------------------------------------------------------ */

static struct ringbus_loan loan;
static struct ringbus_kept *kept;

static void keep_it(struct node *node, const struct ringbus_message *message)
{
    if (!kept && message->size > 10000) {
        CHECK(ringbus_keep(node->bus, message, &kept) == 0);
    }
}

/* Functions that were called on the inherited handle, by name. */
static char called[4096];

/* The call says so, and does nothing. */
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        note_called(#call);                                                                        \
        CHECK((call) == RINGBUS_E_WRONG_PROCESS);                                                  \
    } while (0)
/* One without an error code. */
#define HARMLESS(call, condition)                                                                  \
    do {                                                                                           \
        note_called(#call);                                                                        \
        CHECK((call)condition);                                                                    \
    } while (0)

static void note_called(const char *call)
{
    const size_t used = strlen(called);
    CHECK(used + 64 < sizeof called);
    (void)snprintf(called + used, sizeof called - used, " %.*s ", (int)strcspn(call, "("), call);
}

/* The public header, all of its parts. */
static void read_headers(char *text, size_t size)
{
    glob_t headers;
    size_t used = 0;
    CHECK(glob(RINGBUS_HEADERS, 0, NULL, &headers) == 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        FILE *file = fopen(headers.gl_pathv[i], "re");
        CHECK(file != NULL);
        used += fread(text + used, 1, size - 1 - used, file);
        CHECK(feof(file) && fclose(file) == 0);
    }
    CHECK(headers.gl_pathc > 1);
    text[used] = '\0';
    globfree(&headers);
}

/* Every function of the header that takes a handle was called: a new one is not forgotten. */
static void check_all_called(void)
{
    static const char *const without_handle[] = {
        "ringbus_strerror", "ringbus_error_name", "ringbus_error_kind", "ringbus_version",
        "ringbus_resolve",  "ringbus_key",        "ringbus_open"};
    static char text[1 << 17];
    read_headers(text, sizeof text);
    unsigned found = 0;
    for (const char *at = strstr(text, "\nRINGBUS_API "); at; at = strstr(at, "\nRINGBUS_API ")) {
        char name[64] = " ";
        const char *end = strchr(at, '(');
        const char *begin = end;
        CHECK(end != NULL);
        while (begin[-1] == '_' || (begin[-1] >= 'a' && begin[-1] <= 'z')) {
            begin--;
        }
        (void)snprintf(name, sizeof name, " %.*s ", (int)(end - begin), begin);
        bool known = strstr(called, name) != NULL;
        for (unsigned i = 0; i < sizeof without_handle / sizeof without_handle[0]; i++) {
            known |= strncmp(name + 1, without_handle[i], strlen(name) - 2) == 0;
        }
        if (!known) {
            (void)fprintf(stderr, "not tried on an inherited handle:%s\n", name);
        }
        CHECK(known);
        found++;
        at = end;
    }
    CHECK(found > 30);
}

static void on_explain(void *user, const struct ringbus_explain_row *row)
{
    (void)user;
    (void)row;
}

static void on_node(struct ringbus *bus, const struct ringbus_node_result *result, void *context)
{
    (void)bus;
    (void)result;
    (void)context;
}

static void use_inherited(void)
{
    struct ringbus_addr addr = a.peer;
    struct ringbus_claim claim = {0};
    struct ringbus_loan other;
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    struct ringbus_message message = {0};
    struct ringbus_kept *keep = NULL;
    struct ringbus_origin origin;
    const struct ringbus_forwarding forwarding = {.struct_size = sizeof forwarding};
    const struct ringbus_ending ending = {.struct_size = sizeof ending};
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_reply_to to = {.peer = addr, .id = 1};
    char text[RINGBUS_PATH_MAX + 1];
    struct ringbus *bus = a.bus;
    called[0] = '\0';
    REFUSED(ringbus_send(bus, &addr, 0, "x", 1, 0));
    REFUSED(ringbus_sendv(bus, &addr, 0, &part, 1, 0));
    REFUSED(ringbus_send_with(bus, &addr, NULL, 0, NULL));
    REFUSED(ringbus_broadcast(bus, &addr, NULL, 0, NULL, NULL));
    REFUSED(ringbus_request_with(bus, &addr, NULL, 0, NULL, node_on_result, &a));
    REFUSED(ringbus_degrade(bus, PEER, NULL, 0));
    HARMLESS(ringbus_retry_after_us(bus), == 0);
    REFUSED(ringbus_reply_refused(bus, &to, RINGBUS_E_SHED, 0));
    REFUSED(ringbus_claim(bus, &addr, 0, 1, 0, &claim));
    REFUSED(ringbus_commit(bus, &claim, 1));
    REFUSED(ringbus_abort(bus, &claim));
    REFUSED(ringbus_loan(bus, 1, &other));
    REFUSED(ringbus_send_loan(bus, &addr, 0, &loan, 1, 0));
    REFUSED(ringbus_loan_return(bus, &loan));
    REFUSED(ringbus_request(bus, &addr, 0, "x", 1, 0, 10, node_on_result, &a));
    REFUSED(ringbus_reply(bus, &to, "x", 1, 0));
    REFUSED(ringbus_reply_error(bus, &to, NULL));
    REFUSED(ringbus_release(b.bus, kept));
    REFUSED(ringbus_poll(bus, 1));
    REFUSED(ringbus_wait(bus, 0));
    REFUSED(ringbus_wake(bus));
    REFUSED(ringbus_fd(bus));
    REFUSED(ringbus_target(bus, PEER, NULL, &addr));
    REFUSED(ringbus_untarget(bus, PEER));
    REFUSED(ringbus_report(bus, &a.peer, RINGBUS_REPORT_OK, 1));
    REFUSED(ringbus_report_load(bus, 500));
    REFUSED(ringbus_slots(bus, NULL, 0));
    REFUSED(ringbus_owns(bus, 1));
    REFUSED(ringbus_slots(bus, NULL, 0));
    REFUSED(ringbus_owns(bus, 1));
    REFUSED(ringbus_watch(bus, "/"));
    REFUSED(ringbus_unwatch(bus, "/"));
    REFUSED(ringbus_wait_ready(bus, PEER, 0));
    REFUSED(ringbus_hook(bus, NULL, NULL));
    REFUSED(ringbus_unhook(bus, 1));
    REFUSED(ringbus_candidates(bus, PEER, NULL, NULL, 0));
    REFUSED(ringbus_node_create(bus, "/a/meta/b", "x", 1, 0, on_node, &a));
    REFUSED(ringbus_node_set(bus, "/a/meta/b", "x", 1, 0, on_node, &a));
    REFUSED(ringbus_node_remove(bus, "/a/meta/b", 0, on_node, &a));
    REFUSED(ringbus_node_get(bus, "/a/meta/b", NULL, on_node, &a));
    REFUSED(ringbus_instances(bus, PEER, NULL, 0));
    REFUSED(ringbus_self(bus, &addr));
    HARMLESS(ringbus_self_path(bus), == NULL);
    REFUSED(ringbus_stats(bus, &stats));
    REFUSED(ringbus_format(bus, &addr, text, sizeof text));
    REFUSED(ringbus_explain(bus, PEER, NULL, on_explain, NULL));
    REFUSED(ringbus_explain_text(bus, PEER, NULL, text, sizeof text));
    HARMLESS(ringbus_size_max(bus), == 0);
    HARMLESS(ringbus_retry_after_us(bus), == 0);
    HARMLESS(ringbus_errmsg(bus), != NULL);
    HARMLESS(ringbus_retry_after_us(bus), == 0);
    HARMLESS(ringbus_user(bus), == &a);
    REFUSED(ringbus_keep(bus, &message, &keep));
    REFUSED(ringbus_origin(bus, &message, &origin));
    REFUSED(ringbus_forward(bus, &message, bus, &forwarding));
    REFUSED(ringbus_defer(bus, &message, 1000));
    REFUSED(ringbus_refuse(bus, &addr, RINGBUS_E_FULL, 0));
    REFUSED(ringbus_reply_as(bus, &message.reply_to, &ending));
    REFUSED(ringbus_alive(bus));
    REFUSED(ringbus_drain(bus));
    REFUSED(ringbus_undrain(bus));
    REFUSED(ringbus_drained(bus));
    REFUSED(ringbus_close(bus, 100));
    REFUSED(ringbus_close(b.bus, 0));
    check_all_called();
}

static void child_of_fork(const struct cluster *at, void *context)
{
    struct node own = {0};
    (void)context;
    use_inherited();
    node_open(&own, at, CHILD_1);
    atomic_store(&bus_shared[0], 1);
    RUN_UNTIL(own.messages == 1, NODE_MS, &own);
    node_target(&own, PEER_1, 1, NULL);
    CHECK(ringbus_send(own.bus, &own.peer, 0, "from the child", 14, 0) == 1);
    CHECK(ringbus_close(own.bus, 5000) == 0);
}

static void test_fork(void **state)
{
    (void)state;
    uint64_t sent = 0;
    static const unsigned char big[12000];
    bus_shared_reset();
    b.on_message = keep_it;
    open_pair();
    const struct ringbus_addr to = a.peer;
    assert_int_equal(ringbus_loan(a.bus, 1000, &loan), 0);
    for (unsigned round = 0; round < 5; round++) {
        atomic_store(&bus_shared[0], 0);
        sent += ringbus_send(a.bus, &to, 0, big, sizeof big, 0) == 1;
        RUN_UNTIL(b.messages >= sent, NODE_MS, &a, &b);
        const pid_t pid = child_start(child_of_fork, &cluster, NULL);
        /* The parent goes on meanwhile; nothing of it is lost or twice. */
        RUN_UNTIL(atomic_load(&bus_shared[0]) == 1, NODE_MS, &a, &b);
        for (unsigned i = 0; i < 1000; i++) {
            sent += ringbus_send(a.bus, &to, 0, "x", 1, 0) == 1;
            if (i % 100 == 99) {
                RUN_UNTIL(b.messages >= sent, NODE_MS, &a, &b);
            }
        }
        assert_int_equal(ringbus_target(a.bus, CHILD_1, NULL, NULL), 0);
        RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == round + 2, NODE_MS, &a, &b);
        assert_int_equal(ringbus_send(a.bus, &a.peer, 0, "x", 1, 0), 1);
        RUN_UNTIL(b.messages == sent + 1, NODE_MS, &a, &b); /* the child's own */
        sent++;
        /* Not a moment longer than the child: close waits for nobody but us. */
        RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == round + 1, NODE_MS, &a, &b);
        assert_int_equal(child_wait(pid, 10000), 0);
    }
    assert_int_equal(b.messages, sent);
    assert_int_equal(kept->size, sizeof big);
    assert_memory_equal(kept->data, big, sizeof big);
    assert_int_equal(ringbus_release(b.bus, kept), 0);
    assert_int_equal(ringbus_loan_return(a.bus, &loan), 0);
    RUN_UNTIL(node_pool_used(&a) == 0, NODE_MS, &a, &b);
    close_pair();
}

/* ---- fork in the middle of sending ----------------------------------------------------------- */

#define FORKS FULL_OR(1000U, 60U)

enum { WORD_SENDING = 10, WORD_SENT, WORD_RECEIVED, WORD_WRONG, WORD_END };

static void count_in_order(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    memcpy(&number, message->data, sizeof number);
    atomic_fetch_add(&bus_shared[WORD_WRONG],
                     message->size != sizeof number || number != node->messages - 1);
    atomic_store(&bus_shared[WORD_RECEIVED], node->messages);
}

static void be_counter(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = count_in_order};
    (void)context;
    node_open(&node, at, PEER_1);
    while (atomic_load(&bus_shared[WORD_END]) == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
    }
    CHECK(node.events[RINGBUS_EVENT_DOWN] == 0);
    node_close(&node);
}

/* Forks while the other thread is anywhere in a send; each child tries what it has inherited. */
static void *fork_again_and_again(void *context)
{
    unsigned *failed = context;
    const struct ringbus_addr to = a.peer;
    for (unsigned i = 0; i < FORKS; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            const uint64_t wrong = UINT64_MAX;
            const bool refused =
                ringbus_send(a.bus, &to, 0, &wrong, sizeof wrong, 0) == RINGBUS_E_WRONG_PROCESS &&
                ringbus_poll(a.bus, 1) == RINGBUS_E_WRONG_PROCESS &&
                ringbus_close(a.bus, 0) == RINGBUS_E_WRONG_PROCESS;
            _exit(refused ? 0 : 1);
        }
        *failed += pid < 0 || child_wait(pid, 10000) != 0;
    }
    atomic_store(&bus_shared[WORD_SENDING], 0);
    return NULL;
}

/* Scenario 63: A sends at full speed and is forked all the time: no gap, nothing twice. */
static void test_fork_while_sending(void **state)
{
    (void)state;
    pthread_t thread;
    unsigned failed = 0;
    uint64_t next = 0;
    bus_shared_reset();
    atomic_store(&bus_shared[WORD_SENDING], 1);
    const pid_t counter = child_start(be_counter, &cluster, NULL);
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER, 1, NULL);
    const struct ringbus_addr to = a.peer;
    assert_int_equal(pthread_create(&thread, NULL, fork_again_and_again, &failed), 0);
    while (atomic_load(&bus_shared[WORD_SENDING])) {
        const int r = ringbus_send(a.bus, &to, 0, &next, sizeof next, 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        next += r == 1;
        if (r != 1) {
            assert_true(ringbus_poll(a.bus, 16) >= 0);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_RECEIVED]) == next, NODE_MS, &a);
    print_message("%llu sent beside %u forks\n", (unsigned long long)next, FORKS);
    assert_int_equal(failed, 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_WRONG]), 0);
    assert_int_equal(a.events[RINGBUS_EVENT_DOWN], 0);
    atomic_store(&bus_shared[WORD_END], 1);
    assert_int_equal(child_wait(counter, NODE_MS), 0);
    node_close(&a);
}

static void live_on(const struct cluster *at, void *context)
{
    (void)at;
    (void)context;
    atomic_store(&bus_shared[0], 1);
    while (atomic_load(&bus_shared[1]) == 0) {
        test_sleep_ms(1);
    }
}

static void fork_and_die(const struct cluster *at, void *context)
{
    static struct node peer;
    (void)context;
    node_open(&peer, at, PEER_1);
    RUN_UNTIL(peer.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &peer);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        live_on(at, NULL);
        _exit(0);
    }
    for (;;) {
        test_sleep_ms(1000);
    }
}

/* A child that still holds every descriptor of the dead must not keep it alive. */
static void test_death_is_noticed_though_a_child_lives(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(fork_and_die, &cluster, NULL);
    node_open(&a, &cluster, NULL);
    node_target(&a, PEER, 1, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[0]) == 1, NODE_MS, &a);
    child_kill(pid);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, 1000, &a);
    assert_int_equal(a.reason, RINGBUS_REASON_CRASHED);
    atomic_store(&bus_shared[1], 1);
    node_close(&a);
}

/* ---- exec ------------------------------------------------------------------------------------ */

static void test_exec_inherits_nothing(void **state)
{
    (void)state;
    char command[512];
    open_pair();
    assert_true(ringbus_fd(a.bus) >= 0);
    assert_int_equal(ringbus_loan(a.bus, 1000, &loan), 0);
    /* What this process has open besides the handles was inherited and stays. */
    (void)snprintf(command, sizeof command,
                   "for fd in /proc/self/fd/*; do readlink $fd; done | "
                   "grep -E 'memfd|eventfd|eventpoll|timerfd|socket' ; test $? = 1");
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
    assert_int_equal(ringbus_loan_return(a.bus, &loan), 0);
    close_pair();
}

/* ---- threads --------------------------------------------------------------------------------- */

#ifdef RBI_DEBUG
#ifdef RBI_DEBUG
static atomic_int inside;
static atomic_int seen;

static void dwell(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    (void)message;
    atomic_store(&inside, 1);
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (atomic_load(&seen) == 0 && test_now_ms() < deadline_ms) {
    }
}

static void *intrude(void *context)
{
    int *result = context;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (atomic_load(&inside) == 0 && test_now_ms() < deadline_ms) {
    }
    result[0] = ringbus_send(b.bus, &b.peer, 0, "x", 1, 0);
    result[1] = ringbus_poll(b.bus, 1);
    result[2] = ringbus_close(b.bus, 0);
    result[3] = ringbus_wake(b.bus); /* that one is for any thread */
    atomic_store(&seen, 1);
    return NULL;
}
#endif

static void test_second_thread_is_noticed(void **state)
{
    (void)state;
    pthread_t thread;
    int result[4] = {0};
    b.on_message = dwell;
    open_pair();
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &a, &b);
    assert_int_equal(pthread_create(&thread, NULL, intrude, result), 0);
    assert_int_equal(ringbus_send(a.bus, &a.peer, 0, "x", 1, 0), 1);
    RUN_UNTIL(b.messages == 1, NODE_MS, &b, &a);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(result[i], RINGBUS_E_WRONG_THREAD);
    }
    assert_int_equal(result[3], 0);
    close_pair();
}
#else
static void test_second_thread_is_noticed(void **state)
{
    (void)state;
    skip(); /* only debug builds look */
}
#endif

#define EACH_SENDS (20000U / TEST_SCALE)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint failures;

static void *send_locked(void *context)
{
    (void)context;
    for (unsigned sent = 0; sent < EACH_SENDS;) {
        (void)pthread_mutex_lock(&lock);
        const int r = ringbus_send(a.bus, &a.peer, 0, "x", 1, 0);
        if (r != 1) {
            failures += r != RINGBUS_E_FULL;
            failures += ringbus_poll(a.bus, 10) < 0;
        }
        (void)pthread_mutex_unlock(&lock);
        sent += r == 1;
        if (r != 1) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void test_threads_with_a_mutex(void **state)
{
    (void)state;
    pthread_t threads[3];
    open_pair();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, send_locked, NULL), 0);
    }
    RUN_UNTIL(b.messages == 3 * EACH_SENDS, 20000, &b);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(failures, 0);
    close_pair();
}

static int setup(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    return cluster_up(&cluster, "{}\n");
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
        ON_OWN_DAEMON(test_fork),
        ON_OWN_DAEMON(test_fork_while_sending),
        ON_OWN_DAEMON(test_death_is_noticed_though_a_child_lives),
        ON_OWN_DAEMON(test_exec_inherits_nothing),
        ON_OWN_DAEMON(test_second_thread_is_noticed),
        ON_OWN_DAEMON(test_threads_with_a_mutex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
