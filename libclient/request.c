/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/request.c - the public calls of requests and their answers. */
#include "libclient/send_plain.h"

#include <errno.h>
#include <string.h>

#define ERROR_TEXT_MAX 512U

/* ---- public calls ---------------------------------------------------------------------------- */

/* Whom: by all that was said of it, if anything was. 0 or a public error (noted) */
static inline int resolve(struct ringbus *bus,
                          const struct ringbus_addr *to,
                          const struct rbi_outgoing *out,
                          struct rbi_attributes *said,
                          struct rbi_end **end)
{
    const struct rbi_choosing by = {.keyed = (out->flags & RINGBUS_KEY) != 0, .key = out->key};
    int r = RBI_LIKELY(said == NULL) ? rbi_send_resolve(bus, to, by.keyed, by.key, end)
                                     : rbi_attributes_resolve(bus, to, &by, said, end);
    if (RBI_UNLIKELY(bus->probing)) {
        r = rbi_probe_route(bus, to, &by, said, r, end);
    }
    return r;
}

/* @param said  what out->attributes are, to be completed by the choice; NULL: nothing was said */
static inline int send_request(struct ringbus *bus,
                               const struct ringbus_addr *to,
                               struct rbi_outgoing *out,
                               struct rbi_attributes *said,
                               uint64_t timeout_ns,
                               ringbus_reply_fn on_reply,
                               void *context)
{
    struct rbi_end *end = NULL;
    if (bus->closing) {
        return rbi_fail(bus, RINGBUS_E_CLOSED, "the handle is being closed");
    }
    if (out->size > bus->size_max) {
        rbi_count(bus, RBI_COUNTER_too_big, 1);
        return rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, NULL, out->size);
    }
    out->record_flags |= to->instance == RINGBUS_ANY ? RBI_RECORD_ANY : 0U;
    int r = resolve(bus, to, out, said, &end);
    if (r == 0) {
        r = rbi_calls_start(bus, end, timeout_ns, on_reply, context, &out->tag);
    }
    if (r != 0) {
        return r;
    }
    r = rbi_send_new(bus, end, out);
    if (r != 0) {
        rbi_calls_forget(bus, out->tag, r);
        return r;
    }
    rbi_count(bus, RBI_COUNTER_requests, 1);
    return 1;
}

int rbi_request_send(struct ringbus *bus,
                     const struct ringbus_addr *to,
                     struct rbi_outgoing *out,
                     struct rbi_attributes *said,
                     uint64_t timeout_ns,
                     ringbus_reply_fn on_reply,
                     void *context)
{
    return send_request(bus, to, out, said, timeout_ns, on_reply, context);
}

/*
 * A request that says nothing of itself, from the handler of a message that does; or of a handle
 * that knows brokers, which are told the deadline: they keep no request longer than its caller.
 */
static RBI_COLD int request_inheriting(struct ringbus *bus,
                                       const struct ringbus_addr *to,
                                       struct rbi_outgoing *out,
                                       uint64_t timeout_ns,
                                       ringbus_reply_fn on_reply,
                                       void *context)
{
    const struct ringbus_message_options options = {.struct_size = sizeof options};
    const uint64_t now_ns = rbi_now_ns();
    struct rbi_attributes attributes;
    const int r = rbi_attributes_of(bus, &options, now_ns, &attributes);
    if (r != 0) {
        return r;
    }
    if ((attributes.present & RBI_ATTRIBUTE_DEADLINE) != 0) {
        timeout_ns = rbi_min_u64(timeout_ns, attributes.deadline_ns - now_ns);
    }
    attributes.present |= RBI_ATTRIBUTE_DEADLINE;
    attributes.deadline_ns = now_ns + timeout_ns;
    struct rbi_outgoing own = *out;
    own.attributes = &attributes;
    return send_request(bus, to, &own, &attributes, timeout_ns, on_reply, context);
}

static int do_request(struct ringbus *bus,
                      const struct ringbus_addr *to,
                      struct rbi_outgoing *out,
                      struct rbi_attributes *said,
                      uint64_t timeout_ns,
                      ringbus_reply_fn on_reply,
                      void *context)
{
    if ((out->flags & ~(RINGBUS_KEY | RINGBUS_MORE | RINGBUS_IDEMPOTENT)) != 0) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "unknown flags 0x%x", out->flags);
    }
    if (RBI_UNLIKELY(bus->inherited != NULL || bus->brokers) && said == NULL) {
        return request_inheriting(bus, to, out, timeout_ns, on_reply, context);
    }
    return send_request(bus, to, out, said, timeout_ns, on_reply, context);
}

/* Whether how its cluster is asked is more than a call. */
static inline bool is_managed(struct ringbus *bus, uint64_t id)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, id);
    return RBI_UNLIKELY(cluster != NULL && cluster->managed);
}

static RBI_COLD int request_managed(struct ringbus *bus,
                                    const struct ringbus_addr *to,
                                    const struct rbi_outgoing *out,
                                    uint32_t timeout_ms,
                                    ringbus_reply_fn on_reply,
                                    void *context)
{
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = out->flags,
                                                    .key = out->key,
                                                    .timeout_ms = timeout_ms};
    return ringbus_request_with(bus, to, out->parts, 1, &options, on_reply, context);
}

int ringbus_request(struct ringbus *bus,
                    const struct ringbus_addr *to,
                    uint64_t key,
                    const void *data,
                    size_t size,
                    unsigned flags,
                    uint32_t timeout_ms,
                    ringbus_reply_fn on_reply,
                    void *context)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const struct ringbus_part part = {.data = data, .size = size};
    struct rbi_outgoing out = {.kind = RBI_RECORD_REQ,
                               .flags = flags,
                               .key = key,
                               .parts = &part,
                               .part_count = 1,
                               .size = size,
                               .chunk = RBI_CHUNK_NONE};
    if (to == NULL || on_reply == NULL || (data == NULL && size > 0) || timeout_ms == 0 ||
        timeout_ms > RBI_TIMEOUT_MS_MAX) {
        r = rbi_fail(
            bus, RINGBUS_E_ARGUMENT,
            "address, callback and data must be given and the timeout be 1 to %u ms (is %u)",
            RBI_TIMEOUT_MS_MAX, timeout_ms);
    } else if (to->instance == RINGBUS_ANY && is_managed(bus, to->cluster)) {
        r = request_managed(bus, to, &out, timeout_ms, on_reply, context);
    } else {
        r = do_request(bus, to, &out, NULL, timeout_ms * RBI_NS_PER_MS, on_reply, context);
    }
    rbi_leave(bus);
    return r;
}

int rbi_answer(struct ringbus *bus, const struct ringbus_reply_to *to, struct rbi_outgoing *out)
{
    if (to == NULL || to->id == 0) {
        return rbi_fail(bus, RINGBUS_E_NOT_REQUEST, "the message is not a request");
    }
    if (out->size > bus->size_max) {
        rbi_count(bus, RBI_COUNTER_too_big, 1);
        return rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, NULL, out->size);
    }
    struct rbi_end *end = rbi_end_recent(bus, to->peer.cluster, to->peer.instance);
    if (end == NULL) {
        end = rbi_end_find(bus, to->peer.cluster, to->peer.instance);
    }
    if (end == NULL || !end->usable || end->peer.incarnation != to->peer.incarnation) {
        struct rbi_pidf peer;
        memcpy(&peer, &to->peer, sizeof peer);
        rbi_count(bus, RBI_COUNTER_no_peer, 1);
        return rbi_fail_fast(bus, RINGBUS_E_PEER_GONE, &peer, 0);
    }
    out->tag = to->id;
    const int r = rbi_send_one(bus, end, out);
    return r == 0 ? 1 : r;
}

int ringbus_reply(struct ringbus *bus,
                  const struct ringbus_reply_to *to,
                  const void *data,
                  size_t size,
                  unsigned flags)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const struct ringbus_part part = {.data = data, .size = size};
    struct rbi_outgoing out = {.kind = RBI_RECORD_REP,
                               .flags = flags & RINGBUS_MORE,
                               .parts = &part,
                               .part_count = 1,
                               .size = size,
                               .chunk = RBI_CHUNK_NONE};
    if (data == NULL && size > 0) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "%zu bytes at NULL", size);
    } else {
        r = rbi_answer(bus, to, &out);
    }
    rbi_leave(bus);
    return r;
}

int rbi_reply_refused(struct ringbus *bus,
                      const struct ringbus_reply_to *to,
                      int error,
                      uint32_t retry_after_ms)
{
    const struct rbi_attributes attributes = {
        .present = RBI_ATTRIBUTE_ERROR, .error = error, .retry_after_ms = retry_after_ms};
    const char *text = ringbus_strerror(error);
    const struct ringbus_part part = {.data = text, .size = strnlen(text, ERROR_TEXT_MAX)};
    struct rbi_outgoing out = {.kind = RBI_RECORD_ERROR,
                               .parts = &part,
                               .part_count = 1,
                               .size = part.size,
                               .chunk = RBI_CHUNK_NONE,
                               .attributes = &attributes};
    return rbi_answer(bus, to, &out);
}

/* What a receiver can say of a request that it did not handle. */
static bool is_refusal(int error)
{
    switch (error) {
    case RINGBUS_E_SHED:
    case RINGBUS_E_NOT_OWNER:
    case RINGBUS_E_LIMITED:
    case RINGBUS_E_NOT_READY:
    case RINGBUS_E_DRAINING:
    case RINGBUS_E_DENIED:
    case RINGBUS_E_RESTARTING:
    case RINGBUS_E_TIMEOUT:
        return true;
    default:
        return false;
    }
}

int ringbus_reply_refused(struct ringbus *bus,
                          const struct ringbus_reply_to *to,
                          int error,
                          uint32_t retry_after_ms)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    r = is_refusal(error)
            ? rbi_reply_refused(bus, to, error, retry_after_ms)
            : rbi_fail(bus, RINGBUS_E_ARGUMENT, "%s does not say why a request was not handled",
                       ringbus_error_name(error));
    rbi_leave(bus);
    return r;
}

int ringbus_reply_error(struct ringbus *bus, const struct ringbus_reply_to *to, const char *text)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const size_t length = text != NULL ? strnlen(text, ERROR_TEXT_MAX) : 0;
    const struct ringbus_part part = {.data = text, .size = length};
    struct rbi_outgoing out = {.kind = RBI_RECORD_ERROR,
                               .parts = &part,
                               .part_count = 1,
                               .size = length,
                               .chunk = RBI_CHUNK_NONE};
    r = rbi_answer(bus, to, &out);
    rbi_leave(bus);
    return r;
}
