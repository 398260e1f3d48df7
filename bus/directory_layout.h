/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_DIRECTORY_LAYOUT_H
#define RINGBUS_BUS_DIRECTORY_LAYOUT_H
/*
 * bus/directory_layout.h - what lies in a directory segment. Only the daemon writes
 * it; for every reader it is untrusted memory that changes at any moment.
 *
 *   head | attention words, one a slot | table of clusters | heap of blocks
 *
 * Table: open addressing with linear steps from the low bits of the cluster id, 0 =
 * never used. An entry stays where it is while its cluster lives; a withdrawn one
 * keeps its id with ref 0, so that the chains over it hold, and is used again.
 *
 * Heap: blocks of a power of two bytes (directory_heap.h). A block is written before an
 * entry refers to it and never while one does; freed, it is split, merged and overwritten at
 * once. A reference has a number besides the place, another each time, so that a reader that
 * finds the same reference before and after has read what belongs to it.
 *
 * Ordering without fences: every word here is written with release and read with
 * acquire.
 *   R20 any word of a block  -> A20  who sees the whole snapshot has seen the reference; who
 *                                    sees a word of a later use finds another reference when
 *                                    it looks again
 *   R22 entry, head word     -> A22  who sees a reference sees the block behind it
 */
#include "bus/directory.h"
#include "shm/atomic.h"

#define RBI_DIRECTORY_MAGIC UINT64_C(0x3230726944676e52) /* "RngDir02" in memory */

struct rbi_directory_head {
    struct rbi_segment_header segment; /* who creates the segment writes it */
    uint64_t magic;                    /* once */
    uint64_t size_bytes;               /* once */
    uint64_t slot_count;               /* once */
    uint64_t table_size;               /* once; entries, power of two */
    uint64_t heap_offset;              /* once */
    uint64_t daemon_incarnation;       /* once */
    uint64_t reserved0[2];
    rbi_au64 revision; /* grows by one at each change */
    uint64_t reserved1[7];
    rbi_au64 superseded; /* 1: a larger segment has taken over */
    uint64_t reserved2[7];
};
_Static_assert(offsetof(struct rbi_directory_head, magic) == 64, "layout");
_Static_assert(offsetof(struct rbi_directory_head, heap_offset) == 96, "layout");
_Static_assert(offsetof(struct rbi_directory_head, revision) == 128, "layout");
_Static_assert(offsetof(struct rbi_directory_head, superseded) == 192, "layout");
_Static_assert(sizeof(struct rbi_directory_head) == 256, "layout");

struct rbi_directory_entry {
    rbi_au64 cluster;
    rbi_au64 ref;   /* rbi_directory_ref(); 0 = withdrawn */
    rbi_au64 epoch; /* RBI_EPOCH_BLOB: not a cluster */
    uint64_t reserved;
};
_Static_assert(sizeof(struct rbi_directory_entry) == 32, "layout");

/* Block: words of 8 bytes. */
#define RBI_BLOCK_PREV    0U /* the heap's alone, as the next two */
#define RBI_BLOCK_NEXT    1U
#define RBI_BLOCK_LOG2    2U
#define RBI_BLOCK_WORDS   3U /* words of the snapshot, this header included */
#define RBI_BLOCK_CLUSTER 4U
#define RBI_BLOCK_EPOCH   5U
#define RBI_BLOCK_FLAGS   6U /* RBI_CLUSTER_* | instance count << 32 */
#define RBI_BLOCK_PATH    7U /* length of the path */
/* Then the path, the instances, the absent ones alike, each text in whole words. */
#define RBI_BLOCK_HEADER 8U
/*
 * Annex, at the end of blocks that say so: policy, then some words for each instance and each
 * that is absent, then how many words the annex has | words per instance << 32 | absent ones << 48.
 * The first releases end before it.
 */
#define RBI_BLOCK_HAS_ANNEX 0x80000000U /* in RBI_BLOCK_FLAGS, beside RBI_CLUSTER_* */
#define RBI_ANNEX_BASE      2U          /* words beside those of the instances */
/* override | flags << 16 | ramp << 32; ready_ns;
 * node | reported << 16 | demand << 32 | node demand << 48 */
#define RBI_ANNEX_INSTANCE     3U
#define RBI_ANNEX_INSTANCE_MIN 2U /* before there was the third, which is zero then */

/* A blob is a block of a cluster without path and instances, for those who know no blobs. */
#define RBI_EPOCH_BLOB UINT64_MAX
#define RBI_BLOB_SIZE  8U /* bytes */
#define RBI_BLOB_BEGIN 9U

/* Instance: 4 words, then name, set, idc, tags. */
#define RBI_INSTANCE_ID      0U /* instance | incarnation << 32 */
#define RBI_INSTANCE_STATE   1U /* state | health << 32 */
#define RBI_INSTANCE_WEIGHT  2U /* weight | host << 32 */
#define RBI_INSTANCE_LENGTHS 3U /* name | set << 8 | idc << 16 | tags << 24 */
#define RBI_INSTANCE_HEADER  4U

/** What an entry says of the place of a block. @param use  another one for each publishing */
static inline uint64_t rbi_directory_ref(uint64_t offset, uint32_t use)
{
    return (uint64_t)use << 32 | offset / 8;
}

static inline uint64_t rbi_directory_ref_offset(uint64_t ref)
{
    return (ref & UINT32_MAX) * 8;
}

static inline uint64_t rbi_directory_text_words(uint64_t length)
{
    return (length + 7) / 8;
}

static inline uint64_t rbi_directory_table_offset(uint64_t slot_count)
{
    return rbi_align_up(sizeof(struct rbi_directory_head) + slot_count * 8, RBI_LINE);
}

static inline uint64_t rbi_directory_heap_offset(uint64_t slot_count, uint64_t table_size)
{
    return rbi_directory_table_offset(slot_count) + table_size * sizeof(struct rbi_directory_entry);
}

/** Where the search for a cluster begins: ids are hashes already. */
static inline uint64_t rbi_directory_home(uint64_t cluster, uint64_t table_mask)
{
    return cluster & table_mask;
}

#endif
