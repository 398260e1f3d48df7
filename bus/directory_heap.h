/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_DIRECTORY_HEAP_H
#define RINGBUS_BUS_DIRECTORY_HEAP_H
/*
 * bus/directory_heap.h - the memory of a directory's snapshots: blocks of a power of two
 * bytes, each at a multiple of its size from the heap's beginning, so that a block and its
 * buddy, when both are free, are one again. Pure; for the writer alone.
 *
 * What the heap notes stands in the first words of each block, RBI_BLOCK_PREV to
 * RBI_BLOCK_LOG2, and at the beginning of a block nowhere else. Readers that have not
 * noticed yet that a block was freed may see these words as part of a snapshot: they are
 * written like all others there (R20).
 */
#include "shm/base.h"

#define RBI_BLOCK_LOG2_MIN 7U
#define RBI_BLOCK_LOG2_MAX 31U

struct rbi_directory_heap {
    unsigned char *base; /* of the segment: offsets count from here */
    uint64_t begin;
    uint64_t top; /* from here on nothing was ever used */
    uint64_t end;
    uint64_t free_blocks[RBI_BLOCK_LOG2_MAX + 1]; /* first of each size; 0: none */
};

/** @param begin  offset, not 0; rounded up to the smallest block */
void rbi_directory_heap_init(struct rbi_directory_heap *heap,
                             unsigned char *base,
                             uint64_t begin,
                             uint64_t end);
/** @return offset of a block of at least so many bytes, or 0: there is none */
uint64_t rbi_directory_heap_take(struct rbi_directory_heap *heap, uint64_t bytes);
/** Gives a block back, at whose offset nobody will begin to read any more. */
void rbi_directory_heap_give(struct rbi_directory_heap *heap, uint64_t offset);

#endif
