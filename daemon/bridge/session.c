/* SPDX-License-Identifier: Apache-2.0 */
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
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
/* Kept in the queue for frames of control. */
#define CONTROL_ROOM (UINT64_C(64) << 10)
/* HELLO comes after the handshake within the time in which silence is found, and within these. */
#define GREET_MIN_NS (1000 * MS)
#define GREET_MAX_NS (5000 * MS)
/* A timer that comes so late says that it was this process that did not run. */
#define LATE_INTERVALS 2U

/* ---- life -------------------------------------------------------------------------------- */

static void end_later(void *context)
{
    struct rbi_session *session = context;
    rbi_list_remove(&session->in_sessions);
    rbi_handles_deinit(&session->handles);
    free(session);
}

static void cut_carrier(struct rbi_carrier *carrier)
{
    if (carrier->transit) {
        rbi_transit_cut(RBI_CONTAINER_OF(carrier, struct rbi_transit_side, carrier));
    } else {
        rbi_tunnel_cut(RBI_CONTAINER_OF(carrier, struct rbi_tunnel, carrier));
    }
}

/* What it carried is told; its memory stays for those who are still on the stack. */
static void session_over(struct rbi_session *session, const char *why)
{
    struct rbi_neighbour *neighbour = session->neighbour;
    void *carrier = NULL;
    if (session->state == RBI_SESSION_OVER) {
        return;
    }
    session->state = RBI_SESSION_OVER;
    rbi_loop_timer_cancel(session->bridge->loop, &session->timer);
    rbi_loop_undefer(session->bridge->loop, &session->doom_task);
    if (neighbour != NULL) {
        rbi_neighbour_down(neighbour, session, why);
    }
    for (uint32_t handle = 0; (handle = rbi_handles_any(&session->handles, &carrier)) != 0;) {
        rbi_handles_free(&session->handles, handle);
        cut_carrier(carrier);
    }
    if (neighbour != NULL) {
        rbi_fars_look(session->bridge);
    }
    rbi_loop_defer(session->bridge->loop, &session->end_task, end_later, session);
}

void rbi_session_end(struct rbi_session *session, const char *why, bool in_order)
{
    struct rbi_conn *conn = session->conn;
    if (session->state == RBI_SESSION_OVER) {
        return;
    }
    if (conn != NULL && in_order && session->state == RBI_SESSION_UP) {
        /* Who only connects anew has not left with all its instances. */
        struct rbi_frame_bye bye = {.reason = session->bridge->stopping ? RBI_REASON_LEFT
                                                                        : RBI_REASON_NONE};
        rbi_frame_text_set(&bye.text, why);
        (void)rbi_session_send(session, RBI_FRAME_BYE, 0, 0, &bye);
    }
    session->conn = NULL;
    session_over(session, why);
    if (conn != NULL && in_order) {
        rbi_conn_close(conn, why);
    } else if (conn != NULL) {
        rbi_conn_cut(conn, why);
    }
}

void rbi_session_bad(struct rbi_session *session, const char *what)
{
    session->bridge->counters.bad_frames++;
    if (session->conn != NULL) {
        struct rbi_log_text text;
        rbi_log(RBI_LOG_WARNING, "host_broke_the_rules", "host=%s address=%s what=%s",
                session->neighbour != NULL ? session->neighbour->peer.host : "unknown",
                rbi_conn_address(session->conn), rbi_log_quote(&text, what, strlen(what)));
    }
    rbi_session_end(session, what, false);
}

static void end_doomed(void *context)
{
    rbi_session_end(context, "it does not read, and the queue is full", false);
}

/* ---- out ---------------------------------------------------------------------------------- */

int rbi_session_hand_on(struct rbi_session *session, const void *frame, size_t size)
{
    if (session->conn == NULL) {
        return -EPIPE;
    }
    const int result = rbi_conn_write(session->conn, frame, size);
    if (result == -ENOBUFS || result == -ENOMEM) {
        rbi_loop_defer(session->bridge->loop, &session->doom_task, end_doomed, session);
        return -EPIPE;
    }
    session->frames_out += result == 0 ? 1U : 0U;
    return result < 0 ? -EPIPE : 0;
}

int rbi_session_send(struct rbi_session *session,
                     enum rbi_frame_type type,
                     unsigned flags,
                     uint32_t handle,
                     const void *body)
{
    static unsigned char frame[RBI_FRAME_MAX]; /* one thread, and nobody calls back */
    struct rbi_frame_header header = {
        .type = (uint8_t)type, .flags = (uint8_t)flags, .handle = handle};
    return rbi_session_hand_on(session, frame, rbi_frame_encode(&header, body, frame));
}

int rbi_session_forward(struct rbi_session *session, const void *frame, size_t size)
{
    if (session->conn == NULL) {
        return -EPIPE;
    }
    if (rbi_session_room(session) < size) {
        return -ENOBUFS;
    }
    const int result = rbi_conn_write(session->conn, frame, size);
    session->frames_out += result == 0 ? 1U : 0U;
    return result == -ENOMEM ? -ENOBUFS : result;
}

size_t rbi_session_room(struct rbi_session *session)
{
    const size_t room = session->conn != NULL ? rbi_conn_room(session->conn) : 0;
    return room > CONTROL_ROOM ? room - CONTROL_ROOM : 0;
}

void rbi_session_choke(struct rbi_session *session, struct rbi_choked *choked)
{
    rbi_list_remove(&choked->node);
    rbi_list_push_back(&session->choked, &choked->node);
}

/* ---- HELLO and PING ------------------------------------------------------------------------ */

static void greet_late(void *context)
{
    rbi_session_end(context, "no HELLO came", false);
}

static void say_hello(struct rbi_session *session)
{
    struct rbi_frame_hello hello = {.magic = RBI_FRAME_MAGIC,
                                    .version_min = RBI_FRAME_VERSION,
                                    .version_max = RBI_FRAME_VERSION,
                                    .host = session->bridge->self,
                                    .incarnation = session->bridge->incarnation};
    rbi_frame_host_set(&hello.name, session->bridge->config.host);
    rbi_frame_text_set(&hello.software, "ringbus-bridge " RINGBUS_VERSION_TEXT);
    (void)rbi_session_send(session, RBI_FRAME_HELLO, 0, 0, &hello);
}

static uint64_t interval_ns(const struct rbi_session *session)
{
    return session->bridge->config.ping_interval_ms * MS;
}

static uint64_t greet_ns(const struct rbi_session *session)
{
    const uint64_t silence_ns = interval_ns(session) * session->bridge->config.ping_misses;
    return rbi_min_u64(rbi_max_u64(silence_ns, GREET_MIN_NS), GREET_MAX_NS);
}

static void ping_due(void *context);

static void set_ping(struct rbi_session *session)
{
    session->asked_ns = rbi_bridge_now_ns(session->bridge) + interval_ns(session);
    rbi_loop_timer_set(session->bridge->loop, &session->timer, session->asked_ns, ping_due,
                       session);
}

/* Endpoints are not to judge each other by a silence that is the way's, and may do so earlier than
 * we end the session. */
static void suspect(struct rbi_session *session, bool on)
{
    if (session->suspect != on) {
        session->suspect = on;
        rbi_tunnels_suspect(session, on);
    }
}

static void ping_due(void *context)
{
    struct rbi_session *session = context;
    const uint64_t now_ns = rbi_bridge_now_ns(session->bridge);
    const bool late = now_ns - session->asked_ns > LATE_INTERVALS * interval_ns(session);
    if (session->frames_in != session->heard_at_ping || late) {
        session->misses = 0; /* late: what it has sent was not read yet */
        suspect(session, false);
    } else if (session->ping_id != 0 && ++session->misses >= session->bridge->config.ping_misses) {
        rbi_log(RBI_LOG_WARNING, "host_silent", "host=%s misses=%" PRIu32,
                session->neighbour->peer.host, session->misses);
        rbi_session_end(session, "it does not answer PING", false);
        return;
    } else if (session->misses > 0) {
        suspect(session, true);
    }
    session->heard_at_ping = session->frames_in;
    const struct rbi_frame_ping ping = {.id = ++session->ping_id, .sent_ns = now_ns};
    if (rbi_session_send(session, RBI_FRAME_PING, 0, 0, &ping) == 0) {
        set_ping(session);
    }
}

void rbi_session_on_pong(struct rbi_session *session, const struct rbi_frame_pong *pong)
{
    const uint64_t now_ns = rbi_bridge_now_ns(session->bridge);
    if (pong->id == 0 || pong->id > session->ping_id || pong->sent_ns > now_ns) {
        rbi_session_bad(session, "PONG of no PING");
        return;
    }
    const uint64_t rtt_ns = now_ns - pong->sent_ns;
    session->srtt_ns =
        session->srtt_ns == 0 ? rtt_ns : session->srtt_ns - session->srtt_ns / 8 + rtt_ns / 8;
    rbi_flood_look(session->bridge);
}

/* @return why it is not taken, or NULL */
static const char *hello_fault(const struct rbi_session *session,
                               const struct rbi_frame_hello *hello)
{
    if (hello->magic != RBI_FRAME_MAGIC) {
        return "it is no bridge of ringbus";
    }
    if (hello->version_min > RBI_FRAME_VERSION || hello->version_max < RBI_FRAME_VERSION) {
        return "it speaks other versions than 1 only: update the older one";
    }
    if (hello->host != rbi_host_id(hello->name.bytes, hello->name.length)) {
        return "id and name of the host do not go together";
    }
    if (hello->host == session->bridge->self) {
        return "it has our own name, or is ourselves";
    }
    if (!rbi_conn_names(session->conn, hello->name.bytes)) {
        return "its certificate is of another host";
    }
    return NULL;
}

void rbi_session_on_hello(struct rbi_session *session, const struct rbi_frame_hello *hello)
{
    const char *fault = hello_fault(session, hello);
    if (session->state != RBI_SESSION_GREETING || fault != NULL) {
        rbi_session_bad(session, fault != NULL ? fault : "a second HELLO");
        return;
    }
    struct rbi_neighbour *neighbour = rbi_neighbour_find(session->bridge, hello->name.bytes);
    if (neighbour == NULL) {
        rbi_session_bad(session, "it is no peer of ours: add it to bridge.peers");
        return;
    }
    session->incarnation = hello->incarnation;
    session->version = RBI_FRAME_VERSION;
    if (!rbi_neighbour_up(neighbour, session)) {
        rbi_session_end(session, "both have dialled, the other connection stays", false);
        return;
    }
    rbi_conn_settle(session->conn);
    set_ping(session);
    rbi_flood_greet(session);
    rbi_flood_look(session->bridge);
    rbi_fars_look(session->bridge);
}

static void session_up(void *context, struct rbi_conn *conn, const char *host)
{
    struct rbi_bridge *bridge = context;
    struct rbi_session *session = calloc(1, sizeof *session);
    (void)host;
    if (session == NULL || bridge->stopping) {
        free(session);
        rbi_conn_cut(conn, session == NULL ? "no memory" : "this bridge ends");
        return;
    }
    session->bridge = bridge;
    session->conn = conn;
    session->began_ns = rbi_bridge_now_ns(bridge);
    rbi_handles_init(&session->handles);
    rbi_list_init(&session->choked);
    rbi_list_push_back(&bridge->sessions, &session->in_sessions);
    rbi_conn_own(conn, &rbi_session_ops, session);
    rbi_loop_timer_set(bridge->loop, &session->timer, session->began_ns + greet_ns(session),
                       greet_late, session);
    say_hello(session);
}

/* ---- the connection -------------------------------------------------------------------------- */

/* Whoever waits is asked once: one that finds no room again is behind the others. */
static void session_room(void *context, struct rbi_conn *conn)
{
    struct rbi_session *session = context;
    struct rbi_list waiting;
    (void)conn;
    rbi_list_init(&waiting);
    while (!rbi_list_empty(&session->choked)) {
        struct rbi_list *node = session->choked.next;
        rbi_list_remove(node);
        rbi_list_push_back(&waiting, node);
    }
    while (!rbi_list_empty(&waiting) && session->state != RBI_SESSION_OVER) {
        struct rbi_choked *choked = RBI_LIST_FIRST(&waiting, struct rbi_choked, node);
        rbi_list_remove(&choked->node);
        choked->on_room(choked);
    }
    while (!rbi_list_empty(&waiting)) {
        struct rbi_list *node = waiting.next;
        rbi_list_remove(node);
    }
    if (session->state != RBI_SESSION_OVER) {
        rbi_bridge_pump(session->bridge);
    }
}

static void session_down(void *context, struct rbi_conn *conn, const char *why)
{
    struct rbi_session *session = context;
    (void)conn;
    session->conn = NULL;
    session_over(session, why);
}

/* Until up() the context is the bridge, then the session. */
const struct rbi_conn_ops rbi_session_ops = {
    .up = session_up, .bytes = rbi_session_bytes, .room = session_room, .down = session_down};
