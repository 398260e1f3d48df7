/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths and names: what they match, what they refuse, and what they may cost. */
#include "bus/glob.h"
#include "support/test.h"

#include <string.h>

struct row {
    const char *pattern;
    const char *text;
    bool matches;
};

static const struct row rows[] = {
    {"/game/a", "/game/a", true},
    {"/game/a", "/game/a/b", false},
    {"/game/a/b", "/game/a", false},
    {"/game/A", "/game/a", false},
    {"/game/*", "/game/a", true},
    {"/game/*", "/game/", true},
    {"/game/*", "/game/a/b", false},
    {"/game/*/b", "/game/a/b", true},
    {"/game/*/b", "/game/a/a/b", false},
    {"/game/zone-*", "/game/zone-7", true},
    {"/game/zone-*", "/game/zone-", true},
    {"/game/zone-*", "/game/zone-7/x", false},
    {"/game/*-7/x", "/game/zone-7/x", true},
    {"/game/*o*e*/x", "/game/zone-7/x", true},
    {"/game/*o*e*/x", "/game/zo/ne-7/x", false},
    {"/game/**", "/game/a", true},
    {"/game/**", "/game/a/b/c/d/e/1", true},
    {"/game/**", "/game", false},
    {"/game/**", "/games/a", false},
    {"/game**", "/games/a", true},
    {"**", "", true},
    {"**", "/any/thing", true},
    {"*", "", true},
    {"*", "7", true},
    {"*", "/", false},
    {"", "", true},
    {"", "a", false},
    {"a", "", false},
    {"/**/hall", "/game/a/b/c/d/hall", true},
    {"/**/hall", "/game/hall/c/d/hall", true},
    {"/**/hall", "/game/hall/c", false},
    {"/**/hall/*", "/game/hall/c/hall/9", true},
    {"/**/hall/*", "/game/hall/c/hall/9/8", false},
    {"/*/**/x", "/a/b/x", true},
    {"/*/**/x", "/a/x", false},
    {"/**a*b/c", "/xa/ya1b/c", true},
    {"/**a*b/c", "/xa/ya/b/c", false},
    {"battle-*", "battle-17", true},
    {"battle-*", "hall-17", false},
    {"*.1.*.4", "10.1.3.4", true},
    {"*.1.*.4", "10.1.3.5", false},
    {"a*a*a", "aaa", true},
    {"a*a*a", "aa", false},
    {"a.c", "abc", false},
};

static void test_match_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        const bool matches = rbi_glob_match(rows[i].pattern, strlen(rows[i].pattern), rows[i].text,
                                            strlen(rows[i].text));
        if (matches != rows[i].matches) {
            fail_msg("\"%s\" against \"%s\": %d", rows[i].pattern, rows[i].text, matches);
        }
    }
}

/* Lengths count, not terminators. */
static void test_match_parts_of_texts(void **state)
{
    (void)state;
    assert_true(rbi_glob_match("/a/*Z", 4, "/a/bcQ", 5));
    assert_false(rbi_glob_match("/a/*Z", 5, "/a/bcQ", 5));
}

/* What makes matchers that go back take years: many stars, and a text that fails at its end. */
static void test_match_many_stars_is_bounded(void **state)
{
    (void)state;
    char pattern[RBI_GLOB_BYTES_MAX + 1];
    char text[RBI_GLOB_BYTES_MAX];
    for (size_t i = 0; i < RBI_GLOB_BYTES_MAX; i++) {
        pattern[i] = i % 3 == 2 ? 'a' : '*';
    }
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';
    assert_false(rbi_glob_match(pattern, RBI_GLOB_BYTES_MAX, text, sizeof text));
    text[sizeof text - 1] = 'a';
    assert_true(rbi_glob_match(pattern, RBI_GLOB_BYTES_MAX, text, sizeof text));
    pattern[RBI_GLOB_BYTES_MAX] = 'a';
    assert_false(rbi_glob_match(pattern, RBI_GLOB_BYTES_MAX + 1, text, sizeof text));
}

/* The plain definition, which may take for ever. */
static bool reference(const char *p, const char *t)
{
    if (p[0] == '\0') {
        return t[0] == '\0';
    }
    if (p[0] == '*') {
        const bool deep = p[1] == '*';
        for (const char *rest = t;; rest++) {
            if (reference(p + (deep ? 2 : 1), rest)) {
                return true;
            }
            if (*rest == '\0' || (*rest == '/' && !deep)) {
                return false;
            }
        }
    }
    return p[0] == t[0] && reference(p + 1, t + 1);
}

static void test_match_equals_definition(void **state)
{
    (void)state;
    static const char letters[] = "ab/*";
    uint32_t seed = 1;
    unsigned matched = 0;
    for (unsigned round = 0; round < 50000; round++) {
        char pattern[8] = {0};
        char text[8] = {0};
        for (unsigned i = 0; i < 7; i++) {
            seed = seed * 1664525U + 1013904223U;
            pattern[i] = letters[(seed >> 24) % 4U];
            text[i] = letters[(seed >> 16) % 3U];
        }
        pattern[(seed >> 8) % 8U] = '\0';
        text[(seed >> 11) % 8U] = '\0';
        const bool expected = reference(pattern, text);
        if (rbi_glob_match(pattern, strlen(pattern), text, strlen(text)) != expected) {
            fail_msg("\"%s\" against \"%s\" should be %d", pattern, text, expected);
        }
        matched += expected;
    }
    assert_true(matched > 1000);
}

static void test_check_errors(void **state)
{
    (void)state;
    unsigned offset = 77;
    assert_int_equal(rbi_glob_check("/game/**/x-*", 12, &offset), RBI_GLOB_OK);
    assert_int_equal(offset, 77);
    assert_int_equal(rbi_glob_check("", 0, &offset), RBI_GLOB_EMPTY);
    assert_int_equal(rbi_glob_check("/a/***", 6, &offset), RBI_GLOB_STARS);
    assert_int_equal(offset, 5);
    assert_int_equal(rbi_glob_check("/a?", 3, &offset), RBI_GLOB_BAD_BYTE);
    assert_int_equal(offset, 2);
    assert_int_equal(rbi_glob_check("/a\0b", 4, NULL), RBI_GLOB_BAD_BYTE);
    char text[RBI_GLOB_BYTES_MAX + 1];
    memset(text, 'a', sizeof text);
    assert_int_equal(rbi_glob_check(text, RBI_GLOB_BYTES_MAX, NULL), RBI_GLOB_OK);
    assert_int_equal(rbi_glob_check(text, sizeof text, &offset), RBI_GLOB_TOO_LONG);
    for (int error = RBI_GLOB_OK; error <= RBI_GLOB_STARS; error++) {
        assert_string_not_equal(rbi_glob_error_text((enum rbi_glob_error)error), "unknown error");
    }
}

/* ---- two patterns ------------------------------------------------------------------------- */

#define SHORT_MAX 4U /* bytes of a pattern */
#define TEXT_MAX  6U /* what two such patterns have in common is no longer at its shortest */

/** The n-th text of the bytes of @p alphabet; shorter ones first, from "". */
static size_t nth(unsigned n, const char *alphabet, char *out)
{
    const unsigned letters = (unsigned)strlen(alphabet);
    size_t length = 0;
    for (; n > 0; n = (n - 1) / letters) {
        out[length++] = alphabet[(n - 1) % letters];
    }
    return length;
}

static bool meet_by_trying(const char *a, size_t a_length, const char *b, size_t b_length)
{
    for (unsigned n = 0; n < 127; n++) { /* all of two letters up to TEXT_MAX */
        char text[TEXT_MAX + 1];
        const size_t length = nth(n, "a/", text);
        if (rbi_glob_match(a, a_length, text, length) &&
            rbi_glob_match(b, b_length, text, length)) {
            return true;
        }
    }
    return false;
}

/* Two patterns meet exactly when there is a text that both describe. */
static void test_meet_equals_definition(void **state)
{
    unsigned met = 0;
    unsigned pairs = 0;
    (void)state;
    for (unsigned i = 1; i < 121; i++) {
        char a[SHORT_MAX + 1];
        const size_t a_length = nth(i, "a/*", a);
        if (rbi_glob_check(a, a_length, NULL) != RBI_GLOB_OK) {
            continue;
        }
        for (unsigned j = 1; j < 121; j++) {
            char b[SHORT_MAX + 1];
            const size_t b_length = nth(j, "a/*", b);
            if (rbi_glob_check(b, b_length, NULL) == RBI_GLOB_OK) {
                const bool meet = rbi_glob_meet(a, a_length, b, b_length);
                assert_int_equal(meet, meet_by_trying(a, a_length, b, b_length));
                met += meet;
                pairs++;
            }
        }
    }
    assert_true(met > 1000 && pairs - met > 1000);
}

static void test_meet_of_paths(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool meet;
    } paths[] = {
        {"/game/**", "/game/eu/pc/w1/core/lobby", true},
        {"/game/**", "/shop/**", false},
        {"/**", "/shop/*/*/*/*/gate", true},
        {"/game/*/*/*/*/lobby", "/game/eu/**", true},
        {"/game/*/*/*/*/lobby", "/game/*/*/*/*/gate", false},
        {"/game/**/gate-*", "/game/**-1", true},
        {"/game/*/x", "/game/a/b/x", false},
    };
    char longest[RBI_GLOB_BYTES_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const size_t a = strlen(paths[i].a);
        const size_t b = strlen(paths[i].b);
        assert_int_equal(rbi_glob_meet(paths[i].a, a, paths[i].b, b), paths[i].meet);
        assert_int_equal(rbi_glob_meet(paths[i].b, b, paths[i].a, a), paths[i].meet);
    }
    memset(longest, '*', sizeof longest);
    longest[2] = 'a';
    assert_true(rbi_glob_meet(longest, RBI_GLOB_BYTES_MAX, longest, RBI_GLOB_BYTES_MAX));
    assert_false(rbi_glob_meet(longest, sizeof longest, longest, sizeof longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match_table),
        cmocka_unit_test(test_match_parts_of_texts),
        cmocka_unit_test(test_match_many_stars_is_bounded),
        cmocka_unit_test(test_match_equals_definition),
        cmocka_unit_test(test_check_errors),
        cmocka_unit_test(test_meet_equals_definition),
        cmocka_unit_test(test_meet_of_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
