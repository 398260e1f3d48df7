/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the node tree. Scenario 97: paths that look alike. */
#include "bus/node_path.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static int parse(const char *text, struct rbi_node_path *out)
{
    return rbi_node_path_parse(text, strlen(text), out);
}

static void test_parse_good(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum rbi_node_kind kind;
        unsigned parent_length;
        unsigned meta_length;
    } good[] = {
        {"/", RBI_NODE_PREFIX, 1, 0},
        {"/a", RBI_NODE_PREFIX, 1, 0},
        {"/a/b/c/d/e", RBI_NODE_PREFIX, 8, 0},
        {"/a/b/c/d/e/f", RBI_NODE_CLUSTER, 10, 0},
        {"/a/b/c/d/e/f/g", RBI_NODE_INSTANCE, 12, 0},
        {"/a/meta", RBI_NODE_META, 2, 7},
        {"/a/b/c/d/e/meta", RBI_NODE_META, 10, 15},
        {"/a/b/c/d/e/f/meta", RBI_NODE_META, 12, 17},
        {"/a/meta/x", RBI_NODE_USER, 7, 7},
        {"/a/meta/x/y", RBI_NODE_USER, 9, 7},
        {"/a/b/c/d/e/f/meta/1/2/3/4", RBI_NODE_USER, 23, 17},
        /* Nothing but the whole element is reserved. */
        {"/metal/ameta/Meta/meta.", RBI_NODE_PREFIX, 17, 0},
        {"/a/meta/metal", RBI_NODE_USER, 7, 7},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(good); i++) {
        struct rbi_node_path path;
        assert_int_equal(parse(good[i].text, &path), 0);
        assert_int_equal(path.kind, good[i].kind);
        assert_int_equal(path.length, strlen(good[i].text));
        assert_int_equal(path.parent_length, good[i].parent_length);
        assert_int_equal(path.meta_length, good[i].meta_length);
    }
}

static void test_parse_bad_says_why_and_where(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum rbi_path_error error;
        unsigned offset;
    } bad[] = {
        {"", RBI_PATH_NO_SLASH, 0},
        {"meta", RBI_PATH_NO_SLASH, 0},
        {"/meta", RBI_PATH_RESERVED, 1},
        {"/meta/a", RBI_PATH_RESERVED, 1},
        {"/a/meta/", RBI_PATH_TRAILING_SLASH, 7},
        {"/a/meta/x/", RBI_PATH_TRAILING_SLASH, 9},
        {"/a//meta/x", RBI_PATH_EMPTY_ELEMENT, 3},
        {"/a/meta//x", RBI_PATH_EMPTY_ELEMENT, 8},
        {"/a/meta/meta", RBI_PATH_RESERVED, 8},
        {"/a/meta/x/meta/y", RBI_PATH_RESERVED, 10},
        {"/a/b/c/d/e/f/g/meta", RBI_PATH_RESERVED, 15},
        {"/a/b/c/d/e/f/g/meta/x", RBI_PATH_RESERVED, 15},
        {"/a/b/c/d/e/f/g/h/meta", RBI_PATH_TOO_MANY, 15},
        {"/a/meta/1/2/3/4/5", RBI_PATH_TOO_DEEP, 16},
        {"/a/meta/1/2/3/4/5/6/7/8/9", RBI_PATH_TOO_DEEP, 16},
        {"/a/meta/x y", RBI_PATH_BAD_BYTE, 9},
        {"/a b/meta/x", RBI_PATH_BAD_BYTE, 2},
        {"/a/meta/..", RBI_PATH_DOTS, 8},
        {"/./meta/x", RBI_PATH_DOTS, 1},
        {"/a/b/c/d/e/f/g/h", RBI_PATH_TOO_MANY, 15},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        struct rbi_node_path path;
        assert_int_equal(parse(bad[i].text, &path), 1);
        assert_int_equal(path.error, bad[i].error);
        assert_int_equal(path.error_offset, bad[i].offset);
    }
}

/* At the bounds of what is given: not terminated, as long as may be, longer, with NUL inside. */
static void test_parse_bounds(void **state)
{
    (void)state;
    struct rbi_node_path path;
    char text[400];
    memset(text, 'x', sizeof text);
    memcpy(text, "/a/meta/", 8);
    assert_int_equal(rbi_node_path_parse(text, 8 + 63, &path), 0);
    assert_int_equal(rbi_node_path_parse(text, 8 + 64, &path), 1);
    assert_int_equal(path.error, RBI_PATH_LONG_ELEMENT);
    assert_int_equal(path.error_offset, 71);
    for (size_t at = 71; at < sizeof text; at += 64) {
        text[at] = '/';
    }
    assert_int_equal(rbi_node_path_parse(text, 255, &path), 0);
    assert_int_equal(rbi_node_path_parse(text, 256, &path), 1);
    assert_int_equal(path.error, RBI_PATH_TOO_LONG);
    assert_int_equal(rbi_node_path_parse("/a/meta/x\0y", 11, &path), 1);
    assert_int_equal(path.error, RBI_PATH_BAD_BYTE);
    assert_int_equal(path.error_offset, 9);
    /* "meta" that is cut off is a name like any other. */
    assert_int_equal(rbi_node_path_parse("/a/meta/x", 6, &path), 0);
    assert_int_equal(path.kind, RBI_NODE_PREFIX);
    assert_int_equal(path.meta_length, 0);
}

/* No text is both the name of a node and that of a cluster or instance. */
static void test_no_text_names_two_things(void **state)
{
    (void)state;
    static const char *const texts[] = {"/a/b/c/d/e/meta", "/a/b/c/d/e/f/meta", "/a/b/meta/d/e/f",
                                        "/a/b/meta/d/e/f/g", "/a/meta/c/d/e/f"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(texts); i++) {
        struct rbi_path_info info;
        struct rbi_node_path path;
        struct rbi_pidf pidf;
        assert_int_equal(rbi_pidf_parse(texts[i], strlen(texts[i]), &pidf, &info), 1);
        assert_int_equal(info.error, RBI_PATH_RESERVED);
        assert_memory_equal(texts[i] + info.error_offset, "meta", 4);
        (void)parse(texts[i], &path);
        assert_true(path.kind != RBI_NODE_CLUSTER && path.kind != RBI_NODE_INSTANCE);
    }
}

static void test_below(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *prefix;
        const char *name; /* NULL: not below */
    } cases[] = {
        {"/a/b/c", "/", "a"},       {"/a/b/c", "/a", "b"},   {"/a/b/c", "/a/b", "c"},
        {"/a/b/c", "/a/b/c", NULL}, {"/a/bc", "/a/b", NULL}, {"/a", "/a/b", NULL},
        {"/ab/c", "/a", NULL},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        size_t length = 0;
        const size_t at = rbi_node_path_below(cases[i].path, strlen(cases[i].path), cases[i].prefix,
                                              strlen(cases[i].prefix), &length);
        if (cases[i].name == NULL) {
            assert_int_equal(at, 0);
        } else {
            assert_int_equal(length, strlen(cases[i].name));
            assert_memory_equal(cases[i].path + at, cases[i].name, length);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_good),   cmocka_unit_test(test_parse_bad_says_why_and_where),
        cmocka_unit_test(test_parse_bounds), cmocka_unit_test(test_no_text_names_two_things),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
