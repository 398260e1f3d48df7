/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_UPLINK_H
#define RINGBUS_DAEMON_BRIDGE_UPLINK_H
/*
 * daemon/bridge/uplink.h - a connection to the daemon of this host, kept up: connects with
 * back-off and full jitter, says HELLO, frames out (queued when the socket is full) and in.
 *
 *   OFF --connect--> HELLO --HELLO_OK--> ON --lost--> OFF
 *
 * Threads: the loop's. No call waits. on_lost() may come from inside rbi_uplink_send() and
 * rbi_uplink_drop(), the others from the loop only.
 */
#include "bus/wire.h"
#include "bus/wire_stream.h"
#include "daemon/loop.h"
#include "shm/handoff.h"

struct rbi_uplink;

/** All are set, and may call anything, rbi_uplink_deinit() included. */
struct rbi_uplink_events {
    /** HELLO_OK came: say who we are. @p fds holds the directory's, to be taken or left. */
    void (*on_hello)(struct rbi_uplink *uplink,
                     const struct rbi_wire_hello_ok *body,
                     struct rbi_fdlist *fds);
    /** Any other frame; @p fds are its own, to be taken or left. */
    void (*on_frame)(struct rbi_uplink *uplink,
                     const struct rbi_wire_header *header,
                     const union rbi_wire_body *body,
                     struct rbi_fdlist *fds);
    /** It was ON, and is no more. What waited to be sent is dropped. */
    void (*on_lost)(struct rbi_uplink *uplink, const char *why);
};

struct rbi_uplink_frame;

/** Embed it; members are private. */
struct rbi_uplink {
    struct rbi_loop *loop;
    const char *path;    /* of the daemon's socket; lent */
    const char *program; /* as it calls itself; lent */
    const struct rbi_uplink_events *events;
    int sock;       /* -1: OFF */
    bool on;        /* HELLO_OK came */
    bool *watchman; /* set by deinit while frames are handled; NULL: none are */
    uint32_t protocol;
    uint32_t serial;
    uint32_t tries; /* in a row */
    struct rbi_loop_source source;
    struct rbi_loop_timer timer; /* OFF: to connect; HELLO: for the answer */
    struct rbi_uplink_frame *out_first;
    struct rbi_uplink_frame **out_last;
    uint32_t out_count;
    struct rbi_fdlist fds; /* of the frame that has begun */
    struct rbi_wire_stream stream;
};

/** Nothing happens before rbi_uplink_start(). */
void rbi_uplink_init(struct rbi_uplink *uplink,
                     struct rbi_loop *loop,
                     const char *path,
                     const char *program,
                     const struct rbi_uplink_events *events);
/** Connects with the next turn of the loop, and from then on whenever it is lost. */
void rbi_uplink_start(struct rbi_uplink *uplink);
/** Ends it, without a callback; accepts one that was only initialised. */
void rbi_uplink_deinit(struct rbi_uplink *uplink);

/** Whether frames may be sent. */
static inline bool rbi_uplink_is_on(const struct rbi_uplink *uplink)
{
    return uplink->on;
}

/**
 * Sends a frame, or queues it.
 * @param fds  borrowed
 * @return its serial; 0: not ON, or lost by it (on_lost() was called), or the daemon is too old
 */
uint32_t rbi_uplink_send(struct rbi_uplink *uplink,
                         enum rbi_wire_type type,
                         const void *body,
                         const int *fds,
                         unsigned fd_count);

/** We are in: the next loss begins with a short back-off again. */
static inline void rbi_uplink_settled(struct rbi_uplink *uplink)
{
    uplink->tries = 0;
}

/** Gives the connection up and tries anew, with back-off: the daemon said what cannot be. */
void rbi_uplink_drop(struct rbi_uplink *uplink, const char *why);

#endif
