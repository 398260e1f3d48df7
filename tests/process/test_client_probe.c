/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 118: all the ways in which the probe of a shielded instance can end, with a real daemon
 * and real callers. In each the instance is out again or asked further within the time of a probe,
 * for every caller the same, and comes back once it is well.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define SERVICE "/game/eu/pc/w1/core/service"
#define SICK    1U /* the second */
#define STEP_MS 2U /* between two requests of a caller */

static struct cluster cluster;
static struct ringbus_addr to;

/* Short times: what is measured is that each of them ends. */
static const char config[] =
    "clusters: [{match: " SERVICE ", shield: {open_min: 300ms, open_max: 300ms, jitter: 0%, "
    "probe_timeout: 400ms, probes: 50, close_ok: 1, close_of: 2, ramp: 0ms}}]\n";

enum behaviour { ANSWER, FAIL, HOLD };

static struct node servers[2];
static struct node callers[2];
static enum behaviour behaviour; /* of the sick one */
static bool at_probe;            /* the first caller asks nothing once it has a probe */
static unsigned held;            /* requests that it has and did not answer */

static void serve(struct node *node, const struct ringbus_message *message)
{
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    if (node == &servers[0] || behaviour == ANSWER) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    } else if (behaviour == FAIL) {
        CHECK(ringbus_reply_error(node->bus, &message->reply_to, "broken") == 1);
    } else {
        held++;
    }
}

static uint32_t health(void)
{
    struct rbi_directory_instance all[2];
    struct rbi_directory_cluster head;
    const int r = rbi_directory_read(&callers[1].bus->directory, to.cluster, &head, all, 2);
    return r == RBI_DIRECTORY_OK && head.instance_count == 2 ? all[SICK].health : UINT32_MAX;
}

static void poll_all(void)
{
    struct node *const all[] = {&servers[0], &servers[1], &callers[0], &callers[1]};
    nodes_step(all, 4);
}

/** One request now and then, of the callers whose bits are set. */
static void call_step(unsigned who, uint32_t timeout_ms)
{
    static uint64_t next_ms;
    poll_all();
    if (test_now_ms() < next_ms || (at_probe && callers[0].bus->probing)) {
        return;
    }
    next_ms = test_now_ms() + STEP_MS;
    for (unsigned i = 0; i < 2; i++) {
        if ((who >> i & 1U) != 0) {
            const int r = ringbus_request(callers[i].bus, &to, 0, "hi", 2, 0, timeout_ms,
                                          node_on_result, &callers[i]);
            CHECK(r == 1 || r == RINGBUS_E_FULL);
        }
    }
}

#define CALL_UNTIL(condition, who, timeout_ms)                                                     \
    do {                                                                                           \
        const uint64_t end_ms_ = test_now_ms() + NODE_MS;                                          \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > end_ms_) {                                                         \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            call_step(who, timeout_ms);                                                            \
        }                                                                                          \
    } while (0)

#define FIRST  1U
#define SECOND 2U
#define BOTH   3U
#define LONG   60000U

static void open_server(unsigned i)
{
    char path[64];
    (void)snprintf(path, sizeof path, SERVICE "/%u", i + 1);
    servers[i].on_message = serve;
    node_open(&servers[i], &cluster, path);
}

static void target(unsigned i)
{
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .errors_count = 1};
    CHECK(ringbus_target(callers[i].bus, SERVICE, &options, &to) == 0);
}

static bool both(enum ringbus_event_type type, unsigned count)
{
    return callers[0].events[type] >= count && callers[1].events[type] >= count;
}

/** Two servers, two callers; the sick one is shielded, and both callers know. */
static int open_shielded(void **state)
{
    (void)state;
    memset(servers, 0, sizeof servers);
    memset(callers, 0, sizeof callers);
    behaviour = HOLD;
    held = 0;
    for (unsigned i = 0; i < 2; i++) {
        open_server(i);
        node_open(&callers[i], &cluster, NULL);
        target(i);
    }
    RUN_UNTIL(both(RINGBUS_EVENT_READY, 2), NODE_MS, &servers[0], &servers[1], &callers[0],
              &callers[1]);
    const struct ringbus_addr sick = {.cluster = to.cluster, .instance = SICK + 1};
    for (unsigned i = 0; i < 20; i++) {
        CHECK(ringbus_report(callers[i % 2].bus, &sick, RINGBUS_REPORT_TIMEOUT, 0) == 0);
    }
    RUN_UNTIL(both(RINGBUS_EVENT_SHIELDED, 1), NODE_MS, &servers[0], &servers[1], &callers[0],
              &callers[1]);
    assert_int_equal(health(), RBI_HEALTH_OPEN);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        node_close(&callers[i]);
        node_close(&servers[i]);
    }
    return 0;
}

/** It is well: it comes back, and both are told. */
static void check_heals(void)
{
    behaviour = ANSWER;
    CALL_UNTIL(both(RINGBUS_EVENT_UNSHIELDED, 1), BOTH, 1000);
    assert_true(health() == RBI_HEALTH_OK || health() == RBI_HEALTH_RAMP);
    const uint64_t had = servers[SICK].messages;
    CALL_UNTIL(servers[SICK].messages > had + 5, BOTH, 1000);
}

/** Out again, with no request before the next probe, and then well. */
static void check_out_again_then_heals(void)
{
    CALL_UNTIL(health() == RBI_HEALTH_OPEN, BOTH, LONG);
    const uint64_t had = servers[SICK].messages;
    CALL_UNTIL(health() == RBI_HEALTH_HALF_OPEN, BOTH, LONG);
    assert_true(servers[SICK].messages <= had + 1);
    assert_true(both(RINGBUS_EVENT_SHIELDED, 1));
    assert_false(callers[0].events[RINGBUS_EVENT_UNSHIELDED] > 0);
    check_heals();
}

/** The probe said nothing: it is asked again, without being out in between, and is well. */
static void check_heals_without_being_out(unsigned who)
{
    behaviour = ANSWER;
    CALL_UNTIL(callers[1].events[RINGBUS_EVENT_UNSHIELDED] == 1 || health() == RBI_HEALTH_OPEN, who,
               1000);
    assert_int_not_equal(health(), RBI_HEALTH_OPEN);
}

static void test_reply(void **state)
{
    (void)state;
    check_heals();
}

static void test_error_reply(void **state)
{
    (void)state;
    behaviour = FAIL;
    CALL_UNTIL(servers[SICK].messages == 1, BOTH, LONG);
    check_out_again_then_heals();
}

static void test_timeout_of_the_request(void **state)
{
    (void)state;
    CALL_UNTIL(held == 1, BOTH, 50);
    check_out_again_then_heals();
}

/* Whoever asked waits for a minute; the probe does not. */
static void test_no_end_at_all(void **state)
{
    (void)state;
    CALL_UNTIL(held == 1, BOTH, LONG);
    check_out_again_then_heals();
}

/* The caller gives up; another is asked to try. */
static void test_caller_cancels(void **state)
{
    (void)state;
    CALL_UNTIL(held == 1, FIRST, LONG);
    CHECK(ringbus_untarget(callers[0].bus, SERVICE) == 0);
    check_heals_without_being_out(SECOND);
}

static void be_caller(const struct cluster *at, void *context)
{
    struct node node = {0};
    struct ringbus_addr any;
    (void)context;
    node_open(&node, at, NULL);
    CHECK(ringbus_target(node.bus, SERVICE, NULL, &any) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &node);
    for (;;) {
        (void)ringbus_request(node.bus, &any, 0, "hi", 2, 0, LONG, node_on_result, &node);
        RUN_UNTIL(true, NODE_MS, &node);
        (void)ringbus_poll(node.bus, 100);
        test_sleep_ms(STEP_MS);
    }
}

static void test_caller_is_killed(void **state)
{
    (void)state;
    const pid_t pid = child_start(be_caller, &cluster, NULL);
    RUN_UNTIL(held == 1, NODE_MS, &servers[0], &servers[1], &callers[0], &callers[1]);
    child_kill(pid);
    check_heals_without_being_out(BOTH);
}

/* Its next life has no past. */
static void test_instance_restarts(void **state)
{
    (void)state;
    CALL_UNTIL(held == 1, BOTH, LONG);
    node_close(&servers[SICK]);
    open_server(SICK);
    behaviour = ANSWER;
    RUN_UNTIL(both(RINGBUS_EVENT_READY, 3), NODE_MS, &servers[0], &servers[1], &callers[0],
              &callers[1]);
    assert_int_equal(health(), RBI_HEALTH_OK);
    CALL_UNTIL(servers[SICK].messages > 5, BOTH, 1000);
}

/* The place of the probe is taken back: there was no room for it. */
static void test_refused_for_want_of_room(void **state)
{
    (void)state;
    const struct ringbus_addr sick = {.cluster = to.cluster, .instance = SICK + 1};
    at_probe = true;
    CALL_UNTIL(callers[0].bus->probing, FIRST, LONG);
    at_probe = false;
    while (ringbus_send(callers[0].bus, &sick, 0, "x", 1, 0) == 1) {
        /* it does not read */
    }
    assert_int_equal(
        ringbus_request(callers[0].bus, &to, 0, "hi", 2, 0, LONG, node_on_result, &callers[0]),
        RINGBUS_E_FULL);
    assert_false(callers[0].bus->probing);
    assert_int_equal(health(), RBI_HEALTH_HALF_OPEN);
    check_heals_without_being_out(BOTH);
}

/* There never is: it is out again in bounded time, for as long as before, and asked anew. */
static void test_refused_again_and_again(void **state)
{
    (void)state;
    const struct ringbus_addr sick = {.cluster = to.cluster, .instance = SICK + 1};
    at_probe = true;
    CALL_UNTIL(callers[0].bus->probing, FIRST, LONG);
    at_probe = false;
    while (ringbus_send(callers[0].bus, &sick, 0, "x", 1, 0) == 1) {
    }
    unsigned full = 0;
    struct node *const running[] = {&servers[0], &callers[0]}; /* the sick one reads nothing */
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (health() == RBI_HEALTH_HALF_OPEN) {
        CHECK(test_now_ms() < end_ms);
        const int r =
            ringbus_request(callers[0].bus, &to, 0, "hi", 2, 0, LONG, node_on_result, &callers[0]);
        CHECK(r == 1 || r == RINGBUS_E_FULL);
        full += r == RINGBUS_E_FULL;
        nodes_step(running, 2);
    }
    assert_int_equal(health(), RBI_HEALTH_OPEN);
    assert_in_range(full, 1, 2); /* so many tries as there are; one, when it was too slow */
    assert_int_equal(callers[0].events[RINGBUS_EVENT_UNSHIELDED], 0);
    check_heals();
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define PROBE_TEST(name) cmocka_unit_test_setup_teardown(name, open_shielded, close_all)

/* Two programs: each takes some seconds. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PROBE_TEST(test_error_reply),
        PROBE_TEST(test_timeout_of_the_request),
        PROBE_TEST(test_no_end_at_all),
    };
    const struct CMUnitTest more[] = {
        PROBE_TEST(test_reply),
        PROBE_TEST(test_caller_cancels),
        PROBE_TEST(test_caller_is_killed),
        PROBE_TEST(test_instance_restarts),
        PROBE_TEST(test_refused_for_want_of_room),
        PROBE_TEST(test_refused_again_and_again),
    };
    return argc > 1 && strcmp(argv[1], "more") == 0 ? cmocka_run_group_tests(more, up, down)
                                                    : cmocka_run_group_tests(tests, up, down);
}
