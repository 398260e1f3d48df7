/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens, and ranges of methods, of any content: what is read is written again as the very same
 * text.
 */
#include "bus/acl.h"
#include "bus/token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void token(const char *text, size_t size)
{
    struct rbi_token read;
    char again[RBI_TOKEN_TEXT_MAX + 1];
    size_t signed_length = 0;
    if (rbi_token_read(text, size, &read, &signed_length) != 0) {
        return;
    }
    const int length = rbi_token_write(&read, again);
    check(length > 0 && (size_t)length == signed_length);
    check((size_t)rbi_token_write_mark(&read, again, length) == size);
    check(memcmp(again, text, size) == 0);
}

/** Ascending, apart from each other; nothing half-read. */
static void methods(const char *text)
{
    struct rbi_acl_methods read;
    if (rbi_acl_methods_read(text, &read) != 0) {
        check(read.count == 0);
        return;
    }
    check(read.count <= RBI_ACL_RANGES_MAX);
    for (uint32_t i = 0; i < read.count; i++) {
        check(read.ranges[i].low <= read.ranges[i].high);
        check(i == 0 || read.ranges[i - 1].high < read.ranges[i].low);
        check(rbi_acl_methods_have(&read, read.ranges[i].low));
        check(rbi_acl_methods_have(&read, read.ranges[i].high));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Exactly as many bytes as there are, so that a sanitizer sees one too many. */
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    methods(text);
    char *exact = size != 0 ? malloc(size) : NULL;
    if (exact != NULL) {
        memcpy(exact, data, size);
        token(exact, size);
    }
    free(exact);
    free(text);
    return 0;
}
