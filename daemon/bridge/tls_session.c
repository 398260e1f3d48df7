/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/tls_session.h"

#include "daemon/log.h"
#include "daemon/wall.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

/* Records with one key: AES-GCM allows 2^24.5 of them (RFC 8446, 5.5). */
#define RECORDS_MAX (UINT64_C(1) << 23)

/* ---- memory instead of a socket -------------------------------------------------------- */

static int memory_read(BIO *bio, char *out, int size)
{
    struct rbi_tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (session->span_size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    const size_t part = rbi_min_u64(session->span_size, (uint64_t)size);
    memcpy(out, session->span, part);
    session->span += part;
    session->span_size -= part;
    return (int)part;
}

static int memory_write(BIO *bio, const char *bytes, int size)
{
    struct rbi_tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    /* Reserved for data; for what TLS itself says now and then it may have to be allocated. */
    if (rbi_conn_queue_reserve(session->queue, (size_t)size) < 0) {
        return -1;
    }
    rbi_conn_queue_put(session->queue, bytes, (size_t)size);
    return size;
}

static long memory_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing else; above all no keys for a kernel */
}

static BIO_METHOD *memory_method(void)
{
    static BIO_METHOD *method;
    if (!method) {
        method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "ringbus memory");
        if (method) {
            (void)BIO_meth_set_read(method, memory_read);
            (void)BIO_meth_set_write(method, memory_write);
            (void)BIO_meth_set_ctrl(method, memory_ctrl);
        }
    }
    return method;
}

int rbi_tls_session_detach(struct rbi_tls_session *session, struct rbi_conn_queue *queue)
{
    session->queue = queue;
    /* OpenSSL 3.0 hands the kernel keys to send with, never those to receive with (TLS 1.3). */
    session->kernel_sends = BIO_get_ktls_send(SSL_get_wbio(session->ssl)) != 0;
    BIO *bio = memory_method() ? BIO_new(memory_method()) : NULL;
    if (!bio) {
        return -ENOMEM;
    }
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    if (!session->kernel_sends) {
        (void)BIO_up_ref(bio);
        SSL_set0_wbio(session->ssl, bio);
    }
    SSL_set0_rbio(session->ssl, bio);
    return 0;
}

/* ---- handshake ------------------------------------------------------------------------- */

/** The peer's own certificate must name it, beside all that OpenSSL demands of its chain. */
static int verify(int good, X509_STORE_CTX *check)
{
    if (!good || X509_STORE_CTX_get_error_depth(check) != 0) {
        return good;
    }
    const SSL *ssl = X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct rbi_tls_session *session = SSL_get_app_data(ssl);
    const X509 *cert = X509_STORE_CTX_get_current_cert(check);
    const bool named = SSL_is_server(ssl) ? rbi_tls_cert_known(cert, &session->owner, session->host)
                                          : rbi_tls_cert_names(cert, session->host);
    if (!named) {
        X509_STORE_CTX_set_error(check, X509_V_ERR_HOSTNAME_MISMATCH);
    }
    return named;
}

int rbi_tls_session_start(struct rbi_tls_session *session,
                          struct rbi_tls *tls,
                          int fd,
                          const char *host,
                          const struct rbi_tls_owner *owner)
{
    *session =
        (struct rbi_tls_session){.tls = tls, .owner = *owner, .made = (int64_t)rbi_wall_now_s()};
    rbi_list_init(&session->in_tls);
    session->ssl = SSL_new(rbi_tls_context(tls));
    if (!session->ssl || SSL_set_fd(session->ssl, fd) != 1) {
        rbi_tls_session_end(session);
        ERR_clear_error();
        return -ENOMEM;
    }
    (void)SSL_set_app_data(session->ssl, session);
    SSL_set_verify(session->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
    if (host) {
        (void)snprintf(session->host, sizeof(session->host), "%s", host);
        (void)SSL_set_tlsext_host_name(session->ssl, session->host);
        SSL_set_connect_state(session->ssl);
    } else {
        SSL_set_accept_state(session->ssl);
    }
    rbi_tls_join(tls, session);
    return 0;
}

void rbi_tls_session_end(struct rbi_tls_session *session)
{
    if (!session->tls) {
        return;
    }
    rbi_list_remove(&session->in_tls);
    SSL_free(session->ssl);
    session->ssl = NULL;
    session->tls = NULL;
}

static void session_came_up(struct rbi_tls_session *session)
{
    const int64_t theirs = rbi_tls_chain_expires(SSL_get0_verified_chain(session->ssl), NULL);
    const int64_t ours = rbi_tls_expires(session->tls);
    session->expires = theirs < ours ? theirs : ours;
    session->up = true;
}

/** What a name was found instead of the one that was looked for is said by who looked. */
static void explain_shake(struct rbi_tls_session *session)
{
    const bool nameless = SSL_get_verify_result(session->ssl) == X509_V_ERR_HOSTNAME_MISMATCH;
    rbi_tls_explain(session->ssl, session->why);
    if (!nameless) {
        return;
    }
    if (SSL_is_server(session->ssl)) {
        (void)snprintf(session->why, sizeof(session->why),
                       "certificate of the peer names no host of bridge.peers");
    } else {
        (void)snprintf(session->why, sizeof(session->why),
                       "certificate of the peer does not name %s: it needs that as subject "
                       "alternative name",
                       session->host);
    }
}

int rbi_tls_session_shake(struct rbi_tls_session *session)
{
    ERR_clear_error();
    errno = 0;
    const int result = SSL_do_handshake(session->ssl);
    if (result == 1) {
        session_came_up(session);
        return RBI_TLS_DONE;
    }
    const int system_error = errno;
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return RBI_TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return RBI_TLS_WANT_WRITE;
    case SSL_ERROR_SYSCALL:
        (void)snprintf(session->why, sizeof(session->why), "%s in the TLS handshake",
                       system_error ? rbi_log_errno(system_error) : "cut");
        ERR_clear_error();
        return -EPROTO;
    default:
        explain_shake(session);
        return -EPROTO;
    }
}

/* ---- records --------------------------------------------------------------------------- */

void rbi_tls_session_feed(struct rbi_tls_session *session, const unsigned char *bytes, size_t size)
{
    session->span = bytes;
    session->span_size = size;
}

ssize_t rbi_tls_session_read(struct rbi_tls_session *session, unsigned char *out, size_t room)
{
    ERR_clear_error();
    const int result = SSL_read(session->ssl, out, (int)rbi_min_u64(room, INT32_MAX));
    if (result > 0) {
        return result;
    }
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return -ESHUTDOWN;
    default:
        rbi_tls_explain(session->ssl, session->why);
        return -EPROTO;
    }
}

size_t rbi_tls_session_cost(size_t size)
{
    return size + (size / RBI_TLS_RECORD_BYTES + 1) * RBI_TLS_RECORD_MORE;
}

int rbi_tls_session_write(struct rbi_tls_session *session, const void *bytes, size_t size)
{
    ERR_clear_error();
    session->records += size / RBI_TLS_RECORD_BYTES + 1;
    if (session->records > RECORDS_MAX && !session->kernel_sends) {
        session->records = 0;
        (void)SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    if (SSL_write(session->ssl, bytes, (int)size) == (int)size) {
        return 0;
    }
    rbi_tls_explain(session->ssl, session->why);
    return -EPROTO;
}

void rbi_tls_session_farewell(struct rbi_tls_session *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl);
    ERR_clear_error();
}

bool rbi_tls_session_names(const struct rbi_tls_session *session, const char *host)
{
    const X509 *cert = SSL_get0_peer_certificate(session->ssl);
    return cert && rbi_tls_cert_names(cert, host);
}
