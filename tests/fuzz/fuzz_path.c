/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of any content: what is accepted is built of good elements and nothing else. */
#include "bus/node_path.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

/** The same question, asked in the simplest way. */
static bool is_path(const char *text, size_t length, unsigned *elements)
{
    *elements = 0;
    if (length == 0 || length > RBI_PATH_MAX || text[0] != '/') {
        return false;
    }
    if (length == 1) {
        return true;
    }
    size_t begin = 1;
    for (size_t at = 1; at <= length; at++) {
        if (at < length && text[at] != '/') {
            if (text[at] == 0 || strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_.-",
                                        text[at]) == NULL) {
                return false;
            }
            continue;
        }
        const size_t n = at - begin;
        if (n == 0 || n > RBI_PATH_ELEMENT_MAX || (n <= 2 && memcmp(text + begin, "..", n) == 0)) {
            return false;
        }
        (*elements)++;
        begin = at + 1;
    }
    return *elements <= RBI_PATH_INSTANCE_ELEMENTS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    unsigned elements = 0;
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    const bool good = is_path(text, size, &elements);
    check((rbi_path_parse(text, size, &info) == 0) == good);
    if (good) {
        check(info.error == RBI_PATH_OK && info.elements == elements && info.length == size);
        check(rbi_path_has_prefix(text, size, "/", 1));
        check(rbi_path_has_prefix(text, size, text, size));
    } else {
        check(info.error != RBI_PATH_OK && info.error_offset <= size);
    }
    if (rbi_pidf_parse(text, size, &pidf, &info) == 0) {
        check(good && elements >= RBI_PATH_CLUSTER_ELEMENTS);
        check(pidf.cluster != 0 && pidf.incarnation == 0);
        check((pidf.instance == 0) == (elements == RBI_PATH_CLUSTER_ELEMENTS));
        check(pidf.instance >= 0);
    }
    struct rbi_node_path node;
    if (rbi_node_path_parse(text, size, &node) == 0) {
        const bool user = node.kind == RBI_NODE_USER;
        check(node.length == size && node.parent_length <= size);
        check((node.meta_length != 0) == (user || node.kind == RBI_NODE_META));
        check(size == 1 || text[node.parent_length == 1 ? 0 : node.parent_length] == '/');
        check(!user || rbi_node_path_parse(text, node.parent_length, &node) == 0);
    } else {
        check(node.error != RBI_PATH_OK && node.error_offset <= size);
    }
    if (size != 0) {
        check(rbi_instance_id(text, size) > 0);
    }
    free(text);
    return 0;
}
