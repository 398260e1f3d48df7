/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/internal.h"

#include <errno.h>
#include <string.h>

#define OPTION_FLAGS (RINGBUS_KEY | RINGBUS_MORE | RINGBUS_IDEMPOTENT | RINGBUS_NO_INHERIT)
_Static_assert(RINGBUS_TAG_MAX == RBI_ATTRIBUTE_TAG_MAX &&
                   RINGBUS_LABELS_MAX == RBI_ATTRIBUTE_LABELS_MAX &&
                   RINGBUS_PRIORITY_MAX == RBI_PRIORITY_MAX,
               "same limits");

/* ---- sending ------------------------------------------------------------------------------ */

static bool is_zero(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0 && *at == 0) {
        at++;
        size--;
    }
    return size == 0;
}

static int check_follow(struct ringbus *bus, const struct ringbus_message_options *options)
{
    if (options->follow > 1) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "follow is %u, expected 0 or 1", options->follow);
    }
    if (options->follow != 0 && is_zero(options->trace_id, sizeof options->trace_id)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "follow needs a trace_id: there is none");
    }
    return 0;
}

static int
check_options(struct ringbus *bus, const struct ringbus_message_options *options, bool all)
{
    if ((options->flags & ~(OPTION_FLAGS | (all ? RBI_REACH_FLAGS : 0U))) != 0) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "flags 0x%x are unknown or for RINGBUS_ALL only",
                        options->flags);
    }
    if (options->priority > RINGBUS_PRIORITY_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "priority is %u, expected 0 to %d",
                        options->priority, RINGBUS_PRIORITY_MAX);
    }
    if (options->timeout_ms > RBI_TIMEOUT_MS_MAX || options->try_timeout_ms > RBI_TIMEOUT_MS_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "timeout_ms is %u and try_timeout_ms %u, expected 0 to %u",
                        options->timeout_ms, options->try_timeout_ms, RBI_TIMEOUT_MS_MAX);
    }
    if (options->tag != NULL && options->tag[0] != '\0' &&
        !rbi_tag_valid(options->tag, strnlen(options->tag, RINGBUS_TAG_MAX + 1))) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "the tag is not 1 to %d visible bytes of ASCII without comma",
                        RINGBUS_TAG_MAX);
    }
    return check_follow(bus, options);
}

int rbi_options_take(struct ringbus *bus,
                     const struct ringbus_message_options *given,
                     bool all,
                     struct ringbus_message_options *out)
{
    memset(out, 0, sizeof *out);
    if (given == NULL) {
        return 0;
    }
    if (given->struct_size < offsetof(struct ringbus_message_options, tag)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "struct_size of the options is not set");
    }
    /* A caller built against another version knows fewer or more of them. */
    memcpy(out, given, rbi_min_u64(given->struct_size, sizeof *out));
    return check_options(bus, out, all);
}

void rbi_attributes_inherit(const struct rbi_attributes *from, struct rbi_attributes *to)
{
    if ((to->present & RBI_ATTRIBUTE_TAG) == 0 && (from->present & RBI_ATTRIBUTE_TAG) != 0) {
        to->present |= RBI_ATTRIBUTE_TAG;
        memcpy(to->tag, from->tag, sizeof to->tag);
    }
    if ((to->present & RBI_ATTRIBUTE_TRACE) == 0 && (from->present & RBI_ATTRIBUTE_TRACE) != 0) {
        to->present |= RBI_ATTRIBUTE_TRACE;
        memcpy(to->trace, from->trace, sizeof to->trace);
        to->span = from->span;
    }
    if (to->priority == 0) {
        to->priority = from->priority;
    }
    if ((from->present & RBI_ATTRIBUTE_DEADLINE) != 0 &&
        ((to->present & RBI_ATTRIBUTE_DEADLINE) == 0 || to->deadline_ns > from->deadline_ns)) {
        to->present |= RBI_ATTRIBUTE_DEADLINE;
        to->deadline_ns = from->deadline_ns;
    }
}

static void
say(const struct ringbus_message_options *options, uint64_t now_ns, struct rbi_attributes *out)
{
    memset(out, 0, sizeof *out);
    out->present = RBI_ATTRIBUTE_SENT;
    out->sent_ns = now_ns;
    out->priority = (uint8_t)options->priority;
    out->follow = options->follow != 0;
    if (options->method != 0 || options->codec != 0 || options->schema != 0) {
        out->present |= RBI_ATTRIBUTE_METHOD;
        out->method = options->method;
        out->codec = options->codec;
        out->schema = options->schema;
    }
    if (!is_zero(options->labels, sizeof options->labels)) {
        out->present |= RBI_ATTRIBUTE_LABELS;
        memcpy(out->labels, options->labels, sizeof out->labels);
    }
    if (options->timeout_ms != 0) {
        out->present |= RBI_ATTRIBUTE_DEADLINE;
        out->deadline_ns = now_ns + options->timeout_ms * RBI_NS_PER_MS;
    }
    if (!is_zero(options->trace_id, sizeof options->trace_id) || options->span_id != 0) {
        out->present |= RBI_ATTRIBUTE_TRACE;
        memcpy(out->trace, options->trace_id, sizeof out->trace);
        out->span = options->span_id;
    }
    if (options->dest.cluster != 0) {
        out->present |= RBI_ATTRIBUTE_DEST;
        memcpy(&out->dest, &options->dest, sizeof out->dest);
    }
    if (options->tag != NULL && options->tag[0] != '\0') {
        out->present |= RBI_ATTRIBUTE_TAG;
        memcpy(out->tag, options->tag, strnlen(options->tag, RBI_ATTRIBUTE_TAG_MAX));
    }
}

int rbi_attributes_of(struct ringbus *bus,
                      const struct ringbus_message_options *options,
                      uint64_t now_ns,
                      struct rbi_attributes *out)
{
    say(options, now_ns, out);
    if (bus->inherited != NULL && (options->flags & RINGBUS_NO_INHERIT) == 0) {
        const bool untagged = options->tag != NULL && options->tag[0] == '\0';
        rbi_attributes_inherit(bus->inherited, out);
        if (untagged) {
            out->present &= ~RBI_ATTRIBUTE_TAG;
            memset(out->tag, 0, sizeof out->tag);
        }
    }
    if ((out->present & RBI_ATTRIBUTE_DEADLINE) != 0 && out->deadline_ns <= now_ns) {
        return rbi_fail(bus, RINGBUS_E_TIMEOUT,
                        "the deadline of the message whose callback runs is over");
    }
    return 0;
}

struct rbi_pick rbi_attributes_pick(const struct rbi_attributes *attributes,
                                    const struct rbi_choosing *by)
{
    struct rbi_pick pick = {.keyed = by->keyed,
                            .spread = by->spread,
                            .key = by->key,
                            .tag = attributes->tag,
                            .method = attributes->method,
                            .trace = rbi_route_trace(attributes->trace),
                            .tried = by->tried,
                            .tried_count = by->tried_count};
    memcpy(pick.labels, attributes->labels, sizeof pick.labels);
    return pick;
}

int rbi_attributes_resolve(struct ringbus *bus,
                           const struct ringbus_addr *to,
                           const struct rbi_choosing *by,
                           struct rbi_attributes *attributes,
                           struct rbi_end **out)
{
    struct rbi_cluster *cluster =
        to->instance == RINGBUS_ANY ? rbi_cluster_find(bus, to->cluster) : NULL;
    if (cluster == NULL) {
        return rbi_send_resolve(bus, to, by->keyed, by->key, out);
    }
    const struct rbi_pick pick = rbi_attributes_pick(attributes, by);
    struct rbi_end *end = rbi_cluster_pick_for(bus, cluster, &pick);
    if (end == NULL || !end->usable ||
        (to->incarnation != 0 && to->incarnation != end->peer.incarnation)) {
        return rbi_send_no_peer(bus, to);
    }
    attributes->present |= RBI_ATTRIBUTE_EPOCH;
    attributes->epoch = (uint16_t)cluster->epoch;
    attributes->diverted = rbi_divert_take(bus, end, by->key);
    *out = end;
    return 0;
}

int rbi_attributes_send(struct ringbus *bus,
                        const struct ringbus_addr *to,
                        struct rbi_outgoing *out,
                        struct rbi_attributes *attributes)
{
    const struct rbi_choosing by = {.keyed = (out->flags & RINGBUS_KEY) != 0, .key = out->key};
    struct rbi_end *end = NULL;
    out->attributes = attributes;
    if (to == NULL || to->instance != RINGBUS_ANY || out->size > bus->size_max) {
        return rbi_send_any(bus, to, out);
    }
    if (RBI_UNLIKELY(bus->balance_all) && rbi_all_wanted(bus, to)) {
        const struct rbi_pick pick = rbi_attributes_pick(attributes, &by);
        return rbi_all_send(bus, to, out, &pick);
    }
    int r = rbi_attributes_resolve(bus, to, &by, attributes, &end);
    if (r == 0) {
        out->record_flags |= RBI_RECORD_ANY;
        r = rbi_send_new(bus, end, out);
    }
    rbi_count(bus, RBI_COUNTER_diverted, r >= 0 && attributes->diverted ? 1 : 0);
    return rbi_sent(r);
}

static int send_with(struct ringbus *bus,
                     const struct ringbus_addr *to,
                     struct rbi_outgoing *out,
                     const struct ringbus_message_options *options)
{
    struct rbi_attributes attributes;
    const int r = rbi_attributes_of(bus, options, rbi_now_ns(), &attributes);
    if (r != 0) {
        return r;
    }
    out->flags = options->flags & ~RINGBUS_NO_INHERIT;
    out->key = options->key;
    if (to != NULL && to->instance == RINGBUS_ANY && !bus->closing) {
        struct rbi_cluster *cluster = rbi_cluster_find(bus, to->cluster);
        if (cluster != NULL && rbi_failback_wanted(cluster)) {
            return rbi_failback_send(bus, cluster, to, out, &attributes);
        }
    }
    return rbi_attributes_send(bus, to, out, &attributes);
}

int rbi_attributes_say(struct ringbus *bus,
                       const struct ringbus_addr *to,
                       const struct ringbus_message_options *options,
                       struct rbi_outgoing *out)
{
    struct ringbus_message_options taken;
    const bool all = to != NULL && to->instance < 0;
    const int r = rbi_options_take(bus, options, all, &taken);
    return r == 0 ? send_with(bus, to, out, &taken) : r;
}

int ringbus_send_with(struct ringbus *bus,
                      const struct ringbus_addr *to,
                      const struct ringbus_part *parts,
                      unsigned part_count,
                      const struct ringbus_message_options *options)
{
    int r = rbi_enter(bus);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    struct rbi_outgoing out = {.kind = RBI_RECORD_ONEWAY,
                               .parts = parts,
                               .part_count = part_count,
                               .chunk = RBI_CHUNK_NONE};
    r = rbi_send_sum(bus, parts, part_count, &out.size);
    if (r == 0) {
        r = rbi_attributes_say(bus, to, options, &out);
    }
    rbi_leave(bus);
    return r;
}

/* ---- receiving ---------------------------------------------------------------------------- */

void rbi_attributes_show(const struct rbi_attributes *from, struct ringbus_attributes *out)
{
    out->tag = from->tag;
    out->method = from->method;
    out->codec = from->codec;
    out->schema = from->schema;
    memcpy(out->labels, from->labels, sizeof out->labels);
    out->priority = from->priority;
    out->deadline_ns = from->deadline_ns;
    out->sent_ns = from->sent_ns;
    memcpy(out->trace_id, from->trace, sizeof out->trace_id);
    out->span_id = from->span;
    out->dest = rbi_addr(&from->dest);
}

/* What a message without any gets when it is sent again. */
static bool is_plain(const struct rbi_attributes *attributes)
{
    return attributes->present == RBI_ATTRIBUTE_FIRST && attributes->priority == 0 &&
           !attributes->diverted;
}

int rbi_attributes_view(const struct rbi_record *record, struct rbi_view *view)
{
    const int r = rbi_attributes_decode(record, &view->attributes);
    if (r != 0) {
        return r;
    }
    rbi_attributes_show(&view->attributes, &view->shown);
    if (is_plain(&view->attributes)) {
        return 0; /* its sender has said nothing of it */
    }
    view->message.attributes = &view->shown;
    if (view->attributes.diverted) {
        view->message.flags |= RINGBUS_MESSAGE_DIVERTED;
    }
    return 0;
}

bool rbi_attributes_expired(const struct ringbus *bus, const struct rbi_view *view)
{
    const struct rbi_attributes *attributes = &view->attributes;
    if ((attributes->present & RBI_ATTRIBUTE_DEADLINE) == 0) {
        return false;
    }
    /* The clock of the last tick is never ahead: what it says is over is over. */
    return attributes->deadline_ns <= bus->now_ns || attributes->deadline_ns <= rbi_now_ns();
}

/* The attributes of an answer whose callback is about to run; NULL: it has none. */
static const struct rbi_attributes *answer_attributes(const struct ringbus *bus,
                                                      const struct ringbus_message *answer)
{
    return answer != NULL && answer->attributes != NULL ? &bus->view->attributes : NULL;
}

int rbi_refusal_of(const struct ringbus *bus, const struct ringbus_message *answer)
{
    const struct rbi_attributes *attributes = answer_attributes(bus, answer);
    if (attributes == NULL || (attributes->present & RBI_ATTRIBUTE_ERROR) == 0) {
        return 0;
    }
    /* A code of a later release says no more than that it failed. */
    return ringbus_error_kind(attributes->error) != RINGBUS_ERROR_NONE ? attributes->error : 0;
}

bool rbi_refusal_unsure(const struct ringbus *bus, const struct ringbus_message *answer)
{
    const struct rbi_attributes *attributes = answer_attributes(bus, answer);
    return attributes != NULL && attributes->unsure;
}

uint32_t rbi_refusal_retry_ms(const struct ringbus *bus, const struct ringbus_message *answer)
{
    const struct rbi_attributes *attributes = answer_attributes(bus, answer);
    return attributes != NULL ? attributes->retry_after_ms : 0;
}
