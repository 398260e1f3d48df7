/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a hostile receiver's return ring and what the sender does meanwhile. A
 * chunk that somebody else still holds must never come free, and whatever the
 * receiver said, dropping the link must give back exactly what it held.
 */
#include "shm/pool.h"

#include <errno.h>
#include <string.h>

#define ENTRIES 16U
#define CHUNKS  12U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    struct rbi_pool *pool;
    struct rbi_refs refs;
    struct rbi_returns honest;
    rbi_au64 returns_pos;
    rbi_word ring[ENTRIES];
    uint32_t held[CHUNKS]; /* references that another link has on each chunk */
    bool dead;             /* it broke the rules */
};

static struct rbi_pool *the_pool(void)
{
    static struct rbi_pool pool;
    static const struct rbi_pool_plan plan = {
        .class_count = 2,
        .classes = {{.chunk_bytes = 64, .count = 8}, {.chunk_bytes = 256, .count = 4}}};
    if (pool.class_count == 0) {
        RBI_ASSERT(rbi_pool_init(&pool, &plan) == 0);
    }
    return &pool;
}

static void send_one(struct fuzz *f, uint8_t arg)
{
    struct rbi_chunk chunk;
    const int r = rbi_pool_take(f->pool, arg, &chunk);
    RBI_ASSERT(r == RBI_POOL_OK || r == RBI_POOL_EMPTY);
    if (r != RBI_POOL_OK) {
        return;
    }
    RBI_ASSERT(f->held[chunk.idx] == 0 && chunk.capacity >= arg);
    memset(chunk.data, arg, chunk.capacity);
    uint32_t slot = UINT32_MAX;
    if (rbi_refs_take(&f->refs, f->pool, chunk.idx, &slot) == RBI_POOL_OK) {
        RBI_ASSERT(slot < ENTRIES && rbi_refs_chunk(&f->refs, slot) == chunk.idx);
        if (arg % 16 == 0) {
            rbi_refs_cancel(&f->refs, f->pool, slot);
        }
    }
    if (arg % 4 == 0) {
        f->held[chunk.idx]++; /* the sender's reference becomes another link's */
    } else {
        rbi_pool_unref(f->pool, chunk.idx);
    }
}

static void drop_held(struct fuzz *f, uint32_t idx)
{
    if (f->held[idx] > 0) {
        f->held[idx]--;
        rbi_pool_unref(f->pool, idx);
    }
}

/** @p from the input behind the operation byte; returns how much of it was used. */
static size_t step(struct fuzz *f, uint8_t op, const uint8_t *from, size_t left)
{
    uint64_t value = 0;
    const size_t size = left < sizeof value ? left : sizeof value;
    switch (op % 8) {
    case 0:
    case 1:
    case 2:
        send_one(f, left > 0 ? from[0] : 0);
        return left > 0 ? 1 : 0;
    case 3: /* as an honest receiver would, but perhaps with a slot that is not out */
        rbi_returns_put(&f->honest, op / 8 % (ENTRIES + 1));
        return 0;
    case 4:
        memcpy(&value, from, size);
        f->ring[op / 8 % ENTRIES] = value;
        return size;
    case 5:
        memcpy(&value, from, size);
        rbi_store_rlx(&f->returns_pos, value);
        return size;
    case 6:
        drop_held(f, op / 8 % CHUNKS);
        return 0;
    default: {
        const uint32_t before = rbi_refs_used(&f->refs);
        const int r = rbi_refs_collect(&f->refs, f->pool);
        RBI_ASSERT(r == -EPROTO || (r >= 0 && rbi_refs_used(&f->refs) == before - (uint32_t)r));
        f->dead = r < 0;
        return 0;
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.pool = the_pool()};
    RBI_ASSERT(rbi_refs_init(&f.refs, ENTRIES, &f.returns_pos, f.ring) == 0);
    rbi_returns_init(&f.honest, &f.returns_pos, f.ring, ENTRIES);
    for (size_t i = 0; i < size && !f.dead;) {
        const uint8_t op = data[i++];
        i += step(&f, op, data + i, size - i);
        for (uint32_t idx = 0; idx < CHUNKS; idx++) {
            RBI_ASSERT(f.held[idx] <= f.pool->ref_count[idx]);
        }
        RBI_ASSERT(rbi_refs_used(&f.refs) <= ENTRIES);
    }
    rbi_refs_drop_all(&f.refs, f.pool);
    uint32_t held = 0;
    for (uint32_t idx = 0; idx < CHUNKS; idx++) {
        RBI_ASSERT(f.held[idx] == f.pool->ref_count[idx]);
        held += f.held[idx] > 0;
    }
    RBI_ASSERT(rbi_pool_used(f.pool) == held);
    for (uint32_t idx = 0; idx < CHUNKS; idx++) {
        while (f.held[idx] > 0) {
            drop_held(&f, idx);
        }
    }
    RBI_ASSERT(rbi_pool_used(f.pool) == 0);
    rbi_refs_deinit(&f.refs);
    return 0;
}
