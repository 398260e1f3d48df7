/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/redeliver.c - RINGBUS_ON_DOWN_REDELIVER: what was sent to any instance of a cluster,
 * and its receiver ended without consuming it, goes on to another.
 *
 * The order of each key is kept: what is to go on goes in the order of the lane where it lies, and
 * from the moment that the link begins to leave until the last of it has gone, nothing new is sent
 * to any instance of that cluster ("held": rbi_cluster_pick() finds nobody, and the send is
 * refused as if the lane was full). What finds no room, or nobody, stays where it is: in the lane
 * of the closed end, bounded in size by it and in time by redeliver_ms.
 */
#include "libclient/internal.h"

#include <stdlib.h>

#define RETRY_NS RBI_NS_PER_MS

/* ---- holding the cluster -------------------------------------------------------------------- */

void rbi_redeliver_hold(struct ringbus *bus, struct rbi_end *end)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster != NULL && cluster->redeliver && !end->holds && !bus->closing &&
        !rbi_lane_tx_is_shut(&end->tx) &&
        !(end->leave_reason == RBI_REASON_UNTARGETED && end->said_bye)) {
        end->holds = true;
        bus->holding++;
    }
}

bool rbi_redeliver_holds(const struct ringbus *bus, uint64_t cluster)
{
    for (unsigned i = 0; bus->holding > 0 && i < bus->end_count; i++) {
        if (bus->ends[i]->holds && bus->ends[i]->peer.cluster == cluster) {
            return true;
        }
    }
    return false;
}

int rbi_redeliver_refuse(struct ringbus *bus, const struct rbi_cluster *cluster)
{
    rbi_count(bus, RBI_COUNTER_full, 1);
    return rbi_fail(bus, RINGBUS_E_FULL,
                    "messages to %s that an instance did not consume go to another first: wait, "
                    "dispatch, retry",
                    cluster->path);
}

void rbi_redeliver_end(struct ringbus *bus, struct rbi_end *end)
{
    if (end->holds) {
        end->holds = false;
        bus->holding--;
    }
    if (end->again != NULL) {
        free(end->again->unread.last);
        free(end->again);
        end->again = NULL;
        bus->redelivering--;
    }
}

/* ---- sending on ----------------------------------------------------------------------------- */

/* What may go to another: it was for any, and nobody has had it, or it may be handled twice. */
static bool may_go_on(const struct rbi_returned *returned)
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

static int send_on(struct ringbus *bus, struct rbi_end *to, const struct rbi_outgoing *out)
{
    /* Nothing that the application has offered is refused here. */
    const uint64_t full = bus->counters[RBI_COUNTER_full];
    const int r = rbi_send_again(bus, to, out);
    bus->counters[RBI_COUNTER_full] = full;
    return r;
}

/* It goes to another than its key's owner, as the policy says. */
static void say_diverted(struct ringbus *bus,
                         const struct rbi_end *to,
                         struct rbi_outgoing *out,
                         struct rbi_attributes *space)
{
    if (out->attributes != NULL) {
        *space = *out->attributes;
        space->diverted = true;
    } else {
        rbi_divert_say(bus, to, space);
    }
    out->attributes = space;
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

/* @return true when it has gone on, or nobody waits for it any more; false: not now */
static bool go_on(struct ringbus *bus, struct rbi_end *end, const struct rbi_returned *returned)
{
    const struct rbi_record *record = &returned->record;
    const bool keyed = (record->flags & RBI_RECORD_KEY) != 0;
    const bool again = returned->maybe_seen || (record->flags & RBI_RECORD_AGAIN) != 0;
    struct rbi_outgoing out = {
        .kind = (enum rbi_record_kind)record->kind,
        .flags = RINGBUS_MORE | (keyed ? RINGBUS_KEY : 0U) |
                 ((record->flags & RBI_RECORD_IDEMPOTENT) != 0 ? RINGBUS_IDEMPOTENT : 0U),
        .key = record->key,
        .parts = returned->view.message.parts,
        .part_count = returned->view.message.part_count,
        .size = returned->view.message.size,
        .chunk = returned->view.referenced ? rbi_refs_chunk(&end->refs, (uint32_t)record->ref.slot)
                                           : RBI_CHUNK_NONE,
        .record_flags = RBI_RECORD_ANY | (again ? RBI_RECORD_AGAIN : 0U),
        .attributes =
            returned->view.message.attributes != NULL ? &returned->view.attributes : NULL};
    if (record->kind == RBI_RECORD_REQ) {
        out.tag = rbi_calls_next_tag(bus, end, record->tag);
        if (out.tag == 0) {
            return true; /* its time was over: the callback was told */
        }
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
        struct rbi_attributes marked;
        if (keyed && rbi_divert_take(bus, to, record->key)) {
            say_diverted(bus, to, &out, &marked);
        }
        if (send_on(bus, to, &out) == 0) {
            if (record->kind == RBI_RECORD_REQ) {
                rbi_calls_moved(bus, record->tag, to);
            }
            rbi_count(bus, RBI_COUNTER_redelivered, 1);
            return true;
        }
    }
    return false;
}

static bool keep_waiting(struct ringbus *bus,
                         struct rbi_end *end,
                         const struct rbi_unread *unread,
                         uint64_t position)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    struct rbi_again *again = cluster != NULL ? malloc(sizeof *again) : NULL;
    if (again == NULL) {
        return false;
    }
    again->unread = *unread;
    again->position = position;
    again->deadline_ns = rbi_now_ns() + cluster->redeliver_ms * RBI_NS_PER_MS;
    again->number = ++bus->again_number;
    end->again = again;
    bus->redelivering++;
    rbi_end_unindex(bus, end); /* the address may get a new link meanwhile */
    rbi_deadline_at_most(bus, bus->now_ns + RETRY_NS);
    return true;
}

bool rbi_redeliver(struct ringbus *bus,
                   struct rbi_end *end,
                   struct rbi_unread *unread,
                   const struct rbi_returned *returned)
{
    if (unread->over || !may_go_on(returned)) {
        return false;
    }
    if (end->again == NULL) {
        if (go_on(bus, end, returned)) {
            return true;
        }
        if (!keep_waiting(bus, end, unread, returned->position)) {
            unread->over = true; /* the order would be lost */
            return false;
        }
    }
    if (returned->record.kind == RBI_RECORD_REQ) {
        rbi_calls_hold(bus, end, returned->record.tag, returned->maybe_seen);
    }
    return true;
}

/* ---- those that wait ------------------------------------------------------------------------ */

/*
 * Whether what waits here would overtake: the first of it may have gone to an instance that has
 * ended since, and goes on from there.
 */
static bool overtakes(const struct ringbus *bus, const struct rbi_end *end)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        const struct rbi_end *other = bus->ends[i];
        if (other->holds && other != end && other->peer.cluster == end->peer.cluster &&
            (other->again == NULL || other->again->number > end->again->number)) {
            return true;
        }
    }
    return false;
}

/* @return true when nothing waits any more */
static bool try_again(struct ringbus *bus, struct rbi_end *end, uint64_t now_ns)
{
    struct rbi_again *again = end->again;
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    struct rbi_returned returned;
    again->unread.over |=
        now_ns >= again->deadline_ns || cluster == NULL || !cluster->redeliver || bus->closing;
    if (!again->unread.over && overtakes(bus, end)) {
        return false;
    }
    while (rbi_unread_next(bus, end, &again->unread, again->position, &returned)) {
        if (!may_go_on(&returned)) {
            /* It was given back at once. */
        } else if (again->unread.over) {
            rbi_give_back(bus, end, &returned);
        } else if (!go_on(bus, end, &returned)) {
            return false;
        }
        again->position = returned.next;
    }
    /* A request that its living receiver has let go of meanwhile was read: nothing goes on. */
    rbi_calls_over(bus, end, rbi_end_error(end));
    return true;
}

void rbi_redeliver_step(struct ringbus *bus)
{
    const uint64_t now_ns = rbi_now_ns();
    for (unsigned i = bus->end_count; bus->redelivering > 0 && i-- > 0;) {
        struct rbi_end *end = i < bus->end_count ? bus->ends[i] : NULL;
        if (end != NULL && end->again != NULL && try_again(bus, end, now_ns)) {
            rbi_redeliver_end(bus, end);
        }
    }
    rbi_send_flush(bus);
}

uint64_t rbi_redeliver_tick(struct ringbus *bus)
{
    if (bus->redelivering == 0) {
        return RBI_NEVER;
    }
    bus->reap_needed = true;
    return bus->now_ns + RETRY_NS;
}
