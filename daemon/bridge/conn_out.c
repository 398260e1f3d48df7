/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/conn_impl.h"
#include "daemon/log.h"

#include <errno.h>
#include <string.h>

/*
 * What leaves. Written bytes are put into the queue, with TLS as records: small amounts are
 * gathered until a record is full or it is time to send, what is large is encrypted from where it
 * lies. One send at a time; what is queued meanwhile leaves with the next one.
 */

/* Beyond that nothing waits for more: it is a send that is worth its system call. */
#define BATCH_BYTES 65536U
/* Turns that write follow one another closely if they are less than a delay's part apart. */
#define CLOSE_PART 4U
#define GAP_WEIGHT 8U
#define GAP_MAX    8U /* delays */
/* From this on a copy costs more than a second completion. */
#define LEND_BYTES 65536U
/* So many in a row were copied all the same: the way there does not do without. */
#define COPIES_MAX 4U

static uint64_t conn_queued(const struct rbi_conn *conn)
{
    return conn->queue.size + conn->plain_used;
}

/** With what has left and may be needed again: it is held by the kernel. */
static uint64_t conn_memory(const struct rbi_conn *conn)
{
    return conn_queued(conn) + (uint64_t)conn->queue.held_count * RBI_CONN_CHUNK_BYTES;
}

/* ---- writing --------------------------------------------------------------------------- */

size_t rbi_conn_room(struct rbi_conn *conn)
{
    const uint64_t queued = conn_memory(conn);
    const uint64_t limit = conn->terms->queue_bytes;
    const size_t room = queued < limit ? (size_t)(limit - queued) : 0;
    if (room < RBI_CONN_LOW) {
        conn->wants_room = true;
    }
    return room;
}

static int record_put(struct rbi_conn *conn, const void *bytes, size_t size)
{
    if (rbi_tls_session_write(&conn->session, bytes, size) < 0) {
        rbi_conn_fail(conn, conn->session.why);
        return -EPIPE;
    }
    return 0;
}

/** What was gathered becomes a record. */
static int records_close(struct rbi_conn *conn)
{
    const size_t size = conn->plain_used;
    conn->plain_used = 0;
    return size ? record_put(conn, conn->plain, size) : 0;
}

static int records_write(struct rbi_conn *conn, const unsigned char *bytes, size_t size)
{
    int result = 0;
    while (result == 0 && size) {
        if (conn->plain_used == 0 && size >= RBI_TLS_RECORD_BYTES) {
            result = record_put(conn, bytes, RBI_TLS_RECORD_BYTES);
            bytes += RBI_TLS_RECORD_BYTES;
            size -= RBI_TLS_RECORD_BYTES;
            continue;
        }
        const size_t part = rbi_min_u64(size, RBI_TLS_RECORD_BYTES - conn->plain_used);
        memcpy(conn->plain + conn->plain_used, bytes, part);
        conn->plain_used += part;
        bytes += part;
        size -= part;
        if (conn->plain_used == RBI_TLS_RECORD_BYTES) {
            result = records_close(conn);
        }
    }
    return result;
}

static int conn_put(struct rbi_conn *conn, const struct iovec *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!rbi_conn_makes_records(conn)) {
            rbi_conn_queue_put(&conn->queue, pieces[i].iov_base, pieces[i].iov_len);
            continue;
        }
        const int result = records_write(conn, pieces[i].iov_base, pieces[i].iov_len);
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

int rbi_conn_writev(struct rbi_conn *conn, const struct iovec *pieces, unsigned count)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    if (conn->stage != RBI_CONN_UP) {
        return -EPIPE;
    }
    if (size > rbi_conn_room(conn)) {
        conn->wants_room = true;
        return -ENOBUFS;
    }
    const size_t cost =
        rbi_conn_makes_records(conn) ? rbi_tls_session_cost(size + conn->plain_used) : size;
    if (rbi_conn_queue_reserve(&conn->queue, cost) < 0) {
        return -ENOMEM;
    }
    const int result = conn_put(conn, pieces, count);
    conn->figures.queued_max = rbi_max_u64(conn->figures.queued_max, conn_queued(conn));
    rbi_conn_flush_soon(conn);
    return result;
}

int rbi_conn_write(struct rbi_conn *conn, const void *bytes, size_t size)
{
    struct iovec piece = {.iov_len = size};
    memcpy(&piece.iov_base, &bytes, sizeof(bytes)); /* read only */
    return rbi_conn_writev(conn, &piece, 1);
}

/* ---- sending --------------------------------------------------------------------------- */

static void conn_make_room(struct rbi_conn *conn)
{
    if (conn->wants_room && conn->stage == RBI_CONN_UP &&
        conn_memory(conn) <= conn->terms->queue_bytes / 2) {
        conn->wants_room = false;
        conn->ops->room(conn->context, conn);
    }
}

/** The kernel has taken bytes, or refuses. @return whether it goes on */
static bool send_taken(struct rbi_conn *conn, ssize_t result)
{
    if (result <= 0) {
        rbi_conn_fail(conn, result == -EPIPE || result == -ECONNRESET
                                ? "the peer has closed it, and reads no more"
                                : rbi_log_errno((int)-result));
        return false;
    }
    conn->figures.bytes_out += (uint64_t)result;
    conn->figures.sends++;
    rbi_conn_queue_take(&conn->queue, (size_t)result);
    return true;
}

/** Behind all that was written the peer is told that nothing more comes. */
static void farewell(struct rbi_conn *conn)
{
    if (conn->stage == RBI_CONN_CLOSING && conn->session.tls && !conn->farewell &&
        (rbi_conn_makes_records(conn) || conn->queue.size == 0)) {
        conn->farewell = true;
        rbi_tls_session_farewell(&conn->session);
    }
}

/** @retval 0  under way, without a copy; -EAGAIN  it is to be sent with one */
static ssize_t send_lend(struct rbi_conn *conn, const struct iovec *pieces, unsigned count)
{
    const unsigned slot = (unsigned)__builtin_ctz(~conn->holds_used);
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    if (!conn->lends || size < LEND_BYTES || slot >= RBI_LOOP_STREAM_HELD) {
        return -EAGAIN;
    }
    struct rbi_conn_hold *hold = &conn->holds[slot];
    const ssize_t result = rbi_loop_stream_lend(&conn->stream, pieces, count, hold);
    if (result == 0) {
        conn->holds_used |= 1U << slot;
        rbi_conn_queue_hold(&conn->queue, count, hold);
        conn->figures.zero_copy_sends++;
    }
    return result;
}

void rbi_conn_returned(void *context, void *token, bool copied)
{
    struct rbi_conn *conn = context;
    struct rbi_conn_hold *hold = token;
    rbi_conn_queue_return(&conn->queue, hold);
    conn->holds_used &= ~(1U << (hold - conn->holds));
    conn->copies = copied ? conn->copies + 1 : 0;
    if (conn->copies >= COPIES_MAX && !conn->terms->lends_always) {
        conn->lends = false;
    }
    conn_make_room(conn);
}

/** Whatever of the queue a send takes. @return as rbi_loop_stream_send() */
static ssize_t send_some(struct rbi_conn *conn)
{
    struct iovec pieces[RBI_LOOP_STREAM_IOV];
    const unsigned count = rbi_conn_queue_head(&conn->queue, pieces, RBI_LOOP_STREAM_IOV);
    const ssize_t result = send_lend(conn, pieces, count);
    return result == -EAGAIN ? rbi_loop_stream_send(&conn->stream, pieces, count) : result;
}

/** Nothing is under way: sends what there is, or as much as the kernel takes. */
static void send_start(struct rbi_conn *conn)
{
    if (rbi_conn_makes_records(conn) && records_close(conn) < 0) {
        return;
    }
    farewell(conn);
    rbi_loop_timer_cancel(conn->terms->loop, &conn->batch_timer);
    conn->sent_ns = rbi_loop_now_ns(conn->terms->loop);
    while (conn->queue.size) {
        const ssize_t result = send_some(conn);
        if (result == 0) {
            return; /* rbi_conn_sent() */
        }
        if (!send_taken(conn, result)) {
            return;
        }
    }
    if (conn->stage == RBI_CONN_CLOSING) {
        farewell(conn);
        rbi_conn_drained(conn);
    }
}

static bool conn_sends(const struct rbi_conn *conn)
{
    return conn->stage == RBI_CONN_UP || (conn->stage == RBI_CONN_CLOSING && !conn->shut);
}

void rbi_conn_sent(void *context, ssize_t result)
{
    struct rbi_conn *conn = context;
    if (conn_sends(conn) && send_taken(conn, result)) {
        send_start(conn);
        conn_make_room(conn);
    }
}

static void batch_over(void *context)
{
    struct rbi_conn *conn = context;
    if (conn_sends(conn) && !conn->stream.sending) {
        send_start(conn);
        conn_make_room(conn);
    }
}

/** Measures how closely turns that write follow one another. */
static void gap_note(struct rbi_conn *conn)
{
    const uint64_t now = rbi_loop_now_ns(conn->terms->loop);
    const uint64_t gap = rbi_min_u64(now - conn->wrote_ns, conn->terms->batch_delay_ns * GAP_MAX);
    conn->wrote_ns = now;
    conn->gap_ns = (conn->gap_ns * (GAP_WEIGHT - 1) + gap) / GAP_WEIGHT;
}

/** Whether more is worth waiting for, and until when. */
static bool batch_waits(const struct rbi_conn *conn, uint64_t *until)
{
    const uint64_t delay = conn->terms->batch_delay_ns;
    *until = conn->sent_ns + delay;
    return delay && conn->stage == RBI_CONN_UP && conn_queued(conn) < BATCH_BYTES &&
           conn->gap_ns < delay / CLOSE_PART && rbi_loop_now_ns(conn->terms->loop) < *until;
}

static void flush_turn(void *context)
{
    struct rbi_conn *conn = context;
    uint64_t until = 0;
    if (!conn_sends(conn)) {
        return;
    }
    gap_note(conn);
    if (conn->stream.sending) {
        return;
    }
    if (batch_waits(conn, &until)) {
        if (!conn->batch_timer.heap_idx) {
            rbi_loop_timer_set(conn->terms->loop, &conn->batch_timer, until, batch_over, conn);
        }
        return;
    }
    batch_over(conn);
}

void rbi_conn_flush_soon(struct rbi_conn *conn)
{
    rbi_loop_defer(conn->terms->loop, &conn->flush_task, flush_turn, conn);
}

void rbi_conn_flush(struct rbi_conn *conn)
{
    if (conn->stage == RBI_CONN_UP && !conn->stream.sending) {
        send_start(conn); /* its failure is told at the end of the turn, and so is room */
        if (conn->wants_room) {
            rbi_conn_flush_soon(conn);
        }
    }
}
