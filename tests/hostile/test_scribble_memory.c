/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile peer writes into its positions, rings, heads and page, and flips words under
 * the reader, while an honest one goes on. --seconds N sets how long words are flipped.
 */
#include "hostile/attack.h"
#include "hostile/fields.h"
#include "support/machine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Scenario 27 names ten minutes. */
#define FLIP_FULL_S 600U
static unsigned flip_seconds;

/* ---- positions --------------------------------------------------------------------------- */

enum position { READ_POS, RETURNS_POS, RETURN_ENTRY, WANT_POS, WRITTEN_HINT, SLEEP_EPOCH };

/** The victim talks to us all the while; @p value is stored again and again. */
static int scribble_position(enum position position, uint64_t value, unsigned for_ms)
{
    struct rbi_side *side = peer_side(&peer);
    const uint64_t deadline_ms = test_now_ms() + for_ms;
    rbi_word *ring = (rbi_word *)(void *)((unsigned char *)side + side->returns_offset);
    while (test_now_ms() < deadline_ms) {
        switch (position) {
        case READ_POS:
            rbi_store_seq(&side->read_pos, value);
            break;
        case RETURNS_POS:
            rbi_store_seq(&side->returns_pos, value);
            break;
        case RETURN_ENTRY:
            for (unsigned i = 0; i < PEER_RETURNS; i++) {
                ring[i] = value;
            }
            rbi_store_seq(&side->returns_pos, 2);
            break;
        case WANT_POS:
            rbi_store_seq(&side->want_pos, value);
            break;
        case WRITTEN_HINT:
            rbi_store_seq(&side->written_hint, value);
            break;
        case SLEEP_EPOCH:
            rbi_store_seq(&peer_page(&peer)->sleep_epoch, value);
            break;
        }
        const int reason = down_told();
        if (reason >= 0) {
            peer.link_id = 0;
            return reason;
        }
        (void)usleep(200);
    }
    return FINE;
}

static void test_positions(void **state)
{
    (void)state;
    stage.scene->talk = 1;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(extremes); i++) {
        const uint64_t value = extremes[i];
        relink();
        /* 0 is where it stands: only the lane fills. All else was never written, or no line. */
        const int read = scribble_position(READ_POS, value, value == 0 ? 50 : 2000);
        assert_int_equal(read, value == 0 || value == 64 ? FINE : RBI_REASON_BAD_PEER);
        relink();
        const int returned = scribble_position(RETURNS_POS, value, value == 0 ? 50 : 2000);
        /* Entry 0 names slot 0, which is out: a first return is possible. */
        if (value > 1) {
            assert_int_equal(returned, RBI_REASON_BAD_PEER);
        }
        relink();
        assert_int_equal(scribble_position(RETURN_ENTRY, value, 2000), RBI_REASON_BAD_PEER);
        relink();
        assert_int_equal(scribble_position(WANT_POS, value, 20), FINE);
        assert_int_equal(scribble_position(WRITTEN_HINT, value, 2), FINE);
        assert_int_equal(scribble_position(SLEEP_EPOCH, value, 20), FINE);
        expect_verdict(FINE, "positions that do no harm", value);
        assert_true(stage_alive(&stage));
    }
    stage.scene->talk = 0;
}

/** Of the record that the victim wrote next; 0: none yet. */
static unsigned next_kind(void)
{
    const unsigned char *at = (const unsigned char *)peer.their_side.base + peer.their_lane +
                              (peer.read_pos & (peer.their_capacity - 1));
    return rbi_load_acq(rbi_au64_at_const(at, 0)) >> 32 & 0xff;
}

/**
 * A receiver that has its own bytes echoed stops in the middle of the answer, where they pass for
 * a record, and leaves: nothing that it wrote may come back to the victim as what it had sent.
 */
static void test_forged_leftover(void **state)
{
    uint64_t request[1 + 28] = {77};
    (void)state;
    /* Line 1 of the answer begins with byte 56 of its body, which is word 6 of the payload. */
    request[1 + 6] = (uint64_t)rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0) << 32 | 24;
    for (unsigned how = 0; how < 20; how++) {
        struct rbi_record record;
        relink();
        const uint64_t received = stage.scene->hostile_received;
        peer_put(&peer, rbi_record_meta(RBI_RECORD_REQ, 0, 0, 0), request, sizeof(request));
        assert_true(stage_changes(&stage.scene->hostile_received, received, PEER_TIMEOUT_MS));
        /* Up to the answer, and a line into it. */
        const uint64_t deadline_ms = test_now_ms() + PEER_TIMEOUT_MS;
        unsigned kind = 0;
        while ((kind = next_kind()) != RBI_RECORD_REP) {
            assert_true(kind == 0 || peer_read(&peer, &record) == 0);
            assert_true(test_now_ms() < deadline_ms);
        }
        rbi_store_seq(&peer_side(&peer)->read_pos, peer.read_pos + RBI_LINE);
        const uint64_t downs = stage.scene->downs;
        peer_unlink(&peer);
        assert_true(stage_changes(&stage.scene->downs, downs, PEER_TIMEOUT_MS));
    }
}

/* ---- what is written once ---------------------------------------------------------------- */

static void scribble_words(void *base, size_t bytes, size_t from)
{
    for (size_t at = from; at + 8 <= bytes; at += 8) {
        ((volatile uint64_t *)base)[at / 8] = roll_extreme();
    }
}

static void test_heads(void **state)
{
    (void)state;
    stage.scene->talk = 1;
    relink();
    unsigned char page[RBI_PAGE];
    unsigned char pool[RBI_PAGE];
    memcpy(page, peer_page(&peer), sizeof(page));
    memcpy(pool, peer.raw.pool.base, sizeof(pool));
    for (unsigned i = 0; i < 200; i++) {
        struct rbi_side *side = peer_side(&peer);
        scribble_words(side, offsetof(struct rbi_side, read_pos), 0);
        scribble_words(peer_page(&peer), sizeof(struct rbi_page), 0);
        scribble_words(peer.raw.pool.base, RBI_PAGE, 0);
        expect_verdict(FINE, "heads after the link", i);
    }
    memcpy(peer_page(&peer), page, sizeof(page));
    memcpy(peer.raw.pool.base, pool, sizeof(pool));
    relink();
    stage.scene->talk = 0;
}

/* ---- words that change under the reader -------------------------------------------------- */

struct flipper {
    struct rbi_side *side;
    struct rbi_page *page;
    unsigned char *pool;
    _Atomic int stop;
    uint64_t state; /* of its dice */
    bool kills;     /* also what ends a link soon: commit words and positions */
};

static uint64_t flipped_value(uint64_t dice)
{
    if (dice % 3 != 0) {
        return extremes[dice % RBI_ARRAY_SIZE(extremes)];
    }
    return (uint64_t)rbi_record_meta((enum rbi_record_kind)(dice % 12), dice >> 4 & 3,
                                     dice >> 6 & 3, dice >> 8 & 3)
               << 32 |
           (dice & 0xfff);
}

/** One word of any field of fields.c. */
static void flip_field(struct flipper *flipper, uint64_t dice, uint64_t value)
{
    const struct field *field = &fields[dice % fields_count];
    unsigned char *base = field->segment == RBI_SEGMENT_SIDE   ? (unsigned char *)flipper->side
                          : field->segment == RBI_SEGMENT_PAGE ? (unsigned char *)flipper->page
                                                               : flipper->pool;
    const struct field word = {.offset = field->offset + (uint32_t)(dice >> 8) %
                                                             (field->bytes / field->width) *
                                                             field->width,
                               .bytes = field->width,
                               .width = field->width};
    const bool position = field->effect == FIELD_READ_POS || field->effect == FIELD_RETURNS_POS;
    if (!position || flipper->kills) {
        field_set(base, &word, value);
    }
}

/** Never the whole lane at once: a good part of the records must be possible. */
static void *flip(void *context)
{
    struct flipper *flipper = context;
    unsigned char *lane = (unsigned char *)flipper->side + RBI_PAGE;
    rbi_word *ring = (rbi_word *)(void *)((unsigned char *)flipper->side + sizeof(struct rbi_side));
    while (!flipper->stop) {
        flipper->state =
            flipper->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t dice = flipper->state >> 33;
        const uint64_t value = flipped_value(dice);
        const uint64_t at = (flipper->state >> 20) % PEER_LANE_CAPACITY & ~UINT64_C(7);
        if (dice % 16 == 0) {
            flip_field(flipper, dice >> 4, value);
        } else if (dice % 16 == 1) {
            ((volatile uint64_t *)(void *)
                 flipper->pool)[sizeof(struct rbi_pool_head) / 8 + at % 2048 / 8] = value;
        } else if (dice % 16 == 2) {
            rbi_word_put(&ring[at % PEER_RETURNS], dice & 128 ? value : at % PEER_RETURNS);
        } else if (at % 64 != 0 || (flipper->kills && dice % 65536 == 3)) {
            rbi_store_rlx(rbi_au64_at(lane, at), value);
        }
    }
    return NULL;
}

struct shape {
    unsigned kind;
    unsigned flags;
    unsigned words;
    unsigned parts;
    uint64_t size;
};

static void flip_once(unsigned records)
{
    struct flipper flipper = {.side = peer_side(&peer),
                              .page = peer_page(&peer),
                              .pool = peer.raw.pool.base,
                              .stop = 0,
                              .state = roll(),
                              .kills = roll() % 4 == 0};
    pthread_t thread;
    unsigned char page[RBI_PAGE];
    struct rbi_pool_head pool;
    memcpy(page, peer_page(&peer), sizeof(page));
    memcpy(&pool, peer.raw.pool.base, sizeof(pool));
    assert_int_equal(pthread_create(&thread, NULL, flip, &flipper), 0);
    bool ended = false;
    for (unsigned i = 0; i < records && !ended; i++) {
        const bool plain = roll() % (flipper.kills ? 16 : 512) != 0;
        const struct shape shape = {.kind = (unsigned)(6 + roll() % 3),
                                    .flags = plain ? 0 : (unsigned)(roll() % 4),
                                    .words = plain ? 0 : (unsigned)(roll() % 5),
                                    .parts = plain ? 0 : (unsigned)(roll() % 4),
                                    .size = 8 + roll() % 200};
        peer_commit(&peer, (uint64_t)rbi_record_meta((enum rbi_record_kind)shape.kind, shape.flags,
                                                     shape.words, shape.parts)
                                   << 32 |
                               shape.size);
        if (i % 16 == 0) {
            ended = down_told() >= 0 || !peer_consumed(&peer, 5);
        }
    }
    flipper.stop = 1;
    (void)pthread_join(thread, NULL);
    /* Both are looked at again when the next link is made. */
    memcpy(peer_page(&peer), page, sizeof(page));
    memcpy(peer.raw.pool.base, &pool, sizeof(pool));
}

static void test_flips(void **state)
{
    const uint64_t seconds = flip_seconds != 0 ? flip_seconds : FULL_OR(FLIP_FULL_S, 3U);
    const uint64_t deadline_ms = test_now_ms() + seconds * 1000;
    unsigned links = 0;
    (void)state;
    if (RACES_FORBIDDEN) {
        skip();
    }
    stage.scene->talk = 1;
    while (test_now_ms() < deadline_ms) {
        relink();
        flip_once(2000);
        links++;
        if (links % 16 == 0) {
            assert_true(stage_alive(&stage));
        }
    }
    stage.scene->talk = 0;
    print_message("%u links, %llu hostile messages delivered, %llu links closed for BAD_PEER\n",
                  links, (unsigned long long)stage.scene->hostile_received,
                  (unsigned long long)stage.scene->bad_peer);
    assert_true(stage.scene->bad_peer > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_positions, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_forged_leftover, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_heads, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_flips, attack_setup, attack_teardown),
    };
    if (argc == 3 && strcmp(argv[1], "--seconds") == 0) {
        flip_seconds = (unsigned)strtoul(argv[2], NULL, 10);
        cmocka_set_test_filter("test_flips");
    }
    return cmocka_run_group_tests_name("scribble_memory", tests, NULL, NULL);
}
