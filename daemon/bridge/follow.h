/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_FOLLOW_H
#define RINGBUS_DAEMON_BRIDGE_FOLLOW_H
/*
 * daemon/bridge/follow.h - messages that are followed (bus/record_follow.h): the bridge that takes
 * one from a lane, those that hand it on, and the one that puts it into a lane each send HOP to the
 * host where it was sent, or where the request of an answer was. The bridge there passes on what is
 * about messages that it has taken itself, and nothing else, to the daemon.
 *
 * Only records with the mark, and what passes a stream while an answer to one is awaited, pay
 * anything. No more than RBI_FOLLOW_RATE frames a second are sent; more are counted, and dropped.
 */
#include "bus/frame.h"
#include "daemon/log.h"

struct rbi_bridge;
struct rbi_session;
struct rbi_tunnel;

#define RBI_FOLLOW_RATE 100U
/** Messages from here that are followed at a time, and what is told of each at most. */
#define RBI_FOLLOW_SOURCES 64U
#define RBI_FOLLOW_HOPS    64U

/** Part of struct rbi_bridge. Zero-initialise. */
struct rbi_follow {
    uint64_t window_ns; /* the second that is counted */
    uint32_t sent;      /* in it */
    uint64_t dropped;
    struct rbi_log_limit dropped_limit;
    struct rbi_follow_source {
        struct rbi_trace_id trace;
        uint32_t uid;  /* of who has sent it */
        uint32_t told; /* HOPs that went to the daemon */
        uint64_t until_ns;
    } sources[RBI_FOLLOW_SOURCES];
    uint32_t next;
};

/** Which way a record goes through a tunnel. */
enum rbi_follow_way { RBI_FOLLOW_OUT = 0, RBI_FOLLOW_IN = 1 };

/**
 * A record of the local endpoint is about to go out, or has been put into its lane. Records that
 * are neither marked nor awaited need not be shown.
 * @param body  private, 8-byte aligned, at least the record's beginning (RBI_FOLLOW_HEAD_MAX)
 * @param base_ns  what its points of time are relative to
 * @return whether it is followed
 */
bool rbi_follow_tunnel(struct rbi_tunnel *tunnel,
                       enum rbi_follow_way way,
                       uint32_t meta,
                       const unsigned char *body,
                       uint64_t size,
                       uint64_t base_ns);

/** A stream of two other hosts. */
struct rbi_follow_stream {
    uint64_t hosts[2]; /* the opener's, the other's */
    struct rbi_follow_memory memory;
};
/**
 * DATA with RBI_FRAME_F_FOLLOW is about to be handed on.
 * @param from  0: the opener's host has sent it; 1: the other one
 * @param next  it goes out on
 * @param body  of the frame
 */
void rbi_follow_transit(struct rbi_follow_stream *stream,
                        unsigned from,
                        struct rbi_session *next,
                        const struct rbi_frame_header *header,
                        const void *body);

/** HOP that is for this host. */
void rbi_follow_on_hop(struct rbi_bridge *bridge, const struct rbi_frame_hop *hop);

#endif
