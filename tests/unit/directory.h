/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_DIRECTORY_H
#define RINGBUS_TESTS_UNIT_DIRECTORY_H
/* A service table in memory of this process, and clusters whose fields follow from numbers. */
#include "bus/directory_layout.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    unsigned char *base;
    uint64_t size;
    struct rbi_directory_writer writer;
    struct rbi_directory_view view;
};

static inline void world_init(struct world *w, uint32_t slots, uint32_t clusters, uint64_t heap)
{
    w->size = rbi_directory_size(slots, clusters, heap);
    w->base = aligned_alloc(RBI_PAGE, w->size);
    assert_non_null(w->base);
    memset(w->base, 0, w->size);
    rbi_directory_writer_init(&w->writer, w->base, w->size, slots, clusters, 77);
    assert_int_equal(rbi_directory_view_init(&w->view, w->base, w->size), 0);
}

static inline void world_deinit(struct world *w)
{
    free(w->base);
}

static inline struct rbi_directory_cluster some_cluster(uint64_t id, uint64_t epoch, uint32_t count)
{
    struct rbi_directory_cluster head;
    memset(&head, 0, sizeof head);
    head.cluster = id;
    head.epoch = epoch;
    head.flags = 5;
    head.policy = epoch * UINT64_C(0x9e3779b97f4a7c15);
    head.instance_count = count;
    head.absent_count = (uint32_t)(epoch % 5);
    head.path_length =
        (uint32_t)snprintf(head.path, sizeof head.path, "/a/b/c/d/e/%llu", (unsigned long long)id);
    return head;
}

static inline void set_label(char *to, char c, size_t length)
{
    memset(to, c, length);
    to[length] = 0;
}

/** Every field follows from @p n. */
static inline struct rbi_directory_instance some_instance(uint32_t n)
{
    struct rbi_directory_instance one;
    memset(&one, 0, sizeof one);
    one.instance = (int32_t)(n | 1);
    one.incarnation = n ^ 0xffffffffU;
    one.state = n % 5;
    one.health = n * 3;
    one.weight = n * 7;
    one.host = n * 11;
    one.override = n % 4;
    one.ramp = n % 101;
    one.ready_ns = n * UINT64_C(1000000007);
    one.node = (uint16_t)(n * 17);
    one.reported = (uint16_t)(n * 19);
    one.demand = (uint16_t)(n * 23);
    one.node_demand = (uint16_t)(n * 29);
    one.name_length = n % (RBI_PATH_ELEMENT_MAX + 1);
    set_label(one.name, (char)('a' + n % 26), one.name_length);
    set_label(one.set, (char)('A' + n % 26), n * 5 % (RBI_DIRECTORY_LABEL_MAX + 1));
    set_label(one.idc, (char)('a' + n % 25), n * 9 % (RBI_DIRECTORY_LABEL_MAX + 1));
    set_label(one.tags, (char)('a' + n % 24), n * 13 % (RBI_DIRECTORY_LABEL_MAX + 1));
    return one;
}

static inline bool same_instance(const struct rbi_directory_instance *a,
                                 const struct rbi_directory_instance *b)
{
    return memcmp(a, b, offsetof(struct rbi_directory_instance, name)) == 0 &&
           strcmp(a->name, b->name) == 0 && strcmp(a->set, b->set) == 0 &&
           strcmp(a->idc, b->idc) == 0 && strcmp(a->tags, b->tags) == 0;
}

static inline int publish(struct world *w, uint64_t id, uint64_t epoch, uint32_t count)
{
    struct rbi_directory_instance instances[128];
    const struct rbi_directory_cluster head = some_cluster(id, epoch, count);
    assert_true(count + head.absent_count <= RBI_ARRAY_SIZE(instances));
    for (uint32_t i = 0; i < count + head.absent_count; i++) {
        instances[i] = some_instance((uint32_t)epoch * 1000 + i);
    }
    return rbi_directory_publish(&w->writer, &head, instances);
}

/** Reads a cluster and compares it with what publish() wrote at its epoch. @return its epoch */
static inline uint64_t check(const struct world *w, uint64_t id, uint32_t expected_count)
{
    static struct rbi_directory_instance instances[128];
    struct rbi_directory_cluster head;
    assert_int_equal(rbi_directory_read_all(&w->view, id, &head, instances, 128), RBI_DIRECTORY_OK);
    const struct rbi_directory_cluster expected = some_cluster(id, head.epoch, expected_count);
    assert_memory_equal(&head, &expected, offsetof(struct rbi_directory_cluster, path));
    assert_string_equal(head.path, expected.path);
    for (uint32_t i = 0; i < expected_count + expected.absent_count; i++) {
        const struct rbi_directory_instance one = some_instance((uint32_t)head.epoch * 1000 + i);
        assert_true(same_instance(&instances[i], &one));
    }
    return head.epoch;
}

/** A block of our own making at the very end of the mapping: @p words of it exist. */
static inline rbi_au64 *fake_block(struct world *w, uint64_t words)
{
    const uint64_t ref = w->size - words * 8;
    struct rbi_directory_entry *table =
        (void *)(w->base + rbi_directory_table_offset(w->view.slot_count));
    rbi_au64 *block = (void *)(w->base + ref);
    struct rbi_directory_entry *entry = &table[rbi_directory_home(1, w->view.table_mask)];
    for (uint64_t i = 0; i < words; i++) {
        rbi_store_rlx(&block[i], 0);
    }
    rbi_store_rlx(&entry->cluster, 1);
    rbi_store_rlx(&entry->ref, rbi_directory_ref(ref, 1));
    rbi_store_rlx(&block[RBI_BLOCK_WORDS], words);
    rbi_store_rlx(&block[RBI_BLOCK_CLUSTER], 1);
    rbi_store_rlx(&block[RBI_BLOCK_FLAGS], UINT64_C(1) << 32);
    return block;
}

static inline int read_fake(const struct world *w)
{
    static struct rbi_directory_instance instances[8];
    struct rbi_directory_cluster head;
    return rbi_directory_read(&w->view, 1, &head, instances, 8);
}

#endif
