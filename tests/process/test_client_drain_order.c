/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario 99: an operator drains an instance: not the tool's, and ended with the instance. */
#include "process/client_drain.h"
#include "support/raw.h"

/* ---- on an operator's order ---------------------------------------------------------------- */

static struct raw tool;

static void tool_up(void)
{
    assert_int_equal(raw_connect(&tool, cluster.socket), 0);
    assert_int_equal(raw_hello(&tool), 0);
}

static int order(const char *path, enum rbi_drain_what what, struct rbi_wire_drain_state *out)
{
    struct rbi_wire_drain body = {.what = what};
    struct raw_message message;
    rbi_text_set(&body.path, path);
    CHECK(raw_send(&tool, RBI_WIRE_DRAIN, &body, NULL, 0) == 0);
    do { /* the daemon may just have been up for its return_time */
        CHECK(raw_receive(&tool, &message, RAW_TIMEOUT_MS) == 0);
    } while (message.header.type == RBI_WIRE_SETTLED);
    if (message.header.type == RBI_WIRE_ERROR) {
        return message.body.error.code;
    }
    CHECK(message.header.type == RBI_WIRE_DRAIN_STATE);
    *out = message.body.drain_state;
    return 0;
}

static bool reported(uint32_t step)
{
    struct rbi_wire_drain_state now;
    CHECK(order(PEER_1, RBI_DRAIN_LOOK, &now) == 0);
    return now.reported && now.step == step;
}

static unsigned drain_lines(void)
{
    return cluster_log_count(&cluster, "event=drain path=") +
           cluster_log_count(&cluster, "event=undrain path=");
}

/* Who may drain it may not fill the log with that. */
static void test_orders_without_end(void **state)
{
    enum { ORDERS = 300 };
    struct rbi_wire_drain_state now;
    (void)state;
    (void)up();
    tool_up();
    const unsigned before = drain_lines();
    const uint64_t begin_ms = test_now_ms();
    for (unsigned i = 0; i < ORDERS; i++) {
        assert_int_equal(order(PEER_1, i % 2 == 0 ? RBI_DRAIN_START : RBI_DRAIN_STOP, &now), 0);
    }
    const uint64_t took_s = (test_now_ms() - begin_ms) / 1000;
    const unsigned lines = drain_lines() - before;
    assert_true(lines >= 10);
    assert_true(lines <= 10 + took_s + 1); /* a burst of 10, and one a second */
    raw_close(&tool);
    down();
}

static void test_operator_drains(void **state)
{
    struct rbi_wire_drain_state now;
    (void)state;
    const struct ringbus_addr any = up();
    tool_up();
    assert_int_equal(order(PEER_1, RBI_DRAIN_START, &now), 0);
    assert_int_equal(now.state, RBI_ENDPOINT_DRAINING); /* at once, whatever the instance does */
    assert_int_equal(now.reported, 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_DRAIN] == 1, NODE_MS, &b, &c);
    RUN_UNTIL(reported(RBI_DRAIN_SENDERS), NODE_MS, &b, &c); /* a has not acknowledged */
    RUN_UNTIL(reported(RBI_DRAIN_DONE), NODE_MS, &a, &b, &c);
    assert_int_equal(ringbus_drained(b.bus), 1);
    send_any(&any, 4);
    RUN_UNTIL(c.messages == 4, NODE_MS, &a, &b, &c);
    assert_int_equal(ringbus_undrain(b.bus), RINGBUS_E_DENIED);
    /* The same order again changes nothing. */
    assert_int_equal(order(PEER_1, RBI_DRAIN_START, &now), 0);
    assert_int_equal(now.step, RBI_DRAIN_DONE);
    /* Scenario 99: the tool ends, the drain stays; and outlives the daemon. */
    raw_close(&tool);
    cluster_kill(&cluster);
    RUN_UNTIL(b.events[RINGBUS_EVENT_DAEMON_LOST] == 1, NODE_MS, &a, &b, &c);
    assert_int_equal(cluster_start(&cluster), 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_DAEMON_BACK] == 1 && a.events[RINGBUS_EVENT_DAEMON_BACK] == 1,
              NODE_MS, &a, &b, &c);
    tool_up();
    RUN_UNTIL(reported(RBI_DRAIN_DONE), NODE_MS, &a, &b, &c);
    assert_int_equal(order(PEER_1, RBI_DRAIN_LOOK, &now), 0);
    assert_int_equal(now.state, RBI_ENDPOINT_DRAINING);
    /* And back, under the new daemon. */
    const unsigned updates = a.events[RINGBUS_EVENT_UPDATED];
    assert_int_equal(order(PEER_1, RBI_DRAIN_STOP, &now), 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_UNDRAIN] == 1 && reported(RBI_DRAIN_NONE), NODE_MS, &a, &b,
              &c);
    RUN_UNTIL(a.events[RINGBUS_EVENT_UPDATED] == updates + 1, NODE_MS, &a, &b, &c);
    CHECK(ringbus_poll(a.bus, 100) >= 0);
    send_any(&any, 4);
    RUN_UNTIL(b.messages == 2 && c.messages == 6, NODE_MS, &a, &b, &c);
    raw_close(&tool);
    down();
}

/* One that drains by its own will is not put back by an operator, and the other way round. */
static void test_two_wills(void **state)
{
    struct rbi_wire_drain_state now;
    (void)state;
    up();
    tool_up();
    CHECK(ringbus_drain(b.bus) == 0);
    assert_int_equal(order(PEER_1, RBI_DRAIN_START, &now), 0);
    RUN_UNTIL(reported(RBI_DRAIN_DONE), NODE_MS, &a, &b, &c);
    assert_int_equal(order(PEER_1, RBI_DRAIN_STOP, &now), 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_UNDRAIN] == 1 && reported(RBI_DRAIN_DONE), NODE_MS, &a, &b,
              &c);
    assert_int_equal(now.state, RBI_ENDPOINT_DRAINING);
    CHECK(ringbus_undrain(b.bus) == 0);
    RUN_UNTIL(order(PEER_1, RBI_DRAIN_LOOK, &now) == 0 && now.state == RBI_ENDPOINT_READY, NODE_MS,
              &a, &b, &c);
    raw_close(&tool);
    down();
}

/* An instance that does not know the order, or does not react, is taken out all the same. */
static void test_instance_that_does_not_react(void **state)
{
    struct rbi_wire_drain_state now;
    struct raw deaf;
    (void)state;
    tool_up();
    assert_int_equal(raw_up(&deaf, cluster.socket, PEER_1), 0);
    memset(&a, 0, sizeof a);
    node_open(&a, &cluster, NULL);
    CHECK(ringbus_watch(a.bus, PEER) == 0);
    RUN_UNTIL(instances(&a, RINGBUS_INSTANCE_READY) == 1, NODE_MS, &a);
    assert_int_equal(order(PEER_1, RBI_DRAIN_START, &now), 0);
    RUN_UNTIL(instances(&a, RINGBUS_INSTANCE_DRAINING) == 1, NODE_MS, &a);
    assert_int_equal(raw_set_state(&deaf, RBI_ENDPOINT_BUSY), 0);
    assert_int_equal(instances(&a, RINGBUS_INSTANCE_DRAINING), 1);
    assert_int_equal(now.reported, 0);
    assert_int_equal(order(PEER_1, RBI_DRAIN_STOP, &now), 0);
    assert_int_equal(now.state, RBI_ENDPOINT_BUSY); /* as it said itself */
    RUN_UNTIL(instances(&a, RINGBUS_INSTANCE_BUSY) == 1, NODE_MS, &a);
    /* Scenario 99: a drain ends with the instance that was drained. */
    assert_int_equal(order(PEER_1, RBI_DRAIN_START, &now), 0);
    raw_close(&deaf);
    RUN_UNTIL(instances(&a, RINGBUS_INSTANCE_DRAINING) == 0, NODE_MS, &a);
    assert_int_equal(order(PEER_1, RBI_DRAIN_LOOK, &now), RINGBUS_E_NO_INSTANCE);
    assert_int_equal(raw_up(&deaf, cluster.socket, PEER_1), 0);
    assert_int_equal(order(PEER_1, RBI_DRAIN_LOOK, &now), 0);
    assert_int_equal(now.state, RBI_ENDPOINT_READY);
    raw_close(&deaf);
    raw_close(&tool);
    node_close(&a);
}

static void order_as_nobody(const struct cluster *at, void *context)
{
    struct rbi_wire_drain_state now;
    (void)at;
    (void)context;
    CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    tool_up();
    CHECK(order(PEER_1, RBI_DRAIN_LOOK, &now) == 0);
    CHECK(order(PEER_1, RBI_DRAIN_START, &now) == RINGBUS_E_DENIED);
    CHECK(order(PEER_1, RBI_DRAIN_STOP, &now) == RINGBUS_E_DENIED);
    raw_close(&tool);
}

static void test_rights_and_bad_orders(void **state)
{
    struct rbi_wire_drain_state now;
    (void)state;
    up();
    tool_up();
    assert_int_equal(order(PEER, RBI_DRAIN_START, &now), RINGBUS_E_PATH);
    assert_int_equal(order("nowhere", RBI_DRAIN_START, &now), RINGBUS_E_PATH);
    assert_int_equal(order(PEER "/77", RBI_DRAIN_START, &now), RINGBUS_E_NO_INSTANCE);
    assert_int_equal(order(OTHER "/1", RBI_DRAIN_START, &now), RINGBUS_E_NO_INSTANCE);
    assert_int_equal(order(PEER_1, 0, &now), RINGBUS_E_ARGUMENT);
    assert_int_equal(order(PEER_1, 4, &now), RINGBUS_E_ARGUMENT);
    if (getuid() == 0) {
        assert_int_equal(child_wait(child_start(order_as_nobody, &cluster, NULL), NODE_MS), 0);
    }
    assert_int_equal(order(PEER_1, RBI_DRAIN_LOOK, &now), 0);
    assert_int_equal(now.state, RBI_ENDPOINT_READY);
    raw_close(&tool);
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_without_end),
        cmocka_unit_test(test_operator_drains),
        cmocka_unit_test(test_two_wills),
        cmocka_unit_test(test_instance_that_does_not_react),
        cmocka_unit_test(test_rights_and_bad_orders),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
