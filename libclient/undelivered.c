/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/undelivered.c - the end of an end: gives back what its peer had not consumed, which
 * lies in our own lane, ends the requests to it, and reports.
 */
#include "libclient/internal.h"

#include <stdlib.h>

/* A message that lies in our lane; control records mean nothing to the application. */
static bool own_message(const struct rbi_lane_record *raw, struct rbi_record *record)
{
    return rbi_record_parse(raw->meta, raw->body, raw->size, record) == 0 &&
           record->kind >= RBI_RECORD_REQ && record->kind <= RBI_RECORD_ONEWAY;
}

/*
 * Where each slot was used last, position + 1, by what the receiver has not released. A
 * slot may come back before the record is released, and go out again with other bytes:
 * an older record of the same slot was read, and its payload is gone. NULL: no memory.
 */
static uint64_t *last_uses(struct rbi_end *end, uint64_t position)
{
    uint64_t *last = calloc(end->refs.capacity > 0 ? end->refs.capacity : 1, sizeof *last);
    struct rbi_lane_record raw;
    struct rbi_record record;
    while (last != NULL && rbi_lane_unread_at(&end->tx, position, &raw) == RBI_LANE_OK) {
        if (own_message(&raw, &record) && (record.flags & RBI_RECORD_REF) != 0 &&
            record.ref.slot < end->refs.capacity) {
            last[record.ref.slot] = position + 1;
        }
        position = raw.next;
    }
    return last;
}

/* Whether the payload that a record of ours names is still held for it. */
static bool still_held(struct ringbus *bus,
                       const struct rbi_end *end,
                       const struct rbi_record_ref *ref,
                       const uint64_t *last,
                       uint64_t position)
{
    struct rbi_chunk chunk;
    const uint32_t idx =
        ref->slot < end->refs.capacity ? end->refs.chunk_of[ref->slot] : RBI_CHUNK_NONE;
    if (idx == RBI_CHUNK_NONE || (last != NULL && last[ref->slot] != position + 1)) {
        return false;
    }
    rbi_pool_chunk(&bus->pool, idx, &chunk);
    return ref->offset == chunk.offset && ref->size <= chunk.capacity;
}

static void give_back_one(struct ringbus *bus,
                          struct rbi_end *end,
                          const struct rbi_lane_record *raw,
                          const uint64_t *last,
                          uint64_t position,
                          bool maybe_seen)
{
    struct rbi_record record;
    struct rbi_view view;
    if (!own_message(raw, &record)) {
        return;
    }
    if ((record.flags & RBI_RECORD_REF) != 0 &&
        !still_held(bus, end, &record.ref, last, position)) {
        return; /* the receiver has let go of it: it was read */
    }
    if (rbi_view_fill(bus, end, &record, bus->pool.segment.base, bus->pool.segment.size, &view) !=
        0) {
        return;
    }
    rbi_count(bus, RBI_COUNTER_undelivered, 1);
    if (record.kind == RBI_RECORD_REQ) {
        /* Its callback is told instead: here for certain, else with those that are unknown. */
        if (!maybe_seen) {
            rbi_calls_not_sent(bus, &end->peer, record.tag, RINGBUS_E_PEER_GONE);
        }
        return;
    }
    const struct ringbus_event event = {.type = RINGBUS_EVENT_UNDELIVERED,
                                        .reason = (enum ringbus_reason)end->leave_reason,
                                        .error = RINGBUS_E_PEER_GONE,
                                        .addr = rbi_addr(&end->peer),
                                        .path = end->path,
                                        .maybe_seen = maybe_seen,
                                        .message = &view.message};
    rbi_emit(bus, &event);
}

/* So many records from the last released one on a receiver may have begun to read, at most. */
#define SEEN_MAX (RBI_UNSAID_BYTES / RBI_LINE + RBI_BATCH_MAX)

/*
 * What the receiver had not released lies in our own lane, untouched. It publishes its
 * position now and then (poll_lane() in poll.c), so the first of them may have been seen; all
 * of them, when it may not be dead but paused, or a liar.
 */
static void give_back(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_lane_record raw;
    if (end->leave_reason == RBI_REASON_UNTARGETED) {
        return; /* we left; it reads on what came before our DISCONNECT */
    }
    if (rbi_lane_tx_is_shut(&end->tx)) {
        return; /* still shut: no message was ever written */
    }
    const bool doubtful =
        end->leave_reason == RBI_REASON_SILENT || end->leave_reason == RBI_REASON_BAD_PEER;
    uint64_t maybe = doubtful ? UINT64_MAX : SEEN_MAX;
    uint64_t position = rbi_lane_unread_first(&end->tx);
    const uint64_t seen_bytes = doubtful ? UINT64_MAX : end->tx.mask >> 2;
    const uint64_t first = position;
    const int returned = rbi_refs_collect(&end->refs, &bus->pool);
    bus->returned += returned > 0 ? (uint64_t)returned : 0;
    uint64_t *last = last_uses(end, position);
    while (rbi_lane_unread_at(&end->tx, position, &raw) == RBI_LANE_OK) {
        give_back_one(bus, end, &raw, last, position, maybe > 0 && position - first <= seen_bytes);
        maybe -= maybe > 0 ? 1U : 0U;
        position = raw.next;
    }
    free(last);
}

void rbi_end_finish_leaving(struct ringbus *bus, struct rbi_end *end)
{
    end->phase = RBI_END_CLOSED;
    give_back(bus, end);
    rbi_calls_peer_gone(bus, &end->peer, RINGBUS_E_PEER_GONE);
    rbi_count(bus, RBI_COUNTER_links_closed, 1);
    if (end->link_id != 0) {
        struct rbi_wire_link_down down = {.link_id = end->link_id,
                                          .reason = (uint32_t)end->leave_reason};
        rbi_text_set(&down.text, "");
        (void)rbi_control_send(bus, RBI_WIRE_LINK_DOWN, &down, NULL, 0);
    }
    if (end->reported_up) {
        struct rbi_queued_event *down =
            rbi_emit_simple(bus, RINGBUS_EVENT_DOWN, &end->peer, end->path, end->leave_reason,
                            end->leave_reason == RBI_REASON_BAD_PEER ? RINGBUS_E_BAD_PEER : 0);
        if (down != NULL) {
            down->silent_ms = end->silent_ms;
        }
    }
    rbi_target_link_over(bus, end);
}
