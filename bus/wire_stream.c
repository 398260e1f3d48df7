/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/wire_stream.c - frames out of packets. Frames that were given out stay in front
 * of the buffer, counted by `done`, and are dropped together: once a packet, not
 * once a frame.
 */
#include "bus/wire_stream.h"

#include <errno.h>
#include <string.h>

void rbi_wire_stream_init(struct rbi_wire_stream *stream)
{
    stream->used = 0;
    stream->done = 0;
}

static void drop_done(struct rbi_wire_stream *stream)
{
    if (stream->done != 0) {
        memmove(stream->buf, stream->buf + stream->done, stream->used - stream->done);
        stream->used -= stream->done;
        stream->done = 0;
    }
}

void *rbi_wire_stream_room(struct rbi_wire_stream *stream, size_t *size)
{
    drop_done(stream);
    *size = sizeof stream->buf - stream->used;
    return stream->buf + stream->used;
}

void rbi_wire_stream_filled(struct rbi_wire_stream *stream, size_t size)
{
    RBI_ASSERT(size <= sizeof stream->buf - stream->used);
    stream->used += size;
}

int rbi_wire_stream_next(struct rbi_wire_stream *stream,
                         struct rbi_wire_header *header,
                         const void **frame)
{
    struct rbi_wire_header found;
    const size_t left = stream->used - stream->done;
    const unsigned char *at = stream->buf + stream->done;
    const int r = rbi_wire_header_decode(at, left, &found);
    if (r != RBI_WIRE_DONE) {
        return r;
    }
    if (found.length > left) {
        return RBI_WIRE_SHORT;
    }
    stream->done += found.length;
    *header = found;
    *frame = at;
    return RBI_WIRE_DONE;
}

bool rbi_wire_stream_partial(const struct rbi_wire_stream *stream)
{
    return stream->used > stream->done;
}
