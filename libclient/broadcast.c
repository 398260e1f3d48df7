/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/broadcast.c - one message to every instance of a cluster. What one receiver
 * has no room for is refused for it alone and counted; nobody waits for it.
 */
#include "libclient/send_plain.h"

#include <string.h>

/*
 * So many receivers ahead are their ends fetched, and half as many ahead the line to be
 * written: with many of them each is a miss or two, of which one need not wait for the other.
 */
#define FETCH_ENDS  4U
#define FETCH_LINES 2U

static inline void fetch_ahead(struct rbi_end *const *ends, unsigned count, unsigned i)
{
    if (i + FETCH_ENDS < count) {
        const struct rbi_end *end = ends[i + FETCH_ENDS];
        __builtin_prefetch(&end->tx, 1);
        __builtin_prefetch(&end->refs, 1);
    }
    if (i + FETCH_LINES < count) {
        const struct rbi_lane_tx *tx = &ends[i + FETCH_LINES]->tx;
        __builtin_prefetch(tx->base + (tx->pos & tx->mask), 1);
    }
}

/* The way of most broadcasts: a whole chunk without extension. 1; 0 not taken by it. */
static inline __attribute__((always_inline)) int send_chunk(struct ringbus *bus,
                                                            struct rbi_end *end,
                                                            const struct rbi_outgoing *out,
                                                            uint32_t meta,
                                                            uint64_t offset,
                                                            uint32_t free_count)
{
    struct rbi_record_ref ref = {.offset = offset, .size = out->size};
    uint32_t slot = 0;
    unsigned char *body = NULL;
    const uint64_t bytes = RBI_RECORD_TAG + sizeof ref;
    if (RBI_UNLIKELY(end->hindered != 0 || !rbi_send_share_left(bus, end, free_count) ||
                     rbi_lane_reserve(&end->tx, bytes, RBI_LANE_CONTROL_ROOM, &body) !=
                         RBI_LANE_OK ||
                     rbi_refs_take(&end->refs, &bus->pool, out->chunk, &slot) != RBI_POOL_OK)) {
        /* Whatever it is, the long way finds it out and says so. */
        return rbi_send_new(bus, end, out) == 0 ? 1 : 0;
    }
    ref.slot = slot;
    memcpy(body, &out->key, sizeof out->key);
    memcpy(body + RBI_RECORD_TAG, &ref, sizeof ref);
    rbi_send_commit(bus, end, bytes, meta, out->flags);
    rbi_count(bus, RBI_COUNTER_sent, 1);
    rbi_count(bus, RBI_COUNTER_sent_bytes, out->size);
    return 1;
}

static int send_to_each(struct ringbus *bus,
                        struct rbi_end *const *ends,
                        unsigned count,
                        const struct rbi_outgoing *out)
{
    const bool whole = out->part_count == 1 && out->attributes == NULL; /* no extension */
    const bool plain_chunk = out->chunk != RBI_CHUNK_NONE && whole;
    const bool plain_inline = out->chunk == RBI_CHUNK_NONE && whole;
    const uint32_t meta =
        rbi_record_meta(RBI_RECORD_ONEWAY,
                        RBI_RECORD_BROADCAST | (plain_chunk ? RBI_RECORD_REF : 0U) |
                            ((out->flags & RINGBUS_KEY) != 0 ? RBI_RECORD_KEY : 0U) |
                            ((out->flags & RINGBUS_IDEMPOTENT) != 0 ? RBI_RECORD_IDEMPOTENT : 0U),
                        0, 0);
    struct rbi_chunk chunk = {.offset = 0};
    int taken = 0;
    uint32_t free_count = 0;
    if (plain_chunk) {
        rbi_pool_chunk(&bus->pool, out->chunk, &chunk);
        free_count = rbi_pool_free_like(&bus->pool, out->chunk);
    }
    for (unsigned i = 0; i < count; i++) {
        struct rbi_end *end = ends[i];
        fetch_ahead(ends, count, i);
        if (end->loop || !end->usable) {
            continue;
        }
        if (plain_chunk) {
            taken += send_chunk(bus, end, out, meta, chunk.offset, free_count);
        } else if (plain_inline && end->hindered == 0) {
            taken += rbi_send_plain(bus, end, meta, out->key, out->parts[0].data, out->size,
                                    out->flags) == 1;
        } else {
            taken += rbi_send_new(bus, end, out) == 0 ? 1 : 0;
        }
    }
    return taken;
}

int rbi_send_to_all(struct ringbus *bus,
                    struct rbi_end *const *ends,
                    unsigned count,
                    struct rbi_outgoing *out)
{
    struct rbi_chunk chunk = {.idx = RBI_CHUNK_NONE};
    out->record_flags = RBI_RECORD_BROADCAST;
    /* One copy for all: a large payload is written into one chunk, whoever reads it. */
    if (out->chunk == RBI_CHUNK_NONE && out->size > bus->inline_max && count > 0) {
        const int r = rbi_send_chunk(bus, NULL, out->size, &chunk);
        if (r != 0) {
            return r;
        }
        rbi_write_parts(chunk.data, out);
        out->chunk = chunk.idx;
    }
    const int taken = send_to_each(bus, ends, count, out);
    if (chunk.idx != RBI_CHUNK_NONE) {
        rbi_pool_unref(&bus->pool, chunk.idx);
    }
    return taken;
}

int rbi_send_all(struct ringbus *bus, const struct ringbus_addr *to, struct rbi_outgoing *out)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, to->cluster);
    if (cluster == NULL) {
        return rbi_send_no_peer(bus, to);
    }
    if (cluster->dispatch_stale) {
        rbi_cluster_refresh(bus, cluster);
    }
    return rbi_send_to_all(bus, cluster->ready, cluster->ready_count, out);
}
