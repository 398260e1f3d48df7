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
 *
 * After a link to another host ended the receiver may live on, and be linked again. What was for
 * any and was not sent on by the bridge goes to others at once; all the rest, which that one may
 * have had, or which is for nobody else, waits for a link to the same life, and goes there before
 * anything new (RBI_HINDERED_BEHIND). So two places in the lane are remembered, and what has the
 * same receiver goes in its order. The cluster is held only for what may go to any.
 */
#include "libclient/internal.h"

#include <stdlib.h>

#define RETRY_NS RBI_NS_PER_MS
/* What waits for the same life goes when that is linked: until then only its end is looked for. */
#define LOOK_NS (50 * RBI_NS_PER_MS)

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

void rbi_redeliver_settle(struct ringbus *bus, struct rbi_end *end)
{
    if (end->holds && (end->again == NULL || !end->again->any)) {
        end->holds = false;
        bus->holding--;
    }
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

static bool keep_waiting(struct ringbus *bus, struct rbi_end *end, const struct rbi_unread *unread)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    struct rbi_again *again = cluster != NULL ? malloc(sizeof *again) : NULL;
    if (again == NULL) {
        return false;
    }
    again->unread = *unread;
    again->any = again->same = false;
    again->position = again->same_position = end->tx.pos;
    again->deadline_ns = rbi_now_ns() + cluster->redeliver_ms * RBI_NS_PER_MS;
    again->number = ++bus->again_number;
    end->again = again;
    bus->redelivering++;
    rbi_end_unindex(bus, end); /* the address may get a new link meanwhile */
    rbi_deadline_at_most(bus, bus->now_ns + RETRY_NS);
    return true;
}

/* Notes the first of its sort that waits. @return whether it does */
static bool waits(struct ringbus *bus,
                  struct rbi_end *end,
                  struct rbi_unread *unread,
                  const struct rbi_returned *returned,
                  enum rbi_send_on whom)
{
    if (end->again == NULL && !keep_waiting(bus, end, unread)) {
        unread->over = true; /* the order would be lost */
        return false;
    }
    struct rbi_again *again = end->again;
    bool *sort = whom == RBI_SEND_ON_ANY ? &again->any : &again->same;
    if (!*sort) {
        *sort = true;
        *(whom == RBI_SEND_ON_ANY ? &again->position : &again->same_position) = returned->position;
    }
    if (returned->record.kind == RBI_RECORD_REQ) {
        rbi_calls_hold(bus, end, returned->record.tag, returned->maybe_seen);
    }
    return true;
}

bool rbi_redeliver(struct ringbus *bus,
                   struct rbi_end *end,
                   struct rbi_unread *unread,
                   const struct rbi_returned *returned)
{
    const enum rbi_send_on whom = rbi_send_on_whom(end, returned);
    if (unread->over || whom == RBI_SEND_ON_NOBODY) {
        return false;
    }
    if (whom == RBI_SEND_ON_ANY && (end->again == NULL || !end->again->any) &&
        rbi_send_on_to_any(bus, end, returned)) {
        return true;
    }
    return waits(bus, end, unread, returned, whom);
}

/* ---- those that wait ------------------------------------------------------------------------ */

static bool is_before(const struct rbi_end *end, const struct rbi_end *other)
{
    if (other->again != NULL && end->again->number > other->again->number) {
        return false;
    }
    if (end->again->any && other->holds && other->peer.cluster == end->peer.cluster) {
        return true;
    }
    return end->relayed && other->link_life > end->link_life &&
           (other->again != NULL || other->phase == RBI_END_LEAVING) &&
           other->peer.cluster == end->peer.cluster && other->peer.instance == end->peer.instance;
}

/*
 * Whether what waits here would overtake: the first of it may have gone to an instance, or over a
 * link, that has ended since, and goes on from there.
 */
static bool overtakes(const struct ringbus *bus, const struct rbi_end *end)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (bus->ends[i] != end && is_before(end, bus->ends[i])) {
            return true;
        }
    }
    return false;
}

/* The next of a sort from @p position on, which is moved there. */
static bool next_of(struct ringbus *bus,
                    struct rbi_end *end,
                    enum rbi_send_on whom,
                    uint64_t *position,
                    struct rbi_returned *out)
{
    while (rbi_unread_next(bus, end, &end->again->unread, *position, out)) {
        *position = out->position;
        if (rbi_send_on_whom(end, out) == whom) {
            return true; /* of the others, each was sent on or given back at once, or waits too */
        }
        *position = out->next;
    }
    *position = end->tx.pos;
    return false;
}

/* The life that it is for has ended, or has been told so long ago that it is not waited for. */
static bool is_lost(const struct rbi_cluster *cluster, const struct rbi_end *end)
{
    const struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, end->peer.instance) : NULL;
    return member != NULL && member->incarnation != 0 &&
           member->incarnation != end->peer.incarnation;
}

static void
give_back_rest(struct ringbus *bus, struct rbi_end *end, enum rbi_send_on whom, uint64_t *position)
{
    struct rbi_returned returned;
    while (next_of(bus, end, whom, position, &returned)) {
        rbi_give_back(bus, end, &returned);
        *position = returned.next;
    }
}

/* All that can go, in the order of the lane as far as it has the same receiver. @return all did */
static bool send_rest(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_again *again = end->again;
    for (;;) {
        struct rbi_returned one;
        struct rbi_returned other;
        again->same =
            again->same && next_of(bus, end, RBI_SEND_ON_SAME, &again->same_position, &other);
        again->any = again->any && next_of(bus, end, RBI_SEND_ON_ANY, &again->position, &one);
        const uint64_t first = again->unread.first;
        const bool same_first =
            again->same && (!again->any || again->same_position - first < again->position - first);
        struct rbi_end *to = same_first ? rbi_send_on_same_life(bus, end) : NULL;
        if (to != NULL) {
            if (!rbi_send_on_to_same(bus, end, to, &other)) {
                return false;
            }
            again->same_position = other.next;
        } else if (again->any) { /* not past it to the same: there is no link to that */
            if (!rbi_send_on_to_any(bus, end, &one)) {
                return false;
            }
            again->position = one.next;
        } else {
            return !again->same;
        }
    }
}

/* @return true when nothing waits any more */
static bool try_again(struct ringbus *bus, struct rbi_end *end, uint64_t now_ns)
{
    struct rbi_again *again = end->again;
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    again->unread.over |=
        now_ns >= again->deadline_ns || cluster == NULL || !cluster->redeliver || bus->closing;
    if (!again->unread.over && overtakes(bus, end)) {
        return false;
    }
    if (again->same && (again->unread.over || is_lost(cluster, end))) {
        give_back_rest(bus, end, RBI_SEND_ON_SAME, &again->same_position);
        again->same = false;
    }
    if (again->any && again->unread.over) {
        give_back_rest(bus, end, RBI_SEND_ON_ANY, &again->position);
        again->any = false;
    }
    if (!send_rest(bus, end)) {
        rbi_redeliver_settle(bus, end);
        return false;
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
    rbi_relayed_step(bus);
    rbi_send_flush(bus);
}

bool rbi_redeliver_waits(const struct ringbus *bus, const struct rbi_end *to)
{
    for (unsigned i = 0; bus->redelivering > 0 && i < bus->end_count; i++) {
        const struct rbi_end *end = bus->ends[i];
        if (end != to && end->again != NULL && end->relayed &&
            end->peer.cluster == to->peer.cluster && end->peer.instance == to->peer.instance &&
            end->peer.incarnation == to->peer.incarnation) {
            return true;
        }
    }
    return false;
}

uint64_t rbi_redeliver_tick(struct ringbus *bus)
{
    if (bus->redelivering == 0 && bus->behind == 0) {
        return RBI_NEVER;
    }
    bus->reap_needed = true;
    return bus->now_ns + (bus->holding == 0 && bus->behind == 0 ? LOOK_NS : RETRY_NS);
}
