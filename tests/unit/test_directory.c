/* SPDX-License-Identifier: Apache-2.0 */
/* The service table: what is published is read, whole or not at all; hostile memory is survived. */
#include "unit/directory.h"

static void test_publish_and_read(void **state)
{
    (void)state;
    struct world w;
    struct rbi_directory_cluster head = {.cluster = 1};
    world_init(&w, 16, 8, 1 << 20);
    assert_int_equal(rbi_directory_read(&w.view, 9, &head, NULL, 0), RBI_DIRECTORY_ABSENT);
    assert_int_equal(rbi_directory_read(&w.view, 0, &head, NULL, 0), RBI_DIRECTORY_ABSENT);
    assert_true(head.cluster == 1); /* untouched */
    assert_int_equal(rbi_directory_epoch(&w.view, 9), 0);
    for (uint32_t count = 0; count <= 100; count++) {
        assert_int_equal(publish(&w, 9, count + 1, count), RBI_PUBLISH_OK);
        assert_true(rbi_directory_epoch(&w.view, 9) == count + 1);
        assert_true(check(&w, 9, count) == count + 1);
    }
    world_deinit(&w);
}

static void test_read_room(void **state)
{
    (void)state;
    struct world w;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[3];
    world_init(&w, 16, 8, 1 << 20);
    assert_int_equal(publish(&w, 4, 1, 5), RBI_PUBLISH_OK);
    assert_int_equal(rbi_directory_read(&w.view, 4, &head, instances, 3), RBI_DIRECTORY_ROOM);
    assert_int_equal(head.instance_count, 5);
    const struct rbi_directory_instance third = some_instance(1002);
    assert_true(same_instance(&instances[2], &third));
    assert_int_equal(rbi_directory_read(&w.view, 4, &head, NULL, 0), RBI_DIRECTORY_ROOM);
    assert_int_equal(head.instance_count, 5);
    world_deinit(&w);
}

static void test_longest_texts(void **state)
{
    (void)state;
    struct world w;
    struct rbi_directory_cluster head = some_cluster(3, 5, 1);
    struct rbi_directory_cluster out;
    struct rbi_directory_instance one = some_instance(1);
    struct rbi_directory_instance got;
    world_init(&w, 1, 1, 1 << 16);
    set_label(head.path, 'p', RBI_PATH_MAX);
    head.path_length = RBI_PATH_MAX;
    one.name_length = RBI_PATH_ELEMENT_MAX;
    set_label(one.name, 'n', RBI_PATH_ELEMENT_MAX);
    set_label(one.set, 's', RBI_DIRECTORY_LABEL_MAX);
    set_label(one.idc, 'i', RBI_DIRECTORY_LABEL_MAX);
    set_label(one.tags, 't', RBI_DIRECTORY_LABEL_MAX);
    assert_int_equal(rbi_directory_publish(&w.writer, &head, &one), RBI_PUBLISH_OK);
    assert_int_equal(rbi_directory_read(&w.view, 3, &out, &got, 1), RBI_DIRECTORY_OK);
    assert_string_equal(out.path, head.path);
    assert_true(same_instance(&got, &one));
    world_deinit(&w);
}

static void test_words(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 4, 8, 4096);
    assert_true(rbi_directory_revision(&w.view) == 0);
    rbi_directory_set_revision(&w.writer, 12);
    assert_true(rbi_directory_revision(&w.view) == 12);
    assert_false(rbi_directory_superseded(&w.view));
    rbi_directory_supersede(&w.writer);
    assert_true(rbi_directory_superseded(&w.view));
    rbi_directory_bump(&w.writer, 3);
    rbi_directory_bump(&w.writer, 3);
    assert_true(rbi_directory_attention(&w.view, 3) == 2);
    assert_true(rbi_directory_attention(&w.view, 2) == 0);
    rbi_directory_bump(&w.writer, 4); /* no such slot */
    assert_true(rbi_directory_attention(&w.view, 4) == 0);
    assert_true(rbi_directory_attention(&w.view, UINT32_MAX) == 0);
    world_deinit(&w);
}

static void test_full_table_and_heap(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1, 8, 1 << 20);
    for (uint64_t id = 1; id <= 8; id++) {
        assert_int_equal(publish(&w, id * 16, 1, 1), RBI_PUBLISH_OK); /* all from one home */
    }
    assert_int_equal(publish(&w, 999, 1, 1), RBI_PUBLISH_FULL);
    assert_int_equal(publish(&w, 16, 2, 2), RBI_PUBLISH_OK); /* a known one goes on */
    for (uint64_t id = 2; id <= 8; id++) {
        assert_true(check(&w, id * 16, 1) == 1);
    }
    rbi_directory_withdraw(&w.writer, 32);
    assert_int_equal(publish(&w, 999, 1, 1), RBI_PUBLISH_OK);
    world_deinit(&w);

    world_init(&w, 1, 64, 8192);
    uint64_t id = 1;
    while (publish(&w, id, 1, 1) == RBI_PUBLISH_OK) {
        id++;
    }
    assert_in_range(id, 8, 64);
    /* Refused whole: what was there is there, and a larger snapshot of it is refused as well. */
    assert_int_equal(publish(&w, 1, 2, 100), RBI_PUBLISH_FULL);
    for (uint64_t i = 1; i < id; i++) {
        assert_true(check(&w, i, 1) == 1);
    }
    rbi_directory_withdraw(&w.writer, 1);
    assert_int_equal(publish(&w, id, 1, 1), RBI_PUBLISH_OK);
    world_deinit(&w);
}

static void test_replacing_for_ever_needs_no_more_room(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1, 8, 64 << 10);
    for (uint64_t epoch = 1; epoch < 20000; epoch++) {
        const uint64_t id = 1 + epoch % 5;
        assert_int_equal(publish(&w, id, epoch, (uint32_t)(epoch * 7 % 23)), RBI_PUBLISH_OK);
        assert_true(check(&w, id, (uint32_t)(epoch * 7 % 23)) == epoch);
    }
    world_deinit(&w);
}

/** A random one of at most @p most instances; each has about 100 bytes. */
static uint32_t some_count(uint64_t *seed, uint32_t most)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint32_t roll = (uint32_t)(*seed >> 33);
    return roll % 16 == 0 ? (roll >> 4) % (most + 1) : (roll >> 4) % 4; /* mostly small ones */
}

static uint64_t free_bytes(const struct rbi_directory_heap *heap)
{
    uint64_t bytes = heap->end - heap->top;
    for (unsigned log2 = 0; log2 <= RBI_BLOCK_LOG2_MAX; log2++) {
        uint64_t at = heap->free_blocks[log2];
        while (at != 0) {
            assert_true((at - heap->begin) % (UINT64_C(1) << log2) == 0);
            bytes += UINT64_C(1) << log2;
            at = rbi_load_rlx((const rbi_au64 *)(const void *)(heap->base + at) + RBI_BLOCK_NEXT);
        }
    }
    return bytes;
}

/** What is freed becomes one again, whatever came and went: no end of it in a larger segment. */
static void test_a_million_changes_fit_where_few_do(void **state)
{
    enum { IDS = 100, CHANGES = 1000000, MOST = 64 };
    struct world w;
    struct rbi_directory_instance instances[MOST];
    uint64_t seed = 77;
    uint64_t peak = 0;
    (void)state;
    for (uint32_t i = 0; i < MOST; i++) {
        instances[i] = some_instance(i);
    }
    world_init(&w, 1, 128, 192 << 10);
    const uint64_t whole = free_bytes(&w.writer.heap);
    for (uint64_t change = 1; change <= CHANGES; change++) {
        const unsigned i = (unsigned)(seed >> 20) % IDS;
        const uint32_t count = some_count(&seed, MOST);
        if (change % 3 == 0) {
            rbi_directory_withdraw(&w.writer, i + 1);
        } else {
            const struct rbi_directory_cluster head = some_cluster(i + 1, change * 5, count);
            assert_int_equal(rbi_directory_publish(&w.writer, &head, instances), RBI_PUBLISH_OK);
        }
        if (change % 64 == 0) {
            peak = rbi_max_u64(peak, whole - free_bytes(&w.writer.heap));
        }
    }
    print_message("%u KiB in use at most, of %u\n", (unsigned)(peak >> 10),
                  (unsigned)(whole >> 10));
    assert_in_range(peak, whole / 2, whole);
    for (unsigned i = 0; i < IDS; i++) {
        rbi_directory_withdraw(&w.writer, i + 1);
    }
    /* All of it is there, and in one piece: the largest block that fits can be had. */
    assert_true(free_bytes(&w.writer.heap) == whole);
    assert_int_equal(rbi_directory_heap_take(&w.writer.heap, 128 << 10) != 0, 1);
    world_deinit(&w);
}

static void test_withdraw_random(void **state)
{
    (void)state;
    enum { IDS = 40 };
    struct world w;
    uint64_t known[IDS] = {0}; /* epoch, 0 = absent */
    uint64_t seed = 5;
    world_init(&w, 1, 32, 1 << 20);
    for (uint64_t epoch = 1; epoch < 20000; epoch++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const unsigned i = (unsigned)(seed >> 33) % IDS;
        const uint64_t id = 1 + i * (i % 3 == 0 ? 64U : 1U); /* with and without one home */
        if ((seed >> 60) % 2 == 0) {
            rbi_directory_withdraw(&w.writer, id);
            known[i] = 0;
        } else if (publish(&w, id, epoch, 1) == RBI_PUBLISH_OK) {
            known[i] = epoch;
        }
        unsigned live = 0;
        for (unsigned j = 0; j < IDS; j++) {
            const uint64_t other = 1 + j * (j % 3 == 0 ? 64U : 1U);
            live += known[j] != 0;
            assert_true(rbi_directory_epoch(&w.view, other) == known[j]);
        }
        assert_true(w.writer.cluster_count == live);
        uint64_t cursor = 0;
        uint64_t cluster = 0;
        while (rbi_directory_next(&w.view, &cursor, &cluster) == RBI_DIRECTORY_OK) {
            assert_true(rbi_directory_epoch(&w.view, cluster) != 0);
            live--;
        }
        assert_int_equal(live, 0);
    }
    for (unsigned j = 0; j < IDS; j++) {
        rbi_directory_withdraw(&w.writer, 1 + j * (j % 3 == 0 ? 64U : 1U));
    }
    /* All gone: not one entry is left behind to be searched over. */
    for (uint64_t idx = 0; idx <= w.view.table_mask; idx++) {
        const struct rbi_directory_entry *table =
            (const void *)(w.base + rbi_directory_table_offset(w.view.slot_count));
        assert_true(rbi_load_rlx(&table[idx].cluster) == 0);
    }
    world_deinit(&w);
}

static void test_many_clusters(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct world w;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance one = some_instance(8);
    struct rbi_directory_instance got;
    memset(one.set, 0, sizeof one.set);
    memset(one.idc, 0, sizeof one.idc);
    memset(one.tags, 0, sizeof one.tags);
    world_init(&w, 4096, MANY, UINT64_C(256) * MANY);
    for (uint64_t i = 1; i <= MANY; i++) {
        head = some_cluster(i * UINT64_C(0x9e3779b97f4a7c15), i, 1);
        head.absent_count = 0;
        assert_int_equal(rbi_directory_publish(&w.writer, &head, &one), RBI_PUBLISH_OK);
    }
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_int_equal(
            rbi_directory_read(&w.view, i * UINT64_C(0x9e3779b97f4a7c15), &head, &got, 1),
            RBI_DIRECTORY_OK);
        assert_true(head.epoch == i);
        assert_true(same_instance(&got, &one));
    }
    world_deinit(&w);
}

static void test_view_refuses(void **state)
{
    (void)state;
    struct world w;
    struct rbi_directory_view view = {.size = 3};
    world_init(&w, 16, 8, 4096);
    for (uint64_t size = 0; size < w.size; size += 61) {
        assert_int_equal(rbi_directory_view_init(&view, w.base, size), -EPROTO);
    }
    static const unsigned fields[] = {64, 72, 80, 88, 96}; /* magic to heap_offset */
    static const uint64_t values[] = {
        0, 1, 17, UINT32_MAX, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX};
    for (unsigned f = 0; f < RBI_ARRAY_SIZE(fields); f++) {
        for (unsigned v = 0; v < RBI_ARRAY_SIZE(values); v++) {
            uint64_t kept = 0;
            memcpy(&kept, w.base + fields[f], 8);
            memcpy(w.base + fields[f], &values[v], 8);
            assert_int_equal(rbi_directory_view_init(&view, w.base, w.size), -EPROTO);
            memcpy(w.base + fields[f], &kept, 8);
        }
    }
    assert_true(view.size == 3 && view.base == NULL);
    assert_int_equal(rbi_directory_view_init(&view, w.base, w.size), 0);
    world_deinit(&w);
}

static void test_read_checks_each_word(void **state)
{
    (void)state;
    /* Header, path of 2 words, instance of 4 words, 32 words for its texts. */
    enum { PATH = RBI_BLOCK_HEADER, INSTANCE = PATH + 2, WORDS = INSTANCE + 4 + 32 };
    static const struct {
        unsigned word;
        uint64_t good;
        uint64_t bad[3];
    } rows[] = {
        {RBI_BLOCK_WORDS, WORDS, {RBI_BLOCK_HEADER - 1, WORDS - 1, WORDS + 1}},
        {RBI_BLOCK_CLUSTER, 1, {0, 2, UINT64_MAX}},
        {RBI_BLOCK_PATH, 16, {256, (WORDS - PATH) * 8 - 8, UINT64_MAX}},
        {RBI_BLOCK_FLAGS, UINT64_C(1) << 32, {UINT64_C(2) << 32, UINT64_MAX, UINT64_MAX}},
        {INSTANCE + RBI_INSTANCE_LENGTHS, 0x3f3f3f3f, {0x40, 0x40000000, 0x4000}},
    };
    struct world w;
    world_init(&w, 1, 1, 4096);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        for (unsigned j = 0; j < 3; j++) {
            rbi_au64 *block = fake_block(&w, WORDS);
            rbi_store_rlx(&block[RBI_BLOCK_PATH], 16);
            rbi_store_rlx(&block[INSTANCE + RBI_INSTANCE_LENGTHS], 0x3f3f3f3f);
            assert_true(rbi_load_rlx(&block[rows[i].word]) == rows[i].good);
            assert_int_equal(read_fake(&w), RBI_DIRECTORY_OK);
            rbi_store_rlx(&block[rows[i].word], rows[i].bad[j]);
            assert_int_equal(read_fake(&w), RBI_DIRECTORY_BUSY);
        }
    }
    /* A path that reaches over the end, in a snapshot without instances. */
    rbi_au64 *small = fake_block(&w, RBI_BLOCK_HEADER + 1);
    rbi_store_rlx(&small[RBI_BLOCK_FLAGS], 0);
    rbi_store_rlx(&small[RBI_BLOCK_PATH], 8);
    assert_int_equal(read_fake(&w), RBI_DIRECTORY_OK);
    rbi_store_rlx(&small[RBI_BLOCK_PATH], 9);
    assert_int_equal(read_fake(&w), RBI_DIRECTORY_BUSY);
    /* References outside of the segment, and with a header that does not fit. */
    struct rbi_directory_entry *table =
        (void *)(w.base + rbi_directory_table_offset(w.view.slot_count));
    static const uint64_t before_end[] = {8, 56, 48, 0, 16};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(before_end); i++) {
        rbi_store_rlx(&table[rbi_directory_home(1, w.view.table_mask)].ref,
                      rbi_directory_ref(w.size - before_end[i], 1));
        assert_int_equal(read_fake(&w), RBI_DIRECTORY_BUSY);
    }
    rbi_store_rlx(&table[rbi_directory_home(1, w.view.table_mask)].ref, UINT64_MAX);
    assert_int_equal(read_fake(&w), RBI_DIRECTORY_BUSY);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_publish_and_read),
        cmocka_unit_test(test_read_room),
        cmocka_unit_test(test_longest_texts),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_full_table_and_heap),
        cmocka_unit_test(test_replacing_for_ever_needs_no_more_room),
        cmocka_unit_test(test_a_million_changes_fit_where_few_do),
        cmocka_unit_test(test_withdraw_random),
        cmocka_unit_test(test_many_clusters),
        cmocka_unit_test(test_view_refuses),
        cmocka_unit_test(test_read_checks_each_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
