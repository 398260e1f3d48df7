/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_FRAME_FIELD_H
#define RINGBUS_BUS_FRAME_FIELD_H
/*
 * bus/frame_field.h - what drives the codec of bus/frame.h: how each kind of field lies on the
 * wire, and the fields of each type, in order, made from its list.
 */
#include "bus/frame.h"
#include "bus/wire_cursor.h"

/* X(kind, size, layout): for the tables of docs/internals/wire.md. The size is "n.." where it
 * varies. */
#define RBI_FRAME_KINDS(X)                                                                         \
    X(u8, "1", "u8")                                                                               \
    X(u16, "2", "u16")                                                                             \
    X(u32, "4", "u32")                                                                             \
    X(i32, "4", "i32, two's complement")                                                           \
    X(u64, "8", "u64")                                                                             \
    X(host, "2..64", "length u8, 1..63 | bytes `[a-z0-9.-]`")                                      \
    X(text, "1..256", "length u8 | bytes without NUL")                                             \
    X(edge_list, "1..", "count u8, 0..64 | count x (id of the name u64 | cost u32 | name host)")   \
    X(envelope, "20..84",                                                                          \
      "from u64 | to u64 | hops u8, 0..8 | visited u8, 0..8 | zero u16 | visited x u64")           \
    X(stream, "16", "life u64, not 0 | number u64, not 0")                                         \
    X(endpoint, "17..272",                                                                         \
      "length of the path u8 | path | cluster u64 | instance i32 | incarnation u32")               \
    X(item, "48..492",                                                                             \
      "incarnation u64, not 0 | revision u64 | flags u32: 1 FIRST, 2 LAST, 4 REMOVED | number "    \
      "u32 "                                                                                       \
      "| length of the path u8 | path | incarnation of the instance u32 | state u32 | health u32 " \
      "| weight u32 | reported u32 | set, idc, tags: length u8, 0..63 | bytes")                    \
    X(trace, "16", "16 bytes")                                                                     \
    X(rest, "0..", "what is left of the body")

enum rbi_frame_kind {
#define RBI_FRAME_KIND_ENUM(kind, size, layout) RBI_FRAME_KIND_##kind,
    RBI_FRAME_KINDS(RBI_FRAME_KIND_ENUM)
#undef RBI_FRAME_KIND_ENUM
        RBI_FRAME_KIND_COUNT
};

struct rbi_frame_field {
    enum rbi_frame_kind kind;
    uint32_t offset; /* in the structure of its type */
    const char *name;
};

struct rbi_frame_table {
    const char *name; /* of the type; NULL: not known */
    const struct rbi_frame_field *fields;
    unsigned count;
    size_t size; /* of the structure */
};

/** Table of a type, or NULL. */
const struct rbi_frame_table *rbi_frame_table(unsigned type);

/** Reads a field into zeroed memory of its kind. @return NULL, or what is wrong with it */
const char *rbi_frame_field_read(enum rbi_frame_kind kind, struct rbi_reader *reader, void *field);
void rbi_frame_field_write(enum rbi_frame_kind kind, struct rbi_writer *writer, const void *field);

/** Looks at all fields of a frame together. @return NULL, or the field that is out of range */
const char *rbi_frame_check(const struct rbi_frame_header *header,
                            const union rbi_frame_body *body);
/** Whether a frame has as much of a record as it says: the same without the table. */
bool rbi_frame_data_valid(unsigned flags, const struct rbi_frame_data *data);

#endif
