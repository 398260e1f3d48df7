/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/copy.h"
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

bool rbi_failback_wanted(const struct rbi_cluster *cluster)
{
    const struct rbi_caller *caller = cluster->caller;
    if (caller != NULL && caller->retry != RINGBUS_RETRY_AUTO) {
        return caller->retry == RINGBUS_RETRY_FAILBACK;
    }
    return rbi_retry_policy_of(cluster)->mode == RBI_RETRY_FAILBACK;
}

/* What may go away by itself. */
static bool may_pass(int error)
{
    const enum ringbus_error_kind kind = ringbus_error_kind(error);
    return kind == RINGBUS_ERROR_RETRY || error == RINGBUS_E_NO_SERVICE ||
           error == RINGBUS_E_NO_INSTANCE || error == RINGBUS_E_PEER_GONE ||
           error == RINGBUS_E_NO_MATCH || error == RINGBUS_E_BAD_PEER ||
           error == RINGBUS_E_UNREACHABLE || error == RINGBUS_E_NO_ROUTE;
}

static void set_due(struct ringbus *bus, uint64_t due_ns)
{
    bus->kept.due_ns = rbi_min_u64(bus->kept.due_ns, due_ns);
    rbi_deadline_at_most(bus, due_ns);
}

static int keep(struct ringbus *bus,
                struct rbi_cluster *cluster,
                const struct ringbus_addr *to,
                const struct rbi_outgoing *out)
{
    const struct rbi_retry_policy *policy = rbi_retry_policy_of(cluster);
    struct rbi_caller *caller = rbi_caller_of(cluster);
    if (caller != NULL && caller->kept >= policy->failback_max) {
        rbi_count(bus, RBI_COUNTER_full, 1);
        return rbi_fail(bus, RINGBUS_E_FULL, "%u messages to %s are kept already", caller->kept,
                        cluster->path);
    }
    struct rbi_copy *kept = caller != NULL ? rbi_copy_new(to, out) : NULL;
    if (kept == NULL) {
        return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "no memory to keep a message to %s",
                        cluster->path);
    }
    if (bus->kept.last != NULL) {
        bus->kept.last->next = kept;
    } else {
        bus->kept.first = kept;
    }
    bus->kept.last = kept;
    caller->kept++;
    uint64_t due_ns = rbi_now_ns() + policy->failback_ms * RBI_NS_PER_MS;
    if ((kept->attributes.present & RBI_ATTRIBUTE_DEADLINE) != 0) {
        due_ns = rbi_min_u64(due_ns, kept->attributes.deadline_ns);
    }
    set_due(bus, due_ns);
    return 0;
}

int rbi_failback_send(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct ringbus_addr *to,
                      struct rbi_outgoing *out,
                      struct rbi_attributes *attributes)
{
    out->attributes = attributes;
    if (cluster->caller != NULL && cluster->caller->kept > 0 && out->size <= bus->size_max) {
        return keep(bus, cluster, to, out); /* not past those before it */
    }
    const int r = rbi_attributes_send(bus, to, out, attributes);
    return r < 0 && may_pass(r) ? keep(bus, cluster, to, out) : r;
}

/* ---- what is kept -------------------------------------------------------------------------- */

/* @return as ringbus_send() */
static int send_kept(struct ringbus *bus, struct rbi_copy *kept)
{
    struct ringbus_part parts[RINGBUS_PARTS_MAX];
    struct rbi_outgoing out;
    rbi_copy_outgoing(kept, parts, &out);
    /* Nothing that the application has offered is refused here. */
    const uint64_t full = bus->counters[RBI_COUNTER_full];
    const uint64_t no_peer = bus->counters[RBI_COUNTER_no_peer];
    const int r = rbi_attributes_send(bus, &kept->to, &out, &kept->attributes);
    bus->counters[RBI_COUNTER_full] = full;
    bus->counters[RBI_COUNTER_no_peer] = no_peer;
    return r;
}

static void give_back(struct ringbus *bus, const struct rbi_copy *kept, int error)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, kept->to.cluster);
    rbi_copy_give_back(bus, kept, &kept->to, cluster != NULL ? cluster->path : "", error);
}

/* Takes out what comes behind @p before; NULL: the first. */
static struct rbi_copy *take_out(struct ringbus *bus, struct rbi_copy *before)
{
    struct rbi_copy **link = before != NULL ? &before->next : &bus->kept.first;
    struct rbi_copy *kept = *link;
    struct rbi_cluster *cluster = rbi_cluster_find(bus, kept->to.cluster);
    *link = kept->next;
    if (bus->kept.last == kept) {
        bus->kept.last = before;
    }
    if (cluster != NULL && cluster->caller != NULL && cluster->caller->kept > 0) {
        cluster->caller->kept--;
    }
    return kept;
}

/* What becomes of one now. @return 0 it stays; 1 it was sent; else it is given back with that */
static int try_kept(struct ringbus *bus, struct rbi_copy *kept, uint64_t now_ns)
{
    const struct rbi_attributes *attributes = &kept->attributes;
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, kept->to.cluster);
    if (cluster == NULL || cluster->caller == NULL) {
        return RINGBUS_E_NOT_TARGET;
    }
    const bool timed = (attributes->present & RBI_ATTRIBUTE_DEADLINE) != 0;
    if (timed && attributes->deadline_ns <= now_ns) {
        return RINGBUS_E_TIMEOUT;
    }
    struct rbi_caller *caller = cluster->caller;
    if (caller->kept_pass != bus->kept.pass) { /* else one before it stays */
        const int r = send_kept(bus, kept);
        if (r >= 0 || !may_pass(r)) {
            return r >= 0 ? 1 : r;
        }
        caller->kept_pass = bus->kept.pass;
    }
    const uint64_t next_ns = now_ns + rbi_retry_policy_of(cluster)->failback_ms * RBI_NS_PER_MS;
    set_due(bus, timed ? rbi_min_u64(next_ns, attributes->deadline_ns) : next_ns);
    return 0;
}

void rbi_failback_link_up(struct ringbus *bus)
{
    if (bus->kept.first != NULL) {
        set_due(bus, bus->now_ns);
    }
}

uint64_t rbi_failback_tick(struct ringbus *bus, uint64_t now_ns)
{
    if (bus->kept.due_ns > now_ns) {
        return bus->kept.due_ns;
    }
    bus->kept.due_ns = RBI_NEVER;
    bus->kept.pass++;
    /* A callback may keep others: they come behind the last, and are not looked at now. */
    const struct rbi_copy *last = bus->kept.last;
    struct rbi_copy *before = NULL;
    bool more = bus->kept.first != NULL;
    while (more) {
        struct rbi_copy *kept = before != NULL ? before->next : bus->kept.first;
        const int r = try_kept(bus, kept, now_ns);
        more = kept != last && kept->next != NULL;
        if (r == 0) {
            before = kept;
            continue;
        }
        (void)take_out(bus, before);
        if (r < 0) {
            give_back(bus, kept, r);
        }
        free(kept);
    }
    return bus->kept.due_ns;
}

void rbi_failback_end_all(struct ringbus *bus, int error)
{
    while (bus->kept.first != NULL) {
        struct rbi_copy *kept = take_out(bus, NULL);
        give_back(bus, kept, error);
        free(kept);
    }
}

void rbi_failback_deinit(struct ringbus *bus)
{
    while (bus->kept.first != NULL) {
        struct rbi_copy *kept = bus->kept.first;
        bus->kept.first = kept->next;
        free(kept);
    }
    bus->kept.last = NULL;
}
