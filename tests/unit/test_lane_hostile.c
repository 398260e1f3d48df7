/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lane with a partner whose words are wrong, or who is dead: what had not been read, and lanes
 * of which one mapping only is there.
 */
#include "unit/lane.h"

static void test_lane_reserve_refuses_hostile_read_positions(void **state)
{
    (void)state;
    for (unsigned step = 0; step < 4; step++) {
        struct fixture f;
        setup(&f, CAPACITY, (uint64_t)0 - 2048);
        while (put(&f, 56, 1) == RBI_LANE_OK) {
        }
        const uint64_t start = f.tx.read_seen;
        const uint64_t hostile[] = {
            start - RBI_LINE,    /* behind what it said before */
            f.tx.pos + RBI_LINE, /* ahead of what was written */
            start + 1,           /* no line */
            start + (UINT64_C(1) << 63),
        };
        unsigned char *body = NULL;
        rbi_store_rlx(&f.read_pos, hostile[step]);
        assert_int_equal(rbi_lane_reserve(&f.tx, 56, 0, &body), -EPROTO);
        assert_null(body);
        assert_int_equal(rbi_lane_used(&f.tx), CAPACITY - RBI_LINE);
        assert_true(rbi_lane_unread_first(&f.tx) == start);
        teardown(&f);
    }
}

/* The producer owns the bytes and writes what it likes: never a byte outside, never a hang. */
static void test_lane_peek_refuses_hostile_records(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    const uint64_t words[] = {1,
                              UINT64_C(1) << 32 | (max + 1),
                              UINT64_C(1) << 32 | UINT32_MAX,
                              UINT64_C(1) << 32 | CAPACITY,
                              UINT64_MAX,
                              UINT32_MAX};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(words); i++) {
        struct rbi_lane_record record = {.size = 12345};
        rbi_store_rlx(rbi_au64_at(f.base, 0), words[i]);
        assert_int_equal(rbi_lane_peek(&f.rx, &record), -EPROTO);
        assert_int_equal(record.size, 12345);
    }
    struct rbi_lane_record record = {0};
    f.rx.pos = CAPACITY - RBI_LINE;
    rbi_store_rlx(rbi_au64_at(f.base, CAPACITY - RBI_LINE), UINT64_C(1) << 32 | max);
    assert_int_equal(rbi_lane_peek(&f.rx, &record), RBI_LANE_OK);
    assert_true(record.body + record.size <= f.base + 2 * (size_t)CAPACITY);
    teardown(&f);
}

/* What a dead receiver had not released is walked record by record. */
static void test_lane_unread_walk(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, (uint64_t)0 - 1024);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(put(&f, i * 10, i), RBI_LANE_OK);
    }
    for (unsigned i = 0; i < 7; i++) {
        take(&f, i * 10, i);
    }
    rbi_lane_release(&f.rx);
    unsigned char *body = NULL;
    assert_int_equal(rbi_lane_reserve(&f.tx, 500, 0, &body), RBI_LANE_OK); /* never committed */
    memset(body, 0x11, 500);
    uint64_t pos = rbi_lane_unread_first(&f.tx);
    struct rbi_lane_record record = {0};
    unsigned i = 7;
    for (; rbi_lane_unread_at(&f.tx, pos, &record) == RBI_LANE_OK; pos = record.next) {
        assert_int_equal(record.size, i * 10);
        assert_true(filled(record.body, record.size, i));
        i++;
    }
    assert_int_equal(i, 20);
    teardown(&f);
}

/* What is withdrawn is still walked, and the receiver sees it for what it is. */
static void test_lane_withdrawn_from_a_position_on(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, (uint64_t)0 - 1024);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(put(&f, 100 + i, i), RBI_LANE_OK);
    }
    struct rbi_lane_record record = {0};
    uint64_t pos = rbi_lane_unread_first(&f.tx);
    assert_int_equal(rbi_lane_unread_at(&f.tx, pos, &record), RBI_LANE_OK);
    rbi_lane_withdraw(&f.tx, record.next);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(rbi_lane_unread_at(&f.tx, pos, &record), RBI_LANE_OK);
        assert_int_equal(record.size, 100 + i);
        pos = record.next;
        assert_int_equal(rbi_lane_peek(&f.rx, &record), RBI_LANE_OK);
        assert_true(rbi_lane_is_withdrawn(&record) == (i > 0));
        rbi_lane_advance(&f.rx, &record);
    }
    assert_int_equal(rbi_lane_unread_at(&f.tx, pos, &record), RBI_LANE_EMPTY);
    teardown(&f);
}

/* A hostile receiver stops inside a record: the walk stays within what was written. */
static void test_lane_unread_walk_from_inside_a_record(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    unsigned char *body = NULL;
    assert_int_equal(rbi_lane_reserve(&f.tx, 2000, 0, &body), RBI_LANE_OK);
    for (uint64_t offset = 0; offset + 8 <= 2000; offset += 8) {
        const uint64_t word =
            UINT64_C(1) << 32 | (offset * 3); /* a record, too long from some place on */
        memcpy(body + offset, &word, sizeof word);
    }
    rbi_lane_commit(&f.tx, 2000, 1);
    for (uint64_t pos = 0; pos <= f.tx.pos + 4096; pos += RBI_LINE) {
        struct rbi_lane_record record;
        if (rbi_lane_unread_at(&f.tx, pos, &record) == RBI_LANE_OK) {
            assert_true(record.next - pos <= f.tx.pos - pos);
            assert_true(record.size <= f.tx.pos - pos - RBI_LANE_HEADER);
        }
    }
    teardown(&f);
}

/** Takes the second mapping away, as before the first message of a link. */
static void shut(struct fixture *f)
{
    assert_true(mmap(f->base + f->capacity, f->capacity, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    rbi_lane_tx_shut(&f->tx);
    rbi_lane_rx_shut(&f->rx);
    assert_true(rbi_lane_tx_is_shut(&f->tx) && rbi_lane_rx_is_shut(&f->rx));
}

/* Nothing but control records of a line, lap after lap, and none touches the missing half. */
static void test_lane_shut_takes_what_does_not_wrap(void **state)
{
    (void)state;
    struct fixture f;
    struct rbi_lane_record record = {0};
    unsigned char *body = NULL;
    setup(&f, CAPACITY, 0);
    shut(&f);
    for (unsigned i = 0; i < 3 * CAPACITY / RBI_LINE; i++) {
        const uint64_t left = CAPACITY - (f.tx.pos & f.tx.mask);
        assert_int_equal(rbi_lane_reserve(&f.tx, 1, 0, &body), -EMSGSIZE);
        if (left < 1024) {
            assert_int_equal(rbi_lane_reserve_once(&f.tx, left - 7, 0, &body), -EMSGSIZE);
        }
        assert_int_equal(rbi_lane_reserve_once(&f.tx, 56, 0, &body), RBI_LANE_OK);
        fill(body, 56, i);
        rbi_lane_commit(&f.tx, 56, i + 1);
        take(&f, 56, i);
        rbi_lane_release(&f.rx);
    }
    /* What fits in front of the end is a matter of asking for it. */
    assert_int_equal(f.tx.pos % CAPACITY, 0);
    assert_int_equal(rbi_lane_reserve_once(&f.tx, 500, 0, &body), RBI_LANE_OK);
    fill(body, 500, 7);
    rbi_lane_commit(&f.tx, 500, 1);
    assert_int_equal(rbi_lane_peek(&f.rx, &record), -EPROTO);
    assert_int_equal(rbi_lane_peek_once(&f.rx, &record), RBI_LANE_OK);
    assert_true(record.size == 500 && filled(record.body, 500, 7));
    teardown(&f);
}

/* A hostile record in a shut lane never leads behind the one mapping, at whatever position. */
static void test_lane_shut_believes_nothing_that_wraps(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    for (uint64_t pos = 0; pos < CAPACITY; pos += RBI_LINE) {
        setup(&f, CAPACITY, pos);
        shut(&f);
        const uint64_t left = CAPACITY - pos;
        const uint64_t sizes[] = {0,        8,        56,  57,      left - 9,
                                  left - 8, left - 7, max, max + 1, UINT32_MAX};
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(sizes); i++) {
            struct rbi_lane_record record;
            rbi_store_rlx(rbi_au64_at(f.base, pos), UINT64_C(1) << 32 | sizes[i]);
            int r = rbi_lane_peek(&f.rx, &record);
            assert_int_equal(r, sizes[i] <= 56 ? RBI_LANE_OK : -EPROTO);
            r = rbi_lane_peek_once(&f.rx, &record);
            assert_int_equal(r, sizes[i] + 8 <= left && sizes[i] <= max ? RBI_LANE_OK : -EMSGSIZE);
            if (r == RBI_LANE_OK) {
                assert_true(record.body + record.size <= f.base + CAPACITY);
            }
        }
        rbi_store_rlx(rbi_au64_at(f.base, pos), 8); /* meta 0 */
        struct rbi_lane_record record;
        assert_int_equal(rbi_lane_peek(&f.rx, &record), -EPROTO);
        assert_int_equal(rbi_lane_peek_once(&f.rx, &record), -EPROTO);
        teardown(&f);
    }
}

static void test_lane_opens_with_its_full_size(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    unsigned char *body = NULL;
    setup(&f, CAPACITY, 3 * CAPACITY - RBI_LINE);
    rbi_lane_tx_shut(&f.tx);
    rbi_lane_rx_shut(&f.rx);
    assert_int_equal(rbi_lane_reserve(&f.tx, max, 0, &body), -EMSGSIZE);
    rbi_lane_tx_open(&f.tx);
    rbi_lane_rx_open(&f.rx);
    assert_false(rbi_lane_tx_is_shut(&f.tx) || rbi_lane_rx_is_shut(&f.rx));
    assert_int_equal(put(&f, max, 5), RBI_LANE_OK);
    take(&f, max, 5);
    assert_int_equal(rbi_lane_reserve(&f.tx, max + 1, 0, &body), -EMSGSIZE);
    teardown(&f);
}

/** Bodies that are commit words where a line begins; a reader may not stand on any of them. */
static void test_lane_read_pos_inside_a_record(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t seed = 99;
    unsigned inside = 0;
    setup(&f, CAPACITY, (uint64_t)0 - 8192);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned char *body = NULL;
        seed = seed * UINT64_C(6364136223846793005) + 1;
        const uint64_t size = (seed >> 33) % (i % 7 == 0 ? rbi_lane_body_max(CAPACITY) + 1 : 300);
        const uint64_t sent = size - (i % 5 == 0 ? size / 2 : 0);
        const uint64_t start = f.tx.pos;
        const uint64_t published = rbi_load_rlx(&f.read_pos);
        const int r = rbi_lane_reserve(&f.tx, size, 0, &body);
        if (r == RBI_LANE_FULL) {
            struct rbi_lane_record record;
            assert_int_equal(rbi_lane_peek(&f.rx, &record), RBI_LANE_OK);
            rbi_lane_advance(&f.rx, &record);
            rbi_lane_release(&f.rx);
            continue;
        }
        assert_int_equal(r, RBI_LANE_OK);
        fill(body, size, i);
        if (i % 3 == 0) {
            continue; /* replaced by the next one */
        }
        rbi_lane_commit(&f.tx, sent, 1 + i % 200);
        for (uint64_t pos = start; pos - start <= f.tx.pos - start; pos += RBI_LINE) {
            uint64_t got = 0;
            const bool whole = pos == start || pos == f.tx.pos;
            rbi_store_rlx(&f.read_pos, pos);
            assert_int_equal(rbi_lane_read_pos(&f.tx, &got), whole ? 0 : -EPROTO);
            inside += !whole;
        }
        rbi_store_rlx(&f.read_pos, published);
    }
    assert_true(inside > 10000);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_read_pos_inside_a_record),
        cmocka_unit_test(test_lane_reserve_refuses_hostile_read_positions),
        cmocka_unit_test(test_lane_peek_refuses_hostile_records),
        cmocka_unit_test(test_lane_unread_walk),
        cmocka_unit_test(test_lane_withdrawn_from_a_position_on),
        cmocka_unit_test(test_lane_unread_walk_from_inside_a_record),
        cmocka_unit_test(test_lane_shut_takes_what_does_not_wrap),
        cmocka_unit_test(test_lane_shut_believes_nothing_that_wraps),
        cmocka_unit_test(test_lane_opens_with_its_full_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
