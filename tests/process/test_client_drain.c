/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios 60 (its order: leave discovery, senders acknowledge, drain, close), 131 (DISCONNECT
 * after the last message). On an operator's order: test_client_drain_order.c.
 */
#include "hostile/peer.h"
#include "process/client_drain.h"

/* ---- the order ----------------------------------------------------------------------------- */

static void test_senders_acknowledge(void **state)
{
    (void)state;
    const struct ringbus_addr any = up();
    CHECK(ringbus_drained(b.bus) == 0);
    send_any(&any, 2); /* the next ones need not look around */
    CHECK(ringbus_drain(b.bus) == 0);
    CHECK(ringbus_drain(b.bus) == 0); /* once is enough */
    /* Whoever has not heard of it goes on; until it has, nothing is over. */
    send_any(&any, 8);
    for (unsigned i = 0; i < 20; i++) {
        CHECK(ringbus_poll(b.bus, 100) >= 0);
        CHECK(ringbus_wait(b.bus, 1) >= 0);
        CHECK(ringbus_drained(b.bus) == 0);
    }
    CHECK(b.messages == 5);
    /* It hears of it, and what it sends then goes elsewhere, whatever the daemon has said. */
    CHECK(ringbus_poll(a.bus, 100) >= 0);
    send_any(&any, 10);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &b, &c);
    CHECK(b.messages == 5);
    RUN_UNTIL(c.messages == 15, NODE_MS, &c);
    /* What names it still comes, and it goes on. */
    const struct ringbus_addr named = address_of(&b);
    CHECK(ringbus_send(a.bus, &named, 0, "x", 1, 0) == 1);
    RUN_UNTIL(b.messages == 6, NODE_MS, &b);
    CHECK(ringbus_drained(b.bus) == 1);
    CHECK(ringbus_close(b.bus, 0) == 0);
    b.bus = NULL;
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a);
    CHECK(a.reason == RINGBUS_REASON_LEFT);
    CHECK(a.events[RINGBUS_EVENT_UNDELIVERED] == 0);
    down();
}

static void test_nobody_new(void **state)
{
    struct node d = {0};
    struct ringbus_addr any;
    (void)state;
    up();
    CHECK(ringbus_drain(b.bus) == 0);
    RUN_UNTIL(instances(&a, RINGBUS_INSTANCE_DRAINING) == 1, NODE_MS, &a, &b, &c);
    node_open(&d, &cluster, NULL);
    CHECK(ringbus_target(d.bus, PEER, NULL, &any) == 0);
    RUN_UNTIL(d.events[RINGBUS_EVENT_ADDED] == 2 && d.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &a,
              &b, &c, &d);
    const struct ringbus_addr named = address_of(&b);
    assert_int_equal(ringbus_send(d.bus, &named, 0, "x", 1, 0), RINGBUS_E_DRAINING);
    assert_int_equal(ringbus_error_kind(RINGBUS_E_DRAINING), RINGBUS_ERROR_RETRY);
    assert_int_equal(d.events[RINGBUS_EVENT_LINK_FAILED], 0); /* it does not even ask */
    /* And back: it is linked, and dispatched to. */
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b, &c, &d);
    CHECK(ringbus_undrain(b.bus) == 0);
    CHECK(ringbus_undrain(b.bus) == 0);
    CHECK(ringbus_drained(b.bus) == 0);
    RUN_UNTIL(d.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &a, &b, &c, &d);
    RUN_UNTIL(a.events[RINGBUS_EVENT_UPDATED] == 2, NODE_MS, &a, &b, &c, &d);
    send_any(&any, 10);
    RUN_UNTIL(b.messages == 5 && c.messages == 5, NODE_MS, &a, &b, &c);
    /* The ACK of the first drain does not stand for the second. */
    CHECK(ringbus_drain(b.bus) == 0);
    RUN_UNTIL(instances(&d, RINGBUS_INSTANCE_DRAINING) == 1, NODE_MS, &b, &d);
    CHECK(ringbus_drained(b.bus) == 0);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b, &d);
    node_close(&d);
    down();
}

static void test_last_one_leaves(void **state)
{
    (void)state;
    const struct ringbus_addr any = up();
    CHECK(ringbus_drain(b.bus) == 0 && ringbus_drain(c.bus) == 0);
    RUN_UNTIL(ringbus_drained(b.bus) == 1 && ringbus_drained(c.bus) == 1, NODE_MS, &a, &b, &c);
    assert_int_equal(ringbus_send(a.bus, &any, 0, "x", 1, 0), RINGBUS_E_DRAINING);
    assert_int_equal(ringbus_send(a.bus, &any, 7, "x", 1, RINGBUS_KEY), RINGBUS_E_DRAINING);
    struct ringbus_addr all = any;
    all.instance = RINGBUS_ALL;
    assert_int_equal(ringbus_send(a.bus, &all, 0, "x", 1, 0), 0);
    down();
}

/* A message that is being built went to the instance before it left. */
static void test_open_claim(void **state)
{
    struct ringbus_claim claim;
    (void)state;
    struct ringbus_addr any = up();
    node_close(&c);
    RUN_UNTIL(a.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &a, &b);
    CHECK(ringbus_claim(a.bus, &any, 0, 8, 0, &claim) >= 0);
    CHECK(ringbus_drain(b.bus) == 0);
    for (unsigned i = 0; i < 20; i++) {
        struct node *const both[] = {&a, &b};
        nodes_step(both, 2);
        CHECK(ringbus_drained(b.bus) == 0);
    }
    memset(claim.data, 0, 8);
    CHECK(ringbus_commit(a.bus, &claim, 8) == 1);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b);
    assert_int_equal(b.messages, 1);
    down();
}

/* ---- what it waits for --------------------------------------------------------------------- */

static struct ringbus_reply_to owed;

static void owe(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    owed = message->reply_to;
}

static void test_waits_for_own_requests(void **state)
{
    (void)state;
    up();
    c.on_message = owe;
    struct ringbus_addr other;
    CHECK(ringbus_target(b.bus, PEER_2, NULL, &other) == 0);
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] >= 1 &&
                  ringbus_request(b.bus, &other, 0, "", 0, 0, NODE_MS, node_on_result, &b) == 1,
              NODE_MS, &a, &b, &c);
    CHECK(ringbus_drain(b.bus) == 0);
    RUN_UNTIL(owed.id != 0, NODE_MS, &a, &b, &c);
    for (unsigned i = 0; i < 20; i++) {
        struct node *const all[] = {&a, &b, &c};
        nodes_step(all, 3);
        CHECK(ringbus_drained(b.bus) == 0);
    }
    CHECK(ringbus_reply(c.bus, &owed, "", 0, 0) == 1);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b, &c);
    assert_int_equal(b.replies[RINGBUS_REPLIED], 1);
    down();
}

static void test_waits_for_readers(void **state)
{
    (void)state;
    up();
    struct ringbus_addr peer = address_of(&a);
    CHECK(ringbus_drain(b.bus) == 0);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b, &c);
    CHECK(ringbus_undrain(b.bus) == 0);
    CHECK(ringbus_send(b.bus, &peer, 0, "x", 1, 0) == 1);
    /* a reads nothing: in the time given, it is not over. */
    const uint64_t start_ms = test_now_ms();
    assert_int_equal(ringbus_close(b.bus, 200), RINGBUS_E_TIMEOUT);
    b.bus = NULL;
    assert_true(test_now_ms() - start_ms >= 200);
    /* It is delivered all the same, and then comes the end. */
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a);
    assert_int_equal(a.messages, 1);
    assert_int_equal(a.reason, RINGBUS_REASON_LEFT);
    down();
}

/* With 0 nothing is waited for; what was not read goes back to who had sent it. */
static void test_close_at_once(void **state)
{
    (void)state;
    up();
    const struct ringbus_addr named = address_of(&b);
    const struct ringbus_addr peer = address_of(&a);
    CHECK(ringbus_send(b.bus, &peer, 0, "x", 1, 0) == 1);
    CHECK(ringbus_send(a.bus, &named, 0, "y", 1, 0) == 1);
    CHECK(ringbus_close(b.bus, 0) == 0);
    b.bus = NULL;
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a);
    assert_int_equal(a.messages, 1);
    assert_int_equal(a.events[RINGBUS_EVENT_UNDELIVERED], 1);
    down();
}

/* ---- senders that do not acknowledge ------------------------------------------------------- */

static void silent_sender(const struct cluster *at, void *context)
{
    struct node sender = {0};
    (void)context;
    node_open(&sender, at, NULL);
    node_target(&sender, PEER_1, 1, NULL);
    CHECK(ringbus_send(sender.bus, &sender.peer, 0, "x", 1, 0) == 1);
    for (;;) {
        (void)pause();
    }
}

static void test_sender_that_hangs_or_dies(void **state)
{
    (void)state;
    memset(&b, 0, sizeof b);
    const pid_t pid = child_start(silent_sender, &cluster, NULL);
    node_open(&b, &cluster, PEER_1);
    RUN_UNTIL(b.messages == 1, NODE_MS, &b);
    CHECK(ringbus_drain(b.bus) == 0);
    for (unsigned i = 0; i < 50; i++) {
        CHECK(ringbus_poll(b.bus, 100) >= 0);
        CHECK(ringbus_wait(b.bus, 1) >= 0);
        CHECK(ringbus_drained(b.bus) == 0);
    }
    child_kill(pid);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &b);
    assert_int_equal(b.reason, RINGBUS_REASON_CRASHED);
    node_close(&b);
}

/* A peer of an earlier version: its READY says nothing of DRAIN, and it answers none. */
static void leaving_server(const struct cluster *at, void *context)
{
    struct node server = {0};
    (void)context;
    node_open(&server, at, PEER_1);
    bus_shared[0] = 1;
    RUN_UNTIL(server.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &server);
    RUN_UNTIL(server.messages == 1, NODE_MS, &server);
    CHECK(ringbus_close(server.bus, NODE_MS) == 0);
}

static void test_sender_of_an_earlier_version(void **state)
{
    struct peer old;
    struct ringbus_addr addr;
    const uint64_t body[2] = {0, 0};
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(leaving_server, &cluster, NULL);
    while (bus_shared[0] == 0) {
        test_sleep_ms(1);
    }
    CHECK(ringbus_resolve(PEER_1, &addr) == 0);
    assert_int_equal(peer_up(&old, cluster.socket, OTHER "/9"), 0);
    assert_int_equal(peer_link(&old, addr.cluster, addr.instance), 0);
    const uint64_t start_ms = test_now_ms();
    peer_put(&old, rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0), body, sizeof body);
    /* It gets time to hear of it from the daemon, and the goodbye then. */
    assert_int_equal(peer_await(&old, RBI_RECORD_DISCONNECT, 0, NODE_MS), 1);
    assert_true(test_now_ms() - start_ms >= 400);
    assert_int_equal(old.told, RBI_REASON_LEFT);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    peer_down(&old);
}

/* ---- loops of the application's own -------------------------------------------------------- */

static void test_external_loop(void **state)
{
    (void)state;
    const struct ringbus_addr any = up();
    struct pollfd pollfd = {.fd = ringbus_fd(b.bus), .events = POLLIN};
    CHECK(pollfd.fd >= 0);
    send_any(&any, 10);
    CHECK(ringbus_drain(b.bus) == 0);
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (ringbus_drained(b.bus) == 0) {
        CHECK(test_now_ms() < deadline_ms);
        CHECK(ringbus_poll(a.bus, 100) >= 0);
        CHECK(ringbus_poll(c.bus, 100) >= 0);
        /* The descriptor says by itself when the next look is due. */
        if (poll(&pollfd, 1, NODE_MS) == 1) {
            CHECK(ringbus_poll(b.bus, 100) >= 0);
        }
    }
    assert_int_equal(b.messages, 5);
    assert_int_equal(ringbus_close(b.bus, 0), 0);
    b.bus = NULL;
    down();
}

static void leave_from_callback(struct node *node, const struct ringbus_message *message)
{
    (void)message;
    CHECK(ringbus_drain(node->bus) == 0);
    CHECK(ringbus_close(node->bus, 0) == RINGBUS_E_BUSY);
}

static void test_drain_from_a_callback(void **state)
{
    (void)state;
    const struct ringbus_addr any = up();
    b.on_message = leave_from_callback;
    send_any(&any, 2);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b, &c);
    down();
}

static void undrain_from_a_callback(struct node *node, const struct ringbus_message *message)
{
    (void)message;
    CHECK(ringbus_undrain(node->bus) == RINGBUS_E_CLOSED);
}

static void test_no_way_back_from_close(void **state)
{
    (void)state;
    const struct ringbus_addr any = up();
    b.on_message = undrain_from_a_callback;
    send_any(&any, 2);
    /* Nobody reads a's lane, so a does not acknowledge. */
    assert_int_equal(ringbus_close(b.bus, 50), RINGBUS_E_TIMEOUT);
    assert_int_equal(b.messages, 1);
    b.bus = NULL;
    down();
}

/* A key moves to another instance while its own drains, and back again. */
static void test_keys_move_and_come_back(void **state)
{
    (void)state;
    const struct ringbus_addr any = up();
    uint64_t of_b = 0;
    for (uint64_t key = 1; of_b < 20; key++) {
        const uint64_t before = b.messages;
        CHECK(ringbus_send(a.bus, &any, key, "x", 1, RINGBUS_KEY) == 1);
        RUN_UNTIL(b.messages + c.messages == key, NODE_MS, &b, &c);
        of_b += b.messages - before;
    }
    const uint64_t sent = b.messages + c.messages;
    CHECK(ringbus_drain(b.bus) == 0);
    RUN_UNTIL(ringbus_drained(b.bus) == 1, NODE_MS, &a, &b, &c);
    for (uint64_t key = 1; key <= sent; key++) {
        CHECK(ringbus_send(a.bus, &any, key, "x", 1, RINGBUS_KEY) == 1);
    }
    RUN_UNTIL(c.messages == 2 * sent - of_b, NODE_MS, &a, &b, &c);
    assert_int_equal(b.messages, of_b);
    CHECK(ringbus_undrain(b.bus) == 0);
    /* It hears of it twice, from the daemon and in the lane, in whichever order. */
    RUN_UNTIL(a.events[RINGBUS_EVENT_UPDATED] == 2, NODE_MS, &a, &b, &c);
    CHECK(ringbus_poll(a.bus, 100) >= 0);
    for (uint64_t key = 1; key <= sent; key++) {
        CHECK(ringbus_send(a.bus, &any, key, "x", 1, RINGBUS_KEY) == 1);
    }
    RUN_UNTIL(b.messages == 2 * of_b, NODE_MS, &a, &b, &c);
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senders_acknowledge),
        cmocka_unit_test(test_nobody_new),
        cmocka_unit_test(test_last_one_leaves),
        cmocka_unit_test(test_open_claim),
        cmocka_unit_test(test_waits_for_own_requests),
        cmocka_unit_test(test_waits_for_readers),
        cmocka_unit_test(test_close_at_once),
        cmocka_unit_test(test_sender_that_hangs_or_dies),
        cmocka_unit_test(test_sender_of_an_earlier_version),
        cmocka_unit_test(test_external_loop),
        cmocka_unit_test(test_drain_from_a_callback),
        cmocka_unit_test(test_no_way_back_from_close),
        cmocka_unit_test(test_keys_move_and_come_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
