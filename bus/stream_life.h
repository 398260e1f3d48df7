/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_STREAM_LIFE_H
#define RINGBUS_BUS_STREAM_LIFE_H
/*
 * bus/stream_life.h - what the files of the life of a stream share: a function an input, and the
 * few ways to end. Nobody else includes it. None is called for a stream that is CLOSED.
 */
#include "bus/stream.h"

/* bus/stream_open.c */
void rbi_stream_on_way(struct rbi_stream *stream, struct rbi_stream_actions *out);
void rbi_stream_on_cut(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out);
void rbi_stream_on_open(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out);
void rbi_stream_on_opened(struct rbi_stream *stream,
                          const struct rbi_stream_input *input,
                          struct rbi_stream_actions *out);
void rbi_stream_on_refused(struct rbi_stream *stream,
                           const struct rbi_stream_input *input,
                           uint64_t now_ns,
                           struct rbi_stream_actions *out);
void rbi_stream_on_linked(struct rbi_stream *stream,
                          uint64_t now_ns,
                          struct rbi_stream_actions *out);
void rbi_stream_on_failed(struct rbi_stream *stream, int32_t code, struct rbi_stream_actions *out);

/* bus/stream_end.c */
void rbi_stream_on_left(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out);
void rbi_stream_on_sent(struct rbi_stream *stream, struct rbi_stream_actions *out);
void rbi_stream_on_close(struct rbi_stream *stream,
                         const struct rbi_stream_input *input,
                         struct rbi_stream_actions *out);
void rbi_stream_on_drained(struct rbi_stream *stream, struct rbi_stream_actions *out);

/** It is over; what the local end is told depends on how far it had come. */
void rbi_stream_finish(struct rbi_stream *stream,
                       enum rbi_reason reason,
                       uint64_t seen,
                       int32_t code,
                       struct rbi_stream_actions *out);
/** The same when nobody answers for what was sent and not acknowledged. */
void rbi_stream_give_up(struct rbi_stream *stream,
                        enum rbi_reason reason,
                        struct rbi_stream_actions *out);
/** The same, and the other side is told if it can be: it may believe in the stream. */
void rbi_stream_abort(struct rbi_stream *stream,
                      enum rbi_reason reason,
                      struct rbi_stream_actions *out);
void rbi_stream_send_close(struct rbi_stream *stream,
                           enum rbi_reason reason,
                           bool now,
                           struct rbi_stream_actions *out);
/** REFUSED, of this stream or another. */
void rbi_stream_refuse(const struct rbi_stream_id *id,
                       uint32_t attempt,
                       int32_t code,
                       bool forgotten,
                       struct rbi_stream_actions *out);

#endif
