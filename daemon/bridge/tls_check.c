/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/tls_session.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Whose certificate it is, and how long it holds. */

static void names_free(GENERAL_NAMES **names)
{
    GENERAL_NAMES_free(*names);
}

/** The i-th name as text, or NULL: no DNS name, or one with a NUL in it. */
static const char *name_text(const GENERAL_NAMES *names, int i)
{
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS) {
        return NULL;
    }
    const char *text = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
    const size_t length = (size_t)ASN1_STRING_length(name->d.dNSName);
    return text && strnlen(text, length + 1) == length && length < 64 ? text : NULL;
}

static GENERAL_NAMES *names_of(const X509 *cert)
{
    return X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
}

bool rbi_tls_cert_names(const X509 *cert, const char *host)
{
    RBI_CLEANUP(names_free) GENERAL_NAMES *names = names_of(cert);
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const char *text = name_text(names, i);
        if (text && strcmp(text, host) == 0) {
            return true;
        }
    }
    return false;
}

bool rbi_tls_cert_known(const X509 *cert, const struct rbi_tls_owner *owner, char *host)
{
    RBI_CLEANUP(names_free) GENERAL_NAMES *names = names_of(cert);
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const char *text = name_text(names, i);
        if (text && owner->known(owner->context, text)) {
            memcpy(host, text, strlen(text) + 1); /* shorter than 64 */
            return true;
        }
    }
    return false;
}

/** Seconds since 1970; 0 where it cannot be read. */
static int64_t seconds(const ASN1_TIME *time)
{
    struct tm when;
    return ASN1_TIME_to_tm(time, &when) == 1 ? (int64_t)timegm(&when) : 0;
}

int64_t rbi_tls_begins(const X509 *cert)
{
    return seconds(X509_get0_notBefore(cert));
}

static int64_t cert_expires(const X509 *cert)
{
    return seconds(X509_get0_notAfter(cert));
}

int64_t rbi_tls_chain_expires(const STACK_OF(X509) * chain, const X509 *cert)
{
    int64_t first = cert ? cert_expires(cert) : INT64_MAX;
    for (int i = 0; chain && i < sk_X509_num(chain); i++) {
        const int64_t expires = cert_expires(sk_X509_value(chain, i));
        first = expires < first ? expires : first;
    }
    return first;
}

static void store_ctx_free(X509_STORE_CTX **ctx)
{
    X509_STORE_CTX_free(*ctx);
}

bool rbi_tls_session_holds(struct rbi_tls_session *session, SSL_CTX *ctx)
{
    RBI_CLEANUP(store_ctx_free) X509_STORE_CTX *check = X509_STORE_CTX_new();
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    if (!check || !cert ||
        X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(ctx), cert,
                            SSL_get_peer_cert_chain(session->ssl)) != 1) {
        return true; /* out of memory: the next look decides */
    }
    (void)X509_STORE_CTX_set_default(check,
                                     SSL_is_server(session->ssl) ? "ssl_client" : "ssl_server");
    const bool holds = X509_verify_cert(check) == 1;
    if (!holds) {
        (void)snprintf(session->why, sizeof(session->why), "certificate of the peer: %s",
                       X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
    }
    ERR_clear_error();
    return holds;
}

/** What the peer has against us: an alert. */
static const char *alert_text(int code)
{
    switch (code) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the peer does not believe who has signed our certificate: add our authority to its "
               "bridge.ca";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the peer finds our certificate expired: renew it, or compare the clocks";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        return "the peer finds our certificate revoked: get another";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return "the peer does not take our certificate: our name has to be in its bridge.peers, "
               "and "
               "in the certificate";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "the peer has got no certificate from us";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
        return "no TLS 1.3 at the other end";
    case SSL_R_WRONG_VERSION_NUMBER:
        return "no TLS at the other end: bridge.insecure there, or no bridge";
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return "cut by the peer, or on the way";
    default:
        return NULL;
    }
}

void rbi_tls_explain(const SSL *ssl, char *why)
{
    const unsigned long error = ERR_peek_error();
    const long verify = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
    const char *text = alert_text(ERR_GET_REASON(error));
    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED && verify != X509_V_OK) {
        (void)snprintf(why, RBI_TLS_WHY_MAX + 1U, "certificate of the peer: %s",
                       X509_verify_cert_error_string(verify));
    } else if (text) {
        (void)snprintf(why, RBI_TLS_WHY_MAX + 1U, "%s", text);
    } else {
        text = error ? ERR_reason_error_string(error) : NULL;
        (void)snprintf(why, RBI_TLS_WHY_MAX + 1U, "TLS: %s", text ? text : "no reason given");
    }
    ERR_clear_error();
}
