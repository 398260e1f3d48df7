/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RINGBUS_ON_DOWN_REDELIVER over links to an instance of another host: what a lost link may have
 * carried goes to the same life over the next one, and is handled once and in order (features D53,
 * scenario 108).
 */
#include "process/client_relayed.h"

/* ---- to the same life ----------------------------------------------------------------------- */

static void test_what_was_on_its_way_is_handled_once(void **state)
{
    (void)state;
    begin(60000);
    send_some(30);
    RELAY_UNTIL(&relay, got.next == 30, NODE_MS, &client, &service);
    relay.ack_held = true;
    send_some(10);
    RELAY_UNTIL(&relay, got.next == 40, NODE_MS, &client, &service);
    cut(true);
    send_some(7);
    turns(20, &client, &service);
    lose();
    link_again();
    send_some(5);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    assert_int_equal(client_saw.back, 0);
    assert_int_equal(got.again, 0); /* those that were read were dropped, the others not seen */
    assert_int_equal(got.gaps, 0);
    assert_int_equal(node_stats(&service).duplicates, 10);
    assert_int_equal(node_stats(&client).redelivered, 17);
    assert_int_equal(node_stats(&client).sent, 52); /* each counts once */
    RELAY_UNTIL(&relay, node_pool_used(&client) == 0, NODE_MS, &client, &service);
    finish();
}

static struct ringbus_addr some_address(uint64_t *random)
{
    struct ringbus_addr to = client.peer;
    to.incarnation = 0;
    switch (bus_random(random) % 4) {
    case 0:
        to.instance = RINGBUS_ANY;
        break;
    case 1:
        to.instance = RINGBUS_ALL;
        break;
    default:
        break;
    }
    return to;
}

static int send_attributed(const struct ringbus_addr *to)
{
    const struct ringbus_part parts[] = {{&client_saw.sent, 3},
                                         {(const char *)&client_saw.sent + 3, 5}};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .priority = 2, .method = 7, .tag = "canary"};
    const int r = ringbus_send_with(client.bus, to, parts, 2, &options);
    client_saw.sent += r == 1;
    return r;
}

/* Sends until something is in the way, of all sorts, to it, to any, to all. */
static void offer_some(uint64_t *random)
{
    int r = 1;
    for (unsigned left = (unsigned)(bus_random(random) % 60); left > 0 && r == 1; left--) {
        const struct ringbus_addr to = some_address(random);
        const uint64_t die = bus_random(random) % 16;
        const size_t size = die == 0 ? LARGE : 8 + bus_random(random) % 100;
        r = die == 1 ? send_attributed(&to) : send_to(&to, size, 0);
        CHECK(r == 1 || r == 0 || r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK ||
              r == RINGBUS_E_UNREACHABLE || r == RINGBUS_E_PEER_GONE);
    }
}

/* @return duplicates that were dropped */
static uint64_t lose_often(uint64_t random)
{
    begin(60000);
    for (unsigned round = 0; round < 4; round++) { /* each is longer waited for than the last */
        relay.batch = 1 + (unsigned)(bus_random(&random) % 5);
        relay.ack_held = bus_random(&random) % 2 == 0;
        for (unsigned i = (unsigned)(bus_random(&random) % 40); i > 0; i--) {
            offer_some(&random);
            turns(1, &client, bus_random(&random) % 4 != 0 ? &service : NULL);
        }
        if (bus_random(&random) % 3 == 0) {
            cut(true);
            offer_some(&random);
        } else if (bus_random(&random) % 2 == 0) {
            relay.swallowed = relay.ack_held = true;
            offer_some(&random);
            turns(5, &client, NULL);
        }
        lose();
        link_again();
    }
    relay.batch = 0;
    relay_go_on(&relay);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    const uint64_t duplicates = node_stats(&service).duplicates;
    print_message("%llu messages, %llu sent again, %llu duplicates dropped\n",
                  (unsigned long long)client_saw.sent,
                  (unsigned long long)node_stats(&client).redelivered,
                  (unsigned long long)duplicates);
    assert_int_equal(client_saw.back, 0);
    assert_int_equal(got.gaps, 0);
    RELAY_UNTIL(&relay, node_pool_used(&client) == 0, NODE_MS, &client, &service);
    finish();
    return duplicates;
}

/*
 * The way is lost at any moment, also while what an earlier loss left is being sent again: each
 * number comes once, and none out of turn.
 */
static void test_each_comes_once_over_many_losses(void **state)
{
    (void)state;
    uint64_t duplicates = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        duplicates += lose_often(seed * 4711);
    }
    assert_true(duplicates > 0);
}

/* Nothing new passes what waits: the sender is told so, and comes through later. */
static void test_new_messages_do_not_pass_those_sent_again(void **state)
{
    (void)state;
    begin(60000);
    int r = 1;
    relay.ack_held = true;
    while (r == 1) {
        r = send_to(&client.peer, 40, 0); /* in a line, and in two with its first place */
    }
    assert_int_equal(r, RINGBUS_E_FULL);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    lose();
    relay.batch = 1;
    const unsigned ready = client.events[RINGBUS_EVENT_READY];
    RELAY_UNTIL(&relay, client.events[RINGBUS_EVENT_READY] == ready + 1, NODE_MS, &client,
                &service);
    const uint64_t full = node_stats(&client).full;
    const struct ringbus_addr anybody = any();
    assert_int_equal(send_to(&client.peer, 8, 0), RINGBUS_E_FULL);
    assert_non_null(strstr(ringbus_errmsg(client.bus), "goes first"));
    assert_int_equal(send_to(&anybody, 8, 0), RINGBUS_E_FULL);
    assert_int_equal(node_stats(&client).full, full + 2);
    relay.batch = 0;
    RELAY_UNTIL(&relay, send_to(&client.peer, 8, 0) == 1, NODE_MS, &client, &service);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    assert_int_equal(client_saw.back, 0);
    finish();
}

/*
 * One is lost on its way, and comes over the next link; that is lost as well, and it comes again:
 * by its first place it is known, though nothing of the first link was read.
 */
static void test_second_loss_does_not_make_it_new(void **state)
{
    (void)state;
    begin(60000);
    cut(true); /* what the bridge says of its own is no place of theirs */
    cut(false);
    RELAY_UNTIL(&relay, service.events[RINGBUS_EVENT_ALIVE] == 1, NODE_MS, &client, &service);
    relay.swallowed = relay.ack_held = true;
    send_some(5);
    turns(20, &client, &service);
    lose();
    assert_int_equal(got.next, 0);
    relay.ack_held = true;
    link_again();
    RELAY_UNTIL(&relay, got.next == 5, NODE_MS, &client, &service);
    assert_int_equal(got.again, 5); /* they may have been seen, as far as the sender knows */
    lose();
    link_again();
    send_some(1);
    RELAY_UNTIL(&relay, got.next == 6, NODE_MS, &client, &service);
    assert_int_equal(node_stats(&service).duplicates, 5);
    finish();
}

/* The next link is lost before all has gone over it: first what it had, then the rest. */
static void test_loss_while_it_is_sent_again(void **state)
{
    (void)state;
    int r = 1;
    begin(60000);
    relay.swallowed = relay.ack_held = true;
    while (r == 1) {
        r = send_to(&client.peer, client_saw.sent % 3 == 0 ? 40 : 8, 0);
    }
    turns(20, &client, &service);
    lose();
    for (unsigned i = 0; i < 2; i++) {
        relay.batch = 1;
        relay.ack_held = true;
        link_again();
        turns(10, &client, &service);
        assert_int_equal(send_to(&client.peer, 8, 0), RINGBUS_E_FULL);
        lose();
    }
    relay.batch = 3;
    link_again();
    RELAY_UNTIL(&relay, send_to(&client.peer, 40, 0) == 1, NODE_MS, &client, &service);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    assert_int_equal(client_saw.back, 0);
    finish();
}

/* ---- its time is over, or the life ---------------------------------------------------------- */

static struct rbi_proxy *proxy_again(void)
{
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &service);
    return relay_proxy(&relay, 0, &spec);
}

/* It is not back in time: all of it is given back, and told to it when it is. */
static void test_redeliver_ms_bounds_the_wait(void **state)
{
    (void)state;
    begin(200);
    relay.ack_held = true;
    send_some(10);
    RELAY_UNTIL(&relay, got.next == 10, NODE_MS, &client, &service);
    cut(true);
    send_some(7);
    turns(20, &client, &service);
    lose();
    rbi_proxy_free(proxy, RBI_REASON_UNREACHABLE);
    assert_int_equal(client_saw.back, 0);
    RELAY_UNTIL(&relay, client_saw.back == 17, NODE_MS, &client, &service);
    assert_int_equal(client_saw.back_seen, 10);
    assert_int_equal(client_saw.first, 0);
    proxy = proxy_again();
    got.loose = true;
    link_again();
    send_some(1);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    assert_int_equal(got.gaps, 1);
    assert_int_equal(got.count, 17);
    assert_int_equal(got.gap_next, 10);
    finish();
}

/* Another life of it is there: what was for the first one only comes back at once. */
static void test_another_life_gets_only_what_was_for_any(void **state)
{
    (void)state;
    begin(60000);
    const struct ringbus_addr anybody = any();
    cut(true);
    send_some(5);
    assert_int_equal(send_to(&anybody, 8, 0), 1);
    lose();
    rbi_proxy_free(proxy, RBI_REASON_UNREACHABLE);
    node_close(&service);
    memset(&service, 0, sizeof service);
    service.on_message = take;
    service.on_event = note_gap;
    node_open(&service, &relay.host[1].cluster, SERVICE_1);
    got.next = 5;
    proxy = proxy_again();
    RELAY_UNTIL(&relay, got.next == 6 && client_saw.back == 5, NODE_MS, &client, &service);
    assert_int_equal(client_saw.back_seen, 0);
    assert_int_equal(got.gaps, 0);
    finish();
}

/* ---- requests ------------------------------------------------------------------------------- */

static void ask(unsigned flags)
{
    assert_int_equal(ringbus_request(client.bus, &client.peer, 0, &client_saw.sent,
                                     sizeof client_saw.sent, flags, 60000, node_on_result, &client),
                     1);
    client_saw.sent++;
}

/* Not seen, or allowed to be handled twice: they go on. Else their outcome is unknown. */
static void test_requests_go_on_that_may(void **state)
{
    (void)state;
    begin(60000);
    relay.ack_held = true;
    ask(RINGBUS_IDEMPOTENT);
    ask(0);
    RELAY_UNTIL(&relay, got.next == 2, NODE_MS, &client, &service);
    cut(true);
    ask(0);
    turns(20, &client, &service);
    lose();
    assert_int_equal(client.replies[RINGBUS_UNKNOWN], 1);
    assert_int_equal(client.reply_error, RINGBUS_E_UNREACHABLE);
    got.answers = true;
    got.next = 0; /* the first comes once more, the second does not */
    got.loose = true;
    link_again();
    RELAY_UNTIL(&relay, client.replies[RINGBUS_REPLIED] == 2, NODE_MS, &client, &service);
    assert_int_equal(got.next, 3);
    assert_int_equal(got.skipped, 1);
    assert_int_equal(got.again, 1);
    assert_int_equal(node_stats(&client).late_replies, 0);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_on_its_way_is_handled_once),
        cmocka_unit_test(test_each_comes_once_over_many_losses),
        cmocka_unit_test(test_new_messages_do_not_pass_those_sent_again),
        cmocka_unit_test(test_second_loss_does_not_make_it_new),
        cmocka_unit_test(test_loss_while_it_is_sent_again),
        cmocka_unit_test(test_redeliver_ms_bounds_the_wait),
        cmocka_unit_test(test_another_life_gets_only_what_was_for_any),
        cmocka_unit_test(test_requests_go_on_that_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
