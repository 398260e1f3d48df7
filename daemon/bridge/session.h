/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_SESSION_H
#define RINGBUS_DAEMON_BRIDGE_SESSION_H
/*
 * daemon/bridge/session.h - a connection to a neighbour that speaks frames (bus/frame.h): HELLO
 * first, both ways; PING while it is quiet; each frame goes to whoever acts on it.
 *
 * A neighbour is silent when it has sent nothing at all for so many intervals. TCP's own
 * acknowledgements do not count: a kernel, or a box in between, gives them for one that hangs.
 */
#include "bus/frame.h"
#include "daemon/bridge/bridge.h"
#include "daemon/bridge/handles.h"

struct rbi_neighbour;

enum rbi_session_state {
    RBI_SESSION_GREETING = 0, /* its HELLO has not come */
    RBI_SESSION_UP = 1,
    RBI_SESSION_OVER = 2, /* freed at the end of the turn */
};

/** What a handle stands for; first in those structures. */
struct rbi_carrier {
    bool transit; /* struct rbi_transit_side; else struct rbi_tunnel */
};

/** Who waits for room in a queue; embed it. */
struct rbi_choked {
    struct rbi_list node; /* in nothing, or in the session's list */
    void (*on_room)(struct rbi_choked *choked);
};

struct rbi_session {
    struct rbi_bridge *bridge;
    struct rbi_list in_sessions;
    struct rbi_conn *conn; /* NULL: it has ended */
    enum rbi_session_state state;
    struct rbi_neighbour *neighbour; /* of UP */
    uint64_t incarnation;            /* of its bridge */
    uint16_t version;
    struct rbi_handles handles; /* struct rbi_carrier */
    struct rbi_list choked;     /* struct rbi_choked */
    struct rbi_loop_timer timer;
    struct rbi_loop_task end_task;
    struct rbi_loop_task doom_task;
    uint64_t began_ns;
    uint64_t asked_ns; /* when the timer is due */
    uint64_t heard_ns; /* the last frame */
    uint64_t ping_id;
    uint32_t misses;
    bool suspect; /* one PING was missed: its streams are on hold, and it may be heard again */
    uint64_t heard_at_ping; /* frames by then */
    uint64_t srtt_ns;
    uint64_t frames_in;
    uint64_t frames_out;
};

extern const struct rbi_conn_ops rbi_session_ops; /* of doors and dials; context: the bridge */

/**
 * Sends a frame of control. One that the queue has no room for ends the session at the end of the
 * turn: room is kept for these, so its peer does not read. Nobody is called back from here.
 * @param body  struct rbi_frame_NAME of the type
 * @retval 0; -EPIPE it has ended
 */
int rbi_session_send(struct rbi_session *session,
                     enum rbi_frame_type type,
                     unsigned flags,
                     uint32_t handle,
                     const void *body);
/** The same of a frame of control that is there already. */
int rbi_session_hand_on(struct rbi_session *session, const void *frame, size_t size);
/** Hands a frame of a stream on. @retval 0; -ENOBUFS no room now; -EPIPE */
RBI_MUST_CHECK int rbi_session_forward(struct rbi_session *session, const void *frame, size_t size);
/** Bytes of DATA and PIECE that may be written now: what the queue has beyond that for control. */
size_t rbi_session_room(struct rbi_session *session);
/** Ends it: its streams are cut. It is freed at the end of the turn. */
void rbi_session_end(struct rbi_session *session, const char *why, bool in_order);
/** The peer broke the rules: logged with what it did, and ended. */
void rbi_session_bad(struct rbi_session *session, const char *what);
/** Waits for room: on_room() is called once when there is some. */
void rbi_session_choke(struct rbi_session *session, struct rbi_choked *choked);

#endif
