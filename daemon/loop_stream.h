/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOOP_STREAM_H
#define RINGBUS_DAEMON_LOOP_STREAM_H
/*
 * daemon/loop_stream.h - bytes of a connected stream socket, in and out, as operations of the loop.
 * With io_uring the kernel puts what comes into buffers that all streams of the loop share
 * (multishot receive), and sends beside the loop; with epoll both are tried when the socket is
 * ready. Callers see no difference:
 *  - one send is under way at a time, and its memory is the loop's until sent() was called;
 *  - reading is bounded a turn, so that each stream has its turn;
 *  - any callback may do anything with any stream, its own included.
 */
#include "daemon/loop.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/** A piece of what has come, at most. */
#define RBI_LOOP_STREAM_PIECE 65536U
/** Pieces of memory of one send, at most. */
#define RBI_LOOP_STREAM_IOV 16U
/** Sends without a copy whose memory the kernel still holds, at most. */
#define RBI_LOOP_STREAM_HELD 8U

struct rbi_loop_stream_ops {
    /** @param bytes  1 to RBI_LOOP_STREAM_PIECE; valid until the callee returns */
    void (*received)(void *context, const unsigned char *bytes, size_t size);
    /** The send is over. @param result  bytes that the kernel took, maybe not all; or -errno */
    void (*sent)(void *context, ssize_t result);
    /**
     * Memory of rbi_loop_stream_lend() is the caller's again, but for what sent() still holds.
     * @param copied  the kernel has copied it all the same: nothing was won
     */
    void (*returned)(void *context, void *token, bool copied);
    /** Nothing more comes. @param error  0 the peer has ended its direction; or -errno */
    void (*ended)(void *context, int error);
    /** After rbi_loop_stream_remove(): the kernel holds nothing of it any more. */
    void (*gone)(void *context);
};

/** Embed it; zero-initialise. Private. */
struct rbi_loop_stream {
    struct rbi_loop_source source; /* its place in the loop's table; with epoll its readiness */
    const struct rbi_loop_stream_ops *ops;
    void *context;
    bool operated;  /* by operations of the backend, not by readiness */
    bool reading;   /* the owner wants bytes */
    bool receiving; /* operated: a receive is in the ring */
    bool sending;   /* a send is under way */
    bool at_end;    /* ended() was called */
    bool removed;   /* gone() comes once the kernel has let go of it */
    bool lending;   /* the send under way is one without a copy */
    uint8_t slot;   /* of that */
    uint32_t held;  /* bit i: the kernel holds the memory of tokens[i] */
    void *tokens[RBI_LOOP_STREAM_HELD];
    struct msghdr message;
    struct iovec pieces[RBI_LOOP_STREAM_IOV];
    struct rbi_loop_task task;
};

/**
 * Begins to read.
 * @param fd  connected, non-blocking; borrowed until gone()
 * @retval 0; -errno
 */
RBI_MUST_CHECK int rbi_loop_stream_add(struct rbi_loop *loop,
                                       struct rbi_loop_stream *stream,
                                       int fd,
                                       const struct rbi_loop_stream_ops *ops,
                                       void *context);
/**
 * Reads on, or no more. What is on its way still comes: at most 2 MiB. Of the end of one that does
 * not read the owner may hear when it reads on only.
 */
void rbi_loop_stream_read(struct rbi_loop_stream *stream, bool on);
/**
 * Sends; no other is under way.
 * @param pieces  copied; what they point to stays until sent()
 * @param count   1..RBI_LOOP_STREAM_IOV
 * @return bytes that the kernel has taken at once, maybe not all; 0: it is under way, sent()
 *         follows, not from here; -errno
 */
RBI_MUST_CHECK ssize_t rbi_loop_stream_send(struct rbi_loop_stream *stream,
                                            const struct iovec *pieces,
                                            unsigned count);
/**
 * The same without a copy, where that can be: the memory stays until returned(), which comes once
 * for each call that did not return -EAGAIN, as a rule long after sent(). A kernel that cannot is
 * given the same with a copy.
 * @param token  for returned()
 * @retval 0        under way; sent() follows
 * @retval -EAGAIN  not here: by epoll, or too much is held. Use rbi_loop_stream_send()
 */
RBI_MUST_CHECK ssize_t rbi_loop_stream_lend(struct rbi_loop_stream *stream,
                                            const struct iovec *pieces,
                                            unsigned count,
                                            void *token);
/**
 * Ends it: no callback but returned() and gone(), at the end of this turn or a later one. The
 * caller closes the descriptor there; to end the connection before that, it shuts it down. Accepts
 * one that is not of a loop, and calls nothing then.
 */
void rbi_loop_stream_remove(struct rbi_loop_stream *stream);

#endif
