/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_WIRE_CURSOR_H
#define RINGBUS_BUS_WIRE_CURSOR_H
/*
 * bus/wire_cursor.h - the only code that reads or writes bytes of a message: never
 * outside of what it was given, little-endian, no alignment assumed.
 *
 * A reader takes untrusted input: what does not fit is -EPROTO. A writer takes our own
 * structures into a buffer that is large enough by construction: what does not
 * fit is a broken invariant.
 */
#include "shm/base.h"

struct rbi_reader {
    const unsigned char *at;
    size_t left;
};

struct rbi_writer {
    unsigned char *begin;
    size_t used;
    size_t room; /* behind begin */
};

void rbi_reader_init(struct rbi_reader *reader, const void *data, size_t size);
/* 0; -EPROTO: not as many bytes, nothing is taken. */
RBI_MUST_CHECK int rbi_reader_u8(struct rbi_reader *reader, uint8_t *out);
RBI_MUST_CHECK int rbi_reader_u16(struct rbi_reader *reader, uint16_t *out);
RBI_MUST_CHECK int rbi_reader_u32(struct rbi_reader *reader, uint32_t *out);
RBI_MUST_CHECK int rbi_reader_u64(struct rbi_reader *reader, uint64_t *out);
/** Lends the next @p size bytes. */
RBI_MUST_CHECK int
rbi_reader_bytes(struct rbi_reader *reader, size_t size, const unsigned char **out);

void rbi_writer_init(struct rbi_writer *writer, void *buffer, size_t room);
void rbi_writer_u8(struct rbi_writer *writer, uint8_t value);
void rbi_writer_u16(struct rbi_writer *writer, uint16_t value);
void rbi_writer_u32(struct rbi_writer *writer, uint32_t value);
void rbi_writer_u64(struct rbi_writer *writer, uint64_t value);
void rbi_writer_bytes(struct rbi_writer *writer, const void *data, size_t size);

#endif
