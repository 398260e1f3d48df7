/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link that leads to another host, at whose end sits one that says what no bridge and no peer
 * says: it ends its own link at most (scenario 27).
 */
#include "bus/record_attributes.h"
#include "hostile/end.h"

static const struct setting far_away = {.far = true};

static void put_control(enum rbi_record_kind kind, const unsigned char *payload, uint64_t size)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    memcpy(body + 8, payload, size);
    peer_put(&peer, rbi_record_meta(kind, 0, 0, 0), body, 8 + size);
}

static void put_gap(uint64_t link_life, uint64_t count)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    const struct rbi_gap_body gap = {
        .link_life = link_life, .from = 64, .to = 128, .count = count, .maybe_seen = 1};
    put_control(RBI_RECORD_GAP, payload, rbi_gap_encode(&gap, payload));
}

static void expect_bad_peer(void)
{
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_BAD_PEER);
    assert_int_equal(node.events[RINGBUS_EVENT_GAP], 0);
    peer_down(&peer);
    node_close(&node);
}

/* Cut short at each byte, neither on nor off, a gap of nothing. */
static void test_impossible_words_of_a_bridge_end_the_link(void **state)
{
    (void)state;
    static const unsigned char ones[RBI_CONTROL_BODY_MAX] = {1, [8] = 1, [16] = 2, [24] = 1};
    static const unsigned char neither[8] = {2};
    for (uint64_t size = 0; size < 40; size += 13) {
        link_up(far_away);
        put_control(RBI_RECORD_GAP, ones, size);
        expect_bad_peer();
    }
    link_up(far_away);
    put_control(RBI_RECORD_HOLD, ones, 7);
    expect_bad_peer();
    link_up(far_away);
    put_control(RBI_RECORD_HOLD, neither, sizeof neither);
    expect_bad_peer();
    link_up(far_away);
    put_gap(0, 1);
    expect_bad_peer();
    link_up(far_away);
    put_gap(1, 0);
    expect_bad_peer();
}

static void note_gap(struct node *at, const struct ringbus_event *event)
{
    (void)at;
    if (event->type == RINGBUS_EVENT_GAP) {
        CHECK(event->count == UINT64_MAX && event->gap->link != 0 && event->gap->maybe_seen == 1);
    }
}

/* It tells of gaps and cuts as fast as it can: that is heard, and nothing grows. */
static void test_flood_of_gaps_and_cuts(void **state)
{
    (void)state;
    const unsigned count = 3000;
    link_up(far_away);
    node.on_event = note_gap;
    for (unsigned i = 1; i <= count; i++) {
        const unsigned char on[8] = {(unsigned char)(i % 2)};
        put_gap(i, UINT64_MAX);
        put_control(RBI_RECORD_HOLD, on, sizeof on);
        if (i % 32 == 0) {
            RUN_UNTIL(node.events[RINGBUS_EVENT_GAP] == i, NODE_MS, &node);
        }
    }
    RUN_UNTIL(node.events[RINGBUS_EVENT_GAP] == count, NODE_MS, &node);
    assert_int_equal(node.events[RINGBUS_EVENT_SUSPECT], count / 2);
    assert_int_equal(node.events[RINGBUS_EVENT_ALIVE], count / 2);
    assert_int_equal(node.events[RINGBUS_EVENT_DOWN], 0);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(node.reason, RINGBUS_REASON_UNREACHABLE);
    node_close(&node);
}

/* It has sent on what was never written, or before what it released: what comes back is maybe. */
static void test_impossible_begun_position_of_a_bridge(void **state)
{
    (void)state;
    link_up(far_away);
    send_bytes(1, 100);
    send_bytes(2, 100);
    rbi_store_seq(&peer_side(&peer)->begun_pos, UINT64_C(1) << 40);
    peer_down(&peer);
    RUN_UNTIL(node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &node);
    assert_int_equal(back.certain, 0);
    assert_int_equal(back.maybe, 2);
    node_close(&node);
}

static void put_first(uint64_t link_life, uint64_t position)
{
    const struct rbi_attributes first = {
        .present = RBI_ATTRIBUTE_FIRST, .first_life = link_life, .first_position = position};
    uint64_t body[8] = {0};
    unsigned char *end = rbi_attributes_encode(&first, (unsigned char *)&body[1]);
    const uint64_t words = (uint64_t)(end - (unsigned char *)&body[1]) / 8;
    peer_put(&peer,
             rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_ATTRIBUTES | RBI_RECORD_AGAIN,
                             (unsigned)words, 0),
             body, 8 + 8 * words + 8);
}

/* Places in links that nobody knows: what comes so is a message like any other. */
static void test_first_places_of_unknown_links(void **state)
{
    (void)state;
    static const uint64_t positions[] = {0, 1, 64, UINT64_MAX, UINT64_C(1) << 63, 64};
    link_up(far_away);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(positions); i++) {
        put_first(i / 2 + 1, positions[i]);
    }
    RUN_UNTIL(node.messages == RBI_ARRAY_SIZE(positions), NODE_MS, &node);
    assert_int_equal(node_stats(&node).duplicates, 0);
    put_first(0, 64); /* no link */
    expect_bad_peer();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_impossible_words_of_a_bridge_end_the_link, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_flood_of_gaps_and_cuts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_impossible_begun_position_of_a_bridge, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_first_places_of_unknown_links, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
