/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/news.c - what an EVENT means to one who knows something already. The daemon
 * tells everything again after a reconnect, and so does a comparison with the directory.
 */
#include "libclient/internal.h"

enum rbi_news rbi_news_of(uint32_t known_incarnation,
                          uint32_t known_state,
                          uint32_t known_weight,
                          const struct rbi_wire_event *event)
{
    if (event->change == RBI_CHANGE_REMOVED) {
        return known_incarnation != 0 && known_incarnation == event->incarnation ? RBI_NEWS_REMOVED
                                                                                 : RBI_NEWS_NONE;
    }
    if (known_incarnation == 0) {
        return RBI_NEWS_ADDED;
    }
    if (known_incarnation != event->incarnation) {
        return RBI_NEWS_REPLACED;
    }
    return known_state != event->state || known_weight != event->weight ? RBI_NEWS_UPDATED
                                                                        : RBI_NEWS_NONE;
}

void rbi_news_emit(struct ringbus *bus,
                   enum rbi_news news,
                   const struct rbi_wire_event *event,
                   uint32_t old_incarnation)
{
    struct rbi_pidf peer = {
        .cluster = event->cluster, .instance = event->instance, .incarnation = event->incarnation};
    enum ringbus_event_type type = RINGBUS_EVENT_ADDED;
    switch (news) {
    case RBI_NEWS_NONE:
        return;
    case RBI_NEWS_ADDED:
        break;
    case RBI_NEWS_UPDATED:
        type = RINGBUS_EVENT_UPDATED;
        break;
    case RBI_NEWS_REMOVED:
        type = RINGBUS_EVENT_REMOVED;
        break;
    case RBI_NEWS_REPLACED: {
        /* Its end was never told, or was lost on the way: the old life leaves first. */
        const struct rbi_pidf old = {
            .cluster = event->cluster, .instance = event->instance, .incarnation = old_incarnation};
        rbi_emit_simple(bus, RINGBUS_EVENT_REMOVED, &old, event->path.bytes, RBI_REASON_REPLACED,
                        0);
        break;
    }
    }
    rbi_emit_simple(bus, type, &peer, event->path.bytes, (enum rbi_reason)event->reason, 0);
}
