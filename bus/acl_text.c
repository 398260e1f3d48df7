/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/acl_text.c - the right to send, method by method, as text: "1-99,200,300-4294967295". "" is
 * every method, "none" none.
 */
#include "bus/acl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int rbi_acl_methods_write(const struct rbi_acl_methods *methods, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    if (rbi_acl_methods_all(methods)) {
        return 0;
    }
    for (uint32_t i = 0; i < methods->count; i++) {
        const struct rbi_acl_range *range = &methods->ranges[i];
        char piece[32];
        const int length =
            range->low == range->high
                ? snprintf(piece, sizeof(piece), "%s%" PRIu32, i ? "," : "", range->low)
                : snprintf(piece, sizeof(piece), "%s%" PRIu32 "-%" PRIu32, i ? "," : "", range->low,
                           range->high);
        if (used + (size_t)length >= size) {
            return 1;
        }
        memcpy(out + used, piece, (size_t)length + 1);
        used += (size_t)length;
    }
    if (used == 0) {
        (void)snprintf(out, size, "none");
    }
    return 0;
}

/** A number without sign or leading zeros. @return behind it, or NULL */
static const char *methods_number(const char *at, uint32_t *out)
{
    uint64_t value = 0;
    if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9')) {
        return NULL;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (unsigned)(*at - '0');
        if (value > UINT32_MAX) {
            return NULL;
        }
    }
    *out = (uint32_t)value;
    return at;
}

/** One range, above the one before. @return behind it, or NULL */
static const char *methods_range(const char *at, struct rbi_acl_methods *methods)
{
    struct rbi_acl_range range;
    at = methods_number(at, &range.low);
    if (!at) {
        return NULL;
    }
    range.high = range.low;
    if (*at == '-') {
        at = methods_number(at + 1, &range.high);
    }
    if (!at || methods->count == RBI_ACL_RANGES_MAX || range.low > range.high ||
        (methods->count != 0 && methods->ranges[methods->count - 1].high >= range.low)) {
        return NULL;
    }
    methods->ranges[methods->count++] = range;
    return at;
}

int rbi_acl_methods_read(const char *text, struct rbi_acl_methods *out)
{
    *out = (struct rbi_acl_methods){.count = 0};
    if (text[0] == '\0') {
        out->ranges[out->count++] = (struct rbi_acl_range){.low = 0, .high = UINT32_MAX};
        return 0;
    }
    if (strcmp(text, "none") == 0) {
        return 0;
    }
    for (;;) {
        text = methods_range(text, out);
        if (!text || (*text != ',' && *text != '\0')) {
            *out = (struct rbi_acl_methods){.count = 0};
            return 1;
        }
        if (*text++ == '\0') {
            return 0;
        }
    }
}
