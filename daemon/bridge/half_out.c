/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/half_out.c - records that go to the local peer. */
#include "daemon/bridge/desk_parts.h"

#include <errno.h>
#include <string.h>

/** Data leaves room for control records. */
static uint64_t room_of(uint32_t meta)
{
    const unsigned kind = rbi_record_meta_kind(meta);
    const bool data = kind >= RBI_RECORD_REQ && kind <= RBI_RECORD_ERROR;
    return data ? RBI_LANE_CONTROL_ROOM : 0;
}

/** In a lane that is shut: control records fit it as a rule, all else opens it. */
static RBI_COLD int
reserve_shut(struct rbi_half *half, uint64_t size, uint64_t room, unsigned char **body)
{
    int r = room == 0 ? rbi_lane_reserve_once(&half->tx, size, room, body) : -EMSGSIZE;
    if (r == -EMSGSIZE) {
        if (rbi_half_open_tx(half) < 0) {
            rbi_proxy_starve(half); /* so that it is tried again */
            return -EAGAIN;
        }
        r = rbi_lane_reserve(&half->tx, size, room, body);
    }
    return r;
}

int rbi_half_reserve(struct rbi_half *half, uint32_t meta, uint64_t size, unsigned char **body)
{
    const uint64_t room = room_of(meta);
    if (RBI_UNLIKELY(half->phase != RBI_HALF_LINKED)) {
        return -EPIPE;
    }
    int r = rbi_lane_reserve(&half->tx, size, room, body);
    if (RBI_UNLIKELY(r == -EMSGSIZE && rbi_lane_tx_is_shut(&half->tx))) {
        r = reserve_shut(half, size, room, body);
    }
    if (RBI_LIKELY(r == RBI_LANE_OK)) {
        return r;
    }
    if (r == -EAGAIN) {
        return RBI_LANE_FULL;
    }
    if (r == RBI_LANE_FULL) {
        half->blocked = true;
        half->want_bytes = size;
        rbi_desk_attend(half);
    }
    return r == -EPROTO ? rbi_half_bad_peer(half) : r;
}

void rbi_half_commit(struct rbi_half *half, uint32_t meta, uint64_t size)
{
    struct rbi_desk_figures *figures = &half->proxy->desk->figures;
    rbi_lane_commit(&half->tx, size, meta);
    half->said_bye |= rbi_record_meta_kind(meta) == RBI_RECORD_DISCONNECT;
    figures->records_out++;
    figures->bytes_out += size;
    if (!half->unrung) {
        rbi_desk_unrung(half);
    }
}

int rbi_half_put(struct rbi_half *half, uint32_t meta, const unsigned char *body, uint64_t size)
{
    unsigned char *to = NULL;
    const int r = rbi_half_reserve(half, meta, size, &to);
    if (RBI_LIKELY(r == RBI_LANE_OK)) {
        RBI_ASSERT(to != NULL);
        memcpy(to, body, size);
        rbi_half_commit(half, meta, size);
    }
    return r;
}

uint64_t rbi_half_body_max(const struct rbi_half *half)
{
    return half->tx.base != NULL ? rbi_lane_body_max(half->tx.mask + 1) : 0;
}

/** Untrusted: what another host says of a payload. @return bytes; UINT64_MAX: no reference */
static uint64_t referenced(uint32_t meta, const unsigned char *body, uint64_t size)
{
    const uint64_t head = RBI_RECORD_TAG + UINT64_C(8) * (meta >> 16 & 0xffU);
    struct rbi_record_ref ref;
    if ((meta >> 8 & RBI_RECORD_REF) == 0 || size != head + sizeof ref) {
        return UINT64_MAX;
    }
    memcpy(&ref, body + head, sizeof ref);
    return ref.size;
}

int rbi_half_put_ref(struct rbi_half *half,
                     uint32_t meta,
                     const unsigned char *body,
                     uint64_t size,
                     const struct rbi_chunk *chunk)
{
    struct rbi_pool *pool = &half->proxy->pool;
    const uint64_t bytes = referenced(meta, body, size);
    uint32_t slot = 0;
    if (bytes > chunk->capacity) {
        return -EINVAL;
    }
    if (half->phase != RBI_HALF_LINKED) {
        return -EPIPE;
    }
    int r = rbi_refs_take(&half->refs, pool, chunk->idx, &slot);
    if (r == RBI_POOL_EMPTY) {
        rbi_proxy_collect(half->proxy);
        r = half->phase != RBI_HALF_LINKED ? -EPROTO
                                           : rbi_refs_take(&half->refs, pool, chunk->idx, &slot);
    }
    if (r == RBI_POOL_EMPTY) {
        rbi_proxy_starve(half);
        return RBI_LANE_FULL;
    }
    if (r < 0) {
        return r;
    }
    unsigned char *to = NULL;
    r = rbi_half_reserve(half, meta, size, &to);
    if (r != RBI_LANE_OK) {
        rbi_refs_cancel(&half->refs, pool, slot);
        return r;
    }
    const struct rbi_record_ref ref = {.offset = chunk->offset, .size = bytes, .slot = slot};
    RBI_ASSERT(to != NULL);
    memcpy(to, body, size - sizeof ref);
    memcpy(to + size - sizeof ref, &ref, sizeof ref);
    rbi_half_commit(half, meta, size);
    half->proxy->desk->figures.bytes_out += bytes;
    rbi_pool_unref(pool, chunk->idx); /* ours; the peer's reference keeps it */
    return RBI_LANE_OK;
}
