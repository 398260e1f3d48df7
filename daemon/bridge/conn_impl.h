/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_CONN_IMPL_H
#define RINGBUS_DAEMON_BRIDGE_CONN_IMPL_H
/*
 * daemon/bridge/conn_impl.h - a connection from inside. Private to conn*.c, dial.c and door.c.
 *
 *   CONNECTING --> SHAKING --> UP --> CLOSING --> GONE
 *        \____________\_________\_____________ --> ENDED --> GONE
 *
 * Whatever ends it by itself leads to ENDED, and is told at the end of the turn: so nobody finds it
 * gone in the middle of a call.
 */
#include "daemon/bridge/address.h"
#include "daemon/bridge/conn.h"
#include "daemon/bridge/conn_queue.h"
#include "daemon/bridge/tls_session.h"
#include "daemon/loop_stream.h"

enum rbi_conn_stage {
    RBI_CONN_CONNECTING,
    RBI_CONN_SHAKING,
    RBI_CONN_UP,
    RBI_CONN_CLOSING, /* its owner has let go of it; what is queued leaves */
    RBI_CONN_ENDED,   /* to be told */
    RBI_CONN_GONE,    /* the kernel may still hold its memory */
};

/** Who has made it: the dial or the door, which follow what becomes of it. */
struct rbi_conn_maker {
    /** Before up() of the owner. @retval false  it is not wanted, and is cut */
    bool (*up)(void *context, struct rbi_conn *conn);
    /** It is over, after down() of the owner. @param why  NULL: its owner has ended it */
    void (*over)(void *context, struct rbi_conn *conn, const char *why);
    /** Its certificates will not hold for long. */
    void (*ripe)(void *context, struct rbi_conn *conn);
};

struct rbi_conn {
    struct rbi_conn_terms *terms;
    const struct rbi_conn_ops *ops;
    void *context;
    const struct rbi_conn_maker *maker; /* NULL: it is gone */
    void *maker_context;
    enum rbi_conn_stage stage;
    int fd;
    bool dialled;
    bool was_up;
    bool settled; /* its owner says so */
    struct rbi_tls_session session;
    struct rbi_loop_source source; /* until the handshake is done */
    struct rbi_loop_stream stream; /* after it */
    char address[RBI_BRIDGE_ADDRESS_MAX + 1U];
    char why[RBI_CONN_WHY_MAX + 1U];
    /* What has come and was not taken. */
    unsigned char *in;
    size_t in_size;
    size_t in_begin;
    size_t in_end;
    bool paused;
    /* What is to leave: records or, without TLS, bytes; before it what is to become a record. */
    struct rbi_conn_queue queue;
    unsigned char *plain;
    size_t plain_used;
    /* Sends without a copy: as long as the kernel does not copy all the same. */
    bool lends;
    uint32_t copies;     /* in a row, that were made all the same */
    uint32_t holds_used; /* bit i: holds[i] */
    struct rbi_conn_hold holds[RBI_LOOP_STREAM_HELD];
    bool wants_room;
    bool farewell;               /* TLS has said so */
    bool shut;                   /* the kernel was told that nothing more comes */
    uint64_t gap_ns;             /* between turns that write, smoothed */
    uint64_t wrote_ns;           /* the last such turn */
    uint64_t sent_ns;            /* the last send */
    struct rbi_loop_timer timer; /* of the handshake, of the close */
    struct rbi_loop_timer batch_timer;
    struct rbi_loop_task flush_task;
    struct rbi_loop_task resume_task;
    struct rbi_loop_task end_task;
    struct rbi_conn_figures figures;
};

/**
 * A connection that is to be made, or to be shown in.
 * @param fd    non-blocking; consumed, also on failure
 * @param to    where to connect to; NULL: it came through a door
 * @param host  name that is dialled; NULL: through a door
 */
RBI_MUST_CHECK int rbi_conn_make(struct rbi_conn_terms *terms,
                                 int fd,
                                 const struct rbi_socket_address *to,
                                 const char *host,
                                 const struct rbi_conn_maker *maker,
                                 void *maker_context,
                                 struct rbi_conn **out);
/** The maker goes; a connection that is not up goes with it. */
void rbi_conn_orphan(struct rbi_conn *conn);
/** Seconds since 1970; INT64_MAX without TLS. */
int64_t rbi_conn_expires(const struct rbi_conn *conn);
/** Which of our certificates it was made with. */
uint32_t rbi_conn_loaded(const struct rbi_conn *conn);

/* Between conn.c, conn_shake.c, conn_in.c and conn_out.c. */

/** It ends by itself; told at the end of the turn. */
void rbi_conn_fail(struct rbi_conn *conn, const char *why);
/** Gives its stage a limit of time. */
void rbi_conn_watch_shake(struct rbi_conn *conn);
/** The handshake begins. */
int rbi_conn_shake(struct rbi_conn *conn, const struct rbi_socket_address *to, const char *host);
/** The handshake is done. */
void rbi_conn_come_up(struct rbi_conn *conn);
void rbi_conn_received(void *context, const unsigned char *bytes, size_t size);
void rbi_conn_sent(void *context, ssize_t result);
void rbi_conn_returned(void *context, void *token, bool copied);
void rbi_conn_flush_soon(struct rbi_conn *conn);
/** What is queued has left, while it closes. */
void rbi_conn_drained(struct rbi_conn *conn);

/** Whether bytes are made records by us. */
static inline bool rbi_conn_makes_records(const struct rbi_conn *conn)
{
    return conn->session.tls && !conn->session.kernel_sends;
}

#endif
