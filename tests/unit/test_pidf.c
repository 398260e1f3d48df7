/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses. Scenario 97: paths that look alike. */
#include "bus/pidf.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static int parse(const char *text, struct rbi_path_info *info)
{
    return rbi_path_parse(text, strlen(text), info);
}

static void test_parse_good(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned elements;
        unsigned cluster_length;
    } good[] = {
        {"/", 0, 0},
        {"/a", 1, 0},
        {"/A/b_c/d-e/f.g/0", 5, 0},
        {"/a/b/c/d/e/f", 6, 12},
        {"/a/b/c/d/e/f/3.2.6.1", 7, 12},
        {"/a/b/c/d/e/f/g", 7, 12},
        {"/.../..a/a../-/_/f/g", 7, 18},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(good); i++) {
        struct rbi_path_info info;
        assert_int_equal(parse(good[i].text, &info), 0);
        assert_int_equal(info.error, RBI_PATH_OK);
        assert_int_equal(info.elements, good[i].elements);
        assert_int_equal(info.cluster_length, good[i].cluster_length);
        assert_int_equal(info.length, strlen(good[i].text));
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
        {"a", RBI_PATH_NO_SLASH, 0},
        {"a/b/c/d/e/f", RBI_PATH_NO_SLASH, 0},
        {"//", RBI_PATH_EMPTY_ELEMENT, 1},
        {"/a//b", RBI_PATH_EMPTY_ELEMENT, 3},
        {"//a", RBI_PATH_EMPTY_ELEMENT, 1},
        {"/a/", RBI_PATH_TRAILING_SLASH, 2},
        {"/a/b/c/d/e/f/", RBI_PATH_TRAILING_SLASH, 12},
        {"/a/b/c/d/e/f/g/", RBI_PATH_TRAILING_SLASH, 14},
        {"/a/./b", RBI_PATH_DOTS, 3},
        {"/a/..", RBI_PATH_DOTS, 3},
        {"/.", RBI_PATH_DOTS, 1},
        {"/a/b c", RBI_PATH_BAD_BYTE, 4},
        {"/a/\xc3\xa9", RBI_PATH_BAD_BYTE, 3},
        {"/a/b\\c", RBI_PATH_BAD_BYTE, 4},
        {"/a*", RBI_PATH_BAD_BYTE, 2},
        {"/a/b/c/d/e/f/g/h", RBI_PATH_TOO_MANY, 15},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        struct rbi_path_info info;
        memset(&info, 0x55, sizeof info);
        assert_int_equal(parse(bad[i].text, &info), 1);
        assert_int_equal(info.error, bad[i].error);
        assert_int_equal(info.error_offset, bad[i].offset);
        assert_true(strlen(rbi_path_error_text(info.error)) > 5);
    }
}

static void test_parse_nul_inside(void **state)
{
    (void)state;
    struct rbi_path_info info;
    assert_int_equal(rbi_path_parse("/a\0b", 4, &info), 1);
    assert_int_equal(info.error, RBI_PATH_BAD_BYTE);
    assert_int_equal(info.error_offset, 2);
    assert_int_equal(rbi_path_parse("/a\0", 3, &info), 1);
}

static void test_parse_each_byte(void **state)
{
    (void)state;
    const char *allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    for (int byte = 0; byte < 256; byte++) {
        const char text[3] = {'/', 'x', (char)byte};
        struct rbi_path_info info;
        const bool good = byte != 0 && strchr(allowed, byte) != NULL;
        assert_int_equal(rbi_path_parse(text, 3, &info), good ? 0 : 1);
    }
}

static void test_parse_lengths(void **state)
{
    (void)state;
    char text[70000];
    struct rbi_path_info info;
    memset(text, 'x', sizeof text);
    text[0] = '/';
    assert_int_equal(rbi_path_parse(text, 64, &info), 0); /* element of 63 */
    assert_int_equal(rbi_path_parse(text, 65, &info), 1);
    assert_int_equal(info.error, RBI_PATH_LONG_ELEMENT);
    assert_int_equal(info.error_offset, 64);
    /* 255 bytes: elements of 63, 63, 63, 62 */
    for (size_t at = 64; at < 256; at += 64) {
        text[at] = '/';
    }
    assert_int_equal(rbi_path_parse(text, 255, &info), 0);
    assert_int_equal(info.elements, 4);
    assert_int_equal(rbi_path_parse(text, 256, &info), 1);
    assert_int_equal(info.error, RBI_PATH_TOO_LONG);
    assert_int_equal(info.error_offset, 255);
    assert_int_equal(rbi_path_parse(text, 65536, &info), 1);
    assert_int_equal(info.error, RBI_PATH_TOO_LONG);
}

static void test_parse_reads_nothing_behind_the_end(void **state)
{
    (void)state;
    /* On the heap, so that a sanitizer sees one byte too many. */
    char *text = malloc(5);
    struct rbi_path_info info;
    assert_non_null(text);
    memcpy(text, "/a/bc", 5);
    assert_int_equal(rbi_path_parse(text, 5, &info), 0);
    memcpy(text, "/a/b/", 5);
    assert_int_equal(rbi_path_parse(text, 5, &info), 1);
    free(text);
}

static void test_cluster_id_is_of_the_whole_path(void **state)
{
    (void)state;
    static const char *const alike[] = {
        "/a/bc/x/x/x/x",  "/ab/c/x/x/x/x",  "/a/b/cx/x/x/x", "/A/bc/x/x/x/x",   "/a/bC/x/x/x/x",
        "/a.b/c/x/x/x/x", "/a/b.c/x/x/x/x", "/x/a/bc/x/x/x", "/a-bc/x/x/x/x/x",
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(alike); i++) {
        struct rbi_pidf one;
        struct rbi_path_info info;
        assert_int_equal(rbi_pidf_parse(alike[i], strlen(alike[i]), &one, &info), 0);
        assert_int_not_equal(one.cluster, 0);
        assert_int_equal(one.instance, 0);
        for (size_t j = 0; j < i; j++) {
            assert_true(one.cluster != rbi_cluster_id(alike[j], strlen(alike[j])));
        }
    }
    /* Pinned: it travels between hosts and releases. */
    assert_true(rbi_cluster_id("/a/b/c/d/e/f", 12) == UINT64_C(0x73495402e369a07b));
}

static void test_instance_id(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t id; /* 0: a hash */
    } names[] = {
        {"1", 1},
        {"42", 42},
        {"2147483647", INT32_MAX},
        {"2147483648", 0},
        {"99999999999999999999999", 0},
        {"0", 0},
        {"007", 0},
        {"01", 0},
        {"-1", 0},
        {"1a", 0},
        {"3.2.6.1", 3 << 24 | 2 << 16 | 6 << 8 | 1},
        {"0.0.0.1", 1},
        {"127.255.255.255", INT32_MAX},
        {"0.0.0.0", 0},
        {"128.0.0.1", 0},
        {"1.256.0.1", 0},
        {"1.02.3.4", 0},
        {"1.2.3", 0},
        {"1.2.3.", 0},
        {"1.2.3.4.5", 0},
        {"1..3.4", 0},
        {".1.2.3", 0},
        {"1.2.3.4x", 0},
        {"battle-1", 0},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(names); i++) {
        const int32_t id = rbi_instance_id(names[i].name, strlen(names[i].name));
        assert_true(id > 0);
        if (names[i].id != 0) {
            assert_int_equal(id, names[i].id);
        } else {
            assert_true(id > 0x10000); /* 24 hashes: none is small by chance */
        }
    }
    assert_int_equal(rbi_instance_id("battle-1", 8), 594705347);
}

static void test_pidf_parse(void **state)
{
    (void)state;
    struct rbi_pidf pidf = {.cluster = 7};
    struct rbi_path_info info;
    const char *text = "/a/b/c/d/e/f/3.2.6.1";
    assert_int_equal(rbi_pidf_parse(text, strlen(text), &pidf, &info), 0);
    assert_true(pidf.cluster == rbi_cluster_id("/a/b/c/d/e/f", 12));
    assert_int_equal(pidf.instance, 0x03020601);
    assert_int_equal(pidf.incarnation, 0);
    assert_int_equal(info.elements, 7);

    const struct rbi_pidf before = pidf;
    assert_int_equal(rbi_pidf_parse("/a/b/c/d/e", 10, &pidf, &info), 1);
    assert_int_equal(info.error, RBI_PATH_TOO_FEW);
    assert_int_equal(info.error_offset, 10);
    assert_int_equal(rbi_pidf_parse("/", 1, &pidf, &info), 1);
    assert_int_equal(info.error, RBI_PATH_TOO_FEW);
    assert_int_equal(rbi_pidf_parse("/a/b/c/d/e/f/g/h", 16, &pidf, &info), 1);
    assert_int_equal(info.error, RBI_PATH_TOO_MANY);
    assert_memory_equal(&pidf, &before, sizeof pidf);
}

static void test_format_raw(void **state)
{
    (void)state;
    char text[32];
    const struct rbi_pidf low = {.cluster = UINT64_C(0x0123456789abcdef), .instance = 7};
    const struct rbi_pidf high = {.cluster = UINT64_MAX, .instance = INT32_MIN};
    assert_int_equal(rbi_pidf_format_raw(&low, text, sizeof text), 19);
    assert_string_equal(text, "#0123456789abcdef/7");
    assert_true(rbi_pidf_format_raw(&high, text, sizeof text) < 32);
    assert_string_equal(text, "#ffffffffffffffff/-2147483648");
}

static bool below(const char *path, const char *prefix)
{
    return rbi_path_has_prefix(path, strlen(path), prefix, strlen(prefix));
}

static void test_has_prefix_at_element_borders_only(void **state)
{
    (void)state;
    assert_true(below("/a/b/c/d/e/f", "/"));
    assert_true(below("/a/b/c/d/e/f", "/a"));
    assert_true(below("/a/b/c/d/e/f", "/a/b/c/d/e/f"));
    assert_true(below("/a/b/c/d/e/f/g", "/a/b/c/d/e/f"));
    assert_false(below("/ab/b/c/d/e/f", "/a"));
    assert_false(below("/a/bc/c/d/e/f", "/a/b"));
    assert_false(below("/a/b/c/d/e/f", "/a/b/c/d/e/f/g"));
    assert_false(below("/a/b/c/d/e/f", "/b"));
    assert_false(below("/a/b/c/d/e/f", "/A"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_good),
        cmocka_unit_test(test_parse_bad_says_why_and_where),
        cmocka_unit_test(test_parse_nul_inside),
        cmocka_unit_test(test_parse_each_byte),
        cmocka_unit_test(test_parse_lengths),
        cmocka_unit_test(test_parse_reads_nothing_behind_the_end),
        cmocka_unit_test(test_cluster_id_is_of_the_whole_path),
        cmocka_unit_test(test_instance_id),
        cmocka_unit_test(test_pidf_parse),
        cmocka_unit_test(test_format_raw),
        cmocka_unit_test(test_has_prefix_at_element_borders_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
