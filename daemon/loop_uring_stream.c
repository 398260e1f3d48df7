/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_uring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/*
 * Receive and send of streams by io_uring. One multishot receive a stream stays in the ring and
 * takes the buffers for what comes from a ring of buffers that all streams share. What a
 * completion has filled is handed out and given back before the next completion is looked at, so
 * at the next system call all buffers are free again: that bounds what is read a turn, and a
 * receive which found none (ENOBUFS, which ends it) finds some when it is asked anew.
 *
 * A stream that was removed keeps its place in the table, and its memory, until its last
 * completion: a send reads from memory until then, one without a copy for as long as the peer has
 * not acknowledged what it sent.
 */
#define BUFFERS      32U /* a power of two; all of them are what is read a turn */
#define BUFFER_GROUP 0U

/* Of Linux 6.2: the kernel says whether it had to copy. An older one refuses it, and copies. */
#define SEND_REPORT_USAGE (1U << 3)
#define NOTIF_COPIED      (1U << 31)

static void buffer_put(struct rbi_uring *state, unsigned id)
{
    io_uring_buf_ring_add(state->buffers, state->bytes + (size_t)id * RBI_LOOP_STREAM_PIECE,
                          RBI_LOOP_STREAM_PIECE, (unsigned short)id,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(state->buffers, 1);
}

void rbi_uring_give_back(struct rbi_uring *state, unsigned flags)
{
    buffer_put(state, flags >> IORING_CQE_BUFFER_SHIFT);
}

static size_t buffers_size(void)
{
    return RBI_PAGE + (size_t)BUFFERS * RBI_LOOP_STREAM_PIECE;
}

/** The buffers, once: those who have no streams need none. */
static int buffers_make(struct rbi_uring *state)
{
    _Static_assert(BUFFERS * sizeof(struct io_uring_buf) <= RBI_PAGE, "the ring is one page");
    if (state->buffers) {
        return 0;
    }
    void *memory =
        mmap(NULL, buffers_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)memory, .ring_entries = BUFFERS, .bgid = BUFFER_GROUP};
    const int result = io_uring_register_buf_ring(&state->ring, &reg, 0);
    if (result < 0) {
        (void)munmap(memory, buffers_size());
        return result;
    }
    state->buffers = memory;
    state->bytes = (unsigned char *)memory + RBI_PAGE;
    io_uring_buf_ring_init(state->buffers);
    for (unsigned id = 0; id < BUFFERS; id++) {
        buffer_put(state, id);
    }
    return 0;
}

void rbi_uring_streams_end(struct rbi_uring *state)
{
    if (!state->buffers) {
        return;
    }
    (void)io_uring_unregister_buf_ring(&state->ring, BUFFER_GROUP);
    (void)munmap(state->buffers, buffers_size());
    state->buffers = NULL;
}

static struct rbi_loop_stream *stream_of(struct rbi_loop_source *source)
{
    return RBI_CONTAINER_OF(source, struct rbi_loop_stream, source);
}

static void receive_arm(struct rbi_uring *state, struct rbi_loop_stream *stream)
{
    struct io_uring_sqe *sqe = rbi_uring_sqe(state);
    io_uring_prep_recv_multishot(sqe, stream->source.fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    io_uring_sqe_set_data64(sqe, rbi_uring_id(&stream->source, RBI_URING_RECEIVE));
    stream->receiving = true;
}

/** The owner may have removed it: nothing of it is in the ring any more, then. */
static void stream_settle(struct rbi_loop_stream *stream)
{
    if (stream->removed && !stream->receiving && !stream->sending && !stream->held) {
        rbi_loop_stream_let_go(stream);
    }
}

/** Whether a receive that ended so is to be asked for again, and not the end of the stream. */
static bool receive_passes(int result)
{
    return result == -ENOBUFS || result == -ECANCELED || result == -EINTR || result == -EAGAIN;
}

void rbi_uring_received(struct rbi_uring *state,
                        struct rbi_loop_source *source,
                        const struct rbi_uring_event *event)
{
    struct rbi_loop_stream *stream = stream_of(source);
    const bool over = !(event->flags & IORING_CQE_F_MORE);
    if (over) {
        stream->receiving = false;
    }
    const bool told = !stream->removed && !stream->at_end;
    if (event->result > 0) {
        const unsigned id = event->flags >> IORING_CQE_BUFFER_SHIFT;
        if (told) {
            stream->ops->received(stream->context,
                                  state->bytes + (size_t)id * RBI_LOOP_STREAM_PIECE,
                                  (size_t)event->result);
        }
        buffer_put(state, id);
    } else {
        if (event->flags & IORING_CQE_F_BUFFER) {
            rbi_uring_give_back(state, event->flags);
        }
        if (told && !receive_passes(event->result)) {
            stream->at_end = true;
            stream->ops->ended(stream->context, event->result);
        }
    }
    if (over && !stream->removed) {
        rbi_uring_stream_read(state, stream);
    }
    if (over) {
        stream_settle(stream);
    }
}

/** The kernel no longer holds the memory of a send without a copy. */
static void give_token(struct rbi_loop_stream *stream, unsigned slot, bool copied)
{
    stream->held &= ~(1U << slot);
    stream->ops->returned(stream->context, stream->tokens[slot], copied);
    stream_settle(stream);
}

/** Whether a kernel that refuses so would take the same with a copy. */
static bool needs_copy(int result)
{
    return result == -EINVAL || result == -EOPNOTSUPP || result == -ENOMEM || result == -ENOBUFS;
}

/**
 * A send without a copy completes twice: with what came of it, and when its memory is free. If the
 * first says that there is no second one, it was refused.
 */
static bool
lent(struct rbi_uring *state, struct rbi_loop_stream *stream, const struct rbi_uring_event *event)
{
    const unsigned slot = (unsigned)(event->id >> RBI_URING_SLOT_SHIFT) & RBI_URING_SLOT_MASK;
    if (event->flags & IORING_CQE_F_NOTIF) {
        give_token(stream, slot, (unsigned)event->result & NOTIF_COPIED);
        return true;
    }
    if (!stream->lending) {
        return false;
    }
    stream->lending = false;
    if (event->flags & IORING_CQE_F_MORE) {
        return false;
    }
    const bool again = needs_copy(event->result) && !stream->removed;
    if (again) {
        (void)rbi_uring_stream_send(state, stream);
    }
    give_token(stream, slot, true); /* what is sent with a copy is held by sent() */
    return again;
}

void rbi_uring_sent(struct rbi_uring *state,
                    struct rbi_loop_source *source,
                    const struct rbi_uring_event *event)
{
    struct rbi_loop_stream *stream = stream_of(source);
    if (lent(state, stream, event)) {
        return;
    }
    stream->sending = false;
    if (!stream->removed) {
        stream->ops->sent(stream->context, event->result);
    } else {
        stream_settle(stream);
    }
}

int rbi_uring_stream_add(void *opaque, struct rbi_loop_stream *stream)
{
    struct rbi_uring *state = opaque;
    const int result = buffers_make(state);
    if (result == 0) {
        receive_arm(state, stream);
    }
    return result;
}

void rbi_uring_stream_read(void *opaque, struct rbi_loop_stream *stream)
{
    struct rbi_uring *state = opaque;
    if (stream->at_end) {
        return;
    }
    if (stream->reading && !stream->receiving) {
        receive_arm(state, stream);
    } else if (!stream->reading && stream->receiving) {
        /* Its end is reported; if reading was wanted again by then, it is asked for anew. */
        rbi_uring_cancel(state, rbi_uring_id(&stream->source, RBI_URING_RECEIVE));
    }
}

ssize_t rbi_uring_stream_lend(void *opaque, struct rbi_loop_stream *stream, void *token)
{
    struct rbi_uring *state = opaque;
    const unsigned slot = (unsigned)__builtin_ctz(~stream->held);
    if (slot >= RBI_LOOP_STREAM_HELD) {
        return -EAGAIN;
    }
    stream->held |= 1U << slot;
    stream->tokens[slot] = token;
    stream->lending = true;
    stream->slot = (uint8_t)slot;
    struct io_uring_sqe *sqe = rbi_uring_sqe(state);
    io_uring_prep_sendmsg_zc(sqe, stream->source.fd, &stream->message, MSG_NOSIGNAL);
    sqe->ioprio |= SEND_REPORT_USAGE;
    io_uring_sqe_set_data64(sqe, rbi_uring_id(&stream->source, RBI_URING_SEND) |
                                     (uint64_t)slot << RBI_URING_SLOT_SHIFT);
    return 0;
}

ssize_t rbi_uring_stream_send(void *opaque, struct rbi_loop_stream *stream)
{
    struct rbi_uring *state = opaque;
    struct io_uring_sqe *sqe = rbi_uring_sqe(state);
    io_uring_prep_sendmsg(sqe, stream->source.fd, &stream->message, MSG_NOSIGNAL);
    io_uring_sqe_set_data64(sqe, rbi_uring_id(&stream->source, RBI_URING_SEND));
    return 0;
}

void rbi_uring_stream_remove(void *opaque, struct rbi_loop_stream *stream)
{
    struct rbi_uring *state = opaque;
    if (stream->receiving) {
        rbi_uring_cancel(state, rbi_uring_id(&stream->source, RBI_URING_RECEIVE));
    }
    if (stream->sending) {
        const uint64_t slot = stream->lending ? stream->slot : 0;
        rbi_uring_cancel(state, rbi_uring_id(&stream->source, RBI_URING_SEND) |
                                    slot << RBI_URING_SLOT_SHIFT);
    }
    stream_settle(stream);
}
