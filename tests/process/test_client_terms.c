/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By what peers are judged, and who says so: options of the handle and of targets, the bus's
 * configuration and its reload, debug hold from the environment. Scenario 44 (extreme
 * intervals), features 2.1.
 */
#include "bus/link.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUICK   "/game/eu/pc/w1/core/quick"
#define SLOW    "/game/eu/pc/w1/core/slow"
#define MAIN    "/game/eu/pc/w1/core/main"
#define QUICK_1 QUICK "/1"
#define SLOW_1  SLOW "/1"
#define MAIN_1  MAIN "/1"

/* Bounds of 700 ms and 2.8 s: far enough apart for a busy machine. */
static const struct ringbus_target_options quick_terms = {
    .struct_size = sizeof quick_terms, .ping_interval_ms = 200, .ping_misses = 3};
static const struct ringbus_target_options slow_terms = {
    .struct_size = sizeof slow_terms, .ping_interval_ms = 800, .ping_misses = 3};
#define BETWEEN_MS 1500U

/* Messages without a key are counted here: they take turns. */
#define IN_TURN                                                                                    \
    "clusters:\n"                                                                                  \
    "  - {match: \"/**\", balance: {keyless: rr}}\n"

static struct cluster cluster;
static struct node node;
static uint64_t down_ms[3]; /* when the instance went down: quick, slow */

enum { WORD_READY, WORD_DOWN_MS = 8, WORD_TAKEN = 16 };

struct role {
    const char *path;
    unsigned index;
    int hold;
};

static void child_event(struct node *self, const struct ringbus_event *event)
{
    const struct role *role = self->context;
    if (event->type == RINGBUS_EVENT_READY) {
        atomic_fetch_add(&bus_shared[WORD_READY + role->index], 1);
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        atomic_store(&bus_shared[WORD_DOWN_MS + role->index], test_now_ms());
    }
}

static void child_message(struct node *self, const struct ringbus_message *message)
{
    const struct role *role = self->context;
    (void)message;
    atomic_store(&bus_shared[WORD_TAKEN + role->index], self->messages);
}

static void child(const struct cluster *at, void *context)
{
    static struct node peer = {.on_event = child_event, .on_message = child_message};
    struct role *role = context;
    struct ringbus_options options = node_options(at, role->path);
    options.debug_hold = role->hold;
    peer.context = role;
    node_open_with(&peer, &options);
    for (;;) {
        CHECK(ringbus_wait(peer.bus, -1) >= 0);
        CHECK(ringbus_poll(peer.bus, 100) >= 0);
    }
}

static int paused;
static uint64_t last_life_ms; /* of SUSPECT and ALIVE */

static void note_event(struct node *self, const struct ringbus_event *event)
{
    (void)self;
    if (event->type == RINGBUS_EVENT_DOWN) {
        down_ms[strcmp(event->path, QUICK_1) == 0 ? 0 : 1] = test_now_ms();
    } else if (event->type == RINGBUS_EVENT_SUSPECT) {
        paused = event->paused;
    }
    if (event->type == RINGBUS_EVENT_SUSPECT || event->type == RINGBUS_EVENT_ALIVE) {
        last_life_ms = test_now_ms();
    }
}

static void open_main(struct ringbus_options *options)
{
    memset(down_ms, 0, sizeof down_ms);
    memset(&node, 0, sizeof node);
    node.on_event = note_event;
    node_open_with(&node, options);
}

static void target(const char *path, const struct ringbus_target_options *terms)
{
    const unsigned before = node.events[RINGBUS_EVENT_READY];
    CHECK(ringbus_target(node.bus, path, terms, NULL) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] > before, NODE_MS, &node);
}

/* When a stop began, and how long we had waited for a core by then. */
static uint64_t stop_ms;
static uint64_t delay_ns;

static void note_stop(void)
{
    memset(down_ms, 0, sizeof down_ms);
    delay_ns = machine_run_delay_ns(getpid());
    stop_ms = test_now_ms();
}

/* Sooner than the slow bound, but for what the machine added; a late judge gives time itself. */
static bool is_quick(uint64_t at_ms)
{
    const uint64_t late_ms = (machine_run_delay_ns(getpid()) - delay_ns) / 1000000;
    return at_ms - stop_ms < BETWEEN_MS + 3 * late_ms;
}

static void run_for(unsigned ms)
{
    const uint64_t until_ms = test_now_ms() + ms;
    RUN_UNTIL(test_now_ms() >= until_ms, NODE_MS, &node);
}

/* ---- ranges ---- */

/* Scenario 44: 0 means the default, everything else is in the range or refused with it. */
static void test_extreme_settings_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t interval_ms;
        uint32_t misses;
        int result;
    } rows[] = {
        {0, 0, 0},
        {10, 1, 0},
        {60000, 100, 0},
        {1, 3, RINGBUS_E_ARGUMENT},
        {9, 3, RINGBUS_E_ARGUMENT},
        {60001, 3, RINGBUS_E_ARGUMENT},
        {UINT32_MAX, 3, RINGBUS_E_ARGUMENT}, /* -1 */
        {UINT32_C(1) << 31, 3, RINGBUS_E_ARGUMENT},
        {1000, 101, RINGBUS_E_ARGUMENT},
        {1000, UINT32_MAX, RINGBUS_E_ARGUMENT},
        {0, 101, RINGBUS_E_ARGUMENT},
    };
    struct ringbus_options plain = node_options(&cluster, MAIN_1);
    open_main(&plain);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct ringbus_options options = node_options(&cluster, NULL);
        struct ringbus *bus = NULL;
        options.ping_interval_ms = rows[i].interval_ms;
        options.ping_misses = rows[i].misses;
        assert_int_equal(ringbus_open(&options, &bus), rows[i].result);
        if (rows[i].result != 0) {
            assert_non_null(strstr(ringbus_errmsg(NULL), "10 to 60000 and 1 to 100"));
        } else {
            assert_int_equal(ringbus_close(bus, 0), 0);
        }
        const struct ringbus_target_options terms = {.struct_size = sizeof terms,
                                                     .ping_interval_ms = rows[i].interval_ms,
                                                     .ping_misses = rows[i].misses};
        assert_int_equal(ringbus_target(node.bus, QUICK, &terms, NULL), rows[i].result);
        if (rows[i].result != 0) {
            assert_non_null(strstr(ringbus_errmsg(node.bus), "10 to 60000 and 1 to 100"));
        }
    }
    const struct ringbus_target_options unset = {.ping_interval_ms = 100};
    assert_int_equal(ringbus_target(node.bus, QUICK, &unset, NULL), RINGBUS_E_ARGUMENT);
    node_close(&node);
}

/* Scenario 44 in the configuration file: refused with the place; the daemon does not start. */
static void test_extreme_configuration_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        const char *place;
    } rows[] = {
        {"liveness:\n  interval: 0s\n", ":2:13: "},
        {"liveness:\n  interval: 9ms\n", ":2:13: "},
        {"liveness:\n  interval: -1s\n", ":2:13: "},
        {"liveness:\n  interval: 61s\n", ":2:13: "},
        {"liveness:\n  interval: 9223372036854775808ms\n", ":2:13: "},
        {"liveness:\n  interval: 1000\n", ":2:13: "},
        {"liveness:\n  misses: 0\n", ":2:11: "},
        {"liveness:\n  misses: 101\n", ":2:11: "},
        {"liveness:\n  misses: -1\n", ":2:11: "},
        {"liveness:\n  debug_hold: 1\n", ":2:15: "},
        {"liveness:\n  debug_hold: maybe\n", ":2:15: "},
    };
    struct cluster other = {.pid = 0};
    assert_int_equal(cluster_make(&other, "{}"), 0);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        assert_int_equal(cluster_configure(&other, rows[i].yaml), 0);
        const char *const arguments[] = {"--config", other.config, NULL};
        (void)!truncate(other.log, 0); /* not there at first */
        assert_int_not_equal(cluster_run_daemon(&other, arguments), 0);
        if (cluster_log_count(&other, rows[i].place) == 0) {
            print_error("%s", rows[i].yaml);
        }
        assert_int_not_equal(cluster_log_count(&other, rows[i].place), 0);
    }
    cluster_down(&other);
}

/* The smallest settings that are taken must not make anybody spin: a tenth of a core at most. */
static void test_smallest_settings_cost_little(void **state)
{
    (void)state;
    const struct ringbus_target_options least = {
        .struct_size = sizeof least, .ping_interval_ms = 10, .ping_misses = 100};
    struct role role = {.path = QUICK_1};
    bus_shared_reset();
    const pid_t pid = child_start(child, &cluster, &role);
    struct ringbus_options options = node_options(&cluster, MAIN_1);
    open_main(&options);
    target(QUICK, &least);
    const uint64_t before_ns = machine_cpu_ns(pid);
    const uint64_t until_ms = test_now_ms() + 1000;
    while (test_now_ms() < until_ms) {
        CHECK(ringbus_wait(node.bus, 100) >= 0);
        CHECK(ringbus_poll(node.bus, 100) >= 0);
    }
    const uint64_t used_ns = machine_cpu_ns(pid) - before_ns;
    print_message("10 ms interval: the peer took %u us a second\n", (unsigned)(used_ns / 1000));
    assert_true(used_ns < 50000000 * (uint64_t)TEST_SCALE);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&node);
    child_kill(pid);
}

/* ---- each target by its own ---- */

static void test_targets_are_judged_by_their_own_terms(void **state)
{
    (void)state;
    struct role roles[] = {{.path = QUICK_1, .index = 0}, {.path = SLOW_1, .index = 1}};
    pid_t pids[2];
    bus_shared_reset();
    for (unsigned i = 0; i < 2; i++) {
        pids[i] = child_start(child, &cluster, &roles[i]);
    }
    struct ringbus_options options = node_options(&cluster, MAIN_1);
    open_main(&options);
    target(QUICK, &quick_terms);
    target(SLOW_1, &slow_terms);
    run_for(700);
    note_stop();
    CHECK(kill(pids[0], SIGSTOP) == 0 && kill(pids[1], SIGSTOP) == 0);
    RUN_UNTIL(down_ms[0] != 0 && down_ms[1] != 0, NODE_MS, &node);
    print_message("gave up after %u and %u ms\n", (unsigned)(down_ms[0] - stop_ms),
                  (unsigned)(down_ms[1] - stop_ms));
    assert_true(is_quick(down_ms[0]));
    assert_true(down_ms[1] - stop_ms > BETWEEN_MS);
    node_close(&node);
    child_kill(pids[0]);
    child_kill(pids[1]);
}

static void main_child(const struct cluster *at, void *context)
{
    struct ringbus_options options = node_options(at, MAIN_1);
    (void)context;
    open_main(&options);
    target(QUICK, &quick_terms);
    target(SLOW_1, &slow_terms);
    atomic_store(&bus_shared[WORD_READY + 7], 1);
    for (;;) {
        run_for(1000);
    }
}

/* The other way round: by the dead_after that each was told. */
static void test_servers_judge_by_what_they_were_told(void **state)
{
    (void)state;
    struct role roles[] = {{.path = QUICK_1, .index = 0}, {.path = SLOW_1, .index = 1}};
    pid_t pids[2];
    bus_shared_reset();
    for (unsigned i = 0; i < 2; i++) {
        pids[i] = child_start(child, &cluster, &roles[i]);
    }
    const pid_t requester = child_start(main_child, &cluster, NULL);
    const uint64_t start_ms = test_now_ms();
    while (atomic_load(&bus_shared[WORD_READY + 7]) == 0) {
        assert_true(test_now_ms() - start_ms < NODE_MS);
        test_sleep_ms(5);
    }
    test_sleep_ms(700);
    atomic_store(&bus_shared[WORD_DOWN_MS], 0);
    atomic_store(&bus_shared[WORD_DOWN_MS + 1], 0);
    note_stop();
    CHECK(kill(requester, SIGSTOP) == 0);
    while (atomic_load(&bus_shared[WORD_DOWN_MS]) == 0 ||
           atomic_load(&bus_shared[WORD_DOWN_MS + 1]) == 0) {
        assert_true(test_now_ms() - stop_ms < NODE_MS);
        test_sleep_ms(5);
    }
    const uint64_t quick_ms = atomic_load(&bus_shared[WORD_DOWN_MS]) - stop_ms;
    const uint64_t slow_ms = atomic_load(&bus_shared[WORD_DOWN_MS + 1]) - stop_ms;
    print_message("given up after %u and %u ms\n", (unsigned)quick_ms, (unsigned)slow_ms);
    assert_true(is_quick(stop_ms + quick_ms) || quick_ms < slow_ms);
    assert_true(slow_ms > BETWEEN_MS);
    child_kill(requester);
    child_kill(pids[0]);
    child_kill(pids[1]);
}

/* @return whether the stopped peer was given up within the quick bound */
static bool stop_and_find(pid_t pid)
{
    const unsigned before = node.events[RINGBUS_EVENT_DOWN];
    note_stop();
    CHECK(kill(pid, SIGSTOP) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] > before, NODE_MS, &node);
    return is_quick(test_now_ms());
}

static void test_targeting_again_changes_the_link(void **state)
{
    (void)state;
    struct role role = {.path = QUICK_1};
    bus_shared_reset();
    const pid_t pid = child_start(child, &cluster, &role);
    struct ringbus_options options = node_options(&cluster, MAIN_1);
    open_main(&options);
    target(QUICK, &slow_terms);
    run_for(300);
    CHECK(ringbus_target(node.bus, QUICK, &quick_terms, NULL) == 0);
    run_for(300);
    assert_int_equal(node.events[RINGBUS_EVENT_READY], 1); /* the same link, in use all the time */
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_true(stop_and_find(pid));
    node_close(&node);
    child_kill(pid);
}

/* A reload reaches handles and targets that name nothing themselves, and only those. */
static void test_reload_changes_links_that_name_nothing(void **state)
{
    (void)state;
    struct role roles[] = {{.path = QUICK_1, .index = 0}, {.path = SLOW_1, .index = 1}};
    pid_t pids[2];
    bus_shared_reset();
    for (unsigned i = 0; i < 2; i++) {
        pids[i] = child_start(child, &cluster, &roles[i]);
    }
    struct ringbus_options options = node_options(&cluster, MAIN_1);
    open_main(&options);
    target(QUICK, NULL);
    target(SLOW, &slow_terms);
    run_for(300);
    assert_int_equal(
        cluster_configure(&cluster, IN_TURN "liveness: {interval: 200ms, misses: 3}\n"), 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    assert_true(cluster_log_wait(&cluster, "reloaded", NODE_MS));
    run_for(300);
    note_stop();
    CHECK(kill(pids[0], SIGSTOP) == 0 && kill(pids[1], SIGSTOP) == 0);
    RUN_UNTIL(down_ms[0] != 0 && down_ms[1] != 0, NODE_MS, &node);
    print_message("after a reload: gave up after %u and %u ms\n", (unsigned)(down_ms[0] - stop_ms),
                  (unsigned)(down_ms[1] - stop_ms));
    assert_true(is_quick(down_ms[0]));
    assert_true(down_ms[1] - stop_ms > BETWEEN_MS);
    node_close(&node);
    child_kill(pids[0]);
    child_kill(pids[1]);
}

/* ---- debug hold ---- */

/* Environment and configuration, each where what stands before it says nothing. Scenario 41. */
static void test_debug_hold_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        const char *environment;
        int option;
        int paused;
    } rows[] = {
        {"{}", "1", 0, 1},
        {"{}", "1", -1, 0},
        {"liveness: {debug_hold: true}", NULL, 0, 1},
        {"liveness: {debug_hold: true}", "0", 0, 0},
        {"liveness: {debug_hold: true}", "0", 1, 1},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct role role = {.path = QUICK_1, .hold = rows[i].option};
        bus_shared_reset();
        assert_int_equal(cluster_stop(&cluster), 0);
        assert_int_equal(cluster_configure(&cluster, rows[i].config), 0);
        assert_int_equal(cluster_start(&cluster), 0);
        struct ringbus_options options = node_options(&cluster, MAIN_1);
        options.debug_hold = -1;
        open_main(&options);
        if (rows[i].environment != NULL) {
            assert_int_equal(setenv("RINGBUS_DEBUG_HOLD", rows[i].environment, 1), 0);
        }
        const pid_t pid = child_start(child, &cluster, &role);
        assert_int_equal(unsetenv("RINGBUS_DEBUG_HOLD"), 0);
        target(QUICK, &quick_terms);
        run_for(200);
        CHECK(kill(pid, SIGSTOP) == 0);
        RUN_UNTIL(node.events[RINGBUS_EVENT_SUSPECT] > 0, NODE_MS, &node);
        assert_int_equal(paused, rows[i].paused);
        node_close(&node);
        child_kill(pid);
    }
    struct ringbus_options options = node_options(&cluster, QUICK_1);
    struct ringbus *bus = NULL;
    assert_int_equal(setenv("RINGBUS_DEBUG_HOLD", "yes", 1), 0);
    assert_int_equal(ringbus_open(&options, &bus), RINGBUS_E_ARGUMENT);
    assert_non_null(strstr(ringbus_errmsg(NULL), "RINGBUS_DEBUG_HOLD"));
    assert_int_equal(unsetenv("RINGBUS_DEBUG_HOLD"), 0);
}

/* ---- in turn ---- */

static uint64_t taken(unsigned index)
{
    return atomic_load(&bus_shared[WORD_TAKEN + index]);
}

static void send_all(const struct ringbus_addr *to, unsigned count, unsigned flags)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(ringbus_send(node.bus, to, i, "x", 1, flags) == 1);
    }
}

/* A suspect instance has no turn while others are well; a key stays with its instance. */
static void test_suspect_instance_has_no_turn(void **state)
{
    (void)state;
    /* Whoever has no core for a while is not down. */
    const struct ringbus_target_options patient = {
        .struct_size = sizeof patient, .ping_interval_ms = 500, .ping_misses = 20};
    struct role roles[] = {{.path = QUICK_1, .index = 0, .hold = 1},
                           {.path = QUICK "/2", .index = 1, .hold = 1}};
    pid_t pids[2];
    struct ringbus_addr all;
    bus_shared_reset();
    for (unsigned i = 0; i < 2; i++) {
        pids[i] = child_start(child, &cluster, &roles[i]);
    }
    struct ringbus_options options = node_options(&cluster, MAIN_1);
    open_main(&options);
    CHECK(ringbus_target(node.bus, QUICK, &patient, &all) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &node);
    send_all(&all, 100, 0);
    RUN_UNTIL(taken(0) == 50 && taken(1) == 50, NODE_MS, &node);
    CHECK(kill(pids[0], SIGSTOP) == 0);
    /* The other may have been without a core as well, but comes back. */
    RUN_UNTIL(node.events[RINGBUS_EVENT_SUSPECT] == node.events[RINGBUS_EVENT_ALIVE] + 1 &&
                  test_now_ms() > last_life_ms + 400,
              NODE_MS, &node);
    send_all(&all, 100, 0);
    RUN_UNTIL(taken(1) == 150, NODE_MS, &node);
    struct ringbus_addr one = all;
    one.instance = 1;
    send_all(&one, 1, 0); /* usable */
    send_all(&all, 200, RINGBUS_KEY);
    CHECK(kill(pids[0], SIGCONT) == 0);
    RUN_UNTIL(taken(0) + taken(1) == 50 + 150 + 1 + 200 &&
                  node.events[RINGBUS_EVENT_SUSPECT] == node.events[RINGBUS_EVENT_ALIVE],
              NODE_MS, &node);
    assert_true(taken(0) > 50 + 1 + 40); /* keys had not moved */
    const uint64_t before = taken(0);
    send_all(&all, 100, 0);
    RUN_UNTIL(taken(0) == before + 50, NODE_MS, &node);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    node_close(&node);
    child_kill(pids[0]);
    child_kill(pids[1]);
}

static int set_up(void **state)
{
    (void)state;
    return cluster_up(&cluster, IN_TURN);
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extreme_settings_are_refused),
        cmocka_unit_test(test_extreme_configuration_is_refused),
        cmocka_unit_test(test_smallest_settings_cost_little),
        cmocka_unit_test(test_targets_are_judged_by_their_own_terms),
        cmocka_unit_test(test_servers_judge_by_what_they_were_told),
        cmocka_unit_test(test_targeting_again_changes_the_link),
        cmocka_unit_test(test_reload_changes_links_that_name_nothing),
        cmocka_unit_test(test_suspect_instance_has_no_turn),
        cmocka_unit_test(test_debug_hold_defaults),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
