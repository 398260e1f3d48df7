/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/tls_session.h"
#include "daemon/log.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* From files to what connections begin with: all of it or nothing, with a reason. */

/* Fast first; all of TLS 1.3's are sound. */
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

RBI_PRINTF(2, 3) static bool complain(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, RBI_TLS_WHY_MAX + 1U, format, args);
    va_end(args);
    ERR_clear_error();
    return false;
}

/** The first reason of OpenSSL, as "no start line". */
static const char *reason(void)
{
    const unsigned long error = ERR_peek_error();
    if (ERR_SYSTEM_ERROR(error)) {
        return rbi_log_errno(ERR_GET_REASON(error));
    }
    const char *text = error ? ERR_reason_error_string(error) : NULL;
    if (text && strcmp(text, "no start line") == 0) {
        return "nothing in PEM form in it: empty, or only half written?";
    }
    return text ? text : "no reason given";
}

/** Encrypted keys are refused: nobody is there to type a passphrase. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

static bool load_own(SSL_CTX *ctx, const struct rbi_tls_files *files, char *why)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, files->certificate) != 1) {
        return complain(why, "certificate %s: %s", files->certificate, reason());
    }
    if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
            return complain(why, "key %s is not that of the certificate %s", files->key,
                            files->certificate);
        }
        return complain(why, "key %s: %s", files->key, reason());
    }
    if (SSL_CTX_check_private_key(ctx) != 1) {
        return complain(why, "key %s is not that of the certificate %s", files->key,
                        files->certificate);
    }
    return true;
}

static bool check_own(SSL_CTX *ctx, const char *host, const char *file, char *why)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    if (!rbi_tls_cert_names(cert, host)) {
        return complain(why,
                        "certificate %s does not name this host: it needs DNS:%s as subject "
                        "alternative name",
                        file, host);
    }
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
        return complain(why, "certificate %s has expired", file);
    }
    return true;
}

static bool load_believed(SSL_CTX *ctx, const struct rbi_tls_files *files, char *why)
{
    if (SSL_CTX_load_verify_file(ctx, files->ca) != 1) {
        return complain(why, "ca %s: %s", files->ca, reason());
    }
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    unsigned long flags = X509_V_FLAG_PARTIAL_CHAIN; /* an authority in the middle is enough */
    if (files->crl && files->crl[0]) {
        X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
        if (!lookup || X509_load_crl_file(lookup, files->crl, X509_FILETYPE_PEM) < 1) {
            return complain(why, "crl %s: %s", files->crl, reason());
        }
        flags |= X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
    }
    (void)X509_STORE_set_flags(store, flags);
    /* Both sides of a connection read this: which authorities a certificate may come from. */
    SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(files->ca));
    return true;
}

static bool set_up(SSL_CTX *ctx)
{
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_ENABLE_KTLS | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(ctx, SUITES) == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1;
}

SSL_CTX *rbi_tls_load(const char *host, const struct rbi_tls_files *files, char *why)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    if (!ctx || !set_up(ctx)) {
        complain(why, "TLS 1.3 cannot be set up: %s", reason());
    } else if (load_own(ctx, files, why) && check_own(ctx, host, files->certificate, why) &&
               load_believed(ctx, files, why)) {
        ERR_clear_error();
        return ctx;
    }
    SSL_CTX_free(ctx);
    return NULL;
}
