/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies in the service table beside the clusters, blobs and the annex of a snapshot; and
 * readers while all of it changes, or is broken.
 */
#include "unit/directory.h"

/* ---- blobs and the annex ------------------------------------------------------------------- */

static void some_blob(unsigned char *out, uint64_t key, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        out[i] = (unsigned char)(key * 31 + i * 7);
    }
}

static void test_blobs(void **state)
{
    (void)state;
    enum { LARGEST = 4096 };
    static unsigned char blob[LARGEST];
    static unsigned char got[LARGEST];
    struct world w;
    uint64_t size = 0;
    world_init(&w, 16, 64, 1 << 20);
    assert_int_equal(publish(&w, 9, 1, 3), RBI_PUBLISH_OK);
    for (uint64_t key = 100; key < 140; key++) {
        const uint64_t bytes = key * 101 % (LARGEST + 1);
        some_blob(blob, key, bytes);
        assert_int_equal(rbi_directory_publish_blob(&w.writer, key, blob, bytes), RBI_PUBLISH_OK);
        assert_int_equal(rbi_directory_publish_blob(&w.writer, key, blob, bytes), RBI_PUBLISH_OK);
    }
    for (uint64_t key = 100; key < 140; key++) {
        const uint64_t bytes = key * 101 % (LARGEST + 1);
        some_blob(blob, key, bytes);
        assert_int_equal(rbi_directory_read_blob(&w.view, key, got, LARGEST, &size),
                         RBI_DIRECTORY_OK);
        assert_true(size == bytes);
        assert_memory_equal(got, blob, bytes);
        if (bytes > 0) {
            assert_int_equal(rbi_directory_read_blob(&w.view, key, got, bytes - 1, &size),
                             RBI_DIRECTORY_ROOM);
            assert_true(size == bytes);
        }
    }
    /* Who walks the clusters meets none of them, and a cluster is none. */
    uint64_t cursor = 0;
    uint64_t id = 0;
    assert_int_equal(rbi_directory_next(&w.view, &cursor, &id), RBI_DIRECTORY_OK);
    assert_true(id == 9);
    assert_int_equal(rbi_directory_next(&w.view, &cursor, &id), RBI_DIRECTORY_ABSENT);
    assert_int_equal(rbi_directory_read_blob(&w.view, 9, got, LARGEST, &size), RBI_DIRECTORY_BUSY);
    /* To the first releases it is a cluster in which nobody is. */
    struct rbi_directory_cluster head;
    assert_int_equal(rbi_directory_read(&w.view, 120, &head, NULL, 0), RBI_DIRECTORY_OK);
    assert_true(head.instance_count == 0 && head.path_length == 0);
    rbi_directory_withdraw(&w.writer, 120);
    assert_int_equal(rbi_directory_read_blob(&w.view, 120, got, LARGEST, &size),
                     RBI_DIRECTORY_ABSENT);
    assert_int_equal(rbi_directory_read_blob(&w.view, 121, got, LARGEST, &size), RBI_DIRECTORY_OK);
    assert_true(check(&w, 9, 3) == 1);
    world_deinit(&w);
}

static void test_blob_hostile(void **state)
{
    (void)state;
    static unsigned char got[64];
    struct world w;
    uint64_t size = 7;
    world_init(&w, 1, 1, 4096);
    static const struct {
        unsigned word;
        uint64_t bad[3];
    } rows[] = {
        {RBI_BLOCK_WORDS, {0, RBI_BLOB_BEGIN + 7, UINT64_MAX}},
        {RBI_BLOCK_CLUSTER, {0, 2, UINT64_MAX}},
        {RBI_BLOCK_EPOCH, {0, 1, UINT64_MAX - 1}},
        {RBI_BLOB_SIZE, {0, 65, UINT64_MAX}},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        for (unsigned j = 0; j < 3; j++) {
            rbi_au64 *block = fake_block(&w, RBI_BLOB_BEGIN + 8);
            rbi_store_rlx(&block[RBI_BLOCK_EPOCH], RBI_EPOCH_BLOB);
            rbi_store_rlx(&block[RBI_BLOB_SIZE], 64);
            assert_int_equal(rbi_directory_read_blob(&w.view, 1, got, sizeof got, &size),
                             RBI_DIRECTORY_OK);
            assert_true(size == 64);
            rbi_store_rlx(&block[rows[i].word], rows[i].bad[j]);
            assert_int_equal(rbi_directory_read_blob(&w.view, 1, got, sizeof got, &size),
                             RBI_DIRECTORY_BUSY);
        }
    }
    world_deinit(&w);
}

/* Snapshots of the first releases end behind their instances; those of later ones say more. */
static void test_annex(void **state)
{
    (void)state;
    enum { PATH = RBI_BLOCK_HEADER, INSTANCE = PATH + 1, ANNEX = INSTANCE + 4, WORDS = ANNEX + 5 };
    static struct rbi_directory_instance one;
    struct rbi_directory_cluster head;
    struct world w;
    world_init(&w, 1, 1, 4096);
    rbi_au64 *block = fake_block(&w, ANNEX);
    rbi_store_rlx(&block[RBI_BLOCK_PATH], 8);
    one.override = 9;
    assert_int_equal(rbi_directory_read(&w.view, 1, &head, &one, 1), RBI_DIRECTORY_OK);
    assert_true(head.policy == 0 && one.override == 0 && one.ramp == 0 && one.ready_ns == 0);

    /* With a third word for each instance. */
    const uint64_t good = 5 | UINT64_C(3) << 32;
    block = fake_block(&w, WORDS);
    rbi_store_rlx(&block[RBI_BLOCK_PATH], 8);
    rbi_store_rlx(&block[RBI_BLOCK_FLAGS],
                  UINT64_C(1) << 32 | RBI_BLOCK_HAS_ANNEX | RBI_CLUSTER_PANIC);
    rbi_store_rlx(&block[ANNEX], 77);
    rbi_store_rlx(&block[ANNEX + 1], 2 | UINT64_C(25) << 32);
    rbi_store_rlx(&block[ANNEX + 2], 12345);
    rbi_store_rlx(&block[ANNEX + 3],
                  2 | UINT64_C(300) << 16 | UINT64_C(6000) << 32 | UINT64_C(2000) << 48);
    rbi_store_rlx(&block[WORDS - 1], good);
    assert_int_equal(rbi_directory_read(&w.view, 1, &head, &one, 1), RBI_DIRECTORY_OK);
    assert_true(head.policy == 77 && one.override == 2 && one.ramp == 25 && one.ready_ns == 12345);
    assert_true(one.node == 2 && one.reported == 300);
    assert_true(one.demand == 6000 && one.node_demand == 2000);
    assert_true(head.flags == RBI_CLUSTER_PANIC);
    static const uint64_t bad[] = {5,
                                   4 | UINT64_C(3) << 32,
                                   1 | UINT64_C(3) << 32,
                                   6 | UINT64_C(3) << 32,
                                   5 | UINT64_C(65) << 32,
                                   UINT64_MAX};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        rbi_store_rlx(&block[WORDS - 1], bad[i]);
        assert_int_equal(rbi_directory_read(&w.view, 1, &head, &one, 1), RBI_DIRECTORY_BUSY);
    }
    world_deinit(&w);
}

static void test_read_over_broken_memory(void **state)
{
    (void)state;
    struct world w;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    uint64_t seed = 1;
    world_init(&w, 4, 4, 8192);
    /* The heap is exactly as long as the mapping: a sanitizer sees each step too far. */
    for (unsigned round = 0; round < 20000; round++) {
        rbi_directory_writer_init(&w.writer, w.base, w.size, 4, 4, 1);
        if (round % 64 == 0) {
            memset(w.base + 256, 0, w.size - 256);
            rbi_directory_writer_init(&w.writer, w.base, w.size, 4, 4, 1);
            assert_int_equal(publish(&w, 1, 1, 3), RBI_PUBLISH_OK);
            assert_int_equal(publish(&w, 2, 1, 0), RBI_PUBLISH_OK);
        }
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t words = (w.size - 256) / 8;
        const uint64_t at = 256 + (seed >> 20) % (round % 2 == 0 ? words : 160) * 8;
        const uint64_t junk = (seed >> 7) % 5 == 0 ? UINT64_MAX : (seed >> 33) % (w.size + 64);
        memcpy(w.base + at, &junk, 8);
        for (uint64_t id = 0; id < 4; id++) {
            const int r = rbi_directory_read(&w.view, id, &head, instances, 8);
            assert_in_range(r, RBI_DIRECTORY_OK, RBI_DIRECTORY_ROOM);
        }
    }
    world_deinit(&w);
}

/* ---- threads ----------------------------------------------------------------------------- */

#define RACE_CLUSTERS 3U
#define RACE_EPOCHS   30000U

static struct world race;
static rbi_au64 race_over;

static uint32_t race_count(uint64_t epoch)
{
    return (uint32_t)(epoch * 5 % 19);
}

static void *race_reader(void *arg)
{
    struct rbi_directory_instance instances[32];
    struct rbi_directory_cluster head;
    uint64_t last[RACE_CLUSTERS + 1] = {0};
    uint64_t *good = arg;
    while (rbi_load_acq(&race_over) == 0) {
        for (uint64_t id = 1; id <= RACE_CLUSTERS; id++) {
            const uint64_t floor = rbi_directory_epoch(&race.view, id);
            const int r = rbi_directory_read(&race.view, id, &head, instances, 32);
            if (r == RBI_DIRECTORY_BUSY || r == RBI_DIRECTORY_ABSENT) {
                continue;
            }
            bool torn = r != RBI_DIRECTORY_OK || head.cluster != id || head.epoch < last[id] ||
                        head.instance_count != race_count(head.epoch) ||
                        (floor != 0 && head.epoch < floor);
            for (uint32_t i = 0; !torn && i < head.instance_count; i++) {
                const struct rbi_directory_instance one =
                    some_instance((uint32_t)head.epoch * 1000 + i);
                torn = !same_instance(&instances[i], &one);
            }
            if (torn) {
                (void)fprintf(stderr, "torn snapshot of cluster %u at epoch %u\n", (unsigned)id,
                              (unsigned)head.epoch);
                exit(1);
            }
            last[id] = head.epoch;
            (*good)++;
        }
    }
    return NULL;
}

static void test_readers_never_see_a_torn_snapshot(void **state)
{
    (void)state;
    pthread_t readers[2];
    uint64_t good[2] = {0};
    world_init(&race, 1, 8, 48 << 10); /* few blocks: each is used again soon */
    rbi_store_rel(&race_over, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, race_reader, &good[i]), 0);
    }
    for (uint64_t epoch = 1; epoch <= RACE_EPOCHS; epoch++) {
        const uint64_t id = 1 + epoch % RACE_CLUSTERS;
        if (epoch % 97 == 0) {
            rbi_directory_withdraw(&race.writer, id);
            assert_int_equal(publish(&race, 50, epoch, 1), RBI_PUBLISH_OK);
            rbi_directory_withdraw(&race.writer, 50);
        } else {
            assert_int_equal(publish(&race, id, epoch, race_count(epoch)), RBI_PUBLISH_OK);
        }
    }
    rbi_store_rel(&race_over, 1);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    }
    assert_true(good[0] + good[1] > 0);
    world_deinit(&race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blobs),
        cmocka_unit_test(test_blob_hostile),
        cmocka_unit_test(test_annex),
        cmocka_unit_test(test_read_over_broken_memory),
        cmocka_unit_test(test_readers_never_see_a_torn_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
