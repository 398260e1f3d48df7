/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOOP_BACKEND_H
#define RINGBUS_DAEMON_LOOP_BACKEND_H
/*
 * daemon/loop_backend.h - what a way of waiting must offer to daemon/loop.c. Private to
 * the loop's own files.
 */
#include "daemon/loop.h"

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
};

extern const struct rbi_loop_backend rbi_loop_epoll;
extern const struct rbi_loop_backend rbi_loop_uring;

/** Source with this number and generation, or NULL when it was removed meanwhile. */
struct rbi_loop_source *
rbi_loop_lookup(const struct rbi_loop *loop, uint32_t idx, uint32_t generation);
/** Tells a source what happened; it may be gone afterwards. */
void rbi_loop_dispatch(struct rbi_loop_source *source, unsigned events);
/** Takes the time anew: called after each wait. */
void rbi_loop_tick(struct rbi_loop *loop);

#endif
