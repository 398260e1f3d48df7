/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/node_ask.c - the public calls of the node tree: each sends its question and returns. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rbi_nodes_check_path(struct ringbus *bus, const char *path, struct rbi_node_path *parsed)
{
    if (path == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "path is NULL");
    }
    if (rbi_node_path_parse(path, strnlen(path, RBI_PATH_MAX + 1), parsed) != 0) {
        return rbi_fail(bus, RINGBUS_E_PATH, "\"%.*s\" at byte %u: %s", (int)RBI_PATH_MAX, path,
                        parsed->error_offset, rbi_path_error_text(parsed->error));
    }
    return 0;
}

uint32_t rbi_node_call_send(struct ringbus *bus,
                            const struct rbi_node_call *call,
                            const struct rbi_wire_node *more)
{
    struct rbi_wire_node body = *more;
    body.what = (uint32_t)call->what;
    body.path = call->path;
    return rbi_control_send(bus, RBI_WIRE_NODE, &body, NULL, 0);
}

static int check(struct ringbus *bus, const char *path, size_t size)
{
    struct rbi_node_path parsed;
    const int r = rbi_nodes_check_path(bus, path, &parsed);
    if (r != 0) {
        return r;
    }
    if (size > RINGBUS_NODE_VALUE_MAX) {
        return rbi_fail(bus, RINGBUS_E_TOO_BIG, "a value of %zu bytes, the limit is %d", size,
                        RINGBUS_NODE_VALUE_MAX);
    }
    if (bus->nodes.call_count >= RBI_NODE_CALLS_MAX) {
        return rbi_fail(bus, RINGBUS_E_QUOTA,
                        "%u questions about nodes wait for their answers: poll first",
                        RBI_NODE_CALLS_MAX);
    }
    if (bus->control.phase != RBI_CONTROL_ON) {
        return rbi_fail(bus, RINGBUS_E_NO_DAEMON, "ringbusd at %s is away: nodes are its own",
                        bus->socket_path);
    }
    if (bus->control.protocol < rbi_wire_type_protocol(RBI_WIRE_NODE)) {
        return rbi_fail(bus, RINGBUS_E_VERSION, "this ringbusd is of an earlier version");
    }
    return 0;
}

static struct rbi_node_call *
call_new(struct ringbus *bus, enum rbi_node_what what, const char *path, bool owns)
{
    struct rbi_node_call *call = calloc(1, sizeof *call);
    struct rbi_node_own *own = owns ? calloc(1, sizeof *own) : NULL;
    if (call == NULL || (owns && own == NULL)) {
        free(call);
        free(own);
        (void)rbi_fail_errno(bus, -ENOMEM, "a question about a node");
        return NULL;
    }
    call->what = what;
    call->own = own;
    rbi_text_set(&call->path, path);
    return call;
}

/* Sends it, with the rest of its message. 0; RINGBUS_E_NO_DAEMON (noted) */
static int call_start(struct ringbus *bus, struct rbi_node_call *call, struct rbi_wire_node *body)
{
    if (call->own != NULL) {
        call->own->path = call->path;
        call->own->value = body->value;
    }
    const uint32_t serial = rbi_node_call_send(bus, call, body);
    if (serial == 0) {
        rbi_node_call_free(call);
        return RINGBUS_E_NO_DAEMON;
    }
    call->serial = serial;
    rbi_node_call_asked(bus, call);
    return 0;
}

static void set_value(struct rbi_wire_node *body, const void *value, size_t size)
{
    body->value.length = (uint16_t)size;
    if (value != NULL && size != 0) {
        memcpy(body->value.bytes, value, size);
    }
}

void rbi_nodes_ask_again(struct ringbus *bus, const struct rbi_node_own *own)
{
    struct rbi_wire_node body = {.flags = RBI_NODE_EPHEMERAL | RBI_NODE_AGAIN, .value = own->value};
    struct rbi_node_call *call = call_new(bus, RBI_NODE_CREATE, own->path.bytes, false);
    if (call != NULL) {
        call->again = true;
        (void)call_start(bus, call, &body);
    }
}

/* One question of the application. 0; a public error (noted) */
static int ask(struct ringbus *bus,
               enum rbi_node_what what,
               const char *path,
               struct rbi_wire_node *body,
               ringbus_node_fn on_result,
               void *context)
{
    struct rbi_node_call *call =
        call_new(bus, what, path, what == RBI_NODE_CREATE && body->flags != 0);
    if (call == NULL) {
        return RINGBUS_E_NO_MEMORY;
    }
    call->on_result = on_result;
    call->context = context;
    return call_start(bus, call, body);
}

int ringbus_node_create(struct ringbus *bus,
                        const char *path,
                        const void *value,
                        size_t size,
                        unsigned flags,
                        ringbus_node_fn on_result,
                        void *context)
{
    struct rbi_wire_node body = {.flags = flags & RINGBUS_NODE_EPHEMERAL ? RBI_NODE_EPHEMERAL : 0U};
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (on_result == NULL || (value == NULL && size != 0) || flags > RINGBUS_NODE_EPHEMERAL) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "no callback, no value, or unknown flags %#x", flags);
    }
    r = r != 0 ? r : check(bus, path, size);
    if (r == 0) {
        set_value(&body, value, size);
        r = ask(bus, RBI_NODE_CREATE, path, &body, on_result, context);
    }
    rbi_leave(bus);
    return r;
}

int ringbus_node_set(struct ringbus *bus,
                     const char *path,
                     const void *value,
                     size_t size,
                     uint64_t revision,
                     ringbus_node_fn on_result,
                     void *context)
{
    struct rbi_wire_node body = {.revision = revision};
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (on_result == NULL || (value == NULL && size != 0)) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "no callback, or no value");
    }
    r = r != 0 ? r : check(bus, path, size);
    if (r == 0) {
        set_value(&body, value, size);
        r = ask(bus, RBI_NODE_SET, path, &body, on_result, context);
    }
    rbi_leave(bus);
    return r;
}

static int simple(struct ringbus *bus,
                  enum rbi_node_what what,
                  const char *path,
                  struct rbi_wire_node *body,
                  ringbus_node_fn on_result,
                  void *context)
{
    int r = on_result == NULL ? rbi_fail(bus, RINGBUS_E_ARGUMENT, "no callback") : 0;
    r = r != 0 ? r : check(bus, path, 0);
    return r != 0 ? r : ask(bus, what, path, body, on_result, context);
}

int ringbus_node_remove(struct ringbus *bus,
                        const char *path,
                        uint64_t revision,
                        ringbus_node_fn on_result,
                        void *context)
{
    struct rbi_wire_node body = {.revision = revision};
    int r = rbi_enter(bus);
    if (r == 0) {
        r = simple(bus, RBI_NODE_REMOVE, path, &body, on_result, context);
        rbi_leave(bus);
    }
    return r;
}

int ringbus_node_get(struct ringbus *bus,
                     const char *path,
                     const char *after,
                     ringbus_node_fn on_result,
                     void *context)
{
    struct rbi_wire_node body = {.what = RBI_NODE_GET};
    int r = rbi_enter(bus);
    if (r == 0) {
        rbi_text_set(&body.after, after);
        r = simple(bus, RBI_NODE_GET, path, &body, on_result, context);
        rbi_leave(bus);
    }
    return r;
}
