/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of links and messages when an end leaves in order, or comes back in another life. */
#include "process/client_death.h"

/* ---- lives ----------------------------------------------------------------------------------- */

static struct {
    struct ringbus_addr up;   /* of the last READY */
    struct ringbus_addr down; /* of the last DOWN */
    unsigned order_wrong;
    bool is_up;
} lives;

static void on_life(struct node *at, const struct ringbus_event *event)
{
    (void)at;
    if (event->type == RINGBUS_EVENT_READY) {
        lives.order_wrong += lives.is_up;
        lives.order_wrong += event->addr.incarnation <= lives.up.incarnation;
        lives.up = event->addr;
        lives.is_up = true;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        lives.order_wrong += !lives.is_up || event->addr.incarnation != lives.up.incarnation;
        lives.down = event->addr;
        lives.is_up = false;
    }
}

static void test_restart_under_the_same_address(void **state)
{
    (void)state;
    node.on_event = on_life;
    memset(&lives, 0, sizeof lives);
    node_open(&node, &cluster, NULL);
    assert_int_equal(ringbus_target(node.bus, PEER_1, NULL, NULL), 0);
    for (unsigned life = 1; life <= 10; life++) {
        struct node peer = {0};
        bus_shared_reset();
        const pid_t pid = life % 2 ? child_start(never_read, &cluster, NULL) : 0;
        if (pid == 0) {
            node_open(&peer, &cluster, PEER_1);
        }
        RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == life && lives.is_up, NODE_MS, &node, &peer);
        struct ringbus_addr to = lives.up;
        assert_int_equal(ringbus_send(node.bus, &to, 0, "x", 1, 0), 1);
        to.incarnation = 0;
        assert_int_equal(ringbus_send(node.bus, &to, 0, "x", 1, 0), 1);
        /* A life that is not, or is not any more. */
        to.incarnation = lives.up.incarnation + 1;
        assert_int_equal(ringbus_send(node.bus, &to, 0, "x", 1, 0), RINGBUS_E_PEER_GONE);
        if (life > 1) {
            assert_int_equal(ringbus_send(node.bus, &lives.down, 0, "x", 1, 0),
                             RINGBUS_E_PEER_GONE);
        }
        if (pid == 0) {
            node_close(&peer);
            RUN_UNTIL(!lives.is_up, NODE_MS, &node);
            assert_int_equal(node.reason, RINGBUS_REASON_LEFT);
        } else {
            child_kill(pid); /* the next is started before this death is noticed */
        }
    }
    assert_int_equal(lives.order_wrong, 0);
    node_close(&node);
    node.on_event = NULL;
}

/* ---- leaving in order ------------------------------------------------------------------------ */

static void test_close_with_drain(void **state)
{
    (void)state;
    struct node peer = {.on_message = on_numbered};
    static unsigned char payload[12000];
    memset(&got, 0, sizeof got);
    got.kept_count = 64; /* none */
    node_open(&peer, &cluster, PEER_1);
    node_open(&node, &cluster, NULL);
    node_target(&node, PEER, 1, &peer);
    uint64_t sent = 0;
    for (; sent < 100; sent++) {
        payload_of(payload, size_of(sent), sent);
        assert_int_equal(ringbus_send(node.bus, &node.peer, 0, payload, size_of(sent), 0), 1);
    }
    /* Nobody reads: not everything was consumed. What lies there is delivered all the same. */
    assert_int_equal(ringbus_close(node.bus, 30), RINGBUS_E_TIMEOUT);
    RUN_UNTIL(peer.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &peer);
    assert_int_equal(peer.reason, RINGBUS_REASON_LEFT);
    assert_int_equal(got.next, sent);
    assert_false(got.after_down);
    node_close(&peer);
}

static void read_slowly(const struct cluster *at, void *context)
{
    static struct node peer;
    (void)context;
    node_open(&peer, at, PEER_1);
    atomic_store(&bus_shared[WORD_READY], 1);
    while (peer.events[RINGBUS_EVENT_DOWN] == 0) {
        CHECK(ringbus_poll(peer.bus, 1) >= 0);
        CHECK(ringbus_wait(peer.bus, 100) >= 0);
    }
    CHECK(peer.reason == RINGBUS_REASON_LEFT);
    atomic_store(&bus_shared[WORD_RECEIVED], peer.messages);
    node_close(&peer);
}

static void test_close_with_drain_waits_for_the_reader(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(read_slowly, &cluster, NULL);
    node_open(&node, &cluster, NULL);
    node_target(&node, PEER, 1, NULL);
    uint64_t sent = 0;
    while (sent < 5000) {
        const int r = ringbus_send(node.bus, &node.peer, 0, "0123456789", 10, RINGBUS_MORE);
        sent += r == 1;
        if (r != 1) {
            assert_int_equal(r, RINGBUS_E_FULL);
            assert_int_equal(ringbus_wait(node.bus, 5000), 1);
            assert_true(ringbus_poll(node.bus, 100) >= 0);
        }
    }
    assert_int_equal(ringbus_close(node.bus, 10000), 0);
    assert_int_equal(child_wait(pid, 5000), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_RECEIVED]), sent);
}

/* What was read before leaving was read, whether or not that had been said. */
static void test_close_after_reading_gives_nothing_back(void **state)
{
    (void)state;
    struct node peer = {0};
    node_open(&peer, &cluster, PEER_1);
    node_open(&node, &cluster, NULL);
    node_target(&node, PEER, 1, &peer);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(ringbus_send(node.bus, &node.peer, 0, "x", 1, 0), 1);
    }
    while (peer.messages < 10) {
        assert_true(ringbus_poll(peer.bus, 100) >= 0);
    }
    node_close(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_LEFT);
    assert_int_equal(node.events[RINGBUS_EVENT_UNDELIVERED], 0);
    node_close(&node);
}

static void test_untarget(void **state)
{
    (void)state;
    struct node peer = {0};
    struct ringbus_addr addr;
    node_open(&peer, &cluster, PEER_1);
    node_open(&node, &cluster, NULL);
    assert_int_equal(ringbus_untarget(node.bus, PEER), RINGBUS_E_NOT_TARGET);
    for (unsigned round = 1; round <= 5; round++) {
        addr = node_target(&node, PEER, 1, &peer);
        RUN_UNTIL(peer.events[RINGBUS_EVENT_READY] == round, NODE_MS, &node, &peer);
        assert_int_equal(ringbus_send(node.bus, &addr, 0, "x", 1, 0), 1);
        assert_int_equal(ringbus_untarget(node.bus, PEER), 0);
        assert_int_equal(ringbus_untarget(node.bus, PEER), RINGBUS_E_NOT_TARGET);
        assert_int_equal(ringbus_send(node.bus, &addr, 0, "x", 1, 0), RINGBUS_E_NOT_TARGET);
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == round &&
                      peer.events[RINGBUS_EVENT_DOWN] == round,
                  NODE_MS, &node, &peer);
        assert_int_equal(node.reason, RINGBUS_REASON_UNTARGETED);
        assert_int_equal(peer.reason, RINGBUS_REASON_UNTARGETED);
        assert_int_equal(peer.messages, round);
    }
    node_close(&node);
    node_close(&peer);
}

/* The other side wants the link too: ending our interest leaves it as it is. */
static void test_untarget_leaves_the_peers_use(void **state)
{
    (void)state;
    struct node peer = {0};
    struct ringbus_addr any;
    struct ringbus_options options = node_options(&cluster, PEER_1);
    options.ping_interval_ms = 50; /* a use that ended without a word is known by its silence */
    node_open_with(&peer, &options);
    options.path = PEER "/2";
    node_open_with(&node, &options);
    node_target(&node, PEER_1, 1, &peer);
    assert_int_equal(ringbus_target(peer.bus, PEER "/2", NULL, &any), 0);
    any.instance = RINGBUS_ANY;
    /* Dispatched to as soon as the peer has asked for the link itself: READY lies before. */
    RUN_UNTIL(ringbus_send(peer.bus, &any, 0, "1", 1, 0) == 1, NODE_MS, &node, &peer);
    RUN_UNTIL(node.messages == 1, NODE_MS, &node, &peer);
    assert_int_equal(ringbus_untarget(node.bus, PEER_1), 0);
    assert_int_equal(ringbus_send(peer.bus, &peer.peer, 0, "2", 1, 0), 1);
    RUN_UNTIL(node.messages == 2, NODE_MS, &node, &peer);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(ringbus_untarget(peer.bus, PEER "/2"), 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1 && peer.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS,
              &node, &peer);
    node_close(&node);
    node_close(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart_under_the_same_address),
        cmocka_unit_test(test_close_with_drain),
        cmocka_unit_test(test_close_with_drain_waits_for_the_reader),
        cmocka_unit_test(test_close_after_reading_gives_nothing_back),
        cmocka_unit_test(test_untarget),
        cmocka_unit_test(test_untarget_leaves_the_peers_use),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
