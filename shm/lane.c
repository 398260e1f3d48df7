/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/lane.h"

#include <errno.h>

/* Fetching a line for writing is a hint; processors of x86-64 that do not know it ignore it. */
#if defined(__x86_64__)
#define FETCHES_FOR_WRITING __attribute__((target("prfchw")))
#else
#define FETCHES_FOR_WRITING
#endif

void rbi_lane_tx_init(struct rbi_lane_tx *tx,
                      void *base,
                      uint64_t capacity,
                      const rbi_au64 *peer_read_pos,
                      uint64_t start_pos,
                      uint64_t *inside)
{
    RBI_ASSERT(rbi_is_pow2(capacity) && capacity > RBI_LANE_CONTROL_ROOM + UINT64_C(2) * RBI_LINE);
    RBI_ASSERT(start_pos % RBI_LINE == 0);
    tx->inside = inside;
    tx->inside_mask = rbi_max_u64(capacity / RBI_LINE, 64) - 1;
    tx->base = (unsigned char *)base;
    tx->mask = capacity - 1;
    tx->pos = start_pos;
    tx->zeroed = start_pos + capacity;
    tx->lent = start_pos;
    tx->read_seen = start_pos;
    tx->read_pos = peer_read_pos;
    rbi_lane_tx_open(tx);
}

void rbi_lane_rx_init(struct rbi_lane_rx *rx,
                      const void *base,
                      uint64_t capacity,
                      rbi_au64 *own_read_pos,
                      uint64_t start_pos)
{
    RBI_ASSERT(rbi_is_pow2(capacity) && capacity > RBI_LANE_CONTROL_ROOM + UINT64_C(2) * RBI_LINE);
    RBI_ASSERT(start_pos % RBI_LINE == 0);
    rx->base = (const unsigned char *)base;
    rx->mask = capacity - 1;
    rx->pos = start_pos;
    rx->published = start_pos;
    rx->read_pos = own_read_pos;
    rbi_lane_rx_open(rx);
    /* Nobody looks yet: what hands the segment over orders this. */
    rbi_store_rlx(own_read_pos, start_pos);
}

uint64_t rbi_lane_body_max(uint64_t capacity)
{
    return rbi_lane_body_max_of_mask(capacity - 1);
}

void rbi_lane_tx_shut(struct rbi_lane_tx *tx)
{
    tx->body_max = 0;
}

void rbi_lane_tx_open(struct rbi_lane_tx *tx)
{
    tx->body_max = rbi_lane_body_max_of_mask(tx->mask);
}

void rbi_lane_rx_shut(struct rbi_lane_rx *rx)
{
    rx->body_max = RBI_LINE - RBI_LANE_HEADER;
}

void rbi_lane_rx_open(struct rbi_lane_rx *rx)
{
    rx->body_max = rbi_lane_body_max_of_mask(rx->mask);
}

bool rbi_lane_tx_is_shut(const struct rbi_lane_tx *tx)
{
    return tx->body_max == 0;
}

bool rbi_lane_rx_is_shut(const struct rbi_lane_rx *rx)
{
    return rx->body_max < RBI_LINE;
}

/** Notes of up to 64 lines from @p pos on whether they hold the middle of a record. */
static inline void note_word(struct rbi_lane_tx *tx, uint64_t pos, uint64_t count, bool inside)
{
    const uint64_t line = pos / RBI_LINE;
    const uint64_t bits = UINT64_MAX >> (64 - count);
    /* They lie in two words at most. */
    const uint64_t low = bits << (line % 64);
    const uint64_t high = bits >> 1 >> (63 - line % 64);
    uint64_t *first = &tx->inside[(line & tx->inside_mask) / 64];
    *first = inside ? *first | low : *first & ~low;
    if (high != 0) {
        uint64_t *second = &tx->inside[((line + 64) & tx->inside_mask) / 64];
        *second = inside ? *second | high : *second & ~high;
    }
}

static inline void note(struct rbi_lane_tx *tx, uint64_t from, uint64_t to, bool inside)
{
    uint64_t left = (to - from) / RBI_LINE;
    while (RBI_UNLIKELY(left > 64)) {
        note_word(tx, from, 64, inside);
        from += UINT64_C(64) * RBI_LINE;
        left -= 64;
    }
    if (left != 0) {
        note_word(tx, from, left, inside);
    }
}

void rbi_lane_lend(struct rbi_lane_tx *tx, uint64_t end)
{
    note(tx, tx->pos + RBI_LINE, end, true);
    tx->lent = end;
}

FETCHES_FOR_WRITING int rbi_lane_make_room(struct rbi_lane_tx *tx, uint64_t need, uint64_t body)
{
    const uint64_t capacity = tx->mask + 1;
    /* Looks early, so that lines are always fetched a run before they are zeroed. */
    if (tx->read_seen + capacity - tx->zeroed < 2 * RBI_LANE_RUN_BYTES ||
        capacity - (tx->pos - tx->read_seen) < need) {
        uint64_t read_pos = 0;
        const int r = rbi_lane_read_pos(tx, &read_pos);
        if (r != 0) {
            return r;
        }
        tx->read_seen = read_pos;
    }
    if (capacity - (tx->pos - tx->read_seen) < need) {
        return RBI_LANE_FULL;
    }
    /* Keeps the two close enough to be compared by difference, whatever the record sizes. */
    if ((int64_t)(tx->lent - tx->pos) < 0) {
        tx->lent = tx->pos;
    }
    /* What the record is written over is not zeroed first; it counts as lent from here on. */
    if (body > tx->zeroed - tx->pos) {
        tx->zeroed = tx->pos + body;
        rbi_lane_lend(tx, tx->zeroed);
    }
    const uint64_t free_bytes = tx->read_seen + capacity - tx->zeroed;
    const uint64_t goal_bytes = need + RBI_LANE_RUN_BYTES;
    const uint64_t have_bytes = tx->zeroed - tx->pos;
    const uint64_t want_bytes = have_bytes < goal_bytes ? goal_bytes - have_bytes : 0;
    const uint64_t end = tx->zeroed + rbi_min_u64(free_bytes, want_bytes);
    /* Own words that the consumer reaches only through a later R1: no order of their own. */
    for (uint64_t pos = tx->zeroed; pos != end; pos += RBI_LINE) {
        rbi_store_rlx(rbi_au64_at(tx->base, pos & tx->mask), 0);
    }
    note(tx, tx->zeroed, end, false);
    tx->zeroed = end;
    /* Only lines that the consumer has done with: it keeps what it still polls. */
    const uint64_t next_run = rbi_min_u64(tx->read_seen + capacity - end, RBI_LANE_RUN_BYTES);
    for (uint64_t pos = end; pos != end + next_run; pos += RBI_LINE) {
        __builtin_prefetch(tx->base + (pos & tx->mask), 1);
    }
    return RBI_LANE_OK;
}

void rbi_lane_wipe_lent(struct rbi_lane_tx *tx, uint64_t end)
{
    /* Body bytes of an aborted or shortened record would pass for commit words. */
    for (uint64_t pos = end; pos != tx->lent; pos += RBI_LINE) {
        rbi_store_rlx(rbi_au64_at(tx->base, pos & tx->mask), 0);
    }
    note(tx, end, tx->lent, false);
    tx->lent = end;
}

uint64_t rbi_lane_unread_first(const struct rbi_lane_tx *tx)
{
    uint64_t pos = tx->read_seen;
    return rbi_lane_read_pos(tx, &pos) == 0 ? pos : tx->read_seen;
}

uint64_t rbi_lane_used(const struct rbi_lane_tx *tx)
{
    return tx->pos - rbi_lane_unread_first(tx);
}

int rbi_lane_unread_at(const struct rbi_lane_tx *tx, uint64_t pos, struct rbi_lane_record *out)
{
    const uint64_t left = tx->pos - pos;
    if (left == 0 || left > tx->mask || pos % RBI_LINE != 0) {
        return RBI_LANE_EMPTY;
    }
    const uint64_t offset = pos & tx->mask;
    const uint64_t word = rbi_load_rlx(rbi_au64_at(tx->base, offset));
    const uint32_t size = (uint32_t)word;
    const uint32_t meta = (uint32_t)(word >> 32);
    if (meta == 0 || size > rbi_lane_body_max_of_mask(tx->mask) ||
        rbi_lane_record_bytes(size) > left) {
        return RBI_LANE_EMPTY;
    }
    out->meta = meta;
    out->size = size;
    out->body = tx->base + offset + RBI_LANE_HEADER;
    out->next = pos + rbi_lane_record_bytes(size);
    return RBI_LANE_OK;
}

void rbi_lane_withdraw(const struct rbi_lane_tx *tx, uint64_t pos)
{
    struct rbi_lane_record record;
    while (rbi_lane_unread_at(tx, pos, &record) == RBI_LANE_OK) {
        rbi_au64 *word = rbi_au64_at(tx->base, pos & tx->mask);
        rbi_store_rlx(word, rbi_load_rlx(word) | RBI_LANE_WITHDRAWN);
        pos = record.next;
    }
}
