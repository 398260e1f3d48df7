/* SPDX-License-Identifier: Apache-2.0 */
#include "support/certs.h"

#include "shm/base.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct certs_authority {
    EVP_PKEY *key;
    X509 *cert;
    long serial; /* of the last one */
};

static FILE *file_begin(const char *path, char *draft, size_t size)
{
    (void)snprintf(draft, size, "%s.new", path);
    FILE *file = fopen(draft, "w");
    RBI_ASSERT(file);
    return file;
}

/** A reader sees the old file or the new one. */
static void file_end(FILE *file, const char *draft, const char *path)
{
    RBI_ASSERT(fclose(file) == 0 && rename(draft, path) == 0);
}

static void write_cert(const X509 *cert, const char *path)
{
    char draft[512];
    FILE *file = file_begin(path, draft, sizeof(draft));
    RBI_ASSERT(PEM_write_X509(file, cert) == 1);
    file_end(file, draft, path);
}

static void write_key(const EVP_PKEY *key, const char *path)
{
    char draft[512];
    FILE *file = file_begin(path, draft, sizeof(draft));
    RBI_ASSERT(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
    file_end(file, draft, path);
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    RBI_ASSERT(extension && X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static X509 *cert_new(EVP_PKEY *key, const char *subject, long serial, long begin_s, long end_s)
{
    X509 *cert = X509_new();
    RBI_ASSERT(cert && X509_set_version(cert, X509_VERSION_3) == 1);
    RBI_ASSERT(ASN1_INTEGER_set(X509_get_serialNumber(cert), serial) == 1);
    RBI_ASSERT(X509_gmtime_adj(X509_getm_notBefore(cert), begin_s));
    RBI_ASSERT(X509_gmtime_adj(X509_getm_notAfter(cert), end_s));
    RBI_ASSERT(X509_set_pubkey(cert, key) == 1);
    RBI_ASSERT(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                                          (const unsigned char *)subject, -1, -1, 0) == 1);
    return cert;
}

struct certs_authority *certs_authority(const char *name, const char *path)
{
    struct certs_authority *authority = calloc(1, sizeof(*authority));
    RBI_ASSERT(authority);
    authority->key = EVP_EC_gen("P-256");
    RBI_ASSERT(authority->key);
    authority->serial = 1;
    authority->cert = cert_new(authority->key, name, 1, -3600, 86400);
    X509 *cert = authority->cert;
    RBI_ASSERT(X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1);
    add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    add_extension(cert, cert, NID_subject_key_identifier, "hash");
    RBI_ASSERT(X509_sign(cert, authority->key, EVP_sha256()) > 0);
    write_cert(cert, path);
    return authority;
}

void certs_authority_free(struct certs_authority *authority)
{
    if (authority) {
        EVP_PKEY_free(authority->key);
        X509_free(authority->cert);
        free(authority);
    }
}

/** "a,b" as "DNS:a,DNS:b". */
static void alternative_names(const char *names, char *out, size_t size)
{
    char copy[512];
    char *rest = NULL;
    size_t used = 0;
    (void)snprintf(copy, sizeof(copy), "%s", names);
    out[0] = '\0';
    for (const char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        used += (size_t)snprintf(out + used, size - used, "%sDNS:%s", used ? "," : "", name);
    }
}

long certs_issue(struct certs_authority *authority,
                 const char *names,
                 long begin_s,
                 long end_s,
                 const char *certificate_path,
                 const char *key_path)
{
    char alternative[600];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    RBI_ASSERT(key);
    X509 *cert = cert_new(key, "host", ++authority->serial, begin_s, end_s);
    RBI_ASSERT(X509_set_issuer_name(cert, X509_get_subject_name(authority->cert)) == 1);
    add_extension(cert, authority->cert, NID_basic_constraints, "critical,CA:FALSE");
    add_extension(cert, authority->cert, NID_ext_key_usage, "serverAuth,clientAuth");
    add_extension(cert, authority->cert, NID_authority_key_identifier, "keyid");
    alternative_names(names, alternative, sizeof(alternative));
    if (alternative[0]) {
        add_extension(cert, authority->cert, NID_subject_alt_name, alternative);
    }
    RBI_ASSERT(X509_sign(cert, authority->key, EVP_sha256()) > 0);
    write_key(key, key_path);
    write_cert(cert, certificate_path);
    X509_free(cert);
    EVP_PKEY_free(key);
    return authority->serial;
}

void certs_revoke(struct certs_authority *authority, long serial, const char *path)
{
    char draft[512];
    X509_CRL *list = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -60);
    ASN1_TIME *later = X509_gmtime_adj(NULL, 3600);
    RBI_ASSERT(list && now && later && X509_CRL_set_version(list, 1) == 1);
    RBI_ASSERT(X509_CRL_set_issuer_name(list, X509_get_subject_name(authority->cert)) == 1);
    RBI_ASSERT(X509_CRL_set1_lastUpdate(list, now) == 1);
    RBI_ASSERT(X509_CRL_set1_nextUpdate(list, later) == 1);
    if (serial) {
        X509_REVOKED *entry = X509_REVOKED_new();
        ASN1_INTEGER *number = ASN1_INTEGER_new();
        RBI_ASSERT(entry && number && ASN1_INTEGER_set(number, serial) == 1);
        RBI_ASSERT(X509_REVOKED_set_serialNumber(entry, number) == 1);
        RBI_ASSERT(X509_REVOKED_set_revocationDate(entry, now) == 1);
        RBI_ASSERT(X509_CRL_add0_revoked(list, entry) == 1);
        ASN1_INTEGER_free(number);
    }
    RBI_ASSERT(X509_CRL_sort(list) == 1);
    RBI_ASSERT(X509_CRL_sign(list, authority->key, EVP_sha256()) > 0);
    FILE *file = file_begin(path, draft, sizeof(draft));
    RBI_ASSERT(PEM_write_X509_CRL(file, list) == 1);
    file_end(file, draft, path);
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    X509_CRL_free(list);
}
