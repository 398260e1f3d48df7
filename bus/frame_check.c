/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/frame_check.c - ranges of what a field's kind alone does not bound, and what fields of one
 * frame must agree on.
 */
#include "bus/frame_field.h"
#include "bus/record.h"

/** Body of a record by reference: its tag and the reference at least. */
#define REFERENCE_MIN (RBI_RECORD_TAG + sizeof(struct rbi_record_ref))

/** The first of a list that does not hold is what is wrong. */
struct rule {
    bool right;
    const char *name;
};

static const char *first_wrong(const struct rule *rules, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!rules[i].right) {
            return rules[i].name;
        }
    }
    return NULL;
}
#define FIRST_WRONG(...)                                                                           \
    first_wrong((const struct rule[]){__VA_ARGS__},                                                \
                RBI_ARRAY_SIZE(((const struct rule[]){__VA_ARGS__})))

static bool named(uint64_t id, const struct rbi_frame_host *host)
{
    return id == rbi_host_id(host->bytes, host->length);
}

/** Whether it may be the position of a record. */
static bool on_line(uint64_t position)
{
    return position % RBI_LINE == 0;
}

static const char *check_hello(const struct rbi_frame_hello *hello)
{
    return FIRST_WRONG(
        {hello->magic == RBI_FRAME_MAGIC, "magic"}, {hello->version_min >= 1, "version_min"},
        {hello->version_max >= hello->version_min, "version_max"},
        {named(hello->host, &hello->name), "host"}, {hello->incarnation != 0, "incarnation"});
}

static const char *check_edges(const struct rbi_frame_edges *edges)
{
    return FIRST_WRONG({named(edges->origin, &edges->name), "origin"},
                       {edges->incarnation != 0, "incarnation"},
                       {edges->hops <= RBI_FRAME_HOPS_MAX, "hops"});
}

static const char *check_open(const struct rbi_frame_open *open)
{
    return FIRST_WRONG({open->handle != 0, "handle"}, {open->attempt != 0, "attempt"},
                       {on_line(open->expect), "expect"}, {on_line(open->begin), "begin"},
                       {open->server.path.length != 0, "server"});
}

static const char *check_opened(const struct rbi_frame_opened *opened)
{
    return FIRST_WRONG({opened->handle != 0, "handle"}, {opened->attempt != 0, "attempt"},
                       {on_line(opened->expect), "expect"}, {on_line(opened->begin), "begin"},
                       {opened->life != 0, "life"});
}

static const char *check_close(const struct rbi_frame_close *close)
{
    return FIRST_WRONG({on_line(close->position), "position"}, {on_line(close->settled), "settled"},
                       {on_line(close->seen), "seen"});
}

static const char *check_hop(const struct rbi_frame_hop *hop)
{
    const bool ends = hop->what == RBI_HOP_PUT;
    return FIRST_WRONG(
        {hop->what >= RBI_HOP_TAKEN && hop->what <= RBI_HOP_PUT, "what"},
        {hop->reply <= 1, "reply"},
        {ends ? hop->next.length == 0 : rbi_host_name_valid(hop->next.bytes, hop->next.length),
         "next"});
}

bool rbi_frame_data_valid(unsigned flags, const struct rbi_frame_data *data)
{
    const bool more = (flags & RBI_FRAME_F_MORE) != 0;
    const bool by_reference = (data->meta >> 8 & RBI_RECORD_REF) != 0;
    const bool whole = data->bytes.size == data->size;
    if ((data->meta & 0xffU) == 0 || data->size > RBI_FRAME_BODY_MAX ||
        data->bytes.size > RBI_FRAME_PART_MAX || data->bytes.size > data->size) {
        return false;
    }
    /* What lacks and is not to come would be read from where other bytes lie. */
    return by_reference ? whole && data->size >= REFERENCE_MIN : whole != more;
}

static const char *check_data(unsigned flags, const struct rbi_frame_data *data)
{
    return FIRST_WRONG({(data->meta & 0xffU) != 0, "meta"},
                       {data->size <= RBI_FRAME_BODY_MAX, "size"},
                       {rbi_frame_data_valid(flags, data), "bytes"});
}

static const char *check_piece(const struct rbi_frame_piece *piece)
{
    return FIRST_WRONG({piece->bytes.size >= 1 && piece->bytes.size <= RBI_FRAME_PART_MAX, "bytes"},
                       {piece->offset <= UINT64_MAX - piece->bytes.size, "offset"});
}

const char *rbi_frame_check(const struct rbi_frame_header *header, const union rbi_frame_body *body)
{
    switch (header->type) {
    case RBI_FRAME_HELLO:
        return check_hello(&body->hello);
    case RBI_FRAME_EDGES:
        return check_edges(&body->edges);
    case RBI_FRAME_OPEN:
        return check_open(&body->open);
    case RBI_FRAME_OPENED:
        return check_opened(&body->opened);
    case RBI_FRAME_REFUSED:
        return body->refused.attempt != 0 ? NULL : "attempt";
    case RBI_FRAME_DATA:
        return check_data(header->flags, &body->data);
    case RBI_FRAME_PIECE:
        return check_piece(&body->piece);
    case RBI_FRAME_ACK:
        return on_line(body->ack.position) ? NULL : "position";
    case RBI_FRAME_CLOSE:
        return check_close(&body->close);
    case RBI_FRAME_HOP:
        return check_hop(&body->hop);
    default:
        return NULL;
    }
}
