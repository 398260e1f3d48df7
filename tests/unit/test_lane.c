/* SPDX-License-Identifier: Apache-2.0 */
/* The lane: positions that wrap, every size at every place, what is left in its lines. */
#include "unit/lane.h"

/* Positions pass 2^32, 2^63 and 2^64 with mixed sizes; the fill level never leaves its range. */
static void run_over_wrap(uint64_t start_pos, unsigned messages)
{
    struct fixture f;
    setup(&f, CAPACITY, start_pos);
    uint64_t rng = 88172645463325252U;
    unsigned sent = 0;
    unsigned received = 0;
    uint64_t sizes[256]; /* more than records fit */
    while (received < messages) {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        const uint64_t size =
            (rng >> 8) % 8 == 0 ? rng % (rbi_lane_body_max(CAPACITY) + 1) : rng % 200;
        if (sent < messages && put(&f, size, sent) == RBI_LANE_OK) {
            sizes[sent++ % 256] = size;
        }
        const uint64_t used = rbi_lane_used(&f.tx);
        assert_true(used <= CAPACITY);
        assert_true(f.tx.zeroed - f.tx.pos <= CAPACITY);
        if (rng % 3 == 0) {
            for (unsigned n = (unsigned)(rng >> 32) % 20; n > 0 && received < sent; n--) {
                take(&f, sizes[received % 256], received);
                received++;
            }
            rbi_lane_release(&f.rx);
        }
    }
    assert_empty(&f);
    teardown(&f);
}

static void test_lane_positions_wrap(void **state)
{
    (void)state;
    run_over_wrap((UINT64_C(1) << 32) - 1024, 100000);
    run_over_wrap((UINT64_C(1) << 63) - 1024, 100000);
    run_over_wrap((uint64_t)0 - 1024, 100000);
    run_over_wrap(0, 100000);
}

/* Every line of a 4 KiB lane as the start, every size in steps of 8 and around them. */
static void test_lane_each_offset_and_size(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    assert_int_equal(max, CAPACITY - 512 - 64 - 8);
    unsigned seed = 0;
    for (uint64_t line = 0; line < CAPACITY / RBI_LINE; line++) {
        for (uint64_t size = 0; size <= max; size += 8) {
            while ((f.tx.pos & f.tx.mask) != line * RBI_LINE) {
                assert_int_equal(put(&f, 1, 7), RBI_LANE_OK);
                take(&f, 1, 7);
                rbi_lane_release(&f.rx);
            }
            const uint64_t exact = rbi_min_u64(max, size + seed % 3);
            assert_int_equal(put(&f, exact, seed), RBI_LANE_OK);
            take(&f, exact, seed);
            assert_empty(&f);
            rbi_lane_release(&f.rx);
            assert_int_equal(rbi_lane_used(&f.tx), 0);
            seed++;
        }
    }
    teardown(&f);
}

static void test_lane_size_zero_is_delivered(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    assert_int_equal(put(&f, 0, 5), RBI_LANE_OK);
    take(&f, 0, 5);
    assert_empty(&f);
    teardown(&f);
}

/* All lines but the one that stays zero can be in use, and no more; no deadlock afterwards. */
static void test_lane_exact_fit(void **state)
{
    (void)state;
    for (uint64_t start = 0; start < CAPACITY; start += RBI_LINE) {
        struct fixture f;
        setup(&f, CAPACITY, start);
        for (unsigned round = 0; round < 3; round++) {
            for (unsigned i = 0; i < CAPACITY / RBI_LINE - 1; i++) {
                assert_int_equal(put(&f, 56, i), RBI_LANE_OK);
            }
            assert_int_equal(put(&f, 0, 0), RBI_LANE_FULL);
            assert_int_equal(rbi_lane_used(&f.tx), CAPACITY - RBI_LINE);
            for (unsigned i = 0; i < CAPACITY / RBI_LINE - 1; i++) {
                take(&f, 56, i);
            }
            assert_empty(&f);
            assert_int_equal(put(&f, 0, 0), RBI_LANE_FULL); /* not released yet */
            rbi_lane_release(&f.rx);
        }
        assert_int_equal(put(&f, rbi_lane_body_max(CAPACITY), 3), RBI_LANE_OK);
        take(&f, rbi_lane_body_max(CAPACITY), 3);
        assert_empty(&f);
        teardown(&f);
    }
}

/* Data leaves room; the largest record fits an empty lane even so; control uses that room. */
static void test_lane_control_room(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    unsigned char *body = NULL;
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    assert_int_equal(rbi_lane_reserve(&f.tx, max, RBI_LANE_CONTROL_ROOM, &body), RBI_LANE_OK);
    unsigned data = 0;
    while (rbi_lane_reserve(&f.tx, 56, RBI_LANE_CONTROL_ROOM, &body) == RBI_LANE_OK) {
        rbi_lane_commit(&f.tx, 56, 1);
        data++;
    }
    assert_int_equal(data, CAPACITY / RBI_LINE - 1 - 8);
    unsigned control = 0;
    while (rbi_lane_reserve(&f.tx, 56, 0, &body) == RBI_LANE_OK) {
        rbi_lane_commit(&f.tx, 56, 1);
        control++;
    }
    assert_int_equal(control, 8);
    teardown(&f);
}

static void test_lane_reserve_refuses_sizes_over_the_limit(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    const uint64_t sizes[] = {max + 1,           CAPACITY,          CAPACITY + 1,
                              UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 8,
                              UINT64_MAX - 71,   UINT64_MAX - 8,    UINT64_MAX};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(sizes); i++) {
        unsigned char *body = NULL;
        assert_int_equal(rbi_lane_reserve(&f.tx, sizes[i], 0, &body), -EMSGSIZE);
        assert_null(body);
        assert_int_equal(f.tx.pos, 0);
    }
    assert_int_equal(put(&f, max, 1), RBI_LANE_OK);
    take(&f, max, 1);
    teardown(&f);
}

/* What an aborted or a shortened reservation left in the lines is never taken for a record. */
static void test_lane_abort_and_shorter_commit(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    for (unsigned i = 0; i < 2000; i++) {
        unsigned char *body = NULL;
        const uint64_t reserved = (i * 97U) % max + 1;
        assert_int_equal(rbi_lane_reserve(&f.tx, reserved, 0, &body), RBI_LANE_OK);
        memset(body, 0x11, reserved);
        assert_empty(&f);
        if (i % 3 == 0) {
            /* aborted; a smaller one takes its place */
            const uint64_t size = reserved / (1 + i % 5);
            assert_int_equal(put(&f, size, i), RBI_LANE_OK);
            take(&f, size, i);
        } else {
            const uint64_t size = reserved / (1 + i % 7);
            fill(body, size, i);
            rbi_lane_commit_seq(&f.tx, size, i + 1);
            take(&f, size, i);
        }
        assert_empty(&f);
        rbi_lane_release_seq(&f.rx);
        assert_empty(&f);
    }
    teardown(&f);
}

/*
 * Lines that a large record is to be written over are not zeroed first. If it is then not
 * written, or a shorter one is, what lies there must not pass for a record.
 */
static void test_lane_large_records_leave_nothing(void **state)
{
    (void)state;
    const uint64_t capacity = UINT64_C(65536);
    struct fixture f;
    setup(&f, capacity, (uint64_t)0 - capacity);
    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t large = 2000 + i * 7919 % (rbi_lane_body_max(capacity) - 2000);
        const uint64_t sent = i % 3 == 0 ? large : i % 3 == 1 ? large * (i % 5) / 5 : 40;
        unsigned char *body = NULL;
        assert_int_equal(rbi_lane_reserve(&f.tx, large, 0, &body), RBI_LANE_OK);
        fill(body, large, i);
        if (i % 3 == 2) { /* given up for a small one */
            assert_int_equal(rbi_lane_reserve(&f.tx, sent, 0, &body), RBI_LANE_OK);
        }
        fill(body, sent, i);
        rbi_lane_commit(&f.tx, sent, (uint32_t)(i % 0xfffff) + 1);
        take(&f, sent, i);
        assert_empty(&f);
        rbi_lane_release(&f.rx);
    }
    teardown(&f);
}

/* Publishing again what is published already must not take the line from the producer. */
static void test_lane_release_stores_only_what_is_new(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    rbi_store_rlx(&f.read_pos, 640);
    rbi_lane_release(&f.rx);
    assert_int_equal(rbi_load_rlx(&f.read_pos), 640);
    rbi_lane_release_seq(&f.rx); /* orders the look at want_pos: always stores */
    assert_int_equal(rbi_load_rlx(&f.read_pos), 0);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_positions_wrap),
        cmocka_unit_test(test_lane_each_offset_and_size),
        cmocka_unit_test(test_lane_size_zero_is_delivered),
        cmocka_unit_test(test_lane_exact_fit),
        cmocka_unit_test(test_lane_control_room),
        cmocka_unit_test(test_lane_reserve_refuses_sizes_over_the_limit),
        cmocka_unit_test(test_lane_abort_and_shorter_commit),
        cmocka_unit_test(test_lane_release_stores_only_what_is_new),
        cmocka_unit_test(test_lane_large_records_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
