/* SPDX-License-Identifier: Apache-2.0 */
/* bus/frame_field.c - how each kind of field is read and written. */
#include "bus/frame_field.h"

#include <string.h>

static const char too_short[] = "too short";
static const char out_of_range[] = "out of range";

/** Bytes behind their length, terminated. @p text has room for @p max and the terminator. */
static const char *read_text(struct rbi_reader *reader, char *text, size_t max, uint8_t *length_out)
{
    uint8_t length = 0;
    const unsigned char *bytes = NULL;
    if (rbi_reader_u8(reader, &length) != 0 || rbi_reader_bytes(reader, length, &bytes) != 0) {
        return too_short;
    }
    if (length > max || memchr(bytes, 0, length) != NULL) {
        return out_of_range;
    }
    memcpy(text, bytes, length);
    text[length] = 0;
    *length_out = length;
    return NULL;
}

static void write_text(struct rbi_writer *writer, const char *text, size_t length, size_t max)
{
    RBI_ASSERT(length <= max);
    rbi_writer_u8(writer, (uint8_t)length);
    rbi_writer_bytes(writer, text, length);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static const char *read_u8(struct rbi_reader *reader, void *field)
{
    return rbi_reader_u8(reader, field) == 0 ? NULL : too_short;
}

static const char *read_u16(struct rbi_reader *reader, void *field)
{
    return rbi_reader_u16(reader, field) == 0 ? NULL : too_short;
}

static const char *read_u32(struct rbi_reader *reader, void *field)
{
    return rbi_reader_u32(reader, field) == 0 ? NULL : too_short;
}

static const char *read_i32(struct rbi_reader *reader, void *field)
{
    uint32_t value = 0;
    if (rbi_reader_u32(reader, &value) != 0) {
        return too_short;
    }
    memcpy(field, &value, sizeof value);
    return NULL;
}

static const char *read_u64(struct rbi_reader *reader, void *field)
{
    return rbi_reader_u64(reader, field) == 0 ? NULL : too_short;
}

static void write_u8(struct rbi_writer *writer, const void *field)
{
    rbi_writer_u8(writer, *(const uint8_t *)field);
}

static void write_u16(struct rbi_writer *writer, const void *field)
{
    rbi_writer_u16(writer, *(const uint16_t *)field);
}

static void write_u32(struct rbi_writer *writer, const void *field)
{
    rbi_writer_u32(writer, *(const uint32_t *)field);
}

static void write_i32(struct rbi_writer *writer, const void *field)
{
    uint32_t value = 0;
    memcpy(&value, field, sizeof value);
    rbi_writer_u32(writer, value);
}

static void write_u64(struct rbi_writer *writer, const void *field)
{
    rbi_writer_u64(writer, *(const uint64_t *)field);
}

/* ---- texts -------------------------------------------------------------------------------- */

static const char *read_host(struct rbi_reader *reader, void *field)
{
    struct rbi_frame_host *host = field;
    const char *wrong = read_text(reader, host->bytes, RBI_HOST_NAME_MAX, &host->length);
    if (wrong == NULL && !rbi_host_name_valid(host->bytes, host->length)) {
        return out_of_range;
    }
    return wrong;
}

static void write_host(struct rbi_writer *writer, const void *field)
{
    const struct rbi_frame_host *host = field;
    RBI_ASSERT(rbi_host_name_valid(host->bytes, host->length));
    write_text(writer, host->bytes, host->length, RBI_HOST_NAME_MAX);
}

static const char *read_text_field(struct rbi_reader *reader, void *field)
{
    struct rbi_frame_text *text = field;
    return read_text(reader, text->bytes, sizeof text->bytes - 1, &text->length);
}

static void write_text_field(struct rbi_writer *writer, const void *field)
{
    const struct rbi_frame_text *text = field;
    write_text(writer, text->bytes, text->length, sizeof text->bytes - 1);
}

/** Path of an instance and the ids that follow from it, or "". */
static const char *
read_path(struct rbi_reader *reader, char *path, uint8_t *length, struct rbi_pidf *pidf)
{
    struct rbi_path_info info;
    const char *wrong = read_text(reader, path, RBI_PATH_MAX, length);
    if (wrong != NULL || *length == 0) {
        return wrong;
    }
    const bool good = rbi_pidf_parse(path, *length, pidf, &info) == 0 &&
                      info.elements == RBI_PATH_INSTANCE_ELEMENTS;
    return good ? NULL : out_of_range;
}

/* ---- structures --------------------------------------------------------------------------- */

static const char *read_envelope(struct rbi_reader *reader, void *field)
{
    struct rbi_frame_envelope *envelope = field;
    uint16_t zero = 0;
    int r = rbi_reader_u64(reader, &envelope->from);
    r |= rbi_reader_u64(reader, &envelope->to);
    r |= rbi_reader_u8(reader, &envelope->hops);
    r |= rbi_reader_u8(reader, &envelope->visited_count);
    r |= rbi_reader_u16(reader, &zero);
    if (r != 0) {
        return too_short;
    }
    if (envelope->from == 0 || envelope->to == 0 || envelope->hops > RBI_FRAME_HOPS_MAX ||
        envelope->visited_count > RBI_FRAME_HOPS_MAX) {
        return out_of_range;
    }
    for (unsigned i = 0; i < envelope->visited_count; i++) {
        if (rbi_reader_u64(reader, &envelope->visited[i]) != 0) {
            return too_short;
        }
        if (envelope->visited[i] == 0) {
            return out_of_range;
        }
    }
    return NULL;
}

static void write_envelope(struct rbi_writer *writer, const void *field)
{
    const struct rbi_frame_envelope *envelope = field;
    RBI_ASSERT(envelope->visited_count <= RBI_FRAME_HOPS_MAX);
    RBI_ASSERT(envelope->hops <= RBI_FRAME_HOPS_MAX);
    rbi_writer_u64(writer, envelope->from);
    rbi_writer_u64(writer, envelope->to);
    rbi_writer_u8(writer, envelope->hops);
    rbi_writer_u8(writer, envelope->visited_count);
    rbi_writer_u16(writer, 0);
    for (unsigned i = 0; i < envelope->visited_count; i++) {
        rbi_writer_u64(writer, envelope->visited[i]);
    }
}

static const char *read_stream(struct rbi_reader *reader, void *field)
{
    struct rbi_stream_id *id = field;
    int r = rbi_reader_u64(reader, &id->life);
    r |= rbi_reader_u64(reader, &id->number);
    if (r != 0) {
        return too_short;
    }
    return id->life == 0 || id->number == 0 ? out_of_range : NULL;
}

static void write_stream(struct rbi_writer *writer, const void *field)
{
    const struct rbi_stream_id *id = field;
    rbi_writer_u64(writer, id->life);
    rbi_writer_u64(writer, id->number);
}

static const char *read_trace(struct rbi_reader *reader, void *field)
{
    struct rbi_trace_id *trace = field;
    const unsigned char *bytes = NULL;
    if (rbi_reader_bytes(reader, sizeof trace->bytes, &bytes) != 0) {
        return too_short;
    }
    memcpy(trace->bytes, bytes, sizeof trace->bytes);
    return NULL;
}

static void write_trace(struct rbi_writer *writer, const void *field)
{
    const struct rbi_trace_id *trace = field;
    rbi_writer_bytes(writer, trace->bytes, sizeof trace->bytes);
}

static const char *read_endpoint(struct rbi_reader *reader, void *field)
{
    struct rbi_frame_endpoint *endpoint = field;
    struct rbi_pidf named = {0};
    uint32_t instance = 0;
    const char *wrong = read_path(reader, endpoint->path.bytes, &endpoint->path.length, &named);
    if (wrong != NULL) {
        return wrong;
    }
    int r = rbi_reader_u64(reader, &endpoint->pidf.cluster);
    r |= rbi_reader_u32(reader, &instance);
    r |= rbi_reader_u32(reader, &endpoint->pidf.incarnation);
    if (r != 0) {
        return too_short;
    }
    memcpy(&endpoint->pidf.instance, &instance, sizeof instance);
    const bool same =
        endpoint->pidf.cluster == named.cluster && endpoint->pidf.instance == named.instance;
    return endpoint->path.length == 0 || same ? NULL : out_of_range;
}

static void write_endpoint(struct rbi_writer *writer, const void *field)
{
    const struct rbi_frame_endpoint *endpoint = field;
    write_text(writer, endpoint->path.bytes, endpoint->path.length, RBI_PATH_MAX);
    rbi_writer_u64(writer, endpoint->pidf.cluster);
    write_i32(writer, &endpoint->pidf.instance);
    rbi_writer_u32(writer, endpoint->pidf.incarnation);
}

static const char *read_edge_list(struct rbi_reader *reader, void *field)
{
    struct rbi_frame_edge_list *list = field;
    if (rbi_reader_u8(reader, &list->count) != 0) {
        return too_short;
    }
    if (list->count > RBI_FRAME_EDGES_MAX) {
        return out_of_range;
    }
    for (unsigned i = 0; i < list->count; i++) {
        struct rbi_frame_edge *edge = &list->edge[i];
        int r = rbi_reader_u64(reader, &edge->to);
        r |= rbi_reader_u32(reader, &edge->cost);
        const char *wrong = r != 0 ? too_short : read_host(reader, &edge->name);
        if (wrong != NULL) {
            return wrong;
        }
        if (edge->to != rbi_host_id(edge->name.bytes, edge->name.length)) {
            return out_of_range;
        }
    }
    return NULL;
}

static void write_edge_list(struct rbi_writer *writer, const void *field)
{
    const struct rbi_frame_edge_list *list = field;
    RBI_ASSERT(list->count <= RBI_FRAME_EDGES_MAX);
    rbi_writer_u8(writer, list->count);
    for (unsigned i = 0; i < list->count; i++) {
        rbi_writer_u64(writer, list->edge[i].to);
        rbi_writer_u32(writer, list->edge[i].cost);
        write_host(writer, &list->edge[i].name);
    }
}

static const char *read_label(struct rbi_reader *reader, char *label)
{
    uint8_t length = 0;
    return read_text(reader, label, RBI_DIRECTORY_LABEL_MAX, &length);
}

static void write_label(struct rbi_writer *writer, const char *label)
{
    write_text(writer, label, strlen(label), RBI_DIRECTORY_LABEL_MAX);
}

static const char *read_remote(struct rbi_reader *reader, struct rbi_remote *remote)
{
    uint8_t length = 0;
    const char *wrong = read_path(reader, remote->path, &length, &remote->pidf);
    if (wrong != NULL) {
        return wrong;
    }
    remote->path_length = length;
    int r = rbi_reader_u32(reader, &remote->pidf.incarnation);
    r |= rbi_reader_u32(reader, &remote->state);
    r |= rbi_reader_u32(reader, &remote->health);
    r |= rbi_reader_u32(reader, &remote->weight);
    r |= rbi_reader_u32(reader, &remote->reported);
    if (r != 0) {
        return too_short;
    }
    wrong = read_label(reader, remote->set);
    wrong = wrong == NULL ? read_label(reader, remote->idc) : wrong;
    return wrong == NULL ? read_label(reader, remote->tags) : wrong;
}

static const char *read_item(struct rbi_reader *reader, void *field)
{
    struct rbi_remote_item *item = field;
    int r = rbi_reader_u64(reader, &item->incarnation);
    r |= rbi_reader_u64(reader, &item->revision);
    r |= rbi_reader_u32(reader, &item->flags);
    r |= rbi_reader_u32(reader, &item->number);
    if (r != 0) {
        return too_short;
    }
    return item->incarnation == 0 ? out_of_range : read_remote(reader, &item->remote);
}

static void write_item(struct rbi_writer *writer, const void *field)
{
    const struct rbi_remote_item *item = field;
    const struct rbi_remote *remote = &item->remote;
    rbi_writer_u64(writer, item->incarnation);
    rbi_writer_u64(writer, item->revision);
    rbi_writer_u32(writer, item->flags);
    rbi_writer_u32(writer, item->number);
    write_text(writer, remote->path, remote->path_length, RBI_PATH_MAX);
    rbi_writer_u32(writer, remote->pidf.incarnation);
    rbi_writer_u32(writer, remote->state);
    rbi_writer_u32(writer, remote->health);
    rbi_writer_u32(writer, remote->weight);
    rbi_writer_u32(writer, remote->reported);
    write_label(writer, remote->set);
    write_label(writer, remote->idc);
    write_label(writer, remote->tags);
}

static const char *read_rest(struct rbi_reader *reader, void *field)
{
    struct rbi_frame_rest *rest = field;
    rest->size = (uint32_t)reader->left; /* a body's: at most RBI_FRAME_SIZE_MAX */
    return rbi_reader_bytes(reader, reader->left, &rest->at) == 0 ? NULL : too_short;
}

static void write_rest(struct rbi_writer *writer, const void *field)
{
    const struct rbi_frame_rest *rest = field;
    rbi_writer_bytes(writer, rest->at, rest->size);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct {
    const char *(*take)(struct rbi_reader *reader, void *field);
    void (*put)(struct rbi_writer *writer, const void *field);
} kinds[RBI_FRAME_KIND_COUNT] = {
    [RBI_FRAME_KIND_u8] = {read_u8, write_u8},
    [RBI_FRAME_KIND_u16] = {read_u16, write_u16},
    [RBI_FRAME_KIND_u32] = {read_u32, write_u32},
    [RBI_FRAME_KIND_i32] = {read_i32, write_i32},
    [RBI_FRAME_KIND_u64] = {read_u64, write_u64},
    [RBI_FRAME_KIND_host] = {read_host, write_host},
    [RBI_FRAME_KIND_text] = {read_text_field, write_text_field},
    [RBI_FRAME_KIND_edge_list] = {read_edge_list, write_edge_list},
    [RBI_FRAME_KIND_envelope] = {read_envelope, write_envelope},
    [RBI_FRAME_KIND_stream] = {read_stream, write_stream},
    [RBI_FRAME_KIND_trace] = {read_trace, write_trace},
    [RBI_FRAME_KIND_endpoint] = {read_endpoint, write_endpoint},
    [RBI_FRAME_KIND_item] = {read_item, write_item},
    [RBI_FRAME_KIND_rest] = {read_rest, write_rest},
};

const char *rbi_frame_field_read(enum rbi_frame_kind kind, struct rbi_reader *reader, void *field)
{
    return kinds[kind].take(reader, field);
}

void rbi_frame_field_write(enum rbi_frame_kind kind, struct rbi_writer *writer, const void *field)
{
    kinds[kind].put(writer, field);
}
