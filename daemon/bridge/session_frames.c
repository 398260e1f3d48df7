/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/session_frames.c - frames that have come, each to whoever acts on it. */
#include "daemon/bridge/export.h"
#include "daemon/bridge/fars.h"
#include "daemon/bridge/flood.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/session_parts.h"
#include "daemon/bridge/transit.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/log.h"

#include <errno.h>
#include <string.h>

static void on_bye(struct rbi_session *session, const struct rbi_frame_bye *bye)
{
    struct rbi_bridge *bridge = session->bridge;
    const char *name = session->neighbour->peer.host;
    const uint64_t host = rbi_host_id(name, strlen(name));
    struct rbi_log_text text;
    rbi_log(RBI_LOG_INFO, "host_says_bye", "host=%s why=%s", session->neighbour->peer.host,
            rbi_log_quote(&text, bye->text.bytes, bye->text.length));
    rbi_session_end(session, "it has left in order", false);
    if (bye->reason == RBI_REASON_LEFT) {
        rbi_export_forget(bridge->export, host);
        rbi_import_desk_leave(bridge->import, host);
    }
}

static void on_dir_ask(struct rbi_session *session, const struct rbi_frame_dir_ask *ask)
{
    if (rbi_export_ask(session->bridge->export, ask->envelope.from, ask->incarnation,
                       ask->revision) == 0) {
        rbi_bridge_pump(session->bridge);
    }
}

static void on_dir_item(struct rbi_session *session, const struct rbi_frame_dir_item *item)
{
    const int result =
        rbi_import_desk_item(session->bridge->import, item->envelope.from, &item->item);
    if (result == -EPROTO) {
        session->bridge->counters.bad_frames++;
    }
}

static void
on_end_to_end(struct rbi_session *session, const struct rbi_frame_header *header, const void *bytes)
{
    static union rbi_frame_body body;
    struct rbi_frame_fault fault;
    if (rbi_frame_decode(header, bytes, &body, &fault) != RBI_FRAME_WHOLE) {
        rbi_session_bad(session, fault.text);
        return;
    }
    switch (header->type) {
    case RBI_FRAME_OPEN:
        rbi_tunnel_on_open(session, header, &body.open);
        break;
    case RBI_FRAME_OPENED:
        rbi_tunnel_on_opened(session, header, &body.opened);
        break;
    case RBI_FRAME_REFUSED:
        rbi_tunnel_on_refused(session, header, &body.refused);
        break;
    case RBI_FRAME_DIR_ASK:
        on_dir_ask(session, &body.dir_ask);
        break;
    case RBI_FRAME_HOP:
        rbi_follow_on_hop(session->bridge, &body.hop);
        break;
    default:
        on_dir_item(session, &body.dir_item);
        break;
    }
}

/* Who has handed it to us, as it says: nobody can speak as another neighbour of ours. */
static uint64_t last_hop(const struct rbi_frame_envelope *envelope)
{
    return envelope->visited_count > 0 ? envelope->visited[envelope->visited_count - 1U]
                                       : envelope->from;
}

static void
on_envelope(struct rbi_session *session, const struct rbi_frame_header *header, const void *bytes)
{
    struct rbi_frame_envelope envelope;
    if (rbi_frame_envelope(header, bytes, &envelope) != 0) {
        rbi_session_bad(session, "an envelope cannot be read");
    } else if (last_hop(&envelope) != session->neighbour->id) {
        rbi_session_bad(session, "an envelope in another host's name");
    } else if (envelope.to == session->bridge->self) {
        on_end_to_end(session, header, bytes);
    } else {
        rbi_transit_envelope(session, header, bytes, &envelope);
    }
}

static void
on_of_session(struct rbi_session *session, const struct rbi_frame_header *header, const void *bytes)
{
    static union rbi_frame_body body;
    struct rbi_frame_fault fault;
    const int result = rbi_frame_decode(header, bytes, &body, &fault);
    if (result == RBI_FRAME_UNKNOWN) {
        return; /* of a later version */
    }
    if (result != RBI_FRAME_WHOLE) {
        rbi_session_bad(session, fault.text);
        return;
    }
    switch (header->type) {
    case RBI_FRAME_HELLO:
        rbi_session_on_hello(session, &body.hello);
        break;
    case RBI_FRAME_PING: {
        const struct rbi_frame_pong pong = {.id = body.ping.id, .sent_ns = body.ping.sent_ns};
        (void)rbi_session_send(session, RBI_FRAME_PONG, 0, 0, &pong);
        break;
    }
    case RBI_FRAME_PONG:
        rbi_session_on_pong(session, &body.pong);
        break;
    case RBI_FRAME_BYE:
        on_bye(session, &body.bye);
        break;
    default:
        rbi_flood_on_edges(session, &body.edges);
        break;
    }
}

/* Frames of a stream: late ones of one that is no more find nobody. */
static void on_of_stream(struct rbi_session *session,
                         const struct rbi_frame_header *header,
                         const unsigned char *frame)
{
    struct rbi_carrier *carrier = rbi_handles_get(&session->handles, header->handle);
    union {
        struct rbi_frame_ack ack;
        union rbi_frame_body body;
    } got;
    struct rbi_frame_fault fault;
    if (carrier == NULL) {
        return;
    }
    if (carrier->transit) {
        rbi_transit_on_frame(RBI_CONTAINER_OF(carrier, struct rbi_transit_side, carrier), header,
                             frame);
        return;
    }
    struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(carrier, struct rbi_tunnel, carrier);
    if (header->type == RBI_FRAME_DATA || header->type == RBI_FRAME_PIECE) {
        rbi_tunnel_on_bytes(tunnel, header, frame);
    } else if (header->type == RBI_FRAME_ACK) {
        if (rbi_frame_ack(header, frame + RBI_FRAME_HEADER, &got.ack) == 0) {
            rbi_tunnel_on_ack(tunnel, &got.ack);
        } else {
            rbi_session_bad(session, "ACK is too short");
        }
    } else if (rbi_frame_decode(header, frame + RBI_FRAME_HEADER, &got.body, &fault) ==
               RBI_FRAME_WHOLE) {
        rbi_tunnel_on_close(tunnel, header, &got.body.close);
    } else {
        rbi_session_bad(session, fault.text);
    }
}

static bool is_of_stream(unsigned type)
{
    return type == RBI_FRAME_DATA || type == RBI_FRAME_PIECE || type == RBI_FRAME_ACK ||
           type == RBI_FRAME_CLOSE;
}

static void on_frame(struct rbi_session *session,
                     const struct rbi_frame_header *header,
                     const unsigned char *frame)
{
    session->frames_in++;
    if (session->state == RBI_SESSION_GREETING && header->type != RBI_FRAME_HELLO) {
        rbi_session_bad(session, "something before HELLO");
    } else if (is_of_stream(header->type)) {
        on_of_stream(session, header, frame);
    } else if (rbi_frame_has_envelope(header->type)) {
        on_envelope(session, header, frame + RBI_FRAME_HEADER);
    } else {
        on_of_session(session, header, frame + RBI_FRAME_HEADER);
    }
}

size_t
rbi_session_bytes(void *context, struct rbi_conn *conn, const unsigned char *bytes, size_t size)
{
    struct rbi_session *session = context;
    size_t done = 0;
    (void)conn;
    while (session->state != RBI_SESSION_OVER) {
        struct rbi_frame_header header;
        const int result = rbi_frame_look(bytes + done, size - done, &header);
        if (result == RBI_FRAME_SHORT) {
            break;
        }
        if (result < 0) {
            rbi_session_bad(session, "no frame can begin so");
            break;
        }
        on_frame(session, &header, bytes + done);
        done += RBI_FRAME_HEADER + (size_t)header.size;
    }
    return session->state != RBI_SESSION_OVER ? done : size;
}
