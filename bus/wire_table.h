/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_WIRE_TABLE_H
#define RINGBUS_BUS_WIRE_TABLE_H
/*
 * bus/wire_table.h - what drives encoding and decoding: one table a message, made
 * from its field list in bus/wire.h. To add a message: its line and field list
 * there, and its table in the file of its family.
 */
#include "bus/wire.h"

enum rbi_wire_kind {
    RBI_WIRE_KIND_u8,
    RBI_WIRE_KIND_u16,
    RBI_WIRE_KIND_u32,
    RBI_WIRE_KIND_i32,
    RBI_WIRE_KIND_u64,
    RBI_WIRE_KIND_text,
    RBI_WIRE_KIND_data,
};

/** Fields that one message may have: a bit each while decoding. */
#define RBI_WIRE_FIELDS_MAX 32U

struct rbi_wire_field {
    uint16_t tag;
    uint16_t kind;   /* enum rbi_wire_kind */
    uint32_t offset; /* in the message's structure */
    bool required;
    const char *name;
};

struct rbi_wire_table {
    const struct rbi_wire_field *fields;
    unsigned count;
};

#define RBI_WIRE_EXTERN(NAME, name, value, fds)                                                    \
    extern const struct rbi_wire_table rbi_wire_table_##name;
RBI_WIRE_TYPES(RBI_WIRE_EXTERN)
#undef RBI_WIRE_EXTERN

/* The field list names no structure; RBI_WIRE_OF does while a table is made. */
#define RBI_WIRE_FIELD(type, field, number, needed)                                                \
    {                                                                                              \
        .tag = (number),                                                                           \
        .kind = RBI_WIRE_KIND_##type,                                                              \
        .offset = (uint32_t)offsetof(struct RBI_WIRE_OF, field),                                   \
        .required = (needed),                                                                      \
        .name = #field,                                                                            \
    },

/** Defines the table of one message; RBI_WIRE_OF is the tag of its structure. */
#define RBI_WIRE_TABLE(message)                                                                    \
    static const struct rbi_wire_field message##_fields[] = {                                      \
        RBI_WIRE_FIELDS_##message(RBI_WIRE_FIELD)};                                                \
    _Static_assert(RBI_ARRAY_SIZE(message##_fields) <= RBI_WIRE_FIELDS_MAX, "too many fields");    \
    const struct rbi_wire_table rbi_wire_table_##message = {                                       \
        .fields = message##_fields,                                                                \
        .count = RBI_ARRAY_SIZE(message##_fields),                                                 \
    }

#endif
