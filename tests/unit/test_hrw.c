/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous table. Scenario 84 (same key, same instance, for every caller), 92 (odd
 * weights): properties over random memberships, and a vector that never changes.
 */
#include "bus/hrw.h"
#include "bus/hrw_log2.h"
#include "support/test.h"

#include <string.h>
#include <xxhash.h>

#define SLOTS       4096U
#define MEMBERS_MAX 24U

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

static int32_t instance_of(const struct rbi_hrw_member *members, uint16_t owner)
{
    return owner == RBI_HRW_NONE ? 0 : members[owner].instance;
}

/** Owner of each slot, by instance. */
static void
build(const struct rbi_hrw_member *members, unsigned count, uint32_t slots, int32_t *by_slot)
{
    static uint16_t owner[65536];
    rbi_hrw_build(owner, slots, members, count);
    for (uint32_t i = 0; i < slots; i++) {
        by_slot[i] = instance_of(members, owner[i]);
    }
}

static void shuffle(struct rbi_hrw_member *members, unsigned count)
{
    for (unsigned i = count; i > 1; i--) {
        const unsigned j = random_below(i);
        const struct rbi_hrw_member kept = members[i - 1];
        members[i - 1] = members[j];
        members[j] = kept;
    }
}

/** Adds, removes or re-weighs one member. @return its instance */
static int32_t change(struct rbi_hrw_member *members, unsigned *count, int32_t *next_id)
{
    const uint32_t what = random_below(3);
    if ((what == 0 && *count < MEMBERS_MAX) || *count == 0) {
        members[*count] =
            (struct rbi_hrw_member){.instance = *next_id, .weight = random_below(400)};
        *next_id += 1 + (int32_t)random_below(100000);
        return members[(*count)++].instance;
    }
    const unsigned i = random_below(*count);
    const int32_t instance = members[i].instance;
    if (what == 1) {
        members[i] = members[--*count];
    } else {
        members[i].weight = random_below(400);
    }
    return instance;
}

static void test_build_moves_only_keys_of_the_changed_member(void **state)
{
    (void)state;
    static int32_t before[SLOTS];
    static int32_t after[SLOTS];
    struct rbi_hrw_member members[MEMBERS_MAX] = {{0, 0}};
    unsigned count = 0;
    int32_t next_id = 1;
    unsigned moved = 0;
    seed = 7;
    build(members, count, SLOTS, before);
    for (unsigned step = 0; step < 1000; step++) {
        const int32_t changed = change(members, &count, &next_id);
        shuffle(members, count); /* order of arrival must not matter */
        build(members, count, SLOTS, after);
        for (uint32_t i = 0; i < SLOTS; i++) {
            if (before[i] != after[i]) {
                moved++;
                assert_true(before[i] == changed || after[i] == changed);
            }
        }
        memcpy(before, after, sizeof before);
    }
    assert_true(moved > 10000); /* the steps did something */
}

static void test_build_weight_moves_one_way(void **state)
{
    (void)state;
    static int32_t before[SLOTS];
    static int32_t after[SLOTS];
    struct rbi_hrw_member members[] = {{1, 100}, {2, 100}, {3, 100}, {4, 10}};
    build(members, 4, SLOTS, before);
    for (uint32_t weight = 11; weight < 400; weight += 13) {
        members[3].weight = weight;
        build(members, 4, SLOTS, after);
        for (uint32_t i = 0; i < SLOTS; i++) {
            /* A rising weight only gains: what it has, it keeps. */
            assert_true(before[i] == after[i] || after[i] == 4);
        }
        memcpy(before, after, sizeof before);
    }
}

static void test_build_order_is_nothing(void **state)
{
    (void)state;
    static int32_t one[16384];
    static int32_t two[16384];
    struct rbi_hrw_member members[MEMBERS_MAX];
    seed = 99;
    for (unsigned i = 0; i < MEMBERS_MAX; i++) {
        members[i] = (struct rbi_hrw_member){.instance = (int32_t)(i * 1000003U + 1),
                                             .weight = 1 + random_below(1000)};
    }
    build(members, MEMBERS_MAX, 16384, one);
    for (unsigned round = 0; round < 10; round++) {
        shuffle(members, MEMBERS_MAX);
        build(members, MEMBERS_MAX, 16384, two);
        assert_memory_equal(one, two, sizeof one);
    }
}

static void test_build_load_is_fair(void **state)
{
    (void)state;
    static uint16_t owner[65536];
    struct rbi_hrw_member members[32];
    for (unsigned n = 2; n <= 32; n *= 2) {
        unsigned load[32] = {0};
        uint64_t total = 0;
        for (unsigned i = 0; i < n; i++) {
            members[i] = (struct rbi_hrw_member){.instance = (int32_t)i + 1,
                                                 .weight = i % 2 == 0 ? 100 : 200};
            total += members[i].weight;
        }
        rbi_hrw_build(owner, 65536, members, n);
        for (unsigned i = 0; i < 65536; i++) {
            load[owner[i]]++;
        }
        for (unsigned i = 0; i < n; i++) {
            const int64_t share = (int64_t)(65536 * (uint64_t)members[i].weight / total);
            const int64_t off = (int64_t)load[i] - share;
            assert_true(off * off <= 16 * share + 16); /* 4 sigma */
        }
    }
}

static void test_build_odd_weights(void **state)
{
    (void)state;
    static uint16_t owner[65536];
    const struct rbi_hrw_member zero_one[] = {{1, 0}, {2, 1}};
    const struct rbi_hrw_member zeros[] = {{1, 0}, {2, 0}};
    const struct rbi_hrw_member extreme[] = {{1, 1}, {2, 1000000}};
    const struct rbi_hrw_member hundred[] = {{1, 1}, {2, 99}};
    const struct rbi_hrw_member huge[] = {{1, UINT32_MAX}, {2, UINT32_MAX}, {3, 1}};
    rbi_hrw_build(owner, SLOTS, zero_one, 2);
    for (unsigned i = 0; i < SLOTS; i++) {
        assert_int_equal(owner[i], 1);
    }
    rbi_hrw_build(owner, SLOTS, zeros, 2);
    for (unsigned i = 0; i < SLOTS; i++) {
        assert_int_equal(owner[i], RBI_HRW_NONE);
    }
    rbi_hrw_build(owner, SLOTS, NULL, 0);
    assert_int_equal(owner[0], RBI_HRW_NONE);
    rbi_hrw_build(owner, 1, zero_one, 2);
    assert_int_equal(owner[0], 1);

    unsigned first = 0;
    rbi_hrw_build(owner, 65536, extreme, 2);
    for (unsigned i = 0; i < 65536; i++) {
        first += owner[i] == 0;
    }
    assert_true(first <= 2);
    first = 0;
    rbi_hrw_build(owner, 65536, hundred, 2);
    for (unsigned i = 0; i < 65536; i++) {
        first += owner[i] == 0;
    }
    assert_in_range(first, 655 - 100, 655 + 100);
    first = 0;
    rbi_hrw_build(owner, 65536, huge, 3);
    for (unsigned i = 0; i < 65536; i++) {
        assert_int_not_equal(owner[i], 2);
        first += owner[i] == 0;
    }
    assert_in_range(first, 32768 - 512, 32768 + 512);
}

static void test_build_equal_ids_go_to_the_first(void **state)
{
    (void)state;
    static uint16_t owner[SLOTS];
    const struct rbi_hrw_member twins[] = {{5, 10}, {5, 10}};
    rbi_hrw_build(owner, SLOTS, twins, 2);
    for (unsigned i = 0; i < SLOTS; i++) {
        assert_int_equal(owner[i], 0);
    }
}

static void test_log2_table(void **state)
{
    (void)state;
    /* Bit by bit through squaring, in integers: log2 of 1 + i / 256 to 32 bits. */
    for (unsigned i = 0; i <= 256; i++) {
        uint64_t x = ((uint64_t)256 + i) << 54; /* 1 in bit 62 */
        uint64_t bits = 0;
        if (i == 256) {
            assert_true(rbi_hrw_log2[i] == UINT64_C(1) << 32);
            continue;
        }
        for (unsigned bit = 0; bit < 40; bit++) {
            const uint64_t high = x >> 32;
            const uint64_t low = x & UINT32_MAX;
            uint64_t square = high * high + (((high * low) >> 32) << 1); /* 2^60 is 1 */
            bits <<= 1;
            if (square >= UINT64_C(1) << 61) {
                bits |= 1;
                square >>= 1;
            }
            x = square << 2;
        }
        const uint64_t rounded = (bits + 128) >> 8;
        const uint64_t off =
            rounded > rbi_hrw_log2[i] ? rounded - rbi_hrw_log2[i] : rbi_hrw_log2[i] - rounded;
        assert_true(off <= 8); /* the squaring above loses a little */
    }
}

/* Committed with the first release: if this fails, keys would change hands on an upgrade. */
static void test_build_golden(void **state)
{
    (void)state;
    static int32_t by_slot[16384];
    static const int32_t by_key[24] = {50464257, 3, 2,         3,        1, 3, 2, 50464257,
                                       3,        1, 1,         2,        2, 1, 3, 1,
                                       50464257, 1, 123456789, 50464257, 3, 1, 3, 3};
    const struct rbi_hrw_member members[] = {
        {1, 100}, {2, 100}, {3, 200}, {0x03020601, 50}, {123456789, 100}};
    build(members, 5, 16384, by_slot);
    for (unsigned key = 0; key < 24; key++) {
        assert_int_equal(by_slot[rbi_hrw_slot(key, 16384)], by_key[key]);
    }
    assert_true(XXH3_64bits(by_slot, sizeof by_slot) == UINT64_C(0xefac12b1a428ae33));
}

static void test_slot_spreads_sequential_keys(void **state)
{
    (void)state;
    static unsigned hits[RBI_HRW_SLOTS];
    for (uint64_t key = 0; key < 16 * (uint64_t)RBI_HRW_SLOTS; key++) {
        const uint32_t slot = rbi_hrw_slot(key, RBI_HRW_SLOTS);
        assert_true(slot < RBI_HRW_SLOTS);
        hits[slot]++;
    }
    unsigned most = 0;
    unsigned empty = 0;
    for (unsigned i = 0; i < RBI_HRW_SLOTS; i++) {
        most = hits[i] > most ? hits[i] : most;
        empty += hits[i] == 0;
    }
    assert_true(most < 48); /* Poisson with mean 16 */
    assert_true(empty < 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_moves_only_keys_of_the_changed_member),
        cmocka_unit_test(test_build_weight_moves_one_way),
        cmocka_unit_test(test_build_order_is_nothing),
        cmocka_unit_test(test_build_load_is_fair),
        cmocka_unit_test(test_build_odd_weights),
        cmocka_unit_test(test_build_equal_ids_go_to_the_first),
        cmocka_unit_test(test_log2_table),
        cmocka_unit_test(test_build_golden),
        cmocka_unit_test(test_slot_spreads_sequential_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
