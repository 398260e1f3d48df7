/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_TOKEN_HMAC_H
#define RINGBUS_DAEMON_TOKEN_HMAC_H
/*
 * daemon/token_hmac.h - keys of tokens, and the marks that they make: HMAC-SHA256 by libcrypto.
 * For ringbusd and ringbusctl; the client library only carries the text of a token. One thread.
 */
#include "bus/token.h"

#define RBI_TOKEN_KEY_MIN 32U
#define RBI_TOKEN_KEY_MAX 512U

/** A key. Zero-initialise; wipe when it is over. */
struct rbi_token_key {
    uint32_t id;     /* follows from the key: nobody has to give numbers */
    uint32_t length; /* 0: none */
    unsigned char bytes[RBI_TOKEN_KEY_MAX];
};

/** Why a key was not read: a sentence without the key. */
struct rbi_token_fault {
    char text[160];
};

/**
 * Reads a key out of a file: all bytes of it, but for line ends at its end.
 * The file must belong to root or to the caller's user, and be closed to everybody else (0600).
 * @retval 0; -errno; -EPERM others may read it; -EINVAL its length. @p fault says it
 */
RBI_MUST_CHECK int
rbi_token_key_read(const char *path, struct rbi_token_key *out, struct rbi_token_fault *fault);
void rbi_token_key_wipe(struct rbi_token_key *key);
/** Makes the mark of a text. @retval 0; -EIO libcrypto refuses */
RBI_MUST_CHECK int rbi_token_mark(const struct rbi_token_key *key,
                                  const char *text,
                                  size_t length,
                                  unsigned char mark[RBI_TOKEN_MARK_BYTES]);

#endif
