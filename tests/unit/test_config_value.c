/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typing of values, over a table of its own: texts stay what was written, numbers are
 * decimal, durations and sizes have units (scenarios 122 and 125).
 */
#include "bus/config_schema.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

struct sample {
    char area[RBI_CONFIG_STRING_MAX + 1];
    char token[RBI_CONFIG_STRING_MAX + 1];
    bool flag;
    uint32_t number;
    uint32_t wait_ms;
    uint64_t ring_bytes;
    uint32_t mode;
    uint32_t colour;
};

static const char *const colours[] = {"red", "green", NULL};
static const struct rbi_config_key sample_keys[] = {
    {"s.area", RBI_CONFIG_TYPE_TEXT, false, offsetof(struct sample, area), 0, 255, "", NULL, ""},
    {"s.token", RBI_CONFIG_TYPE_TEXT, false, offsetof(struct sample, token), 2, 8, "none", NULL,
     ""},
    {"s.flag", RBI_CONFIG_TYPE_BOOL, false, offsetof(struct sample, flag), 0, 1, "false", NULL, ""},
    {"s.number", RBI_CONFIG_TYPE_NUMBER, false, offsetof(struct sample, number), 0, UINT32_MAX, "0",
     NULL, ""},
    {"s.wait", RBI_CONFIG_TYPE_DURATION, false, offsetof(struct sample, wait_ms), 0, UINT32_MAX,
     "1s", NULL, ""},
    {"s.ring", RBI_CONFIG_TYPE_SIZE, false, offsetof(struct sample, ring_bytes), 0,
     UINT64_C(1) << 40, "64KiB", NULL, ""},
    {"s.mode", RBI_CONFIG_TYPE_MODE, false, offsetof(struct sample, mode), 0, 0777, "0600", NULL,
     ""},
    {"s.colour", RBI_CONFIG_TYPE_CHOICE, false, offsetof(struct sample, colour), 0, 1, "red",
     colours, ""},
};
static const struct rbi_config_schema schema = {sample_keys, RBI_ARRAY_SIZE(sample_keys),
                                                sizeof(struct sample)};

static struct sample sample;
static struct rbi_config_errors errors;

static int set(const char *key, const char *value)
{
    char text[1024];
    struct sample scratch;
    (void)snprintf(text, sizeof text, "s:\n  %s: %s\n", key, value);
    return rbi_config_parse_with(&schema, text, strlen(text), &sample, &scratch, &errors);
}

static void accept(const char *key, const char *value)
{
    if (set(key, value) != 0) {
        fail_msg("%s: %s refused: %s", key, value, errors.items[0].text);
    }
}

static void refuse(const char *key, const char *value, const char *says)
{
    if (set(key, value) != 1) {
        fail_msg("%s: %s was accepted", key, value);
    }
    const struct rbi_config_error *e = &errors.items[0];
    assert_int_equal(errors.count, 1);
    if (e->line != 2 || e->column != strlen(key) + 5 || !strstr(e->text, says) ||
        !strstr(e->text, ": expected ") || !strstr(e->text, ", found ")) {
        fail_msg("%s: %s: expected %s\nfound %u:%u %s", key, value, says, e->line, e->column,
                 e->text);
    }
}

/* 122: no text turns into something else. */
static void test_text_is_kept_exactly(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "NO",    "no",   "on",         "Yes", "true", "012", "1e3", "0x1F", "22:22", "null",
        "1_000", ".inf", "2001-01-01", "=",   "a b",  "0",   "+1",  "1.10", "~x",    "/a:b#c"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(texts); i++) {
        char quoted[64];
        accept("area", texts[i]);
        assert_string_equal(sample.area, texts[i]);
        (void)snprintf(quoted, sizeof quoted, "\"%s\"", texts[i]);
        accept("area", quoted);
        assert_string_equal(sample.area, texts[i]);
        (void)snprintf(quoted, sizeof quoted, "'%s'", texts[i]);
        accept("area", quoted);
        assert_string_equal(sample.area, texts[i]);
    }
    refuse("area", "~", "found nothing");
    assert_int_equal(set("area", ""), 1);
    assert_non_null(
        strstr(errors.items[0].text, "s.area: expected a text of 0..255 bytes, found nothing"));
    accept("area", "'~'");
    assert_string_equal(sample.area, "~");
}

static void test_text_length(void **state)
{
    (void)state;
    char text[300];
    memset(text, 'x', sizeof text);
    text[255] = '\0';
    accept("area", text);
    assert_string_equal(sample.area, text);
    text[255] = 'x';
    text[256] = '\0';
    refuse("area", text, "it has 256 bytes");
    refuse("token", "a", "expected a text of 2..8 bytes, found \"a\"; it has 1 bytes");
    refuse("token", "abcdefghi", "it has 9 bytes");
    accept("token", "abcdefgh");
    accept("token", "ab"); /* shorter than before: nothing of the old one stays */
    for (size_t i = 2; i < sizeof sample.token; i++) {
        assert_int_equal(sample.token[i], 0);
    }
}

static void test_bool_is_true_or_false(void **state)
{
    (void)state;
    accept("flag", "true");
    assert_true(sample.flag);
    accept("flag", "false");
    assert_false(sample.flag);
    static const char *const wrong[] = {"yes", "no", "on", "off", "NO",   "True", "TRUE",
                                        "1",   "0",  "y",  "~",   "\"\"", "truee"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        refuse("flag", wrong[i], "s.flag: expected one of true, false");
    }
    refuse("flag", "True", "did you mean true?");
}

static void test_number_is_decimal(void **state)
{
    (void)state;
    accept("number", "0");
    assert_int_equal(sample.number, 0);
    accept("number", "4294967295");
    assert_int_equal(sample.number, UINT32_MAX);
    accept("number", "\"7\"");
    assert_int_equal(sample.number, 7);
    refuse("number", "4294967296", "out of range");
    refuse("number", "18446744073709551617", "out of range"); /* 2^64 + 1 */
    refuse("number", "99999999999999999999999999999999", "out of range");
    refuse("number", "012", "a leading zero could mean octal");
    refuse("number", "0x1F", "hexadecimal is not taken");
    refuse("number", "0o17", "expected a decimal number");
    refuse("number", "1e3", "whole numbers only");
    refuse("number", "1.0", "whole numbers only");
    refuse("number", "-1", "it cannot be negative");
    refuse("number", "+1", "expected a decimal number");
    refuse("number", "22:22", "expected a decimal number");
    refuse("number", "1_000", "digits are not grouped");
    refuse("number", "1,000", "digits are not grouped");
    refuse("number", "5s", "expected a decimal number");
    refuse("number", "NO", "expected a decimal number");
    refuse("number", "true", "expected a decimal number");
    refuse("number", "\" 7\"", "expected a decimal number");
    refuse("number", "\xd9\xa3", "expected a decimal number"); /* a digit, but not ours */
}

/* 125 */
static void test_duration_needs_a_unit(void **state)
{
    (void)state;
    accept("wait", "5ms");
    assert_int_equal(sample.wait_ms, 5);
    accept("wait", "5s");
    assert_int_equal(sample.wait_ms, 5000);
    accept("wait", "5m");
    assert_int_equal(sample.wait_ms, 300000);
    accept("wait", "5h");
    assert_int_equal(sample.wait_ms, 18000000);
    accept("wait", "0s");
    assert_int_equal(sample.wait_ms, 0);
    refuse("wait", "5", "the unit is missing: ms, s, m, h");
    refuse("wait", "0", "the unit is missing");
    refuse("wait", "5 s", "no space before the unit");
    refuse("wait", "5M", "minutes are m");
    refuse("wait", "5S", "\"S\" is not a unit here");
    refuse("wait", "5us", "\"us\" is not a unit here");
    refuse("wait", "5d", "\"d\" is not a unit here");
    refuse("wait", "5sec", "\"sec\" is not a unit here");
    refuse("wait", "1m30s", "\"m30s\" is not a unit here");
    refuse("wait", "1.5s", "whole numbers only");
    refuse("wait", "-5s", "it cannot be negative");
    refuse("wait", "05s", "leading zero");
    refuse("wait", "s", "expected a duration such as 500ms, 5s, 2m or 1h");
    refuse("wait", "0x5s", "hexadecimal");
    refuse("wait", "1193h 1ms", "expected a duration");
    refuse("wait", "1194h", "out of range"); /* more than 2^32 ms */
    refuse("wait", "18446744073709551615h", "out of range");
    refuse("wait", "144115188075855872h", "out of range"); /* 0 modulo 2^64 */
    refuse("wait", "\"5\\0s\"", "expected a duration");
}

static void test_size_needs_a_binary_unit(void **state)
{
    (void)state;
    accept("ring", "64KiB");
    assert_int_equal(sample.ring_bytes, 65536);
    accept("ring", "512B");
    assert_int_equal(sample.ring_bytes, 512);
    accept("ring", "3MiB");
    assert_int_equal(sample.ring_bytes, 3 << 20);
    accept("ring", "5GiB");
    assert_true(sample.ring_bytes == UINT64_C(5) << 30);
    accept("ring", "1024GiB");
    refuse("ring", "1025GiB", "out of range");
    refuse("ring", "18014398509481984KiB", "out of range"); /* 0 modulo 2^64 */
    refuse("ring", "64", "the unit is missing: B, KiB, MiB, GiB");
    refuse("ring", "64k", "\"k\" is not a unit here; did you mean 64KiB?");
    refuse("ring", "64K", "\"K\" is not a unit here; did you mean 64KiB?");
    refuse("ring", "64KB", "\"KB\" is not a unit here; did you mean 64KiB?");
    refuse("ring", "64kib", "did you mean 64KiB?");
    refuse("ring", "1M", "did you mean 1MiB?");
    refuse("ring", "1g", "did you mean 1GiB?");
    refuse("ring", "8b", "did you mean 8B?");
    refuse("ring", "1TiB", "\"TiB\" is not a unit here");
    refuse("ring", "64 KiB", "no space before the unit");
    refuse("ring", "0.5GiB", "whole numbers only");
    refuse("ring", "-1B", "negative");
}

static void test_mode_and_choice(void **state)
{
    (void)state;
    accept("mode", "0640");
    assert_int_equal(sample.mode, 0640);
    accept("mode", "\"0777\"");
    assert_int_equal(sample.mode, 0777);
    accept("mode", "0000");
    assert_int_equal(sample.mode, 0);
    refuse("mode", "640", "expected four octal digits");
    refuse("mode", "438", "expected four octal digits");
    refuse("mode", "0888", "expected four octal digits");
    refuse("mode", "1777", "a leading zero and three digits");
    refuse("mode", "00640", "a leading zero and three digits");
    refuse("mode", "rw-r--r--", "expected four octal digits");
    refuse("mode", "0o640", "expected four octal digits");
    accept("colour", "green");
    assert_int_equal(sample.colour, 1);
    refuse("colour", "greeen", "expected one of red, green, found \"greeen\"; did you mean green?");
    refuse("colour", "Red", "did you mean red?");
    refuse("colour", "1", "expected one of red, green");
    refuse("colour", "red,green", "expected one of red, green");
}

static void test_messages_are_one_printable_line(void **state)
{
    (void)state;
    char found[RBI_CONFIG_QUOTE_MAX];
    assert_string_equal(rbi_config_quote("a\nb\x1b\xc3\xa9", 6, found, sizeof found), "\"a?b???\"");
    assert_string_equal(rbi_config_quote("", 0, found, sizeof found), "\"\"");
    char text[200];
    memset(text, 'y', sizeof text);
    rbi_config_quote(text, sizeof text, found, sizeof found);
    assert_int_equal(strlen(found), sizeof found - 1);
    assert_string_equal(found + strlen(found) - 4, "...\"");
}

static void test_distance(void **state)
{
    (void)state;
#define DISTANCE(a, b) rbi_config_distance(a, strlen(a), b, strlen(b))
    assert_int_equal(DISTANCE("interval", "interval"), 0);
    assert_int_equal(DISTANCE("interval", "intervall"), 1);
    assert_int_equal(DISTANCE("interval", "interva"), 1);
    assert_int_equal(DISTANCE("interval", "intrevla"), UINT32_MAX);
    assert_int_equal(DISTANCE("daemon", "deamon"), 2);
    assert_int_equal(DISTANCE("a", "b"), UINT32_MAX); /* nothing in common is not near */
    assert_int_equal(DISTANCE("", ""), UINT32_MAX);
    assert_int_equal(DISTANCE("slots", "clusters"), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_kept_exactly),
        cmocka_unit_test(test_text_length),
        cmocka_unit_test(test_bool_is_true_or_false),
        cmocka_unit_test(test_number_is_decimal),
        cmocka_unit_test(test_duration_needs_a_unit),
        cmocka_unit_test(test_size_needs_a_binary_unit),
        cmocka_unit_test(test_mode_and_choice),
        cmocka_unit_test(test_messages_are_one_printable_line),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
