/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads that outlive their link while both its ends live: whoever reads one reads what was
 * sent, and the sender has its chunks back when that is over (scenarios 5, 19, 39).
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/residue"
#define PEER_1 PEER "/1"
#define SIZE   12000U

static struct cluster cluster;
static struct node node;

enum { WORD_READY, WORD_KEPT, WORD_RELEASE, WORD_BAD, WORD_RECEIVED, WORD_DOWN, WORD_READY_COUNT };

static bool is_whole(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 1; i < size; i++) {
        if (bytes[i] != bytes[0]) {
            return false;
        }
    }
    return size == SIZE;
}

/* ---- a peer that keeps what it gets ---- */

static struct ringbus_kept *kept[4];
static unsigned kept_count;
static unsigned char kept_first[4];

static void keep_it(struct node *at, const struct ringbus_message *message)
{
    if (!is_whole(message->data, message->size)) {
        atomic_fetch_add(&bus_shared[WORD_BAD], 1);
    }
    atomic_fetch_add(&bus_shared[WORD_RECEIVED], 1);
    if (kept_count < 4 && atomic_load(&bus_shared[WORD_RELEASE]) == 0) {
        CHECK(ringbus_keep(at->bus, message, &kept[kept_count]) == 0);
        kept_first[kept_count] = *(const unsigned char *)message->data;
        kept_count++;
    }
}

static void keeper(const struct cluster *at, void *context)
{
    static struct node peer;
    (void)context;
    peer.on_message = keep_it;
    node_open(&peer, at, PEER_1);
    for (;;) {
        struct node *const nodes[] = {&peer};
        nodes_step(nodes, 1);
        atomic_store(&bus_shared[WORD_READY_COUNT], peer.events[RINGBUS_EVENT_READY]);
        atomic_store(&bus_shared[WORD_DOWN], peer.events[RINGBUS_EVENT_DOWN]);
        atomic_store(&bus_shared[WORD_KEPT], kept_count);
        for (unsigned i = 0; i < kept_count; i++) {
            const unsigned char *bytes = kept[i]->data;
            if (!is_whole(kept[i]->data, kept[i]->size) || bytes[0] != kept_first[i]) {
                atomic_fetch_add(&bus_shared[WORD_BAD], 1);
            }
        }
        if (atomic_load(&bus_shared[WORD_RELEASE]) == 1 && kept_count > 0) {
            while (kept_count > 0) {
                CHECK(ringbus_release(peer.bus, kept[--kept_count]) == 0);
            }
            atomic_store(&bus_shared[WORD_RELEASE], 2);
        }
        if (atomic_load(&bus_shared[WORD_RELEASE]) == 3) {
            node_close(&peer);
            return;
        }
    }
}

static void open_node(uint32_t interval_ms)
{
    struct ringbus_options options = node_options(&cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 16384, .count = 8};
    options.ping_interval_ms = interval_ms;
    options.ping_misses = 2;
    node_open_with(&node, &options);
}

static int send_payload(unsigned number)
{
    static unsigned char payload[SIZE];
    memset(payload, (int)number, sizeof payload);
    return ringbus_send(node.bus, &node.peer, 0, payload, sizeof payload, 0);
}

/* Goes round the whole pool, so that a chunk given back too early is overwritten. */
static void use_all_free_chunks(void)
{
    struct ringbus_loan loans[8];
    unsigned count = 0;
    while (count < 8 && ringbus_loan(node.bus, SIZE, &loans[count]) == 0) {
        memset(loans[count].data, 0xee, SIZE);
        count++;
    }
    while (count > 0) {
        CHECK(ringbus_loan_return(node.bus, &loans[--count]) == 0);
    }
}

/* The link ends by our own will; the peer still keeps three of five. */
static void test_kept_payloads_stay_after_untarget(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(keeper, &cluster, NULL);
    open_node(0);
    node_target(&node, PEER, 1, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(send_payload(i), 1);
    }
    RUN_UNTIL(atomic_load(&bus_shared[WORD_KEPT]) == 3, NODE_MS, &node);
    assert_int_equal(ringbus_untarget(node.bus, PEER), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_DOWN]) == 1, NODE_MS, &node);
    for (unsigned i = 0; i < 50; i++) {
        RUN_UNTIL(ringbus_poll(node.bus, 1) >= 0, NODE_MS, &node);
        use_all_free_chunks();
    }
    assert_int_equal(node_pool_used(&node), 3);
    /* A further link of the same two has slots of its own. */
    node_target(&node, PEER, 1, NULL);
    RUN_UNTIL(send_payload(9) == 1, NODE_MS, &node);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_KEPT]) == 4, NODE_MS, &node);
    assert_int_equal(node_pool_used(&node), 4);
    atomic_store(&bus_shared[WORD_RELEASE], 1);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    assert_int_equal(atomic_load(&bus_shared[WORD_BAD]), 0);
    atomic_store(&bus_shared[WORD_RELEASE], 3);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    node_close(&node);
}

static struct {
    unsigned certain;
    unsigned maybe;
} back;

static void count_back(struct node *at, const struct ringbus_event *event)
{
    (void)at;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        CHECK(is_whole(event->message->data, event->message->size));
        back.certain += event->maybe_seen == 0;
        back.maybe += event->maybe_seen != 0;
    }
}

/*
 * The peer is stopped with payloads that it had not read, and given up; then it goes on. What
 * came back as not seen it never sees, and nothing that it sees has been sent again.
 */
static void test_stopped_peer_sees_nothing_that_came_back(void **state)
{
    (void)state;
    bus_shared_reset();
    atomic_store(&bus_shared[WORD_RELEASE], 2); /* it keeps nothing */
    memset(&back, 0, sizeof back);
    node.on_event = count_back;
    const pid_t pid = child_start(keeper, &cluster, NULL);
    open_node(20);
    node_target(&node, PEER, 1, NULL);
    assert_int_equal(send_payload(1), 1);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_RECEIVED]) == 1, NODE_MS, &node);
    CHECK(kill(pid, SIGSTOP) == 0);
    for (unsigned i = 2; i <= 6; i++) {
        assert_int_equal(send_payload(i), 1);
    }
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_SILENT);
    assert_int_equal(back.certain + back.maybe, 5);
    assert_true(back.maybe <= 1);
    use_all_free_chunks();
    assert_true(node_pool_used(&node) > 0);
    CHECK(kill(pid, SIGCONT) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &node);
    assert_true(atomic_load(&bus_shared[WORD_RECEIVED]) <= 1 + back.maybe);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    assert_int_equal(atomic_load(&bus_shared[WORD_BAD]), 0);
    atomic_store(&bus_shared[WORD_RELEASE], 3);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    node_close(&node);
    node.on_event = NULL;
}

/* A peer that dies with all that it kept gives it back at once. */
static void test_dead_peer_holds_nothing(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(keeper, &cluster, NULL);
    open_node(0);
    node_target(&node, PEER, 1, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(send_payload(i), 1);
    }
    RUN_UNTIL(atomic_load(&bus_shared[WORD_KEPT]) == 3, NODE_MS, &node);
    assert_int_equal(ringbus_untarget(node.bus, PEER), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_DOWN]) == 1, NODE_MS, &node);
    assert_int_equal(node_pool_used(&node), 3);
    const unsigned fds = bus_fd_count();
    child_kill(pid);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    assert_int_equal(bus_fd_count(), fds - 1); /* the bell of the residue */
    node_close(&node);
}

/* A peer cannot pin more and more of a pool by coming back for another link. */
static void test_residues_of_one_peer_are_limited(void **state)
{
    (void)state;
    unsigned links = 0;
    bus_shared_reset();
    const pid_t pid = child_start(keeper, &cluster, NULL);
    open_node(0);
    for (unsigned i = 0; i < 4; i++) {
        node_target(&node, PEER, 1, NULL);
        links++;
        assert_int_equal(send_payload(i + 1), 1);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_KEPT]) == links, NODE_MS, &node);
        assert_int_equal(ringbus_untarget(node.bus, PEER), 0);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_DOWN]) == links, NODE_MS, &node);
    }
    struct ringbus_addr addr;
    assert_int_equal(ringbus_target(node.bus, PEER, NULL, &addr), 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_LINK_FAILED] >= 1, NODE_MS, &node);
    assert_int_equal(node.error, RINGBUS_E_QUOTA);
    atomic_store(&bus_shared[WORD_RELEASE], 1);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 5, NODE_MS, &node);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    assert_int_equal(atomic_load(&bus_shared[WORD_BAD]), 0);
    atomic_store(&bus_shared[WORD_RELEASE], 3);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    node_close(&node);
}

static int setup(void **state)
{
    (void)state;
    bus_shared_reset();
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_payloads_stay_after_untarget),
        cmocka_unit_test(test_stopped_peer_sees_nothing_that_came_back),
        cmocka_unit_test(test_dead_peer_holds_nothing),
        cmocka_unit_test(test_residues_of_one_peer_are_limited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
