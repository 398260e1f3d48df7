/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/directory_heap.h"

#include "bus/directory_layout.h"

/* In the word of a block's size: it is in a list of free ones. */
#define BLOCK_FREE (UINT64_C(1) << 32)

static uint64_t size_of(unsigned log2)
{
    return UINT64_C(1) << log2;
}

/* Own words: nobody else writes them. */
static uint64_t get(const struct rbi_directory_heap *heap, uint64_t at, unsigned word)
{
    return rbi_load_rlx((const rbi_au64 *)(const void *)(heap->base + at) + word);
}

static void put(struct rbi_directory_heap *heap, uint64_t at, unsigned word, uint64_t value)
{
    /* R20: pairs with A20 (directory_read.c) */
    rbi_store_rel((rbi_au64 *)(void *)(heap->base + at) + word, value);
}

void rbi_directory_heap_init(struct rbi_directory_heap *heap,
                             unsigned char *base,
                             uint64_t begin,
                             uint64_t end)
{
    RBI_ASSERT(begin > 0);
    begin = rbi_align_up(begin, size_of(RBI_BLOCK_LOG2_MIN));
    *heap = (struct rbi_directory_heap){.base = base, .begin = begin, .top = begin, .end = end};
}

/* ---- lists of free blocks ---------------------------------------------------------------- */

static void push_free(struct rbi_directory_heap *heap, uint64_t offset, unsigned log2)
{
    const uint64_t next = heap->free_blocks[log2];
    put(heap, offset, RBI_BLOCK_PREV, 0);
    put(heap, offset, RBI_BLOCK_NEXT, next);
    put(heap, offset, RBI_BLOCK_LOG2, log2 | BLOCK_FREE);
    if (next != 0) {
        put(heap, next, RBI_BLOCK_PREV, offset);
    }
    heap->free_blocks[log2] = offset;
}

static void remove_free(struct rbi_directory_heap *heap, uint64_t offset, unsigned log2)
{
    const uint64_t prev = get(heap, offset, RBI_BLOCK_PREV);
    const uint64_t next = get(heap, offset, RBI_BLOCK_NEXT);
    if (prev != 0) {
        put(heap, prev, RBI_BLOCK_NEXT, next);
    } else {
        heap->free_blocks[log2] = next;
    }
    if (next != 0) {
        put(heap, next, RBI_BLOCK_PREV, prev);
    }
}

/* ---- blocks ------------------------------------------------------------------------------ */

/** Frees a block together with all that can become one with it. */
static void merge_free(struct rbi_directory_heap *heap, uint64_t offset, unsigned log2)
{
    while (log2 < RBI_BLOCK_LOG2_MAX) {
        const uint64_t buddy = heap->begin + ((offset - heap->begin) ^ size_of(log2));
        /* Below the top a block begins at every buddy: of this size, or of a smaller one. */
        if (buddy >= heap->top || get(heap, buddy, RBI_BLOCK_LOG2) != (log2 | BLOCK_FREE)) {
            break;
        }
        remove_free(heap, buddy, log2);
        offset = rbi_min_u64(offset, buddy);
        log2++;
    }
    push_free(heap, offset, log2);
}

void rbi_directory_heap_give(struct rbi_directory_heap *heap, uint64_t offset)
{
    merge_free(heap, offset, (unsigned)get(heap, offset, RBI_BLOCK_LOG2));
}

/** A block from above the top; what is left out for its place is free. */
static uint64_t take_fresh(struct rbi_directory_heap *heap, unsigned log2)
{
    const uint64_t offset = heap->begin + rbi_align_up(heap->top - heap->begin, size_of(log2));
    if (offset > heap->end || heap->end - offset < size_of(log2)) {
        return 0;
    }
    while (heap->top < offset) {
        const unsigned gap = (unsigned)__builtin_ctzll(heap->top - heap->begin);
        const uint64_t at = heap->top;
        heap->top += size_of(gap);
        merge_free(heap, at, gap);
    }
    heap->top += size_of(log2);
    return offset;
}

uint64_t rbi_directory_heap_take(struct rbi_directory_heap *heap, uint64_t bytes)
{
    const uint64_t size = rbi_max_u64(rbi_pow2_ceil(bytes), size_of(RBI_BLOCK_LOG2_MIN));
    const unsigned log2 = (unsigned)__builtin_ctzll(size);
    unsigned have = log2;
    while (have <= RBI_BLOCK_LOG2_MAX && heap->free_blocks[have] == 0) {
        have++;
    }
    uint64_t offset = 0;
    if (have <= RBI_BLOCK_LOG2_MAX) {
        offset = heap->free_blocks[have];
        remove_free(heap, offset, have);
        while (have > log2) {
            have--;
            push_free(heap, offset + size_of(have), have);
        }
    } else if (log2 <= RBI_BLOCK_LOG2_MAX) {
        offset = take_fresh(heap, log2);
    }
    if (offset != 0) {
        put(heap, offset, RBI_BLOCK_LOG2, log2);
    }
    return offset;
}
