/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/send_on.c - see libclient/send_on.h. */
#include "libclient/internal.h"

/* ---- whom ----------------------------------------------------------------------------------- */

/* What may go to another: it was for any, and nobody has had it, or it may be handled twice. */
static bool may_go_to_any(const struct rbi_returned *returned)
{
    const unsigned flags = returned->record.flags;
    const unsigned kind = returned->record.kind;
    if ((flags & RBI_RECORD_ANY) == 0 || (kind != RBI_RECORD_ONEWAY && kind != RBI_RECORD_REQ)) {
        return false;
    }
    /* One that ended with its second handler, too, is not tried on a third. */
    return !returned->maybe_seen ||
           ((flags & RBI_RECORD_IDEMPOTENT) != 0 && (flags & RBI_RECORD_AGAIN) == 0);
}

/*
 * What the same life may get again. Of one-way messages it drops those that it had read; a request
 * that it may have answered already has to bear being handled twice.
 */
static bool may_go_to_same(const struct rbi_end *end, const struct rbi_returned *returned)
{
    const unsigned kind = returned->record.kind;
    return end->relayed &&
           (end->leave_reason == RBI_REASON_UNREACHABLE || end->leave_reason == RBI_REASON_SILENT ||
            end->leave_reason == RBI_REASON_GIVEN_UP) &&
           (kind == RBI_RECORD_ONEWAY ||
            (kind == RBI_RECORD_REQ &&
             (!returned->maybe_seen || (returned->record.flags & RBI_RECORD_IDEMPOTENT) != 0)));
}

enum rbi_send_on rbi_send_on_whom(const struct rbi_end *end, const struct rbi_returned *returned)
{
    return may_go_to_any(returned)         ? RBI_SEND_ON_ANY
           : may_go_to_same(end, returned) ? RBI_SEND_ON_SAME
                                           : RBI_SEND_ON_NOBODY;
}

static bool is_same_life(const struct rbi_end *end, const struct rbi_end *to)
{
    return to->peer.cluster == end->peer.cluster && to->peer.instance == end->peer.instance &&
           to->peer.incarnation == end->peer.incarnation;
}

struct rbi_end *rbi_send_on_same_life(struct ringbus *bus, const struct rbi_end *end)
{
    struct rbi_end *to = rbi_end_find(bus, end->peer.cluster, end->peer.instance);
    return to != NULL && to != end && to->usable && is_same_life(end, to) ? to : NULL;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* @p first  it was the receiver's before: it comes before anything new (relayed.h) */
static int
send_on(struct ringbus *bus, struct rbi_end *to, const struct rbi_outgoing *out, bool first)
{
    /* Nothing that the application has offered is refused here. */
    const uint64_t full = bus->counters[RBI_COUNTER_full];
    const uint8_t behind = (uint8_t)(first ? to->hindered & RBI_HINDERED_BEHIND : 0U);
    if (behind != 0 && !rbi_gap_tell(bus, to)) {
        return RINGBUS_E_FULL;
    }
    to->hindered &= (uint8_t)~behind;
    const int r = rbi_send_again(bus, to, out);
    to->hindered |= behind;
    bus->counters[RBI_COUNTER_full] = full;
    return r;
}

/* Attributes of the message that can be added to. */
static void open_attributes(struct rbi_outgoing *out, struct rbi_attributes *space)
{
    if (out->attributes == NULL) {
        memset(space, 0, sizeof *space);
    } else if (out->attributes != space) {
        *space = *out->attributes;
    }
    out->attributes = space;
}

/* It goes to another than its key's owner, as the policy says. */
static void say_diverted(struct ringbus *bus,
                         const struct rbi_end *to,
                         struct rbi_outgoing *out,
                         struct rbi_attributes *space)
{
    if (out->attributes != NULL) {
        open_attributes(out, space);
        space->diverted = true;
    } else {
        rbi_divert_say(bus, to, space);
        out->attributes = space;
    }
}

/* Where it lay when it was sent first, to who may have had it from there; nobody else is told. */
static void say_first(const struct rbi_end *end,
                      const struct rbi_end *to,
                      const struct rbi_returned *returned,
                      struct rbi_outgoing *out,
                      struct rbi_attributes *space)
{
    const bool known = out->attributes != NULL && (out->attributes->present & RBI_ATTRIBUTE_FIRST);
    const bool wanted = returned->maybe_seen && end->relayed && is_same_life(end, to);
    if (wanted && !known) {
        open_attributes(out, space);
        space->present |= RBI_ATTRIBUTE_FIRST;
        space->first_life = end->link_life;
        space->first_position = returned->position;
    } else if (known && !is_same_life(end, to)) {
        open_attributes(out, space);
        space->present &= ~RBI_ATTRIBUTE_FIRST;
    }
}

/* @return false: its time was over, the callback was told */
static bool fill(struct ringbus *bus,
                 struct rbi_end *end,
                 const struct rbi_returned *returned,
                 struct rbi_outgoing *out)
{
    const struct rbi_record *record = &returned->record;
    const bool keyed = (record->flags & RBI_RECORD_KEY) != 0;
    const bool again = returned->maybe_seen || (record->flags & RBI_RECORD_AGAIN) != 0;
    *out = (struct rbi_outgoing){
        .kind = (enum rbi_record_kind)record->kind,
        .flags = RINGBUS_MORE | (keyed ? RINGBUS_KEY : 0U) |
                 ((record->flags & RBI_RECORD_IDEMPOTENT) != 0 ? RINGBUS_IDEMPOTENT : 0U),
        .key = record->key,
        .parts = returned->view.message.parts,
        .part_count = returned->view.message.part_count,
        .size = returned->view.message.size,
        .chunk = returned->view.referenced ? rbi_refs_chunk(&end->refs, (uint32_t)record->ref.slot)
                                           : RBI_CHUNK_NONE,
        .record_flags = (record->flags & (RBI_RECORD_ANY | RBI_RECORD_BROADCAST)) |
                        (again ? RBI_RECORD_AGAIN : 0U),
        .attributes =
            (record->flags & RBI_RECORD_ATTRIBUTES) != 0 ? &returned->view.attributes : NULL};
    if (record->kind == RBI_RECORD_REQ) {
        out->tag = rbi_calls_next_tag(bus, end, record->tag);
        return out->tag != 0;
    }
    return true;
}

static void has_gone(struct ringbus *bus, const struct rbi_record *record, const struct rbi_end *to)
{
    if (record->kind == RBI_RECORD_REQ) {
        rbi_calls_moved(bus, record->tag, to);
    }
    rbi_count(bus, RBI_COUNTER_redelivered, 1);
}

/* Whom one goes on to, by all that was said of it; NULL: nobody now. */
static struct rbi_end *
pick_next(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_returned *returned)
{
    const bool keyed = (returned->record.flags & RBI_RECORD_KEY) != 0;
    if (returned->view.message.attributes == NULL) {
        return rbi_cluster_pick_held(bus, cluster, keyed, returned->record.key);
    }
    const struct rbi_choosing by = {.keyed = keyed, .key = returned->record.key};
    const struct rbi_pick pick = rbi_attributes_pick(&returned->view.attributes, &by);
    return rbi_cluster_pick_held_for(bus, cluster, &pick);
}

bool rbi_send_on_to_any(struct ringbus *bus,
                        struct rbi_end *end,
                        const struct rbi_returned *returned)
{
    const struct rbi_record *record = &returned->record;
    const bool keyed = (record->flags & RBI_RECORD_KEY) != 0;
    struct rbi_outgoing out;
    if (!fill(bus, end, returned, &out)) {
        return true;
    }
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster == NULL) {
        return false;
    }
    rbi_cluster_refresh(bus, cluster);
    for (unsigned tries = keyed ? 1 : cluster->member_count; tries > 0; tries--) {
        if ((cluster->dispatch_stale & RBI_DISPATCH_STALE) != 0) {
            rbi_cluster_refresh(bus, cluster); /* the one before has ended its link */
        }
        struct rbi_end *to = pick_next(bus, cluster, returned);
        if (to == NULL || !to->usable) {
            break;
        }
        struct rbi_outgoing one = out;
        struct rbi_attributes marked;
        if (keyed && rbi_divert_take(bus, to, record->key)) {
            say_diverted(bus, to, &one, &marked);
        }
        say_first(end, to, returned, &one, &marked);
        if (send_on(bus, to, &one, is_same_life(end, to)) == 0) {
            has_gone(bus, record, to);
            return true;
        }
    }
    return false;
}

bool rbi_send_on_to_same(struct ringbus *bus,
                         struct rbi_end *end,
                         struct rbi_end *to,
                         const struct rbi_returned *returned)
{
    struct rbi_outgoing out;
    struct rbi_attributes marked;
    if (!fill(bus, end, returned, &out)) {
        return true;
    }
    say_first(end, to, returned, &out, &marked);
    if (send_on(bus, to, &out, true) != 0) {
        return false;
    }
    has_gone(bus, &returned->record, to);
    return true;
}
