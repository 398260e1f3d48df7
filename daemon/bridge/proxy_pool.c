/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/proxy_pool.c - the chunks of a proxy: address space for payloads of many sizes, and
 * memory for those that were used.
 *
 * A chunk that was used keeps its memory as long as the proxy lives: what is sealed cannot be given
 * back. The last freed one of a class goes first, so that is as much as was out at one time.
 */
#include "daemon/bridge/desk_parts.h"

#include <errno.h>

/* Returns come without a bell, when what they were in was released before. */
#define LOOK_NS (UINT64_C(10) * RBI_DESK_NS_PER_MS)
/* For so long a peer may hold all chunks that there are; then it leaves some for others. */
#define HOLDS_NS (UINT64_C(50) * RBI_DESK_NS_PER_MS)
#define MIB      (UINT64_C(1) << 20)

/** Appends a class. */
static void add(struct rbi_pool_plan *plan, uint64_t chunk_bytes, uint64_t count)
{
    plan->classes[plan->class_count].chunk_bytes = chunk_bytes;
    plan->classes[plan->class_count].count = count;
    plan->class_count++;
}

int rbi_proxy_plan_pool(uint64_t bytes, uint64_t payload_max, struct rbi_pool_plan *out)
{
    static const uint64_t sizes[] = {UINT64_C(16) << 10, UINT64_C(128) << 10, MIB};
    static const uint64_t most[] = {128, 32, 8}; /* each has its line in tables of ours */
    /* Half of it for payloads up to a quarter: two can be under way. */
    const uint64_t quarter = rbi_align_up(bytes / 4, RBI_PAGE);
    struct rbi_pool_plan plan = {.class_count = 0};
    if (bytes < MIB / 4 || bytes > RBI_SEGMENT_SIZE_MAX / 4 || payload_max > RBI_POOL_CHUNK_MAX) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(sizes) && sizes[i] < quarter; i++) {
        add(&plan, sizes[i], rbi_min_u64(rbi_max_u64(bytes / 6 / sizes[i], 1), most[i]));
    }
    add(&plan, quarter, 2);
    /* Larger ones are rare, and address space is free: one each. */
    if (payload_max / 4 > quarter) {
        add(&plan, rbi_align_up(payload_max / 4, RBI_PAGE), 1);
    }
    if (payload_max > quarter) {
        add(&plan, rbi_align_up(payload_max, RBI_PAGE), 1);
    }
    *out = plan;
    return rbi_pool_plan_size(&plan) != 0 ? 0 : -EINVAL;
}

static int back(struct rbi_proxy *proxy, const struct rbi_chunk *chunk)
{
    uint64_t *word = &proxy->backed[chunk->idx / 64];
    const uint64_t bit = UINT64_C(1) << (chunk->idx % 64);
    if ((*word & bit) != 0) {
        return 0;
    }
    const int r = rbi_pool_reserve(&proxy->pool, chunk);
    if (r == 0) {
        *word |= bit;
        proxy->backed_bytes += chunk->capacity;
        proxy->desk->figures.pool_bytes += chunk->capacity;
    }
    return r;
}

int rbi_proxy_take_chunk(struct rbi_proxy *proxy, uint64_t size, struct rbi_chunk *out)
{
    int r = rbi_pool_take(&proxy->pool, size, out);
    if (r == RBI_POOL_EMPTY) {
        rbi_proxy_collect(proxy);
        r = rbi_pool_take(&proxy->pool, size, out);
    }
    if (r != RBI_POOL_OK) {
        return r;
    }
    r = back(proxy, out);
    if (r != 0) {
        rbi_pool_unref(&proxy->pool, out->idx);
        return RBI_POOL_EMPTY; /* there is no memory now */
    }
    return RBI_POOL_OK;
}

/* ---- returns ------------------------------------------------------------------------------- */

static void collect_from(struct rbi_half *half)
{
    const int count = rbi_refs_collect(&half->refs, &half->proxy->pool);
    if (count < 0) {
        (void)rbi_half_bad_peer(half);
    } else if (count > 0 || rbi_refs_used(&half->refs) == 0) {
        half->gave_ns = rbi_loop_now_ns(half->proxy->desk->loop);
    }
}

static void starving_over(struct rbi_proxy *proxy)
{
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (half->starved) {
            half->starved = false;
            half->room_due = true;
            rbi_desk_tell(half);
        }
    }
    proxy->starved = 0;
    rbi_loop_timer_cancel(proxy->desk->loop, &proxy->starve_timer);
}

void rbi_proxy_collect(struct rbi_proxy *proxy)
{
    const uint32_t before = rbi_pool_used(&proxy->pool);
    bool slots = false;
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (half->phase == RBI_HALF_LINKED && half->refs.chunk_of != NULL && !half->residue) {
            const uint32_t out = rbi_refs_used(&half->refs);
            collect_from(half);
            slots |= rbi_refs_used(&half->refs) != out;
        }
    }
    if (proxy->starved > 0 && (slots || rbi_pool_used(&proxy->pool) != before)) {
        starving_over(proxy);
    }
}

static void look(void *context)
{
    struct rbi_proxy *proxy = context;
    if (proxy->starved > 0) {
        /* Also for those that found no memory: they try again. */
        rbi_proxy_collect(proxy);
        starving_over(proxy);
    }
}

void rbi_proxy_starve(struct rbi_half *half)
{
    struct rbi_proxy *proxy = half->proxy;
    if (half->starved) {
        return;
    }
    half->starved = true;
    if (proxy->starved++ == 0) {
        rbi_loop_timer_set(proxy->desk->loop, &proxy->starve_timer,
                           rbi_loop_now_ns(proxy->desk->loop) + LOOK_NS, look, proxy);
    }
    rbi_desk_wake(proxy);
}

/* ---- lending ------------------------------------------------------------------------------- */

/** Whether it may have one more while so many are left: who gives nothing back gets a share. */
static bool share_left(const struct rbi_half *half, const struct rbi_chunk *chunk)
{
    const struct rbi_proxy *proxy = half->proxy;
    const uint32_t used = rbi_refs_used(&half->refs);
    return used == 0 || proxy->half_count <= 1 ||
           used <= 2U * rbi_pool_free_like(&proxy->pool, chunk->idx) + 1U ||
           rbi_loop_now_ns(proxy->desk->loop) - half->gave_ns < HOLDS_NS;
}

int rbi_half_lend(struct rbi_half *half, uint64_t size, struct rbi_chunk *out)
{
    struct rbi_chunk chunk = {.idx = RBI_CHUNK_NONE};
    if (half->phase != RBI_HALF_LINKED) {
        return -EPIPE;
    }
    /* Now, not when none is left: the chunk that came back last has its memory, others may not. */
    collect_from(half);
    if (half->phase != RBI_HALF_LINKED) {
        return -EPIPE;
    }
    int r = rbi_proxy_take_chunk(half->proxy, size, &chunk);
    if (r == RBI_POOL_OK && !share_left(half, &chunk)) {
        rbi_pool_unref(&half->proxy->pool, chunk.idx);
        r = RBI_POOL_EMPTY;
    }
    if (r == RBI_POOL_OK) {
        *out = chunk;
    } else if (r == RBI_POOL_EMPTY) {
        rbi_proxy_starve(half);
    }
    return r;
}

void rbi_half_unlend(struct rbi_half *half, const struct rbi_chunk *chunk)
{
    rbi_pool_unref(&half->proxy->pool, chunk->idx);
    if (half->proxy->starved > 0) {
        starving_over(half->proxy);
    }
}

uint64_t rbi_half_lend_max(const struct rbi_half *half)
{
    return rbi_pool_chunk_max(&half->proxy->pool);
}
