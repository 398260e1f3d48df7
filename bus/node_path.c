/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/node_path.h"

#include <string.h>

static int refuse(struct rbi_node_path *out, enum rbi_path_error error, size_t offset)
{
    *out = (struct rbi_node_path){.error = error, .error_offset = (unsigned)offset};
    return 1;
}

/** Offset of the slash in front of the first element "meta" from @p from on, or @p length. */
static size_t find_meta(const char *text, size_t length, size_t from)
{
    for (size_t at = from; at + RBI_PATH_META_LENGTH < length; at++) {
        const size_t end = at + 1 + RBI_PATH_META_LENGTH;
        if (text[at] == '/' && memcmp(text + at + 1, RBI_PATH_META, RBI_PATH_META_LENGTH) == 0 &&
            (end == length || text[end] == '/')) {
            return at;
        }
    }
    return length;
}

static unsigned parent_length(const char *text, size_t length)
{
    while (length > 1 && text[length - 1] != '/') {
        length--;
    }
    return (unsigned)(length > 1 ? length - 1 : 1);
}

static int parse_plain(const char *text, size_t length, struct rbi_node_path *out)
{
    struct rbi_path_info info;
    if (rbi_path_parse(text, length, &info) != 0) {
        return refuse(out, info.error, info.error_offset);
    }
    const enum rbi_node_kind kind = info.elements == RBI_PATH_INSTANCE_ELEMENTS  ? RBI_NODE_INSTANCE
                                    : info.elements == RBI_PATH_CLUSTER_ELEMENTS ? RBI_NODE_CLUSTER
                                                                                 : RBI_NODE_PREFIX;
    *out = (struct rbi_node_path){
        .kind = kind, .length = (unsigned)length, .parent_length = parent_length(text, length)};
    return 0;
}

/** What follows "meta", slash included; it is not empty. @return offset of an error, 0: none */
static size_t check_own(const char *text, size_t length, enum rbi_path_error *error)
{
    struct rbi_path_info info;
    *error = RBI_PATH_TRAILING_SLASH;
    if (length == 1) {
        return 1;
    }
    if (rbi_path_parse(text, length, &info) != 0 && info.error != RBI_PATH_TOO_MANY) {
        *error = info.error;
        return info.error_offset + 1U;
    }
    const size_t again = find_meta(text, length, 0);
    *error = RBI_PATH_RESERVED;
    if (again < length) {
        return again + 2;
    }
    *error = RBI_PATH_TOO_DEEP;
    unsigned slashes = 0;
    for (size_t at = 0; at < length; at++) {
        slashes += text[at] == '/' ? 1U : 0U;
        if (slashes > RBI_NODE_OWN_ELEMENTS) {
            return at + 2;
        }
    }
    return 0;
}

int rbi_node_path_parse(const char *text, size_t length, struct rbi_node_path *out)
{
    struct rbi_path_info info;
    if (length > RBI_PATH_MAX) {
        return refuse(out, RBI_PATH_TOO_LONG, RBI_PATH_MAX);
    }
    const size_t meta = find_meta(text, length, 0);
    if (meta == length) {
        return parse_plain(text, length, out);
    }
    if (meta == 0) {
        return refuse(out, RBI_PATH_RESERVED, 1); /* nothing would tell whose it is */
    }
    if (rbi_path_parse(text, meta, &info) != 0) {
        /* What would be a slash at the end is one more in front of "meta". */
        const bool again = info.error == RBI_PATH_TRAILING_SLASH;
        return refuse(out, again ? RBI_PATH_EMPTY_ELEMENT : info.error,
                      again ? meta : info.error_offset);
    }
    if (info.elements > RBI_PATH_CLUSTER_ELEMENTS) {
        return refuse(out, RBI_PATH_RESERVED, meta + 1); /* instances have nothing below them */
    }
    const size_t begin = meta + 1 + RBI_PATH_META_LENGTH;
    enum rbi_path_error error = RBI_PATH_OK;
    const size_t wrong = begin < length ? check_own(text + begin, length - begin, &error) : 0;
    if (wrong != 0) {
        return refuse(out, error, begin + wrong - 1);
    }
    *out = (struct rbi_node_path){.kind = begin < length ? RBI_NODE_USER : RBI_NODE_META,
                                  .length = (unsigned)length,
                                  .parent_length = parent_length(text, length),
                                  .meta_length = (unsigned)begin};
    return 0;
}

size_t rbi_node_path_below(
    const char *path, size_t path_length, const char *prefix, size_t prefix_length, size_t *length)
{
    if (path_length <= prefix_length ||
        !rbi_path_has_prefix(path, path_length, prefix, prefix_length)) {
        return 0;
    }
    const size_t begin = prefix_length == 1 ? 1 : prefix_length + 1;
    const char *end = memchr(path + begin, '/', path_length - begin);
    *length = end ? (size_t)(end - path) - begin : path_length - begin;
    return begin;
}
