/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOOP_URING_H
#define RINGBUS_DAEMON_LOOP_URING_H
/*
 * daemon/loop_uring.h - what loop_uring.c (polls, the turn) and loop_uring_stream.c (receive and
 * send) share. Private to them.
 */
#include "daemon/loop_backend.h"

#include <liburing.h>

/*
 * The number of a request holds generation, place in the table and kind of its source, so that a
 * late completion of one that was removed is recognised.
 */
enum rbi_uring_kind {
    RBI_URING_POLL_IN = 0,
    RBI_URING_POLL_OUT = 1,
    RBI_URING_RECEIVE = 2,
    RBI_URING_SEND = 3,
    RBI_URING_IGNORE = 7,
};
#define RBI_URING_KIND_MASK  7U
#define RBI_URING_SLOT_SHIFT 3U /* which of the sends of a stream whose memory the kernel holds */
#define RBI_URING_SLOT_MASK  7U
#define RBI_URING_IDX_SHIFT  6U

struct rbi_uring {
    struct io_uring ring;
    /* Buffers that all streams receive into; NULL until there is a stream. */
    struct io_uring_buf_ring *buffers;
    unsigned char *bytes;
};

struct rbi_uring_event {
    uint64_t id;
    int result;
    unsigned flags;
};

static inline uint64_t rbi_uring_id(const struct rbi_loop_source *source, enum rbi_uring_kind kind)
{
    return (uint64_t)source->generation << 32 | (uint64_t)source->idx << RBI_URING_IDX_SHIFT |
           (uint64_t)kind;
}

/** A free entry of the submission queue; submits what is there when it is full. */
struct io_uring_sqe *rbi_uring_sqe(struct rbi_uring *state);
void rbi_uring_cancel(struct rbi_uring *state, uint64_t id);

/* loop_uring_stream.c */
void rbi_uring_streams_end(struct rbi_uring *state);
void rbi_uring_give_back(struct rbi_uring *state, unsigned flags);
void rbi_uring_received(struct rbi_uring *state,
                        struct rbi_loop_source *source,
                        const struct rbi_uring_event *event);
void rbi_uring_sent(struct rbi_uring *state,
                    struct rbi_loop_source *source,
                    const struct rbi_uring_event *event);
RBI_MUST_CHECK int rbi_uring_stream_add(void *opaque, struct rbi_loop_stream *stream);
void rbi_uring_stream_read(void *opaque, struct rbi_loop_stream *stream);
ssize_t rbi_uring_stream_send(void *opaque, struct rbi_loop_stream *stream);
ssize_t rbi_uring_stream_lend(void *opaque, struct rbi_loop_stream *stream, void *token);
void rbi_uring_stream_remove(void *opaque, struct rbi_loop_stream *stream);

#endif
