/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/token_hmac.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of a key is the mark of this text under it. */
#define ID_TEXT "ringbus token key"

int rbi_token_mark(const struct rbi_token_key *key,
                   const char *text,
                   size_t length,
                   unsigned char mark[RBI_TOKEN_MARK_BYTES])
{
    char digest[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    size_t made = 0;
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = mac ? EVP_MAC_CTX_new(mac) : NULL;
    const bool done = context && EVP_MAC_init(context, key->bytes, key->length, parameters) == 1 &&
                      EVP_MAC_update(context, (const unsigned char *)text, length) == 1 &&
                      EVP_MAC_final(context, mark, &made, RBI_TOKEN_MARK_BYTES) == 1 &&
                      made == RBI_TOKEN_MARK_BYTES;
    EVP_MAC_CTX_free(context);
    EVP_MAC_free(mac);
    return done ? 0 : -EIO;
}

void rbi_token_key_wipe(struct rbi_token_key *key)
{
    OPENSSL_cleanse(key, sizeof(*key));
}

/* ---- the file ------------------------------------------------------------------------------ */

static int token_fault(struct rbi_token_fault *fault, int error, const char *text)
{
    (void)snprintf(fault->text, sizeof(fault->text), "%s", text);
    return error;
}

/** @retval 0; -errno */
static int token_file_check(int fd, struct rbi_token_fault *fault)
{
    struct stat found;
    if (fstat(fd, &found) < 0) {
        return token_fault(fault, -EIO, "it cannot be looked at");
    }
    if (!S_ISREG(found.st_mode)) {
        return token_fault(fault, -EINVAL, "it is no file");
    }
    if ((found.st_uid != 0 && found.st_uid != geteuid()) || (found.st_mode & 077) != 0) {
        return token_fault(fault, -EPERM,
                           "others than its user may have read it: chown it to this user or root, "
                           "chmod 0600, and make a new key");
    }
    return 0;
}

/** Reads up to one byte more than a key has. @return bytes; -errno */
static ssize_t token_file_read(int fd, unsigned char *bytes, size_t room)
{
    size_t used = 0;
    while (used < room) {
        const ssize_t n = read(fd, bytes + used, room - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        if (n == 0) {
            break;
        }
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static int token_key_take(struct rbi_token_key *key,
                          const unsigned char *bytes,
                          size_t length,
                          struct rbi_token_fault *fault)
{
    unsigned char mark[RBI_TOKEN_MARK_BYTES];
    while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r')) {
        length--;
    }
    if (length < RBI_TOKEN_KEY_MIN || length > RBI_TOKEN_KEY_MAX) {
        return token_fault(fault, -EINVAL, "a key has 32 to 512 bytes: openssl rand -hex 32");
    }
    key->length = (uint32_t)length;
    memcpy(key->bytes, bytes, length);
    if (rbi_token_mark(key, ID_TEXT, sizeof(ID_TEXT) - 1, mark) < 0) {
        return token_fault(fault, -EIO, "libcrypto cannot make HMAC-SHA256");
    }
    key->id = (uint32_t)mark[0] << 24 | (uint32_t)mark[1] << 16 | (uint32_t)mark[2] << 8 | mark[3];
    return 0;
}

int rbi_token_key_read(const char *path, struct rbi_token_key *out, struct rbi_token_fault *fault)
{
    unsigned char bytes[RBI_TOKEN_KEY_MAX + 3]; /* a line end, and one byte too many */
    struct rbi_token_key key = {.length = 0};
    /* O_NONBLOCK: a FIFO in its place must not stop the daemon. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        const int error = -errno;
        return token_fault(fault, error, strerrordesc_np(-error));
    }
    int result = token_file_check(fd, fault);
    if (result == 0) {
        const ssize_t length = token_file_read(fd, bytes, sizeof(bytes));
        result = length < 0 ? token_fault(fault, (int)length, "it cannot be read")
                            : token_key_take(&key, bytes, (size_t)length, fault);
    }
    (void)close(fd);
    if (result == 0) {
        *out = key;
    }
    OPENSSL_cleanse(bytes, sizeof(bytes));
    rbi_token_key_wipe(&key);
    return result;
}
