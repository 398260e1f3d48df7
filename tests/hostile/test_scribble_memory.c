/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile peer writes into its positions, rings, heads and page, and flips words under
 * the reader, while an honest one goes on. --seconds N sets how long words are flipped.
 */
#include "hostile/attack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned flip_seconds = 3;

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
};

/** Never the whole lane at once: a good part of the records must be possible. */
static void *flip(void *context)
{
    struct flipper *flipper = context;
    uint64_t state = 0x9e3779b97f4a7c15;
    unsigned char *lane = (unsigned char *)flipper->side + RBI_PAGE;
    while (!flipper->stop) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t dice = state >> 33;
        const uint64_t value =
            dice % 3 == 0 ? (uint64_t)rbi_record_meta((enum rbi_record_kind)(dice % 12),
                                                      dice >> 4 & 3, dice >> 6 & 3, dice >> 8 & 3)
                                    << 32 |
                                (dice & 0xfff)
                          : extremes[dice % RBI_ARRAY_SIZE(extremes)];
        const uint64_t at = (state >> 20) % PEER_LANE_CAPACITY & ~UINT64_C(7);
        if (dice % 64 == 0) {
            rbi_store_rlx(&flipper->side->want_pos, value);
        } else if (dice % 256 == 1) {
            rbi_store_rlx(&flipper->page->sleep_epoch, value);
        } else if (dice % 16 == 2) {
            /* Not its head: the next link would be refused. */
            ((volatile uint64_t *)(void *)flipper->pool)[8 + at % 2048 / 8] = value;
        } else if (at % 64 != 0 || dice % 65536 == 3) {
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
    struct flipper flipper = {
        .side = peer_side(&peer), .page = peer_page(&peer), .pool = peer.raw.pool.base, .stop = 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, flip, &flipper), 0);
    bool ended = false;
    for (unsigned i = 0; i < records && !ended; i++) {
        const bool plain = roll() % 16 != 0;
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
}

static void test_flips(void **state)
{
    const uint64_t deadline_ms = test_now_ms() + flip_seconds * UINT64_C(1000);
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
        cmocka_unit_test_setup_teardown(test_heads, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_flips, attack_setup, attack_teardown),
    };
    if (argc == 3 && strcmp(argv[1], "--seconds") == 0) {
        flip_seconds = (unsigned)strtoul(argv[2], NULL, 10);
        cmocka_set_test_filter("test_flips");
    }
    return cmocka_run_group_tests_name("scribble_memory", tests, NULL, NULL);
}
