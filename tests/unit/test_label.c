/* SPDX-License-Identifier: Apache-2.0 */
/* Sets, locations and tags as text (features 1.2, T19 to T23): what is one, what equals what. */
#include "bus/label.h"
#include "support/test.h"

#include <string.h>

static void test_set_parse_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        {"app.south.1", true},    {"app.south.*", true},
        {"a-b.c_d.0", true},      {"", false},
        {"app", false},           {"app.south", false},
        {"app.south.", false},    {"app..1", false},
        {".south.1", false},      {"*.south.1", false},
        {"app.*.1", false},       {"app.south.1.", false},
        {"app.south.1.2", false}, {"app.south.**", false},
        {"app.south.*.", false},  {"app.so uth.1", false},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct rbi_label_set set;
        if (rbi_label_set_parse(rows[i].text, &set) != rows[i].valid) {
            fail_msg("\"%s\" should be %d", rows[i].text, rows[i].valid);
        }
        /* Nothing is no set, and may be said. */
        assert_int_equal(rbi_label_set_valid(rows[i].text), rows[i].valid || *rows[i].text == 0);
    }
    struct rbi_label_set set;
    assert_true(rbi_label_set_parse("app.south.12", &set));
    assert_memory_equal(set.area.text, "south", set.area.length);
    assert_int_equal(set.group.length, 2);
    assert_false(set.all_groups);
    assert_true(rbi_label_set_parse("app.south.*", &set));
    assert_true(set.all_groups);
}

static void test_set_covers(void **state)
{
    (void)state;
    assert_true(rbi_label_set_covers("app.south.1", "app.south.1"));
    assert_false(rbi_label_set_covers("app.south.1", "app.south.10"));
    assert_true(rbi_label_set_covers("app.south.*", "app.south.1"));
    assert_true(rbi_label_set_covers("app.south.*", "app.south.*"));
    assert_false(rbi_label_set_covers("app.south.1", "app.south.*"));
    assert_false(rbi_label_set_covers("app.south.*", "app.north.1"));
    assert_false(rbi_label_set_covers("app.south.*", "apps.south.1"));
    assert_false(rbi_label_set_covers("", ""));
}

static void test_idc_forms(void **state)
{
    (void)state;
    struct rbi_label_idc idc = rbi_label_idc_parse("room1/south");
    assert_int_equal(idc.group.length, 5);
    assert_int_equal(idc.zone.length, 5);
    idc = rbi_label_idc_parse("room1");
    assert_int_equal(idc.group.length, 5);
    assert_int_equal(idc.zone.length, 0);
    static const char *const nowhere[] = {"", "/", "/south", "room1/", "a/b/c", "a/b/", "a//"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(nowhere); i++) {
        idc = rbi_label_idc_parse(nowhere[i]);
        assert_int_equal(idc.group.length, 0);
        assert_int_equal(idc.zone.length, 0);
    }
}

static void test_idc_covers(void **state)
{
    (void)state;
    assert_true(rbi_label_idc_covers("room1", "room1/south"));
    assert_true(rbi_label_idc_covers("room1/south", "room1/south"));
    assert_false(rbi_label_idc_covers("room1/south", "room1"));
    assert_false(rbi_label_idc_covers("room1/south", "room1/north"));
    assert_false(rbi_label_idc_covers("room1", "room10"));
    assert_false(rbi_label_idc_covers("", ""));
}

static void test_tags(void **state)
{
    (void)state;
    assert_true(rbi_label_has_tag("v2", "v2"));
    assert_true(rbi_label_has_tag("pre,v2", "v2"));
    assert_true(rbi_label_has_tag("v2,pre", "v2"));
    assert_false(rbi_label_has_tag("v20,v", "v2"));
    assert_false(rbi_label_has_tag("", "v2"));
    assert_false(rbi_label_has_tag("v2", ""));
    assert_false(rbi_label_has_tag(",,", ""));
    assert_true(rbi_label_tagged("v2"));
    assert_true(rbi_label_tagged(",v2"));
    assert_false(rbi_label_tagged(""));
    assert_false(rbi_label_tagged(",,"));
}

static void test_what_may_be_said(void **state)
{
    (void)state;
    static const char *const places[] = {"", "room1", "room1/south", "r.1:a=b*/z-_"};
    static const char *const no_places[] = {"/",      "room1/", "/south", "a/b/c",
                                            "room 1", "r\n",    "r/\x80"};
    static const char *const tags[] = {"", "v2", "v2,pre", "a=1,b:2,", ",", "*"};
    static const char *const no_tags[] = {" ",    "v2, pre",     "v2/pre",
                                          "v2\n", "caf\xc3\xa9", "\"v2\""};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(places); i++) {
        assert_true(rbi_label_idc_valid(places[i]));
    }
    for (size_t i = 0; i < RBI_ARRAY_SIZE(no_places); i++) {
        assert_false(rbi_label_idc_valid(no_places[i]));
    }
    for (size_t i = 0; i < RBI_ARRAY_SIZE(tags); i++) {
        assert_true(rbi_label_tags_valid(tags[i]));
    }
    for (size_t i = 0; i < RBI_ARRAY_SIZE(no_tags); i++) {
        assert_false(rbi_label_tags_valid(no_tags[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_parse_forms),
        cmocka_unit_test(test_set_covers),
        cmocka_unit_test(test_idc_forms),
        cmocka_unit_test(test_idc_covers),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_what_may_be_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
