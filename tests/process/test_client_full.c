/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a full lane means. Scenario 56: each message that is refused is refused to its sender,
 * counted there, and every other one arrives. Scenario 61: PING, READY and DISCONNECT are
 * not held up by data that nobody reads, and a receiver that is only slow is not taken for
 * a dead one.
 */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SINK     "/game/eu/pc/w1/core/sink"
#define SINK_1   SINK "/1"
#define SOURCE   "/game/eu/pc/w1/core/source"
#define SOURCE_1 SOURCE "/1"

#define LANE_BYTES  16384U
#define REFS        64U
#define LARGE_BYTES 4096U /* over the inline limit: goes by reference */
#define LONG_MS     60000U

static struct cluster cluster;

/* Shared words. */
enum {
    WORD_READY,    /* the receiver is open */
    WORD_READ,     /* messages that it has had */
    WORD_GO,       /* what it is told: see struct receiver */
    WORD_ENDED,    /* it has seen the end of the link; one more than the reason */
    WORD_READY_UP, /* READY events that it has had */
    WORD_FAILED,   /* DOWN and LINK_FAILED events before it was told to stop */
};

/* ---- receiver ------------------------------------------------------------------------------- */

/** How the receiver reads; what it does beside is told by WORD_GO. */
struct receiver {
    uint32_t ping_ms;
    unsigned rest_ms; /* between two messages; 0: reads as fast as it can */
};
enum { GO_READ = 0, GO_REST = 1, GO_TARGET = 2, GO_UNTARGET = 3, GO_CLOSE = 4 };

static void receive_one(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number == node->messages - 1); /* none is missing, whatever was refused behind it */
    if (message->kind == RINGBUS_KIND_REQUEST) {
        int r = ringbus_reply(node->bus, &message->reply_to, &number, sizeof number, 0);
        CHECK(r == 1);
    }
    atomic_store(&bus_shared[WORD_READ], node->messages);
}

static void receive_event(struct node *node, const struct ringbus_event *event)
{
    atomic_store(&bus_shared[WORD_READY_UP], node->events[RINGBUS_EVENT_READY]);
    if (event->type == RINGBUS_EVENT_DOWN || event->type == RINGBUS_EVENT_LINK_FAILED) {
        atomic_fetch_add(&bus_shared[WORD_FAILED], 1);
        atomic_store(&bus_shared[WORD_ENDED], (uint64_t)event->reason + 1);
    }
}

static void receive(const struct cluster *at, void *context)
{
    const struct receiver *self = context;
    static struct node node = {.on_message = receive_one, .on_event = receive_event};
    struct ringbus_options options = node_options(at, SINK_1);
    options.ping_interval_ms = self->ping_ms;
    options.refs_per_link = REFS; /* the receiver's word counts: it must take the returns */
    node_open_with(&node, &options);
    atomic_store(&bus_shared[WORD_READY], 1);
    uint64_t done = GO_READ;
    while (done != GO_CLOSE && atomic_load(&bus_shared[WORD_ENDED]) == 0) {
        const uint64_t go = atomic_load(&bus_shared[WORD_GO]);
        if (go == GO_TARGET && done != go) {
            CHECK(ringbus_target(node.bus, SOURCE, NULL, NULL) == 0);
        } else if (go == GO_UNTARGET && done != go) {
            CHECK(ringbus_untarget(node.bus, SOURCE) == 0);
        }
        done = go;
        if (go == GO_REST) {
            test_sleep_ms(1); /* alive, but does not call us */
            continue;
        }
        const int n = ringbus_poll(node.bus, self->rest_ms > 0 ? 1 : 100);
        CHECK(n >= 0);
        if (n == 0) {
            CHECK(ringbus_wait(node.bus, 5) >= 0);
        } else if (self->rest_ms > 0) {
            test_sleep_ms(self->rest_ms);
        }
    }
    node_close(&node);
}

static pid_t start_receiver(struct receiver *receiver)
{
    bus_shared_reset();
    const pid_t pid = child_start(receive, &cluster, receiver);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == 1, NODE_MS, NULL);
    return pid;
}

static void open_sender(struct node *node, uint32_t ping_ms)
{
    struct ringbus_options options = node_options(&cluster, SOURCE_1);
    options.lane_bytes = LANE_BYTES;
    options.inline_max = 512;
    options.ping_interval_ms = ping_ms;
    options.ping_misses = 3;
    options.pool[0] = (struct ringbus_pool_class){LARGE_BYTES, 2 * REFS};
    node_open_with(node, &options);
    node_target(node, SINK, 1, NULL);
}

/* ---- 56: every refusal is told -------------------------------------------------------------- */

struct offer {
    struct node *node;
    uint64_t number; /* of the message: how many were accepted so far */
};

static unsigned char *payload_of(const struct offer *offer)
{
    static unsigned char payload[LARGE_BYTES];
    memcpy(payload, &offer->number, sizeof offer->number);
    return payload;
}

static int offer_inline(const struct offer *offer)
{
    return ringbus_send(offer->node->bus, &offer->node->peer, 0, payload_of(offer), 48, 0);
}

static int offer_more(const struct offer *offer)
{
    return ringbus_send(offer->node->bus, &offer->node->peer, 0, payload_of(offer), 48,
                        RINGBUS_MORE);
}

static int offer_large(const struct offer *offer)
{
    return ringbus_send(offer->node->bus, &offer->node->peer, 0, payload_of(offer), LARGE_BYTES, 0);
}

static int offer_loan(const struct offer *offer)
{
    struct ringbus_loan loan;
    CHECK(ringbus_loan(offer->node->bus, LARGE_BYTES, &loan) == 0);
    memcpy(loan.data, &offer->number, sizeof offer->number);
    const int r = ringbus_send_loan(offer->node->bus, &offer->node->peer, 0, &loan, LARGE_BYTES, 0);
    CHECK(ringbus_loan_return(offer->node->bus, &loan) == 0);
    return r;
}

static int offer_claim(const struct offer *offer)
{
    struct ringbus_claim claim;
    const int r = ringbus_claim(offer->node->bus, &offer->node->peer, 0, 48, 0, &claim);
    if (r != 0) {
        return r;
    }
    memcpy(claim.data, &offer->number, sizeof offer->number);
    return ringbus_commit(offer->node->bus, &claim, 48);
}

static int offer_request(const struct offer *offer)
{
    return ringbus_request(offer->node->bus, &offer->node->peer, 0, payload_of(offer), 48, 0,
                           LONG_MS, node_on_result, offer->node);
}

/* To all of one: the refusal shows in the number of those that have it, which is 0. */
static int offer_to_all(const struct offer *offer)
{
    struct ringbus_addr all = offer->node->peer;
    all.instance = RINGBUS_ALL;
    all.incarnation = 0;
    const int r = ringbus_send(offer->node->bus, &all, 0, payload_of(offer), 48, 0);
    return r == 0 ? RINGBUS_E_FULL : r;
}

static void stop(pid_t pid)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    RUN_UNTIL(machine_state(pid) == 'T', NODE_MS, NULL);
}

static void
offer_to_a_stopped_one(const char *name, int (*offer_one)(const struct offer *), uint64_t capacity)
{
    struct receiver receiver = {.ping_ms = LONG_MS};
    struct node node = {0};
    const pid_t pid = start_receiver(&receiver);
    open_sender(&node, LONG_MS);
    stop(pid);
    const struct ringbus_stats before = node_stats(&node);
    struct offer offer = {.node = &node};
    uint64_t refused = 0;
    for (uint64_t i = 0; i < 10 * capacity; i++) {
        const int r = offer_one(&offer);
        CHECK(r == 1 || r == RINGBUS_E_FULL);
        offer.number += r == 1;
        refused += r != 1;
        /* What fits is taken, and once it does not fit nothing gets past what waits. */
        CHECK(refused == 0 || r != 1);
    }
    const struct ringbus_stats full = node_stats(&node);
    print_message("%s: %llu offered, %llu accepted, %llu refused\n", name,
                  (unsigned long long)(10 * capacity), (unsigned long long)offer.number,
                  (unsigned long long)refused);
    assert_in_range(offer.number, capacity / 2, capacity);
    assert_int_equal(full.full - before.full, 10 * capacity - offer.number);
    assert_int_equal(full.sent - before.sent, offer.number);
    assert_int_equal(full.no_chunk + full.no_peer + full.too_big,
                     before.no_chunk + before.no_peer + before.too_big);
    assert_int_equal(kill(pid, SIGCONT), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READ]) == offer.number, NODE_MS, &node);
    if (offer_one == offer_request) {
        RUN_UNTIL(node.replies[RINGBUS_REPLIED] == offer.number, NODE_MS, &node);
    }
    /* There is room again, and the count goes on without a gap. */
    assert_int_equal(offer_one(&offer), 1);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READ]) == offer.number + 1, NODE_MS, &node);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    /* The one that was accepted last is answered as well; none of the refused ever is. */
    if (offer_one == offer_request) {
        RUN_UNTIL(node.replies[RINGBUS_REPLIED] == offer.number + 1, NODE_MS, &node);
    }
    assert_int_equal(node.replies[RINGBUS_FAILED] + node.replies[RINGBUS_UNKNOWN] +
                         node.replies[RINGBUS_NOT_SENT],
                     0);
    node_close(&node);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
}

#define LANE_RECORDS (LANE_BYTES / 64)

static void test_refusals_of_small_messages_are_counted(void **state)
{
    (void)state;
    offer_to_a_stopped_one("inline", offer_inline, LANE_RECORDS);
    offer_to_a_stopped_one("in bursts", offer_more, LANE_RECORDS);
    offer_to_a_stopped_one("claimed", offer_claim, LANE_RECORDS);
    offer_to_a_stopped_one("to all", offer_to_all, LANE_RECORDS);
}

static void test_refusals_of_large_messages_are_counted(void **state)
{
    (void)state;
    offer_to_a_stopped_one("copied into chunks", offer_large, REFS);
    offer_to_a_stopped_one("loans", offer_loan, REFS);
}

static void test_refusals_of_requests_are_counted(void **state)
{
    (void)state;
    offer_to_a_stopped_one("requests", offer_request, LANE_RECORDS);
}

/* ---- 61: control records beside a full lane ------------------------------------------------- */

#define PING_MS  50U
#define BOUND_MS (PING_MS * 3U)
/* Reading a full lane at this pace takes five times the bound, and more than READY is given. */
#define REST_MS 10U

/* Keeps the lane full for so long. @return messages accepted so far */
static void keep_full(struct node *node, struct offer *offer, unsigned ms)
{
    const uint64_t end_ms = test_now_ms() + ms;
    offer->node = node;
    while (test_now_ms() < end_ms && node->events[RINGBUS_EVENT_DOWN] == 0) {
        int r = offer_inline(offer);
        while (r == 1) {
            offer->number++;
            r = offer_inline(offer);
        }
        CHECK(r == RINGBUS_E_FULL || r == RINGBUS_E_PEER_GONE || r == RINGBUS_E_NOT_READY ||
              r == RINGBUS_E_NO_INSTANCE);
        nodes_step(&node, 1);
    }
}

static void finish(struct node *node, pid_t pid)
{
    node_close(node);
    assert_int_equal(child_wait(pid, LONG_MS), 0);
}

static void test_slow_reader_answers_ping(void **state)
{
    (void)state;
    struct receiver receiver = {.ping_ms = LONG_MS, .rest_ms = REST_MS};
    struct node node = {0};
    struct offer offer = {0};
    const pid_t pid = start_receiver(&receiver);
    open_sender(&node, PING_MS);
    keep_full(&node, &offer, FULL_OR(10000, 1500));
    if (node.events[RINGBUS_EVENT_DOWN] > 0) {
        print_error("%llu read of %llu, taken for dead: reason %d\n",
                    (unsigned long long)atomic_load(&bus_shared[WORD_READ]),
                    (unsigned long long)offer.number, (int)node.reason);
    }
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_FAILED]), 0);
    finish(&node, pid);
}

static void test_ready_through_a_full_lane(void **state)
{
    (void)state;
    struct receiver receiver = {.ping_ms = PING_MS, .rest_ms = REST_MS};
    struct node node = {0};
    struct offer offer = {0};
    const pid_t pid = start_receiver(&receiver);
    open_sender(&node, LONG_MS);
    keep_full(&node, &offer, 200);
    /* Its READY meets an empty lane, the answer a full one. */
    atomic_store(&bus_shared[WORD_GO], GO_TARGET);
    keep_full(&node, &offer, FULL_OR(10000, 4000));
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_FAILED]), 0);
    /* It holds without our interest now: the answer has come. */
    assert_int_equal(ringbus_untarget(node.bus, SINK), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READ]) == offer.number, LONG_MS, &node);
    assert_int_equal(offer_inline(&offer), 1);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READ]) == offer.number + 1, NODE_MS, &node);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    finish(&node, pid);
}

static void test_one_that_does_not_read_is_found_within_the_bound(void **state)
{
    (void)state;
    struct receiver receiver = {.ping_ms = LONG_MS};
    struct node node = {0};
    struct offer offer = {0};
    const pid_t pid = start_receiver(&receiver);
    open_sender(&node, PING_MS);
    atomic_store(&bus_shared[WORD_GO], GO_REST);
    test_sleep_ms(20);
    const uint64_t delay_ns = machine_run_delay_ns(getpid());
    const uint64_t start_ms = test_now_ms();
    keep_full(&node, &offer, NODE_MS);
    const uint64_t took_ms = test_now_ms() - start_ms;
    const uint64_t late_ms = (machine_run_delay_ns(getpid()) - delay_ns) / 1000000;
    print_message("found after %llu ms, bound %u ms\n", (unsigned long long)took_ms, BOUND_MS);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 1);
    assert_int_equal(node.reason, RINGBUS_REASON_SILENT);
    /* PINGs begin with the next interval; the clock is looked at each millisecond or so. */
    assert_in_range(took_ms, BOUND_MS - PING_MS, BOUND_MS + 2 * PING_MS + 20 + late_ms);
    /* Back again, it gets nothing of what came back, and the end. */
    atomic_store(&bus_shared[WORD_GO], GO_READ);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_ENDED]) > 0, NODE_MS, &node);
    assert_int_equal(atomic_load(&bus_shared[WORD_READ]) + node.events[RINGBUS_EVENT_UNDELIVERED],
                     offer.number);
    assert_int_equal(atomic_load(&bus_shared[WORD_ENDED]), RINGBUS_REASON_GIVEN_UP + 1);
    finish(&node, pid);
}

static void test_disconnect_into_a_full_lane(void **state)
{
    (void)state;
    struct receiver receiver = {.ping_ms = LONG_MS, .rest_ms = 1};
    struct node node = {0};
    struct offer offer = {0};
    const pid_t pid = start_receiver(&receiver);
    open_sender(&node, LONG_MS);
    keep_full(&node, &offer, 50);
    assert_true(atomic_load(&bus_shared[WORD_READ]) < offer.number);
    node_close(&node);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    /* In order: all of the data, then its word of farewell. */
    assert_int_equal(atomic_load(&bus_shared[WORD_READ]), offer.number);
    assert_int_equal(atomic_load(&bus_shared[WORD_ENDED]), RINGBUS_REASON_LEFT + 1);
}

static void test_disconnect_of_one_whose_lane_is_full(void **state)
{
    (void)state;
    struct receiver receiver = {.ping_ms = LONG_MS};
    struct node node = {0};
    struct offer offer = {0};
    const pid_t pid = start_receiver(&receiver);
    open_sender(&node, LONG_MS);
    atomic_store(&bus_shared[WORD_GO], GO_REST);
    test_sleep_ms(20);
    keep_full(&node, &offer, 50);
    atomic_store(&bus_shared[WORD_GO], GO_CLOSE);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_LEFT);
    /* What it had not read comes back. */
    RUN_UNTIL(node.events[RINGBUS_EVENT_UNDELIVERED] + atomic_load(&bus_shared[WORD_READ]) ==
                  offer.number,
              NODE_MS, &node);
    finish(&node, pid);
}

/* ---- a receiver that waits busily ------------------------------------------------------------ */

#define BUSY_MESSAGES 6U

static void receive_busily(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = receive_one};
    struct ringbus_options options = node_options(at, SINK_1);
    (void)context;
    options.mode = RINGBUS_MODE_BUSY;
    options.ping_interval_ms = LONG_MS;
    node_open_with(&node, &options);
    atomic_store(&bus_shared[WORD_READY], 1);
    while (node.messages < BUSY_MESSAGES) {
        CHECK(ringbus_wait(node.bus, -1) >= 0);
        CHECK(ringbus_poll(node.bus, 100) >= 0);
    }
    node_close(&node);
}

/* It polls when something has come only, and says what it has read all the same. */
static void test_busy_waiter_makes_room_for_the_largest(void **state)
{
    (void)state;
    struct node node = {0};
    static unsigned char payload[4096 - 728]; /* needs the whole lane */
    uint64_t number = 0;
    bus_shared_reset();
    const pid_t pid = child_start(receive_busily, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == 1, NODE_MS, NULL);
    struct ringbus_options options = node_options(&cluster, SOURCE_1);
    options.lane_bytes = 4096;
    options.inline_max = sizeof payload;
    options.ping_interval_ms = LONG_MS;
    node_open_with(&node, &options);
    node_target(&node, SINK, 1, NULL);
    while (number < BUSY_MESSAGES) {
        memcpy(payload, &number, sizeof number);
        assert_int_equal(ringbus_send(node.bus, &node.peer, 0, payload, 150, 0), 1);
        number++;
        RUN_UNTIL(atomic_load(&bus_shared[WORD_READ]) == number, NODE_MS, NULL);
        memcpy(payload, &number, sizeof number);
        RUN_UNTIL(ringbus_send(node.bus, &node.peer, 0, payload, sizeof payload, 0) == 1, NODE_MS,
                  &node);
        number++;
        RUN_UNTIL(atomic_load(&bus_shared[WORD_READ]) == number, NODE_MS, NULL);
    }
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    node_close(&node);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#define ON_OWN_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Without arguments all but the slow readers, which are "slow". */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_OWN_DAEMON(test_refusals_of_small_messages_are_counted),
        ON_OWN_DAEMON(test_refusals_of_large_messages_are_counted),
        ON_OWN_DAEMON(test_refusals_of_requests_are_counted),
        ON_OWN_DAEMON(test_one_that_does_not_read_is_found_within_the_bound),
        ON_OWN_DAEMON(test_disconnect_into_a_full_lane),
        ON_OWN_DAEMON(test_disconnect_of_one_whose_lane_is_full),
        ON_OWN_DAEMON(test_busy_waiter_makes_room_for_the_largest),
    };
    const struct CMUnitTest slow[] = {
        ON_OWN_DAEMON(test_slow_reader_answers_ping),
        ON_OWN_DAEMON(test_ready_through_a_full_lane),
    };
    return argc > 1 && strcmp(argv[1], "slow") == 0
               ? cmocka_run_group_tests_name("full, slow readers", slow, NULL, NULL)
               : cmocka_run_group_tests_name("full", tests, NULL, NULL);
}
