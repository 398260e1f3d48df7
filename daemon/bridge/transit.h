/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_TRANSIT_H
#define RINGBUS_DAEMON_BRIDGE_TRANSIT_H
/*
 * daemon/bridge/transit.h - a stream of two other hosts that goes through this one: a handle on
 * each of two sessions. Frames are handed on as they are; nothing of them is remembered, positions
 * and acknowledgements are the end hosts'. What one side has no room for waits here, as much as the
 * end hosts have granted each other; a stream that has more than that under way breaks the rules.
 */
#include "daemon/bridge/session.h"

/** Bytes of one stream and direction that may wait: the largest window and what it cannot count. */
#define RBI_TRANSIT_QUEUE_MAX ((UINT64_C(16) << 20) + 2 * (uint64_t)RBI_FRAME_MAX)

struct rbi_transit;
struct rbi_transit_frame;

/** One of its two sides: what comes on this session goes out on that of the other. */
struct rbi_transit_side {
    struct rbi_carrier carrier;
    struct rbi_transit *transit;
    struct rbi_session *session;
    uint32_t handle;                 /* ours, on this session */
    uint32_t peer_handle;            /* the neighbour's there; 0: not known yet */
    struct rbi_transit_frame *queue; /* waits to go out on this session */
    struct rbi_transit_frame **queue_end;
    uint64_t queued;
    bool closed; /* CLOSE has come on it: when it has on both, nothing more comes */
    struct rbi_choked choked;
};

/** A frame with an envelope that is not for this host: handed on, or refused. */
void rbi_transit_envelope(struct rbi_session *session,
                          const struct rbi_frame_header *header,
                          const void *body,
                          const struct rbi_frame_envelope *envelope);
/** DATA, PIECE, ACK or CLOSE that came on this side: a whole frame, header included. */
void rbi_transit_on_frame(struct rbi_transit_side *side,
                          const struct rbi_frame_header *header,
                          const unsigned char *frame);
/** The session of this side is gone: the other side is told that the way is cut. */
void rbi_transit_cut(struct rbi_transit_side *side);
/** The session has room again. */
void rbi_transit_room(struct rbi_transit_side *side);

#endif
