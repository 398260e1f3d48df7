/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/conn_impl.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Life of a connection: from its handshake to the kernel's letting go of it. */

/* A host that is down says nothing: it is asked again soon, for it may come back. */
#define CONNECT_NS   UINT64_C(2000000000)
#define HANDSHAKE_NS UINT64_C(5000000000)
#define CLOSE_NS     UINT64_C(1000000000)

/* ---- the end --------------------------------------------------------------------------- */

static void conn_free(struct rbi_conn *conn)
{
    rbi_tls_session_end(&conn->session);
    if (conn->fd >= 0) {
        (void)close(conn->fd);
    }
    rbi_conn_queue_deinit(&conn->queue);
    conn->terms->alive--;
    free(conn->in);
    free(conn->plain);
    free(conn);
}

static void conn_let_go(void *context)
{
    conn_free(context);
}

/** Nothing of it is called any more; freed when the kernel holds nothing of it. */
static void conn_go(struct rbi_conn *conn)
{
    struct rbi_loop *loop = conn->terms->loop;
    if (conn->stage == RBI_CONN_GONE) {
        return;
    }
    conn->stage = RBI_CONN_GONE;
    rbi_loop_timer_cancel(loop, &conn->timer);
    rbi_loop_timer_cancel(loop, &conn->batch_timer);
    rbi_loop_undefer(loop, &conn->flush_task);
    rbi_loop_undefer(loop, &conn->resume_task);
    rbi_loop_undefer(loop, &conn->end_task);
    rbi_loop_remove(&conn->source);
    if (conn->holds_used) {
        /* Also what is not acknowledged: its memory would be held until the kernel gives up. */
        const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
        (void)connect(conn->fd, &nowhere, sizeof(nowhere));
    }
    /* A poll or a receive in the ring holds the socket: its end is told now. */
    (void)shutdown(conn->fd, SHUT_RDWR);
    if (conn->stream.source.loop) {
        rbi_loop_stream_remove(&conn->stream);
    } else {
        rbi_loop_defer(loop, &conn->end_task, conn_let_go, conn);
    }
}

static void conn_tell_end(void *context)
{
    struct rbi_conn *conn = context;
    const struct rbi_conn_maker *maker = conn->maker;
    if (conn->was_up) {
        conn->ops->down(conn->context, conn, conn->why);
    }
    conn->maker = NULL;
    if (maker) {
        maker->over(conn->maker_context, conn, conn->why);
    }
    conn_go(conn);
}

void rbi_conn_fail(struct rbi_conn *conn, const char *why)
{
    if (conn->stage == RBI_CONN_CLOSING) {
        conn_go(conn);
    } else if (conn->stage < RBI_CONN_CLOSING) {
        conn->stage = RBI_CONN_ENDED;
        (void)snprintf(conn->why, sizeof(conn->why), "%s", why);
        rbi_loop_defer(conn->terms->loop, &conn->end_task, conn_tell_end, conn);
    }
}

static void conn_log(const struct rbi_conn *conn, const char *why)
{
    rbi_log(RBI_LOG_DEBUG, "connection_closed", "host=%s address=%s reason=%s", rbi_conn_host(conn),
            conn->address, rbi_log_quote(&(struct rbi_log_text){{0}}, why, strlen(why)));
}

/** Its owner has let go of it: whoever has made it is told. */
static void conn_leave_maker(struct rbi_conn *conn)
{
    const struct rbi_conn_maker *maker = conn->maker;
    conn->maker = NULL;
    if (maker) {
        maker->over(conn->maker_context, conn, NULL);
    }
}

void rbi_conn_cut(struct rbi_conn *conn, const char *why)
{
    if (conn->stage < RBI_CONN_GONE) {
        conn_log(conn, why);
        conn_leave_maker(conn);
        conn_go(conn);
    }
}

static void conn_close_late(void *context)
{
    conn_go(context);
}

void rbi_conn_close(struct rbi_conn *conn, const char *why)
{
    if (conn->stage != RBI_CONN_UP) {
        rbi_conn_cut(conn, why);
        return;
    }
    struct rbi_loop *loop = conn->terms->loop;
    conn_log(conn, why);
    conn_leave_maker(conn);
    conn->stage = RBI_CONN_CLOSING;
    rbi_loop_undefer(loop, &conn->resume_task);
    rbi_loop_stream_read(&conn->stream, true); /* thrown away: unread it would become a reset */
    rbi_loop_timer_set(loop, &conn->timer, rbi_loop_now_ns(loop) + CLOSE_NS, conn_close_late, conn);
    rbi_conn_flush_soon(conn);
}

void rbi_conn_drained(struct rbi_conn *conn)
{
    if (conn->shut) {
        return;
    }
    conn->shut = true;
    if (shutdown(conn->fd, SHUT_WR) < 0) {
        conn_go(conn);
    } /* else the peer's end comes, or the timer */
}

/* ---- streams --------------------------------------------------------------------------- */

static void conn_ended(void *context, int error)
{
    struct rbi_conn *conn = context;
    switch (error) {
    case 0:
        rbi_conn_fail(conn, conn->session.tls ? "cut: it ended without a farewell"
                                              : "the peer has closed it");
        break;
    case -ECONNRESET:
        rbi_conn_fail(conn, "reset by the peer: its process may have died");
        break;
    case -ETIMEDOUT:
        rbi_conn_fail(conn, "the peer acknowledges nothing: cut on the way, or its host is down");
        break;
    default:
        rbi_conn_fail(conn, rbi_log_errno(-error));
        break;
    }
}

static const struct rbi_loop_stream_ops stream_ops = {
    .received = rbi_conn_received,
    .sent = rbi_conn_sent,
    .returned = rbi_conn_returned,
    .ended = conn_ended,
    .gone = conn_let_go,
};

void rbi_conn_come_up(struct rbi_conn *conn)
{
    struct rbi_loop *loop = conn->terms->loop;
    rbi_loop_timer_cancel(loop, &conn->timer);
    rbi_loop_remove(&conn->source);
    if (conn->session.tls && rbi_tls_session_detach(&conn->session, &conn->queue) < 0) {
        rbi_conn_fail(conn, "out of memory");
        return;
    }
    const int result = rbi_loop_stream_add(loop, &conn->stream, conn->fd, &stream_ops, conn);
    if (result < 0) {
        rbi_conn_fail(conn, rbi_log_errno(-result));
        return;
    }
    conn->stage = RBI_CONN_UP;
    conn->figures.connected_ns = rbi_loop_now_ns(loop);
    if (conn->maker && !conn->maker->up(conn->maker_context, conn)) {
        rbi_conn_cut(conn, "not wanted");
        return;
    }
    conn->was_up = true;
    conn->ops->up(conn->context, conn, rbi_conn_host(conn));
}

/* ---- the beginning --------------------------------------------------------------------- */

static void conn_shake_late(void *context)
{
    struct rbi_conn *conn = context;
    rbi_conn_fail(conn, conn->stage == RBI_CONN_CONNECTING
                            ? "no answer: the host is down, or packets are dropped on the way"
                            : "no answer in the TLS handshake");
}

void rbi_conn_watch_shake(struct rbi_conn *conn)
{
    const struct rbi_conn_terms *terms = conn->terms;
    uint64_t limit = terms->handshake_ns ? terms->handshake_ns : HANDSHAKE_NS;
    if (conn->stage == RBI_CONN_CONNECTING) {
        limit = rbi_min_u64(limit, CONNECT_NS);
    }
    rbi_loop_timer_set(terms->loop, &conn->timer, rbi_loop_now_ns(terms->loop) + limit,
                       conn_shake_late, conn);
}

int rbi_conn_make(struct rbi_conn_terms *terms,
                  int fd,
                  const struct rbi_socket_address *to,
                  const char *host,
                  const struct rbi_conn_maker *maker,
                  void *maker_context,
                  struct rbi_conn **out)
{
    struct rbi_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        (void)close(fd);
        return -ENOMEM;
    }
    terms->alive++;
    conn->terms = terms;
    conn->fd = fd;
    conn->dialled = to != NULL;
    conn->lends = true;
    conn->maker = maker;
    conn->maker_context = maker_context;
    conn->plain = terms->tls ? malloc(RBI_TLS_RECORD_BYTES) : NULL;
    const int result = terms->tls && !conn->plain ? -ENOMEM : rbi_conn_shake(conn, to, host);
    if (result < 0) {
        rbi_loop_remove(&conn->source);
        conn_free(conn);
        return result;
    }
    rbi_conn_watch_shake(conn);
    *out = conn;
    return 0;
}

void rbi_conn_orphan(struct rbi_conn *conn)
{
    conn->maker = NULL;
    if (!conn->was_up) {
        rbi_conn_cut(conn, "given up");
    }
}

/* ---- what is asked of it --------------------------------------------------------------- */

void rbi_conn_own(struct rbi_conn *conn, const struct rbi_conn_ops *ops, void *context)
{
    conn->ops = ops;
    conn->context = context;
}

bool rbi_conn_dialled(const struct rbi_conn *conn)
{
    return conn->dialled;
}

const char *rbi_conn_address(const struct rbi_conn *conn)
{
    return conn->address;
}

const char *rbi_conn_host(const struct rbi_conn *conn)
{
    return conn->session.tls ? conn->session.host : "";
}

bool rbi_conn_names(const struct rbi_conn *conn, const char *host)
{
    return !conn->session.tls || rbi_tls_session_names(&conn->session, host);
}

void rbi_conn_settle(struct rbi_conn *conn)
{
    conn->settled = true;
}

int64_t rbi_conn_expires(const struct rbi_conn *conn)
{
    return conn->session.tls ? conn->session.expires : INT64_MAX;
}

uint32_t rbi_conn_loaded(const struct rbi_conn *conn)
{
    return conn->session.loaded;
}

void rbi_conn_figures(const struct rbi_conn *conn, struct rbi_conn_figures *out)
{
    *out = conn->figures;
    out->queued = conn->queue.size + conn->plain_used;
    out->kernel_tls = conn->session.kernel_sends;
}
