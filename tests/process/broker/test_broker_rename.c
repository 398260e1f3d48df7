/* SPDX-License-Identifier: Apache-2.0 */
/* Names of clusters on the other side of a broker (features D76, B19): which patterns there are,
 * what they find, and what that is called. */
#include "daemon/broker/rename.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        {"/a/b/c/d/e/f", true},
        {"/a/b/c/d/e/*", true},
        {"/*/*/*/*/*/*", true},
        {"/a/**", true},
        {"/**", true},
        {"/a/b/c/d/e/**", true},
        {"/a/*/c/**", true},
        {"", false},
        {"/", false},
        {"a/b/c/d/e/f", false},
        {"/a/b/c/d/e", false},
        {"/a/b/c/d/e/f/g", false},
        {"/a/b/c/d/e/f/", false},
        {"/a//c/d/e/f", false},
        {"/a/b/c/d/e/f*", false}, /* a star is a whole element */
        {"/a/**/f", false},
        {"/a/b/c/d/e/f/**", false},
        {"/a/b/c/d/e/..", false},
        {"/a/b/c/d/e/f f", false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rbi_rename_valid(rows[i].text) != rows[i].valid) {
            fail_msg("%s", rows[i].text);
        }
    }
}

static void test_names_fit(void **state)
{
    (void)state;
    static const struct {
        const char *match;
        const char *as;
        bool fits;
    } rows[] = {
        {"/a/b/c/d/e/f", "/u/v/w/x/y/z", true},
        {"/a/b/c/d/e/*", "/*/v/w/x/y/z", true},
        {"/a/b/c/d/e/*", "/u/v/w/x/y/z", false}, /* two clusters, one name */
        {"/a/b/c/d/e/f", "/u/v/w/x/y/*", false},
        {"/a/*/c/d/e/*", "/*/*/w/x/y/z", true},
        {"/a/**", "/u/**", true},
        {"/a/**", "/u/v/**", false}, /* not as many elements left */
        {"/a/**", "/u/v/w/x/y/*", false},
        {"/a/*/**", "/*/u/**", true},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rbi_rename_fits(rows[i].match, rows[i].as) != rows[i].fits) {
            fail_msg("%s as %s", rows[i].match, rows[i].as);
        }
    }
}

static void test_new_names(void **state)
{
    (void)state;
    static const struct {
        const char *match;
        const char *as;
        const char *cluster;
        const char *expected; /* NULL: it is not about it */
    } rows[] = {
        {"/a/b/c/d/e/f", "/u/v/w/x/y/z", "/a/b/c/d/e/f", "/u/v/w/x/y/z"},
        {"/a/b/c/d/e/f", "/u/v/w/x/y/z", "/a/b/c/d/e/g", NULL},
        {"/a/b/c/d/e/f", "/u/v/w/x/y/z", "/a/b/c/d/e/ff", NULL},
        {"/a/b/c/d/e/*", "/u/v/w/x/y/*", "/a/b/c/d/e/shop", "/u/v/w/x/y/shop"},
        {"/a/b/c/d/e/*", "/*/v/w/x/y/z", "/a/b/c/d/e/shop", "/shop/v/w/x/y/z"},
        {"/a/*/c/d/e/*", "/*/*/w/x/y/z", "/a/B/c/d/e/F", "/B/F/w/x/y/z"},
        {"/a/**", "/u/**", "/a/1/2/3/4/5", "/u/1/2/3/4/5"},
        {"/a/*/**", "/*/u/**", "/a/1/2/3/4/5", "/1/u/2/3/4/5"},
        {"/**", "/**", "/a/1/2/3/4/5", "/a/1/2/3/4/5"},
        {"/a/**", "/u/**", "/b/1/2/3/4/5", NULL},
        {"/a/**", "/u/**", "/a/1/2/3/4", NULL}, /* no cluster */
        {"/a/**", "/u/**", "/a/1/2/3/4/5/6", NULL},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[RBI_PATH_MAX + 1] = "";
        const size_t length = strlen(rows[i].cluster);
        const int r = rbi_rename(rows[i].match, rows[i].as, rows[i].cluster, length, out);
        assert_int_equal(r, rows[i].expected == NULL);
        assert_string_equal(out, rows[i].expected != NULL ? rows[i].expected : "");
        assert_int_equal(rbi_rename_matches(rows[i].match, rows[i].cluster, length),
                         rows[i].expected != NULL);
    }
}

/* One that would be longer than a path can be. */
static void test_too_long(void **state)
{
    (void)state;
    char as[RBI_PATH_MAX + 1] = "";
    char cluster[RBI_PATH_MAX + 1] = "/a/b/c/d/e/";
    char out[RBI_PATH_MAX + 1];
    for (unsigned i = 0; i < 4; i++) {
        as[strlen(as)] = '/';
        memset(as + strlen(as), 'x', i < 3 ? 63 : 50);
    }
    (void)snprintf(as + strlen(as), sizeof as - strlen(as), "/y/*"); /* 247 bytes */
    memset(cluster + strlen(cluster), 'f', 9);
    assert_true(rbi_rename_fits("/a/b/c/d/e/*", as));
    assert_int_equal(rbi_rename("/a/b/c/d/e/*", as, cluster, strlen(cluster), out), 0);
    assert_int_equal(strlen(out), RBI_PATH_MAX);
    cluster[strlen(cluster)] = 'f';
    assert_int_equal(rbi_rename("/a/b/c/d/e/*", as, cluster, strlen(cluster), out), 1);
}

static void test_patterns_meet(void **state)
{
    (void)state;
    assert_true(rbi_rename_meet("/a/b/c/d/e/f", "/a/b/c/d/e/f"));
    assert_true(rbi_rename_meet("/a/b/c/d/e/*", "/a/*/c/d/e/f"));
    assert_true(rbi_rename_meet("/a/**", "/a/b/c/d/e/f"));
    assert_true(rbi_rename_meet("/**", "/a/*/c/d/e/f"));
    assert_false(rbi_rename_meet("/a/**", "/b/**"));
    assert_false(rbi_rename_meet("/a/b/c/d/e/*", "/a/x/c/d/e/*"));
    assert_int_equal(rbi_rename_prefix("/a/b/*/d/e/f"), 4);
    assert_int_equal(rbi_rename_prefix("/**"), 0);
    assert_int_equal(rbi_rename_prefix("/a/b/c/d/e/f"), 12);
    assert_true(rbi_rename_is_plain("/a/b/c/d/e/f"));
    assert_false(rbi_rename_is_plain("/a/**"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),      cmocka_unit_test(test_names_fit),
        cmocka_unit_test(test_new_names),     cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_patterns_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
