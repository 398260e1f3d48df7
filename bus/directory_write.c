/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/directory_write.c - the daemon's side of the directory. It reads back only what it
 * wrote itself: nobody else can write the segment.
 */
#include "bus/directory_layout.h"

#include <string.h>

static rbi_au64 *word_at(const struct rbi_directory_writer *writer, uint64_t offset)
{
    return (rbi_au64 *)(void *)(writer->base + offset);
}

static struct rbi_directory_head *head_of(const struct rbi_directory_writer *writer)
{
    return (struct rbi_directory_head *)(void *)writer->base;
}

static struct rbi_directory_entry *entry_at(const struct rbi_directory_writer *writer, uint64_t idx)
{
    void *table = writer->base + rbi_directory_table_offset(head_of(writer)->slot_count);
    return (struct rbi_directory_entry *)table + idx;
}

static uint64_t table_mask(const struct rbi_directory_writer *writer)
{
    return head_of(writer)->table_size - 1;
}

static uint64_t table_size_for(uint32_t clusters)
{
    return 2 * rbi_pow2_ceil(clusters);
}

uint64_t rbi_directory_size(uint32_t slots, uint32_t clusters, uint64_t heap_bytes)
{
    return rbi_align_up(rbi_directory_heap_offset(slots, table_size_for(clusters)) + heap_bytes,
                        RBI_PAGE);
}

void rbi_directory_writer_init(struct rbi_directory_writer *writer,
                               void *base,
                               uint64_t size,
                               uint32_t slots,
                               uint32_t clusters,
                               uint64_t daemon_incarnation)
{
    const uint64_t table_size = table_size_for(clusters);
    const uint64_t heap_offset = rbi_directory_heap_offset(slots, table_size);
    RBI_ASSERT(heap_offset <= size && size <= RBI_DIRECTORY_BYTES_MAX);
    *writer = (struct rbi_directory_writer){.base = base, .size = size};
    rbi_directory_heap_init(&writer->heap, base, heap_offset, size);
    struct rbi_directory_head *head = head_of(writer);
    head->magic = RBI_DIRECTORY_MAGIC;
    head->size_bytes = size;
    head->slot_count = slots;
    head->table_size = table_size;
    head->heap_offset = heap_offset;
    head->daemon_incarnation = daemon_incarnation;
}

/* ---- snapshots --------------------------------------------------------------------------- */

struct text_lengths {
    uint64_t name;
    uint64_t set;
    uint64_t idc;
    uint64_t tags;
};

static struct text_lengths lengths_of(const struct rbi_directory_instance *instance)
{
    RBI_ASSERT(instance->name_length <= RBI_PATH_ELEMENT_MAX);
    return (struct text_lengths){
        .name = instance->name_length,
        .set = strnlen(instance->set, RBI_DIRECTORY_LABEL_MAX),
        .idc = strnlen(instance->idc, RBI_DIRECTORY_LABEL_MAX),
        .tags = strnlen(instance->tags, RBI_DIRECTORY_LABEL_MAX),
    };
}

/** With those who are absent. */
static uint32_t listed(const struct rbi_directory_cluster *head)
{
    return head->instance_count + head->absent_count;
}

static uint64_t annex_words(const struct rbi_directory_cluster *head)
{
    return RBI_ANNEX_BASE + RBI_ANNEX_INSTANCE * (uint64_t)listed(head);
}

static uint64_t snapshot_words(const struct rbi_directory_cluster *head,
                               const struct rbi_directory_instance *instances)
{
    uint64_t words =
        RBI_BLOCK_HEADER + rbi_directory_text_words(head->path_length) + annex_words(head);
    for (uint32_t i = 0; i < listed(head); i++) {
        const struct text_lengths length = lengths_of(&instances[i]);
        words += RBI_INSTANCE_HEADER + rbi_directory_text_words(length.name) +
                 rbi_directory_text_words(length.set) + rbi_directory_text_words(length.idc) +
                 rbi_directory_text_words(length.tags);
    }
    return words;
}

static void put(rbi_au64 **at, uint64_t value)
{
    /* R20: pairs with A20 */
    rbi_store_rel(*at, value);
    (*at)++;
}

static void put_text(rbi_au64 **at, const char *text, uint64_t length)
{
    for (uint64_t done = 0; done < length; done += 8) {
        uint64_t word = 0;
        memcpy(&word, text + done, rbi_min_u64(8, length - done));
        put(at, word);
    }
}

static void put_instance(rbi_au64 **at, const struct rbi_directory_instance *instance)
{
    const struct text_lengths length = lengths_of(instance);
    put(at, (uint32_t)instance->instance | (uint64_t)instance->incarnation << 32);
    put(at, instance->state | (uint64_t)instance->health << 32);
    put(at, instance->weight | (uint64_t)instance->host << 32);
    put(at, length.name | length.set << 8 | length.idc << 16 | length.tags << 24);
    put_text(at, instance->name, length.name);
    put_text(at, instance->set, length.set);
    put_text(at, instance->idc, length.idc);
    put_text(at, instance->tags, length.tags);
}

static void put_annex(rbi_au64 **at,
                      const struct rbi_directory_cluster *head,
                      const struct rbi_directory_instance *instances)
{
    put(at, head->policy);
    for (uint32_t i = 0; i < listed(head); i++) {
        put(at, (instances[i].override & 0xffffU) | (instances[i].flags & 0xffffU) << 16 |
                    (uint64_t)instances[i].ramp << 32);
        put(at, instances[i].ready_ns);
        put(at, instances[i].node | (uint64_t)instances[i].reported << 16 |
                    (uint64_t)instances[i].demand << 32 | (uint64_t)instances[i].node_demand << 48);
    }
    put(at, annex_words(head) | (uint64_t)RBI_ANNEX_INSTANCE << 32 |
                (uint64_t)head->absent_count << 48);
}

/** Fills a block that nothing refers to yet. */
static void fill_block(struct rbi_directory_writer *writer,
                       uint64_t offset,
                       uint64_t words,
                       const struct rbi_directory_cluster *head,
                       const struct rbi_directory_instance *instances)
{
    rbi_au64 *block = word_at(writer, offset);
    rbi_au64 *at = &block[RBI_BLOCK_WORDS];
    put(&at, words);
    put(&at, head->cluster);
    put(&at, head->epoch);
    put(&at, head->flags | RBI_BLOCK_HAS_ANNEX | (uint64_t)head->instance_count << 32);
    put(&at, head->path_length);
    put_text(&at, head->path, head->path_length);
    for (uint32_t i = 0; i < listed(head); i++) {
        put_instance(&at, &instances[i]);
    }
    put_annex(&at, head, instances);
}

/* ---- table ------------------------------------------------------------------------------- */

/**
 * Looks for a cluster. All loads are of our own words.
 * @param place  set when it is not there: entry to be used for it, or NULL when there is none
 */
static struct rbi_directory_entry *find(const struct rbi_directory_writer *writer,
                                        uint64_t cluster,
                                        struct rbi_directory_entry **place)
{
    const uint64_t mask = table_mask(writer);
    *place = NULL;
    for (uint64_t i = 0; i <= mask; i++) {
        struct rbi_directory_entry *entry =
            entry_at(writer, (rbi_directory_home(cluster, mask) + i) & mask);
        const uint64_t id = rbi_load_rlx(&entry->cluster);
        if (id == cluster) {
            return entry;
        }
        if (*place == NULL && rbi_load_rlx(&entry->ref) == 0) {
            *place = entry;
        }
        if (id == 0) {
            break;
        }
    }
    return NULL;
}

/** Entry for @p id, there or to be used; NULL: the table is full. */
static struct rbi_directory_entry *place_for(const struct rbi_directory_writer *writer, uint64_t id)
{
    struct rbi_directory_entry *place = NULL;
    struct rbi_directory_entry *entry = find(writer, id, &place);
    if (entry == NULL) {
        entry = place;
    }
    /* Half of the table stays free, so that looking for an absent cluster stays short. */
    if (entry == NULL ||
        (rbi_load_rlx(&entry->ref) == 0 && writer->cluster_count >= (table_mask(writer) + 1) / 2)) {
        return NULL;
    }
    return entry;
}

/** Makes an entry refer to a block that is filled, and gives back the one before. */
static void swing(struct rbi_directory_writer *writer,
                  struct rbi_directory_entry *entry,
                  uint64_t id,
                  uint64_t block,
                  uint64_t epoch)
{
    const uint64_t old = rbi_load_rlx(&entry->ref);
    /* R22: pairs with A22. An entry taken over has reference 0 and epoch 0 until here. */
    rbi_store_rel(&entry->cluster, id);
    if (epoch == RBI_EPOCH_BLOB) {
        /* R22: pairs with A22. First: whoever walks the table never takes it for a cluster. */
        rbi_store_rel(&entry->epoch, epoch);
    }
    /* R22: pairs with A22 */
    rbi_store_rel(&entry->ref, rbi_directory_ref(block, ++writer->uses));
    /* R22: pairs with A22. Last: who sees the new epoch finds the new snapshot. */
    rbi_store_rel(&entry->epoch, epoch);
    if (old != 0) {
        rbi_directory_heap_give(&writer->heap, rbi_directory_ref_offset(old));
    } else {
        writer->cluster_count++;
    }
}

int rbi_directory_publish(struct rbi_directory_writer *writer,
                          const struct rbi_directory_cluster *head,
                          const struct rbi_directory_instance *instances)
{
    RBI_ASSERT(head->cluster != 0 && head->path_length <= RBI_PATH_MAX &&
               head->absent_count <= RBI_DIRECTORY_ABSENT_MAX);
    struct rbi_directory_entry *entry = place_for(writer, head->cluster);
    const uint64_t words = snapshot_words(head, instances);
    const uint64_t block = entry == NULL ? 0 : rbi_directory_heap_take(&writer->heap, words * 8);
    if (block == 0) {
        return RBI_PUBLISH_FULL;
    }
    fill_block(writer, block, words, head, instances);
    swing(writer, entry, head->cluster, block, head->epoch);
    return RBI_PUBLISH_OK;
}

int rbi_directory_publish_blob(struct rbi_directory_writer *writer,
                               uint64_t key,
                               const void *bytes,
                               uint64_t size)
{
    RBI_ASSERT(key != 0 && size <= RBI_DIRECTORY_BLOB_MAX);
    struct rbi_directory_entry *entry = place_for(writer, key);
    if (entry != NULL && rbi_load_rlx(&entry->ref) != 0) {
        return RBI_PUBLISH_OK; /* the same key, the same content */
    }
    const uint64_t words = RBI_BLOB_BEGIN + rbi_directory_text_words(size);
    const uint64_t block = entry == NULL ? 0 : rbi_directory_heap_take(&writer->heap, words * 8);
    if (block == 0) {
        return RBI_PUBLISH_FULL;
    }
    rbi_au64 *at = word_at(writer, block) + RBI_BLOCK_WORDS;
    put(&at, words);
    put(&at, key);
    put(&at, RBI_EPOCH_BLOB);
    put(&at, 0); /* no instances */
    put(&at, 0); /* no path */
    put(&at, size);
    put_text(&at, bytes, size);
    swing(writer, entry, key, block, RBI_EPOCH_BLOB);
    return RBI_PUBLISH_OK;
}

/** Withdrawn entries before an unused one carry no chain any more: unused again. */
static void clear_tail(struct rbi_directory_writer *writer, uint64_t idx)
{
    const uint64_t mask = table_mask(writer);
    if (rbi_load_rlx(&entry_at(writer, (idx + 1) & mask)->cluster) != 0) {
        return;
    }
    struct rbi_directory_entry *entry = entry_at(writer, idx);
    while (rbi_load_rlx(&entry->cluster) != 0 && rbi_load_rlx(&entry->ref) == 0) {
        /* R22: pairs with A22 */
        rbi_store_rel(&entry->cluster, 0);
        idx = (idx - 1) & mask;
        entry = entry_at(writer, idx);
    }
}

void rbi_directory_withdraw(struct rbi_directory_writer *writer, uint64_t cluster)
{
    struct rbi_directory_entry *place = NULL;
    struct rbi_directory_entry *entry = cluster == 0 ? NULL : find(writer, cluster, &place);
    const uint64_t ref = entry == NULL ? 0 : rbi_load_rlx(&entry->ref);
    if (ref == 0) {
        return;
    }
    /* R22: pairs with A22 */
    rbi_store_rel(&entry->epoch, 0);
    /* R22: pairs with A22 */
    rbi_store_rel(&entry->ref, 0);
    rbi_directory_heap_give(&writer->heap, rbi_directory_ref_offset(ref));
    writer->cluster_count--;
    clear_tail(writer, (uint64_t)(entry - entry_at(writer, 0)));
}

void rbi_directory_set_revision(struct rbi_directory_writer *writer, uint64_t revision)
{
    /* R22: pairs with A22 */
    rbi_store_rel(&head_of(writer)->revision, revision);
}

void rbi_directory_supersede(struct rbi_directory_writer *writer)
{
    /* R22: pairs with A22 */
    rbi_store_rel(&head_of(writer)->superseded, 1);
}

void rbi_directory_bump(struct rbi_directory_writer *writer, uint32_t slot)
{
    if (slot >= head_of(writer)->slot_count) {
        return;
    }
    rbi_au64 *word = word_at(writer, sizeof(struct rbi_directory_head) + (uint64_t)slot * 8);
    /* R22: pairs with A22. Own word: the load needs no order. */
    rbi_store_rel(word, rbi_load_rlx(word) + 1);
}
