/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_WIRE_STREAM_H
#define RINGBUS_BUS_WIRE_STREAM_H
/*
 * bus/wire_stream.h - puts frames together from packets that may hold pieces of
 * one, or several. Pure: the caller reads the socket and owns the descriptors.
 *
 * Bounded: one frame at most is buffered.
 */
#include "bus/wire.h"

struct rbi_wire_stream {
    size_t used; /* bytes in buf */
    size_t done; /* bytes in front that belong to frames given out; dropped by the next room() */
    unsigned char buf[2 * RBI_WIRE_FRAME_MAX] RBI_ALIGNED(8);
};

void rbi_wire_stream_init(struct rbi_wire_stream *stream);
/**
 * Where the next packet may be read to, and how many bytes fit: at least RBI_WIRE_FRAME_MAX once
 * rbi_wire_stream_next() has said RBI_WIRE_SHORT.
 */
void *rbi_wire_stream_room(struct rbi_wire_stream *stream, size_t *size);
/** @p size bytes were put there. */
void rbi_wire_stream_filled(struct rbi_wire_stream *stream, size_t size);
/**
 * Next whole frame.
 * @param frame  set on RBI_WIRE_DONE: valid until the next rbi_wire_stream_room()
 * @retval RBI_WIRE_DONE; RBI_WIRE_SHORT; -EPROTO the stream is poisoned: close it
 */
RBI_MUST_CHECK int rbi_wire_stream_next(struct rbi_wire_stream *stream,
                                        struct rbi_wire_header *header,
                                        const void **frame);
/** True while a frame has begun and not ended. */
bool rbi_wire_stream_partial(const struct rbi_wire_stream *stream);

#endif
