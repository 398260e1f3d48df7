/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_TLS_SESSION_H
#define RINGBUS_DAEMON_BRIDGE_TLS_SESSION_H
/*
 * daemon/bridge/tls_session.h - TLS of one connection. The handshake goes through the socket, when
 * that is ready: only so can OpenSSL hand the keys to the kernel. After it the records are read
 * from memory that the loop has received into, and written into the queue of the connection, or
 * made by the kernel of what is sent as it is. Private to daemon/bridge/conn*, tls*.
 */
#include "daemon/bridge/conn_queue.h"
#include "daemon/bridge/tls.h"
#include "daemon/list.h"

#include <openssl/ssl.h>

/** Bytes of a record, at most, and what each costs beside them. */
#define RBI_TLS_RECORD_BYTES 16384U
#define RBI_TLS_RECORD_MORE  64U

/** Whom a session belongs to. */
struct rbi_tls_owner {
    /** Certificates of it no longer hold: it is to end. Not called from calls of the session. */
    void (*end)(void *context, const char *why);
    /** It ends soon, or our certificate has changed: another is to take its place. Every second. */
    void (*ripe)(void *context);
    /** Whether a certificate with that name may be the peer's. */
    bool (*known)(void *context, const char *host);
    void *context;
};

struct rbi_tls_session {
    struct rbi_list in_tls;
    struct rbi_tls *tls;
    struct rbi_tls_owner owner;
    SSL *ssl;
    char host[64]; /* the peer's, once it is proven */
    bool up;
    bool kernel_sends; /* what is sent becomes records in the kernel */
    uint32_t loaded;   /* which certificates of ours */
    int64_t made;      /* seconds since 1970 */
    int64_t expires;
    uint64_t records;             /* sent with the same key */
    struct rbi_conn_queue *queue; /* where records go */
    const unsigned char *span;    /* what was received and not yet read */
    size_t span_size;
    char why[RBI_TLS_WHY_MAX + 1U]; /* the last failure */
};

enum rbi_tls_want { RBI_TLS_DONE = 0, RBI_TLS_WANT_READ = 1, RBI_TLS_WANT_WRITE = 2 };

/** @param host  name that is dialled, or NULL: the peer dials us. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_tls_session_start(struct rbi_tls_session *session,
                                         struct rbi_tls *tls,
                                         int fd,
                                         const char *host,
                                         const struct rbi_tls_owner *owner);
/** Accepts one that was zero-initialised. */
void rbi_tls_session_end(struct rbi_tls_session *session);
/** Goes on with the handshake. @return enum rbi_tls_want; -EPROTO: session->why */
RBI_MUST_CHECK int rbi_tls_session_shake(struct rbi_tls_session *session);
/** From now on bytes are in memory. After the handshake. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_tls_session_detach(struct rbi_tls_session *session,
                                          struct rbi_conn_queue *queue);
/** Bytes were received, which rbi_tls_session_read() reads to the end. */
void rbi_tls_session_feed(struct rbi_tls_session *session, const unsigned char *bytes, size_t size);
/**
 * @return bytes read; 0: all that was fed is read; -ESHUTDOWN: the peer has ended it in order;
 *         -EPROTO: session->why
 */
RBI_MUST_CHECK ssize_t rbi_tls_session_read(struct rbi_tls_session *session,
                                            unsigned char *out,
                                            size_t room);
/** Room that @p size bytes take as records, whatever lies before. */
size_t rbi_tls_session_cost(size_t size);
/** Puts records into the queue, which has room for them. @retval 0; -EPROTO: session->why */
RBI_MUST_CHECK int
rbi_tls_session_write(struct rbi_tls_session *session, const void *bytes, size_t size);
/** Tells the peer that nothing more comes. */
void rbi_tls_session_farewell(struct rbi_tls_session *session);
/** Whether the certificate of the peer has that name. */
bool rbi_tls_session_names(const struct rbi_tls_session *session, const char *host);

/* ---- tls_check.c ----------------------------------------------------------------------- */

/** Whether the certificate has that name, as it is: without patterns. */
bool rbi_tls_cert_names(const X509 *cert, const char *host);
/** Writes the first name that is known. @retval whether there is one */
bool rbi_tls_cert_known(const X509 *cert, const struct rbi_tls_owner *owner, char *host);
/** When the first of them expires: seconds since 1970. */
int64_t rbi_tls_chain_expires(const STACK_OF(X509) * chain, const X509 *cert);
/** When it began to hold. */
int64_t rbi_tls_begins(const X509 *cert);
/** Whether the peer's certificate still holds for @p ctx; else session->why. */
bool rbi_tls_session_holds(struct rbi_tls_session *session, SSL_CTX *ctx);
/** What OpenSSL has against it, for people; empties its list of errors. */
void rbi_tls_explain(const SSL *ssl, char *why);

/* ---- tls_load.c ------------------------------------------------------------------------ */

/** What all connections begin with. @retval NULL  why is written */
SSL_CTX *rbi_tls_load(const char *host, const struct rbi_tls_files *files, char *why);

/* ---- tls.c ----------------------------------------------------------------------------- */

SSL_CTX *rbi_tls_context(const struct rbi_tls *tls);
/** Adds a session to those that are looked at every second. */
void rbi_tls_join(struct rbi_tls *tls, struct rbi_tls_session *session);

#endif
