/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_uring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Reading is watched by a multishot poll for the life of a source; writing by a
 * single-shot poll while it is wanted. A multishot poll reports edges, hence the contract
 * in daemon/loop.h. The number of a request holds source, generation and kind, so that a
 * late completion of a removed source is recognised.
 */
#define URING_ENTRIES    256U
#define URING_CQ_ENTRIES 4096U
#define URING_BATCH      128U
#define SHORT_PAUSE_NS   1000000L

#define URING_ARMED_IN  0x1U
#define URING_ARMED_OUT 0x2U

static int uring_start(struct rbi_loop *loop, void **out)
{
    (void)loop;
    struct rbi_uring *state = calloc(1, sizeof(*state));
    if (!state) {
        return -ENOMEM;
    }
    /* These flags need Linux 6.1; what is older lacks multishot operations too and gets epoll. */
    struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
                                     .cq_entries = URING_CQ_ENTRIES};
    const int result = io_uring_queue_init_params(URING_ENTRIES, &state->ring, &params);
    if (result < 0) {
        free(state);
        return result;
    }
    /* The ring must not outlive the process in a child. */
    (void)io_uring_ring_dontfork(&state->ring);
    *out = state;
    return 0;
}

static void uring_end(void *opaque)
{
    struct rbi_uring *state = opaque;
    rbi_uring_streams_end(state);
    io_uring_queue_exit(&state->ring);
    free(state);
}

/** Whether the same call may work the next time. Where memory is short, not before a pause. */
static bool uring_passes(int error)
{
    const struct timespec pause = {.tv_nsec = SHORT_PAUSE_NS};
    if (error == -EAGAIN || error == -ENOMEM) {
        (void)nanosleep(&pause, NULL); /* instead of turning until there is some */
        return true;
    }
    return error == -EINTR || error == -EBUSY;
}

struct io_uring_sqe *rbi_uring_sqe(struct rbi_uring *state)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&state->ring);
    while (!sqe) {
        const int result = io_uring_submit(&state->ring);
        RBI_ASSERT(result >= 0 || uring_passes(result));
        sqe = io_uring_get_sqe(&state->ring);
    }
    return sqe;
}

static void uring_arm_in(struct rbi_uring *state, struct rbi_loop_source *source)
{
    struct io_uring_sqe *sqe = rbi_uring_sqe(state);
    io_uring_prep_poll_multishot(sqe, source->fd, POLLIN | POLLRDHUP);
    io_uring_sqe_set_data64(sqe, rbi_uring_id(source, RBI_URING_POLL_IN));
    source->armed |= URING_ARMED_IN;
}

static void uring_arm_out(struct rbi_uring *state, struct rbi_loop_source *source)
{
    struct io_uring_sqe *sqe = rbi_uring_sqe(state);
    io_uring_prep_poll_add(sqe, source->fd, POLLOUT);
    io_uring_sqe_set_data64(sqe, rbi_uring_id(source, RBI_URING_POLL_OUT));
    source->armed |= URING_ARMED_OUT;
}

void rbi_uring_cancel(struct rbi_uring *state, uint64_t id)
{
    struct io_uring_sqe *sqe = rbi_uring_sqe(state);
    io_uring_prep_cancel64(sqe, id, 0);
    io_uring_sqe_set_data64(sqe, RBI_URING_IGNORE);
}

static int uring_add(void *opaque, struct rbi_loop_source *source)
{
    struct rbi_uring *state = opaque;
    uring_arm_in(state, source);
    if (source->want & RBI_LOOP_OUT) {
        uring_arm_out(state, source);
    }
    return 0;
}

static void uring_change(void *opaque, struct rbi_loop_source *source)
{
    struct rbi_uring *state = opaque;
    if (source->want & RBI_LOOP_IN) {
        rbi_loop_again(source); /* the edge may have passed while nobody wanted it */
    }
    if ((source->want & RBI_LOOP_OUT) && !(source->armed & URING_ARMED_OUT)) {
        uring_arm_out(state, source);
    }
}

static void uring_remove(void *opaque, struct rbi_loop_source *source)
{
    struct rbi_uring *state = opaque;
    if (source->armed & URING_ARMED_IN) {
        rbi_uring_cancel(state, rbi_uring_id(source, RBI_URING_POLL_IN));
    }
    if (source->armed & URING_ARMED_OUT) {
        rbi_uring_cancel(state, rbi_uring_id(source, RBI_URING_POLL_OUT));
    }
    source->armed = 0;
}

static void uring_polled(struct rbi_uring *state,
                         struct rbi_loop_source *source,
                         const struct rbi_uring_event *event,
                         enum rbi_uring_kind kind)
{
    unsigned events = 0;
    if (kind == RBI_URING_POLL_OUT) {
        source->armed &= ~URING_ARMED_OUT;
    } else if (!(event->flags & IORING_CQE_F_MORE)) {
        source->armed &= ~URING_ARMED_IN;
    }
    if (event->result > 0) {
        const unsigned mask = (unsigned)event->result;
        if (mask & (POLLIN | POLLRDHUP | POLLHUP | POLLERR)) {
            events |= RBI_LOOP_IN;
        }
        if (mask & POLLOUT) {
            events |= RBI_LOOP_OUT;
        }
        if (mask & (POLLHUP | POLLERR)) {
            events |= RBI_LOOP_HUP;
        }
    } else if (event->result != -ECANCELED && event->result < 0) {
        events = RBI_LOOP_IN | RBI_LOOP_HUP; /* the reader finds out what is wrong */
    }
    /* Armed again before the callback: it may remove the source. */
    if (!(source->armed & URING_ARMED_IN) && !(events & RBI_LOOP_HUP)) {
        uring_arm_in(state, source);
    }
    if (kind == RBI_URING_POLL_OUT && (source->want & RBI_LOOP_OUT)) {
        uring_arm_out(state, source);
    }
    rbi_loop_dispatch(source, events);
}

static void
uring_handle(struct rbi_uring *state, struct rbi_loop *loop, const struct rbi_uring_event *event)
{
    const enum rbi_uring_kind kind = (enum rbi_uring_kind)(event->id & RBI_URING_KIND_MASK);
    struct rbi_loop_source *source = rbi_loop_lookup(
        loop, (uint32_t)event->id >> RBI_URING_IDX_SHIFT, (uint32_t)(event->id >> 32));
    if (kind == RBI_URING_IGNORE || !source) {
        if (event->flags & IORING_CQE_F_BUFFER) {
            rbi_uring_give_back(state, event->flags);
        }
    } else if (kind == RBI_URING_RECEIVE) {
        rbi_uring_received(state, source, event);
    } else if (kind == RBI_URING_SEND) {
        rbi_uring_sent(state, source, event);
    } else {
        uring_polled(state, source, event, kind);
    }
}

static unsigned uring_take(struct rbi_uring *state, struct rbi_uring_event *events)
{
    struct io_uring_cqe *cqes[URING_BATCH];
    const unsigned count = io_uring_peek_batch_cqe(&state->ring, cqes, URING_BATCH);
    for (unsigned i = 0; i < count; i++) {
        events[i] = (struct rbi_uring_event){
            .id = cqes[i]->user_data, .result = cqes[i]->res, .flags = cqes[i]->flags};
    }
    io_uring_cq_advance(&state->ring, count);
    return count;
}

/** Submits, and waits for a completion. A wait of no time would still cost a timer and a sleep. */
static int uring_enter(struct rbi_uring *state, uint64_t timeout_ns)
{
    struct io_uring_cqe *cqe = NULL;
    struct __kernel_timespec timeout = {.tv_sec = (long long)(timeout_ns / 1000000000U),
                                        .tv_nsec = (long long)(timeout_ns % 1000000000U)};
    return timeout_ns == 0
               ? io_uring_submit_and_get_events(&state->ring)
               : io_uring_submit_and_wait_timeout(&state->ring, &cqe, 1,
                                                  timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static int uring_turn(void *opaque, struct rbi_loop *loop, uint64_t timeout_ns)
{
    struct rbi_uring *state = opaque;
    struct rbi_uring_event events[URING_BATCH];
    const int result = uring_enter(state, timeout_ns);
    if (result < 0 && result != -ETIME && !uring_passes(result)) {
        return result;
    }
    rbi_loop_tick(loop);
    const unsigned count = uring_take(state, events);
    for (unsigned i = 0; i < count; i++) {
        uring_handle(state, loop, &events[i]);
    }
    return 0;
}

const struct rbi_loop_backend rbi_loop_uring = {
    .name = "io_uring",
    .start = uring_start,
    .end = uring_end,
    .add = uring_add,
    .change = uring_change,
    .remove = uring_remove,
    .wait = uring_turn,
    .stream_add = rbi_uring_stream_add,
    .stream_read = rbi_uring_stream_read,
    .stream_send = rbi_uring_stream_send,
    .stream_lend = rbi_uring_stream_lend,
    .stream_remove = rbi_uring_stream_remove,
};
