/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/frame.c - headers, and bodies by the tables of bus/frame_field.h. DATA, PIECE and ACK, which
 * come and go by the million, are read and written here without a table; a test holds that
 * both ways say the same.
 */
#include "bus/frame.h"

#include "bus/frame_field.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- tables ------------------------------------------------------------------------------- */

#define FIELD(field_kind, field, meaning)                                                          \
    {.kind = RBI_FRAME_KIND_##field_kind,                                                          \
     .offset = (uint32_t)offsetof(FIELD_OF, field),                                                \
     .name = #field},

#define FIELD_OF struct rbi_frame_hello
static const struct rbi_frame_field hello_fields[] = {RBI_FRAME_FIELDS_hello(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_ping
static const struct rbi_frame_field ping_fields[] = {RBI_FRAME_FIELDS_ping(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_pong
static const struct rbi_frame_field pong_fields[] = {RBI_FRAME_FIELDS_pong(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_bye
static const struct rbi_frame_field bye_fields[] = {RBI_FRAME_FIELDS_bye(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_edges
static const struct rbi_frame_field edges_fields[] = {RBI_FRAME_FIELDS_edges(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_open
static const struct rbi_frame_field open_fields[] = {RBI_FRAME_FIELDS_open(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_opened
static const struct rbi_frame_field opened_fields[] = {RBI_FRAME_FIELDS_opened(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_refused
static const struct rbi_frame_field refused_fields[] = {RBI_FRAME_FIELDS_refused(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_data
static const struct rbi_frame_field data_fields[] = {RBI_FRAME_FIELDS_data(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_piece
static const struct rbi_frame_field piece_fields[] = {RBI_FRAME_FIELDS_piece(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_ack
static const struct rbi_frame_field ack_fields[] = {RBI_FRAME_FIELDS_ack(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_close
static const struct rbi_frame_field close_fields[] = {RBI_FRAME_FIELDS_close(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_dir_ask
static const struct rbi_frame_field dir_ask_fields[] = {RBI_FRAME_FIELDS_dir_ask(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_dir_item
static const struct rbi_frame_field dir_item_fields[] = {RBI_FRAME_FIELDS_dir_item(FIELD)};
#undef FIELD_OF
#define FIELD_OF struct rbi_frame_hop
static const struct rbi_frame_field hop_fields[] = {RBI_FRAME_FIELDS_hop(FIELD)};
#undef FIELD_OF

static const struct rbi_frame_table tables[] = {
#define TABLE(NAME, frame, value, what)                                                            \
    [value] = {.name = #NAME,                                                                      \
               .fields = frame##_fields,                                                           \
               .count = RBI_ARRAY_SIZE(frame##_fields),                                            \
               .size = sizeof(struct rbi_frame_##frame)},
    RBI_FRAME_TYPES(TABLE)
#undef TABLE
};

const struct rbi_frame_table *rbi_frame_table(unsigned type)
{
    return type < RBI_ARRAY_SIZE(tables) && tables[type].name != NULL ? &tables[type] : NULL;
}

const char *rbi_frame_type_name(unsigned type)
{
    const struct rbi_frame_table *table = rbi_frame_table(type);
    return table == NULL ? "?" : table->name;
}

/* ---- little-endian, of what is known to be there ------------------------------------------ */

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const unsigned char *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static void put_u32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
    at[2] = (unsigned char)(value >> 16);
    at[3] = (unsigned char)(value >> 24);
}

static void put_u64(unsigned char *at, uint64_t value)
{
    put_u32(at, (uint32_t)value);
    put_u32(at + 4, (uint32_t)(value >> 32));
}

static void put_header(unsigned char *at, const struct rbi_frame_header *header)
{
    put_u32(at, header->size);
    at[4] = header->type;
    at[5] = header->flags;
    at[6] = 0;
    at[7] = 0;
    put_u32(at + 8, header->handle);
    put_u32(at + 12, header->mark);
}

/* ---- reading ------------------------------------------------------------------------------ */

int rbi_frame_look(const void *bytes, size_t size, struct rbi_frame_header *out)
{
    const unsigned char *at = bytes;
    *out = (struct rbi_frame_header){0};
    if (size < 8) {
        return RBI_FRAME_SHORT;
    }
    const uint32_t body = get_u32(at);
    if (body > RBI_FRAME_SIZE_MAX || at[4] == 0 || at[6] != 0 || at[7] != 0) {
        return -EPROTO;
    }
    if (size < RBI_FRAME_HEADER) {
        return RBI_FRAME_SHORT;
    }
    *out = (struct rbi_frame_header){.size = body,
                                     .type = at[4],
                                     .flags = at[5],
                                     .handle = get_u32(at + 8),
                                     .mark = get_u32(at + 12)};
    return size - RBI_FRAME_HEADER < body ? RBI_FRAME_SHORT : RBI_FRAME_WHOLE;
}

int rbi_frame_data(const struct rbi_frame_header *header,
                   const void *body,
                   struct rbi_frame_data *out)
{
    const unsigned char *at = body;
    if (header->size < 8) {
        return -EPROTO;
    }
    const struct rbi_frame_data data = {
        .meta = get_u32(at),
        .size = get_u32(at + 4),
        .bytes = {.at = at + 8, .size = header->size - 8},
    };
    if (!rbi_frame_data_valid(header->flags, &data)) {
        return -EPROTO;
    }
    *out = data;
    return 0;
}

int rbi_frame_piece(const struct rbi_frame_header *header,
                    const void *body,
                    struct rbi_frame_piece *out)
{
    const unsigned char *at = body;
    if (header->size < 9 || header->size - 8 > RBI_FRAME_PART_MAX) {
        return -EPROTO;
    }
    const struct rbi_frame_piece piece = {
        .offset = get_u64(at),
        .bytes = {.at = at + 8, .size = header->size - 8},
    };
    if (piece.offset > UINT64_MAX - piece.bytes.size) {
        return -EPROTO;
    }
    *out = piece;
    return 0;
}

int rbi_frame_ack(const struct rbi_frame_header *header,
                  const void *body,
                  struct rbi_frame_ack *out)
{
    const unsigned char *at = body;
    if (header->size < 16 || get_u64(at) % RBI_LINE != 0) {
        return -EPROTO;
    }
    *out = (struct rbi_frame_ack){.position = get_u64(at), .granted = get_u64(at + 8)};
    return 0;
}

RBI_COLD static int
refuse(struct rbi_frame_fault *fault, const char *type, const char *field, const char *wrong)
{
    if (fault != NULL) {
        (void)snprintf(fault->text, sizeof fault->text, "%s: %s %s", type, field, wrong);
    }
    return -EPROTO;
}

int rbi_frame_decode(const struct rbi_frame_header *header,
                     const void *body,
                     union rbi_frame_body *out,
                     struct rbi_frame_fault *fault)
{
    const struct rbi_frame_table *table = rbi_frame_table(header->type);
    if (table == NULL) {
        return RBI_FRAME_UNKNOWN;
    }
    struct rbi_reader reader;
    union rbi_frame_body read;
    memset(&read, 0, table->size);
    rbi_reader_init(&reader, body, header->size);
    for (unsigned i = 0; i < table->count; i++) {
        const struct rbi_frame_field *field = &table->fields[i];
        const char *wrong =
            rbi_frame_field_read(field->kind, &reader, (char *)&read + field->offset);
        if (wrong != NULL) {
            return refuse(fault, table->name, field->name, wrong);
        }
    }
    const char *name = rbi_frame_check(header, &read);
    if (name != NULL) {
        return refuse(fault, table->name, name, "out of range");
    }
    memcpy(out, &read, table->size);
    return RBI_FRAME_WHOLE;
}

/* ---- writing ------------------------------------------------------------------------------ */

size_t rbi_frame_encode(struct rbi_frame_header *header, const void *body, void *out)
{
    const struct rbi_frame_table *table = rbi_frame_table(header->type);
    RBI_ASSERT(table != NULL);
    const bool large = header->type == RBI_FRAME_DATA || header->type == RBI_FRAME_PIECE ||
                       header->type == RBI_FRAME_EDGES;
    struct rbi_writer writer;
    rbi_writer_init(&writer, (unsigned char *)out + RBI_FRAME_HEADER,
                    (large ? RBI_FRAME_MAX : RBI_FRAME_CONTROL_MAX) - RBI_FRAME_HEADER);
    for (unsigned i = 0; i < table->count; i++) {
        const struct rbi_frame_field *field = &table->fields[i];
        rbi_frame_field_write(field->kind, &writer, (const char *)body + field->offset);
    }
    header->size = (uint32_t)writer.used;
    put_header(out, header);
    return RBI_FRAME_HEADER + writer.used;
}

void rbi_frame_data_head(void *out,
                         unsigned flags,
                         uint32_t handle,
                         uint32_t mark,
                         uint32_t meta,
                         uint32_t size,
                         uint32_t part)
{
    RBI_ASSERT(part <= RBI_FRAME_PART_MAX && part <= size);
    unsigned char *at = out;
    put_header(at, &(struct rbi_frame_header){.size = part + 8,
                                              .type = RBI_FRAME_DATA,
                                              .flags = (uint8_t)flags,
                                              .handle = handle,
                                              .mark = mark});
    put_u32(at + RBI_FRAME_HEADER, meta);
    put_u32(at + RBI_FRAME_HEADER + 4, size);
}

void rbi_frame_piece_head(
    void *out, unsigned flags, uint32_t handle, uint32_t mark, uint64_t offset, uint32_t part)
{
    RBI_ASSERT(part >= 1 && part <= RBI_FRAME_PART_MAX);
    unsigned char *at = out;
    put_header(at, &(struct rbi_frame_header){.size = part + 8,
                                              .type = RBI_FRAME_PIECE,
                                              .flags = (uint8_t)flags,
                                              .handle = handle,
                                              .mark = mark});
    put_u64(at + RBI_FRAME_HEADER, offset);
}

void rbi_frame_set_handle(void *frame, uint32_t handle)
{
    put_u32((unsigned char *)frame + 8, handle);
}

void rbi_frame_text_set(struct rbi_frame_text *text, const char *s)
{
    text->length = (uint8_t)strnlen(s, sizeof text->bytes - 1);
    memcpy(text->bytes, s, text->length);
    text->bytes[text->length] = 0;
}

void rbi_frame_host_set(struct rbi_frame_host *host, const char *name)
{
    const size_t length = strlen(name);
    RBI_ASSERT(rbi_host_name_valid(name, length));
    host->length = (uint8_t)length;
    memcpy(host->bytes, name, length + 1);
}

void rbi_frame_path_set(struct rbi_frame_path *path, const char *s)
{
    const size_t length = strlen(s);
    RBI_ASSERT(length <= RBI_PATH_MAX);
    path->length = (uint8_t)length;
    memcpy(path->bytes, s, length + 1);
}
