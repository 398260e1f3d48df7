/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_LANE_INLINE_H
#define RINGBUS_SHM_LANE_INLINE_H
/*
 * shm/lane_inline.h - the hot half of shm/lane.h; include that. In the common
 * subset of C and C++, and every access to shared words through a verb of
 * shm/atomic.h, so that tests/model compiles this very text.
 */
#include "shm/lane.h"

#include <errno.h>

/** In a commit word: the sender has taken the record back (bit 31 of its meta). */
#define RBI_LANE_WITHDRAWN (UINT64_C(1) << 63)

/** Bytes that a record with a body of @p size takes in the lane. */
static inline uint64_t rbi_lane_record_bytes(uint64_t size)
{
    return (size + RBI_LANE_HEADER + RBI_LINE - 1) & ~(uint64_t)(RBI_LINE - 1);
}

static inline uint64_t rbi_lane_body_max_of_mask(uint64_t mask)
{
    return mask + 1 - RBI_LANE_CONTROL_ROOM - RBI_LINE - RBI_LANE_HEADER;
}

/** Largest body of a record at @p pos that ends within the lane's first mapping. */
static inline uint64_t rbi_lane_body_max_once(uint64_t pos, uint64_t mask)
{
    return rbi_min_u64(rbi_lane_body_max_of_mask(mask), mask + 1 - (pos & mask) - RBI_LANE_HEADER);
}

/** Whether the line at @p pos holds the middle of a record. */
static inline bool rbi_lane_is_inside(const struct rbi_lane_tx *tx, uint64_t pos)
{
    const uint64_t line = pos / RBI_LINE & tx->inside_mask;
    return (tx->inside[line / 64] >> (line % 64) & 1) != 0;
}

/**
 * Loads the peer's read position. Untrusted.
 * @retval 0        @p out holds a possible value
 * @retval -EPROTO  not a line, inside a record, behind the last one, or ahead of what was written
 */
RBI_MUST_CHECK static inline int rbi_lane_read_pos(const struct rbi_lane_tx *tx, uint64_t *out)
{
    /* A2: pairs with R2. B8: pairs with B5. */
    const uint64_t pos_raw = rbi_load_seq(tx->read_pos);
    if ((pos_raw & (RBI_LINE - 1)) != 0 || pos_raw - tx->read_seen > tx->pos - tx->read_seen ||
        rbi_lane_is_inside(tx, pos_raw)) {
        return -EPROTO;
    }
    *out = pos_raw;
    return 0;
}

/**
 * Slow half of reserve: looks how far the peer has read, zeroes the next run of commit words.
 * @param tx    producer
 * @param need  bytes that must be free, and their commit words zero, from tx->pos on
 * @param body  of them, from tx->pos on, those of a record that is about to be written: its own
 *              lines need no zero but the first, which has one
 * @retval RBI_LANE_OK; RBI_LANE_FULL; -EPROTO
 */
RBI_MUST_CHECK int rbi_lane_make_room(struct rbi_lane_tx *tx, uint64_t need, uint64_t body);

/** From now on the lines up to @p end, but not the first one at tx->pos, may hold body bytes. */
RBI_NOINLINE void rbi_lane_lend(struct rbi_lane_tx *tx, uint64_t end);

/** Slow half of commit: lines from @p end to tx->lent hold body bytes that were not sent. */
RBI_COLD void rbi_lane_wipe_lent(struct rbi_lane_tx *tx, uint64_t end);

/** Reserves room for a body of at most @p body_max bytes. */
RBI_MUST_CHECK static inline int rbi_lane_reserve_up_to(
    struct rbi_lane_tx *tx, uint64_t body_max, uint64_t size, uint64_t room, unsigned char **body)
{
    if (RBI_UNLIKELY(size > body_max)) {
        return -EMSGSIZE;
    }
    const uint64_t bytes = rbi_lane_record_bytes(size);
    /*
     * One line more than the record: the commit word behind it must be zero when it
     * is published. Zeroed lines are free lines, so this is the space check as well.
     */
    if (RBI_UNLIKELY(tx->zeroed - tx->pos < bytes + RBI_LINE + room)) {
        const int r = rbi_lane_make_room(tx, bytes + RBI_LINE + room, bytes);
        if (r != RBI_LANE_OK) {
            return r;
        }
    }
    /* A body of one line touches no other commit word. */
    if (bytes > RBI_LINE && (int64_t)(tx->pos + bytes - tx->lent) > 0) {
        rbi_lane_lend(tx, tx->pos + bytes);
    }
    *body = tx->base + (tx->pos & tx->mask) + RBI_LANE_HEADER;
    return RBI_LANE_OK;
}

RBI_MUST_CHECK static inline int
rbi_lane_reserve(struct rbi_lane_tx *tx, uint64_t size, uint64_t room, unsigned char **body)
{
    return rbi_lane_reserve_up_to(tx, tx->body_max, size, room, body);
}

RBI_MUST_CHECK static inline int
rbi_lane_reserve_once(struct rbi_lane_tx *tx, uint64_t size, uint64_t room, unsigned char **body)
{
    return rbi_lane_reserve_up_to(tx, rbi_lane_body_max_once(tx->pos, tx->mask), size, room, body);
}

/** Steps behind the reserved record; returns the commit word to store. */
static inline rbi_au64 *rbi_lane_finish(struct rbi_lane_tx *tx, uint64_t size)
{
    rbi_au64 *word = rbi_au64_at(tx->base, tx->pos & tx->mask);
    const uint64_t end = tx->pos + rbi_lane_record_bytes(size);
    if (RBI_UNLIKELY((int64_t)(tx->lent - end) > 0)) {
        rbi_lane_wipe_lent(tx, end);
    }
    tx->pos = end;
    return word;
}

/*
 * After a record is published: each run of lines that it enters has the next one but one
 * zeroed. Now, while the receiver is busy with the record, instead of before the next one.
 */
static inline void rbi_lane_run_ahead(struct rbi_lane_tx *tx, uint64_t before)
{
    if (RBI_UNLIKELY(((before ^ tx->pos) & ~(RBI_LANE_RUN_BYTES - 1)) != 0)) {
        /* Full or a liar: the next reserve finds out, and can say so. */
        (void)!rbi_lane_make_room(tx, RBI_LANE_RUN_BYTES, 0);
    }
}

static inline void rbi_lane_commit(struct rbi_lane_tx *tx, uint64_t size, uint32_t meta)
{
    const uint64_t before = tx->pos;
    rbi_au64 *word = rbi_lane_finish(tx, size);
    /* R1: pairs with A1. */
    rbi_store_rel(word, (uint64_t)meta << 32 | size);
    rbi_lane_run_ahead(tx, before);
}

static inline void rbi_lane_commit_seq(struct rbi_lane_tx *tx, uint64_t size, uint32_t meta)
{
    const uint64_t before = tx->pos;
    rbi_au64 *word = rbi_lane_finish(tx, size);
    /* R1: pairs with A1. B1: pairs with B4. */
    rbi_store_seq(word, (uint64_t)meta << 32 | size);
    rbi_lane_run_ahead(tx, before);
}

/** Looks at the next record; one whose body is larger than @p body_max is @p too_large. */
RBI_MUST_CHECK static inline int rbi_lane_peek_up_to(const struct rbi_lane_rx *rx,
                                                     uint64_t body_max,
                                                     int too_large,
                                                     struct rbi_lane_record *out)
{
    const uint64_t offset = rx->pos & rx->mask;
    /* A1: pairs with R1. B4: pairs with B1. */
    const uint64_t word_raw = rbi_load_seq(rbi_au64_at_const(rx->base, offset));
    if (word_raw == 0) {
        return RBI_LANE_EMPTY;
    }
    const uint32_t size = (uint32_t)word_raw;
    const uint32_t meta = (uint32_t)(word_raw >> 32);
    if (RBI_UNLIKELY(meta == 0)) {
        return -EPROTO;
    }
    if (RBI_UNLIKELY(size > body_max)) {
        return too_large;
    }
    out->meta = meta;
    out->size = size;
    out->body = rx->base + offset + RBI_LANE_HEADER;
    out->next = rx->pos + rbi_lane_record_bytes(size);
    return RBI_LANE_OK;
}

RBI_MUST_CHECK static inline int rbi_lane_peek(const struct rbi_lane_rx *rx,
                                               struct rbi_lane_record *out)
{
    return rbi_lane_peek_up_to(rx, rx->body_max, -EPROTO, out);
}

RBI_MUST_CHECK static inline int rbi_lane_peek_once(const struct rbi_lane_rx *rx,
                                                    struct rbi_lane_record *out)
{
    const uint64_t body_max = rbi_lane_body_max_once(rx->pos, rx->mask);
    return rbi_lane_peek_up_to(rx, body_max, -EMSGSIZE, out);
}

static inline bool rbi_lane_is_withdrawn(const struct rbi_lane_record *record)
{
    /* Ordered by the kernel's fence, when it matters (libclient/undelivered.c). */
    const rbi_au64 *word = rbi_au64_at_const(record->body - RBI_LANE_HEADER, 0);
    return (rbi_load_asym(word) & RBI_LANE_WITHDRAWN) != 0;
}

static inline void rbi_lane_advance(struct rbi_lane_rx *rx, const struct rbi_lane_record *record)
{
    rx->pos = record->next;
}

static inline void rbi_lane_release(struct rbi_lane_rx *rx)
{
    if (rx->published == rx->pos) {
        return; /* do not take the line from the producer for nothing */
    }
    rx->published = rx->pos;
    /* R2: pairs with A2. */
    rbi_store_rel(rx->read_pos, rx->pos);
}

static inline void rbi_lane_release_seq(struct rbi_lane_rx *rx)
{
    rx->published = rx->pos;
    /* R2: pairs with A2. B5: pairs with B8. Also when nothing is new: the store orders B6. */
    rbi_store_seq(rx->read_pos, rx->pos);
}

#endif
