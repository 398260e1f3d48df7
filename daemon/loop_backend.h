/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOOP_BACKEND_H
#define RINGBUS_DAEMON_LOOP_BACKEND_H
/*
 * daemon/loop_backend.h - what a way of waiting must offer to daemon/loop.c. Private to
 * the loop's own files.
 */
#include "daemon/loop_stream.h"

struct rbi_loop_backend {
    const char *name;
    RBI_MUST_CHECK int (*start)(struct rbi_loop *loop, void **state);
    void (*end)(void *state);
    /** Begins to watch source->fd for source->want. */
    RBI_MUST_CHECK int (*add)(void *state, struct rbi_loop_source *source);
    /** source->want has changed. */
    void (*change)(void *state, struct rbi_loop_source *source);
    void (*remove)(void *state, struct rbi_loop_source *source);
    /** Waits up to @p timeout_ns (UINT64_MAX: for ever) and hands out what came. */
    RBI_MUST_CHECK int (*wait)(void *state, struct rbi_loop *loop, uint64_t timeout_ns);
    /**
     * Operations of streams, all or none: NULL leaves them to readiness (loop_stream.c).
     * @retval -errno  this kernel has no such operations, or no memory: readiness as well
     */
    int (*stream_add)(void *state, struct rbi_loop_stream *stream);
    /** stream->reading has changed. */
    void (*stream_read)(void *state, struct rbi_loop_stream *stream);
    /** Of stream->message. */
    ssize_t (*stream_send)(void *state, struct rbi_loop_stream *stream);
    /** The same, without a copy. @retval -EAGAIN  too much is held */
    ssize_t (*stream_lend)(void *state, struct rbi_loop_stream *stream, void *token);
    /** rbi_loop_stream_let_go() follows once nothing is under way. */
    void (*stream_remove)(void *state, struct rbi_loop_stream *stream);
};

extern const struct rbi_loop_backend rbi_loop_epoll;
extern const struct rbi_loop_backend rbi_loop_uring;

/** Source with this number and generation, or NULL when it was removed meanwhile. */
struct rbi_loop_source *
rbi_loop_lookup(const struct rbi_loop *loop, uint32_t idx, uint32_t generation);
/** Tells a source what happened; it may be gone afterwards. */
void rbi_loop_dispatch(struct rbi_loop_source *source, unsigned events);
/** Gives a source a place in the table, without anything being watched. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_loop_place(struct rbi_loop *loop, struct rbi_loop_source *source);
/** Takes it away: what still comes under its number is nobody's. */
void rbi_loop_displace(struct rbi_loop_source *source);
const struct rbi_loop_backend *rbi_loop_way(const struct rbi_loop *loop, void **state);
/** RBI_LOOP_STREAM_PIECE bytes for one piece at a time; NULL: out of memory. */
unsigned char *rbi_loop_scratch(struct rbi_loop *loop);
/** The kernel holds nothing of a removed stream: it is gone at the end of a turn. */
void rbi_loop_stream_let_go(struct rbi_loop_stream *stream);

/** Takes the time anew: called after each wait. */
void rbi_loop_tick(struct rbi_loop *loop);

#endif
