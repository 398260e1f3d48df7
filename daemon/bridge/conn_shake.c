/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/conn_impl.h"
#include "daemon/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* From a socket to a connection that is up: connect, options, TLS. */

/*
 * The kernel gives up what is not acknowledged for this long. The PING of the bridges finds
 * out earlier; without this a send would keep a dead connection for a quarter of an hour.
 */
#define USER_TIMEOUT_MS 20000U
/* Unsent bytes in the kernel beyond which it takes no more: they wait where they can be counted. */
#define UNSENT_MAX 262144

static void socket_options(int fd)
{
    const int on = 1;
    const unsigned timeout = USER_TIMEOUT_MS;
    const int unsent = UNSENT_MAX;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

static void shake_on(struct rbi_conn *conn)
{
    const int want = rbi_tls_session_shake(&conn->session);
    switch (want) {
    case RBI_TLS_DONE:
        rbi_conn_come_up(conn);
        return;
    case RBI_TLS_WANT_READ:
        rbi_loop_want(&conn->source, RBI_LOOP_IN);
        return;
    case RBI_TLS_WANT_WRITE:
        rbi_loop_want(&conn->source, RBI_LOOP_OUT);
        return;
    default:
        rbi_loop_want(&conn->source, 0);
        rbi_conn_fail(conn, conn->session.why);
        return;
    }
}

/** Connected. The source may be gone afterwards. */
static void connected(struct rbi_conn *conn)
{
    conn->stage = RBI_CONN_SHAKING;
    socket_options(conn->fd);
    if (conn->terms->tls) {
        rbi_conn_watch_shake(conn);
        shake_on(conn);
    } else {
        rbi_conn_come_up(conn);
    }
}

static void connect_failed(struct rbi_conn *conn, int error)
{
    char why[RBI_CONN_WHY_MAX + 1U];
    (void)snprintf(why, sizeof(why), "%s%s", rbi_log_errno(error),
                   error == ECONNREFUSED ? ": nobody listens there" : "");
    rbi_loop_want(&conn->source, 0);
    rbi_conn_fail(conn, why);
}

static void shake_ready(void *context, unsigned events)
{
    struct rbi_conn *conn = context;
    if (conn->stage == RBI_CONN_SHAKING) {
        if (conn->terms->tls) {
            shake_on(conn);
        } else {
            connected(conn);
        }
        return;
    }
    if (conn->stage != RBI_CONN_CONNECTING || !(events & (RBI_LOOP_OUT | RBI_LOOP_HUP))) {
        return;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) {
        error = errno;
    }
    if (error) {
        connect_failed(conn, error);
    } else {
        connected(conn);
    }
}

static void tls_end(void *context, const char *why)
{
    rbi_conn_fail(context, why);
}

static void tls_ripe(void *context)
{
    struct rbi_conn *conn = context;
    if (conn->maker && conn->stage == RBI_CONN_UP) {
        conn->maker->ripe(conn->maker_context, conn);
    }
}

static bool tls_known(void *context, const char *host)
{
    const struct rbi_conn *conn = context;
    return conn->terms->known && conn->terms->known(conn->terms->known_context, host);
}

int rbi_conn_shake(struct rbi_conn *conn, const struct rbi_socket_address *to, const char *host)
{
    struct rbi_socket_address peer = {.size = sizeof(peer.storage)};
    if (to) {
        peer = *to;
    } else if (getpeername(conn->fd, (struct sockaddr *)&peer.storage, &peer.size) < 0) {
        return -errno;
    }
    rbi_address_text(&peer, conn->address);
    if (conn->terms->tls) {
        const struct rbi_tls_owner owner = {
            .end = tls_end, .ripe = tls_ripe, .known = tls_known, .context = conn};
        const int result = rbi_tls_session_start(&conn->session, conn->terms->tls, conn->fd,
                                                 to ? host : NULL, &owner);
        if (result < 0) {
            return result;
        }
    }
    conn->stage = to ? RBI_CONN_CONNECTING : RBI_CONN_SHAKING;
    if (to && connect(conn->fd, (const struct sockaddr *)&peer.storage, peer.size) < 0 &&
        errno != EINPROGRESS) {
        return -errno;
    }
    if (!to) {
        socket_options(conn->fd);
    }
    /* Writable: connected; through a door at once, so that it goes on in a turn of its own. */
    return rbi_loop_add(conn->terms->loop, &conn->source, conn->fd, RBI_LOOP_OUT, shake_ready,
                        conn);
}
