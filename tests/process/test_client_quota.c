/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit of all callers of a cluster together, from the configuration to what is sent. Features
 * 2.8 (c): divided by demand, what one does not use goes to the other, and without a daemon each
 * has its static share: neither nothing nor everything.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>

#define SERVICE "/game/eu/pc/w1/core/shared"
#define RATE    4000U
#define CALLERS 4U

static const char config[] =
    "clusters:\n"
    "  - match: " SERVICE "\n"
    "    limits: [{id: together, scope: cluster, rate: 4000, burst: 40}]\n";

static struct cluster cluster;
static struct node server;
static struct node callers[CALLERS];
static struct ringbus_addr any;

static int setup(void **state)
{
    (void)state;
    bus_shared_reset();
    if (cluster_up(&cluster, config) != 0) {
        return -1;
    }
    server = (struct node){.bus = NULL};
    node_open(&server, &cluster, SERVICE "/1");
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct node){.bus = NULL};
        node_open(&callers[i], &cluster, NULL);
        any = node_target(&callers[i], SERVICE, 1, &server);
        any.instance = RINGBUS_ANY;
        any.incarnation = 0;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CALLERS; i++) {
        node_close(&callers[i]);
    }
    node_close(&server);
    cluster_down(&cluster);
    return 0;
}

static const struct rbi_lease_holder *lease_of(unsigned at)
{
    const struct rbi_cluster *of = rbi_cluster_find(callers[at].bus, any.cluster);
    return of != NULL && of->limiter != NULL ? &of->limiter->leases[0] : NULL;
}

static uint64_t share_of(unsigned at)
{
    const struct rbi_lease_holder *lease = lease_of(at);
    return lease != NULL ? rbi_lease_rate(lease, rbi_now_ns()) : UINT64_MAX;
}

/** One step of all; the first @p active callers offer far more than they may. */
static void step(unsigned active)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        for (unsigned n = 0; i < active && n < 20; n++) {
            (void)ringbus_send(callers[i].bus, &any, 0, "x", 1, 0);
        }
        (void)ringbus_poll(callers[i].bus, 64);
    }
    (void)ringbus_poll(server.bus, 256);
}

#define STEP_UNTIL(active, condition)                                                              \
    do {                                                                                           \
        const uint64_t deadline_ms_ = test_now_ms() + NODE_MS;                                     \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < deadline_ms_);                                                   \
            step(active);                                                                          \
        }                                                                                          \
    } while (0)

static bool near(uint64_t value, uint64_t wanted)
{
    return value * 100 >= wanted * 90 && value * 100 <= wanted * 104;
}

static bool shares_are(unsigned active)
{
    for (unsigned i = 0; i < active; i++) {
        if (!near(share_of(i), UINT64_C(1000) * RATE / active)) {
            return false;
        }
    }
    return true;
}

static void test_rate_is_divided_among_those_who_send(void **state)
{
    (void)state;
    /* Nobody has asked: a part that is neither nothing nor everything. */
    STEP_UNTIL(0, lease_of(0) != NULL && lease_of(CALLERS - 1) != NULL);
    assert_int_equal(share_of(0), 1000 * RATE / RBI_LEASE_ALONE);
    STEP_UNTIL(1, shares_are(1)); /* alone it has all of it */
    STEP_UNTIL(2, shares_are(2));
    STEP_UNTIL(CALLERS, shares_are(CALLERS));
    STEP_UNTIL(1, shares_are(1)); /* what the others do not use any more */
}

static void test_all_together_keep_the_rate(void **state)
{
    (void)state;
    STEP_UNTIL(CALLERS, shares_are(CALLERS));
    const uint64_t from_ns = rbi_now_ns();
    uint64_t sent_before = 0;
    uint64_t sent = 0;
    uint64_t now_ns = from_ns;
    uint64_t gap_ns = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        sent_before += node_stats(&callers[i]).sent;
    }
    while (now_ns - from_ns < 1500000000U) {
        step(CALLERS);
        const uint64_t next_ns = rbi_now_ns();
        gap_ns = rbi_max_u64(gap_ns, next_ns - now_ns);
        now_ns = next_ns;
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        sent += node_stats(&callers[i]).sent;
    }
    sent -= sent_before;
    const uint64_t due = (now_ns - from_ns) * RATE / 1000000000U;
    assert_true(sent * 100 <= due * 101 + 100 * (40 + CALLERS + 16)); /* bursts; the coarse clock */
    if (gap_ns < 5000000U) { /* else more time was lost than the burst, 10 ms, makes good */
        assert_true(sent * 100 >= due * 95);
    }
}

static void test_without_a_daemon_each_has_its_static_share(void **state)
{
    (void)state;
    STEP_UNTIL(CALLERS, shares_are(CALLERS));
    STEP_UNTIL(1, shares_are(1));
    cluster_kill(&cluster);
    STEP_UNTIL(1, callers[0].events[RINGBUS_EVENT_DAEMON_LOST] == 1);
    /* Its lease runs out: then the part of one of four, as it was told. */
    STEP_UNTIL(1, share_of(0) == 1000 * RATE / CALLERS);
    const uint64_t sent = node_stats(&callers[0]).sent;
    STEP_UNTIL(1, node_stats(&callers[0]).sent > sent + 100); /* and it does go on */
    assert_int_equal(cluster_start(&cluster), 0);
    STEP_UNTIL(1, shares_are(1));
}

static void test_caller_that_ends_leaves_its_share_to_the_others(void **state)
{
    (void)state;
    STEP_UNTIL(CALLERS, shares_are(CALLERS));
    node_close(&callers[CALLERS - 1]);
    callers[CALLERS - 1] = (struct node){.bus = NULL};
    node_open(&callers[CALLERS - 1], &cluster, NULL); /* another, which sends nothing */
    STEP_UNTIL(CALLERS - 1, shares_are(CALLERS - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rate_is_divided_among_those_who_send, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_together_keep_the_rate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_daemon_each_has_its_static_share, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_caller_that_ends_leaves_its_share_to_the_others, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
