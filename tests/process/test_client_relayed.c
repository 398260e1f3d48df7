/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links to an instance of another host: while the way is cut, and what their loss does to messages
 * and requests (features D53, scenarios 108, 111).
 */
#include "process/client_relayed.h"

/* ---- the way is cut ------------------------------------------------------------------------- */

/* It is suspect and held, sends go on, and nothing is lost or said twice. */
static void test_peer_behind_a_cut_is_suspect_and_kept(void **state)
{
    (void)state;
    ping_ms = 100;
    begin(0);
    ping_ms = 60000;
    for (unsigned round = 1; round <= 3; round++) {
        send_some(20);
        cut(true);
        RELAY_UNTIL(&relay,
                    client_saw.suspect == round && service.events[RINGBUS_EVENT_SUSPECT] == round,
                    NODE_MS, &client, &service);
        assert_true(client_saw.paused);
        send_some(20);
        /* Longer than a silent peer is borne. */
        const uint64_t end_ms = test_now_ms() + 600;
        RELAY_UNTIL(&relay, test_now_ms() >= end_ms, NODE_MS, &client, &service);
        assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 0);
        assert_int_equal(client_saw.alive, round - 1);
        cut(false);
        RELAY_UNTIL(&relay, client_saw.alive == round && got.next == client_saw.sent, NODE_MS,
                    &client, &service);
    }
    assert_int_equal(service.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(got.again, 0);
    /* Then silence ends the link as ever, when it is the peer's. */
    relay.cut = true;
    RELAY_UNTIL(&relay, client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client, &service);
    assert_int_equal(client.reason, RINGBUS_REASON_SILENT);
    finish();
}

/* ---- what comes back ------------------------------------------------------------------------ */

/* What had gone on may have been seen, the rest was not; each comes back once, and in order. */
static void test_lost_link_gives_back_what_was_on_its_way(void **state)
{
    (void)state;
    begin(0);
    send_some(30);
    RELAY_UNTIL(&relay, got.next == 30, NODE_MS, &client, &service);
    relay.ack_held = true;
    send_some(10);
    RELAY_UNTIL(&relay, got.next == 40, NODE_MS, &client, &service);
    cut(true);
    send_some(7);
    turns(20, &client, &service);
    lose();
    assert_int_equal(client_saw.back, 17);
    assert_int_equal(client_saw.back_seen, 10);
    assert_int_equal(client_saw.first, 30);
    assert_int_equal(client.error, RINGBUS_E_UNREACHABLE);
    /* Until there is a link, sends fail at once, and say why. */
    const struct ringbus_addr anybody = any();
    assert_int_equal(send_to(&client.peer, 8, 0), RINGBUS_E_UNREACHABLE);
    assert_int_equal(send_to(&anybody, 8, 0), RINGBUS_E_UNREACHABLE);
    assert_int_equal(ringbus_send(client.bus, &anybody, 7, "", 0, RINGBUS_KEY),
                     RINGBUS_E_UNREACHABLE);
    /* The receiver is told of what it has not got, before anything new. */
    got.loose = true;
    link_again();
    send_some(5);
    RELAY_UNTIL(&relay, got.next == client_saw.sent, NODE_MS, &client, &service);
    assert_int_equal(got.gaps, 1);
    assert_int_equal(got.count, 17);
    assert_int_equal(got.maybe, 10);
    assert_int_equal(got.gap_next, 40);
    assert_int_equal(got.skipped, 7);
    finish();
}

/* All that came back had been read: nothing is missing. */
static void test_no_gap_where_all_was_read(void **state)
{
    (void)state;
    begin(0);
    relay.ack_held = true;
    send_some(10);
    RELAY_UNTIL(&relay, got.next == 10, NODE_MS, &client, &service);
    lose();
    assert_int_equal(client_saw.back, 10);
    assert_int_equal(client_saw.back_seen, 10);
    link_again();
    send_some(5);
    RELAY_UNTIL(&relay, got.next == 15, NODE_MS, &client, &service);
    assert_int_equal(got.gaps, 0);
    finish();
}

/* None of it was on its way: the receiver knows that for certain. */
static void test_gap_of_what_never_left(void **state)
{
    (void)state;
    begin(0);
    cut(true);
    send_some(3);
    turns(20, &client, &service);
    lose();
    assert_int_equal(client_saw.back, 3);
    assert_int_equal(client_saw.back_seen, 0);
    got.loose = true;
    link_again();
    RELAY_UNTIL(&relay, got.gaps == 1, NODE_MS, &client, &service);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.maybe, 0);
    assert_int_equal(got.gap_next, 0);
    finish();
}

/* It had left, and never came: as far as the sender knows it may have been seen. */
static void test_gap_of_what_was_lost_on_its_way(void **state)
{
    (void)state;
    begin(0);
    send_some(10);
    RELAY_UNTIL(&relay, got.next == 10, NODE_MS, &client, &service);
    relay.swallowed = relay.ack_held = true;
    send_some(3);
    turns(20, &client, &service);
    lose();
    assert_int_equal(client_saw.back_seen, 3);
    got.loose = true;
    link_again();
    RELAY_UNTIL(&relay, got.gaps == 1, NODE_MS, &client, &service);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.maybe, 0); /* but the receiver knows better */
    finish();
}

/* The link that was to tell is lost before it did: the next one does, once. */
static void test_gap_outlives_the_link_that_was_to_tell(void **state)
{
    (void)state;
    begin(0);
    cut(true);
    send_some(3);
    lose();
    relay.ack_held = true;
    got.loose = true;
    link_again();
    RELAY_UNTIL(&relay, got.gaps == 1, NODE_MS, &client, &service);
    relay.ack_held = true;
    lose();
    link_again();
    send_some(1);
    RELAY_UNTIL(&relay, got.next == 4, NODE_MS, &client, &service);
    assert_int_equal(got.gaps, 1); /* it had read that */
    /* And where it had not. */
    cut(true);
    send_some(2);
    lose();
    client_saw.cut_when_ready = true;
    link_again();
    client_saw.cut_when_ready = false;
    lose();
    assert_int_equal(got.gaps, 1);
    link_again();
    RELAY_UNTIL(&relay, got.gaps == 2, NODE_MS, &client, &service);
    assert_int_equal(got.count, 5);
    finish();
}

/* Another life has not got what the first one was sent, and misses nothing. */
static void test_gap_is_for_the_same_life(void **state)
{
    (void)state;
    begin(0);
    cut(true);
    send_some(3);
    lose();
    node_close(&service);
    rbi_proxy_free(proxy, RBI_REASON_LEFT);
    memset(&service, 0, sizeof service);
    service.on_message = take;
    service.on_event = note_gap;
    got.loose = true;
    node_open(&service, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &service);
    proxy = relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, client.peer.incarnation == spec.incarnation, NODE_MS, &client, &service);
    send_some(2);
    RELAY_UNTIL(&relay, got.next == 5, NODE_MS, &client, &service);
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

/* Asked and maybe seen: unknown. Never on its way: not sent. */
static void test_requests_over_a_lost_link_end(void **state)
{
    (void)state;
    begin(0);
    got.answers = true;
    relay.ack_held = true;
    ask(0);
    RELAY_UNTIL(&relay, client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &client, &service);
    got.answers = false;
    ask(0);
    ask(RINGBUS_IDEMPOTENT);
    RELAY_UNTIL(&relay, got.next == 3, NODE_MS, &client, &service);
    cut(true);
    ask(0);
    turns(20, &client, &service);
    lose();
    assert_int_equal(client.replies[RINGBUS_UNKNOWN], 2);
    assert_int_equal(client.replies[RINGBUS_NOT_SENT], 1);
    assert_int_equal(client.reply_error, RINGBUS_E_UNREACHABLE);
    assert_int_equal(client_saw.back, 0);
    /* Who asked has been told: no GAP. */
    got.loose = true;
    link_again();
    send_some(1);
    RELAY_UNTIL(&relay, got.next == 5, NODE_MS, &client, &service);
    assert_int_equal(got.gaps, 0);
    finish();
}

/* ---- the bridge dies ------------------------------------------------------------------------ */

/* With it go all proxies: their instances may live, so it is no crash of theirs. */
static void bridges_die(bool daemons_first)
{
    begin(0);
    relay.ack_held = true;
    send_some(10);
    RELAY_UNTIL(&relay, got.next == 10, NODE_MS, &client, &service);
    for (unsigned i = 0; daemons_first && i < 2; i++) {
        cluster_kill(&relay.host[i].cluster);
    }
    for (unsigned i = 0; i < 2; i++) {
        relay.host[i].desk = rbi_desk_free(relay.host[i].desk);
    }
    RELAY_UNTIL(&relay,
                client.events[RINGBUS_EVENT_DOWN] == 1 && service.events[RINGBUS_EVENT_DOWN] == 1,
                NODE_MS, &client, &service);
    assert_int_equal(client.reason, RINGBUS_REASON_UNREACHABLE);
    assert_int_equal(service.reason, RINGBUS_REASON_UNREACHABLE);
    assert_int_equal(client_saw.back, 10);
    assert_int_equal(client_saw.back_seen, 10);
    finish();
}

static void test_death_of_a_bridge_is_no_death_of_its_instances(void **state)
{
    (void)state;
    bridges_die(false);
    bridges_die(true); /* nobody says so: their bells are silent */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_behind_a_cut_is_suspect_and_kept),
        cmocka_unit_test(test_lost_link_gives_back_what_was_on_its_way),
        cmocka_unit_test(test_no_gap_where_all_was_read),
        cmocka_unit_test(test_gap_of_what_never_left),
        cmocka_unit_test(test_gap_of_what_was_lost_on_its_way),
        cmocka_unit_test(test_gap_outlives_the_link_that_was_to_tell),
        cmocka_unit_test(test_gap_is_for_the_same_life),
        cmocka_unit_test(test_requests_over_a_lost_link_end),
        cmocka_unit_test(test_death_of_a_bridge_is_no_death_of_its_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
