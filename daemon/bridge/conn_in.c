/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/conn_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What comes. Bytes are handed on from where they lie; only what the owner leaves, the beginning of
 * a frame as a rule, is copied, and what TLS makes of records.
 */

#define IN_FIRST ((size_t)65536)
/* Beyond what is kept before reading stops comes what was on its way by then. */
#define IN_MAX (RBI_CONN_READ_MAX + (size_t)4 * 1024 * 1024)

/** Room for @p size bytes behind what is kept. */
static bool in_reserve(struct rbi_conn *conn, size_t size)
{
    const size_t used = conn->in_end - conn->in_begin;
    if (conn->in_size - conn->in_end >= size) {
        return true;
    }
    if (used && conn->in_begin) {
        memmove(conn->in, conn->in + conn->in_begin, used);
    }
    conn->in_begin = 0;
    conn->in_end = used;
    if (conn->in_size - used >= size) {
        return true;
    }
    const size_t wanted = rbi_pow2_ceil(used + size < IN_FIRST ? IN_FIRST : used + size);
    unsigned char *in = wanted <= 2 * IN_MAX ? realloc(conn->in, wanted) : NULL;
    if (!in) {
        rbi_conn_fail(conn, "out of memory for what comes");
        return false;
    }
    conn->in = in;
    conn->in_size = wanted;
    return true;
}

/** Offers bytes to the owner. @return how many were taken; all, if there is no owner any more */
static size_t offer(struct rbi_conn *conn, const unsigned char *bytes, size_t size)
{
    const size_t taken = conn->ops->bytes(conn->context, conn, bytes, size);
    RBI_ASSERT(taken <= size);
    return conn->stage == RBI_CONN_UP ? taken : size;
}

/** Who takes nothing although much is there is asked again by rbi_conn_resume() only. */
static void in_pace(struct rbi_conn *conn)
{
    const bool full = conn->in_end - conn->in_begin >= RBI_CONN_READ_MAX;
    if (full != conn->paused && conn->stage == RBI_CONN_UP) {
        conn->paused = full;
        rbi_loop_stream_read(&conn->stream, !full);
    }
}

static void in_offer(struct rbi_conn *conn)
{
    const size_t used = conn->in_end - conn->in_begin;
    if (used) {
        conn->in_begin += offer(conn, conn->in + conn->in_begin, used);
    }
    if (conn->in_begin == conn->in_end) {
        conn->in_begin = 0;
        conn->in_end = 0;
        if (conn->in_size > 2 * (size_t)RBI_CONN_READ_MAX) {
            free(conn->in);
            conn->in = NULL;
            conn->in_size = 0;
        }
    }
    in_pace(conn);
}

static void take_plain(struct rbi_conn *conn, const unsigned char *bytes, size_t size)
{
    if (conn->in_begin == conn->in_end && !conn->paused) {
        const size_t taken = offer(conn, bytes, size);
        bytes += taken;
        size -= taken;
        if (size == 0 || conn->stage != RBI_CONN_UP || !in_reserve(conn, size)) {
            return;
        }
        memcpy(conn->in + conn->in_end, bytes, size);
        conn->in_end += size;
        in_pace(conn);
        return;
    }
    if (!in_reserve(conn, size)) {
        return;
    }
    memcpy(conn->in + conn->in_end, bytes, size);
    conn->in_end += size;
    if (!conn->paused) {
        in_offer(conn);
    }
}

/** Decrypts all that was fed. @return as rbi_tls_session_read() ended */
static ssize_t decrypt(struct rbi_conn *conn)
{
    for (;;) {
        if (!in_reserve(conn, RBI_TLS_RECORD_BYTES)) {
            return 0;
        }
        const ssize_t got = rbi_tls_session_read(&conn->session, conn->in + conn->in_end,
                                                 conn->in_size - conn->in_end);
        if (got <= 0) {
            return got;
        }
        conn->in_end += (size_t)got;
    }
}

static void take_records(struct rbi_conn *conn, const unsigned char *bytes, size_t size)
{
    rbi_tls_session_feed(&conn->session, bytes, size);
    const ssize_t end = decrypt(conn);
    if (!conn->paused && conn->stage == RBI_CONN_UP) {
        in_offer(conn);
    }
    if (conn->stage != RBI_CONN_UP) {
        return;
    }
    if (end == -ESHUTDOWN) {
        rbi_conn_fail(conn, "the peer has closed it");
    } else if (end < 0) {
        rbi_conn_fail(conn, conn->session.why);
    }
    if (conn->queue.size) {
        rbi_conn_flush_soon(conn); /* TLS has something to say by itself: an alert, new keys */
    }
}

void rbi_conn_received(void *context, const unsigned char *bytes, size_t size)
{
    struct rbi_conn *conn = context;
    conn->figures.bytes_in += size;
    conn->figures.receives++;
    if (conn->stage != RBI_CONN_UP) {
        return; /* it ends: thrown away */
    }
    if (conn->session.tls) {
        take_records(conn, bytes, size);
    } else {
        take_plain(conn, bytes, size);
    }
}

static void in_resume(void *context)
{
    struct rbi_conn *conn = context;
    if (conn->stage == RBI_CONN_UP) {
        in_offer(conn);
    }
}

void rbi_conn_resume(struct rbi_conn *conn)
{
    if (conn->stage == RBI_CONN_UP) {
        rbi_loop_defer(conn->terms->loop, &conn->resume_task, in_resume, conn);
    }
}
