/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dialling other hosts (scenario 116): first attempts that fail are not the last ones, and whoever
 * begins to listen is connected within one step of the back-off.
 */
#include "support/machine.h"
#include "support/net.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct net net;

static int setup(void **state)
{
    net_up(&net, *state);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net_down(&net);
    return 0;
}

static void connect_hosts(void)
{
    net_open(&net.b);
    net_dial(&net.a, &net.b, rbi_door_address(net.b.door));
    assert_true(net_until(&net, net_connected));
}

static bool was_refused_often(struct net *at)
{
    struct rbi_dial_report report;
    rbi_dial_report(at->a.dial, &report);
    return report.failures >= 4;
}

/** Scenario 116: the first attempts fail; it connects within a step after somebody listens. */
static void test_it_connects_within_a_step_after_a_listener_appears(void **state)
{
    (void)state;
    char address[RBI_BRIDGE_ADDRESS_MAX + 1U];
    uint64_t took = UINT64_MAX;
    net_open(&net.b);
    (void)snprintf(address, sizeof(address), "%s", rbi_door_address(net.b.door));
    net.b.door = rbi_door_free(net.b.door);
    net_turn_ms(&net, 20); /* polls in the ring keep a listener for a moment */
    net_dial(&net.a, &net.b, address);
    for (unsigned round = 0; round < MACHINE_ROUNDS && took > RBI_DIAL_STEP_MAX_NS; round++) {
        net.a.conn = net.b.conn = NULL;
        assert_true(net_until(&net, was_refused_often));
        struct rbi_dial_report report;
        rbi_dial_report(net.a.dial, &report);
        assert_non_null(strstr(report.why, "nobody listens there"));
        const uint64_t from = machine_now_ns();
        net_open_at(&net.b, address);
        assert_true(net_until(&net, net_connected));
        took = machine_now_ns() - from;
        took -=
            machine_paused_ns(from, from + took) < took ? machine_paused_ns(from, from + took) : 0;
        rbi_conn_cut(net.b.conn, "again");
        net.b.conn = NULL;
        net.b.door = rbi_door_free(net.b.door);
    }
    assert_in_range(took, 0, RBI_DIAL_STEP_MAX_NS + 100000000);
}

static bool dial_has_failed_there(struct net *at)
{
    struct rbi_dial_report report;
    rbi_dial_report(at->a.dial, &report);
    return !at->a.conn && report.failures >= 3 && strstr(report.why, "nobody listens there");
}

/** Scenario 116: another address, where nobody listens for a while. */
static void test_another_address_is_dialled_until_somebody_is_there(void **state)
{
    (void)state;
    char address[RBI_BRIDGE_ADDRESS_MAX + 1U];
    connect_hosts();
    net_exchange(&net, 1000, 100);
    struct rbi_door *first = net.b.door;
    net_open(&net.b);
    (void)snprintf(address, sizeof(address), "%s", rbi_door_address(net.b.door));
    net.b.door = rbi_door_free(net.b.door);
    net_turn_ms(&net, 20);
    assert_int_equal(rbi_dial_move(net.a.dial, "no address"), -EINVAL);
    assert_int_equal(rbi_dial_move(net.a.dial, address), 0);
    net_turn_ms(&net, 50);
    assert_non_null(net.a.conn); /* its owner ends it, when it likes */
    net_exchange(&net, 1000, 100);
    rbi_conn_close(net.a.conn, "moved");
    net.a.conn = NULL;
    assert_true(net_until(&net, dial_has_failed_there));
    net_open_at(&net.b, address);
    assert_true(net_until(&net, net_connected));
    assert_string_equal(rbi_conn_address(net.a.conn), address);
    net.a.sent = net.b.received = net.b.sent = net.a.received = 0;
    net_exchange(&net, 1000, 100);
    rbi_door_free(first);
}

#define MODE(test, mode)                                                                           \
    {                                                                                              \
#test " " mode, test, setup, teardown, (void *)(uintptr_t)mode                             \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODE(test_another_address_is_dialled_until_somebody_is_there, "uring tls"),
        MODE(test_another_address_is_dialled_until_somebody_is_there, "epoll plain"),
        MODE(test_it_connects_within_a_step_after_a_listener_appears, "uring tls"),
        MODE(test_it_connects_within_a_step_after_a_listener_appears, "epoll plain"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
