/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOOP_H
#define RINGBUS_DAEMON_LOOP_H
/*
 * daemon/loop.h - readiness of descriptors, timers and deferred work, over io_uring or
 * epoll. One thread; nothing blocks but the wait itself.
 *
 * Contract of the callbacks, so that both backends behave alike:
 *  - a reader takes all there is (until EAGAIN), or calls rbi_loop_again();
 *  - a call may be spurious: EAGAIN is not an error;
 *  - any callback may add and remove any source, its own included.
 */
#include "bus/config.h"

struct rbi_loop;

#define RBI_LOOP_IN  0x1U /* readable, or the other end is gone */
#define RBI_LOOP_OUT 0x2U /* writable */
#define RBI_LOOP_HUP 0x4U /* both directions have ended, or an error waits; always reported */

typedef void (*rbi_loop_ready_fn)(void *context, unsigned events);
typedef void (*rbi_loop_timer_fn)(void *context);
typedef void (*rbi_loop_task_fn)(void *context);
/** @param result  a non-blocking, close-on-exec descriptor, the callee's from now on, or -errno */
typedef void (*rbi_loop_accept_fn)(void *context, int result);

/** A watched descriptor; embed it. Private. */
struct rbi_loop_source {
    struct rbi_loop *loop; /* NULL: not watched */
    int fd;
    unsigned want;
    unsigned armed; /* what the backend has asked the kernel for */
    bool again;
    uint32_t idx; /* in the loop's table */
    uint32_t generation;
    rbi_loop_ready_fn ready;
    void *context;
    rbi_loop_accept_fn accepted; /* of a listening socket, with its context */
    void *accept_context;
    struct rbi_loop_source *next_again;
};

/** Embed it; zero-initialise. Private. */
struct rbi_loop_timer {
    uint64_t due_ns;
    uint32_t heap_idx; /* 1-based; 0 = not set */
    rbi_loop_timer_fn fn;
    void *context;
};

/** Embed it; zero-initialise. Private. */
struct rbi_loop_task {
    struct rbi_loop_task *next;
    bool queued;
    rbi_loop_task_fn fn;
    void *context;
};

/**
 * @param kind  AUTO prefers io_uring and falls back to epoll, with a log line that names
 *              the refused call
 * @retval 0; -errno
 */
RBI_MUST_CHECK int rbi_loop_new(struct rbi_loop **out, enum rbi_config_loop kind);
struct rbi_loop *rbi_loop_free(struct rbi_loop *loop);
/** "io_uring" or "epoll". */
const char *rbi_loop_backend(const struct rbi_loop *loop);

/** Watches @p fd (borrowed). @retval 0; -errno */
RBI_MUST_CHECK int rbi_loop_add(struct rbi_loop *loop,
                                struct rbi_loop_source *source,
                                int fd,
                                unsigned want,
                                rbi_loop_ready_fn ready,
                                void *context);
/**
 * Accepts connections on a listening socket, a few in a row: whoever is connected has its turn
 * between them, however many wait at the door.
 * @param fd  borrowed; non-blocking
 */
RBI_MUST_CHECK int rbi_loop_accept(struct rbi_loop *loop,
                                   struct rbi_loop_source *source,
                                   int fd,
                                   rbi_loop_accept_fn accepted,
                                   void *context);
/** Changes what is waited for; 0 pauses (a listening source too, RBI_LOOP_IN resumes it). */
void rbi_loop_want(struct rbi_loop_source *source, unsigned want);
/** Calls the source again with RBI_LOOP_IN after the others have had their turn. */
void rbi_loop_again(struct rbi_loop_source *source);
/** Ends watching; accepts one that is not watched. Close the descriptor after this. */
void rbi_loop_remove(struct rbi_loop_source *source);

/** Monotonic time of this turn. */
uint64_t rbi_loop_now_ns(const struct rbi_loop *loop);
/** Sets or moves a timer. One that cannot be kept for want of memory fires at once. */
void rbi_loop_timer_set(struct rbi_loop *loop,
                        struct rbi_loop_timer *timer,
                        uint64_t due_ns,
                        rbi_loop_timer_fn fn,
                        void *context);
void rbi_loop_timer_cancel(struct rbi_loop *loop, struct rbi_loop_timer *timer);
/** Runs @p fn once at the end of this turn. Queueing a queued task does nothing. */
void rbi_loop_defer(struct rbi_loop *loop,
                    struct rbi_loop_task *task,
                    rbi_loop_task_fn fn,
                    void *context);

/** Takes a task back; accepts one that is not queued. */
void rbi_loop_undefer(struct rbi_loop *loop, struct rbi_loop_task *task);

/** Runs until rbi_loop_stop(). @retval 0; -errno the kernel refused to wait */
RBI_MUST_CHECK int rbi_loop_run(struct rbi_loop *loop);
/** One turn that waits at most @p timeout_ns. For tests and orderly stop. */
RBI_MUST_CHECK int rbi_loop_turn(struct rbi_loop *loop, uint64_t timeout_ns);
void rbi_loop_stop(struct rbi_loop *loop);

#endif
