/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/forward.c - for endpoints that stand for others (ringbus/forward.h): where a message
 * began, sending it on, leaving it for later, and ending a request as another one has ended.
 */
#include "bus/origin.h"
#include "libclient/internal.h"

#include <errno.h>
#include <string.h>

_Static_assert(RBI_HOPS_MAX == RINGBUS_HOPS_MAX, "the same limit");

#define DEFER_MIN_US 100U
#define DEFER_MAX_US 1000000U

/* The view whose callback runs, if the message is its own; else NULL (noted). */
static struct rbi_view *view_of(struct ringbus *bus, const struct ringbus_message *message)
{
    if (bus->view == NULL || message == NULL || message != &bus->view->message) {
        (void)rbi_fail(bus, RINGBUS_E_ARGUMENT, "not the message of the running callback");
        return NULL;
    }
    return bus->view;
}

/* ---- where it began ------------------------------------------------------------------------- */

/* 1; 0 it has none; RINGBUS_E_BAD_PEER (noted) */
static int origin_of(struct ringbus *bus, const struct rbi_view *view, struct rbi_origin *out)
{
    const struct rbi_attributes *attributes = &view->attributes;
    if (view->message.attributes == NULL || (attributes->present & RBI_ATTRIBUTE_ORIGIN) == 0) {
        return 0;
    }
    if (rbi_origin_decode(attributes->origin, attributes->origin_words, out) != 0) {
        return rbi_fail(bus, RINGBUS_E_BAD_PEER, "%s names an origin that cannot be read",
                        view->message.from_path);
    }
    return 1;
}

static int show_origin(struct ringbus *bus, const struct rbi_view *view, struct ringbus_origin *out)
{
    struct rbi_origin origin;
    const int r = origin_of(bus, view, &origin);
    if (r != 1) {
        return r;
    }
    memset(out, 0, sizeof *out);
    out->addr = rbi_addr(&origin.pidf);
    memcpy(out->path, origin.path, sizeof out->path);
    out->hops = origin.hops;
    memcpy(out->via, origin.via, sizeof out->via);
    return 1;
}

int ringbus_origin(struct ringbus *bus,
                   const struct ringbus_message *message,
                   struct ringbus_origin *out)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const struct rbi_view *view = view_of(bus, message);
    r = view != NULL && out != NULL
            ? show_origin(bus, view, out)
            : rbi_fail(bus, RINGBUS_E_ARGUMENT, "no message of the running callback, or no room");
    rbi_leave(bus);
    return r;
}

/* ---- sending it on -------------------------------------------------------------------------- */

/* The way so far and this broker on it. 0; RINGBUS_E_BAD_PEER, _NO_ROUTE (noted) */
static int extend(struct ringbus *bus,
                  const struct rbi_view *view,
                  const struct ringbus_forwarding *how,
                  struct rbi_origin *origin)
{
    const struct ringbus_message *message = &view->message;
    memset(origin, 0, sizeof *origin);
    int r = origin_of(bus, view, origin);
    if (r < 0) {
        return r;
    }
    if (r == 0 || !how->keep_origin) {
        /* The way is kept all the same: it is what ends loops. */
        memcpy(&origin->pidf, &message->from, sizeof origin->pidf);
        memset(origin->path, 0, sizeof origin->path);
        memcpy(origin->path, message->from_path, strnlen(message->from_path, RBI_PATH_MAX));
    }
    r = rbi_origin_pass(origin, how->via);
    if (r != 0) {
        return rbi_fail(bus, RINGBUS_E_NO_ROUTE, "a message of %s %s", origin->path,
                        r == 1 ? "has come to a broker that has had it: brokers form a loop"
                               : "has passed as many brokers as it may");
    }
    return 0;
}

/* What was said of it, as far as that is for the next receiver as well. */
static void carry(const struct rbi_view *view,
                  const struct ringbus_forwarding *how,
                  uint64_t now_ns,
                  struct rbi_attributes *out)
{
    memset(out, 0, sizeof *out);
    if (view->message.attributes != NULL) {
        const uint32_t hop =
            RBI_ATTRIBUTE_EPOCH | RBI_ATTRIBUTE_ERROR | RBI_ATTRIBUTE_DEST | RBI_ATTRIBUTE_FIRST;
        *out = view->attributes;
        out->present &= ~hop;
        out->diverted = out->unsure = false;
        out->epoch = 0;
    }
    /* How long it waits where it comes next, not since its beginning: who sheds judges himself. */
    out->present |= RBI_ATTRIBUTE_SENT | RBI_ATTRIBUTE_ORIGIN;
    out->sent_ns = now_ns;
    if (how->dest.cluster != 0) {
        out->present |= RBI_ATTRIBUTE_DEST;
        memcpy(&out->dest, &how->dest, sizeof out->dest);
    }
}

static int check(struct ringbus *bus,
                 const struct ringbus_message *message,
                 const struct ringbus_forwarding *how)
{
    const bool request = message->kind == RINGBUS_KIND_REQUEST;
    if (how == NULL || how->struct_size < sizeof *how || how->via == 0 ||
        message->kind == RINGBUS_KIND_REPLY) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "an answer, via is 0, or struct_size of the forwarding is not set");
    }
    if (request && (how->on_reply == NULL || how->to.instance < 0 || how->timeout_ms == 0 ||
                    how->timeout_ms > RBI_TIMEOUT_MS_MAX)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "a request goes to one, with a callback and a timeout of 1 to %u ms",
                        RBI_TIMEOUT_MS_MAX);
    }
    return 0;
}

static int send_on(struct ringbus *out,
                   const struct rbi_view *view,
                   const struct ringbus_forwarding *how,
                   struct rbi_origin *origin)
{
    const struct ringbus_message *message = &view->message;
    unsigned char words[RBI_ORIGIN_WORDS_MAX * sizeof(uint64_t)];
    struct rbi_attributes attributes;
    const uint64_t now_ns = rbi_now_ns();
    carry(view, how, now_ns, &attributes);
    rbi_origin_encode(origin, words);
    attributes.origin = words;
    attributes.origin_words = rbi_origin_words(origin);
    if ((attributes.present & RBI_ATTRIBUTE_DEADLINE) != 0 && attributes.deadline_ns <= now_ns) {
        return rbi_fail(out, RINGBUS_E_TIMEOUT, "the deadline of the message is over");
    }
    struct rbi_outgoing sent = {
        .kind = message->kind == RINGBUS_KIND_REQUEST ? RBI_RECORD_REQ : RBI_RECORD_ONEWAY,
        .flags = ((message->flags & RINGBUS_MESSAGE_KEY) != 0 ? RINGBUS_KEY : 0U) |
                 ((message->flags & RINGBUS_MESSAGE_IDEMPOTENT) != 0 ? RINGBUS_IDEMPOTENT : 0U),
        .key = message->key,
        .parts = message->parts,
        .part_count = message->part_count,
        .size = message->size,
        .chunk = RBI_CHUNK_NONE,
        .record_flags =
            (message->flags & RINGBUS_MESSAGE_REDELIVERED) != 0 ? RBI_RECORD_AGAIN : 0U};
    if (sent.kind == RBI_RECORD_ONEWAY) {
        sent.report = how->to.instance < 0 ? how->report : NULL;
        return rbi_attributes_send(out, &how->to, &sent, &attributes);
    }
    uint64_t timeout_ns = how->timeout_ms * RBI_NS_PER_MS;
    if ((attributes.present & RBI_ATTRIBUTE_DEADLINE) != 0) {
        timeout_ns = rbi_min_u64(timeout_ns, attributes.deadline_ns - now_ns);
    }
    attributes.present |= RBI_ATTRIBUTE_DEADLINE;
    attributes.deadline_ns = now_ns + timeout_ns;
    sent.attributes = &attributes;
    return rbi_request_send(out, &how->to, &sent, &attributes, timeout_ns, how->on_reply,
                            how->context);
}

static int forward(struct ringbus *bus,
                   const struct ringbus_message *message,
                   struct ringbus *out,
                   const struct ringbus_forwarding *how)
{
    struct rbi_origin origin;
    const struct rbi_view *view = view_of(bus, message);
    int r = view == NULL ? RINGBUS_E_ARGUMENT : check(bus, message, how);
    r = r == 0 ? extend(bus, view, how, &origin) : r;
    if (r != 0) {
        return r;
    }
    r = rbi_enter(out); /* once more where it is the same handle, which is harmless */
    if (r != 0) {
        return r;
    }
    r = how->to.instance < 0 && how->report != NULL && !rbi_broadcast_begin(out, how->report)
            ? RINGBUS_E_ARGUMENT
            : send_on(out, view, how, &origin);
    rbi_leave(out);
    return r;
}

int ringbus_forward(struct ringbus *bus,
                    const struct ringbus_message *message,
                    struct ringbus *out,
                    const struct ringbus_forwarding *how)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    r = out != NULL ? forward(bus, message, out, how)
                    : rbi_fail(bus, RINGBUS_E_ARGUMENT, "no handle to send with");
    rbi_leave(bus);
    return r;
}

/* ---- not now -------------------------------------------------------------------------------- */

int ringbus_defer(struct ringbus *bus, const struct ringbus_message *message, uint32_t wait_us)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    struct rbi_view *view = view_of(bus, message);
    if (view == NULL || !bus->broker || view->own || view->kept || !view->deferrable ||
        message->kind == RINGBUS_KIND_REPLY || wait_us < DEFER_MIN_US || wait_us > DEFER_MAX_US) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT,
                     "not the running message of an endpoint with the option broker, an answer, "
                     "kept, or wait_us is not 100 to 1000000");
    } else {
        view->deferred = true;
        rbi_gate_hold(bus, view->end, rbi_now_ns() + wait_us * UINT64_C(1000));
    }
    rbi_leave(bus);
    return r;
}

/* ---- as another one has ended --------------------------------------------------------------- */

/* 0 or a public error (noted). @p out  all but kind, payload and attributes is set */
static int fill_ending(struct ringbus *bus,
                       const struct ringbus_ending *ending,
                       struct rbi_attributes *attributes,
                       struct rbi_outgoing *out)
{
    const bool answered = ending->outcome == RINGBUS_REPLIED || ending->outcome == RINGBUS_FAILED;
    const bool known =
        answered || ending->outcome == RINGBUS_UNKNOWN || ending->outcome == RINGBUS_NOT_SENT;
    if (ending->struct_size < sizeof *ending || !known ||
        (!answered && ringbus_error_kind(ending->error) == RINGBUS_ERROR_NONE)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "struct_size is not set, or there is no such outcome or error");
    }
    out->kind = ending->outcome == RINGBUS_REPLIED ? RBI_RECORD_REP : RBI_RECORD_ERROR;
    if (!answered) {
        *attributes = (struct rbi_attributes){.present = RBI_ATTRIBUTE_ERROR,
                                              .unsure = ending->outcome == RINGBUS_UNKNOWN,
                                              .error = ending->error,
                                              .retry_after_ms = ending->retry_after_ms};
        out->attributes = attributes;
    }
    return rbi_send_sum(bus, out->parts, out->part_count, &out->size);
}

int ringbus_reply_as(struct ringbus *bus,
                     const struct ringbus_reply_to *to,
                     const struct ringbus_ending *ending)
{
    static const struct ringbus_part empty = {.size = 0};
    struct rbi_attributes attributes;
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (ending == NULL) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "no ending");
    } else {
        struct rbi_outgoing out = {.parts = ending->part_count > 0 ? ending->parts : &empty,
                                   .part_count = ending->part_count > 0 ? ending->part_count : 1,
                                   .chunk = RBI_CHUNK_NONE};
        r = fill_ending(bus, ending, &attributes, &out);
        r = r == 0 ? rbi_answer(bus, to, &out) : r;
    }
    rbi_leave(bus);
    return r;
}
