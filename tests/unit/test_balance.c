/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ways to choose behind one call. Features 2.2, 2.3; scenarios 84 (callers agree on every
 * key), 92 (weight 0 gets nothing, all 0 is nobody, callers do not start together).
 */
#include "bus/balance.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 64U

/** A caller with all its memory. */
struct caller {
    struct rbi_balance balance;
    struct rbi_balance_plan plan;
    struct rbi_least_member members[MEMBERS_MAX];
    uint32_t weights[MEMBERS_MAX];
    rbi_au64 loads[MEMBERS_MAX][2];
    struct rbi_table_member sorted[MEMBERS_MAX];
    struct rbi_table table;
    uint16_t owners[RBI_TABLE_RANKS_MAX * (size_t)RBI_TABLE_SLOTS_MAGLEV];
    void *memory;
};

static struct caller callers[2];

static void *take(size_t bytes)
{
    void *out = NULL;
    assert_int_equal(posix_memalign(&out, 16, bytes + 1), 0);
    return out;
}

static void build_table(struct caller *caller, unsigned count)
{
    struct rbi_table_shape shape;
    struct rbi_table_build build;
    if (!rbi_balance_shape(caller->plan.policy, &shape)) {
        return;
    }
    void *scratch = take(rbi_table_scratch_bytes(&shape, count, 0));
    rbi_table_build_begin(&build, &shape, NULL, caller->sorted, count, caller->owners, scratch);
    while (!rbi_table_build_step(&build, 100000)) {
    }
    caller->table = rbi_table_built(&build);
    rbi_balance_set_table(&caller->balance, &caller->table);
    free(scratch);
}

/** Members with the instances 1, 11, 21 ... @param weights  NULL: 100 each */
static void build(struct caller *caller,
                  const struct rbi_balance_policy *policy,
                  const uint32_t *weights,
                  unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const uint32_t weight = weights != NULL ? weights[i] : 100;
        caller->members[i] = (struct rbi_least_member){.load = caller->loads[i], .weight = weight};
        caller->sorted[i] = (struct rbi_table_member){(int32_t)(10 * i + 1), weight};
        rbi_store_rlx(&caller->loads[i][RBI_LEAST_DEPTH], 0);
    }
    rbi_balance_plan(&caller->plan, policy, caller->members, count, caller->weights);
    void *scratch = take(caller->plan.scratch_bytes);
    free(caller->memory);
    caller->memory = take(caller->plan.bytes);
    rbi_balance_build(&caller->balance, &caller->plan, caller->memory, scratch);
    free(scratch);
    build_table(caller, count);
}

static struct rbi_balance_policy policy_of(uint32_t mode, uint32_t keyless)
{
    return (struct rbi_balance_policy){.mode = mode, .keyless = keyless, .ranks = 3};
}

static uint16_t pick(struct caller *caller)
{
    return rbi_balance_pick(&caller->balance, false, 0, true, 0);
}

static void test_modes_by_key(void **state)
{
    (void)state;
    static const struct {
        uint32_t mode;
        uint32_t keyless;
        enum rbi_balance_mode with;
        enum rbi_balance_mode without;
    } cases[] = {
        {RBI_BALANCE_AUTO, RBI_BALANCE_LEAST, RBI_BALANCE_HASH, RBI_BALANCE_LEAST},
        {RBI_BALANCE_AUTO, RBI_BALANCE_RR, RBI_BALANCE_HASH, RBI_BALANCE_RR},
        {RBI_BALANCE_AUTO, RBI_BALANCE_AUTO, RBI_BALANCE_HASH, RBI_BALANCE_LEAST},
        {RBI_BALANCE_HASH, RBI_BALANCE_HASH, RBI_BALANCE_HASH, RBI_BALANCE_LEAST},
        {RBI_BALANCE_HASH, RBI_BALANCE_ALL, RBI_BALANCE_HASH, RBI_BALANCE_LEAST},
        {RBI_BALANCE_MAGLEV, RBI_BALANCE_RANDOM, RBI_BALANCE_MAGLEV, RBI_BALANCE_RANDOM},
        {RBI_BALANCE_WEIGHTED, RBI_BALANCE_LEAST, RBI_BALANCE_WEIGHTED, RBI_BALANCE_WEIGHTED},
        {RBI_BALANCE_LEAST, RBI_BALANCE_RR, RBI_BALANCE_LEAST, RBI_BALANCE_LEAST},
        {RBI_BALANCE_ALL, RBI_BALANCE_RR, RBI_BALANCE_ALL, RBI_BALANCE_ALL},
        {RBI_BALANCE_CUSTOM, RBI_BALANCE_RR, RBI_BALANCE_CUSTOM, RBI_BALANCE_CUSTOM},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        const struct rbi_balance_policy policy = policy_of(cases[i].mode, cases[i].keyless);
        struct rbi_table_shape shape;
        assert_int_equal(rbi_balance_mode_of(&policy, true), cases[i].with);
        assert_int_equal(rbi_balance_mode_of(&policy, false), cases[i].without);
        const bool table = cases[i].with == RBI_BALANCE_HASH || cases[i].with == RBI_BALANCE_MAGLEV;
        assert_int_equal(rbi_balance_shape(&policy, &shape), table);
        assert_true(!table || rbi_table_shape_valid(&shape));
    }
    struct rbi_balance_policy sized = policy_of(RBI_BALANCE_HASH, RBI_BALANCE_RR);
    struct rbi_table_shape shape;
    assert_true(rbi_balance_shape(&sized, &shape));
    assert_true(shape.slots == 65536 && shape.ranks == 1);
    sized.slots = 2048;
    sized.on_shield = RBI_ON_SHIELD_FAILOVER;
    assert_true(rbi_balance_shape(&sized, &shape));
    assert_true(shape.slots == 2048 && shape.ranks == 3);
    sized.on_shield = RBI_ON_SHIELD_HOLD;
    sized.hash_bound = 125;
    sized.strict = 5;
    assert_true(rbi_balance_shape(&sized, &shape));
    assert_true(shape.ranks == 3 && shape.strict == 5);
    sized.mode = RBI_BALANCE_MAGLEV;
    assert_true(rbi_balance_shape(&sized, &shape));
    assert_true(shape.slots == 65537 && shape.strict == 0);
}

/* Whatever another process wrote: a policy that is taken for valid asks for a table that is one. */
static void test_valid_policies_have_valid_shapes(void **state)
{
    (void)state;
    static struct rbi_policy policy;
    static const uint32_t values[] = {0,    1,    3,     4,        1000,      1001,
                                      1024, 1025, 65536, 1U << 31, UINT32_MAX};
    const unsigned count = RBI_ARRAY_SIZE(values);
    unsigned valid = 0;
    for (unsigned i = 0; i < count * count * count; i++) {
        struct rbi_table_shape shape;
        rbi_policy_defaults(&policy);
        policy.balance.hash_bound = 125;
        policy.balance.mode = i % 2 == 0 ? RBI_BALANCE_HASH : RBI_BALANCE_MAGLEV;
        policy.balance.slots = values[i % count];
        policy.balance.ranks = values[i / count % count];
        policy.balance.strict = values[i / count / count];
        rbi_policy_seal(&policy);
        if (rbi_policy_valid(&policy)) {
            valid++;
            assert_true(rbi_balance_shape(&policy.balance, &shape));
            assert_true(rbi_table_shape_valid(&shape));
        }
    }
    assert_int_equal(valid, 3 * 2 * 5); /* slots 0, 1024, 65536; ranks 1, 3; strict to 1000 */
}

/* Two callers whose draws differ in all else agree on every key, and again after a change. */
static void test_callers_agree_on_keys(void **state)
{
    (void)state;
    uint32_t weights[12];
    for (uint32_t mode = RBI_BALANCE_HASH; mode <= RBI_BALANCE_MAGLEV; mode++) {
        const struct rbi_balance_policy policy = policy_of(mode, RBI_BALANCE_RANDOM);
        unsigned differ = 0;
        for (unsigned change = 0; change < 3; change++) {
            for (unsigned i = 0; i < 12; i++) {
                weights[i] = 50 * (1 + (i + change) % 3);
            }
            for (unsigned i = 0; i < 2; i++) {
                rbi_balance_init(&callers[i].balance, i, 7);
                build(&callers[i], &policy, weights, 12);
            }
            for (uint64_t key = 0; key < 20000; key++) {
                const uint16_t one = rbi_balance_pick(&callers[0].balance, true, key, false, 0);
                const uint16_t two = rbi_balance_pick(&callers[1].balance, true, key, true, 9);
                assert_true(one < 12 && one == two);
            }
            for (unsigned i = 0; i < 100; i++) {
                differ += pick(&callers[0]) != pick(&callers[1]);
            }
        }
        assert_true(differ > 200);
    }
}

/** Keys that another instance has now: all of them from or to the changed one. */
static unsigned expect_moved_only(const struct caller *caller, uint16_t *homes, unsigned changed)
{
    unsigned moved = 0;
    for (uint64_t key = 0; key < 64; key++) {
        const uint16_t home = rbi_balance_pick_keyed(&caller->balance, key);
        assert_true(home == homes[key] || home == changed || homes[key] == changed);
        assert_true(home == RBI_PICK_NONE || caller->members[home].weight != 0);
        moved += home != homes[key];
        homes[key] = home;
    }
    return moved;
}

/*
 * 10^4 random steps, one weight each, which may be 0, and another way to choose each time: who has
 * no weight is never chosen, nobody only when all have none, and keys move as they must.
 */
static void test_random_weights(void **state)
{
    (void)state;
    struct caller *caller = &callers[0];
    struct rbi_balance_policy policy = policy_of(RBI_BALANCE_HASH, RBI_BALANCE_LEAST);
    struct rbi_random dice;
    uint16_t homes[64];
    uint32_t weights[6] = {0};
    unsigned moved = 0;
    policy.slots = RBI_TABLE_SLOTS_MIN;
    rbi_random_init(&dice, 1, 2);
    rbi_balance_init(&caller->balance, 3, 4);
    memset(homes, 0xff, sizeof homes); /* RBI_PICK_NONE */
    for (unsigned step = 0; step < (TEST_SANITIZED ? 1000 : 10000); step++) {
        const uint32_t changed = rbi_random_under(&dice, 6);
        const uint32_t sizes[] = {0, 0, 0, 1, 100, 1000, UINT32_MAX};
        const uint32_t size = sizes[rbi_random_under(&dice, RBI_ARRAY_SIZE(sizes))];
        weights[changed] = size == 0 ? 0 : 1 + rbi_random_under(&dice, size);
        policy.keyless = RBI_BALANCE_LEAST + step % 4;
        build(caller, &policy, weights, 6);
        moved += expect_moved_only(caller, homes, changed);
        bool somebody = false;
        for (unsigned i = 0; i < 6; i++) {
            somebody = somebody || weights[i] != 0;
            rbi_store_rlx(&caller->loads[i][RBI_LEAST_DEPTH], rbi_random_under(&dice, 3));
        }
        for (unsigned i = 0; i < 16; i++) {
            const uint16_t chosen = rbi_balance_pick(&caller->balance, false, 0, step % 8 < 4, 0);
            assert_int_equal(chosen != RBI_PICK_NONE, somebody);
            assert_true(!somebody || weights[chosen] != 0);
        }
    }
    assert_true(moved > 1000);
}

/* Every way without a key: by weight, nothing for a weight of 0, nobody when all are 0. */
static void test_every_way_follows_weights(void **state)
{
    (void)state;
    static const uint32_t weights[] = {100, 0, 300, 200};
    static const uint32_t zeros[] = {0, 0, 0};
    struct caller *caller = &callers[0];
    for (uint32_t mode = RBI_BALANCE_LEAST; mode <= RBI_BALANCE_RANDOM; mode++) {
        const struct rbi_balance_policy policy = policy_of(RBI_BALANCE_AUTO, mode);
        unsigned picked[4] = {0};
        rbi_balance_init(&caller->balance, mode, 1);
        assert_int_equal(pick(caller), RBI_PICK_NONE); /* before the first build */
        build(caller, &policy, weights, 4);
        for (unsigned i = 0; i < 60000; i++) {
            picked[pick(caller)]++;
        }
        assert_int_equal(picked[1], 0);
        for (unsigned i = 0; i < 4; i++) {
            const unsigned due =
                mode == RBI_BALANCE_RR ? 20000 * (weights[i] != 0) : 100 * weights[i];
            assert_in_range(picked[i], due - due / 30, due + due / 30);
        }
        build(caller, &policy, zeros, 3);
        assert_int_equal(pick(caller), RBI_PICK_NONE);
        assert_int_equal(rbi_balance_pick(&caller->balance, true, 1, true, 0), RBI_PICK_NONE);
        build(caller, &policy, NULL, 0);
        assert_int_equal(pick(caller), RBI_PICK_NONE);
        assert_int_equal(rbi_balance_pick(&caller->balance, true, 1, true, 0), RBI_PICK_NONE);
    }
}

/* A key goes no way of its own where the policy says how to choose for all. */
static void test_modes_without_keys_ignore_them(void **state)
{
    (void)state;
    struct caller *caller = &callers[0];
    const struct rbi_balance_policy turns = policy_of(RBI_BALANCE_RR, RBI_BALANCE_LEAST);
    const struct rbi_balance_policy all = policy_of(RBI_BALANCE_ALL, RBI_BALANCE_LEAST);
    unsigned picked[5] = {0};
    rbi_balance_init(&caller->balance, 1, 1);
    build(caller, &turns, NULL, 5);
    for (unsigned i = 0; i < 50; i++) {
        picked[rbi_balance_pick(&caller->balance, true, 4711, true, 0)]++;
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(picked[i], 10);
    }
    build(caller, &all, NULL, 5);
    assert_int_equal(pick(caller), RBI_PICK_NONE);
    assert_int_equal(rbi_balance_pick(&caller->balance, true, 1, true, 0), RBI_PICK_NONE);
}

/* 100 callers that start at once: whatever the way, nobody is the first of more than a quarter. */
static void test_callers_do_not_start_together(void **state)
{
    (void)state;
    struct caller *caller = &callers[0];
    for (uint32_t mode = RBI_BALANCE_LEAST; mode <= RBI_BALANCE_RANDOM; mode++) {
        const struct rbi_balance_policy policy = policy_of(mode, mode);
        unsigned first[10] = {0};
        for (uint64_t who = 0; who < 100; who++) {
            rbi_balance_init(&caller->balance, who, 1);
            build(caller, &policy, NULL, 10);
            first[pick(caller)]++;
        }
        for (unsigned i = 0; i < 10; i++) {
            assert_in_range(first[i], 1, 25);
        }
    }
}

static void test_bound_spreads_a_hot_key(void **state)
{
    (void)state;
    struct caller *caller = &callers[0];
    struct rbi_balance_policy policy = policy_of(RBI_BALANCE_HASH, RBI_BALANCE_LEAST);
    policy.hash_bound = 125;
    rbi_balance_init(&caller->balance, 1, 1);
    build(caller, &policy, NULL, 4);
    const uint32_t slot = rbi_table_slot(99, caller->table.shape.slots);
    const uint16_t home = caller->owners[slot];
    const uint16_t second = rbi_table_owner(caller->owners, caller->table.shape.slots, 1, slot);
    assert_int_equal(rbi_balance_pick(&caller->balance, true, 99, true, 0), home);
    caller->members[home].unread = 100;
    rbi_balance_refresh(&caller->balance);
    assert_int_equal(rbi_balance_pick(&caller->balance, true, 99, true, 0), second);
    caller->members[home].unread = 0;
    rbi_balance_refresh(&caller->balance);
    assert_int_equal(rbi_balance_pick(&caller->balance, true, 99, true, 0), home);
}

static void test_sticky_callers_stay(void **state)
{
    (void)state;
    struct caller *caller = &callers[0];
    struct rbi_balance_policy policy = policy_of(RBI_BALANCE_AUTO, RBI_BALANCE_RR);
    policy.sticky_ms = 5;
    rbi_balance_init(&caller->balance, 1, 1);
    build(caller, &policy, NULL, 4);
    const uint16_t first = rbi_balance_pick(&caller->balance, false, 0, true, 1000000);
    for (uint64_t now_ns = 1000000; now_ns < 6000000; now_ns += 1000000) {
        assert_int_equal(rbi_balance_pick(&caller->balance, false, 0, true, now_ns), first);
    }
    const uint16_t next = rbi_balance_pick(&caller->balance, false, 0, true, 6000000);
    assert_int_equal(next, (first + 1) % 4);
    /* Members change: it stays where it says so, for the rest of its time. */
    build(caller, &policy, NULL, 3);
    assert_int_equal(caller->balance.choice, RBI_PICK_NONE);
    rbi_balance_stay(&caller->balance, 1);
    assert_int_equal(rbi_balance_pick(&caller->balance, false, 0, true, 10999999), 1);
    build(caller, &policy, (const uint32_t[]){0, 0, 1}, 3);
    assert_int_equal(rbi_balance_pick(&caller->balance, false, 0, true, 10999999), 2);
    /* Nobody is no choice to stay with. */
    build(caller, &policy, (const uint32_t[]){0}, 1);
    assert_int_equal(rbi_balance_pick(&caller->balance, false, 0, true, 11000000), RBI_PICK_NONE);
    build(caller, &policy, NULL, 1);
    assert_int_equal(rbi_balance_pick(&caller->balance, false, 0, true, 11000000), 0);
}

/* The same memory serves a build after the other. */
static void test_builds_in_the_same_memory(void **state)
{
    (void)state;
    struct caller *caller = &callers[0];
    const struct rbi_balance_policy policy = policy_of(RBI_BALANCE_WEIGHTED, RBI_BALANCE_RR);
    rbi_balance_init(&caller->balance, 1, 1);
    build(caller, &policy, (const uint32_t[]){21, 11}, 2);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t at = caller->balance.turn.cursor;
        void *scratch = take(caller->plan.scratch_bytes);
        rbi_balance_build(&caller->balance, &caller->plan, caller->memory, scratch);
        free(scratch);
        assert_int_equal(caller->balance.turn.cursor, at);
        assert_in_range(pick(caller), 0, 1);
    }
}

static int free_all(void **state)
{
    (void)state;
    free(callers[0].memory);
    free(callers[1].memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes_by_key),
        cmocka_unit_test(test_valid_policies_have_valid_shapes),
        cmocka_unit_test(test_callers_agree_on_keys),
        cmocka_unit_test(test_random_weights),
        cmocka_unit_test(test_every_way_follows_weights),
        cmocka_unit_test(test_modes_without_keys_ignore_them),
        cmocka_unit_test(test_callers_do_not_start_together),
        cmocka_unit_test(test_bound_spreads_a_hot_key),
        cmocka_unit_test(test_sticky_callers_stay),
        cmocka_unit_test(test_builds_in_the_same_memory),
    };
    return cmocka_run_group_tests(tests, NULL, free_all);
}
