/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_TUNNEL_H
#define RINGBUS_DAEMON_BRIDGE_TUNNEL_H
/*
 * daemon/bridge/tunnel.h - this host's end of a stream: joins the half of a link to a local
 * endpoint and a handle on a session. What happens when, bus/stream.h says; here it is carried out.
 *
 *   tunnel.c           made, found, forgotten
 *   tunnel_turn.c      who is to be looked at, now or soon
 *   tunnel_act.c       what the state machine asks for
 *   tunnel_frames.c    OPEN, OPENED, REFUSED, CLOSE
 *   tunnel_send.c      from the local lane into frames
 *   tunnel_receive.c   from frames into the local lane
 *   tunnel_settle.c    acknowledgement of what the local endpoint has read
 *   tunnel_local.c     what happens at the desk
 */
#include "bus/stream.h"
#include "daemon/bridge/fars.h"
#include "daemon/bridge/half.h"
#include "daemon/bridge/session.h"

struct rbi_far_end;

/** A record that is being sent in pieces. */
struct rbi_tunnel_out {
    bool active;
    struct rbi_lane_record record;
    const unsigned char *rest; /* of the body, or the payload; the local peer's: untrusted */
    uint64_t size;
    uint64_t done;
};

/** A record that comes in pieces. */
struct rbi_tunnel_in {
    bool active;
    bool reference; /* what comes is the payload, into the chunk */
    bool lent;
    bool followed;
    uint32_t meta;
    uint64_t body_size;
    unsigned char *body; /* ours */
    uint64_t room;       /* of it */
    uint64_t payload_size;
    uint64_t done; /* of the body, or of the payload */
    struct rbi_chunk chunk;
};

/** A frame that waits because the lane had no room. */
struct rbi_tunnel_frame {
    struct rbi_tunnel_frame *next;
    uint32_t size; /* of bytes, header included */
    _Alignas(8) unsigned char bytes[];
};

/** Where HOLD records lie in the lane towards the local endpoint: positions differ from there. */
struct rbi_tunnel_shift {
    uint64_t from; /* lane position behind it */
    uint64_t by;   /* bytes of HOLD records before from */
};
#define RBI_TUNNEL_SHIFTS 4U

struct rbi_tunnel {
    struct rbi_carrier carrier;
    struct rbi_bridge *bridge;
    struct rbi_stream stream;
    struct rbi_far *far;
    struct rbi_far_end *end;
    struct rbi_list in_far;
    struct rbi_list in_end;
    struct rbi_list in_touched;
    struct rbi_list in_unsettled;
    struct rbi_choked choked;
    struct rbi_half *half; /* NULL: there is none any more */
    struct rbi_pidf local;
    bool linked;     /* the half has been a link */
    bool introduced; /* acceptor: the link was asked for */
    bool held;       /* the half is not to report records */
    bool send_due;   /* it is to send before the turn ends */
    bool begin_due;  /* it may begin, or go on: nothing is in its way any more */
    bool broken_due; /* its peer's words made no sense, found where it could not be ended */
    bool hold_due;   /* HOLD, on or off, waits for room */
    bool hold_on;
    bool hold_said;
    char refusal[192];           /* why the other host does not take it, for people */
    struct rbi_session *session; /* of this attempt; NULL: cut */
    uint32_t handle;
    uint32_t peer_handle;
    uint64_t peer_lane; /* bytes, as the other host says: untrusted; 0: unsaid */
    struct rbi_tunnel_out out;
    struct rbi_tunnel_in in;
    struct rbi_tunnel_frame *queue;
    struct rbi_tunnel_frame **queue_end;
    struct rbi_tunnel_shift shifts[RBI_TUNNEL_SHIFTS];
    uint32_t shift_count;
    uint32_t vain_looks; /* in a row, at an endpoint that reads nothing */
    uint64_t settled_seen;
    uint64_t shift_base; /* of records before all of these */
    struct rbi_follow_memory follow;
    struct rbi_loop_timer timer;
    uint64_t records_out;
    uint64_t records_in;
};

/* ---- life -------------------------------------------------------------------------------- */

/** A local endpoint asks the proxy of @p end for a link. The half is ours from now on. */
void rbi_tunnel_begin(struct rbi_far_end *end, struct rbi_half *half);
struct rbi_tunnel *rbi_tunnel_find(struct rbi_bridge *bridge, const struct rbi_stream_id *id);
/** Feeds an input, carries out what follows. The tunnel may be gone then. */
void rbi_tunnel_step(struct rbi_tunnel *tunnel, const struct rbi_stream_input *input);
void rbi_tunnel_feed(struct rbi_tunnel *tunnel, enum rbi_stream_input_type type);
void rbi_tunnel_broken(struct rbi_tunnel *tunnel, enum rbi_reason reason, const char *what);
/** Ends it without a word to anybody; as the bridge's death would. */
void rbi_tunnel_free(struct rbi_tunnel *tunnel);
/** Makes the tunnel of an OPEN. NULL: refused, and answered */
struct rbi_tunnel *rbi_tunnel_accept(struct rbi_session *session,
                                     const struct rbi_frame_open *open,
                                     const struct rbi_stream_input *input);
/** The same of a step that the caller has made. */
void rbi_tunnel_carry_out(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions);
void rbi_tunnel_actions(struct rbi_tunnel *tunnel, const struct rbi_stream_actions *actions);
/** Its connection is gone. */
void rbi_tunnel_cut(struct rbi_tunnel *tunnel);
/** The neighbour of a session is silent, or not any more: endpoints are told of the way. */
void rbi_tunnels_suspect(struct rbi_session *session, bool on);
/** There is a way to the host. */
void rbi_tunnels_way(struct rbi_far *far);
/** The bridge of a host has another incarnation: it knows none of our streams. */
void rbi_tunnels_lost(struct rbi_far *far, uint64_t incarnation);
/** Proxy of the end is registered: links that wait for it are asked for. */
void rbi_tunnels_registered(struct rbi_far_end *end);
void rbi_tunnels_end_refused(struct rbi_far_end *end, int code);
void rbi_tunnel_introduce(struct rbi_tunnel *tunnel);
/** Of the lane towards the local endpoint, so that every record that comes fits; 0: as ever. */
uint64_t rbi_tunnel_lane_bytes(const struct rbi_tunnel *tunnel);
/** Begins, or goes on after a cut, unless earlier streams of its pair are there still. */
void rbi_tunnel_go_on(struct rbi_tunnel *tunnel);
/** Its stream has another name by now: it was @p old. @retval 0; -ENOMEM; -EEXIST */
int rbi_tunnel_rename(struct rbi_tunnel *tunnel, const struct rbi_stream_id *old);
/** Goes on over this session, with a new number. @return whether there was one */
bool rbi_tunnel_enter_session(struct rbi_tunnel *tunnel, struct rbi_session *session);
void rbi_tunnel_leave_session(struct rbi_tunnel *tunnel);
/** To be looked at before the turn ends. */
void rbi_tunnel_touch(struct rbi_tunnel *tunnel);

/* ---- frames ------------------------------------------------------------------------------- */

void rbi_tunnel_on_open(struct rbi_session *session,
                        const struct rbi_frame_header *header,
                        const struct rbi_frame_open *open);
void rbi_tunnel_on_opened(struct rbi_session *session,
                          const struct rbi_frame_header *header,
                          const struct rbi_frame_opened *opened);
void rbi_tunnel_on_refused(struct rbi_session *session,
                           const struct rbi_frame_header *header,
                           const struct rbi_frame_refused *refused);
void rbi_tunnel_on_close(struct rbi_tunnel *tunnel,
                         const struct rbi_frame_header *header,
                         const struct rbi_frame_close *close);
void rbi_tunnel_on_ack(struct rbi_tunnel *tunnel, const struct rbi_frame_ack *ack);
/** DATA or PIECE, whole, header included. */
void rbi_tunnel_on_bytes(struct rbi_tunnel *tunnel,
                         const struct rbi_frame_header *header,
                         const unsigned char *frame);
/** Why an OPEN is refused. */
struct rbi_tunnel_refusal {
    int32_t code; /* enum ringbus_error */
    const char *text;
    bool forgotten; /* it goes on a stream that is not known here any more */
};
/** Answers an OPEN that no tunnel answers. @param handle the sender's number of it */
void rbi_tunnel_refuse(struct rbi_session *session,
                       const struct rbi_frame_envelope *envelope,
                       const struct rbi_stream_id *id,
                       uint32_t handle,
                       uint32_t attempt,
                       const struct rbi_tunnel_refusal *why);

/* ---- lanes --------------------------------------------------------------------------------- */

/** Records may go again: the half is to report them. */
void rbi_tunnel_wake(struct rbi_tunnel *tunnel);
/** Sends what lies in the local lane, as much as may go now. */
void rbi_tunnel_send(struct rbi_tunnel *tunnel);
/** The lane may have room: puts what waits. */
void rbi_tunnel_put_queued(struct rbi_tunnel *tunnel);
/** Forgets a record that is not whole. */
void rbi_tunnel_drop_part(struct rbi_tunnel *tunnel);
/** And all that wait: what came is for nobody. While the half is there. */
void rbi_tunnel_drop_all(struct rbi_tunnel *tunnel);
/** Says HOLD or its end, as soon as the lane has room. */
void rbi_tunnel_say_hold(struct rbi_tunnel *tunnel, bool on);
void rbi_tunnel_flush_hold(struct rbi_tunnel *tunnel);
/** Looks how far the local endpoint has read, sends ACK when due. @return whether all is read */
bool rbi_tunnel_settle(struct rbi_tunnel *tunnel);
/** The local endpoint has ended: what it had handled is done with, though it had not said so. */
void rbi_tunnel_settle_last(struct rbi_tunnel *tunnel);
/** Behind the last of the peer's records that the local endpoint may have seen. */
uint64_t rbi_tunnel_seen(const struct rbi_tunnel *tunnel);
/** A position in our lane, in those of the records' sender. */
uint64_t rbi_tunnel_source_position(const struct rbi_tunnel *tunnel, uint64_t position);

extern const struct rbi_desk_events rbi_tunnel_desk_events;

#endif
