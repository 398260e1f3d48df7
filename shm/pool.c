/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/pool.h"

#include <errno.h>
#include <stdlib.h>

/**
 * Class sizes and offsets that @p plan comes to; returns the segment's size, 0 when out of range.
 */
static uint64_t lay_out(const struct rbi_pool_plan *plan, struct rbi_pool_class *classes)
{
    if (plan->class_count == 0 || plan->class_count > RBI_POOL_CLASSES_MAX) {
        return 0;
    }
    uint64_t offset = RBI_PAGE;
    uint64_t chunks = 0;
    uint64_t last_bytes = 0;
    for (unsigned i = 0; i < plan->class_count; i++) {
        const uint64_t bytes_raw = plan->classes[i].chunk_bytes;
        const uint64_t count = plan->classes[i].count;
        if (bytes_raw < RBI_POOL_CHUNK_MIN || bytes_raw > RBI_POOL_CHUNK_MAX || count == 0 ||
            count > RBI_POOL_CHUNKS_MAX - chunks) {
            return 0;
        }
        const uint64_t bytes = rbi_align_up(bytes_raw, RBI_LINE);
        /* No product overflows: 2^30 bytes times 2^16 chunks. */
        const uint64_t total = rbi_align_up(bytes * count, RBI_PAGE);
        if (bytes <= last_bytes || total > RBI_SEGMENT_SIZE_MAX - offset) {
            return 0;
        }
        classes[i].chunk_bytes = bytes;
        classes[i].count = count;
        classes[i].offset = offset;
        offset += total;
        chunks += count;
        last_bytes = bytes;
    }
    return offset;
}

uint64_t rbi_pool_plan_size(const struct rbi_pool_plan *plan)
{
    struct rbi_pool_class classes[RBI_POOL_CLASSES_MAX];
    return lay_out(plan, classes);
}

/** All chunks free; the lowest of each class goes first. */
static void fill_free_lists(struct rbi_pool *pool)
{
    uint32_t idx = 0;
    for (unsigned i = 0; i < pool->class_count; i++) {
        const uint32_t count = (uint32_t)pool->classes[i].count;
        pool->first_chunk[i] = idx;
        pool->free_head[i] = idx;
        pool->free_count[i] = count;
        for (uint32_t k = 0; k < count; k++) {
            pool->next_free[idx + k] = k + 1 < count ? idx + k + 1 : RBI_CHUNK_NONE;
        }
        idx += count;
    }
}

static void write_head(struct rbi_pool *pool)
{
    struct rbi_pool_head *head = (struct rbi_pool_head *)pool->segment.base;
    head->class_count = pool->class_count;
    for (unsigned i = 0; i < pool->class_count; i++) {
        head->classes[i] = pool->classes[i];
    }
}

static int init(struct rbi_pool *pool, const struct rbi_pool_plan *plan, bool sparse)
{
    struct rbi_pool made = {.segment = RBI_SEGMENT_NULL};
    const uint64_t size = lay_out(plan, made.classes);
    if (size == 0) {
        return -EINVAL;
    }
    made.class_count = plan->class_count;
    for (unsigned i = 0; i < made.class_count; i++) {
        made.chunk_count += (uint32_t)made.classes[i].count;
    }
    made.next_free = (uint32_t *)calloc(made.chunk_count, sizeof(uint32_t));
    made.ref_count = (uint32_t *)calloc(made.chunk_count, sizeof(uint32_t));
    int r = made.next_free == NULL || made.ref_count == NULL ? -ENOMEM : 0;
    if (r == 0 && sparse) {
        r = rbi_segment_create_sparse(&made.segment, "ringbus-pool", RBI_SEGMENT_POOL, size);
    } else if (r == 0) {
        r = rbi_segment_create(&made.segment, "ringbus-pool", RBI_SEGMENT_POOL, size, 0);
    }
    if (r != 0) {
        free(made.next_free);
        free(made.ref_count);
        return r;
    }
    made.sparse = sparse;
    fill_free_lists(&made);
    write_head(&made);
    *pool = made;
    return 0;
}

int rbi_pool_init(struct rbi_pool *pool, const struct rbi_pool_plan *plan)
{
    return init(pool, plan, false);
}

int rbi_pool_init_sparse(struct rbi_pool *pool, const struct rbi_pool_plan *plan)
{
    return init(pool, plan, true);
}

int rbi_pool_reserve(const struct rbi_pool *pool, const struct rbi_chunk *chunk)
{
    return rbi_segment_reserve(&pool->segment, chunk->offset, chunk->capacity);
}

void rbi_pool_deinit(struct rbi_pool *pool)
{
    if (pool->class_count == 0) {
        return; /* zeroed: its descriptor 0 is not ours */
    }
    rbi_segment_deinit(&pool->segment);
    free(pool->next_free);
    free(pool->ref_count);
    pool->next_free = NULL;
    pool->ref_count = NULL;
    pool->chunk_count = 0;
    pool->class_count = 0;
}

uint64_t rbi_pool_chunk_max(const struct rbi_pool *pool)
{
    return pool->class_count == 0 ? 0 : pool->classes[pool->class_count - 1].chunk_bytes;
}

static unsigned class_of(const struct rbi_pool *pool, uint32_t idx)
{
    unsigned i = 0;
    while (i + 1 < pool->class_count && idx >= pool->first_chunk[i + 1]) {
        i++;
    }
    return i;
}

static void describe(const struct rbi_pool *pool, unsigned i, uint32_t idx, struct rbi_chunk *out)
{
    out->idx = idx;
    out->capacity = pool->classes[i].chunk_bytes;
    out->offset = pool->classes[i].offset + out->capacity * (idx - pool->first_chunk[i]);
    out->data = (unsigned char *)pool->segment.base + out->offset;
}

int rbi_pool_take(struct rbi_pool *pool, uint64_t size, struct rbi_chunk *out)
{
    if (RBI_UNLIKELY(size > pool->take_max)) {
        if (size > rbi_pool_chunk_max(pool)) {
            return -EMSGSIZE;
        }
        if (!pool->sparse) {
            rbi_segment_prefault(&pool->segment, RBI_POOL_PREFAULT_MAX, true);
        }
        pool->take_max = rbi_pool_chunk_max(pool);
    }
    for (unsigned i = 0; i < pool->class_count; i++) {
        const uint32_t idx = pool->free_head[i];
        if (pool->classes[i].chunk_bytes < size || idx == RBI_CHUNK_NONE) {
            continue;
        }
        RBI_ASSERT(pool->ref_count[idx] == 0);
        pool->free_head[i] = pool->next_free[idx];
        pool->free_count[i]--;
        pool->ref_count[idx] = 1;
        describe(pool, i, idx, out);
        return RBI_POOL_OK;
    }
    return RBI_POOL_EMPTY;
}

void rbi_pool_ref(struct rbi_pool *pool, uint32_t idx)
{
    RBI_ASSERT(idx < pool->chunk_count && pool->ref_count[idx] > 0);
    RBI_ASSERT(pool->ref_count[idx] < UINT32_MAX);
    pool->ref_count[idx]++;
}

void rbi_pool_unref(struct rbi_pool *pool, uint32_t idx)
{
    RBI_ASSERT(idx < pool->chunk_count && pool->ref_count[idx] > 0);
    if (--pool->ref_count[idx] > 0) {
        return;
    }
    const unsigned i = class_of(pool, idx);
    pool->next_free[idx] = pool->free_head[i];
    pool->free_head[i] = idx;
    pool->free_count[i]++;
}

void rbi_pool_chunk(const struct rbi_pool *pool, uint32_t idx, struct rbi_chunk *out)
{
    RBI_ASSERT(idx < pool->chunk_count && pool->ref_count[idx] > 0);
    describe(pool, class_of(pool, idx), idx, out);
}

uint32_t rbi_pool_free_like(const struct rbi_pool *pool, uint32_t idx)
{
    uint32_t count = 0;
    for (unsigned i = class_of(pool, idx); i < pool->class_count; i++) {
        count += pool->free_count[i];
    }
    return count;
}

uint32_t rbi_pool_used(const struct rbi_pool *pool)
{
    uint32_t used = pool->chunk_count;
    for (unsigned i = 0; i < pool->class_count; i++) {
        used -= pool->free_count[i];
    }
    return used;
}

/* ---- sender's side of one link ---------------------------------------------------------- */

int rbi_refs_init(struct rbi_refs *refs,
                  uint32_t capacity,
                  const rbi_au64 *peer_returns_pos,
                  const rbi_word *peer_ring)
{
    RBI_ASSERT(rbi_is_pow2(capacity) && capacity <= RBI_RETURNS_MAX);
    uint32_t *chunk_of = (uint32_t *)calloc(capacity, sizeof(uint32_t));
    uint32_t *free_slots = (uint32_t *)calloc(capacity, sizeof(uint32_t));
    if (chunk_of == NULL || free_slots == NULL) {
        free(chunk_of);
        free(free_slots);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < capacity; i++) {
        chunk_of[i] = RBI_CHUNK_NONE;
        free_slots[i] = capacity - 1 - i;
    }
    refs->chunk_of = chunk_of;
    refs->free_slots = free_slots;
    refs->free_count = capacity;
    refs->capacity = capacity;
    refs->collected = 0;
    refs->returns_pos = peer_returns_pos;
    refs->ring = peer_ring;
    return 0;
}

void rbi_refs_deinit(struct rbi_refs *refs)
{
    free(refs->chunk_of);
    free(refs->free_slots);
    refs->chunk_of = NULL;
    refs->free_slots = NULL;
    refs->free_count = 0;
    refs->capacity = 0;
}

int rbi_refs_take(struct rbi_refs *refs, struct rbi_pool *pool, uint32_t chunk_idx, uint32_t *slot)
{
    if (refs->free_count == 0) {
        return RBI_POOL_EMPTY;
    }
    rbi_pool_ref(pool, chunk_idx);
    *slot = refs->free_slots[--refs->free_count];
    refs->chunk_of[*slot] = chunk_idx;
    return RBI_POOL_OK;
}

/** Ends a slot that is out. */
static void give_back(struct rbi_refs *refs, struct rbi_pool *pool, uint32_t slot)
{
    const uint32_t idx = refs->chunk_of[slot];
    refs->chunk_of[slot] = RBI_CHUNK_NONE;
    refs->free_slots[refs->free_count++] = slot;
    rbi_pool_unref(pool, idx);
}

void rbi_refs_cancel(struct rbi_refs *refs, struct rbi_pool *pool, uint32_t slot)
{
    RBI_ASSERT(rbi_refs_chunk(refs, slot) != RBI_CHUNK_NONE);
    give_back(refs, pool, slot);
}

uint32_t rbi_refs_chunk(const struct rbi_refs *refs, uint32_t slot)
{
    return slot < refs->capacity ? refs->chunk_of[slot] : RBI_CHUNK_NONE;
}

int rbi_refs_collect(struct rbi_refs *refs, struct rbi_pool *pool)
{
    /* A3: pairs with R3. */
    const uint64_t pos_raw = rbi_load_acq(refs->returns_pos);
    const uint64_t count = pos_raw - refs->collected;
    if (RBI_LIKELY(count == 0)) {
        return 0;
    }
    if (count > rbi_refs_used(refs)) {
        return -EPROTO;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t slot_raw = rbi_word_get(&refs->ring[refs->collected & (refs->capacity - 1)]);
        if (slot_raw >= refs->capacity || refs->chunk_of[slot_raw] == RBI_CHUNK_NONE) {
            return -EPROTO;
        }
        refs->collected++;
        give_back(refs, pool, (uint32_t)slot_raw);
    }
    return (int)count;
}

void rbi_refs_drop_all(struct rbi_refs *refs, struct rbi_pool *pool)
{
    for (uint32_t slot = 0; slot < refs->capacity; slot++) {
        if (refs->chunk_of[slot] != RBI_CHUNK_NONE) {
            give_back(refs, pool, slot);
        }
    }
}

uint32_t rbi_refs_used(const struct rbi_refs *refs)
{
    return refs->capacity - refs->free_count;
}

/* ---- receiver's side of one link -------------------------------------------------------- */

void rbi_returns_init(struct rbi_returns *returns,
                      rbi_au64 *returns_pos,
                      rbi_word *ring,
                      uint64_t capacity)
{
    RBI_ASSERT(rbi_is_pow2(capacity));
    returns->returns_pos = returns_pos;
    returns->ring = ring;
    returns->mask = capacity - 1;
    returns->pos = 0;
}

void rbi_returns_put(struct rbi_returns *returns, uint32_t slot)
{
    rbi_word_put(&returns->ring[returns->pos & returns->mask], slot);
    returns->pos++;
    /* R3: pairs with A3. */
    rbi_store_rel(returns->returns_pos, returns->pos);
}
