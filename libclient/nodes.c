/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/nodes.c - questions about the node tree that were asked (node_ask.c): answered by the
 * daemon, told to the application by the next poll.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_NS (10 * RBI_NS_PER_MS) /* there was no memory for an event */

/* ---- the list -------------------------------------------------------------------------------- */

void rbi_node_call_free(struct rbi_node_call *call)
{
    free(call->own);
    free(call->state);
    free(call->names);
    free(call);
}

static void take_out(struct rbi_nodes *nodes, const struct rbi_node_call *call)
{
    struct rbi_node_call **link = &nodes->calls;
    while (*link != NULL && *link != call) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = call->next;
        nodes->call_count--;
    }
}

static struct rbi_node_call *find(const struct rbi_nodes *nodes, uint32_t serial)
{
    struct rbi_node_call *call = serial != 0 ? nodes->calls : NULL;
    while (call != NULL && call->serial != serial) {
        call = call->next;
    }
    return call;
}

static void set_due(struct ringbus *bus, struct rbi_node_call *call, uint64_t due_ns)
{
    call->due_ns = due_ns;
    bus->nodes.due_ns = rbi_min_u64(bus->nodes.due_ns, due_ns);
    rbi_deadline_at_most(bus, due_ns);
}

void rbi_node_call_asked(struct ringbus *bus, struct rbi_node_call *call)
{
    struct rbi_node_call **link = &bus->nodes.calls;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = call;
    bus->nodes.call_count++;
    set_due(bus, call, rbi_now_ns() + RBI_NODE_ANSWER_NS);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* It leaves the list for the queue of events, in order with those; or tries that again soon. */
static void end_later(struct ringbus *bus, struct rbi_node_call *call, int error)
{
    call->serial = 0;
    call->error = error;
    if (call->on_result == NULL) {
        take_out(&bus->nodes, call);
        rbi_node_call_free(call);
    } else if (rbi_events_push_node(bus, call)) {
        take_out(&bus->nodes, call);
    } else {
        set_due(bus, call, rbi_now_ns() + AGAIN_NS);
    }
}

static void
fill_node(const struct rbi_node_call *call, const char **children, struct ringbus_node *node)
{
    const struct rbi_wire_node_state *state = call->state;
    const char *name = call->names;
    for (unsigned i = 0; i < call->name_count; i++) {
        children[i] = name;
        name += strlen(name) + 1;
    }
    *node = (struct ringbus_node){.path = call->path.bytes,
                                  .kind = (enum ringbus_node_kind)state->kind,
                                  .revision = state->revision,
                                  .value = state->value.bytes,
                                  .size = state->value.length,
                                  .ephemeral = (state->flags & RBI_NODE_EPHEMERAL) != 0,
                                  .creator = state->creator.bytes,
                                  .uid = state->uid,
                                  .instances = state->instances,
                                  .children = children,
                                  .child_count = call->name_count,
                                  .more = call->more};
}

void rbi_node_call_end(struct ringbus *bus, struct rbi_node_call *call)
{
    struct ringbus_node node;
    struct ringbus_node_result result = {
        .error = call->error, .text = call->text.bytes, .revision = call->revision};
    const char **children = NULL;
    if (call->state != NULL) {
        children = calloc(call->name_count + 1U, sizeof *children);
        if (children == NULL) {
            call->name_count = 0;
            result.error = RINGBUS_E_NO_MEMORY;
        } else {
            fill_node(call, children, &node);
            result.node = &node;
        }
    }
    const bool outer = bus->in_callback;
    bus->in_callback = true;
    call->on_result(bus, &result, call->context);
    bus->in_callback = outer;
    free(children);
    rbi_node_call_free(call);
}

static int lost_error(const struct rbi_node_call *call)
{
    return call->what == RBI_NODE_GET ? RINGBUS_E_NO_DAEMON : RINGBUS_E_UNKNOWN_OUTCOME;
}

void rbi_nodes_lost(struct ringbus *bus)
{
    struct rbi_node_call *next = NULL;
    for (struct rbi_node_call *call = bus->nodes.calls; call != NULL; call = next) {
        next = call->next;
        if (call->serial != 0) {
            rbi_text_set(&call->text, "ringbusd was lost before it had answered");
            end_later(bus, call, lost_error(call));
        }
    }
    bus->nodes.scanning = false;
}

/* Those that have ended, and wait for the next poll. */
static void end_queued(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->events.count; i++) { /* callbacks may add some */
        struct rbi_events *events = &bus->events;
        struct rbi_queued_event *event = &events->items[(events->first + i) & (events->room - 1)];
        struct rbi_node_call *call = event->call;
        event->call = NULL;
        if (call != NULL) {
            rbi_node_call_end(bus, call);
        }
    }
}

void rbi_nodes_end_all(struct ringbus *bus, int error)
{
    end_queued(bus);
    while (bus->nodes.calls != NULL) {
        struct rbi_node_call *call = bus->nodes.calls;
        take_out(&bus->nodes, call);
        if (call->serial != 0) {
            call->error = error;
        }
        if (call->on_result != NULL) {
            rbi_node_call_end(bus, call);
        } else {
            rbi_node_call_free(call);
        }
    }
}

uint64_t rbi_nodes_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_node_call *next = NULL;
    if (bus->nodes.due_ns > now_ns) {
        return bus->nodes.due_ns;
    }
    bus->nodes.due_ns = RBI_NEVER;
    for (struct rbi_node_call *call = bus->nodes.calls; call != NULL; call = next) {
        next = call->next;
        if (call->due_ns > now_ns) {
            bus->nodes.due_ns = rbi_min_u64(bus->nodes.due_ns, call->due_ns);
        } else if (call->serial == 0) {
            end_later(bus, call, call->error);
        } else {
            rbi_text_set(&call->text, "ringbusd did not answer within 10 s");
            end_later(bus, call,
                      call->what == RBI_NODE_GET ? RINGBUS_E_TIMEOUT : RINGBUS_E_UNKNOWN_OUTCOME);
        }
    }
    if (bus->nodes.missed) {
        bus->nodes.missed = false;
        rbi_nodes_scan(bus);
    }
    return bus->nodes.due_ns;
}

void rbi_nodes_missed(struct ringbus *bus)
{
    bus->nodes.missed = true;
    bus->nodes.due_ns = rbi_min_u64(bus->nodes.due_ns, rbi_now_ns() + AGAIN_NS);
    rbi_deadline_at_most(bus, bus->nodes.due_ns);
}

void rbi_nodes_close(struct ringbus *bus)
{
    struct rbi_nodes *nodes = &bus->nodes;
    while (nodes->calls != NULL) {
        struct rbi_node_call *call = nodes->calls;
        nodes->calls = call->next;
        rbi_node_call_free(call);
    }
    while (nodes->own != NULL) {
        struct rbi_node_own *own = nodes->own;
        nodes->own = own->next;
        free(own);
    }
    while (nodes->sight_count > 0) {
        free(nodes->sights[--nodes->sight_count]);
    }
    free(nodes->sights);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* An ephemeral node of ours: made, or kept under a new daemon. */
static void made(struct ringbus *bus, struct rbi_node_call *call)
{
    if (call->own != NULL) {
        call->own->next = bus->nodes.own;
        bus->nodes.own = call->own;
        call->own = NULL;
    }
}

bool rbi_nodes_answer(struct ringbus *bus,
                      uint32_t reply_to,
                      uint64_t revision,
                      const struct rbi_wire_error *error)
{
    struct rbi_node_call *call = find(&bus->nodes, reply_to);
    if (call == NULL) {
        return rbi_nodes_scanned(bus, reply_to, NULL);
    }
    if (error != NULL) {
        call->text = error->text;
        if (call->again && rbi_node_own_drop(bus, &call->path)) {
            rbi_nodes_emit_removed(bus, call->path.bytes, 0, RBI_REASON_REPLACED, error->code);
        }
        end_later(bus, call, error->code < 0 ? error->code : RINGBUS_E_INTERNAL);
        return true;
    }
    call->revision = revision;
    if (call->what == RBI_NODE_CREATE) {
        made(bus, call);
    } else if (call->what == RBI_NODE_REMOVE) {
        (void)rbi_node_own_drop(bus, &call->path);
    }
    end_later(bus, call, 0);
    return true;
}

/* Takes the names of a page. Untrusted. 0; -ENOMEM; -EPROTO */
static int take_names(struct rbi_node_call *call, const struct rbi_data *names)
{
    if (names->length == 0) {
        return 0;
    }
    char *all = realloc(call->names, call->names_bytes + names->length);
    if (all == NULL) {
        return -ENOMEM;
    }
    call->names = all;
    for (size_t i = 0; i < names->length; i++) {
        const bool end = names->bytes[i] == '\n';
        all[call->names_bytes + i] = (char)(end ? 0U : names->bytes[i]);
        call->name_count += end ? 1U : 0U;
    }
    call->names_bytes += names->length;
    return all[call->names_bytes - 1] == '\0' ? 0 : -EPROTO;
}

static const char *last_name(const struct rbi_node_call *call)
{
    size_t at = call->names_bytes - 1; /* the end of the last one */
    while (at > 0 && call->names[at - 1] != '\0') {
        at--;
    }
    return call->names + at;
}

void rbi_nodes_state(struct ringbus *bus, uint32_t reply_to, const struct rbi_wire_node_state *body)
{
    struct rbi_node_call *call = find(&bus->nodes, reply_to);
    if (rbi_nodes_scanned(bus, reply_to, body) || call == NULL) {
        return;
    }
    if (call->state == NULL) {
        call->state = malloc(sizeof *call->state);
        if (call->state == NULL) {
            end_later(bus, call, RINGBUS_E_NO_MEMORY);
            return;
        }
        *call->state = *body;
    }
    const int r = take_names(call, &body->names);
    if (r < 0) {
        end_later(bus, call, r == -ENOMEM ? RINGBUS_E_NO_MEMORY : RINGBUS_E_INTERNAL);
        return;
    }
    call->more = body->more != 0;
    if (call->more && body->names.length != 0 && call->name_count < RBI_NODE_CHILDREN_MAX) {
        struct rbi_wire_node next = {.what = RBI_NODE_GET};
        rbi_text_set(&next.after, last_name(call));
        call->serial = 0; /* sending may lose the daemon, which ends what waits for it */
        const uint32_t serial = rbi_node_call_send(bus, call, &next);
        if (serial == 0) {
            end_later(bus, call, RINGBUS_E_NO_DAEMON);
        } else {
            call->serial = serial;
        }
        return;
    }
    const bool empty = call->state->kind == RBI_NODE_CLUSTER && call->state->instances == 0;
    if (empty) {
        rbi_text_set(&call->text, "the cluster is known, and nobody is there now");
    }
    end_later(bus, call, empty ? RINGBUS_E_NO_INSTANCE : 0);
}
