/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_CONN_H
#define RINGBUS_DAEMON_BRIDGE_CONN_H
/*
 * daemon/bridge/conn.h - one TCP connection to another host, with TLS 1.3 or, on loopback only,
 * without. Bytes in order, both ways; what they mean is bus/frame.h's. Of one loop, one thread;
 * nothing blocks.
 *
 *   dial.h, door.h --> (handshake) --> up --> bytes, room, ... --> down
 *
 * Life: a connection comes to its owner with up(), and is gone for it when down() has returned, or
 * rbi_conn_close(). Each connection that was up ends with exactly one of the two. Its memory
 * is freed by itself, once the kernel has let go of it. Any call may be made from any callback;
 * after a close no callback comes.
 *
 * Writing: bytes are put into a bounded queue and leave at the end of the turn, together. One send
 * is under way at a time, so what is written meanwhile leaves with the next; small amounts wait up
 * to `batch_delay_ns` for more while sends follow one another closely. A connection that was quiet
 * sends at once.
 *
 * Reading: at most RBI_CONN_READ_MAX bytes a turn, then others have theirs. Who cannot take what
 * has come leaves it, and calls rbi_conn_resume() later: the peer then stops by TCP's own window.
 */
#include "bus/bridge_config.h"
#include "daemon/loop.h"

#include <sys/uio.h>

struct rbi_conn;
struct rbi_tls;

/** Unread bytes that a connection keeps before it stops reading: several frames of any size. */
#define RBI_CONN_READ_MAX 262144U
/** Longest text about why a connection ended. */
#define RBI_CONN_WHY_MAX 255U

struct rbi_conn_ops {
    /**
     * The handshake is done. The callee is the owner from now on, or closes it.
     * @param host  the peer's name as its certificate proves it: the one that was dialled, or one
     *              that `known` took; "" without TLS, where only the peer's word says who it is
     */
    void (*up)(void *context, struct rbi_conn *conn, const char *host);
    /**
     * Bytes have come. Called again with what was left when more have come, or by
     * rbi_conn_resume().
     * @param bytes  from where the last call has left off; valid until the callee returns
     * @return how many were taken; what is left stays. 0 of RBI_CONN_READ_MAX or more pauses.
     */
    size_t (*bytes)(void *context, struct rbi_conn *conn, const unsigned char *bytes, size_t size);
    /** There is room in the queue again, after rbi_conn_write() has refused or rbi_conn_room()
     * was below RBI_CONN_LOW: half of it at least. */
    void (*room)(void *context, struct rbi_conn *conn);
    /**
     * It has ended, and is gone when the callee returns: not to be closed.
     * @param why  for people, one line: "the peer has closed it", "reset by the peer", "certificate
     *             of the peer expired", ...; valid until the callee returns
     */
    void (*down)(void *context, struct rbi_conn *conn, const char *why);
};

/** A queue with less room than this gets a call of room() when it has some again. */
#define RBI_CONN_LOW 131072U

/** What the connections of a bridge have in common. Kept while there are any, see `alive`. */
struct rbi_conn_terms {
    struct rbi_loop *loop;
    struct rbi_tls *tls;     /* NULL: without (bridge.insecure) */
    uint64_t queue_bytes;    /* bridge.limits.queue, of each connection */
    uint64_t batch_delay_ns; /* bridge.batch_delay */
    uint64_t handshake_ns;   /* how long the handshake of TLS may take; 0: 5 s. Connecting: 2 s */
    /** Whether a host may connect to us: of the names in its certificate the first that this
     * takes is its name. NULL: nobody. */
    bool (*known)(void *context, const char *host);
    void *known_context;
    /** Sends without a copy even where the kernel says that it copies: for tests. */
    bool lends_always;
    /** Connections whose memory is still there; zero-initialise. Turn the loop until it is 0 before
     * the loop, the TLS and this go. */
    uint32_t alive;
};

/** Connections of all are counted here, and of each: figures for people. */
struct rbi_conn_figures {
    uint64_t bytes_in; /* as on the wire, TLS included */
    uint64_t bytes_out;
    uint64_t receives; /* amounts that came at once */
    uint64_t sends;    /* sends, each of as much as there was */
    uint64_t zero_copy_sends;
    uint64_t queued; /* bytes that wait, or are under way */
    uint64_t queued_max;
    uint64_t connected_ns; /* monotonic: since when */
    bool kernel_tls;       /* records are made by the kernel */
};

/** From now on these are called, with this context. */
void rbi_conn_own(struct rbi_conn *conn, const struct rbi_conn_ops *ops, void *context);
/** Whether we dialled it; else it came through a door. */
bool rbi_conn_dialled(const struct rbi_conn *conn);
/** The other end, as "10.0.0.2:7740"; for people. */
const char *rbi_conn_address(const struct rbi_conn *conn);
/** The name that up() told. */
const char *rbi_conn_host(const struct rbi_conn *conn);
/** Whether the certificate of the peer names @p host (always, without TLS). */
bool rbi_conn_names(const struct rbi_conn *conn, const char *host);
void rbi_conn_figures(const struct rbi_conn *conn, struct rbi_conn_figures *out);

/**
 * Both sides have agreed to talk: when it ends, it is dialled anew after the shortest back-off.
 * Without this only one that lasted for a second counts as a success, so that whoever is
 * refused behind the handshake does not come back 40 times a second.
 */
void rbi_conn_settle(struct rbi_conn *conn);
/** Bytes that may be written now. Below RBI_CONN_LOW room() will be called. */
size_t rbi_conn_room(struct rbi_conn *conn);
/**
 * Copies bytes into the queue, all or none; they leave at the end of the turn. Cost: the copy
 * (with TLS of what is small, the rest is encrypted from where it lies).
 * @retval 0
 * @retval -ENOBUFS  more than rbi_conn_room(): wait for room()
 * @retval -ENOMEM   nothing was taken
 * @retval -EPIPE    it has ended; down() comes, or has come
 */
RBI_MUST_CHECK int rbi_conn_write(struct rbi_conn *conn, const void *bytes, size_t size);
/** The same of several pieces, as header, body and payload. */
RBI_MUST_CHECK int
rbi_conn_writev(struct rbi_conn *conn, const struct iovec *pieces, unsigned count);
/** Sends what is queued without waiting for the end of the turn, if nothing is under way. */
void rbi_conn_flush(struct rbi_conn *conn);
/** Calls bytes() again with what was left, in this turn but not from here, and reads on. */
void rbi_conn_resume(struct rbi_conn *conn);

/**
 * Ends it in order: what is queued still leaves, for a second at most; nothing more is read. Gone
 * for the caller when this returns, no callback comes.
 * @param why  for the log, one line
 */
void rbi_conn_close(struct rbi_conn *conn, const char *why);
/** Ends it at once: what is queued is lost. For one that does not answer. Gone as well. */
void rbi_conn_cut(struct rbi_conn *conn, const char *why);

#endif
