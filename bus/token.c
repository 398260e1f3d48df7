/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX     "rb1:"
#define MARK_CHARS 43U
#define HEX_KEY    8U
#define HEX_NONCE  16U
/* Until the year 33658; shorter than what could pass the end of the number. */
#define EXPIRY_DIGITS_MAX 12U

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- writing ------------------------------------------------------------------------------- */

static bool token_glob_is_one(const char *glob)
{
    return rbi_glob_check(glob, strlen(glob), NULL) == RBI_GLOB_OK;
}

int rbi_token_write(const struct rbi_token *token, char *out)
{
    if (!token_glob_is_one(token->subject) || !token_glob_is_one(token->target)) {
        return -EINVAL;
    }
    const int length = snprintf(out, RBI_TOKEN_TEXT_MAX + 1,
                                PREFIX "%08" PRIx32 ":%" PRIu64 ":%016" PRIx64 ":%s:%s", token->key,
                                token->expiry_s, token->nonce, token->subject, token->target);
    return (size_t)length + 1 + MARK_CHARS <= RBI_TOKEN_TEXT_MAX ? length : -EMSGSIZE;
}

int rbi_token_write_mark(const struct rbi_token *token, char *out, int length)
{
    char *at = out + length;
    *at++ = ':';
    uint32_t bits = 0;
    unsigned have = 0;
    for (unsigned i = 0; i < RBI_TOKEN_MARK_BYTES; i++) {
        bits = bits << 8 | token->mark[i];
        for (have += 8; have >= 6; have -= 6) {
            *at++ = alphabet[bits >> (have - 6) & 63U];
        }
    }
    *at++ = alphabet[bits << (6 - have) & 63U]; /* 256 bits are 42 times 6, and 4 */
    *at = '\0';
    return (int)(at - out);
}

/* ---- reading ------------------------------------------------------------------------------- */

/** What is left of the text. */
struct token_cursor {
    const char *at;
    const char *end;
};

/** Takes a part up to the next colon, or to the end. @return its length */
static size_t token_part(struct token_cursor *cursor, const char **part)
{
    const size_t left = (size_t)(cursor->end - cursor->at);
    const char *colon = memchr(cursor->at, ':', left);
    const char *stop = colon ? colon : cursor->end;
    *part = cursor->at;
    cursor->at = colon ? colon + 1 : cursor->end;
    return (size_t)(stop - *part);
}

static bool token_read_hex(struct token_cursor *cursor, size_t digits, uint64_t *out)
{
    const char *part = NULL;
    uint64_t value = 0;
    if (token_part(cursor, &part) != digits) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        const char c = part[i];
        const bool digit = c >= '0' && c <= '9';
        if (!digit && (c < 'a' || c > 'f')) {
            return false;
        }
        value = value << 4 | (unsigned)(digit ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    return true;
}

static bool token_read_decimal(struct token_cursor *cursor, uint64_t *out)
{
    const char *part = NULL;
    const size_t digits = token_part(cursor, &part);
    uint64_t value = 0;
    if (digits == 0 || digits > EXPIRY_DIGITS_MAX || (digits > 1 && part[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        if (part[i] < '0' || part[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(part[i] - '0');
    }
    *out = value;
    return true;
}

static bool token_read_glob(struct token_cursor *cursor, char *out)
{
    const char *part = NULL;
    const size_t length = token_part(cursor, &part);
    if (rbi_glob_check(part, length, NULL) != RBI_GLOB_OK) {
        return false;
    }
    memcpy(out, part, length);
    out[length] = '\0';
    return true;
}

static bool token_read_mark(const char *text, unsigned char *out)
{
    uint32_t bits = 0;
    unsigned have = 0;
    unsigned made = 0;
    for (unsigned i = 0; i < MARK_CHARS; i++) {
        const char *found = text[i] != '\0' ? strchr(alphabet, text[i]) : NULL;
        if (!found) {
            return false;
        }
        bits = bits << 6 | (uint32_t)(found - alphabet);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[made++] = (unsigned char)(bits >> have);
        }
    }
    return made == RBI_TOKEN_MARK_BYTES && (bits & 3U) == 0; /* what is left over says nothing */
}

int rbi_token_read(const char *text, size_t length, struct rbi_token *out, size_t *signed_length)
{
    struct rbi_token token = {.key = 0};
    struct token_cursor cursor = {.at = text + sizeof(PREFIX) - 1, .end = text + length};
    uint64_t key = 0;
    if (length > RBI_TOKEN_TEXT_MAX || length < sizeof(PREFIX) - 1 ||
        memcmp(text, PREFIX, sizeof(PREFIX) - 1) != 0 || !token_read_hex(&cursor, HEX_KEY, &key) ||
        !token_read_decimal(&cursor, &token.expiry_s) ||
        !token_read_hex(&cursor, HEX_NONCE, &token.nonce) ||
        !token_read_glob(&cursor, token.subject) || !token_read_glob(&cursor, token.target) ||
        (size_t)(cursor.end - cursor.at) != MARK_CHARS || !token_read_mark(cursor.at, token.mark)) {
        return -EPROTO;
    }
    token.key = (uint32_t)key;
    *out = token;
    *signed_length = length - MARK_CHARS - 1;
    return 0;
}

/* ---- judging ------------------------------------------------------------------------------- */

bool rbi_token_is_over(const struct rbi_token *token, uint64_t now_s)
{
    return now_s >= token->expiry_s + RBI_TOKEN_SKEW_S;
}

bool rbi_token_is_for(const struct rbi_token *token, const char *path, size_t length)
{
    return rbi_glob_match(token->subject, strlen(token->subject), path, length);
}

bool rbi_token_opens(const struct rbi_token *token, const char *path, size_t length)
{
    return rbi_glob_match(token->target, strlen(token->target), path, length);
}

bool rbi_token_marks_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned char differs = 0;
    for (unsigned i = 0; i < RBI_TOKEN_MARK_BYTES; i++) {
        differs |= (unsigned char)(a[i] ^ b[i]);
    }
    return differs == 0;
}
