/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden vectors: which instance owns a key, by rank. Scenario 84: they never change, from
 * release to release and from host to host. If one of these fails, keys would change hands on an
 * upgrade, and hosts of two releases would disagree: the code is wrong, never the vector.
 */
#include "bus/table.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define OWNERS_MAX (RBI_TABLE_RANKS_MAX * (size_t)RBI_TABLE_SLOTS_MAGLEV)

/* By name and by bytes: ids of 7.1.2.3 style and of names, weights from 0 to the largest. */
static const struct rbi_table_member few[] = {
    {1, 100}, {2, 100}, {3, 200}, {0x03020601, 50}, {123456789, 100}};

/** Thirty-two ids all over, every fifth with another weight. */
static void many(struct rbi_table_member members[32])
{
    for (uint32_t i = 0; i < 32; i++) {
        members[i] =
            (struct rbi_table_member){(int32_t)(1 + i * 66666667), i % 5 == 4 ? 10 * i : 100};
    }
    members[20].weight = 0;
    members[21].weight = 1000;
}

/** Builds and turns indices into instances: what counts is who gets the key. */
static int32_t *
build(const struct rbi_table_shape *shape, const struct rbi_table_member *members, unsigned count)
{
    static uint16_t owners[OWNERS_MAX];
    static int32_t instances[OWNERS_MAX];
    struct rbi_table_build state;
    void *scratch = NULL;
    assert_int_equal(posix_memalign(&scratch, 16, rbi_table_scratch_bytes(shape, count, 0) + 16),
                     0);
    rbi_table_build_begin(&state, shape, NULL, members, count, owners, scratch);
    while (!rbi_table_build_step(&state, UINT32_MAX)) {
    }
    free(scratch);
    memset(instances, 0, sizeof instances);
    for (size_t i = 0; i < (size_t)shape->ranks * shape->slots; i++) {
        instances[i] = owners[i] == RBI_TABLE_NONE ? 0 : members[owners[i]].instance;
    }
    return instances;
}

struct vector {
    struct rbi_table_shape shape;
    uint64_t owners;      /* XXH3-64 of the instances by rank and slot */
    uint64_t fingerprint; /* of shape and members */
};

static void expect(const struct vector *vectors,
                   unsigned count,
                   const struct rbi_table_member *members,
                   unsigned member_count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct rbi_table_shape *shape = &vectors[i].shape;
        const int32_t *instances = build(shape, members, member_count);
        const size_t bytes = (size_t)shape->ranks * shape->slots * sizeof *instances;
        const uint64_t owners = XXH3_64bits(instances, bytes);
        const uint64_t name = rbi_table_fingerprint(shape, members, member_count);
        if (owners != vectors[i].owners || name != vectors[i].fingerprint) {
            print_error("vector %u: 0x%" PRIx64 ", 0x%" PRIx64 "\n", i, owners, name);
        }
        assert_true(owners == vectors[i].owners);
        assert_true(name == vectors[i].fingerprint);
    }
}

static void test_five_members(void **state)
{
    (void)state;
    static const struct vector vectors[] = {
        /* The first is the vector of tests/unit/test_hrw.c as well. */
        {{.slots = 16384, .ranks = 1}, UINT64_C(0xefac12b1a428ae33), UINT64_C(0x291d5a980e76ab01)},
        {{.slots = 16384, .ranks = 3}, UINT64_C(0xf9a350e35dc056ec), UINT64_C(0xc365bcb4a992f218)},
        {{.slots = 65536, .ranks = 3}, UINT64_C(0x54b2f81c2ae3b530), UINT64_C(0x577bb44806055be8)},
        {{.slots = 16384, .ranks = 3, .strict = 5},
         UINT64_C(0xf9a350e35dc056ec),
         UINT64_C(0x105f7a36c9d0c1e2)},
        {{.kind = RBI_TABLE_MAGLEV, .slots = 65537, .ranks = 3},
         UINT64_C(0x2759057ee82a57a8),
         UINT64_C(0x6e9306a0df5fb219)},
    };
    expect(vectors, RBI_ARRAY_SIZE(vectors), few, RBI_ARRAY_SIZE(few));
}

static void test_thirty_two_members(void **state)
{
    (void)state;
    struct rbi_table_member members[32];
    static const struct vector vectors[] = {
        {{.slots = 16384, .ranks = 3}, UINT64_C(0x6ff4963bae87cdc5), UINT64_C(0xa5e5235d64523c22)},
        {{.slots = 65536, .ranks = 3}, UINT64_C(0x8400801748170de8), UINT64_C(0x74f63c9358bbc437)},
        {{.slots = 65536, .ranks = 2, .strict = 2},
         UINT64_C(0xc99f112b8aeb4219),
         UINT64_C(0x2cc2206c131c1bb7)},
        {{.kind = RBI_TABLE_MAGLEV, .slots = 65537, .ranks = 3},
         UINT64_C(0xb3dfe06d9b3b44d),
         UINT64_C(0x2e89f3e618138f6b)},
    };
    many(members);
    expect(vectors, RBI_ARRAY_SIZE(vectors), members, 32);
}

/** Key of a text as ringbus_key() makes it, and who owns it at each rank, and after Maglev. */
struct named {
    const char *text;
    int32_t owner[3];
    int32_t maglev;
};

static void test_named_keys(void **state)
{
    (void)state;
    static const struct named names[] = {
        {"", {3, 2, 50464257}, 3},
        {"player:1", {1, 3, 123456789}, 50464257},
        {"player:2", {123456789, 2, 50464257}, 3},
        {"player:1000000", {3, 123456789, 2}, 1},
        {"room/7/zone/3", {2, 123456789, 3}, 3},
        {"guild-of-the-north", {1, 50464257, 2}, 1},
        {"\xe7\x8e\xa9\xe5\xae\xb6", {1, 3, 123456789}, 3},
        {"alpha", {50464257, 3, 2}, 2},
        {"beta", {3, 2, 123456789}, 3},
        {"gamma", {50464257, 2, 1}, 3},
        {"delta", {123456789, 1, 3}, 50464257},
        {"epsilon", {123456789, 50464257, 3}, 3},
    };
    const struct rbi_table_shape hrw = {.slots = 16384, .ranks = 3};
    const struct rbi_table_shape maglev = {.kind = RBI_TABLE_MAGLEV, .slots = 65537, .ranks = 1};
    struct named found[RBI_ARRAY_SIZE(names)];
    const int32_t *owners = build(&hrw, few, RBI_ARRAY_SIZE(few));
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(names); i++) {
        const uint64_t key = XXH3_64bits(names[i].text, strlen(names[i].text));
        for (unsigned rank = 0; rank < 3; rank++) {
            found[i].owner[rank] = owners[rank * 16384 + rbi_table_slot(key, 16384)];
        }
    }
    owners = build(&maglev, few, RBI_ARRAY_SIZE(few));
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(names); i++) {
        const uint64_t key = XXH3_64bits(names[i].text, strlen(names[i].text));
        found[i].maglev = owners[rbi_table_slot(key, 65537)];
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(names); i++) {
        if (memcmp(found[i].owner, names[i].owner, sizeof found[i].owner) != 0 ||
            found[i].maglev != names[i].maglev) {
            print_error("\"%s\", {%d, %d, %d}, %d\n", names[i].text, found[i].owner[0],
                        found[i].owner[1], found[i].owner[2], found[i].maglev);
        }
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(names); i++) {
        assert_memory_equal(found[i].owner, names[i].owner, sizeof found[i].owner);
        assert_int_equal(found[i].maglev, names[i].maglev);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_members),
        cmocka_unit_test(test_thirty_two_members),
        cmocka_unit_test(test_named_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
