/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_EVENT_H
#define RINGBUS_LIBCLIENT_EVENT_H
/* libclient/event.h - what is told to the application, and when. */
#include "bus/pidf.h"
#include "bus/record.h"

#include <ringbus/ringbus.h>
#include <stdbool.h>
#include <stdint.h>

struct rbi_alarm_news;
struct rbi_node_call;
struct rbi_node_news;
struct ringbus;

/** Events wait here until ringbus_poll() can call back: never from inside our own tables. */
struct rbi_queued_event {
    enum ringbus_event_type type;
    enum ringbus_reason reason;
    int error;
    uint32_t silent_ms;
    bool paused;
    struct ringbus_slot_range *slots; /* from malloc; or NULL */
    size_t slot_count;
    uint64_t epoch;
    uint64_t count;
    uint32_t method;
    struct ringbus_gap gap;       /* link 0: none */
    struct rbi_node_news *node;   /* from malloc; or NULL */
    struct rbi_alarm_news *alarm; /* the same */
    struct rbi_node_call *call;   /* not an event, but the end of that; or NULL */
    struct rbi_pidf peer;
    char path[RBI_PATH_MAX + 1];
};

struct rbi_events {
    struct rbi_queued_event *items;
    unsigned first;
    unsigned count;
    unsigned room;
    bool lost; /* no memory for one: a RESYNC is reported instead */
};

/**
 * Queues an event; path and peer may be NULL. @return it, for what else is to be told, or NULL:
 * nobody takes events, or no memory
 */
struct rbi_queued_event *rbi_emit_simple(struct ringbus *bus,
                                         enum ringbus_event_type type,
                                         const struct rbi_pidf *peer,
                                         const char *path,
                                         enum rbi_reason reason,
                                         int error);
void rbi_events_deinit(struct rbi_events *events);
/** Queues the end of a question about nodes among the events. @return false: no memory */
bool rbi_events_push_node(struct ringbus *bus, struct rbi_node_call *call);
/** Calls back for every queued event. From ringbus_poll() only. */
void rbi_events_flush(struct ringbus *bus);
/** Calls back at once, after those that are queued. From ringbus_poll() only. */
void rbi_emit(struct ringbus *bus, const struct ringbus_event *event);

#endif
