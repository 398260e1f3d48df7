/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/wire.c - encoding and decoding of frames, driven by the tables of
 * bus/wire_table.h.
 *
 *   header  0 magic u32 | 4 length u32 | 8 type u16 | 10 version u8 | 11 descriptors u8
 *          12 serial u32 | 16 reply_to u32 | 20 zero u32
 *   field   tag u16 | length u16 | value
 */
#include "bus/wire.h"

#include "bus/wire_cursor.h"
#include "bus/wire_table.h"
#include "shm/handoff.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The largest frame of each type, all fields there and all texts full, fits. */
#define LARGEST_FIELD(type, name, tag, required) unsigned char name[4 + sizeof(rbi_wire_##type)];
#define LARGEST_FRAME(NAME, message, value, fds)                                                   \
    struct largest_##message {                                                                     \
        unsigned char frame_header[RBI_WIRE_HEADER];                                               \
        RBI_WIRE_FIELDS_##message(LARGEST_FIELD)                                                   \
    };                                                                                             \
    _Static_assert(sizeof(struct largest_##message) <= RBI_WIRE_FRAME_MAX, "frame of " #NAME);     \
    _Static_assert((fds) <= RBI_HANDOFF_FDS_MAX, "descriptors of " #NAME);
RBI_WIRE_TYPES(LARGEST_FRAME)
#undef LARGEST_FRAME
#undef LARGEST_FIELD

struct message {
    const char *name;
    const struct rbi_wire_table *table;
    size_t size; /* of the structure */
    unsigned fds;
};

static const struct message messages[] = {
#define MESSAGE(NAME, message, value, descriptors)                                                 \
    [value] = {.name = #NAME,                                                                      \
               .table = &rbi_wire_table_##message,                                                 \
               .size = sizeof(struct rbi_wire_##message),                                          \
               .fds = (descriptors)},
    RBI_WIRE_TYPES(MESSAGE)
#undef MESSAGE
};

unsigned rbi_wire_type_protocol(unsigned type)
{
    return type <= RBI_WIRE_STOPPING ? 1 : 2;
}

static const struct message *message_of(unsigned type)
{
    const bool known = type < RBI_ARRAY_SIZE(messages) && messages[type].name != NULL;
    /* A build that is to speak an older protocol knows no more than that. */
    return known && rbi_wire_type_protocol(type) <= RBI_WIRE_PROTOCOL_MAX ? &messages[type] : NULL;
}

bool rbi_wire_type_known(unsigned type)
{
    return message_of(type) != NULL;
}

const char *rbi_wire_type_name(unsigned type)
{
    const struct message *message = message_of(type);
    return message == NULL ? "?" : message->name;
}

unsigned rbi_wire_type_fds(unsigned type)
{
    const struct message *message = message_of(type);
    return message == NULL ? 0 : message->fds;
}

int rbi_wire_header_decode(const void *data, size_t size, struct rbi_wire_header *out)
{
    if (size < RBI_WIRE_HEADER) {
        return RBI_WIRE_SHORT;
    }
    struct rbi_reader reader;
    struct rbi_wire_header header;
    uint32_t magic = 0;
    rbi_reader_init(&reader, data, RBI_WIRE_HEADER);
    int r = rbi_reader_u32(&reader, &magic);
    r |= rbi_reader_u32(&reader, &header.length);
    r |= rbi_reader_u16(&reader, &header.type);
    r |= rbi_reader_u8(&reader, &header.version);
    r |= rbi_reader_u8(&reader, &header.fd_count);
    r |= rbi_reader_u32(&reader, &header.serial);
    r |= rbi_reader_u32(&reader, &header.reply_to);
    if (r != 0 || magic != RBI_WIRE_MAGIC || header.length < RBI_WIRE_HEADER ||
        header.length > RBI_WIRE_FRAME_MAX || header.fd_count > RBI_HANDOFF_FDS_MAX) {
        return -EPROTO;
    }
    *out = header;
    return RBI_WIRE_DONE;
}

/* ---- decoding --------------------------------------------------------------------------- */

static RBI_PRINTF(3, 4) int fail(struct rbi_wire_fault *fault,
                                 const struct message *message,
                                 const char *format,
                                 ...)
{
    char what[96];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    (void)snprintf(fault->text, sizeof fault->text, "%s: %s", message->name, what);
    return -EPROTO;
}

static size_t kind_bytes(unsigned kind)
{
    switch ((enum rbi_wire_kind)kind) {
    case RBI_WIRE_KIND_u8:
        return 1;
    case RBI_WIRE_KIND_u16:
        return 2;
    case RBI_WIRE_KIND_u32:
    case RBI_WIRE_KIND_i32:
        return 4;
    case RBI_WIRE_KIND_u64:
        return 8;
    case RBI_WIRE_KIND_text:
        return RBI_WIRE_TEXT_MAX;
    case RBI_WIRE_KIND_data:
        break;
    }
    return RBI_WIRE_DATA_MAX;
}

static int decode_text(const struct message *message,
                       const struct rbi_wire_field *field,
                       struct rbi_reader *value,
                       struct rbi_text *out,
                       struct rbi_wire_fault *fault)
{
    const size_t length = value->left;
    const unsigned char *bytes = NULL;
    if (length > RBI_WIRE_TEXT_MAX || rbi_reader_bytes(value, length, &bytes) != 0) {
        return fail(fault, message, "field %s has %zu bytes, more than %u", field->name, length,
                    RBI_WIRE_TEXT_MAX);
    }
    if (memchr(bytes, 0, length) != NULL) {
        return fail(fault, message, "field %s has a NUL inside", field->name);
    }
    out->length = (uint16_t)length;
    memcpy(out->bytes, bytes, length);
    out->bytes[length] = 0;
    return 0;
}

static int decode_data(const struct message *message,
                       const struct rbi_wire_field *field,
                       struct rbi_reader *value,
                       struct rbi_data *out,
                       struct rbi_wire_fault *fault)
{
    const size_t length = value->left;
    const unsigned char *bytes = NULL;
    if (length > RBI_WIRE_DATA_MAX || rbi_reader_bytes(value, length, &bytes) != 0) {
        return fail(fault, message, "field %s has %zu bytes, more than %u", field->name, length,
                    RBI_WIRE_DATA_MAX);
    }
    out->length = (uint16_t)length;
    memcpy(out->bytes, bytes, length);
    return 0;
}

static int decode_value(const struct message *message,
                        const struct rbi_wire_field *field,
                        struct rbi_reader *value,
                        unsigned char *structure,
                        struct rbi_wire_fault *fault)
{
    void *to = structure + field->offset;
    if (field->kind == RBI_WIRE_KIND_text) {
        return decode_text(message, field, value, to, fault);
    }
    if (field->kind == RBI_WIRE_KIND_data) {
        return decode_data(message, field, value, to, fault);
    }
    const size_t bytes = kind_bytes(field->kind);
    if (value->left != bytes) {
        return fail(fault, message, "field %s has %zu bytes, not %zu", field->name, value->left,
                    bytes);
    }
    switch (bytes) {
    case 1:
        return rbi_reader_u8(value, to);
    case 2:
        return rbi_reader_u16(value, to);
    case 4:
        return rbi_reader_u32(value, to); /* i32 too: the same bits */
    default:
        return rbi_reader_u64(value, to);
    }
}

/** Index of the field with @p tag, or the table's count. */
static unsigned find_field(const struct rbi_wire_table *table, unsigned tag)
{
    unsigned i = 0;
    while (i < table->count && table->fields[i].tag != tag) {
        i++;
    }
    return i;
}

static int decode_fields(const struct message *message,
                         struct rbi_reader *reader,
                         unsigned char *structure,
                         struct rbi_wire_fault *fault)
{
    const struct rbi_wire_table *table = message->table;
    uint32_t seen = 0;
    while (reader->left > 0) {
        uint16_t tag = 0;
        uint16_t length = 0;
        const unsigned char *bytes = NULL;
        if (rbi_reader_u16(reader, &tag) != 0 || rbi_reader_u16(reader, &length) != 0 ||
            rbi_reader_bytes(reader, length, &bytes) != 0) {
            return fail(fault, message, "a field reaches over the end of the frame");
        }
        const unsigned idx = find_field(table, tag);
        if (idx == table->count) {
            continue; /* of a later version */
        }
        const struct rbi_wire_field *field = &table->fields[idx];
        if (seen & UINT32_C(1) << idx) {
            return fail(fault, message, "field %s comes twice", field->name);
        }
        seen |= UINT32_C(1) << idx;
        struct rbi_reader value;
        rbi_reader_init(&value, bytes, length);
        const int r = decode_value(message, field, &value, structure, fault);
        if (r != 0) {
            return r;
        }
    }
    for (unsigned i = 0; i < table->count; i++) {
        if (table->fields[i].required && (seen & UINT32_C(1) << i) == 0) {
            return fail(fault, message, "field %s is missing", table->fields[i].name);
        }
    }
    return 0;
}

int rbi_wire_decode(const struct rbi_wire_header *header,
                    const void *frame,
                    union rbi_wire_body *out,
                    struct rbi_wire_fault *fault)
{
    const struct message *message = message_of(header->type);
    if (message == NULL) {
        return 1;
    }
    if (header->fd_count != message->fds) {
        return fail(fault, message, "%u descriptors, not %u", header->fd_count, message->fds);
    }
    union rbi_wire_body body;
    struct rbi_reader reader;
    memset(&body, 0, sizeof body);
    rbi_reader_init(&reader, (const unsigned char *)frame + RBI_WIRE_HEADER,
                    header->length - RBI_WIRE_HEADER);
    const int r = decode_fields(message, &reader, (unsigned char *)&body, fault);
    if (r != 0) {
        return r;
    }
    memcpy(out, &body, sizeof body);
    return 0;
}

/* ---- encoding --------------------------------------------------------------------------- */

/** Value of a number field, widened. */
static uint64_t number_of(const struct rbi_wire_field *field, const unsigned char *structure)
{
    const void *from = structure + field->offset;
    switch (kind_bytes(field->kind)) {
    case 1:
        return *(const uint8_t *)from;
    case 2:
        return *(const uint16_t *)from;
    case 4:
        return *(const uint32_t *)from;
    default:
        return *(const uint64_t *)from;
    }
}

static void encode_number(struct rbi_writer *writer, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        rbi_writer_u8(writer, (uint8_t)value);
        break;
    case 2:
        rbi_writer_u16(writer, (uint16_t)value);
        break;
    case 4:
        rbi_writer_u32(writer, (uint32_t)value);
        break;
    default:
        rbi_writer_u64(writer, value);
        break;
    }
}

/** Fields that are not required are left out when they say nothing. */
static void encode_field(struct rbi_writer *writer,
                         const struct rbi_wire_field *field,
                         const unsigned char *structure)
{
    if (field->kind == RBI_WIRE_KIND_text) {
        const struct rbi_text *text = (const void *)(structure + field->offset);
        RBI_ASSERT(text->length <= RBI_WIRE_TEXT_MAX);
        if (field->required || text->length != 0) {
            rbi_writer_u16(writer, field->tag);
            rbi_writer_u16(writer, text->length);
            rbi_writer_bytes(writer, text->bytes, text->length);
        }
        return;
    }
    if (field->kind == RBI_WIRE_KIND_data) {
        const struct rbi_data *data = (const void *)(structure + field->offset);
        RBI_ASSERT(data->length <= RBI_WIRE_DATA_MAX);
        if (field->required || data->length != 0) {
            rbi_writer_u16(writer, field->tag);
            rbi_writer_u16(writer, data->length);
            rbi_writer_bytes(writer, data->bytes, data->length);
        }
        return;
    }
    const uint64_t value = number_of(field, structure);
    if (field->required || value != 0) {
        const size_t bytes = kind_bytes(field->kind);
        rbi_writer_u16(writer, field->tag);
        rbi_writer_u16(writer, (uint16_t)bytes);
        encode_number(writer, bytes, value);
    }
}

size_t rbi_wire_encode(
    enum rbi_wire_type type, const void *body, uint32_t serial, uint32_t reply_to, void *frame)
{
    const struct message *message = message_of(type);
    RBI_ASSERT(message != NULL);
    struct rbi_writer writer;
    rbi_writer_init(&writer, frame, RBI_WIRE_FRAME_MAX);
    rbi_writer_u32(&writer, RBI_WIRE_MAGIC);
    rbi_writer_u32(&writer, 0); /* length: known at the end */
    rbi_writer_u16(&writer, (uint16_t)type);
    rbi_writer_u8(&writer, RBI_WIRE_PROTOCOL_MAX);
    rbi_writer_u8(&writer, (uint8_t)message->fds);
    rbi_writer_u32(&writer, serial);
    rbi_writer_u32(&writer, reply_to);
    rbi_writer_u32(&writer, 0);
    for (unsigned i = 0; i < message->table->count; i++) {
        encode_field(&writer, &message->table->fields[i], body);
    }
    struct rbi_writer length;
    rbi_writer_init(&length, (unsigned char *)frame + 4, 4);
    rbi_writer_u32(&length, (uint32_t)writer.used);
    return writer.used;
}

void rbi_text_set(struct rbi_text *text, const char *s)
{
    const size_t length = s == NULL ? 0 : strnlen(s, RBI_WIRE_TEXT_MAX);
    if (length != 0) {
        memcpy(text->bytes, s, length);
    }
    text->bytes[length] = 0;
    text->length = (uint16_t)length;
}

void rbi_text_format(struct rbi_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int wanted = vsnprintf(text->bytes, sizeof text->bytes, format, args);
    va_end(args);
    if (wanted < 0) {
        text->bytes[0] = 0;
    }
    text->length = (uint16_t)strnlen(text->bytes, RBI_WIRE_TEXT_MAX);
}
