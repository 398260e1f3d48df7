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

/* The same where some stand for others: of these one, the first that has room. */
static int send_to_mixed(struct ringbus *bus,
                         struct rbi_end *const *ends,
                         unsigned count,
                         const struct rbi_outgoing *out)
{
    int taken = 0;
    bool brought = false;
    for (unsigned i = 0; i < count; i++) {
        struct rbi_end *end = ends[i];
        if (end->loop || !end->usable || (end->broker && brought)) {
            continue;
        }
        const bool took = rbi_send_new(bus, end, out) == 0;
        brought = brought || (took && end->broker);
        taken += took;
    }
    return taken;
}

/* One copy for all: a large payload is written into one chunk, whoever reads it. */
static int share_chunk(struct ringbus *bus, struct rbi_outgoing *out, struct rbi_chunk *chunk)
{
    chunk->idx = RBI_CHUNK_NONE;
    out->record_flags |= RBI_RECORD_BROADCAST;
    if (out->chunk != RBI_CHUNK_NONE || out->size <= bus->inline_max) {
        return 0;
    }
    const int r = rbi_send_chunk(bus, NULL, out->size, chunk);
    if (r == 0) {
        rbi_write_parts(chunk->data, out);
        out->chunk = chunk->idx;
    }
    return r;
}

static void let_go(struct ringbus *bus, const struct rbi_chunk *chunk)
{
    if (chunk->idx != RBI_CHUNK_NONE) {
        rbi_pool_unref(&bus->pool, chunk->idx);
    }
}

int rbi_send_to_all(struct ringbus *bus,
                    struct rbi_end *const *ends,
                    unsigned count,
                    struct rbi_outgoing *out)
{
    struct rbi_chunk chunk;
    const int r = count > 0 ? share_chunk(bus, out, &chunk) : 0;
    if (r != 0 || count == 0) {
        return r;
    }
    const int taken = RBI_UNLIKELY(bus->brokers) ? send_to_mixed(bus, ends, count, out)
                                                 : send_to_each(bus, ends, count, out);
    let_go(bus, &chunk);
    return taken;
}

/* ---- by flags, and with a report ---------------------------------------------------------- */

static void note(struct ringbus_broadcast *report,
                 const struct rbi_cluster *cluster,
                 const struct rbi_member *member,
                 bool was_for_it,
                 int r)
{
    if (report == NULL) {
        return;
    }
    if (report->count < report->each_max) {
        const struct rbi_pidf peer = rbi_member_pidf(cluster, member);
        report->each[report->count] =
            (struct ringbus_delivery){.instance = rbi_addr(&peer), .error = r < 0 ? r : 0};
    }
    report->count++;
    report->delivered += r == 0;
    report->delayed += r == RBI_SEND_KEPT;
    report->full += r == RINGBUS_E_FULL;
    report->skipped += !was_for_it;
    report->refused += was_for_it && r < 0 && r != RINGBUS_E_FULL;
}

/* Asks of each member whether it is for it. @return how many took it; a public error (noted) */
static int
send_to_members(struct ringbus *bus, const struct rbi_cluster *cluster, struct rbi_outgoing *out)
{
    struct rbi_chunk chunk;
    int taken = 0;
    bool brought = false; /* to one that stands for others: the other such do not get it */
    int r = share_chunk(bus, out, &chunk);
    if (r != 0) {
        return r;
    }
    for (unsigned i = 0; i < cluster->member_count; i++) {
        const struct rbi_member *member = &cluster->members[i];
        const bool self =
            cluster->id == bus->self.cluster && member->instance == bus->self.instance;
        if (member->incarnation == 0 || (self && (out->flags & RINGBUS_WITH_SELF) == 0)) {
            continue;
        }
        int verdict = rbi_reach_verdict(member, out->flags);
        const bool broker = member->end != NULL && member->end->broker;
        verdict = verdict == 0 && broker && brought ? RINGBUS_E_NO_MATCH : verdict;
        r = verdict == 0 ? rbi_send_new(bus, member->end, out) : verdict;
        taken += r == 0;
        brought = brought || (broker && r == 0);
        note(out->report, cluster, member, verdict == 0, r);
    }
    let_go(bus, &chunk);
    return taken;
}

int rbi_send_all(struct ringbus *bus, const struct ringbus_addr *to, struct rbi_outgoing *out)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, to->cluster);
    if (cluster == NULL || bus->closing) {
        return rbi_send_no_peer(bus, to);
    }
    if (cluster->dispatch_stale) {
        rbi_cluster_refresh(bus, cluster);
    }
    if (RBI_UNLIKELY((out->flags & RBI_REACH_FLAGS) != 0 || out->report != NULL)) {
        return send_to_members(bus, cluster, out);
    }
    return rbi_send_to_all(bus, cluster->ready, cluster->ready_count, out);
}

bool rbi_broadcast_begin(struct ringbus *bus, struct ringbus_broadcast *result)
{
    if (result == NULL || result->struct_size < sizeof *result ||
        (result->each == NULL && result->each_max > 0)) {
        (void)rbi_fail(bus, RINGBUS_E_ARGUMENT,
                       "no result, its struct_size is not set, or it has no room for each");
        return false;
    }
    result->count = result->delivered = result->delayed = 0;
    result->full = result->refused = result->skipped = 0;
    return true;
}

int ringbus_broadcast(struct ringbus *bus,
                      const struct ringbus_addr *to,
                      const struct ringbus_part *parts,
                      unsigned part_count,
                      const struct ringbus_message_options *options,
                      struct ringbus_broadcast *result)
{
    struct rbi_outgoing out = {.kind = RBI_RECORD_ONEWAY,
                               .parts = parts,
                               .part_count = part_count,
                               .chunk = RBI_CHUNK_NONE,
                               .report = result};
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (to == NULL || to->instance >= 0) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "a broadcast goes to RINGBUS_ALL");
    } else if (!rbi_broadcast_begin(bus, result)) {
        r = RINGBUS_E_ARGUMENT;
    } else {
        r = rbi_send_sum(bus, parts, part_count, &out.size);
        r = r == 0 ? rbi_attributes_say(bus, to, options, &out) : r;
    }
    rbi_leave(bus);
    return r;
}
