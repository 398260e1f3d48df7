/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/health.c - what the daemon found out about instances that we target, as events. */
#include "libclient/internal.h"

/* One life of an instance goes out of service, or comes back: each once. */
static void
instance_news(struct ringbus *bus, struct rbi_member *member, const struct rbi_wire_event *event)
{
    const struct rbi_pidf peer = {
        .cluster = event->cluster, .instance = event->instance, .incarnation = event->incarnation};
    const bool was = member->shielded == event->incarnation;
    const bool is = event->health == RBI_HEALTH_OPEN || event->health == RBI_HEALTH_HALF_OPEN;
    member->shielded = is ? event->incarnation : 0;
    if (was != is && member->wanted) {
        rbi_emit_simple(bus, is ? RINGBUS_EVENT_SHIELDED : RINGBUS_EVENT_UNSHIELDED, &peer,
                        event->path.bytes, RBI_REASON_NONE, 0);
    }
}

void rbi_health_event(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct rbi_wire_event *event)
{
    struct rbi_member *member = rbi_member_find(cluster, event->instance);
    if (event->change != RBI_CHANGE_REMOVED && member != NULL &&
        member->incarnation == event->incarnation) {
        instance_news(bus, member, event);
    }
    const bool panic = event->panic != 0;
    if (event->change != RBI_CHANGE_REMOVED && panic != cluster->panic) {
        const struct rbi_pidf all = {.cluster = cluster->id};
        cluster->panic = panic;
        rbi_emit_simple(bus, panic ? RINGBUS_EVENT_PANIC : RINGBUS_EVENT_PANIC_OVER, &all,
                        cluster->path, RBI_REASON_NONE, 0);
    }
}
