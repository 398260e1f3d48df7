/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What narrows a choice: bounded load, slow start, subsets. Features 2.2 (hash_bound), 2.3.
 */
#include "bus/balance_bound.h"
#include "bus/balance_start.h"
#include "bus/balance_subset.h"
#include "support/test.h"

#include <string.h>

#define SLOTS 1024U

/* ---- bounded load ---------------------------------------------------------------------- */

static rbi_au64 loads[4][2];
static struct rbi_least_member members[4];
static uint64_t limits[4];
static uint16_t owners[3 * SLOTS];
static const struct rbi_table_shape shape = {.slots = SLOTS, .ranks = 3};

static void set(const uint64_t depths[4], const uint32_t weights[4], uint32_t percent)
{
    for (unsigned i = 0; i < 4; i++) {
        rbi_store_rlx(&loads[i][RBI_LEAST_DEPTH], depths[i]);
        members[i] = (struct rbi_least_member){.load = loads[i], .weight = weights[i]};
    }
    rbi_bound_refresh(limits, members, 4, percent);
}

static uint16_t pick(uint16_t first, uint16_t second, uint16_t third)
{
    owners[7] = first;
    owners[SLOTS + 7] = second;
    owners[2 * SLOTS + 7] = third;
    return rbi_bound_pick(owners, &shape, 7, members, limits);
}

static void test_bound_asks_the_next_rank(void **state)
{
    (void)state;
    const uint32_t even[] = {100, 100, 100, 100};
    /* 40 wait: the share of each is 10.25, 125 % of it 12.8. */
    set((const uint64_t[]){13, 14, 5, 8}, even, 125);
    assert_int_equal(pick(0, 1, 2), 0);
    assert_int_equal(pick(1, 0, 2), 0);
    assert_int_equal(pick(2, 1, 0), 2);
    members[0].unread = 1; /* own messages count, too */
    assert_int_equal(pick(0, 1, 2), 2);
    assert_int_equal(pick(1, 0, 2), 2);
    /* All owners are too busy: the first anyway. */
    assert_int_equal(pick(1, 0, RBI_TABLE_NONE), 1);
    assert_int_equal(pick(RBI_TABLE_NONE, RBI_TABLE_NONE, RBI_TABLE_NONE), RBI_PICK_NONE);
}

static void test_bound_is_by_weight(void **state)
{
    (void)state;
    const uint32_t weights[] = {300, 100, 0, UINT32_MAX};
    set((const uint64_t[]){UINT64_MAX, 3, 1000, 0}, weights, 125);
    assert_int_equal(limits[2], 0);
    assert_true(limits[3] >= (UINT32_MAX));
    const uint32_t three_one[] = {300, 100, 0, 0};
    set((const uint64_t[]){30, 9, 0, 0}, three_one, 100);
    assert_int_equal(limits[0], 30); /* 40 x 3 / 4 */
    assert_int_equal(limits[1], 10);
    const uint32_t none[] = {0, 0, 0, 0};
    set((const uint64_t[]){1, 1, 1, 1}, none, 100);
    assert_int_equal(limits[0], 0);
}

/* With nothing to do anywhere one message may wait: a quiet cluster keeps its keys. */
static void test_bound_leaves_quiet_members_alone(void **state)
{
    (void)state;
    const uint32_t even[] = {100, 100, 100, 100};
    set((const uint64_t[]){0, 0, 0, 0}, even, 125);
    members[0].unread = 1; /* since the limits were set */
    assert_int_equal(pick(0, 1, 2), 0);
}

/* ---- slow start ------------------------------------------------------------------------ */

static void test_slow_start_is_linear_by_default(void **state)
{
    (void)state;
    const struct rbi_balance_policy policy = {.slow_start_ms = 60000, .slow_start_min = 10};
    assert_int_equal(rbi_slow_start(&policy, 0), 10);
    assert_int_equal(rbi_slow_start(&policy, 6000), 10);
    assert_int_equal(rbi_slow_start(&policy, 30000), 50);
    assert_int_equal(rbi_slow_start(&policy, 59999), 99);
    assert_int_equal(rbi_slow_start(&policy, 60000), 100);
    assert_int_equal(rbi_slow_start(&policy, UINT64_MAX), 100);
    const struct rbi_balance_policy off = {.slow_start_min = 10};
    assert_int_equal(rbi_slow_start(&off, 0), 100);
    const struct rbi_balance_policy least = {.slow_start_ms = UINT32_MAX};
    assert_int_equal(rbi_slow_start(&least, 0), 1);
}

static void test_slow_start_aggression(void **state)
{
    (void)state;
    struct rbi_balance_policy policy = {.slow_start_ms = 10000, .slow_start_aggression = 200};
    assert_in_range(rbi_slow_start(&policy, 2500), 49, 50); /* a square root */
    assert_in_range(rbi_slow_start(&policy, 8100), 89, 90);
    policy.slow_start_aggression = 50;
    assert_in_range(rbi_slow_start(&policy, 5000), 24, 25); /* a square */
    assert_in_range(rbi_slow_start(&policy, 9000), 80, 81);
    for (uint32_t aggression = 1; aggression < 3000; aggression = aggression * 3 + 1) {
        uint32_t last = 0;
        policy.slow_start_aggression = aggression;
        for (uint64_t ms = 0; ms <= 10000; ms += 7) {
            const uint32_t percent = rbi_slow_start(&policy, ms);
            assert_in_range(percent, rbi_max_u64(last, 1), 100);
            last = percent;
        }
    }
}

static void test_weight_percent_keeps_some(void **state)
{
    (void)state;
    assert_int_equal(rbi_weight_percent(200, 50), 100);
    assert_int_equal(rbi_weight_percent(1, 10), 1);
    assert_int_equal(rbi_weight_percent(0, 10), 0);
    assert_int_equal(rbi_weight_percent(5, 0), 0);
    assert_true(rbi_weight_percent(UINT32_MAX, 100) == UINT32_MAX);
}

/* ---- subsets --------------------------------------------------------------------------- */

#define INSTANCES 40U
#define CALLERS   500U
#define SIZE      8U

static struct rbi_table_member instances[INSTANCES];

static void number(void)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        instances[i] = (struct rbi_table_member){(int32_t)(10 * i + 1), 100};
    }
}

static unsigned choose(uint64_t caller, uint16_t chosen[INSTANCES])
{
    const unsigned count = rbi_subset_choose(caller, instances, INSTANCES, SIZE, chosen);
    for (unsigned i = 1; i < count; i++) {
        assert_true(chosen[i - 1] < chosen[i]);
    }
    return count;
}

static void test_subsets_spread_evenly(void **state)
{
    (void)state;
    unsigned links[INSTANCES] = {0};
    uint16_t chosen[INSTANCES];
    number();
    for (uint64_t caller = 0; caller < CALLERS; caller++) {
        assert_int_equal(choose(caller, chosen), SIZE);
        for (unsigned i = 0; i < SIZE; i++) {
            links[chosen[i]]++;
        }
    }
    for (unsigned i = 0; i < INSTANCES; i++) {
        assert_in_range(links[i], 60, 140); /* 100, sigma 9 */
    }
}

/* One instance leaves: who had it takes another one, and nobody else changes anything. */
static void test_subsets_change_by_one(void **state)
{
    (void)state;
    uint16_t before[INSTANCES];
    uint16_t after[INSTANCES];
    unsigned changed = 0;
    for (uint64_t caller = 0; caller < CALLERS; caller++) {
        number();
        (void)choose(caller, before);
        instances[13].weight = 0;
        assert_int_equal(choose(caller, after), SIZE);
        unsigned kept = 0;
        bool had = false;
        for (unsigned i = 0; i < SIZE; i++) {
            had = had || before[i] == 13;
            for (unsigned j = 0; j < SIZE; j++) {
                kept += before[i] == after[j];
            }
        }
        assert_int_equal(kept, had ? SIZE - 1 : SIZE);
        changed += had;
    }
    assert_in_range(changed, 60, 140);
}

static void test_subset_of_few(void **state)
{
    (void)state;
    uint16_t chosen[INSTANCES];
    number();
    assert_int_equal(rbi_subset_choose(1, instances, 5, 8, chosen), 5);
    assert_int_equal(chosen[4], 4);
    assert_int_equal(rbi_subset_choose(1, instances, INSTANCES, 0, chosen), INSTANCES);
    instances[0].weight = 0;
    assert_int_equal(rbi_subset_choose(1, instances, 5, 0, chosen), 4);
    assert_int_equal(chosen[0], 1);
    assert_int_equal(rbi_subset_choose(1, instances, 0, 3, chosen), 0);
}

/* It never changes, or all callers would change their links with an upgrade. */
static void test_subset_golden(void **state)
{
    (void)state;
    static const uint16_t expected[2][4] = {{11, 12, 15, 31}, {32, 35, 37, 38}};
    uint16_t chosen[INSTANCES];
    number();
    for (uint64_t caller = 0; caller < 2; caller++) {
        assert_int_equal(
            rbi_subset_choose(caller * UINT64_C(123456789), instances, INSTANCES, 4, chosen), 4);
        assert_memory_equal(chosen, expected[caller], sizeof expected[caller]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_asks_the_next_rank),
        cmocka_unit_test(test_bound_is_by_weight),
        cmocka_unit_test(test_bound_leaves_quiet_members_alone),
        cmocka_unit_test(test_slow_start_is_linear_by_default),
        cmocka_unit_test(test_slow_start_aggression),
        cmocka_unit_test(test_weight_percent_keeps_some),
        cmocka_unit_test(test_subsets_spread_evenly),
        cmocka_unit_test(test_subsets_change_by_one),
        cmocka_unit_test(test_subset_of_few),
        cmocka_unit_test(test_subset_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
