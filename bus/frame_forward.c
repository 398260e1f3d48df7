/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/frame_forward.c - frames that are handed on from one connection to another. Only what changes
 * is understood: the envelope, which such a body begins with, and behind it, in OPEN and OPENED,
 * the name of the stream and the sender's handle.
 */
#include "bus/frame.h"
#include "bus/frame_field.h"

#include <errno.h>
#include <string.h>

#define STREAM_BYTES 16U

bool rbi_frame_has_envelope(unsigned type)
{
    const struct rbi_frame_table *table = rbi_frame_table(type);
    return table != NULL && table->fields[0].kind == RBI_FRAME_KIND_envelope;
}

static int read_envelope(struct rbi_reader *reader,
                         const struct rbi_frame_header *header,
                         const void *body,
                         struct rbi_frame_envelope *out)
{
    struct rbi_frame_envelope envelope = {0};
    rbi_reader_init(reader, body, header->size);
    if (!rbi_frame_has_envelope(header->type) ||
        rbi_frame_field_read(RBI_FRAME_KIND_envelope, reader, &envelope) != NULL) {
        return -EPROTO;
    }
    *out = envelope;
    return 0;
}

int rbi_frame_envelope(const struct rbi_frame_header *header,
                       const void *body,
                       struct rbi_frame_envelope *out)
{
    struct rbi_reader reader;
    return read_envelope(&reader, header, body, out);
}

/** Another hop, by us. False: none is left, or it came here before. */
static bool take_hop(struct rbi_frame_envelope *envelope, uint64_t self)
{
    if (envelope->hops == 0 || envelope->visited_count == RBI_FRAME_HOPS_MAX ||
        envelope->from == self || envelope->to == self) {
        return false;
    }
    for (unsigned i = 0; i < envelope->visited_count; i++) {
        if (envelope->visited[i] == self) {
            return false;
        }
    }
    envelope->hops--;
    envelope->visited[envelope->visited_count++] = self;
    return true;
}

int rbi_frame_forward(const struct rbi_frame_header *header,
                      const void *body,
                      uint64_t self,
                      uint32_t handle,
                      uint32_t ours,
                      void *out,
                      size_t *size)
{
    struct rbi_reader reader;
    struct rbi_frame_envelope envelope;
    const unsigned char *stream = NULL;
    uint32_t theirs = 0;
    int r = read_envelope(&reader, header, body, &envelope);
    const bool numbered = header->type == RBI_FRAME_OPEN || header->type == RBI_FRAME_OPENED;
    if (r == 0 && numbered) {
        r = rbi_reader_bytes(&reader, STREAM_BYTES, &stream);
        r |= rbi_reader_u32(&reader, &theirs);
    }
    /* What is handed on has room for one visited more; nobody sends as much as that. */
    if (r != 0 || header->size > RBI_FRAME_CONTROL_MAX - RBI_FRAME_HEADER - 8) {
        return -EPROTO;
    }
    if (!take_hop(&envelope, self)) {
        return RBI_FRAME_DROPPED;
    }
    struct rbi_writer writer;
    rbi_writer_init(&writer, out, RBI_FRAME_CONTROL_MAX);
    rbi_writer_u32(&writer, header->size + 8);
    rbi_writer_u8(&writer, header->type);
    rbi_writer_u8(&writer, header->flags);
    rbi_writer_u16(&writer, 0);
    rbi_writer_u32(&writer, handle);
    rbi_writer_u32(&writer, header->mark);
    rbi_frame_field_write(RBI_FRAME_KIND_envelope, &writer, &envelope);
    if (numbered) {
        rbi_writer_bytes(&writer, stream, STREAM_BYTES);
        rbi_writer_u32(&writer, ours);
    }
    rbi_writer_bytes(&writer, reader.at, reader.left);
    *size = writer.used;
    return RBI_FRAME_WHOLE;
}
