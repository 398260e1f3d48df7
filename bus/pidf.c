/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/pidf.c - parsing and hashing of addresses. Each accepted text is the only one
 * for its path, so equal ids of different texts can come from hashing alone.
 */
#include "bus/pidf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static bool element_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static int refuse(struct rbi_path_info *out, enum rbi_path_error error, size_t offset)
{
    *out = (struct rbi_path_info){.error = error, .error_offset = (unsigned)offset};
    return 1;
}

static bool is_dots(const char *element, size_t length)
{
    return (length == 1 && element[0] == '.') ||
           (length == 2 && element[0] == '.' && element[1] == '.');
}

/** Checks the element at @p begin; sets @p end behind it. */
static enum rbi_path_error
check_element(const char *text, size_t length, size_t begin, size_t *end, size_t *offset)
{
    size_t at = begin;
    while (at < length && text[at] != '/') {
        if (!element_byte((unsigned char)text[at])) {
            *offset = at;
            return RBI_PATH_BAD_BYTE;
        }
        if (at - begin == RBI_PATH_ELEMENT_MAX) {
            *offset = at;
            return RBI_PATH_LONG_ELEMENT;
        }
        at++;
    }
    *offset = begin;
    *end = at;
    if (at == begin) {
        return at == length ? RBI_PATH_TRAILING_SLASH : RBI_PATH_EMPTY_ELEMENT;
    }
    return is_dots(text + begin, at - begin) ? RBI_PATH_DOTS : RBI_PATH_OK;
}

int rbi_path_parse(const char *text, size_t length, struct rbi_path_info *out)
{
    if (length == 0 || text[0] != '/') {
        return refuse(out, RBI_PATH_NO_SLASH, 0);
    }
    if (length > RBI_PATH_MAX) {
        return refuse(out, RBI_PATH_TOO_LONG, RBI_PATH_MAX);
    }
    struct rbi_path_info info = {.error = RBI_PATH_OK, .length = (unsigned)length};
    size_t at = length == 1 ? length : 0; /* "/" alone: the prefix of everything */
    while (at < length) {
        size_t end = 0;
        size_t offset = 0;
        const enum rbi_path_error error = check_element(text, length, at + 1, &end, &offset);
        if (error != RBI_PATH_OK) {
            /* The byte to blame for a slash too many at the end is that slash. */
            return refuse(out, error, error == RBI_PATH_TRAILING_SLASH ? at : offset);
        }
        if (info.elements == RBI_PATH_INSTANCE_ELEMENTS) {
            return refuse(out, RBI_PATH_TOO_MANY, at + 1);
        }
        info.elements++;
        if (info.elements == RBI_PATH_CLUSTER_ELEMENTS) {
            info.cluster_length = (unsigned)end;
        }
        at = end;
    }
    *out = info;
    return 0;
}

const char *rbi_path_error_text(enum rbi_path_error error)
{
    switch (error) {
    case RBI_PATH_OK:
        return "no error";
    case RBI_PATH_NO_SLASH:
        return "path does not begin with \"/\"";
    case RBI_PATH_EMPTY_ELEMENT:
        return "empty element";
    case RBI_PATH_LONG_ELEMENT:
        return "element longer than 63 bytes";
    case RBI_PATH_BAD_BYTE:
        return "byte outside of A-Z a-z 0-9 _ . -";
    case RBI_PATH_DOTS:
        return "element is \".\" or \"..\"";
    case RBI_PATH_TOO_LONG:
        return "path longer than 255 bytes";
    case RBI_PATH_TOO_MANY:
        return "more than 7 elements";
    case RBI_PATH_TOO_FEW:
        return "too few elements";
    case RBI_PATH_TRAILING_SLASH:
        return "path ends with \"/\"";
    case RBI_PATH_RESERVED:
        return "element \"meta\" is reserved for nodes";
    case RBI_PATH_TOO_DEEP:
        return "more than 4 elements below \"meta\"";
    default:
        return "unknown error";
    }
}

uint64_t rbi_cluster_id(const char *path, size_t length)
{
    const uint64_t id = XXH3_64bits(path, length);
    return id == 0 ? 1 : id;
}

/**
 * Reads a decimal number without sign or leading zero from @p *at on.
 * @retval true  @p value is set, at most @p max; @p at stands behind it
 */
static bool take_number(const char *text, size_t length, size_t *at, uint64_t max, uint64_t *value)
{
    const size_t begin = *at;
    uint64_t n = 0;
    while (*at < length && text[*at] >= '0' && text[*at] <= '9') {
        n = n * 10 + (uint64_t)(text[*at] - '0');
        if (n > max) {
            return false;
        }
        (*at)++;
    }
    const size_t digits = *at - begin;
    *value = n;
    return digits == 1 || (digits > 1 && text[begin] != '0');
}

/** a.b.c.d packed, or 0 when the name is not of that form. */
static int32_t dotted_id(const char *name, size_t length)
{
    uint64_t packed = 0;
    size_t at = 0;
    for (unsigned part = 0; part < 4; part++) {
        uint64_t value = 0;
        if (part > 0) {
            if (at >= length || name[at] != '.') {
                return 0;
            }
            at++;
        }
        if (!take_number(name, length, &at, part == 0 ? 127 : 255, &value)) {
            return 0;
        }
        packed = packed << 8 | value;
    }
    return at == length ? (int32_t)packed : 0;
}

int32_t rbi_instance_id(const char *name, size_t length)
{
    size_t at = 0;
    uint64_t value = 0;
    if (take_number(name, length, &at, INT32_MAX, &value) && at == length && value != 0) {
        return (int32_t)value;
    }
    const int32_t dotted = dotted_id(name, length);
    if (dotted != 0) {
        return dotted;
    }
    const int32_t hashed = (int32_t)(XXH3_64bits(name, length) & INT32_MAX);
    return hashed == 0 ? 1 : hashed;
}

/** Offset of an element "meta", or 0. */
static size_t find_meta(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const size_t begin = at + 1; /* behind the slash */
        const char *slash = memchr(text + begin, '/', length - begin);
        at = slash ? (size_t)(slash - text) : length;
        if (at - begin == RBI_PATH_META_LENGTH &&
            memcmp(text + begin, RBI_PATH_META, RBI_PATH_META_LENGTH) == 0) {
            return begin;
        }
    }
    return 0;
}

int rbi_pidf_parse(const char *text,
                   size_t length,
                   struct rbi_pidf *out,
                   struct rbi_path_info *info)
{
    struct rbi_path_info path;
    if (rbi_path_parse(text, length, &path) != 0) {
        *info = path;
        return 1;
    }
    if (path.elements < RBI_PATH_CLUSTER_ELEMENTS) {
        return refuse(info, RBI_PATH_TOO_FEW, length);
    }
    const size_t meta = find_meta(text, length);
    if (meta != 0) {
        return refuse(info, RBI_PATH_RESERVED, meta);
    }
    struct rbi_pidf pidf = {.cluster = rbi_cluster_id(text, path.cluster_length)};
    if (path.elements == RBI_PATH_INSTANCE_ELEMENTS) {
        const size_t name = path.cluster_length + 1U;
        pidf.instance = rbi_instance_id(text + name, length - name);
    }
    *out = pidf;
    *info = path;
    return 0;
}

int rbi_pidf_format_raw(const struct rbi_pidf *pidf, char *buffer, size_t size)
{
    return snprintf(buffer, size, "#%016" PRIx64 "/%" PRId32, pidf->cluster, pidf->instance);
}

bool rbi_path_has_prefix(const char *path,
                         size_t path_length,
                         const char *prefix,
                         size_t prefix_length)
{
    if (prefix_length == 1) {
        return true; /* "/" */
    }
    return path_length >= prefix_length && memcmp(path, prefix, prefix_length) == 0 &&
           (path_length == prefix_length || path[prefix_length] == '/');
}
