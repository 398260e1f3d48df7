/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/pool.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRIES 16U

/** A sender with a pool and one link; the receiver's side is in the same process. */
struct fixture {
    struct rbi_pool pool;
    struct rbi_refs refs;
    struct rbi_returns returns;
    rbi_au64 returns_pos;
    rbi_word ring[ENTRIES];
};

static const struct rbi_pool_plan small_plan = {
    .class_count = 2,
    .classes = {{.chunk_bytes = 256, .count = 4}, {.chunk_bytes = 4096, .count = 2}},
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(rbi_pool_init(&f->pool, &small_plan), 0);
    assert_int_equal(rbi_refs_init(&f->refs, ENTRIES, &f->returns_pos, f->ring), 0);
    rbi_returns_init(&f->returns, &f->returns_pos, f->ring, ENTRIES);
}

static void teardown(struct fixture *f)
{
    rbi_refs_deinit(&f->refs);
    rbi_pool_deinit(&f->pool);
    rbi_pool_deinit(&f->pool); /* zeroed now: harmless */
}

/** One chunk, referenced by the link alone. */
static uint32_t lend(struct fixture *f, uint64_t size)
{
    struct rbi_chunk chunk;
    uint32_t slot = UINT32_MAX;
    assert_int_equal(rbi_pool_take(&f->pool, size, &chunk), RBI_POOL_OK);
    assert_int_equal(rbi_refs_take(&f->refs, &f->pool, chunk.idx, &slot), RBI_POOL_OK);
    rbi_pool_unref(&f->pool, chunk.idx);
    assert_int_equal(rbi_refs_chunk(&f->refs, slot), chunk.idx);
    return slot;
}

static void test_pool_plan_out_of_range_is_refused(void **state)
{
    (void)state;
    const struct rbi_pool_plan plans[] = {
        {.class_count = 0},
        {.class_count = RBI_POOL_CLASSES_MAX + 1},
        {.class_count = 1, .classes = {{.chunk_bytes = 63, .count = 1}}},
        {.class_count = 1, .classes = {{.chunk_bytes = RBI_POOL_CHUNK_MAX + 1, .count = 1}}},
        {.class_count = 1, .classes = {{.chunk_bytes = 64, .count = 0}}},
        {.class_count = 1, .classes = {{.chunk_bytes = 64, .count = RBI_POOL_CHUNKS_MAX + 1}}},
        {.class_count = 1, .classes = {{.chunk_bytes = 64, .count = UINT64_MAX}}},
        {.class_count = 1, .classes = {{.chunk_bytes = UINT64_MAX, .count = 1}}},
        {.class_count = 1, .classes = {{.chunk_bytes = UINT64_C(1) << 30, .count = 4}}},
        {.class_count = 2,
         .classes = {{.chunk_bytes = 4096, .count = 1}, {.chunk_bytes = 256, .count = 1}}},
        {.class_count = 2,
         .classes = {{.chunk_bytes = 100, .count = 1}, {.chunk_bytes = 101, .count = 1}}},
        {.class_count = 2,
         .classes = {{.chunk_bytes = 64, .count = RBI_POOL_CHUNKS_MAX},
                     {.chunk_bytes = 128, .count = 1}}},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(plans); i++) {
        struct rbi_pool pool;
        memset(&pool, 0x5a, sizeof pool);
        struct rbi_pool before = pool;
        assert_int_equal(rbi_pool_plan_size(&plans[i]), 0);
        assert_int_equal(rbi_pool_init(&pool, &plans[i]), -EINVAL);
        assert_memory_equal(&pool, &before, sizeof pool);
    }
}

static void test_pool_layout(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(rbi_pool_plan_size(&small_plan), 3 * RBI_PAGE + RBI_PAGE);
    assert_int_equal(f.pool.segment.size, rbi_pool_plan_size(&small_plan));
    assert_int_equal(rbi_pool_chunk_max(&f.pool), 4096);
    const struct rbi_pool_head *head = f.pool.segment.base;
    assert_int_equal(head->segment.kind, RBI_SEGMENT_POOL);
    assert_int_equal(head->class_count, 2);
    assert_int_equal(head->classes[1].offset % RBI_PAGE, 0);
    /* No two chunks overlap, none leaves the segment. */
    unsigned char *seen = calloc(1, f.pool.segment.size);
    assert_non_null(seen);
    struct rbi_chunk chunk;
    unsigned chunks = 0;
    for (; rbi_pool_take(&f.pool, 1, &chunk) == RBI_POOL_OK; chunks++) {
        assert_true(chunk.offset >= RBI_PAGE);
        assert_true(chunk.offset + chunk.capacity <= f.pool.segment.size);
        assert_ptr_equal(chunk.data, (unsigned char *)f.pool.segment.base + chunk.offset);
        for (uint64_t i = 0; i < chunk.capacity; i++) {
            assert_int_equal(seen[chunk.offset + i]++, 0);
        }
    }
    assert_int_equal(chunks, 6);
    free(seen);
    teardown(&f);
}

/* A sparse one costs memory chunk by chunk. */
static void test_pool_sparse(void **state)
{
    (void)state;
    const struct rbi_pool_plan plan = {.class_count = 2, .classes = {{4096, 4}, {1U << 30, 1}}};
    struct rbi_pool pool = {.class_count = 0};
    struct rbi_chunk chunk;
    struct stat st;
    assert_int_equal(rbi_pool_init_sparse(&pool, &plan), 0);
    assert_int_equal(rbi_pool_take(&pool, 4000, &chunk), RBI_POOL_OK);
    assert_int_equal(fstat(pool.segment.fd, &st), 0);
    assert_int_equal((uint64_t)st.st_blocks * 512, RBI_PAGE);
    assert_int_equal(rbi_pool_reserve(&pool, &chunk), 0);
    memset(chunk.data, 1, chunk.capacity);
    assert_int_equal(fstat(pool.segment.fd, &st), 0);
    assert_int_equal((uint64_t)st.st_blocks * 512, 2 * RBI_PAGE);
    rbi_pool_unref(&pool, chunk.idx);
    rbi_pool_deinit(&pool);
}

static void test_pool_take_next_class_when_one_is_empty(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_chunk chunk;
    assert_int_equal(rbi_pool_take(&f.pool, 4097, &chunk), -EMSGSIZE);
    assert_int_equal(rbi_pool_take(&f.pool, UINT64_MAX, &chunk), -EMSGSIZE);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(rbi_pool_take(&f.pool, i == 0 ? 0 : 256, &chunk), RBI_POOL_OK);
        assert_int_equal(chunk.capacity, i < 4 ? 256 : 4096);
        assert_int_equal(rbi_pool_used(&f.pool), i + 1);
    }
    memset(&chunk, 0x5a, sizeof chunk);
    assert_int_equal(rbi_pool_take(&f.pool, 256, &chunk), RBI_POOL_EMPTY);
    assert_int_equal(chunk.idx, 0x5a5a5a5a);
    rbi_pool_unref(&f.pool, 2); /* a small one comes back: of no use to a large message */
    assert_int_equal(rbi_pool_take(&f.pool, 257, &chunk), RBI_POOL_EMPTY);
    assert_int_equal(rbi_pool_take(&f.pool, 256, &chunk), RBI_POOL_OK);
    assert_int_equal(chunk.idx, 2);
    teardown(&f);
}

static void test_pool_last_freed_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_chunk chunk;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(rbi_pool_take(&f.pool, 1, &chunk), RBI_POOL_OK);
    }
    rbi_pool_unref(&f.pool, 3);
    rbi_pool_unref(&f.pool, 1);
    assert_int_equal(rbi_pool_take(&f.pool, 1, &chunk), RBI_POOL_OK);
    assert_int_equal(chunk.idx, 1);
    assert_int_equal(rbi_pool_take(&f.pool, 1, &chunk), RBI_POOL_OK);
    assert_int_equal(chunk.idx, 3);
    teardown(&f);
}

static void test_pool_chunk_lives_until_its_last_reference(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_chunk chunk;
    struct rbi_chunk again;
    assert_int_equal(rbi_pool_take(&f.pool, 4096, &chunk), RBI_POOL_OK);
    rbi_pool_ref(&f.pool, chunk.idx);
    rbi_pool_chunk(&f.pool, chunk.idx, &again);
    assert_int_equal(again.idx, chunk.idx);
    assert_int_equal(again.offset, chunk.offset);
    assert_int_equal(again.capacity, chunk.capacity);
    assert_ptr_equal(again.data, chunk.data);
    rbi_pool_unref(&f.pool, chunk.idx);
    assert_int_equal(rbi_pool_used(&f.pool), 1);
    rbi_pool_unref(&f.pool, chunk.idx);
    assert_int_equal(rbi_pool_used(&f.pool), 0);
    teardown(&f);
}

static void test_refs_come_back_through_the_ring(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    for (unsigned round = 0; round < 1000; round++) {
        const uint32_t a = lend(&f, 10);
        const uint32_t b = lend(&f, 3000);
        assert_int_equal(rbi_refs_used(&f.refs), 2);
        assert_int_equal(rbi_refs_collect(&f.refs, &f.pool), 0);
        rbi_returns_put(&f.returns, b); /* any order */
        assert_int_equal(rbi_refs_collect(&f.refs, &f.pool), 1);
        rbi_returns_put(&f.returns, a);
        assert_int_equal(rbi_refs_collect(&f.refs, &f.pool), 1);
        assert_int_equal(rbi_refs_used(&f.refs), 0);
        assert_int_equal(rbi_pool_used(&f.pool), 0);
        assert_int_equal(rbi_refs_chunk(&f.refs, a), RBI_CHUNK_NONE);
    }
    teardown(&f);
}

static void test_refs_are_bounded_and_can_be_cancelled(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_chunk chunk;
    uint32_t slots[ENTRIES];
    uint32_t slot = 77;
    assert_int_equal(rbi_pool_take(&f.pool, 1, &chunk), RBI_POOL_OK);
    for (unsigned i = 0; i < ENTRIES; i++) {
        assert_int_equal(rbi_refs_take(&f.refs, &f.pool, chunk.idx, &slots[i]), RBI_POOL_OK);
    }
    assert_int_equal(rbi_refs_take(&f.refs, &f.pool, chunk.idx, &slot), RBI_POOL_EMPTY);
    assert_int_equal(slot, 77);
    rbi_refs_cancel(&f.refs, &f.pool, slots[3]);
    assert_int_equal(rbi_refs_take(&f.refs, &f.pool, chunk.idx, &slot), RBI_POOL_OK);
    assert_int_equal(slot, slots[3]);
    for (unsigned i = 0; i < ENTRIES; i++) {
        rbi_returns_put(&f.returns, slots[i]); /* the ring is exactly full */
    }
    assert_int_equal(rbi_refs_collect(&f.refs, &f.pool), ENTRIES);
    assert_int_equal(rbi_pool_used(&f.pool), 1);
    rbi_pool_unref(&f.pool, chunk.idx);
    assert_int_equal(rbi_pool_used(&f.pool), 0);
    teardown(&f);
}

/* A receiver cannot free what it does not hold, nor what another still reads. */
static void test_refs_collect_refuses_hostile_returns(void **state)
{
    (void)state;
    const struct {
        uint64_t pos;
        uint64_t entries[3];
    } cases[] = {
        {.pos = 1, .entries = {2}},                 /* a slot that is not out */
        {.pos = 1, .entries = {ENTRIES}},           /* no slot at all */
        {.pos = 1, .entries = {UINT64_MAX}},        /* nor this */
        {.pos = 1, .entries = {UINT64_C(1) << 32}}, /* 0 when cut to 32 bits */
        {.pos = 2, .entries = {0, 0}},              /* twice */
        {.pos = 3, .entries = {0, 1, 2}},           /* more than are out */
        {.pos = UINT64_MAX, .entries = {0}},        /* backwards */
        {.pos = UINT64_C(1) << 32, .entries = {0}}, /* a jump */
        {.pos = (UINT64_C(1) << 32) + 1, .entries = {0}},
        {.pos = (UINT64_C(1) << 63) + 1, .entries = {0}},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        struct fixture f;
        setup(&f);
        assert_int_equal(lend(&f, 10), 0);
        assert_int_equal(lend(&f, 10), 1);
        struct rbi_chunk other; /* held by another link */
        assert_int_equal(rbi_pool_take(&f.pool, 10, &other), RBI_POOL_OK);
        memcpy(f.ring, cases[i].entries, sizeof cases[i].entries);
        rbi_store_rlx(&f.returns_pos, cases[i].pos);
        assert_int_equal(rbi_refs_collect(&f.refs, &f.pool), -EPROTO);
        if (cases[i].pos > 2) {
            assert_int_equal(rbi_refs_used(&f.refs), 2); /* not an entry is believed */
        }
        rbi_refs_drop_all(&f.refs, &f.pool);
        assert_int_equal(rbi_refs_used(&f.refs), 0);
        assert_int_equal(rbi_pool_used(&f.pool), 1);
        rbi_pool_unref(&f.pool, other.idx);
        teardown(&f);
    }
}

/* The receiver of one link dies: its references go, those of the others stay. */
static void test_refs_drop_all_leaves_other_links_alone(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct rbi_refs other;
    rbi_au64 other_pos = 0;
    rbi_word other_ring[ENTRIES] = {0};
    assert_int_equal(rbi_refs_init(&other, ENTRIES, &other_pos, other_ring), 0);
    const uint32_t slot = lend(&f, 10);
    const uint32_t chunk = rbi_refs_chunk(&f.refs, slot);
    uint32_t other_slot = 0;
    assert_int_equal(rbi_refs_take(&other, &f.pool, chunk, &other_slot), RBI_POOL_OK);
    (void)lend(&f, 10);
    rbi_refs_drop_all(&f.refs, &f.pool);
    assert_int_equal(rbi_pool_used(&f.pool), 1);
    assert_int_equal(rbi_refs_chunk(&other, other_slot), chunk);
    rbi_refs_drop_all(&other, &f.pool);
    assert_int_equal(rbi_pool_used(&f.pool), 0);
    rbi_refs_deinit(&other);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_sparse),
        cmocka_unit_test(test_pool_plan_out_of_range_is_refused),
        cmocka_unit_test(test_pool_layout),
        cmocka_unit_test(test_pool_take_next_class_when_one_is_empty),
        cmocka_unit_test(test_pool_last_freed_goes_first),
        cmocka_unit_test(test_pool_chunk_lives_until_its_last_reference),
        cmocka_unit_test(test_refs_come_back_through_the_ring),
        cmocka_unit_test(test_refs_are_bounded_and_can_be_cancelled),
        cmocka_unit_test(test_refs_collect_refuses_hostile_returns),
        cmocka_unit_test(test_refs_drop_all_leaves_other_links_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
