/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_TLS_H
#define RINGBUS_DAEMON_BRIDGE_TLS_H
/*
 * daemon/bridge/tls.h - certificates of this host, and whom it believes: TLS 1.3 only, both
 * sides show a certificate, no resumption (each connection checks the peer anew).
 *
 * The files are looked at every second (a renewed file, a swapped link), and all are loaded or
 * none: what cannot be loaded is refused with its reason in the log, and the old stays in use. New
 * ones hold for new connections at once. Connections that are up are checked again against new
 * authorities and revocations, and end where they no longer hold; and each ends within
 * RBI_TLS_EXPIRY_MS after a certificate that it was made with, of its peer's chain or our own, has
 * expired. Whoever dialled makes a new one before that (dial.h).
 */
#include "daemon/loop.h"

struct rbi_tls;

/** A connection outlives the certificates that it was made with by less than this. */
#define RBI_TLS_EXPIRY_MS 5000U
/** Longest text about what is wrong. */
#define RBI_TLS_WHY_MAX 255U

/** Paths of PEM files, 1..255 bytes each; copied. */
struct rbi_tls_files {
    const char *certificate; /* ours, and behind it the chain up to the authority */
    const char *key;         /* of it, not encrypted; readable for its owner alone */
    const char *ca;          /* authorities that peers' certificates must come from */
    const char *crl;         /* revoked ones: a list of each authority; NULL or "": no list */
};

/**
 * @param host  our own name, which our certificate must have; copied
 * @param why   of RBI_TLS_WHY_MAX + 1 bytes: what is wrong with which file, for people
 * @retval 0
 * @retval -EINVAL  @p why is written
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_tls_new(struct rbi_loop *loop,
                               const char *host,
                               const struct rbi_tls_files *files,
                               char *why,
                               struct rbi_tls **out);
/** No connection is left that uses it. @return NULL. Accepts NULL. */
struct rbi_tls *rbi_tls_free(struct rbi_tls *tls);
/**
 * Loads the files now, from other paths where the configuration has others (NULL: the same). The
 * log says what came of it.
 * @param why  as above
 * @retval 0
 * @retval -EINVAL  the old ones stay in use, and the old paths
 * @retval -ENOMEM  so they do
 */
int rbi_tls_reload(struct rbi_tls *tls, const struct rbi_tls_files *files, char *why);
/** When our certificate, or one of its chain, expires: seconds since 1970. */
int64_t rbi_tls_expires(const struct rbi_tls *tls);

#endif
