/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/event.c - events for the application. They are queued where they arise, deep
 * inside our own tables, and delivered by ringbus_poll() alone: a callback may call
 * anything, so it must not run while a table is being walked.
 */
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 65536U

static int grow(struct rbi_events *events)
{
    const unsigned room = events->room == 0 ? 16 : events->room * 2;
    if (room > EVENTS_MAX) {
        return -1;
    }
    struct rbi_queued_event *items = malloc(room * sizeof *items);
    if (items == NULL) {
        return -1;
    }
    for (unsigned i = 0; i < events->count; i++) {
        items[i] = events->items[(events->first + i) & (events->room - 1)];
    }
    free(events->items);
    events->items = items;
    events->first = 0;
    events->room = room;
    return 0;
}

/* Adds an empty one. @return NULL: no memory */
static struct rbi_queued_event *push(struct ringbus *bus)
{
    struct rbi_events *events = &bus->events;
    rbi_wait_nudge(bus);
    if (events->count == events->room && grow(events) != 0) {
        return NULL;
    }
    struct rbi_queued_event *event =
        &events->items[(events->first + events->count) & (events->room - 1)];
    events->count++;
    memset(event, 0, offsetof(struct rbi_queued_event, path));
    return event;
}

bool rbi_events_push_node(struct ringbus *bus, struct rbi_node_call *call)
{
    struct rbi_queued_event *event = push(bus);
    if (event != NULL) {
        event->path[0] = '\0';
        event->call = call;
    }
    return event != NULL;
}

struct rbi_queued_event *rbi_emit_simple(struct ringbus *bus,
                                         enum ringbus_event_type type,
                                         const struct rbi_pidf *peer,
                                         const char *path,
                                         enum rbi_reason reason,
                                         int error)
{
    struct rbi_queued_event *event = bus->on_event != NULL ? push(bus) : NULL;
    if (event == NULL) {
        bus->events.lost = bus->events.lost || bus->on_event != NULL;
        return NULL;
    }
    event->type = type;
    event->reason = (enum ringbus_reason)reason;
    event->error = error;
    if (peer != NULL) {
        event->peer = *peer;
    }
    (void)snprintf(event->path, sizeof event->path, "%s", path != NULL ? path : "");
    return event;
}

static void call_back(struct ringbus *bus, const struct ringbus_event *event)
{
    const bool outer = bus->in_callback;
    bus->in_callback = true;
    bus->on_event(bus, event, bus->user);
    bus->in_callback = outer;
}

void rbi_events_flush(struct ringbus *bus)
{
    struct rbi_events *events = &bus->events;
    while (events->count > 0) {
        const struct rbi_queued_event queued = events->items[events->first];
        events->first = (events->first + 1) & (events->room - 1);
        events->count--;
        if (queued.call != NULL) {
            rbi_node_call_end(bus, queued.call);
            continue;
        }
        const struct rbi_node_news *node = queued.node;
        const struct ringbus_event event = {.type = queued.type,
                                            .reason = queued.reason,
                                            .error = queued.error,
                                            .addr = rbi_addr(&queued.peer),
                                            .path = queued.path,
                                            .silent_ms = queued.silent_ms,
                                            .paused = queued.paused,
                                            .slots = queued.slots,
                                            .slot_count = queued.slot_count,
                                            .epoch = queued.epoch,
                                            .count = queued.count,
                                            .method = queued.method,
                                            .revision = node != NULL ? node->revision : 0,
                                            .value = node != NULL ? node->value : NULL,
                                            .value_size = node != NULL ? node->size : 0,
                                            .alarm =
                                                queued.alarm != NULL ? &queued.alarm->alarm : NULL,
                                            .gap = queued.gap.link != 0 ? &queued.gap : NULL};
        call_back(bus, &event);
        free(queued.slots);
        free(queued.node);
        free(queued.alarm);
    }
    if (events->lost) {
        events->lost = false;
        const struct ringbus_event event = {
            .type = RINGBUS_EVENT_RESYNC, .error = RINGBUS_E_NO_MEMORY, .path = ""};
        call_back(bus, &event);
    }
}

void rbi_emit(struct ringbus *bus, const struct ringbus_event *event)
{
    if (bus->on_event != NULL) {
        rbi_events_flush(bus);
        call_back(bus, event);
    }
}

void rbi_events_deinit(struct rbi_events *events)
{
    for (unsigned i = 0; i < events->count; i++) {
        const struct rbi_queued_event *event =
            &events->items[(events->first + i) & (events->room - 1)];
        free(event->slots);
        free(event->node);
        free(event->alarm);
    }
    free(events->items);
}
