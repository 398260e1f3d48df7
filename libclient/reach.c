/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/reach.c - see libclient/reach.h. */
#include "libclient/internal.h"

#include <stdlib.h>

void rbi_reach_look(const struct ringbus *bus,
                    struct rbi_cluster *cluster,
                    const struct rbi_route_cluster *own,
                    struct rbi_route_entry *entries)
{
    /* All stages off but state, which always is on, and set. */
    static const struct rbi_policy policy = {.set = {.mode = RBI_STAGE_STRICT}};
    static const struct rbi_route_message message = {.tag = ""};
    const struct rbi_route_caller caller = {.set = bus->labels.set, .idc = bus->labels.idc};
    const struct rbi_route_cluster all = {.instances = own->instances, .count = own->count};
    const struct rbi_route_input input = {.caller = &caller,
                                          .message = &message,
                                          .policy = &policy,
                                          .clusters = &all,
                                          .cluster_count = 1,
                                          .now_ns = bus->now_ns};
    struct rbi_route_result result;
    rbi_route_run(&input, NULL, entries, &result);
    for (unsigned i = 0; i < cluster->member_count; i++) {
        cluster->members[i].reach = 0;
    }
    for (unsigned i = 0; i < result.entry_count; i++) {
        const struct rbi_route_entry *entry = &entries[i];
        struct rbi_member *member = rbi_member_find(cluster, own->instances[entry->index].instance);
        if (member == NULL || entry->stage == RBI_ROUTE_STATE) {
            continue;
        }
        member->reach = (uint8_t)(RBI_REACH_OPEN | (entry->healthy ? RBI_REACH_HEALTHY : 0U) |
                                  (entry->stage != RBI_ROUTE_SET ? RBI_REACH_SET : 0U));
    }
}

/* What the links say, which know it before the directory. */
static int link_verdict(const struct rbi_member *member)
{
    const struct rbi_end *end = member->end;
    if (end == NULL || !end->usable) {
        return rbi_member_is_denied(member) ? RINGBUS_E_DENIED : rbi_member_not_ready(member);
    }
    if (end->drain.peer || member->state == RBI_ENDPOINT_DRAINING) {
        return RINGBUS_E_DRAINING;
    }
    return member->state == RBI_ENDPOINT_READY || member->state == RBI_ENDPOINT_BUSY
               ? 0
               : RINGBUS_E_NOT_READY;
}

int rbi_reach_verdict(const struct rbi_member *member, unsigned flags)
{
    const int r = link_verdict(member);
    if (r != 0) {
        return r;
    }
    if (member->weight == 0 || (member->reach & RBI_REACH_OPEN) == 0 ||
        ((flags & RINGBUS_SAME_SET) != 0 && (member->reach & RBI_REACH_SET) == 0)) {
        return RINGBUS_E_NO_MATCH;
    }
    return (flags & RINGBUS_HEALTHY_ONLY) != 0 && (member->reach & RBI_REACH_HEALTHY) == 0
               ? RINGBUS_E_SHIELDED
               : 0;
}

bool rbi_reach_collect(struct rbi_cluster *cluster)
{
    cluster->ready_count = 0;
    if (cluster->ready_room < cluster->member_count) {
        struct rbi_end **ready =
            realloc(cluster->ready, cluster->member_count * sizeof *cluster->ready);
        if (ready == NULL) {
            return false;
        }
        cluster->ready = ready;
        cluster->ready_room = cluster->member_count;
    }
    for (unsigned i = 0; i < cluster->member_count; i++) {
        if (rbi_reach_verdict(&cluster->members[i], 0) == 0) {
            cluster->ready[cluster->ready_count++] = cluster->members[i].end;
        }
    }
    return true;
}
