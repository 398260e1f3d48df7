/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link on which no message has gone yet maps each lane once only: behind its end lies
 * nothing that may be touched. A hostile peer puts records of every size across that end; the
 * receiver must map the rest first, or close the link.
 */
#include "hostile/attack.h"

#include <string.h>

/** PINGs until the next record of ours begins @p left bytes before the end of our lane. */
static void approach_end(uint64_t left)
{
    const uint64_t ping = 0;
    while (PEER_LANE_CAPACITY - peer.pos % PEER_LANE_CAPACITY != left) {
        peer_put(&peer, rbi_record_meta(RBI_RECORD_PING, 0, 0, 0), &ping, sizeof ping);
        if (peer.pos % 4096 == 0) {
            assert_true(peer_consumed(&peer, PEER_TIMEOUT_MS));
        }
    }
    assert_true(peer_consumed(&peer, PEER_TIMEOUT_MS));
}

static void test_first_record_passes_the_end(void **state)
{
    static const struct {
        unsigned kind;
        uint64_t size;
        int expected;
    } records[] = {
        {RBI_RECORD_ONEWAY, 8, FINE},
        {RBI_RECORD_ONEWAY, 56, FINE},
        {RBI_RECORD_ONEWAY, 57, FINE},
        {RBI_RECORD_ONEWAY, 200, FINE},
        {RBI_RECORD_ONEWAY, BODY_MAX, FINE},
        {RBI_RECORD_ONEWAY, BODY_MAX + 1, RBI_REASON_BAD_PEER},
        {RBI_RECORD_ONEWAY, UINT32_MAX, RBI_REASON_BAD_PEER},
        {RBI_RECORD_PING, BODY_MAX, FINE},
        {RBI_RECORD_GAP + 1, 4000, FINE},
        {RBI_RECORD_READY_ACK, 60, FINE},
        {RBI_RECORD_READY, 60, RBI_REASON_BAD_PEER},
    };
    static unsigned char body[BODY_MAX];
    (void)state;
    for (uint64_t left = RBI_LINE; left <= 4 * RBI_LINE; left *= 2) {
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(records); i++) {
            const uint64_t received = stage.scene->hostile_received;
            const bool possible = records[i].size <= BODY_MAX;
            relink();
            approach_end(left);
            memset(body, 0, sizeof body);
            peer_put(&peer, rbi_record_meta((enum rbi_record_kind)records[i].kind, 0, 0, 0),
                     possible ? body : NULL, records[i].size);
            const int found = verdict(possible);
            if (found != records[i].expected) {
                print_error("record %u, %llu before the end: verdict %d\n", i,
                            (unsigned long long)left, found);
            }
            assert_int_equal(found, records[i].expected);
            assert_int_equal(stage.scene->hostile_received - received,
                             records[i].kind == RBI_RECORD_ONEWAY && found == FINE);
        }
    }
}

/* A table of parts and a key that lie behind the end: what is parsed, not only what is shown. */
static void test_first_record_is_parsed_behind_the_end(void **state)
{
    uint64_t body[1 + 17 + 32] = {0};
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        body[2 + i] = 16; /* behind the key of a request */
    }
    relink();
    approach_end(RBI_LINE);
    const uint64_t received = stage.scene->hostile_received;
    peer_put(&peer, rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_KEY, 17, 16), body, sizeof body);
    assert_int_equal(verdict(true), FINE);
    assert_int_equal(stage.scene->hostile_received - received, 1);
}

/* Both lanes go round on PINGs alone. */
static void test_laps_without_a_message(void **state)
{
    (void)state;
    relink();
    const uint64_t laps_end = peer.read_pos + 2 * peer.their_capacity;
    while (peer.read_pos < laps_end) {
        assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
    }
}

/* The other end turns to us late, so that its READY passes the end of its own lane. */
static void test_late_ready_passes_the_end(void **state)
{
    (void)state;
    for (uint64_t left = RBI_LINE; left <= 4 * RBI_LINE; left *= 2) {
        relink();
        while (peer.their_capacity - peer.read_pos % peer.their_capacity != left) {
            assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
        }
        stage.scene->target_hostile = 1;
        assert_int_equal(peer_await(&peer, RBI_RECORD_READY, 0, PEER_TIMEOUT_MS), 0);
        assert_int_equal(verdict(true), FINE);
        stage.scene->target_hostile = 0;
        for (unsigned i = 0; i < 2; i++) { /* until it has looked at that */
            assert_true(stage_changes(&stage.scene->waits, stage.scene->waits, PEER_TIMEOUT_MS));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_record_passes_the_end, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_first_record_is_parsed_behind_the_end, attack_setup,
                                        attack_teardown),
        cmocka_unit_test_setup_teardown(test_laps_without_a_message, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_late_ready_passes_the_end, attack_setup,
                                        attack_teardown),
    };
    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
