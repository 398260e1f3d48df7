/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/ask_begin.c - ringbus_request_with(): what is asked is checked, copied and sent. */
#include "libclient/internal.h"

#include <string.h>

static void copy_payload(struct rbi_ask *ask, const struct ringbus_part *parts, unsigned count)
{
    unsigned char *at = ask->payload;
    ask->part_count = count;
    for (unsigned i = 0; i < count; i++) {
        ask->part_sizes[i] = parts[i].size;
        if (parts[i].size > 0) {
            memcpy(at, parts[i].data, parts[i].size);
            at += parts[i].size;
        }
    }
}

/* Sets its times. 0; a public error (noted) */
static int set_times(struct ringbus *bus,
                     struct rbi_ask *ask,
                     const struct ringbus_message_options *options,
                     uint64_t now_ns)
{
    const struct rbi_attributes *context =
        (options->flags & RINGBUS_NO_INHERIT) == 0 ? bus->inherited : NULL;
    int r = rbi_attributes_of(bus, options, now_ns, &ask->attributes);
    if (r == 0 && (ask->attributes.present & RBI_ATTRIBUTE_DEADLINE) == 0) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "timeout_ms is 0, and no deadline is inherited");
    }
    ask->started_ns = now_ns;
    ask->deadline_ns = ask->attributes.deadline_ns;
    ask->try_timeout_ns = options->try_timeout_ms * RBI_NS_PER_MS;
    ask->context_deadline_ns = context != NULL ? context->deadline_ns : 0;
    rbi_attributes_show(&ask->attributes, &ask->shown);
    return r;
}

/* Nobody is to be asked. 0; a public error (noted) */
static int
begin_degraded(struct ringbus *bus, struct rbi_ask *ask, const struct rbi_cluster *cluster)
{
    if (rbi_degrade_fails(bus, ask)) {
        return rbi_fail(bus, RINGBUS_E_DENIED, "method %u of %s is switched off",
                        ask->attributes.method, cluster->path);
    }
    rbi_ask_end_later(bus, ask, 0);
    return 0;
}

static int start(struct ringbus *bus, struct rbi_ask *ask, uint64_t now_ns)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, ask->to.cluster);
    ask->mode = RBI_RETRY_FAILFAST;
    if (cluster != NULL && ask->to.instance == RINGBUS_ANY) {
        struct rbi_caller *caller = rbi_caller_of(cluster);
        if (caller == NULL) {
            return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "no memory for %s", cluster->path);
        }
        rbi_retry_begin(ask, cluster);
        if (rbi_degrade_covers(bus, ask, 0)) {
            return begin_degraded(bus, ask, cluster);
        }
        rbi_retry_budget_asked(&caller->budget, now_ns);
    }
    int r = rbi_ask_is_behind(bus, ask) ? RINGBUS_E_NOT_READY : rbi_ask_first(bus, ask, now_ns);
    if (r != 0) {
        r = rbi_ask_wait(bus, ask, r, now_ns);
    }
    if (r == 0) {
        return 0;
    }
    if (ask->mode == RBI_RETRY_FAILSAFE || rbi_degrade_covers(bus, ask, r)) {
        rbi_ask_end_later(bus, ask, r);
        return 0;
    }
    return r;
}

int rbi_ask_begin(struct ringbus *bus,
                  const struct ringbus_addr *to,
                  const struct ringbus_part *parts,
                  unsigned part_count,
                  uint64_t size,
                  const struct ringbus_message_options *options,
                  ringbus_reply_fn on_reply,
                  void *context)
{
    const uint64_t now_ns = rbi_now_ns();
    struct rbi_ask *ask = rbi_ask_obtain(&bus->asks, size);
    if (ask == NULL) {
        return rbi_fail(bus, RINGBUS_E_NO_MEMORY, "no memory for a request of %llu bytes",
                        (unsigned long long)size);
    }
    ask->on_reply = on_reply;
    ask->context = context;
    ask->to = *to;
    ask->peer = *to;
    ask->key = options->key;
    ask->flags = options->flags & ~RINGBUS_NO_INHERIT;
    ask->size = size;
    copy_payload(ask, parts, part_count);
    int r = set_times(bus, ask, options, now_ns);
    r = r == 0 ? start(bus, ask, now_ns) : r;
    if (r != 0) {
        rbi_ask_release(&bus->asks, ask);
        return r;
    }
    return 1;
}

static int
check(struct ringbus *bus, const struct ringbus_addr *to, uint64_t size, ringbus_reply_fn on_reply)
{
    if (to == NULL || on_reply == NULL || to->instance < 0) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "callback and the address of one instance or RINGBUS_ANY must be given");
    }
    if (bus->closing) {
        return rbi_fail(bus, RINGBUS_E_CLOSED, "the handle is being closed");
    }
    if (size > bus->size_max) {
        rbi_count(bus, RBI_COUNTER_too_big, 1);
        return rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, NULL, size);
    }
    return 0;
}

int ringbus_request_with(struct ringbus *bus,
                         const struct ringbus_addr *to,
                         const struct ringbus_part *parts,
                         unsigned part_count,
                         const struct ringbus_message_options *options,
                         ringbus_reply_fn on_reply,
                         void *context)
{
    struct ringbus_message_options taken;
    uint64_t size = 0;
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    r = rbi_send_sum(bus, parts, part_count, &size);
    r = r == 0 ? rbi_options_take(bus, options, false, &taken) : r;
    r = r == 0 ? check(bus, to, size, on_reply) : r;
    if (r == 0) {
        r = rbi_ask_begin(bus, to, parts, part_count, size, &taken, on_reply, context);
    }
    rbi_leave(bus);
    return r;
}
