/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/tls.c - what TLS itself leaves of loopback TCP: OpenSSL 3, TLS 1.3 with
 * AES-128-GCM, both ends know the size of the messages and need no frames. A stream of small
 * messages is gathered to whole records. The limit of whatever carries messages over TLS.
 */
#include "bench/contenders/stream.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>

#define RECORD ((size_t)16 << 10) /* the largest that TLS has */
#define ROOM   ((size_t)(1U << 20) + RECORD)

struct tls_end {
    SSL_CTX *context;
    SSL *ssl;
    bool gather;
    size_t out_fill;
    size_t start; /* of the bytes not yet handed out */
    size_t fill;
    unsigned char out[RECORD];
    unsigned char in[ROOM];
};

/* Of the server's end; made in the parent, before the fork. */
static EVP_PKEY *key;
static X509 *certificate;

static bool sign_certificate(void)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    return X509_set_version(certificate, 2) == 1 &&
           ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), 0) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) != NULL &&
           X509_set_pubkey(certificate, key) == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"bench", -1,
                                      -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 &&
           X509_sign(certificate, key, EVP_sha256()) > 0;
}

static int tls_setup(struct bench_place *place)
{
    key = EVP_EC_gen("P-256");
    certificate = X509_new();
    if (key == NULL || certificate == NULL || !sign_certificate()) {
        return -1;
    }
    return stream_tcp_setup(place);
}

static void tls_teardown(struct bench_place *place)
{
    (void)place;
    X509_free(certificate);
    EVP_PKEY_free(key);
    certificate = NULL;
    key = NULL;
}

static bool shake_hands(const struct bench_end *end, struct tls_end *t)
{
    const bool server = end->side == 1;
    t->context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    if (t->context == NULL || SSL_CTX_set_min_proto_version(t->context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(t->context, "TLS_AES_128_GCM_SHA256") != 1 ||
        SSL_CTX_set_num_tickets(t->context, 0) != 1) {
        return false;
    }
    if (server && (SSL_CTX_use_certificate(t->context, certificate) != 1 ||
                   SSL_CTX_use_PrivateKey(t->context, key) != 1)) {
        return false;
    }
    t->ssl = SSL_new(t->context);
    if (t->ssl == NULL || SSL_set_fd(t->ssl, end->place->fds[end->side]) != 1) {
        return false;
    }
    SSL_set_read_ahead(t->ssl, 1);
    SSL_set_default_read_buffer_len(t->ssl, 4 * RECORD);
    return (server ? SSL_accept(t->ssl) : SSL_connect(t->ssl)) == 1;
}

static int tls_open(struct bench_end *end)
{
    const int fd = end->place->fds[end->side];
    struct tls_end *t = calloc(1, sizeof *t);
    end->state = t;
    if (t == NULL || !shake_hands(end, t)) {
        return -1;
    }
    if (!end->sleep) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    return 0;
}

static void tls_close(struct bench_end *end)
{
    struct tls_end *t = end->state;
    if (t != NULL) {
        SSL_free(t->ssl);
        SSL_CTX_free(t->context);
        free(t);
    }
}

/* What was begun has to follow, also when there is no room for a moment. */
static int write_all(struct tls_end *t, const unsigned char *data, size_t size)
{
    size_t written = 0;
    while (SSL_write_ex(t->ssl, data, size, &written) != 1) {
        if (SSL_get_error(t->ssl, 0) != SSL_ERROR_WANT_WRITE) {
            return -1;
        }
        bench_pause();
    }
    return written == size ? 1 : -1; /* without partial writes it is all or nothing */
}

static int flush(struct tls_end *t)
{
    const size_t size = t->out_fill;
    t->out_fill = 0;
    return size == 0 ? 1 : write_all(t, t->out, size);
}

static int tls_send(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct tls_end *t = end->state;
    uint64_t number = 0;
    if (!t->gather || size >= RECORD) {
        return write_all(t, data, size);
    }
    if (t->out_fill + size > RECORD && flush(t) != 1) {
        return -1;
    }
    memcpy(&number, data, sizeof number);
    memcpy(t->out + t->out_fill, data, size);
    t->out_fill += size;
    return number == end->last ? flush(t) : 1;
}

static unsigned hand_out(struct bench_end *end, struct tls_end *t, unsigned max)
{
    unsigned n = 0;
    for (; n < max && t->fill - t->start >= end->size; n++) {
        const unsigned char *data = t->in + t->start;
        bench_take(end, data, end->size);
        t->start += end->size;
        if (end->echo && tls_send(end, data, end->size) != 1) {
            break;
        }
    }
    return n;
}

static int tls_poll(struct bench_end *end, unsigned max)
{
    struct tls_end *t = end->state;
    size_t got = 0;
    const unsigned n = hand_out(end, t, max);
    if (n > 0) {
        return (int)n;
    }
    if (t->start > 0) {
        memmove(t->in, t->in + t->start, t->fill - t->start);
        t->fill -= t->start;
        t->start = 0;
    }
    if (SSL_read_ex(t->ssl, t->in + t->fill, ROOM - t->fill, &got) != 1) {
        return SSL_get_error(t->ssl, 0) == SSL_ERROR_WANT_READ ? 0 : -1;
    }
    t->fill += got;
    return (int)hand_out(end, t, max);
}
BENCH_LOOPS(tls, tls_send, tls_poll)

static void gather(struct bench_end *end, bool on)
{
    ((struct tls_end *)end->state)->gather = on;
}

static double tls_trips_at_once(struct bench_end *end, const struct bench_loop *loop)
{
    gather(end, false);
    return tls_trips(end, loop);
}

static double tls_stream_gathered(struct bench_end *end, const struct bench_loop *loop)
{
    gather(end, true);
    return tls_stream(end, loop);
}

static void tls_put_gathered(struct bench_end *end, const struct bench_loop *loop)
{
    gather(end, true);
    tls_put_loop(end, loop);
}

const struct bench_contender bench_tls = {
    .name = "bare-tls",
    .package = "libssl-dev",
    .text = "OpenSSL 3 over loopback TCP, TLS 1.3, AES-128-GCM; streams gathered to records",
    .abilities = BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    .size_max = 1U << 20,
    .setup = tls_setup,
    .open = tls_open,
    .close = tls_close,
    .teardown = tls_teardown,
    .trips = tls_trips_at_once,
    .stream = tls_stream_gathered,
    .put = tls_put_gathered,
    .take = tls_take_loop,
};
