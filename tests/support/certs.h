/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_CERTS_H
#define RINGBUS_TESTS_SUPPORT_CERTS_H
/*
 * Authorities, certificates and lists of revoked ones for tests, made here: with lives of seconds,
 * of the wrong authority, for the wrong host. What cannot be made ends the test.
 */
#include <stdbool.h>

struct certs_authority;

/** @param name  of the authority; its certificate is written to @p path, as PEM */
struct certs_authority *certs_authority(const char *name, const char *path);
/** Accepts NULL. */
void certs_authority_free(struct certs_authority *authority);

/**
 * Writes a certificate and its key, a file after the other, each at once under its name.
 * @param names    host names, separated by commas; "" = none
 * @param begin_s  when it begins to hold, from now, may be negative
 * @param end_s    when it ends to
 * @return its serial number
 */
long certs_issue(struct certs_authority *authority,
                 const char *names,
                 long begin_s,
                 long end_s,
                 const char *certificate_path,
                 const char *key_path);
/** Writes a list of revoked certificates with one entry. @param serial  0: with none */
void certs_revoke(struct certs_authority *authority, long serial, const char *path);

#endif
