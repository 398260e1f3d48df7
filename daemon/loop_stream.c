/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_stream.h"

#include "daemon/loop_backend.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/*
 * What all backends share, and streams by readiness: for epoll, and for an io_uring that has no
 * buffers to receive into.
 */

/* Pieces that one stream receives before the others have their turn. */
#define READ_BATCH 4U

static void stream_gone(void *context)
{
    struct rbi_loop_stream *stream = context;
    if (stream->operated) {
        rbi_loop_displace(&stream->source);
    }
    stream->ops->gone(stream->context);
}

void rbi_loop_stream_let_go(struct rbi_loop_stream *stream)
{
    rbi_loop_defer(stream->source.loop, &stream->task, stream_gone, stream);
}

/* ---- by readiness ---------------------------------------------------------------------- */

static void ready_want(struct rbi_loop_stream *stream)
{
    const bool in = stream->reading && !stream->at_end;
    rbi_loop_want(&stream->source, (in ? RBI_LOOP_IN : 0U) | (stream->sending ? RBI_LOOP_OUT : 0U));
}

static void ready_end(struct rbi_loop_stream *stream, int error)
{
    stream->at_end = true;
    ready_want(stream);
    stream->ops->ended(stream->context, error);
}

/** One piece. @return whether there may be more */
static bool ready_receive(struct rbi_loop_stream *stream)
{
    unsigned char *scratch = rbi_loop_scratch(stream->source.loop);
    if (!scratch) {
        ready_end(stream, -ENOMEM);
        return false;
    }
    const ssize_t got = recv(stream->source.fd, scratch, RBI_LOOP_STREAM_PIECE, MSG_DONTWAIT);
    if (got > 0) {
        stream->ops->received(stream->context, scratch, (size_t)got);
        return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        ready_end(stream, got == 0 ? 0 : -errno);
        return false;
    }
    return errno == EINTR;
}

static void ready_read(struct rbi_loop_stream *stream)
{
    for (unsigned i = 0; i < READ_BATCH; i++) {
        if (!ready_receive(stream) || stream->removed || !stream->reading) {
            return;
        }
    }
    rbi_loop_again(&stream->source);
}

static ssize_t ready_send(struct rbi_loop_stream *stream)
{
    const ssize_t sent = sendmsg(stream->source.fd, &stream->message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    return sent;
}

static void ready_write(struct rbi_loop_stream *stream)
{
    const ssize_t sent = ready_send(stream);
    if (sent != 0) {
        stream->sending = false;
        ready_want(stream);
        stream->ops->sent(stream->context, sent);
    }
}

static int pending_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

static void stream_ready(void *context, unsigned events)
{
    struct rbi_loop_stream *stream = context;
    if ((events & RBI_LOOP_OUT) && stream->sending) {
        ready_write(stream);
    }
    if (stream->removed || stream->at_end) {
        return;
    }
    if (stream->reading) {
        if (events & (RBI_LOOP_IN | RBI_LOOP_HUP)) {
            ready_read(stream);
        }
    } else if (events & RBI_LOOP_HUP) {
        /* Reported for as long as it is watched: whoever does not read is told that it is over. */
        ready_end(stream, -pending_error(stream->source.fd));
    }
}

/* ---- both ------------------------------------------------------------------------------ */

int rbi_loop_stream_add(struct rbi_loop *loop,
                        struct rbi_loop_stream *stream,
                        int fd,
                        const struct rbi_loop_stream_ops *ops,
                        void *context)
{
    void *state = NULL;
    const struct rbi_loop_backend *way = rbi_loop_way(loop, &state);
    *stream = (struct rbi_loop_stream){
        .source = {.fd = fd}, .ops = ops, .context = context, .reading = true};
    if (way->stream_add) {
        const int result = rbi_loop_place(loop, &stream->source);
        if (result < 0) {
            return result;
        }
        if (way->stream_add(state, stream) == 0) {
            stream->operated = true;
            return 0;
        }
        rbi_loop_displace(&stream->source);
    }
    return rbi_loop_add(loop, &stream->source, fd, RBI_LOOP_IN, stream_ready, stream);
}

void rbi_loop_stream_read(struct rbi_loop_stream *stream, bool on)
{
    if (stream->reading == on || stream->removed) {
        return;
    }
    stream->reading = on;
    if (stream->operated) {
        void *state = NULL;
        rbi_loop_way(stream->source.loop, &state)->stream_read(state, stream);
    } else {
        ready_want(stream);
    }
}

static void set_message(struct rbi_loop_stream *stream, const struct iovec *pieces, unsigned count)
{
    RBI_ASSERT(!stream->sending && !stream->removed && count >= 1 && count <= RBI_LOOP_STREAM_IOV);
    memcpy(stream->pieces, pieces, count * sizeof(*pieces));
    stream->message = (struct msghdr){.msg_iov = stream->pieces, .msg_iovlen = count};
}

ssize_t rbi_loop_stream_lend(struct rbi_loop_stream *stream,
                             const struct iovec *pieces,
                             unsigned count,
                             void *token)
{
    if (!stream->operated) {
        return -EAGAIN;
    }
    void *state = NULL;
    const struct rbi_loop_backend *way = rbi_loop_way(stream->source.loop, &state);
    set_message(stream, pieces, count);
    const ssize_t result = way->stream_lend(state, stream, token);
    stream->sending = result == 0;
    return result;
}

ssize_t
rbi_loop_stream_send(struct rbi_loop_stream *stream, const struct iovec *pieces, unsigned count)
{
    set_message(stream, pieces, count);
    ssize_t sent = 0;
    if (stream->operated) {
        void *state = NULL;
        sent = rbi_loop_way(stream->source.loop, &state)->stream_send(state, stream);
    } else {
        sent = ready_send(stream);
    }
    stream->sending = sent == 0;
    if (!stream->operated && stream->sending) {
        ready_want(stream);
    }
    return sent;
}

void rbi_loop_stream_remove(struct rbi_loop_stream *stream)
{
    struct rbi_loop *loop = stream->source.loop;
    if (!loop || stream->removed) {
        return;
    }
    stream->removed = true;
    if (stream->operated) {
        void *state = NULL;
        rbi_loop_way(loop, &state)->stream_remove(state, stream);
    } else {
        rbi_loop_remove(&stream->source);
        rbi_loop_defer(loop, &stream->task, stream_gone, stream);
    }
}
