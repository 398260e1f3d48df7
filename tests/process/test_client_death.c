/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of messages, kept payloads and claims when one of the two ends dies. */
#include "process/client_death.h"

/* ---- a receiver dies ------------------------------------------------------------------------- */

static struct {
    uint64_t next;
    uint64_t certain;
    bool after_down;
} back;

static void on_undelivered(struct node *at, const struct ringbus_event *event)
{
    if (event->type != RINGBUS_EVENT_UNDELIVERED) {
        return;
    }
    CHECK(event->message != NULL);
    CHECK(event->message->size == size_of(back.next));
    CHECK(payload_is(event->message->data, event->message->size, back.next));
    CHECK(event->addr.instance == 1);
    CHECK(event->reason == RINGBUS_REASON_CRASHED);
    back.after_down |= at->events[RINGBUS_EVENT_DOWN] > 0;
    back.certain += !event->maybe_seen;
    back.next++;
}

static void test_killed_receiver_gives_back_what_it_had_not_read(void **state)
{
    (void)state;
    static unsigned char payload[12000];
    bus_shared_reset();
    memset(&back, 0, sizeof back);
    const pid_t pid = child_start(never_read, &cluster, NULL);
    node.on_event = on_undelivered;
    node_open(&node, &cluster, NULL);
    node_target(&node, PEER, 1, NULL);
    const struct ringbus_addr to = node.peer;
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == 1, NODE_MS, &node);
    uint64_t sent = 0;
    for (;;) {
        payload_of(payload, size_of(sent), sent);
        const int r = ringbus_send(node.bus, &to, 0, payload, size_of(sent), 0);
        if (r != 1) {
            assert_true(r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK);
            break;
        }
        sent++;
    }
    assert_true(node_pool_used(&node) > 0);
    child_kill(pid);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_CRASHED);
    assert_int_equal(back.next, sent);
    assert_int_equal(node_stats(&node).undelivered, sent);
    assert_false(back.after_down);
    assert_int_equal(back.certain, sent);
    assert_int_equal(node_pool_used(&node), 0);
    assert_true(ringbus_send(node.bus, &to, 0, "", 0, 0) < 0);
    node_close(&node);
    node.on_event = NULL;
}

/* Reads the first of many, in the middle of the lane, and dies in a handler. */
#define LONG_COUNT 1400U
#define LONG_SEEN  1000U

static void count_and_die(struct node *at, const struct ringbus_message *message)
{
    (void)message;
    atomic_store(&bus_shared[WORD_RECEIVED], at->messages);
    if (at->messages == LONG_SEEN) {
        (void)kill(getpid(), SIGKILL);
    }
}

static void read_some_and_die(const struct cluster *at, void *context)
{
    static struct node peer = {.on_message = count_and_die};
    (void)context;
    node_open(&peer, at, PEER_1);
    RUN_UNTIL(peer.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &peer);
    /* Quick polls in a row: from then on many of them pass between two looks at the clock. */
    for (unsigned i = 0; i < 20000; i++) {
        CHECK(ringbus_poll(peer.bus, 1) >= 0);
    }
    atomic_store(&bus_shared[WORD_READY], 1);
    while (atomic_load(&bus_shared[WORD_GO]) == 0) {
        test_sleep_ms(1);
    }
    for (;;) {
        CHECK(ringbus_poll(peer.bus, 10000) >= 0);
    }
}

static struct {
    uint64_t certain;
    uint64_t doubtful;
    uint64_t next;
} unseen;

static void on_numbered_back(struct node *at, const struct ringbus_event *event)
{
    uint64_t number = 0;
    (void)at;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        CHECK(event->message->size == sizeof number);
        memcpy(&number, event->message->data, sizeof number);
        CHECK(number == unseen.next);
        unseen.next++;
        unseen.certain += event->maybe_seen == 0;
        unseen.doubtful += event->maybe_seen != 0;
    }
}

static void test_the_one_in_the_handler_is_in_doubt(void **state)
{
    (void)state;
    bus_shared_reset();
    memset(&unseen, 0, sizeof unseen);
    unseen.next = LONG_SEEN - 1;
    const pid_t pid = child_start(read_some_and_die, &cluster, NULL);
    struct ringbus_options options = node_options(&cluster, NULL);
    options.lane_bytes = 1U << 20;
    node.on_event = on_numbered_back;
    node_open_with(&node, &options);
    node_target(&node, PEER, 1, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == 1, NODE_MS, &node);
    for (uint64_t sent = 0; sent < LONG_COUNT; sent++) {
        assert_int_equal(ringbus_send(node.bus, &node.peer, 0, &sent, sizeof sent, 0), 1);
    }
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(child_wait(pid, NODE_MS), 128 + SIGKILL);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(atomic_load(&bus_shared[WORD_RECEIVED]), LONG_SEEN);
    assert_int_equal(unseen.doubtful, 1);
    assert_int_equal(unseen.certain, LONG_COUNT - LONG_SEEN);
    node_close(&node);
    node.on_event = NULL;
}

/* ---- chunks -------------------------------------------------------------------------------- */

#define HOLDERS     8U
#define BROADCASTS  6U
#define CHUNK_BYTES 20000U

static void keep_it(struct node *at, const struct ringbus_message *message)
{
    struct ringbus_kept *kept = NULL;
    CHECK(ringbus_keep(at->bus, message, &kept) == 0);
}

/* Keeps the first two payloads, and reads nothing more. */
static void keep_two(const struct cluster *at, void *context)
{
    static struct node peer = {.on_message = keep_it};
    node_open(&peer, at, context);
    while (peer.messages < 2) {
        CHECK(ringbus_poll(peer.bus, 1) >= 0);
        CHECK(ringbus_wait(peer.bus, 1000) >= 0);
    }
    atomic_fetch_add(&bus_shared[WORD_READY], 1);
    for (;;) {
        test_sleep_ms(1000);
    }
}

/* Chunks come back exactly, one death after the other: kept, unread, to one and to all. */
static void test_chunks_come_back_with_each_death(void **state)
{
    (void)state;
    static char paths[HOLDERS][48];
    pid_t pids[HOLDERS];
    bus_shared_reset();
    for (unsigned i = 0; i < HOLDERS; i++) {
        (void)snprintf(paths[i], sizeof paths[i], PEER "/%u", i + 1);
        pids[i] = child_start(keep_two, &cluster, paths[i]);
    }
    struct ringbus_options options = node_options(&cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){CHUNK_BYTES, 64};
    node_open_with(&node, &options);
    struct ringbus_addr to = node_target(&node, PEER, HOLDERS, NULL);
    static unsigned char payload[CHUNK_BYTES];
    to.instance = RINGBUS_ALL;
    for (unsigned k = 0; k < BROADCASTS; k++) {
        assert_int_equal(ringbus_send(node.bus, &to, 0, payload, sizeof payload, 0), HOLDERS);
    }
    for (unsigned i = 0; i < HOLDERS; i++) {
        to.instance = (int32_t)i + 1;
        assert_int_equal(ringbus_send(node.bus, &to, 0, payload, sizeof payload, 0), 1);
    }
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == HOLDERS, NODE_MS, &node);
    assert_int_equal(node_pool_used(&node), BROADCASTS + HOLDERS);
    for (unsigned i = 0; i < HOLDERS; i++) {
        child_kill(pids[i]);
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == i + 1, NODE_MS, &node);
        assert_int_equal(node.events[RINGBUS_EVENT_UNDELIVERED], (i + 1) * (BROADCASTS - 2 + 1));
        assert_true(ringbus_poll(node.bus, 1) >= 0);
        const bool last = i + 1 == HOLDERS;
        assert_int_equal(node_pool_used(&node), last ? 0 : BROADCASTS + HOLDERS - i - 1);
    }
    node_close(&node);
}

/* ---- a sender dies --------------------------------------------------------------------------- */

static void send_and_die(const struct cluster *at, void *context)
{
    static struct node peer;
    static unsigned char payload[12000];
    (void)context;
    node_open(&peer, at, NULL);
    node_target(&peer, PEER, 1, NULL);
    const struct ringbus_addr to = peer.peer;
    uint64_t sent = 0;
    for (;;) {
        payload_of(payload, size_of(sent), sent);
        const int r = ringbus_send(peer.bus, &to, 0, payload, size_of(sent), 0);
        if (r != 1) {
            break;
        }
        sent++;
        atomic_store(&bus_shared[WORD_SENT], sent);
    }
    atomic_store(&bus_shared[WORD_READY], 1);
    (void)kill(getpid(), SIGKILL);
}

static void test_killed_sender_is_read_to_its_end(void **state)
{
    (void)state;
    bus_shared_reset();
    memset(&got, 0, sizeof got);
    const unsigned maps = bus_map_count();
    const unsigned fds = bus_fd_count();
    node.on_message = on_numbered;
    node_open(&node, &cluster, PEER_1);
    const pid_t pid = child_start(send_and_die, &cluster, NULL);
    /* READY only: nothing is read while the sender lives. */
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &node);
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (atomic_load(&bus_shared[WORD_READY]) == 0) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(1);
    }
    assert_int_equal(child_wait(pid, 5000), 128 + SIGKILL);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_CRASHED);
    assert_int_equal(got.next, atomic_load(&bus_shared[WORD_SENT]));
    assert_false(got.after_down);
    /* Kept payloads outlive their sender. */
    assert_true(got.kept_count > 4);
    for (unsigned i = 0; i < got.kept_count; i++) {
        assert_true(payload_is(got.kept[i]->data, got.kept[i]->size, got.kept_number[i]));
        assert_int_equal(got.kept[i]->size, size_of(got.kept_number[i]));
        assert_int_equal(ringbus_release(node.bus, got.kept[i]), 0);
    }
    node_close(&node);
    node.on_message = NULL;
    assert_int_equal(bus_map_count(), maps);
    assert_int_equal(bus_fd_count(), fds);
}

/* ---- claims, loans --------------------------------------------------------------------------- */

static void test_claims_across_death(void **state)
{
    (void)state;
    struct ringbus_claim small;
    struct ringbus_claim large;
    for (unsigned round = 0; round < 3; round++) {
        bus_shared_reset();
        const pid_t pid = child_start(never_read, &cluster, NULL);
        node_open(&node, &cluster, NULL);
        node_target(&node, PEER, 1, NULL);
        const struct ringbus_addr to = node.peer;
        assert_int_equal(ringbus_claim(node.bus, &to, 0, 20000, 0, &large), 0);
        assert_int_equal(ringbus_claim(node.bus, &to, 0, 100, 0, &small), 0);
        assert_int_equal(ringbus_send(node.bus, &to, 0, "", 0, 0), RINGBUS_E_BUSY);
        child_kill(pid);
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
        for (unsigned i = 0; i < 10; i++) {
            assert_true(ringbus_poll(node.bus, 10) >= 0);
        }
        /* The room is the caller's until the claim ends, whatever became of the receiver. */
        memset(small.data, 1, small.size);
        memset(large.data, 1, large.size);
        if (round == 0) {
            assert_int_equal(ringbus_commit(node.bus, &small, 10), RINGBUS_E_PEER_GONE);
            assert_int_equal(ringbus_commit(node.bus, &large, 10), RINGBUS_E_PEER_GONE);
            assert_int_equal(ringbus_commit(node.bus, &small, 10), RINGBUS_E_CLOSED);
        } else if (round == 1) {
            assert_int_equal(ringbus_abort(node.bus, &small), 0);
            assert_int_equal(ringbus_abort(node.bus, &large), 0);
            assert_int_equal(ringbus_abort(node.bus, &small), RINGBUS_E_CLOSED);
        } /* else close with both open */
        if (round < 2) {
            assert_true(ringbus_poll(node.bus, 10) >= 0);
            assert_int_equal(node_pool_used(&node), 0);
            assert_int_equal(bus_map_count() > 0, 1);
        }
        node_close(&node);
        assert_int_equal(bus_map_count(), 0);
    }
}

/* The next life of the peer gets its own link while a claim on the old one is open. */
static void test_claim_on_an_old_life(void **state)
{
    (void)state;
    struct ringbus_claim claim;
    struct ringbus_claim next;
    bus_shared_reset();
    pid_t pid = child_start(never_read, &cluster, NULL);
    node_open(&node, &cluster, NULL);
    node_target(&node, PEER, 1, NULL);
    assert_int_equal(ringbus_claim(node.bus, &node.peer, 0, 100, 0, &claim), 0);
    child_kill(pid);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    pid = child_start(never_read, &cluster, NULL);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &node);
    assert_int_equal(ringbus_claim(node.bus, &node.peer, 0, 100, 0, &next), 0);
    memset(claim.data, 1, claim.size);
    assert_int_equal(ringbus_commit(node.bus, &claim, 100), RINGBUS_E_PEER_GONE);
    assert_int_equal(ringbus_commit(node.bus, &next, 100), 1);
    child_kill(pid);
    node_close(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_receiver_gives_back_what_it_had_not_read),
        cmocka_unit_test(test_the_one_in_the_handler_is_in_doubt),
        cmocka_unit_test(test_chunks_come_back_with_each_death),
        cmocka_unit_test(test_killed_sender_is_read_to_its_end),
        cmocka_unit_test(test_claims_across_death),
        cmocka_unit_test(test_claim_on_an_old_life),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
