/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/undelivered.c - the end of an end: what its peer had not consumed lies in our own lane,
 * untouched. It goes on to others (redeliver.c) or back to the application; then the requests to
 * the peer end, and the link.
 *
 * Two words of the receiver's say what became of a message. Before its read position: consumed.
 * From there to where it had begun to handle a record: consumed, too, though it had not said so
 * yet. That record itself: its handler may have run. Behind it: not seen.
 *
 * On a relayed link (relayed.h) they are the bridge's, which has sent on what lies before the
 * second word: it may have been seen or lost, and what was said of the record itself goes for all
 * that lies between the two.
 *
 * A receiver that was given up may be alive and go on at any moment. What it has not begun is
 * withdrawn first: it stores which record it begins, then looks whether that is withdrawn; we
 * mark the records, have the kernel fence the processor that it may run on, and then load what it
 * has begun. Either it sees the mark, or we see that it has begun.
 */
#include "libclient/internal.h"

#include <stdlib.h>

/* ---- how far it had come -------------------------------------------------------------------- */

/* A message that lies in our lane; control records mean nothing to the application. */
static bool own_message(const struct rbi_lane_record *raw, struct rbi_record *record)
{
    return rbi_record_parse(raw->meta, raw->body, raw->size, record) == 0 &&
           ((record->kind >= RBI_RECORD_REQ && record->kind <= RBI_RECORD_ONEWAY) ||
            record->kind == RBI_RECORD_ERROR);
}

/*
 * Where each slot was used last, position + 1, by what the receiver has not released. A
 * slot may come back before the record is released, and go out again with other bytes:
 * an older record of the same slot was read, and its payload is gone. NULL: no memory;
 * is_used_again() knows it all the same.
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

/* The same for one slot, record by record: whether one from @p position on has used it again. */
static bool is_used_again(const struct rbi_end *end, uint64_t slot, uint64_t position)
{
    struct rbi_lane_record raw;
    struct rbi_record record;
    while (rbi_lane_unread_at(&end->tx, position, &raw) == RBI_LANE_OK) {
        if (own_message(&raw, &record) && (record.flags & RBI_RECORD_REF) != 0 &&
            record.ref.slot == slot) {
            return true;
        }
        position = raw.next;
    }
    return false;
}

/* Whether the payload that a record of ours names, at @p position, is still held for it. */
static bool still_held(struct ringbus *bus,
                       const struct rbi_end *end,
                       const struct rbi_record_ref *ref,
                       const uint64_t *last,
                       uint64_t position,
                       uint64_t next)
{
    struct rbi_chunk chunk;
    const uint32_t idx =
        ref->slot < end->refs.capacity ? end->refs.chunk_of[ref->slot] : RBI_CHUNK_NONE;
    if (idx == RBI_CHUNK_NONE ||
        (last != NULL ? last[ref->slot] != position + 1 : is_used_again(end, ref->slot, next))) {
        return false;
    }
    rbi_pool_chunk(&bus->pool, idx, &chunk);
    return ref->offset == chunk.offset && ref->size <= chunk.capacity;
}

/*
 * Dead, or it has told us itself that it reads nothing more. Whoever ends a link for another
 * reason reads our lane to its end first, and who was only silent may wake up and do so, until its
 * side of the bell is hung up (residue.c): the daemon's word that it is dead is about its
 * connection.
 */
static bool reads_no_more(struct rbi_end *end)
{
    if (end->bell >= 0) {
        end->hung_up |= rbi_bell_is_hung_up(end->bell);
    }
    return end->hung_up ||
           (end->leave_reason == RBI_REASON_LEFT && !end->said_bye && !end->bye_unknown);
}

/*
 * Whether its words say how far it had come. When one cannot be, what it had read since it was last
 * believed is known to nobody. What it has begun may lie behind what it has released, never ahead
 * of what was written.
 */
static bool is_believed(const struct rbi_end *end, uint64_t begun_raw, uint64_t first)
{
    uint64_t read_pos = 0;
    const uint64_t begun = begun_raw & ~RBI_SIDE_BETWEEN;
    return end->leave_reason != RBI_REASON_BAD_PEER &&
           rbi_lane_read_pos(&end->tx, &read_pos) == 0 &&
           (begun - first <= end->tx.pos - first || (int64_t)(begun - first) < 0);
}

/* Given up, whatever it does itself. @return whether it reads no more of this link */
static bool withdraw(const struct rbi_end *end, uint64_t first)
{
    const bool given_up =
        end->leave_reason == RBI_REASON_SILENT || end->leave_reason == RBI_REASON_CRASHED ||
        end->leave_reason == RBI_REASON_REPLACED || end->leave_reason == RBI_REASON_DENIED ||
        end->leave_reason == RBI_REASON_UNREACHABLE;
    if (!given_up || !end->peer_fenced) {
        return false;
    }
    rbi_lane_withdraw(&end->tx, first);
    return rbi_barrier_everywhere();
}

static void look(struct ringbus *bus, struct rbi_end *end, struct rbi_unread *unread)
{
    unread->first = rbi_lane_unread_first(&end->tx);
    const bool over = reads_no_more(end) || withdraw(end, unread->first);
    unread->over = !end->holds;
    /* Untrusted: what cannot be says nothing. It was stored before the peer's end. */
    const uint64_t begun_raw = rbi_load_rlx(end->peer_begun_pos);
    unread->doubtful = !over || !is_believed(end, begun_raw, unread->first);
    const uint64_t more = (begun_raw & ~RBI_SIDE_BETWEEN) - unread->first;
    const bool possible =
        more <= end->tx.pos - unread->first && end->leave_reason != RBI_REASON_BAD_PEER;
    unread->more = possible && !end->relayed ? more : 0;
    unread->on = possible && end->relayed ? more : 0;
    unread->begun = possible && (begun_raw & RBI_SIDE_BETWEEN) == 0;
    const int returned = rbi_refs_collect(&end->refs, &bus->pool);
    bus->returned += returned > 0 ? (uint64_t)returned : 0;
    unread->last = last_uses(end, unread->first);
}

bool rbi_unread_next(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_unread *unread,
                     uint64_t position,
                     struct rbi_returned *out)
{
    struct rbi_lane_record raw;
    while (rbi_lane_unread_at(&end->tx, position, &raw) == RBI_LANE_OK) {
        const uint64_t distance = position - unread->first;
        out->position = position;
        out->next = position = raw.next;
        if (distance < unread->more || !own_message(&raw, &out->record)) {
            continue;
        }
        if ((out->record.flags & RBI_RECORD_REF) != 0 &&
            !still_held(bus, end, &out->record.ref, unread->last, out->position, out->next)) {
            continue; /* the receiver has let go of it: it was read */
        }
        if (rbi_view_fill(bus, end, &out->record, bus->pool.segment.base, bus->pool.segment.size,
                          &out->view) == 0) {
            out->view.own = true;
            out->view.message.from = rbi_addr(&bus->self);
            out->view.message.from_path = bus->self_path;
            if ((out->record.flags & RBI_RECORD_ATTRIBUTES) != 0) {
                (void)rbi_attributes_view(&out->record, &out->view); /* our own words */
            }
            out->maybe_seen = unread->doubtful || distance < unread->on ||
                              (unread->begun && distance == unread->more + unread->on);
            return true;
        }
    }
    return false;
}

/* ---- back to the application ---------------------------------------------------------------- */

static struct ringbus_addr asked_for(const struct rbi_end *end, const struct rbi_record *record)
{
    return (struct ringbus_addr){.cluster = end->peer.cluster,
                                 .instance =
                                     (record->flags & RBI_RECORD_BROADCAST) != 0 ? RINGBUS_ALL
                                     : (record->flags & RBI_RECORD_ANY) != 0     ? RINGBUS_ANY
                                                                             : end->peer.instance};
}

void rbi_give_back(struct ringbus *bus, struct rbi_end *end, struct rbi_returned *returned)
{
    rbi_count(bus, RBI_COUNTER_undelivered, 1);
    rbi_gap_note(bus, end, returned);
    if (returned->record.kind == RBI_RECORD_REQ) {
        /* Its callback is told instead. */
        rbi_calls_given_back(bus, end, returned->record.tag, returned->maybe_seen);
        return;
    }
    const struct ringbus_event event = {.type = RINGBUS_EVENT_UNDELIVERED,
                                        .reason = (enum ringbus_reason)end->leave_reason,
                                        .error = rbi_end_error(end),
                                        .addr = rbi_addr(&end->peer),
                                        .path = end->path,
                                        .maybe_seen = returned->maybe_seen,
                                        .message = &returned->view.message,
                                        .to = asked_for(end, &returned->record)};
    struct rbi_view *outer = bus->view;
    bus->view = &returned->view; /* so that it can be kept */
    rbi_emit(bus, &event);
    bus->view = outer;
}

static void give_back_all(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_unread unread;
    struct rbi_returned returned;
    if (end->leave_reason == RBI_REASON_UNTARGETED && end->fsm.reason == RBI_REASON_UNTARGETED &&
        end->said_bye) {
        return; /* we left; it reads on what came before our DISCONNECT */
    }
    if (rbi_lane_tx_is_shut(&end->tx)) {
        return; /* still shut: no message was ever written */
    }
    look(bus, end, &unread);
    uint64_t position = unread.first;
    while (rbi_unread_next(bus, end, &unread, position, &returned)) {
        if (!rbi_redeliver(bus, end, &unread, &returned)) {
            rbi_give_back(bus, end, &returned);
        }
        position = returned.next;
    }
    if (end->again == NULL) {
        free(unread.last);
    }
}

void rbi_end_finish_leaving(struct ringbus *bus, struct rbi_end *end)
{
    end->phase = RBI_END_CLOSED;
    give_back_all(bus, end);
    rbi_delay_give_back(bus, end, rbi_end_error(end));
    rbi_redeliver_settle(bus, end);
    rbi_relayed_end(bus, end);
    if (end->kept == 0 && end->bell >= 0) {
        rbi_bell_hang_up(end->bell); /* what waits here may do so for long; we read no more */
    }
    rbi_send_flush(bus);
    rbi_calls_peer_gone(bus, end, rbi_end_error(end));
    rbi_count(bus, RBI_COUNTER_links_closed, 1);
    if (end->link_id != 0) {
        struct rbi_wire_link_down down = {.link_id = end->link_id,
                                          .reason = (uint32_t)end->leave_reason};
        rbi_text_set(&down.text, "");
        (void)rbi_control_send(bus, RBI_WIRE_LINK_DOWN, &down, NULL, 0);
    }
    if (end->failed) {
        rbi_end_report_failed(bus, end);
    }
    rbi_refused_end(bus, end);
    if (end->reported_up) {
        struct rbi_queued_event *down =
            rbi_emit_simple(bus, RINGBUS_EVENT_DOWN, &end->peer, end->path, end->leave_reason,
                            end->leave_reason == RBI_REASON_BAD_PEER      ? RINGBUS_E_BAD_PEER
                            : end->leave_reason == RBI_REASON_DENIED      ? RINGBUS_E_DENIED
                            : end->leave_reason == RBI_REASON_UNREACHABLE ? RINGBUS_E_UNREACHABLE
                                                                          : 0);
        if (down != NULL) {
            down->silent_ms = end->leave_reason == RBI_REASON_GIVEN_UP ? rbi_tick_silence_ms(bus)
                                                                       : end->silent_ms;
        }
    }
    rbi_target_link_over(bus, end);
}
