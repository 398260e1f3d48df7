/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/wire_cursor.h"

#include <errno.h>
#include <string.h>

void rbi_reader_init(struct rbi_reader *reader, const void *data, size_t size)
{
    reader->at = data;
    reader->left = size;
}

int rbi_reader_bytes(struct rbi_reader *reader, size_t size, const unsigned char **out)
{
    if (size > reader->left) {
        return -EPROTO;
    }
    *out = reader->at;
    reader->at += size;
    reader->left -= size;
    return 0;
}

static int take(struct rbi_reader *reader, unsigned size, uint64_t *out)
{
    const unsigned char *bytes = NULL;
    const int r = rbi_reader_bytes(reader, size, &bytes);
    if (r != 0) {
        return r;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    *out = value;
    return 0;
}

int rbi_reader_u8(struct rbi_reader *reader, uint8_t *out)
{
    uint64_t value = 0;
    const int r = take(reader, 1, &value);
    if (r == 0) {
        *out = (uint8_t)value;
    }
    return r;
}

int rbi_reader_u16(struct rbi_reader *reader, uint16_t *out)
{
    uint64_t value = 0;
    const int r = take(reader, 2, &value);
    if (r == 0) {
        *out = (uint16_t)value;
    }
    return r;
}

int rbi_reader_u32(struct rbi_reader *reader, uint32_t *out)
{
    uint64_t value = 0;
    const int r = take(reader, 4, &value);
    if (r == 0) {
        *out = (uint32_t)value;
    }
    return r;
}

int rbi_reader_u64(struct rbi_reader *reader, uint64_t *out)
{
    return take(reader, 8, out);
}

void rbi_writer_init(struct rbi_writer *writer, void *buffer, size_t room)
{
    writer->begin = buffer;
    writer->used = 0;
    writer->room = room;
}

static void put(struct rbi_writer *writer, unsigned size, uint64_t value)
{
    RBI_ASSERT(size <= writer->room - writer->used);
    for (unsigned i = 0; i < size; i++) {
        writer->begin[writer->used++] = (unsigned char)(value >> (8 * i));
    }
}

void rbi_writer_u8(struct rbi_writer *writer, uint8_t value)
{
    put(writer, 1, value);
}

void rbi_writer_u16(struct rbi_writer *writer, uint16_t value)
{
    put(writer, 2, value);
}

void rbi_writer_u32(struct rbi_writer *writer, uint32_t value)
{
    put(writer, 4, value);
}

void rbi_writer_u64(struct rbi_writer *writer, uint64_t value)
{
    put(writer, 8, value);
}

void rbi_writer_bytes(struct rbi_writer *writer, const void *data, size_t size)
{
    RBI_ASSERT(size <= writer->room - writer->used);
    if (size != 0) {
        memcpy(writer->begin + writer->used, data, size);
        writer->used += size;
    }
}
