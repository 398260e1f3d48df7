/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/send.c - from an address to a record in a lane. The way of a small message to
 * a known peer: one look at the cached end, one reserve, one copy, one store; no system
 * call, no allocation, no division.
 */
#include "libclient/send_plain.h"

#include <errno.h>
#include <string.h>

/* ---- who -------------------------------------------------------------------------------- */

static RBI_COLD struct rbi_end *find_self(struct ringbus *bus, const struct ringbus_addr *to)
{
    if (to->cluster == bus->self.cluster && to->instance == bus->self.instance) {
        return bus->loop_end != NULL ? bus->loop_end : rbi_end_new_loop(bus);
    }
    return NULL;
}

int rbi_send_resolve(struct ringbus *bus,
                     const struct ringbus_addr *to,
                     bool keyed,
                     uint64_t key,
                     struct rbi_end **out)
{
    struct rbi_end *end = NULL;
    if (to->instance > 0) {
        end = rbi_end_recent(bus, to->cluster, to->instance);
        if (RBI_UNLIKELY(end == NULL)) {
            end = rbi_end_find(bus, to->cluster, to->instance);
            if (end == NULL) {
                end = find_self(bus, to);
            }
        }
    } else if (to->instance == RINGBUS_ANY) {
        struct rbi_cluster *cluster = rbi_cluster_find(bus, to->cluster);
        end = RBI_LIKELY(cluster != NULL) ? rbi_cluster_pick(bus, cluster, keyed, key) : NULL;
    } else {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "one receiver is needed here, not all");
    }
    if (RBI_UNLIKELY(end == NULL || !end->usable ||
                     (to->incarnation != 0 && to->incarnation != end->peer.incarnation))) {
        return rbi_send_no_peer(bus, to);
    }
    bus->recent[rbi_recent_at(end->peer.cluster, end->peer.instance)] = end;
    *out = end;
    return 0;
}

/* ---- waking ------------------------------------------------------------------------------ */

static RBI_COLD void ring(struct ringbus *bus, struct rbi_end *end)
{
    if (end->loop) {
        rbi_wait_nudge(bus); /* we sleep in a loop of the application's, for ourselves as well */
        return;
    }
    rbi_count(bus, RBI_COUNTER_bells_rung, 1);
    if (end->bell >= 0 && rbi_bell_ring(end->bell) == -EPIPE) {
        /* Its end is closed: it is dead. The reaper reads its lane to the end first. */
        rbi_end_peer_gone(bus, end, rbi_relayed_lost(end));
    }
}

void rbi_send_ring(struct ringbus *bus, struct rbi_end *end)
{
    if (end->peer_sleeps && rbi_bell_wanted(end->peer_sleep_epoch, &end->rung)) {
        ring(bus, end);
    }
}

void rbi_send_flush(struct ringbus *bus)
{
    while (bus->dirty != NULL) {
        struct rbi_end *end = bus->dirty;
        bus->dirty = end->next_dirty;
        end->unrung = false;
        rbi_bell_burst_end(end->own_written_hint, end->tx.pos);
        rbi_send_ring(bus, end);
    }
}

void rbi_send_commit(
    struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes, uint32_t meta, unsigned flags)
{
    if (!end->peer_sleeps) {
        rbi_lane_commit(&end->tx, body_bytes, meta);
    } else if ((flags & RINGBUS_MORE) != 0) {
        rbi_lane_commit(&end->tx, body_bytes, meta);
        if (!end->unrung) {
            end->unrung = true;
            end->next_dirty = bus->dirty;
            bus->dirty = end;
        }
    } else {
        rbi_lane_commit_seq(&end->tx, body_bytes, meta);
        rbi_send_ring(bus, end);
    }
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Words between tag and payload: key of a request, sizes of the parts, attributes. */
static unsigned extension_words(const struct rbi_outgoing *out)
{
    const bool key_word = (out->flags & RINGBUS_KEY) != 0 && out->kind != RBI_RECORD_ONEWAY;
    return (key_word ? 1U : 0U) + (out->part_count > 1 ? out->part_count : 0U) +
           (out->attributes != NULL ? rbi_attributes_words(out->attributes) : 0U);
}

static uint32_t meta_of(const struct rbi_outgoing *out, unsigned words, unsigned extra_flags)
{
    unsigned flags = extra_flags | out->record_flags;
    flags |= (out->flags & RINGBUS_KEY) != 0 ? RBI_RECORD_KEY : 0U;
    flags |= (out->flags & RINGBUS_IDEMPOTENT) != 0 ? RBI_RECORD_IDEMPOTENT : 0U;
    flags |= out->attributes != NULL ? RBI_RECORD_ATTRIBUTES : 0U;
    return rbi_record_meta(out->kind, flags, words, out->part_count > 1 ? out->part_count : 0U);
}

static unsigned char *write_head(unsigned char *body, const struct rbi_outgoing *out)
{
    const uint64_t tag = out->kind == RBI_RECORD_ONEWAY ? out->key : out->tag;
    memcpy(body, &tag, sizeof tag);
    body += RBI_RECORD_TAG;
    if ((out->flags & RINGBUS_KEY) != 0 && out->kind != RBI_RECORD_ONEWAY) {
        memcpy(body, &out->key, sizeof out->key);
        body += sizeof out->key;
    }
    if (out->part_count > 1) {
        for (unsigned i = 0; i < out->part_count; i++) {
            const uint64_t size = out->parts[i].size;
            memcpy(body, &size, sizeof size);
            body += sizeof size;
        }
    }
    if (out->attributes != NULL) {
        body = rbi_attributes_encode(out->attributes, body);
    }
    return body;
}

void rbi_write_parts(unsigned char *to, const struct rbi_outgoing *out)
{
    for (unsigned i = 0; i < out->part_count; i++) {
        if (out->parts[i].size > 0) {
            memcpy(to, out->parts[i].data, out->parts[i].size);
            to += out->parts[i].size;
        }
    }
}

static int send_inline(struct ringbus *bus,
                       struct rbi_end *end,
                       const struct rbi_outgoing *out,
                       unsigned words)
{
    unsigned char *body = NULL;
    const uint64_t bytes = RBI_RECORD_TAG + 8U * words + out->size;
    const int r = rbi_send_reserve(bus, end, bytes, &body);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    if (RBI_LIKELY(out->part_count == 1 && words == 0)) {
        rbi_write_plain(body, out->kind == RBI_RECORD_ONEWAY ? out->key : out->tag,
                        out->parts[0].data, out->size);
    } else {
        rbi_write_parts(write_head(body, out), out);
    }
    rbi_send_commit(bus, end, bytes, meta_of(out, words, 0), out->flags);
    return 0;
}

/* Sends a chunk that holds the payload already; the chunk gains one reference. */
static int send_reference(struct ringbus *bus,
                          struct rbi_end *end,
                          const struct rbi_outgoing *out,
                          unsigned words,
                          uint32_t chunk_idx)
{
    struct rbi_chunk chunk;
    struct rbi_record_ref ref = {.size = out->size};
    uint32_t slot = 0;
    unsigned char *body = NULL;
    const uint64_t bytes = RBI_RECORD_TAG + 8U * words + sizeof ref;
    int r = RBI_POOL_EMPTY;
    if (RBI_LIKELY(rbi_send_share_left(bus, end, rbi_pool_free_like(&bus->pool, chunk_idx)))) {
        r = rbi_refs_take(&end->refs, &bus->pool, chunk_idx, &slot);
    }
    if (r == RBI_POOL_EMPTY && rbi_send_collect_from(bus, end) == 0 &&
        rbi_send_share_left(bus, end, rbi_pool_free_like(&bus->pool, chunk_idx))) {
        r = rbi_refs_take(&end->refs, &bus->pool, chunk_idx, &slot);
    }
    if (RBI_UNLIKELY(r != RBI_POOL_OK)) {
        /* It holds as many payloads of ours as it may: the same to the caller as a full lane. */
        rbi_send_starved(bus);
        rbi_count(bus, RBI_COUNTER_full, 1);
        return rbi_fail_fast(bus, RINGBUS_E_FULL, &end->peer, bytes);
    }
    r = rbi_send_reserve(bus, end, bytes, &body);
    if (RBI_UNLIKELY(r != 0)) {
        rbi_refs_cancel(&end->refs, &bus->pool, slot);
        return r;
    }
    rbi_pool_chunk(&bus->pool, chunk_idx, &chunk);
    ref.offset = chunk.offset;
    ref.slot = slot;
    memcpy(write_head(body, out), &ref, sizeof ref);
    rbi_send_commit(bus, end, bytes, meta_of(out, words, RBI_RECORD_REF), out->flags);
    return 0;
}

static int send_by_chunk(struct ringbus *bus,
                         struct rbi_end *end,
                         const struct rbi_outgoing *out,
                         unsigned words)
{
    struct rbi_chunk chunk;
    int r = rbi_send_chunk(bus, end, out->size, &chunk);
    if (r != 0) {
        return r;
    }
    rbi_write_parts(chunk.data, out);
    r = send_reference(bus, end, out, words, chunk.idx);
    rbi_pool_unref(&bus->pool, chunk.idx); /* ours; the receiver's reference keeps it */
    return r;
}

int rbi_send_again(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out)
{
    const unsigned words = extension_words(out);
    int r;
    if (RBI_UNLIKELY(end->hindered != 0)) {
        const bool answer = out->kind == RBI_RECORD_REP || out->kind == RBI_RECORD_ERROR;
        r = rbi_send_hindered(bus, end,
                              answer                    ? RBI_METHOD_ANSWER
                              : out->attributes != NULL ? out->attributes->method
                                                        : 0);
        if (r != 0) {
            return r;
        }
    }
    if (out->chunk != RBI_CHUNK_NONE) {
        r = send_reference(bus, end, out, words, out->chunk);
    } else if (RBI_LIKELY(out->size <= bus->inline_max)) {
        r = send_inline(bus, end, out, words);
    } else {
        r = send_by_chunk(bus, end, out, words);
    }
    return r;
}

int rbi_send_one(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out)
{
    const int r = rbi_send_again(bus, end, out);
    if (RBI_LIKELY(r == 0)) {
        rbi_count(bus, RBI_COUNTER_sent, 1);
        rbi_count(bus, RBI_COUNTER_sent_bytes, out->size);
    }
    return r;
}

int rbi_send_new(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out)
{
    const unsigned asked = RBI_HINDERED_LIMIT | RBI_HINDERED_DELAYED;
    if (RBI_LIKELY((end->hindered & (asked | RBI_HINDERED_DIVERTED)) == 0)) {
        return rbi_send_one(bus, end, out);
    }
    if ((out->flags & RINGBUS_KEY) != 0 && (out->record_flags & RBI_RECORD_ANY) != 0 &&
        rbi_divert_take(bus, end, out->key)) {
        return rbi_divert_send(bus, end, out);
    }
    return (end->hindered & asked) != 0 ? rbi_delay_send(bus, end, out)
                                        : rbi_send_one(bus, end, out);
}

/* ---- public calls -------------------------------------------------------------------------- */

#define SEND_FLAGS (RINGBUS_KEY | RINGBUS_MORE | RINGBUS_IDEMPOTENT)

int rbi_send_any(struct ringbus *bus, const struct ringbus_addr *to, struct rbi_outgoing *out)
{
    const bool all = to != NULL && to->instance < 0;
    if (RBI_UNLIKELY(to == NULL ||
                     (out->flags & ~(SEND_FLAGS | (all ? RBI_REACH_FLAGS : 0U))) != 0)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "no address, or flags 0x%x that are unknown or for RINGBUS_ALL only",
                        out->flags);
    }
    if (RBI_UNLIKELY(out->size > bus->size_max)) {
        rbi_count(bus, RBI_COUNTER_too_big, 1);
        return rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, NULL, out->size);
    }
    if (all) {
        return rbi_send_all(bus, to, out);
    }
    if (RBI_UNLIKELY(bus->balance_all) && rbi_all_wanted(bus, to)) {
        const struct rbi_pick pick = {.keyed = (out->flags & RINGBUS_KEY) != 0, .key = out->key};
        return rbi_all_send(bus, to, out, &pick);
    }
    struct rbi_end *end = NULL;
    out->record_flags |= to->instance == RINGBUS_ANY ? RBI_RECORD_ANY : 0U;
    int r = rbi_send_resolve(bus, to, (out->flags & RINGBUS_KEY) != 0, out->key, &end);
    if (RBI_LIKELY(r == 0 && end != NULL)) {
        r = rbi_send_new(bus, end, out);
    }
    return rbi_sent(r);
}

/*
 * Everything but the plain message to a known peer.
 * @param end  chosen already, by choices that count: not to be chosen once more; NULL: nobody
 */
static __attribute__((noinline)) int send_other(struct ringbus *bus,
                                                const struct ringbus_addr *to,
                                                struct rbi_end *end,
                                                uint64_t key,
                                                const void *data,
                                                size_t size,
                                                unsigned flags)
{
    const struct ringbus_part part = {.data = data, .size = size};
    struct rbi_outgoing out = {.kind = RBI_RECORD_ONEWAY,
                               .flags = flags,
                               .key = key,
                               .parts = &part,
                               .part_count = 1,
                               .size = size,
                               .chunk = RBI_CHUNK_NONE};
    if (RBI_UNLIKELY(data == NULL && size > 0)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "%zu bytes at NULL", size);
    }
    if (end != NULL) {
        out.record_flags = to->instance == RINGBUS_ANY ? RBI_RECORD_ANY : 0U;
        const int r = rbi_send_new(bus, end, &out);
        return rbi_sent(r);
    }
    return rbi_send_any(bus, to, &out);
}

/*
 * The end that takes a plain message, when that is known without a look around; else NULL.
 * @p bits  flags of its record that the address asks for
 */
static inline struct rbi_end *plain_end(struct ringbus *bus,
                                        const struct ringbus_addr *to,
                                        uint64_t key,
                                        unsigned flags,
                                        unsigned *bits)
{
    struct rbi_end *end = NULL;
    if (RBI_LIKELY(to->instance > 0)) {
        end = rbi_end_recent(bus, to->cluster, to->instance);
    } else if (to->instance == RINGBUS_ANY && bus->last_cluster != NULL &&
               bus->last_cluster->id == to->cluster &&
               (bus->last_cluster->dispatch_stale & RBI_DISPATCH_HOOKED) == 0) {
        end = rbi_cluster_pick(bus, bus->last_cluster, (flags & RINGBUS_KEY) != 0, key);
        *bits = RBI_RECORD_ANY;
    }
    return RBI_LIKELY(end != NULL && end->usable &&
                      (to->incarnation == 0 || to->incarnation == end->peer.incarnation))
               ? end
               : NULL;
}

int ringbus_send(struct ringbus *bus,
                 const struct ringbus_addr *to,
                 uint64_t key,
                 const void *data,
                 size_t size,
                 unsigned flags)
{
    int r = rbi_enter(bus);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    struct rbi_end *end = NULL;
    unsigned bits = 0;
    if (RBI_LIKELY(to != NULL && data != NULL && (flags & ~SEND_FLAGS) == 0 &&
                   size <= bus->inline_max)) {
        end = plain_end(bus, to, key, flags, &bits);
    }
    if (RBI_LIKELY(end != NULL && end->hindered == 0)) {
        bits |= ((flags & RINGBUS_KEY) != 0 ? RBI_RECORD_KEY : 0U) |
                ((flags & RINGBUS_IDEMPOTENT) != 0 ? RBI_RECORD_IDEMPOTENT : 0U);
        r = rbi_send_plain(bus, end, rbi_record_meta(RBI_RECORD_ONEWAY, bits, 0, 0), key, data,
                           size, flags);
    } else {
        r = send_other(bus, to, end, key, data, size, flags);
    }
    rbi_leave(bus);
    return r;
}

int rbi_send_sum(struct ringbus *bus,
                 const struct ringbus_part *parts,
                 unsigned count,
                 uint64_t *size)
{
    uint64_t sum = 0;
    if (count == 0 || count > RINGBUS_PARTS_MAX || parts == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "%u parts, expected 1 to %d", count,
                        RINGBUS_PARTS_MAX);
    }
    for (unsigned i = 0; i < count; i++) {
        if (parts[i].data == NULL && parts[i].size > 0) {
            return rbi_fail(bus, RINGBUS_E_ARGUMENT, "part %u: %zu bytes at NULL", i,
                            parts[i].size);
        }
        if (__builtin_add_overflow(sum, parts[i].size, &sum)) {
            sum = UINT64_MAX; /* refused below by the limit */
        }
    }
    *size = sum;
    return 0;
}

int ringbus_sendv(struct ringbus *bus,
                  const struct ringbus_addr *to,
                  uint64_t key,
                  const struct ringbus_part *parts,
                  unsigned part_count,
                  unsigned flags)
{
    int r = rbi_enter(bus);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    struct rbi_outgoing out = {.kind = RBI_RECORD_ONEWAY,
                               .flags = flags,
                               .key = key,
                               .parts = parts,
                               .part_count = part_count,
                               .chunk = RBI_CHUNK_NONE};
    r = rbi_send_sum(bus, parts, part_count, &out.size);
    if (r == 0) {
        r = rbi_send_any(bus, to, &out);
    }
    rbi_leave(bus);
    return r;
}

size_t ringbus_size_max(const struct ringbus *bus)
{
    return bus != NULL && rbi_load_rlx(bus->guard) == RBI_GUARD_ALIVE ? bus->size_max : 0;
}
