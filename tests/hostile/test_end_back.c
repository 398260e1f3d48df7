/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a link with a peer whose words are wrong: what it gives back, what waits for another
 * receiver, and what callbacks may do meanwhile (scenarios 5, 27, 61).
 */
#include "hostile/end.h"

/* ---- what it gives back ---------------------------------------------------------------------- */

/* One slot, two messages: the first was read. Without memory to note it, too. */
static void test_payload_of_a_slot_that_was_used_again(void **state)
{
    (void)state;
    for (unsigned short_of_memory = 0; short_of_memory < 2; short_of_memory++) {
        link_up((struct setting){0});
        send_bytes(1, LARGE);
        give_slot_back(0);
        send_bytes(2, LARGE);
        send_bytes(3, LARGE);
        peer_down(&peer);
        calloc_fails = short_of_memory != 0;
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
        calloc_fails = false;
        assert_int_equal(back.certain, 2);
        assert_int_equal(back.maybe, 0);
        assert_int_equal(back.first[0], 2);
        assert_int_equal(back.first[1], 3);
        node_close(&node);
    }
}

/* A request waits for another receiver; the first, alive, lets go of it: it was handled. */
static void test_request_that_was_let_go_ends(void **state)
{
    (void)state;
    static unsigned char bytes[LARGE];
    struct ringbus_loan loans[8];
    unsigned count = 0;
    link_up((struct setting){.ping_ms = PING_MS, .redeliver_ms = 500});
    assert_int_equal(ringbus_request(node.bus, &any, 0, bytes, sizeof bytes, RINGBUS_IDEMPOTENT,
                                     3600000, node_on_result, &node),
                     1);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_true(rbi_bell_is_hung_up(peer.bell)); /* at once: it may have chunks out as well */
    give_slot_back(0);
    while (count < 8 && ringbus_loan(node.bus, LARGE, &loans[count]) == 0) {
        count++; /* short of chunks, it takes in what has come back */
    }
    RUN_UNTIL(node.replies[RINGBUS_UNKNOWN] == 1, NODE_MS, &node);
    assert_int_equal(count, 8);
    assert_int_equal(node.reply_error, RINGBUS_E_PEER_GONE);
    while (count > 0) {
        assert_int_equal(ringbus_loan_return(node.bus, &loans[--count]), 0);
    }
    peer_down(&peer);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    node_close(&node);
}

/* ---- what waits ------------------------------------------------------------------------------ */

static void fill_lane(struct node *at, const struct ringbus_event *event)
{
    static const unsigned char bytes[1000] = {0xff};
    note_back(at, event);
    if (event->type == RINGBUS_EVENT_READY && at->events[RINGBUS_EVENT_READY] == 2) {
        int r = 1;
        while (r == 1) {
            r = ringbus_send(at->bus, &event->addr, 0, bytes, sizeof bytes, 0);
        }
        CHECK(r == RINGBUS_E_FULL);
    }
}

/*
 * Of two messages that wait the first goes to another life and comes back from there, to wait for
 * long. The second, behind it, is given back when its own time is over.
 */
static void test_redeliver_ms_bounds_what_waits_behind_another(void **state)
{
    (void)state;
    link_up((struct setting){.redeliver_ms = 3000});
    node.on_event = fill_lane;
    send_bytes(1, 16);
    send_bytes(2, 1000);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(peer_up(&peer, cluster.socket, HOSTILE_PATH), 0);
    target_it((struct setting){.redeliver_ms = 60000});
    answer();
    RUN_UNTIL(node_stats(&node).redelivered == 1, NODE_MS, &node);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &node);
    const unsigned direct = back.certain;
    RUN_UNTIL(back.certain == direct + 1, NODE_MS, &node);
    assert_int_equal(back.maybe, 0);
    node_close(&node);
}

/* It lives, and reads nothing: control records wait for room, and we do not spin for them. */
static void test_peer_that_never_reads_does_not_keep_us_awake(void **state)
{
    (void)state;
    static const unsigned char bytes[1000];
    uint64_t waits = 0;
    link_up((struct setting){.ping_ms = 50});
    const uint64_t end_ms = test_now_ms() + 3000;
    uint64_t counted_ms = 0;
    uint64_t pong_ms = 0;
    while (test_now_ms() < end_ms) {
        while (ringbus_send(node.bus, &any, 0, bytes, sizeof bytes, 0) == 1) {
        }
        if (test_now_ms() - pong_ms >= 10) {
            const uint64_t tag = 0;
            peer_put(&peer, rbi_record_meta(RBI_RECORD_PONG, 0, 0, 0), &tag, sizeof tag);
            pong_ms = test_now_ms();
        }
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 5) >= 0);
        counted_ms = test_now_ms();
        waits += counted_ms + 1000 >= end_ms;
    }
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    print_message("%u waits in the last second\n", (unsigned)waits);
    assert_true(waits < 500);
    peer_down(&peer);
    node_close(&node);
}

/* ---- what callbacks may do ------------------------------------------------------------------- */

static unsigned requests_ended;

static void do_everything(struct node *at, const struct ringbus_message *message);

static void end_request(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    node_on_result(bus, result, context);
    requests_ended++;
    if (requests_ended < 8) {
        do_everything(context, NULL);
    }
}

/* Whatever a callback can call. What the calls return depends on when they come; that is theirs. */
static void do_everything(struct node *at, const struct ringbus_message *message)
{
    static const unsigned char bytes[LARGE];
    struct ringbus_kept *once = NULL;
    struct ringbus_loan loan;
    if (message != NULL) {
        CHECK(ringbus_keep(at->bus, message, &once) == 0);
        CHECK(once->size == message->size && memcmp(once->data, message->data, once->size) == 0);
        CHECK(ringbus_release(at->bus, once) == 0);
    }
    CHECK(ringbus_poll(at->bus, 1) == RINGBUS_E_BUSY);
    CHECK(ringbus_wait(at->bus, 0) == RINGBUS_E_BUSY);
    CHECK(ringbus_close(at->bus, 0) == RINGBUS_E_BUSY);
    CHECK(ringbus_send(at->bus, &any, 0, bytes, 16, RINGBUS_MORE) < 0);
    CHECK(ringbus_request(at->bus, &any, 0, bytes, LARGE, 0, 1000, end_request, at) < 0);
    (void)ringbus_untarget(at->bus, HOSTILE);
    CHECK(ringbus_target(at->bus, HOSTILE_PATH, NULL, NULL) == 0);
    CHECK(ringbus_drain(at->bus) == 0);
    CHECK(ringbus_undrain(at->bus) == 0);
    if (ringbus_loan(at->bus, LARGE, &loan) == 0) {
        CHECK(ringbus_loan_return(at->bus, &loan) == 0);
    }
}

static void on_end(struct node *at, const struct ringbus_event *event)
{
    note_back(at, event);
    if (event->type == RINGBUS_EVENT_UNDELIVERED || event->type == RINGBUS_EVENT_DOWN ||
        event->type == RINGBUS_EVENT_REMOVED) {
        do_everything(at, event->message);
    }
}

static void test_callbacks_at_the_end_do_everything(void **state)
{
    (void)state;
    static const uint32_t redeliver_ms[] = {0, 1, 30};
    static unsigned char bytes[LARGE];
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(redeliver_ms); i++) {
        link_up((struct setting){.redeliver_ms = redeliver_ms[i]});
        node.on_event = on_end;
        requests_ended = 0;
        send_bytes(1, 16);
        send_bytes(2, LARGE);
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(ringbus_request(node.bus, &any, 0, bytes, k == 0 ? 8 : LARGE, 0, 60000,
                                             end_request, &node),
                             1);
        }
        send_bytes(3, LARGE);
        send_bytes(4, 1000);
        peer_down(&peer);
        RUN_UNTIL(back.certain == 4 && requests_ended == 2, NODE_MS, &node);
        RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
        assert_int_equal(node.replies[RINGBUS_NOT_SENT], 2);
        assert_int_equal(back.maybe, 0);
        RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
        node_close(&node);
    }
}

/* Closed while messages wait for another: their requests end, and no event comes any more. */
static void test_close_while_messages_wait(void **state)
{
    (void)state;
    static unsigned char bytes[LARGE];
    link_up((struct setting){.redeliver_ms = 60000});
    send_bytes(1, LARGE);
    assert_int_equal(
        ringbus_request(node.bus, &any, 0, bytes, LARGE, 0, 60000, node_on_result, &node), 1);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.replies[RINGBUS_NOT_SENT] + node.replies[RINGBUS_UNKNOWN], 0);
    assert_int_equal(ringbus_close(node.bus, 50), RINGBUS_E_TIMEOUT);
    node.bus = NULL;
    assert_int_equal(node.replies[RINGBUS_NOT_SENT], 1);
    assert_int_equal(back.certain + back.maybe, 0);
}

static struct ringbus_kept *kept;

static void keep_it(struct node *at, const struct ringbus_message *message)
{
    CHECK((message->flags & RINGBUS_MESSAGE_REFERENCED) != 0);
    CHECK(ringbus_keep(at->bus, message, &kept) == 0);
}

/*
 * Its bell is not listened to, for it rang for nothing, when the link ends and leaves something
 * behind on either side. That it hangs up is heard all the same.
 */
static void test_hang_up_of_a_bell_that_rang_for_nothing(void **state)
{
    (void)state;
    const struct rbi_record_ref ref = {.offset = 0, .size = RBI_LINE, .slot = 1};
    unsigned char body[RBI_RECORD_TAG + sizeof ref] = {0};
    memcpy(body + RBI_RECORD_TAG, &ref, sizeof ref);
    node.on_message = keep_it;
    link_up((struct setting){0});
    peer_put(&peer, rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_REF, 0, 0), body, sizeof body);
    RUN_UNTIL(kept != NULL, NODE_MS, &node);
    send_bytes(1, LARGE);
    for (unsigned i = 0; i < 64; i++) {
        peer_ring(&peer);
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 0) >= 0);
    }
    assert_int_equal(ringbus_untarget(node.bus, HOSTILE), 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    step();
    assert_int_equal(node_pool_used(&node), 1);
    rbi_bell_hang_up(peer.bell);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    assert_int_equal(ringbus_release(node.bus, kept), 0);
    peer_down(&peer);
    node_close(&node);
    node.on_message = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payload_of_a_slot_that_was_used_again),
        cmocka_unit_test(test_request_that_was_let_go_ends),
        cmocka_unit_test(test_redeliver_ms_bounds_what_waits_behind_another),
        cmocka_unit_test(test_peer_that_never_reads_does_not_keep_us_awake),
        cmocka_unit_test(test_callbacks_at_the_end_do_everything),
        cmocka_unit_test(test_close_while_messages_wait),
        cmocka_unit_test(test_hang_up_of_a_bell_that_rang_for_nothing),
    };
    return cmocka_run_group_tests_name("end", tests, setup, teardown);
}
