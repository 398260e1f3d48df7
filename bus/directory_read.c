/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/directory_read.c - the client's side of the directory. Every word is untrusted and
 * may change between two looks: loaded once, checked against the segment, used as
 * loaded. What does not fit looks like a snapshot that changed under the reader and
 * ends as BUSY.
 */
#include "bus/directory_layout.h"

#include <errno.h>
#include <string.h>

/* A writer needs microseconds for a snapshot, and rests between two of one cluster. */
#define ATTEMPTS 64U

static const rbi_au64 *word_at(const struct rbi_directory_view *view, uint64_t offset)
{
    return (const rbi_au64 *)(const void *)(view->base + offset);
}

static const struct rbi_directory_head *head_of(const struct rbi_directory_view *view)
{
    return (const struct rbi_directory_head *)(const void *)view->base;
}

static const struct rbi_directory_entry *entry_at(const struct rbi_directory_view *view,
                                                  uint64_t idx)
{
    const void *table = view->base + rbi_directory_table_offset(view->slot_count);
    return (const struct rbi_directory_entry *)table + idx;
}

int rbi_directory_view_init(struct rbi_directory_view *view, const void *base, uint64_t size)
{
    struct rbi_directory_head head;
    if (size < sizeof head) {
        return -EPROTO;
    }
    /* These fields were written before the descriptor left; the copy is what counts. */
    const struct rbi_directory_head *from = base;
    head.magic = *(const volatile uint64_t *)&from->magic;
    head.size_bytes = *(const volatile uint64_t *)&from->size_bytes;
    head.slot_count = *(const volatile uint64_t *)&from->slot_count;
    head.table_size = *(const volatile uint64_t *)&from->table_size;
    head.heap_offset = *(const volatile uint64_t *)&from->heap_offset;
    if (head.magic != RBI_DIRECTORY_MAGIC || head.size_bytes != size ||
        head.slot_count > UINT32_MAX || head.table_size > (UINT64_C(1) << 33) ||
        !rbi_is_pow2(head.table_size)) {
        return -EPROTO;
    }
    if (head.heap_offset != rbi_directory_heap_offset(head.slot_count, head.table_size) ||
        head.heap_offset > size) {
        return -EPROTO;
    }
    *view = (struct rbi_directory_view){
        .base = base,
        .size = size,
        .slot_count = head.slot_count,
        .table_mask = head.table_size - 1,
    };
    return 0;
}

uint64_t rbi_directory_revision(const struct rbi_directory_view *view)
{
    /* A22: pairs with R22 */
    return rbi_load_acq(&head_of(view)->revision);
}

bool rbi_directory_superseded(const struct rbi_directory_view *view)
{
    /* A22: pairs with R22 */
    return rbi_load_acq(&head_of(view)->superseded) != 0;
}

uint64_t rbi_directory_daemon(const struct rbi_directory_view *view)
{
    return *(const volatile uint64_t *)&head_of(view)->daemon_incarnation;
}

uint64_t rbi_directory_attention(const struct rbi_directory_view *view, uint32_t slot)
{
    if (slot >= view->slot_count) {
        return 0;
    }
    /* A22: pairs with R22 */
    return rbi_load_acq(word_at(view, sizeof(struct rbi_directory_head) + (uint64_t)slot * 8));
}

/** Entry of a cluster, or NULL. Bounded by the table's size. */
static const struct rbi_directory_entry *find(const struct rbi_directory_view *view,
                                              uint64_t cluster)
{
    if (cluster == 0) {
        return NULL; /* the daemon itself: never in the table, and the mark of unused entries */
    }
    for (uint64_t i = 0; i <= view->table_mask; i++) {
        const uint64_t idx = (rbi_directory_home(cluster, view->table_mask) + i) & view->table_mask;
        const struct rbi_directory_entry *entry = entry_at(view, idx);
        /* A22: pairs with R22 */
        const uint64_t id = rbi_load_acq(&entry->cluster);
        if (id == cluster) {
            return entry;
        }
        if (id == 0) {
            return NULL;
        }
    }
    return NULL;
}

uint64_t rbi_directory_epoch(const struct rbi_directory_view *view, uint64_t cluster)
{
    const struct rbi_directory_entry *entry = find(view, cluster);
    if (entry == NULL) {
        return 0;
    }
    /* A22: pairs with R22 */
    const uint64_t epoch = rbi_load_acq(&entry->epoch);
    /* A22: pairs with R22. The entry may have become another cluster's. */
    return rbi_load_acq(&entry->cluster) == cluster ? epoch : 0;
}

int rbi_directory_next(const struct rbi_directory_view *view, uint64_t *cursor, uint64_t *cluster)
{
    while (*cursor <= view->table_mask) {
        const struct rbi_directory_entry *entry = entry_at(view, (*cursor)++);
        /* A22: pairs with R22 */
        const uint64_t id = rbi_load_acq(&entry->cluster);
        /* A22: pairs with R22 */
        const uint64_t ref = id != 0 ? rbi_load_acq(&entry->ref) : 0;
        /* A22: pairs with R22. Then the epoch: a blob has its own before it can be seen. */
        if (ref != 0 && rbi_load_acq(&entry->epoch) != RBI_EPOCH_BLOB) {
            *cluster = id;
            return RBI_DIRECTORY_OK;
        }
    }
    return RBI_DIRECTORY_ABSENT;
}

/* ---- a snapshot -------------------------------------------------------------------------- */

/** Words of one block, taken one after the other. */
struct snapshot {
    const rbi_au64 *words;
    uint64_t count;
    uint64_t at;
};

static uint64_t take(struct snapshot *snap)
{
    /* A20: pairs with R20 */
    return rbi_load_acq(&snap->words[snap->at++]);
}

/** Copies a text of @p length bytes and terminates it; the caller has checked that it is there. */
static void take_text(struct snapshot *snap, char *to, uint64_t length)
{
    for (uint64_t done = 0; done < length; done += 8) {
        const uint64_t word = take(snap);
        memcpy(to + done, &word, rbi_min_u64(8, length - done));
    }
    to[length] = 0;
}

/** @retval true  it was there, within bounds */
static bool take_instance(struct snapshot *snap, struct rbi_directory_instance *out)
{
    if (snap->count - snap->at < RBI_INSTANCE_HEADER) {
        return false;
    }
    const uint64_t id = take(snap);
    const uint64_t state = take(snap);
    const uint64_t weight = take(snap);
    const uint64_t lengths = take(snap);
    const uint64_t name = lengths & 0xff;
    const uint64_t set = lengths >> 8 & 0xff;
    const uint64_t idc = lengths >> 16 & 0xff;
    const uint64_t tags = lengths >> 24 & 0xff;
    if (name > RBI_PATH_ELEMENT_MAX || set > RBI_DIRECTORY_LABEL_MAX ||
        idc > RBI_DIRECTORY_LABEL_MAX || tags > RBI_DIRECTORY_LABEL_MAX) {
        return false;
    }
    const uint64_t words = rbi_directory_text_words(name) + rbi_directory_text_words(set) +
                           rbi_directory_text_words(idc) + rbi_directory_text_words(tags);
    if (snap->count - snap->at < words) {
        return false;
    }
    out->instance = (int32_t)(uint32_t)id;
    out->incarnation = (uint32_t)(id >> 32);
    out->state = (uint32_t)state;
    out->health = (uint32_t)(state >> 32);
    out->weight = (uint32_t)weight;
    out->host = (uint32_t)(weight >> 32);
    out->name_length = (uint32_t)name;
    out->override = 0; /* the annex says */
    out->ramp = 0;
    out->node = 0;
    out->reported = 0;
    out->demand = 0;
    out->node_demand = 0;
    out->flags = 0;
    out->ready_ns = 0;
    take_text(snap, out->name, name);
    take_text(snap, out->set, set);
    take_text(snap, out->idc, idc);
    take_text(snap, out->tags, tags);
    return true;
}

/** @retval true  the header was within bounds and is this cluster's */
static bool take_head(struct snapshot *snap, uint64_t cluster, struct rbi_directory_cluster *head)
{
    snap->at = RBI_BLOCK_CLUSTER;
    head->cluster = take(snap);
    head->epoch = take(snap);
    const uint64_t flags = take(snap);
    const uint64_t path_length = take(snap);
    if (head->cluster != cluster || path_length > RBI_PATH_MAX ||
        snap->count - snap->at < rbi_directory_text_words(path_length)) {
        return false;
    }
    head->flags = (uint32_t)flags;
    head->instance_count = (uint32_t)(flags >> 32);
    head->path_length = (uint32_t)path_length;
    head->absent_count = 0;
    head->policy = 0;
    take_text(snap, head->path, path_length);
    return true;
}

/** Where the reader wants what of a snapshot. */
struct wanted {
    struct rbi_directory_instance *instances;
    unsigned max;
    bool absent; /* those as well, behind the others */
};

/** How many there are for who wants them so. */
static uint64_t count_wanted(const struct rbi_directory_cluster *head, const struct wanted *wanted)
{
    return (uint64_t)head->instance_count + (wanted->absent ? head->absent_count : 0);
}

/** The head of the annex, so far. @retval true  it has its form */
static bool take_absent_count(const struct snapshot *snap, struct rbi_directory_cluster *head)
{
    if (snap->count - snap->at < RBI_ANNEX_BASE) {
        return false;
    }
    /* A20: pairs with R20 */
    head->absent_count = (uint32_t)(rbi_load_acq(&snap->words[snap->count - 1]) >> 48);
    return head->absent_count <= RBI_DIRECTORY_ABSENT_MAX;
}

/** What the annex says. @retval true  it has its form */
static bool
take_annex(struct snapshot *snap, struct rbi_directory_cluster *head, const struct wanted *wanted)
{
    /* A20: pairs with R20 */
    const uint64_t last = rbi_load_acq(&snap->words[snap->count - 1]);
    const uint64_t words = last & UINT32_MAX;
    const uint64_t per_instance = last >> 32 & 0xffff;
    const uint64_t listed = (uint64_t)head->instance_count + head->absent_count;
    if (per_instance < RBI_ANNEX_INSTANCE_MIN || per_instance > 64 || words < RBI_ANNEX_BASE ||
        words > snap->count - snap->at || (words - RBI_ANNEX_BASE) / per_instance < listed) {
        return false;
    }
    snap->at = snap->count - words;
    head->policy = take(snap);
    const uint64_t begin = snap->at;
    for (unsigned i = 0; i < count_wanted(head, wanted) && i < wanted->max; i++) {
        snap->at = begin + i * per_instance;
        const uint64_t override = take(snap);
        wanted->instances[i].override = (uint16_t) override;
        wanted->instances[i].flags = (uint16_t)(override >> 16);
        wanted->instances[i].ramp = (uint32_t)(override >> 32);
        wanted->instances[i].ready_ns = take(snap);
        const uint64_t place = per_instance >= RBI_ANNEX_INSTANCE ? take(snap) : 0;
        wanted->instances[i].node = (uint16_t)place;
        wanted->instances[i].reported = (uint16_t)(place >> 16);
        wanted->instances[i].demand = (uint16_t)(place >> 32);
        wanted->instances[i].node_demand = (uint16_t)(place >> 48);
    }
    return true;
}

/** One look at a block. @retval true  what was copied has the form of a snapshot of @p cluster */
static bool read_block(const struct rbi_directory_view *view,
                       uint64_t offset,
                       uint64_t cluster,
                       struct rbi_directory_cluster *head,
                       const struct wanted *wanted)
{
    const uint64_t header_bytes = RBI_BLOCK_HEADER * UINT64_C(8);
    if (offset > view->size || view->size - offset < header_bytes) {
        return false;
    }
    struct snapshot snap = {.words = word_at(view, offset)};
    /* A20: pairs with R20 */
    snap.count = rbi_load_acq(&snap.words[RBI_BLOCK_WORDS]);
    if (snap.count < RBI_BLOCK_HEADER || snap.count > (view->size - offset) / 8 ||
        !take_head(&snap, cluster, head)) {
        return false;
    }
    const bool annex = (head->flags & RBI_BLOCK_HAS_ANNEX) != 0;
    head->flags &= ~RBI_BLOCK_HAS_ANNEX;
    if (annex && !take_absent_count(&snap, head)) {
        return false;
    }
    for (unsigned i = 0; i < count_wanted(head, wanted) && i < wanted->max; i++) {
        if (!take_instance(&snap, &wanted->instances[i])) {
            return false;
        }
    }
    return !annex || take_annex(&snap, head, wanted);
}

/** Looks until what it has read is one snapshot. */
static int read_snapshot(const struct rbi_directory_view *view,
                         uint64_t cluster,
                         struct rbi_directory_cluster *head,
                         const struct wanted *wanted)
{
    struct rbi_directory_cluster found;
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct rbi_directory_entry *entry = find(view, cluster);
        /* A22: pairs with R22 */
        const uint64_t ref = entry == NULL ? 0 : rbi_load_acq(&entry->ref);
        if (ref == 0) {
            return RBI_DIRECTORY_ABSENT;
        }
        const bool formed =
            read_block(view, rbi_directory_ref_offset(ref), cluster, &found, wanted);
        /* A22: pairs with R22. No load of the block can pass this one: each of them acquires. */
        if (formed && rbi_load_acq(&entry->ref) == ref) {
            memcpy(head, &found,
                   offsetof(struct rbi_directory_cluster, path) + found.path_length + 1);
            return count_wanted(&found, wanted) > wanted->max ? RBI_DIRECTORY_ROOM
                                                              : RBI_DIRECTORY_OK;
        }
    }
    return RBI_DIRECTORY_BUSY;
}

int rbi_directory_read(const struct rbi_directory_view *view,
                       uint64_t cluster,
                       struct rbi_directory_cluster *head,
                       struct rbi_directory_instance *instances,
                       unsigned max)
{
    const struct wanted wanted = {.instances = instances, .max = max};
    return read_snapshot(view, cluster, head, &wanted);
}

int rbi_directory_read_all(const struct rbi_directory_view *view,
                           uint64_t cluster,
                           struct rbi_directory_cluster *head,
                           struct rbi_directory_instance *instances,
                           unsigned max)
{
    const struct wanted wanted = {.instances = instances, .max = max, .absent = true};
    return read_snapshot(view, cluster, head, &wanted);
}

/* ---- a blob ------------------------------------------------------------------------------ */

/** One look. @retval true  it is one, and its bytes, if they find room, are at @p out */
static bool read_blob(const struct rbi_directory_view *view,
                      uint64_t offset,
                      uint64_t key,
                      void *out,
                      uint64_t max,
                      uint64_t *size)
{
    if (offset > view->size || view->size - offset < RBI_BLOB_BEGIN * UINT64_C(8)) {
        return false;
    }
    struct snapshot snap = {.words = word_at(view, offset), .at = RBI_BLOCK_WORDS};
    snap.count = take(&snap);
    const bool whole = snap.count >= RBI_BLOB_BEGIN && snap.count <= (view->size - offset) / 8;
    const uint64_t id = take(&snap);
    const uint64_t epoch = take(&snap);
    snap.at = RBI_BLOB_SIZE;
    *size = take(&snap);
    if (!whole || id != key || epoch != RBI_EPOCH_BLOB || *size > RBI_DIRECTORY_BLOB_MAX ||
        rbi_directory_text_words(*size) != snap.count - RBI_BLOB_BEGIN) {
        return false;
    }
    unsigned char *to = out;
    for (uint64_t done = 0; *size <= max && done < *size; done += 8) {
        const uint64_t word = take(&snap);
        memcpy(to + done, &word, rbi_min_u64(8, *size - done));
    }
    return true;
}

int rbi_directory_read_blob(
    const struct rbi_directory_view *view, uint64_t key, void *out, uint64_t max, uint64_t *size)
{
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct rbi_directory_entry *entry = find(view, key);
        /* A22: pairs with R22 */
        const uint64_t ref = entry == NULL ? 0 : rbi_load_acq(&entry->ref);
        if (ref == 0) {
            /* Withdrawn while it was copied: what is at @p out is not what was there before. */
            return attempt == 0 ? RBI_DIRECTORY_ABSENT : RBI_DIRECTORY_BUSY;
        }
        uint64_t bytes = 0;
        const bool formed = read_blob(view, rbi_directory_ref_offset(ref), key, out, max, &bytes);
        /* A22: pairs with R22, as for a snapshot */
        if (formed && rbi_load_acq(&entry->ref) == ref) {
            *size = bytes;
            return bytes > max ? RBI_DIRECTORY_ROOM : RBI_DIRECTORY_OK;
        }
    }
    return RBI_DIRECTORY_BUSY;
}
