/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_TOKEN_H
#define RINGBUS_BUS_TOKEN_H
/*
 * bus/token.h - a token as text: what it grants, and the mark that proves who has granted it. Pure;
 * the mark itself is made and compared elsewhere (daemon/token_hmac.h), and the clock is an
 * argument.
 *
 *   rb1:KEY:EXPIRY:NONCE:SUBJECT:TARGET:MARK
 *
 * KEY     8 hexadecimal digits: which key
 * EXPIRY  seconds since 1970, decimal
 * NONCE   16 hexadecimal digits: makes two tokens differ that say the same
 * SUBJECT glob of the path of whoever may use it
 * TARGET  glob of the paths of the instances that it opens
 * MARK    HMAC-SHA256 of all before its colon, base64url without padding: 43 characters
 *
 * There is exactly one text for a token: what is accepted is canonical.
 */
#include "bus/glob.h"
#include "shm/base.h"

#define RBI_TOKEN_TEXT_MAX   255U
#define RBI_TOKEN_MARK_BYTES 32U
/** Clocks of hosts may differ by so much. */
#define RBI_TOKEN_SKEW_S 30U

struct rbi_token {
    uint32_t key;
    uint64_t expiry_s;
    uint64_t nonce;
    char subject[RBI_GLOB_BYTES_MAX + 1];
    char target[RBI_GLOB_BYTES_MAX + 1];
    unsigned char mark[RBI_TOKEN_MARK_BYTES];
};

/**
 * Writes all that is signed. @p out holds RBI_TOKEN_TEXT_MAX + 1 bytes.
 * @return its length; -EINVAL a glob is none; -EMSGSIZE with its mark it would be too long
 */
RBI_MUST_CHECK int rbi_token_write(const struct rbi_token *token, char *out);
/** Appends the mark to what rbi_token_write() wrote. @return the length of the whole */
int rbi_token_write_mark(const struct rbi_token *token, char *out, int length);
/**
 * Reads a token. Untrusted input; @p text need not be terminated. Says nothing of its mark.
 * @param signed_length  so many bytes of @p text are signed
 * @retval 0; -EPROTO it is none
 */
RBI_MUST_CHECK int
rbi_token_read(const char *text, size_t length, struct rbi_token *out, size_t *signed_length);

/** Whether its time is over, clocks taken as they are: RBI_TOKEN_SKEW_S after its expiry. */
bool rbi_token_is_over(const struct rbi_token *token, uint64_t now_s);
/** Whether it may be used by that path. */
bool rbi_token_is_for(const struct rbi_token *token, const char *path, size_t length);
/** Whether it opens an instance. */
bool rbi_token_opens(const struct rbi_token *token, const char *path, size_t length);
/** Whether two marks are the same; takes the same time wherever they differ. */
bool rbi_token_marks_equal(const unsigned char *a, const unsigned char *b);

#endif
