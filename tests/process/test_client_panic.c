/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 91: ten instances, and all fail at once; or who judges them stands still. The list that
 * is known is used, it is said and logged, or a clear refusal comes where the policy wants one:
 * never that there is nobody.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define USED      "/game/eu/pc/w1/core/used"
#define REFUSED   "/game/eu/pc/w1/core/refused"
#define INSTANCES 10U
#define WAIT_MS   50U   /* that a request has */
#define STOPPED   1500U /* ms; longer than a window, a sweep, a time out */

static struct cluster cluster;
static struct node servers[INSTANCES];
static struct node caller;
static struct ringbus_addr to;
static bool silent;
static unsigned refusals; /* with RINGBUS_E_SHIELDED */

static const char config[] = "clusters: [{match: " REFUSED ", panic: {mode: fail}}]\n";

static void serve(struct node *node, const struct ringbus_message *message)
{
    if (!silent) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    }
}

static void poll_all(void)
{
    struct node *all[INSTANCES + 1] = {&caller};
    for (unsigned i = 0; i < INSTANCES; i++) {
        all[i + 1] = &servers[i];
    }
    nodes_step(all, INSTANCES + 1);
}

/** One request each millisecond: it is taken, or refused for the panic, whatever happens. */
static void call_step(void)
{
    static uint64_t last_ms;
    poll_all();
    if (test_now_ms() == last_ms) {
        return;
    }
    last_ms = test_now_ms();
    const int r = ringbus_request(caller.bus, &to, 0, "hi", 2, 0, WAIT_MS, node_on_result, &caller);
    CHECK(r == 1 || r == RINGBUS_E_FULL || r == RINGBUS_E_SHIELDED);
    refusals += r == RINGBUS_E_SHIELDED;
}

#define CALL_UNTIL(condition)                                                                      \
    do {                                                                                           \
        const uint64_t end_ms_ = test_now_ms() + NODE_MS;                                          \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > end_ms_) {                                                         \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            call_step();                                                                           \
        }                                                                                          \
    } while (0)

static void open_all(const char *service)
{
    memset(&caller, 0, sizeof caller);
    memset(servers, 0, sizeof servers);
    silent = false;
    refusals = 0;
    for (unsigned i = 0; i < INSTANCES; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%u", service, i + 1);
        servers[i].on_message = serve;
        node_open(&servers[i], &cluster, path);
    }
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, service, NULL, &to) == 0);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (caller.events[RINGBUS_EVENT_READY] < INSTANCES) {
        CHECK(test_now_ms() < end_ms);
        poll_all();
    }
}

static void close_all(void)
{
    node_close(&caller);
    for (unsigned i = 0; i < INSTANCES; i++) {
        node_close(&servers[i]);
    }
}

/** The fewest messages that one of them has had since @p before. */
static uint64_t fewest(const uint64_t before[INSTANCES])
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < INSTANCES; i++) {
        least = rbi_min_u64(least, servers[i].messages - before[i]);
    }
    return least;
}

static void note_messages(uint64_t now[INSTANCES])
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        now[i] = servers[i].messages;
    }
}

static void test_all_fail_and_all_are_asked(void **state)
{
    uint64_t before[INSTANCES];
    (void)state;
    open_all(USED);
    const unsigned said = cluster_log_count(&cluster, "event=panic ");
    CALL_UNTIL(caller.replies[RINGBUS_REPLIED] > 20);
    silent = true;
    CALL_UNTIL(caller.events[RINGBUS_EVENT_PANIC] == 1);
    note_messages(before);
    CALL_UNTIL(fewest(before) > 0);
    assert_int_equal(cluster_log_count(&cluster, "event=panic "), said + 1);
    assert_int_equal(caller.events[RINGBUS_EVENT_REMOVED] + caller.events[RINGBUS_EVENT_DOWN], 0);
    silent = false;
    CALL_UNTIL(caller.events[RINGBUS_EVENT_PANIC_OVER] == 1);
    assert_int_equal(refusals, 0);
    close_all();
}

/* A clear word, for who wants it, as long as it lasts. */
static void test_all_fail_and_are_refused(void **state)
{
    (void)state;
    open_all(REFUSED);
    silent = true;
    CALL_UNTIL(caller.events[RINGBUS_EVENT_PANIC] == 1 && refusals > 20);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), REFUSED));
    close_all();
}

/* Who judges stands still: what was known goes on to be used, and nobody is gone afterwards. */
static void test_the_daemon_stands_still(void **state)
{
    uint64_t before[INSTANCES];
    (void)state;
    open_all(USED);
    CALL_UNTIL(caller.replies[RINGBUS_REPLIED] > 20);
    assert_int_equal(kill(cluster.pid, SIGSTOP), 0);
    const uint64_t end_ms = test_now_ms() + STOPPED;
    CALL_UNTIL(test_now_ms() > end_ms);
    silent = true;
    CALL_UNTIL(caller.replies[RINGBUS_UNKNOWN] > 20);
    silent = false;
    note_messages(before);
    CALL_UNTIL(fewest(before) > 0);
    assert_int_equal(kill(cluster.pid, SIGCONT), 0);
    note_messages(before);
    CALL_UNTIL(fewest(before) > 10);
    assert_int_equal(caller.events[RINGBUS_EVENT_REMOVED] + caller.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(refusals, 0);
    close_all();
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

static int down(void **state)
{
    (void)state;
    (void)kill(cluster.pid, SIGCONT);
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_fail_and_all_are_asked),
        cmocka_unit_test(test_all_fail_and_are_refused),
        cmocka_unit_test(test_the_daemon_stands_still),
    };
    return cmocka_run_group_tests(tests, up, down);
}
