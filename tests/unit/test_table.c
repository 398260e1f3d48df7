/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slot tables by rank. Scenario 84 (same key, same instance, for every caller), 92 (odd weights);
 * features 6.1.
 */
#include "bus/hrw_score.h"
#include "bus/table.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS       1024U
#define MEMBERS_MAX 24U
#define STEPS       (TEST_SANITIZED ? 1000U : 10000U)

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 32) * n >> 32);
}

/** A table with memory of its own. */
struct built {
    struct rbi_table table;
    struct rbi_table_member members[MEMBERS_MAX];
    uint16_t owners[RBI_TABLE_RANKS_MAX * 65536U];
};

/** Builds in steps of random size. */
static void build(struct built *out,
                  const struct rbi_table_shape *shape,
                  const struct rbi_table *old,
                  const struct rbi_table_member *members,
                  unsigned count)
{
    struct rbi_table_build state;
    void *scratch = NULL;
    struct rbi_table_member copied[MEMBERS_MAX];
    memcpy(copied, members, count * sizeof *members);
    const unsigned sorted = rbi_table_sort(copied, count);
    assert_int_equal(sorted, count);
    const size_t bytes = rbi_table_scratch_bytes(shape, count, old != NULL ? old->member_count : 0);
    assert_int_equal(posix_memalign(&scratch, 16, bytes + 16), 0);
    /* In place, the old members must outlive the build. */
    rbi_table_build_begin(&state, shape, old, copied, count, out->owners, scratch);
    while (!rbi_table_build_step(&state, 1 + random_below(20000))) {
    }
    out->table = rbi_table_built(&state);
    memcpy(out->members, copied, sizeof copied);
    out->table.members = out->members;
    free(scratch);
}

static void shuffle(struct rbi_table_member *members, unsigned count)
{
    for (unsigned i = count; i > 1; i--) {
        const unsigned j = random_below(i);
        const struct rbi_table_member kept = members[i - 1];
        members[i - 1] = members[j];
        members[j] = kept;
    }
}

static uint32_t random_weight(void)
{
    switch (random_below(8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return UINT32_MAX - random_below(3);
    default:
        return 1 + random_below(400);
    }
}

/** Adds, removes or re-weighs one member. @return its instance */
static int32_t change(struct rbi_table_member *members, unsigned *count, int32_t *next_id)
{
    const uint32_t what = random_below(3);
    if ((what == 0 && *count < MEMBERS_MAX) || *count == 0) {
        members[*count] =
            (struct rbi_table_member){.instance = *next_id, .weight = random_weight()};
        *next_id = (int32_t)((uint32_t)*next_id * 1103515245U + 12345U) & INT32_MAX;
        return members[(*count)++].instance;
    }
    const unsigned i = random_below(*count);
    const int32_t instance = members[i].instance;
    if (what == 1) {
        members[i] = members[--*count];
    } else {
        members[i].weight = random_weight();
    }
    return instance;
}

static int32_t instance_at(const struct rbi_table *table, unsigned rank, uint32_t slot)
{
    const uint16_t owner = rbi_table_owner(table->owners, table->shape.slots, rank, slot);
    return owner == RBI_TABLE_NONE ? 0 : table->members[owner].instance;
}

static bool among(const struct rbi_table *table, uint32_t slot, int32_t instance)
{
    for (unsigned rank = 0; rank < table->shape.ranks; rank++) {
        if (instance_at(table, rank, slot) == instance) {
            return true;
        }
    }
    return false;
}

/** The owners of a slot by the definition: all scored, none skipped. */
static void expect_slot(const struct rbi_table *table, uint32_t slot)
{
    bool taken[MEMBERS_MAX] = {false};
    for (unsigned rank = 0; rank < table->shape.ranks; rank++) {
        unsigned best = MEMBERS_MAX;
        uint64_t best_score = 0;
        for (unsigned i = 0; i < table->member_count; i++) {
            const struct rbi_table_member *member = &table->members[i];
            const uint64_t score = rbi_hrw_minus_log2(
                rbi_hrw_hash(rbi_hrw_seed(member->instance), rbi_hrw_slot_seed(slot)));
            if (taken[i] || member->weight == 0) {
                continue;
            }
            if (best == MEMBERS_MAX ||
                rbi_hrw_better(score, member->weight, member->instance, best_score,
                               table->members[best].weight, table->members[best].instance)) {
                best = i;
                best_score = score;
            }
        }
        if (best == MEMBERS_MAX) {
            assert_int_equal(instance_at(table, rank, slot), 0);
        } else {
            taken[best] = true;
            assert_int_equal(instance_at(table, rank, slot), table->members[best].instance);
        }
    }
}

/** Whatever changed hands did so between the changed one and somebody. @return slots that did */
static unsigned
expect_moved_only(const struct rbi_table *before, const struct rbi_table *after, int32_t changed)
{
    unsigned moved = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const int32_t was = instance_at(before, 0, slot);
        const int32_t is = instance_at(after, 0, slot);
        moved += was != is;
        assert_true(was == is || was == changed || is == changed);
        for (unsigned rank = 0; rank < after->shape.ranks; rank++) {
            /* Lower ranks: who comes in takes the place of the changed one, or is it. */
            const int32_t there = instance_at(after, rank, slot);
            assert_true(there == 0 || there == changed || among(before, slot, there) ||
                        among(before, slot, changed));
        }
    }
    return moved;
}

static void test_update_is_a_build_from_nothing(void **state)
{
    (void)state;
    static struct built before;
    static struct built updated;
    static struct built again;
    struct rbi_table_member members[MEMBERS_MAX] = {{0, 0}};
    for (uint32_t ranks = 1; ranks <= RBI_TABLE_RANKS_MAX; ranks++) {
        const struct rbi_table_shape shape = {.slots = SLOTS, .ranks = ranks};
        unsigned count = 0;
        int32_t next_id = 77;
        unsigned moved = 0;
        seed = ranks;
        build(&before, &shape, NULL, members, count);
        for (unsigned step = 0; step < STEPS / RBI_TABLE_RANKS_MAX + 1; step++) {
            const int32_t changed = change(members, &count, &next_id);
            shuffle(members, count); /* order of arrival must not matter */
            build(&updated, &shape, &before.table, members, count);
            shuffle(members, count);
            build(&again, &shape, NULL, members, count);
            assert_memory_equal(updated.owners, again.owners, rbi_table_owner_bytes(&shape));
            moved += expect_moved_only(&before.table, &updated.table, changed);
            expect_slot(&updated.table, step % SLOTS);
            assert_true(rbi_table_fingerprint(&shape, updated.members, count) ==
                        rbi_table_fingerprint(&shape, again.members, count));
            memcpy(before.owners, updated.owners, rbi_table_owner_bytes(&shape));
            memcpy(before.members, updated.members, sizeof before.members);
            before.table.member_count = count;
        }
        assert_true(moved > STEPS); /* the steps did something */
    }
}

/* Several members change at once, and the new owners are written over the old ones. */
static void test_update_of_many_in_place(void **state)
{
    (void)state;
    static struct built table;
    static struct built again;
    static struct rbi_table_member members[MEMBERS_MAX];
    static struct rbi_table_member was[MEMBERS_MAX];
    const struct rbi_table_shape shape = {.slots = SLOTS, .ranks = 3};
    unsigned count = 0;
    int32_t next_id = 5;
    seed = 11;
    build(&table, &shape, NULL, members, count);
    for (unsigned step = 0; step < STEPS / 4; step++) {
        for (uint32_t i = random_below(5); i > 0; i--) {
            (void)change(members, &count, &next_id);
        }
        struct rbi_table old = table.table;
        memcpy(was, table.members, sizeof was);
        old.members = was;
        build(&table, &shape, &old, members, count);
        build(&again, &shape, NULL, members, count);
        assert_memory_equal(table.owners, again.owners, rbi_table_owner_bytes(&shape));
    }
}

/* Rank 1 is what bus/hrw.c says, which has its own golden vectors. */
static void test_first_rank_is_that_of_hrw(void **state)
{
    (void)state;
    static struct built table;
    static uint16_t owner[16384];
    struct rbi_hrw_member same[MEMBERS_MAX];
    struct rbi_table_member members[MEMBERS_MAX];
    const struct rbi_table_shape shape = {.slots = 16384, .ranks = 3};
    seed = 3;
    for (unsigned i = 0; i < MEMBERS_MAX; i++) {
        members[i] = (struct rbi_table_member){(int32_t)(1 + i * 1000), random_weight()};
        same[i] = (struct rbi_hrw_member){members[i].instance, members[i].weight};
    }
    build(&table, &shape, NULL, members, MEMBERS_MAX);
    rbi_hrw_build(owner, 16384, same, MEMBERS_MAX);
    assert_memory_equal(table.owners, owner, sizeof owner);
}

/* Each rank by itself, and rank 2 of those whose rank 1 left: all by weight, within 4 sigma. */
static void test_load_is_fair(void **state)
{
    (void)state;
    static struct built table;
    const struct rbi_table_shape shape = {.slots = 65536, .ranks = 2};
    struct rbi_table_member members[16];
    uint64_t load[16] = {0};
    uint64_t heirs[16] = {0};
    uint64_t total = 0;
    seed = 4;
    for (unsigned i = 0; i < 16; i++) {
        members[i] = (struct rbi_table_member){(int32_t)i + 1, 100 + 20 * i};
        total += members[i].weight;
    }
    build(&table, &shape, NULL, members, 16);
    for (uint32_t slot = 0; slot < 65536; slot++) {
        load[rbi_table_owner(table.owners, 65536, 0, slot)]++;
        if (rbi_table_owner(table.owners, 65536, 0, slot) == 3) {
            heirs[rbi_table_owner(table.owners, 65536, 1, slot)]++;
        }
    }
    assert_int_equal(heirs[3], 0);
    for (unsigned i = 0; i < 16; i++) {
        const int64_t share = (int64_t)(65536 * (uint64_t)members[i].weight / total);
        const int64_t off = (int64_t)load[i] - share;
        assert_true(off * off <= 16 * share);
        if (i != 3) {
            const int64_t left = (int64_t)(load[3] * members[i].weight / (total - 160));
            const int64_t heir_off = (int64_t)heirs[i] - left;
            assert_true(heir_off * heir_off <= 16 * left);
        }
    }
}

static void expect_all(const struct built *table, unsigned rank, uint16_t owner)
{
    for (uint32_t slot = 0; slot < table->table.shape.slots; slot++) {
        assert_int_equal(rbi_table_owner(table->owners, table->table.shape.slots, rank, slot),
                         owner);
    }
}

/* Scenario 92. */
static void test_odd_weights(void **state)
{
    (void)state;
    static struct built table;
    const struct rbi_table_shape shape = {.slots = SLOTS, .ranks = 3};
    const struct rbi_table_member zero_one[] = {{1, 0}, {2, 1}};
    const struct rbi_table_member zeros[] = {{1, 0}, {2, 0}};
    const struct rbi_table_member extreme[] = {{1, 1}, {2, 1000000}, {3, UINT32_MAX}};
    seed = 1;
    build(&table, &shape, NULL, zero_one, 2);
    expect_all(&table, 0, 1);
    expect_all(&table, 1, RBI_TABLE_NONE);
    expect_all(&table, 2, RBI_TABLE_NONE);
    build(&table, &shape, NULL, zeros, 2);
    expect_all(&table, 0, RBI_TABLE_NONE);
    build(&table, &shape, NULL, zeros, 0);
    expect_all(&table, 0, RBI_TABLE_NONE);
    build(&table, &shape, NULL, extreme, 3);
    unsigned last = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        last += rbi_table_owner(table.owners, SLOTS, 0, slot) == 2;
        assert_int_not_equal(rbi_table_owner(table.owners, SLOTS, 2, slot), RBI_TABLE_NONE);
    }
    assert_true(last >= SLOTS - 3);
}

static void test_sort_and_fingerprint(void **state)
{
    (void)state;
    struct rbi_table_member members[] = {{5, 1}, {2, 7}, {5, 3}, {INT32_MAX, 2}, {2, 6}, {1, 0}};
    const struct rbi_table_member sorted[] = {{1, 0}, {2, 7}, {5, 3}, {INT32_MAX, 2}};
    assert_int_equal(rbi_table_sort(members, 6), 4);
    assert_memory_equal(members, sorted, sizeof sorted);
    assert_int_equal(rbi_table_sort(members, 0), 0);
    const struct rbi_table_shape shape = {.slots = SLOTS, .ranks = 3};
    struct rbi_table_shape other[] = {shape, shape, shape, shape};
    other[0].kind = RBI_TABLE_MAGLEV;
    other[1].slots *= 2;
    other[2].ranks = 2;
    other[3].strict = 5;
    const uint64_t name = rbi_table_fingerprint(&shape, sorted, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(rbi_table_fingerprint(&other[i], sorted, 4) != name);
    }
    assert_true(rbi_table_fingerprint(&shape, sorted, 3) != name);
    members[1].weight = 8;
    assert_true(rbi_table_fingerprint(&shape, members, 4) != name);
}

static void test_shapes(void **state)
{
    (void)state;
    const struct rbi_table_shape good[] = {{.slots = 1024, .ranks = 1},
                                           {.slots = 262144, .ranks = 3, .strict = 1000},
                                           {.kind = 1, .slots = 65537, .ranks = 2}};
    const struct rbi_table_shape bad[] = {{.slots = 512, .ranks = 1},
                                          {.slots = 524288, .ranks = 1},
                                          {.slots = 1025, .ranks = 1},
                                          {.slots = 1024, .ranks = 0},
                                          {.slots = 1024, .ranks = 4},
                                          {.slots = 1024, .ranks = 1, .strict = 1001},
                                          {.kind = 2, .slots = 1024, .ranks = 1},
                                          {.kind = 1, .slots = 65536, .ranks = 1},
                                          {.kind = 1, .slots = 65537, .ranks = 1, .strict = 5}};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(good); i++) {
        assert_true(rbi_table_shape_valid(&good[i]));
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_false(rbi_table_shape_valid(&bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_is_a_build_from_nothing),
        cmocka_unit_test(test_update_of_many_in_place),
        cmocka_unit_test(test_first_rank_is_that_of_hrw),
        cmocka_unit_test(test_load_is_fair),
        cmocka_unit_test(test_odd_weights),
        cmocka_unit_test(test_sort_and_fingerprint),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
