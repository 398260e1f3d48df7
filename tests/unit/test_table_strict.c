/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slot tables whose members own no more than a bound: features 2.2, "strict".
 */
#include "bus/hrw_score.h"
#include "bus/table.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 64U
#define SLOTS_MAX   16384U

struct built {
    struct rbi_table table;
    uint16_t owners[RBI_TABLE_RANKS_MAX * SLOTS_MAX];
};

static void build(struct built *out,
                  const struct rbi_table_shape *shape,
                  const struct rbi_table_member *members,
                  unsigned count,
                  uint32_t budget)
{
    struct rbi_table_build state;
    void *scratch = NULL;
    const size_t bytes = rbi_table_scratch_bytes(shape, count, 0);
    assert_int_equal(posix_memalign(&scratch, 16, bytes + 16), 0);
    rbi_table_build_begin(&state, shape, NULL, members, count, out->owners, scratch);
    while (!rbi_table_build_step(&state, budget)) {
    }
    out->table = rbi_table_built(&state);
    free(scratch);
}

static void even(struct rbi_table_member *members, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        members[i] = (struct rbi_table_member){(int32_t)(i * 7919 + 1), 100};
    }
}

static void count_load(const struct built *built, unsigned *load)
{
    memset(load, 0, MEMBERS_MAX * sizeof *load);
    for (uint32_t slot = 0; slot < built->table.shape.slots; slot++) {
        assert_true(built->owners[slot] < built->table.member_count);
        load[built->owners[slot]]++;
    }
}

static unsigned bound(const struct rbi_table_shape *shape, uint64_t weight, uint64_t sum)
{
    return (unsigned)(((100 + shape->strict) * shape->slots * weight + 100 * sum - 1) /
                      (100 * sum));
}

static uint64_t score(const struct rbi_table_member *member, uint32_t slot)
{
    return rbi_hrw_minus_log2(
        rbi_hrw_hash(rbi_hrw_seed(member->instance), rbi_hrw_slot_seed(slot)));
}

static void test_nobody_is_above_the_bound(void **state)
{
    (void)state;
    static struct built built;
    struct rbi_table_member members[MEMBERS_MAX];
    unsigned load[MEMBERS_MAX];
    for (unsigned count = 2; count <= MEMBERS_MAX; count *= 2) {
        for (uint32_t strict = 1; strict <= 25; strict *= 5) {
            const struct rbi_table_shape shape = {.slots = 4096, .ranks = 3, .strict = strict};
            even(members, count);
            members[1].weight = 300;
            build(&built, &shape, members, count, UINT32_MAX);
            count_load(&built, load);
            for (unsigned i = 0; i < count; i++) {
                const uint64_t sum = 100 * (uint64_t)count + 200;
                assert_true(load[i] <= bound(&shape, members[i].weight, sum));
            }
        }
    }
}

/*
 * The definition of a stable matching: no slot likes a member better than its owner that either
 * has room or likes the slot better than one that it owns.
 */
static void test_matching_is_stable(void **state)
{
    (void)state;
    static struct built built;
    struct rbi_table_member members[12];
    unsigned load[MEMBERS_MAX];
    uint64_t worst[12] = {0};
    const struct rbi_table_shape shape = {.slots = 2048, .ranks = 1, .strict = 2};
    uint64_t sum = 0;
    even(members, 12);
    for (unsigned i = 0; i < 12; i++) {
        members[i].weight = 50 + 30 * i;
        sum += members[i].weight;
    }
    build(&built, &shape, members, 12, UINT32_MAX);
    count_load(&built, load);
    for (uint32_t slot = 0; slot < 2048; slot++) {
        const uint16_t owner = built.owners[slot];
        const uint64_t s = score(&members[owner], slot);
        worst[owner] = s > worst[owner] ? s : worst[owner];
    }
    unsigned diverted = 0;
    for (uint32_t slot = 0; slot < 2048; slot++) {
        const struct rbi_table_member *owner = &members[built.owners[slot]];
        bool wanted_another = false;
        for (unsigned i = 0; i < 12; i++) {
            const uint64_t s = score(&members[i], slot);
            if (rbi_hrw_better(s, members[i].weight, members[i].instance, score(owner, slot),
                               owner->weight, owner->instance)) {
                wanted_another = true;
                assert_int_equal(load[i], bound(&shape, members[i].weight, sum));
                assert_true(s >= worst[i]);
            }
        }
        diverted += wanted_another;
    }
    assert_true(diverted > 0);
}

/* 16,384 slots, 32 members: measured 1.02 x the share, and few are diverted. */
static void test_few_slots_are_diverted(void **state)
{
    (void)state;
    static struct built strict;
    static struct built plain;
    struct rbi_table_member members[32];
    const struct rbi_table_shape shape = {.slots = 16384, .ranks = 3, .strict = 5};
    const struct rbi_table_shape without = {.slots = 16384, .ranks = 3};
    unsigned diverted = 0;
    even(members, 32);
    build(&strict, &shape, members, 32, UINT32_MAX);
    build(&plain, &without, members, 32, UINT32_MAX);
    for (uint32_t slot = 0; slot < 16384; slot++) {
        diverted += strict.owners[slot] != plain.owners[slot];
    }
    assert_in_range(diverted, 1, 16384 / 50);
}

/* Lower ranks: the plain order, without the owner. */
static void test_ranks_differ_and_keep_their_order(void **state)
{
    (void)state;
    static struct built strict;
    static struct built plain;
    struct rbi_table_member members[20];
    const struct rbi_table_shape shape = {.slots = 4096, .ranks = 3, .strict = 1};
    const struct rbi_table_shape without = {.slots = 4096, .ranks = 3};
    even(members, 20);
    build(&strict, &shape, members, 20, UINT32_MAX);
    build(&plain, &without, members, 20, UINT32_MAX);
    for (uint32_t slot = 0; slot < 4096; slot++) {
        const uint16_t owner = strict.owners[slot];
        unsigned rank = 1;
        for (unsigned i = 0; i < 3 && rank < 3; i++) {
            const uint16_t next = rbi_table_owner(plain.owners, 4096, i, slot);
            if (next != owner) {
                assert_int_equal(rbi_table_owner(strict.owners, 4096, rank, slot), next);
                rank++;
            }
        }
    }
}

/* How the work is cut is nothing, nor what the members weigh in which unit. */
static void test_steps_make_the_same_table(void **state)
{
    (void)state;
    static struct built whole;
    static struct built sliced;
    struct rbi_table_member members[24];
    const struct rbi_table_shape shape = {.slots = 1024, .ranks = 2, .strict = 3};
    even(members, 24);
    build(&whole, &shape, members, 24, UINT32_MAX);
    for (uint32_t budget = 1; budget < 5000; budget = budget * 7 + 3) {
        memset(sliced.owners, 0, sizeof sliced.owners);
        build(&sliced, &shape, members, 24, budget);
        assert_memory_equal(whole.owners, sliced.owners, rbi_table_owner_bytes(&shape));
    }
}

/* Scenario 92. */
static void test_odd_weights(void **state)
{
    (void)state;
    static struct built built;
    unsigned load[MEMBERS_MAX];
    const struct rbi_table_shape shape = {.slots = 1024, .ranks = 2, .strict = 10};
    const struct rbi_table_member zeros[] = {{1, 0}, {2, 0}};
    const struct rbi_table_member zero_one[] = {{1, 0}, {2, 1}};
    const struct rbi_table_member extreme[] = {{1, 1}, {2, UINT32_MAX}, {3, UINT32_MAX}};
    build(&built, &shape, zeros, 2, UINT32_MAX);
    assert_int_equal(built.owners[0], RBI_TABLE_NONE);
    assert_int_equal(built.owners[1023], RBI_TABLE_NONE);
    build(&built, &shape, zero_one, 2, UINT32_MAX);
    count_load(&built, load);
    assert_int_equal(load[1], 1024);
    assert_int_equal(built.owners[1024], RBI_TABLE_NONE);
    build(&built, &shape, extreme, 3, UINT32_MAX);
    count_load(&built, load);
    assert_true(load[0] <= 1 && load[1] <= 564 && load[2] <= 564);
    const struct rbi_table_shape widest = {.slots = 1024, .ranks = 2, .strict = 1000};
    build(&built, &widest, extreme, 3, UINT32_MAX);
    count_load(&built, load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_is_above_the_bound),
        cmocka_unit_test(test_matching_is_stable),
        cmocka_unit_test(test_few_slots_are_diverted),
        cmocka_unit_test(test_ranks_differ_and_keep_their_order),
        cmocka_unit_test(test_steps_make_the_same_table),
        cmocka_unit_test(test_odd_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
