/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/node_watch.c - what the application knows of the nodes below its prefixes. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was told --------------------------------------------------------------------------- */

static unsigned sight_at(const struct rbi_nodes *nodes, const char *path)
{
    unsigned low = 0;
    unsigned high = nodes->sight_count;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (strcmp(nodes->sights[middle]->path, path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct rbi_node_sight *sight_find(const struct rbi_nodes *nodes, const char *path)
{
    const unsigned at = sight_at(nodes, path);
    return at < nodes->sight_count && strcmp(nodes->sights[at]->path, path) == 0 ? nodes->sights[at]
                                                                                 : NULL;
}

/* What is told of a node that is there. */
static void sight_take(struct ringbus *bus,
                       struct rbi_node_sight *sight,
                       const struct rbi_wire_node_event *event)
{
    sight->revision = event->revision;
    sight->daemon = bus->control.hello_incarnation;
    sight->ephemeral = (event->flags & RBI_NODE_EPHEMERAL) != 0;
    sight->seen = true;
}

/*
 * A daemon that comes back with an empty or torn file says nothing of what it does not know: what
 * an earlier one has told of persistent nodes stays, until they are created again, or a daemon
 * comes that knows the whole tree. Owners of ephemeral ones say theirs again.
 */
static bool is_doubtful(const struct ringbus *bus, const struct rbi_node_sight *sight)
{
    return bus->control.nodes_lost && sight->daemon != bus->control.hello_incarnation &&
           !sight->ephemeral;
}

static int sight_add(struct ringbus *bus, const struct rbi_wire_node_event *event)
{
    struct rbi_nodes *nodes = &bus->nodes;
    if (nodes->sight_count == nodes->sight_room) {
        const unsigned room = nodes->sight_room == 0 ? 16 : nodes->sight_room * 2;
        struct rbi_node_sight **sights = realloc(nodes->sights, room * sizeof *sights);
        if (sights == NULL) {
            return -ENOMEM;
        }
        nodes->sights = sights;
        nodes->sight_room = room;
    }
    struct rbi_node_sight *sight = calloc(1, sizeof *sight + event->path.length + 1U);
    if (sight == NULL) {
        return -ENOMEM;
    }
    sight_take(bus, sight, event);
    memcpy(sight->path, event->path.bytes, event->path.length);
    const unsigned at = sight_at(nodes, sight->path);
    memmove(&nodes->sights[at + 1], &nodes->sights[at],
            (nodes->sight_count - at) * sizeof(struct rbi_node_sight *));
    nodes->sights[at] = sight;
    nodes->sight_count++;
    return 0;
}

static void sight_remove(struct rbi_nodes *nodes, unsigned at)
{
    free(nodes->sights[at]);
    nodes->sight_count--;
    memmove(&nodes->sights[at], &nodes->sights[at + 1],
            (nodes->sight_count - at) * sizeof(struct rbi_node_sight *));
}

/* ---- telling --------------------------------------------------------------------------------- */

static void emit(struct ringbus *bus,
                 enum ringbus_event_type type,
                 const struct rbi_wire_node_event *from,
                 int error)
{
    struct rbi_queued_event *event =
        rbi_emit_simple(bus, type, NULL, from->path.bytes, (enum rbi_reason)from->reason, error);
    if (event == NULL) {
        return;
    }
    event->node = malloc(sizeof *event->node + from->value.length);
    if (event->node == NULL) {
        /* Told all the same, as an event that was lost: what it is now is to be asked for. */
        event->type = RINGBUS_EVENT_RESYNC;
        event->error = RINGBUS_E_NO_MEMORY;
        return;
    }
    event->node->revision = from->revision;
    event->node->size = from->value.length;
    memcpy(event->node->value, from->value.bytes, from->value.length);
}

void rbi_nodes_emit_removed(
    struct ringbus *bus, const char *path, uint64_t revision, enum rbi_reason reason, int error)
{
    struct rbi_wire_node_event event = {.revision = revision, .reason = (uint32_t)reason};
    const unsigned at = sight_at(&bus->nodes, path);
    rbi_text_set(&event.path, path);
    if (sight_find(&bus->nodes, event.path.bytes) != NULL) {
        sight_remove(&bus->nodes, at);
    }
    emit(bus, RINGBUS_EVENT_NODE_REMOVED, &event, error);
}

static void removed(struct ringbus *bus, const struct rbi_wire_node_event *event, bool ours)
{
    struct rbi_nodes *nodes = &bus->nodes;
    const bool known = sight_find(nodes, event->path.bytes) != NULL;
    if (known) {
        sight_remove(nodes, sight_at(nodes, event->path.bytes));
    }
    if (known || ours) {
        emit(bus, RINGBUS_EVENT_NODE_REMOVED, event, 0);
    }
}

static void present(struct ringbus *bus, const struct rbi_wire_node_event *event)
{
    struct rbi_nodes *nodes = &bus->nodes;
    struct rbi_node_sight *sight = sight_find(nodes, event->path.bytes);
    if (sight == NULL) {
        if (sight_add(bus, event) < 0) {
            (void)rbi_fail_errno(bus, -ENOMEM, "a node below a watched prefix");
            rbi_nodes_missed(bus); /* told then: or its end never would be */
            return;
        }
        emit(bus, RINGBUS_EVENT_NODE_CREATED, event, 0);
        return;
    }
    /* Revisions may have begun anew with the file. */
    const bool changed = sight->revision != event->revision || is_doubtful(bus, sight);
    sight_take(bus, sight, event);
    if (changed) {
        emit(bus, RINGBUS_EVENT_NODE_CHANGED, event, 0);
    }
}

void rbi_nodes_event(struct ringbus *bus, const struct rbi_wire_node_event *event)
{
    struct rbi_node_own *own = rbi_node_own_find(bus, &event->path);
    if (event->change == RBI_CHANGE_REMOVED) {
        removed(bus, event, own != NULL && rbi_node_own_drop(bus, &event->path));
        return;
    }
    if (own != NULL) {
        own->value = event->value;
    }
    if (rbi_watched_path(bus, event->path.bytes, event->path.length)) {
        present(bus, event);
    }
}

/* ---- scanning -------------------------------------------------------------------------------- */

static void drop_unseen(struct ringbus *bus)
{
    struct rbi_nodes *nodes = &bus->nodes;
    for (unsigned i = nodes->sight_count; i-- > 0;) {
        struct rbi_wire_node_event event = {.change = RBI_CHANGE_REMOVED};
        if (!nodes->sights[i]->seen && !is_doubtful(bus, nodes->sights[i])) {
            rbi_text_set(&event.path, nodes->sights[i]->path);
            sight_remove(nodes, i);
            emit(bus, RINGBUS_EVENT_NODE_REMOVED, &event, 0);
        }
    }
}

/* Asks for the next page, or ends the scan. */
static void scan_on(struct ringbus *bus, const struct rbi_text *after)
{
    struct rbi_nodes *nodes = &bus->nodes;
    struct rbi_wire_node body = {.what = RBI_NODE_SCAN};
    if (nodes->scan_prefix >= bus->watches.count) {
        nodes->scanning = false;
        if (nodes->scan_drops && !bus->control.settling) {
            drop_unseen(bus);
        }
        return;
    }
    rbi_text_set(&body.path, bus->watches.prefixes[nodes->scan_prefix]);
    if (after != NULL) {
        body.after = *after;
    }
    nodes->scanning = true;
    nodes->scan_serial = 0; /* sending may lose the daemon, and that ends the scan */
    const uint32_t serial = rbi_control_send(bus, RBI_WIRE_NODE, &body, NULL, 0);
    nodes->scan_serial = serial;
    nodes->scanning = serial != 0; /* the next daemon is asked anew */
}

void rbi_nodes_scan(struct ringbus *bus)
{
    struct rbi_nodes *nodes = &bus->nodes;
    for (unsigned i = 0; i < nodes->sight_count; i++) {
        nodes->sights[i]->seen = false;
    }
    nodes->scan_drops = true;
    nodes->scan_prefix = 0;
    scan_on(bus, NULL);
}

void rbi_nodes_watched(struct ringbus *bus)
{
    struct rbi_nodes *nodes = &bus->nodes;
    if (!nodes->scanning) { /* else it comes to it as well */
        nodes->scan_drops = false;
        nodes->scan_prefix = bus->watches.count - 1;
        scan_on(bus, NULL);
    }
}

void rbi_nodes_unwatched(struct ringbus *bus)
{
    struct rbi_nodes *nodes = &bus->nodes;
    for (unsigned i = nodes->sight_count; i-- > 0;) {
        const char *path = nodes->sights[i]->path;
        if (!rbi_watched_path(bus, path, strlen(path))) {
            sight_remove(nodes, i);
        }
    }
    if (nodes->scanning) {
        rbi_nodes_scan(bus); /* the prefixes have moved up */
    }
}

bool rbi_nodes_scanned(struct ringbus *bus,
                       uint32_t reply_to,
                       const struct rbi_wire_node_state *body)
{
    struct rbi_nodes *nodes = &bus->nodes;
    if (!nodes->scanning || reply_to == 0 || reply_to != nodes->scan_serial) {
        return false;
    }
    nodes->scan_drops = nodes->scan_drops && body != NULL; /* refused: nothing is known of it */
    const bool more = body != NULL && body->more != 0 && body->after.length != 0;
    nodes->scan_prefix += more ? 0U : 1U;
    scan_on(bus, more ? &body->after : NULL);
    return true;
}
