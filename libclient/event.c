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

struct rbi_queued_event *rbi_emit_simple(struct ringbus *bus,
                                         enum ringbus_event_type type,
                                         const struct rbi_pidf *peer,
                                         const char *path,
                                         enum rbi_reason reason,
                                         int error)
{
    struct rbi_events *events = &bus->events;
    if (bus->on_event == NULL) {
        return NULL;
    }
    rbi_wait_nudge(bus);
    if (events->count == events->room && grow(events) != 0) {
        events->lost = true;
        return NULL;
    }
    struct rbi_queued_event *event =
        &events->items[(events->first + events->count) & (events->room - 1)];
    events->count++;
    memset(&event->peer, 0, sizeof event->peer);
    event->type = type;
    event->reason = (enum ringbus_reason)reason;
    event->error = error;
    event->silent_ms = 0;
    event->paused = false;
    event->slots = NULL;
    event->slot_count = 0;
    event->epoch = 0;
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
        const struct ringbus_event event = {.type = queued.type,
                                            .reason = queued.reason,
                                            .error = queued.error,
                                            .addr = rbi_addr(&queued.peer),
                                            .path = queued.path,
                                            .silent_ms = queued.silent_ms,
                                            .paused = queued.paused,
                                            .slots = queued.slots,
                                            .slot_count = queued.slot_count,
                                            .epoch = queued.epoch};
        call_back(bus, &event);
        free(queued.slots);
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
        free(events->items[(events->first + i) & (events->room - 1)].slots);
    }
    free(events->items);
}
