/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/gap.c - see libclient/gap.h. */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

#define GAPS_FIRST 8U

static bool same_life(const struct rbi_pidf *a, const struct rbi_pidf *b)
{
    return a->cluster == b->cluster && a->instance == b->instance &&
           a->incarnation == b->incarnation;
}

static void drop(struct rbi_gaps *gaps, unsigned at)
{
    gaps->count--;
    memmove(&gaps->items[at], &gaps->items[at + 1], (gaps->count - at) * sizeof gaps->items[0]);
}

/* Room for one more, in the place of the oldest if need be: its receiver did not come back. */
static bool make_room(struct rbi_gaps *gaps)
{
    if (gaps->count < gaps->room) {
        return true;
    }
    if (gaps->room == RBI_GAPS_MAX) {
        drop(gaps, 0);
        return true;
    }
    const unsigned room = gaps->room == 0 ? GAPS_FIRST : gaps->room * 2;
    struct rbi_gap *items = realloc(gaps->items, room * sizeof *items);
    if (items == NULL) {
        return false;
    }
    gaps->items = items;
    gaps->room = room;
    return true;
}

static struct rbi_gap *find(struct rbi_gaps *gaps, const struct rbi_pidf *peer, uint64_t link_life)
{
    for (unsigned i = gaps->count; i-- > 0;) {
        if (gaps->items[i].body.link_life == link_life && same_life(&gaps->items[i].peer, peer)) {
            return &gaps->items[i];
        }
    }
    return NULL;
}

/* ---- noting -------------------------------------------------------------------------------- */

static void add(struct ringbus *bus, const struct rbi_pidf *peer, const struct rbi_gap_body *body)
{
    struct rbi_gaps *gaps = &bus->gaps;
    struct rbi_gap *gap = find(gaps, peer, body->link_life);
    if (gap != NULL) { /* in the order of the lane */
        gap->body.from = rbi_min_u64(gap->body.from, body->from);
        gap->body.to = rbi_max_u64(gap->body.to, body->to);
        gap->body.count += body->count;
        gap->body.maybe_seen += body->maybe_seen;
    } else if (make_room(gaps)) {
        gaps->items[gaps->count++] = (struct rbi_gap){.peer = *peer, .body = *body};
    } else {
        bus->events.lost = true; /* the application is told that memory was short */
    }
}

void rbi_gap_note(struct ringbus *bus,
                  const struct rbi_end *end,
                  const struct rbi_returned *returned)
{
    if (!end->relayed || rbi_relayed_over(end) || bus->closing ||
        returned->record.kind != RBI_RECORD_ONEWAY) {
        return;
    }
    const struct rbi_gap_body body = {.link_life = end->link_life,
                                      .from = returned->position,
                                      .to = returned->next,
                                      .count = 1,
                                      .maybe_seen = returned->maybe_seen ? 1 : 0};
    add(bus, &end->peer, &body);
}

void rbi_gap_take_back(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_lane_record raw;
    struct rbi_record record;
    struct rbi_gap_body body;
    if (!end->relayed || rbi_relayed_over(end) || bus->closing) {
        return;
    }
    uint64_t position = rbi_lane_unread_first(&end->tx);
    while (rbi_lane_unread_at(&end->tx, position, &raw) == RBI_LANE_OK) {
        position = raw.next;
        if (rbi_record_meta_kind(raw.meta) == RBI_RECORD_GAP &&
            rbi_record_parse(raw.meta, raw.body, raw.size, &record) == 0 &&
            rbi_gap_decode(record.payload, record.payload_size, &body) == 0) {
            add(bus, &end->peer, &body);
        }
    }
}

/* ---- telling ------------------------------------------------------------------------------- */

bool rbi_gap_waits(const struct ringbus *bus, const struct rbi_pidf *peer)
{
    for (unsigned i = 0; i < bus->gaps.count; i++) {
        if (same_life(&bus->gaps.items[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

bool rbi_gap_tell(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_gaps *gaps = &bus->gaps;
    for (unsigned i = 0; i < gaps->count;) {
        unsigned char payload[RBI_CONTROL_BODY_MAX];
        if (!same_life(&gaps->items[i].peer, &end->peer)) {
            i++;
            continue;
        }
        const uint64_t size = rbi_gap_encode(&gaps->items[i].body, payload);
        if (!rbi_end_send_control(bus, end, RBI_RECORD_GAP, 0, payload, size)) {
            return false;
        }
        drop(gaps, i);
    }
    return true;
}

void rbi_gap_forget_others(struct ringbus *bus, const struct rbi_pidf *peer)
{
    struct rbi_gaps *gaps = &bus->gaps;
    for (unsigned i = gaps->count; i-- > 0;) {
        const struct rbi_pidf *other = &gaps->items[i].peer;
        if (other->cluster == peer->cluster && other->instance == peer->instance &&
            other->incarnation != peer->incarnation) {
            drop(gaps, i);
        }
    }
}

void rbi_gap_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_gap_body body;
    if (!end->relayed) {
        rbi_end_bad_peer(bus, end, "GAP on a link within the host");
        return;
    }
    if (rbi_gap_decode(record->payload, record->payload_size, &body) != 0) {
        rbi_end_bad_peer(bus, end, "GAP cannot be read");
        return;
    }
    if (!rbi_seen_gap(bus, end, &body)) {
        return; /* told before, or all of it was read */
    }
    struct rbi_queued_event *event = rbi_emit_simple(bus, RINGBUS_EVENT_GAP, &end->peer, end->path,
                                                     RBI_REASON_UNREACHABLE, RINGBUS_E_UNREACHABLE);
    if (event != NULL) {
        event->count = body.count;
        event->gap = (struct ringbus_gap){.from = body.from,
                                          .to = body.to,
                                          .link = body.link_life,
                                          .maybe_seen = body.maybe_seen};
    }
}

void rbi_gaps_deinit(struct rbi_gaps *gaps)
{
    free(gaps->items);
    memset(gaps, 0, sizeof *gaps);
}
