/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_POOL_H
#define RINGBUS_SHM_POOL_H
/*
 * shm/pool.h - chunks of one sender, lent to any number of receivers by reference.
 *
 * Reference counts are private to the sender. A receiver says only "done with
 * slot i" in the return ring of its own side; so a receiver's death gives back
 * everything that it held, and no receiver can free what another still reads.
 *
 *   struct rbi_pool     sender: free lists per size class, warm-first
 *   struct rbi_refs     sender, one per link: which chunk each slot of that link holds
 *   struct rbi_returns  receiver, one per link: the return ring in its own side
 *
 * A slot is named by the record that carries the reference, and given back
 * exactly once; at most as many slots are out as the return ring has entries, so
 * it cannot overflow.
 *
 * Threads: each structure belongs to one thread. No system call, no allocation
 * outside init/deinit.
 *
 * Ordering.
 *   R3 rbi_returns_put() stores returns_pos -> A3 rbi_refs_collect()  slot numbers visible,
 *      and the receiver's reads of the chunk are over before it is reused
 * Chunk contents are ordered by R1 of the record that carries the reference.
 */
#include "shm/layout.h"
#include "shm/segment.h"

enum rbi_pool_result {
    RBI_POOL_OK = 0,
    RBI_POOL_EMPTY = 1, /**< every chunk that is large enough is in use; retry after a return */
};

#define RBI_CHUNK_NONE UINT32_MAX

/** What a pool is made of: chunk sizes ascending, counts at least 1. */
struct rbi_pool_plan {
    unsigned class_count;
    struct {
        uint64_t chunk_bytes;
        uint64_t count;
    } classes[RBI_POOL_CLASSES_MAX];
};

struct rbi_pool {
    struct rbi_segment segment; /* owned */
    unsigned class_count;
    struct rbi_pool_class classes[RBI_POOL_CLASSES_MAX]; /* private copy of what was planned */
    uint32_t first_chunk[RBI_POOL_CLASSES_MAX];          /* index of each class's first chunk */
    uint32_t chunk_count;
    uint32_t free_head[RBI_POOL_CLASSES_MAX]; /* last freed first: its lines are warm */
    uint32_t free_count[RBI_POOL_CLASSES_MAX];
    uint32_t *next_free; /* per chunk */
    uint32_t *ref_count; /* per chunk; 0 = free */
    uint64_t take_max;   /* largest chunk; 0 before the first one is taken */
    bool sparse;         /* a chunk has its pages from rbi_pool_reserve() on */
};

struct rbi_chunk {
    uint32_t idx;
    uint64_t offset; /* in the pool segment */
    uint64_t capacity;
    unsigned char *data;
};

/**
 * Creates the pool's segment and private tables.
 * @retval 0; -EINVAL plan out of range; -ENOMEM; -errno
 */
RBI_MUST_CHECK int rbi_pool_init(struct rbi_pool *pool, const struct rbi_pool_plan *plan);
/**
 * The same without memory for the chunks, but for the table in front: rbi_pool_reserve() is to be
 * called for a chunk before it is written to.
 */
RBI_MUST_CHECK int rbi_pool_init_sparse(struct rbi_pool *pool, const struct rbi_pool_plan *plan);
/**
 * Memory for a chunk of a sparse pool that was taken, kept until deinit; a system call, so note
 * which have theirs.
 * @retval 0; -ENOMEM; -errno
 */
RBI_MUST_CHECK int rbi_pool_reserve(const struct rbi_pool *pool, const struct rbi_chunk *chunk);
/** Total segment size that @p plan needs, or 0 when the plan is out of range. */
uint64_t rbi_pool_plan_size(const struct rbi_pool_plan *plan);
/** Accepts a zeroed pool. */
void rbi_pool_deinit(struct rbi_pool *pool);

/** Largest chunk in bytes. */
uint64_t rbi_pool_chunk_max(const struct rbi_pool *pool);

/** Of a pool that is mapped page by page at once: what it would take for all of a huge one. */
#define RBI_POOL_PREFAULT_MAX (UINT64_C(4) << 20)

/**
 * Takes a chunk of the smallest class that fits and has one free, with one reference: the caller's.
 * The first time maps the pages of the pool, up to RBI_POOL_PREFAULT_MAX.
 * @retval RBI_POOL_OK; RBI_POOL_EMPTY; -EMSGSIZE larger than any chunk
 */
RBI_MUST_CHECK int rbi_pool_take(struct rbi_pool *pool, uint64_t size, struct rbi_chunk *out);
void rbi_pool_ref(struct rbi_pool *pool, uint32_t idx);
/** Drops one reference; the last one frees the chunk. */
void rbi_pool_unref(struct rbi_pool *pool, uint32_t idx);
/** Address and capacity of a chunk that is in use; used to find it again by index. */
void rbi_pool_chunk(const struct rbi_pool *pool, uint32_t idx, struct rbi_chunk *out);
/** Free chunks of this one's class and the larger ones: what could be had in its place. */
uint32_t rbi_pool_free_like(const struct rbi_pool *pool, uint32_t idx);
/** Chunks that are out, over all classes. */
uint32_t rbi_pool_used(const struct rbi_pool *pool);

/* ---- sender's side of one link ---------------------------------------------------------- */

struct rbi_refs {
    uint32_t *chunk_of; /* per slot; RBI_CHUNK_NONE = free */
    uint32_t *free_slots;
    uint32_t free_count;
    uint32_t capacity;           /* power of two: entries of the peer's return ring */
    uint64_t collected;          /* entries of the ring taken so far */
    const rbi_au64 *returns_pos; /* the peer's */
    const rbi_word *ring;        /* the peer's */
};

/** @p capacity is the peer's returns_capacity, already checked against RBI_RETURNS_MIN/MAX. */
RBI_MUST_CHECK int rbi_refs_init(struct rbi_refs *refs,
                                 uint32_t capacity,
                                 const rbi_au64 *peer_returns_pos,
                                 const rbi_word *peer_ring);
void rbi_refs_deinit(struct rbi_refs *refs);

/**
 * Gives this link a reference to a chunk.
 * @retval RBI_POOL_OK     @p slot is set, the chunk has one reference more
 * @retval RBI_POOL_EMPTY  the link holds as many as it may
 */
RBI_MUST_CHECK int
rbi_refs_take(struct rbi_refs *refs, struct rbi_pool *pool, uint32_t chunk_idx, uint32_t *slot);
/** Takes a reference back that was never published (the lane was full). */
void rbi_refs_cancel(struct rbi_refs *refs, struct rbi_pool *pool, uint32_t slot);
/** Chunk of a slot that is out, or RBI_CHUNK_NONE. */
uint32_t rbi_refs_chunk(const struct rbi_refs *refs, uint32_t slot);

/**
 * Takes in what the receiver has given back. Untrusted input.
 * @return number taken (0 when nothing new), or
 * @retval -EPROTO  a slot that is not out, or an impossible count: close the link
 */
RBI_MUST_CHECK int rbi_refs_collect(struct rbi_refs *refs, struct rbi_pool *pool);
/** Drops everything that the link holds: the receiver is dead or the link is closed. */
void rbi_refs_drop_all(struct rbi_refs *refs, struct rbi_pool *pool);
/** References that are out. */
uint32_t rbi_refs_used(const struct rbi_refs *refs);

/* ---- receiver's side of one link -------------------------------------------------------- */

struct rbi_returns {
    rbi_au64 *returns_pos; /* ours */
    rbi_word *ring;        /* ours */
    uint64_t mask;
    uint64_t pos;
};

void rbi_returns_init(struct rbi_returns *returns,
                      rbi_au64 *returns_pos,
                      rbi_word *ring,
                      uint64_t capacity);
/** Gives a slot back; the last read of the chunk must lie before. Wait-free. */
void rbi_returns_put(struct rbi_returns *returns, uint32_t slot);

#endif
