/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of ringbusctl that need no bus: command line, durations, JSON. */
#include "daemon/ctl/ctl.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/metrics.h"
#include "daemon/ctl/rows.h"
#include "support/test.h"

#include <ringbus/ringbus.h>
#include <stdlib.h>
#include <string.h>

static int parse(struct rbi_ctl_args *args, const char *line)
{
    static char words[256];
    char *argv[16];
    int argc = 0;
    char *rest = NULL;
    snprintf(words, sizeof words, "ringbusctl %s", line);
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    return rbi_ctl_args_parse(argc, argv, args);
}

static void test_args_accepted(void **state)
{
    struct rbi_ctl_args args;
    (void)state;
    assert_int_equal(parse(&args, "ping --count=5 /A --interval 20ms --json --socket /x"), 0);
    assert_string_equal(args.command->name, "ping");
    assert_int_equal(args.count, 5);
    assert_int_equal(args.interval_ms, 20);
    assert_int_equal(args.timeout_ms, 5000);
    assert_true(args.json);
    assert_string_equal(args.socket, "/x");
    assert_int_equal(args.operand_count, 1);
    assert_string_equal(args.operands[0], "/A");

    assert_int_equal(parse(&args, "check -"), 0);
    assert_string_equal(args.operands[0], "-");
    assert_int_equal(parse(&args, "check -- --json"), 0);
    assert_string_equal(args.operands[0], "--json");
    assert_false(args.json);
    assert_int_equal(parse(&args, "send /A --key="), 0);
    assert_string_equal(args.key, "");
    assert_int_equal(parse(&args, "bench"), 0);
    assert_int_equal(args.seconds, 5);
    assert_int_equal(args.size_count, 3);
    assert_int_equal(args.sizes[2], 65536);
    assert_int_equal(parse(&args, "bench --seconds 60 --size 16,1048576 --cpus 7,0 --path /B"), 0);
    assert_int_equal(args.seconds, 60);
    assert_int_equal(args.size_count, 2);
    assert_int_equal(args.sizes[0], 16);
    assert_int_equal(args.sizes[1], 1048576);
    assert_int_equal(args.cpus[0], 7);
    assert_int_equal(args.cpus[1], 0);
    assert_string_equal(args.path, "/B");
    assert_int_equal(args.given, RBI_CTL_SECONDS | RBI_CTL_SIZE | RBI_CTL_CPUS | RBI_CTL_PATH);
    assert_int_equal(parse(&args, "-h"), 0);
    assert_string_equal(args.command->name, "help");
}

static void test_args_refused_leave_output_alone(void **state)
{
    static const char *const lines[] = {
        "",
        "nothing",
        "status extra",
        "show",
        "ls /A /B",
        "ls --lines",
        "ping /A --count",
        "ping /A --count 0",
        "ping /A --count -1",
        "ping /A --count 99999999999999999999",
        "ping /A --interval 5",
        "ping /A --interval 61m",
        "ping /A --interval 4000000000ms",
        "ping /A --interval 1h",
        "ping /A --timeout 0",
        "send /A --lines=1",
        "send /A --socket=",
        "send /A --jso",
        "bench /A",
        "bench --seconds 0",
        "bench --seconds 61",
        "bench --seconds 1,2",
        "bench --size 15",
        "bench --size 1048577",
        "bench --size 48,",
        "bench --size 48;64",
        "bench --size 16,16,16,16,16,16,16,16,16",
        "bench --cpus 1",
        "bench --cpus 1,1024",
        "bench --cpus 0,1,2",
        "bench --count 3",
        "ping /A --seconds 3",
    };
    struct rbi_ctl_args args;
    struct rbi_ctl_args before;
    (void)state;
    memset(&args, 0x5a, sizeof args);
    memcpy(&before, &args, sizeof args);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(lines); i++) {
        print_message("%s\n", lines[i]);
        assert_int_equal(parse(&args, lines[i]), RBI_CTL_USAGE);
        assert_memory_equal(&args, &before, sizeof args);
    }
}

static void test_duration(void **state)
{
    static const struct {
        const char *text;
        uint32_t ms;
    } good[] = {{"0", 0},       {"0s", 0},        {"1ms", 1},         {"5s", 5000},
                {"2m", 120000}, {"60m", 3600000}, {"3600s", 3600000}, {"007ms", 7}};
    static const char *const bad[] = {"",    "s",   "5",         "1.5s",
                                      "5 s", " 5s", "-5s",       "+5s",
                                      "5S",  "61m", "3600001ms", "18446744073709551616ms",
                                      "5sec"};
    uint32_t ms = 0;
    (void)state;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(good); i++) {
        assert_int_equal(rbi_ctl_duration_parse(good[i].text, &ms), 0);
        assert_int_equal(ms, good[i].ms);
    }
    ms = 77;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_int_equal(rbi_ctl_duration_parse(bad[i], &ms), 1);
        assert_int_equal(ms, 77);
    }
}

static void test_utf8(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"plain", 5, true},
        {"\0", 1, true},
        {"\xc3\xa4", 2, true},
        {"\xe2\x82\xac", 3, true},
        {"\xf0\x9f\x98\x80", 4, true},
        {"\xf4\x8f\xbf\xbf", 4, true},
        {"\xc3", 1, false},
        {"\x80", 1, false},
        {"\xc0\x80", 2, false},         /* overlong */
        {"\xe0\x80\x80", 3, false},     /* overlong */
        {"\xf0\x80\x80\x80", 4, false}, /* overlong */
        {"\xed\xa0\x80", 3, false},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, false}, /* above the last */
        {"\xf8\x88\x80\x80\x80", 5, false},
        {"\xff", 1, false},
        {"a\xe2\x82", 3, false},
    };
    (void)state;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        const unsigned char *bytes = (const unsigned char *)cases[i].bytes;
        assert_int_equal(rbi_ctl_utf8_valid(bytes, cases[i].size), cases[i].valid);
    }
}

static void test_json_text(void **state)
{
    char *text = NULL;
    size_t size = 0;
    struct rbi_ctl_json json;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    assert_non_null(out);
    rbi_ctl_json_begin(&json, out);
    rbi_ctl_json_text(&json, "a", "q\"b\\n\n\x01");
    rbi_ctl_json_text(&json, "bad", "x\xff\"y");
    rbi_ctl_json_u64(&json, "n", UINT64_MAX);
    rbi_ctl_json_hex(&json, "h", 0xabc);
    rbi_ctl_json_open(&json, "list", '[');
    rbi_ctl_json_text(&json, NULL, "x");
    rbi_ctl_json_open(&json, NULL, '{');
    rbi_ctl_json_bool(&json, "t", true);
    rbi_ctl_json_close(&json, '}');
    rbi_ctl_json_close(&json, ']');
    rbi_ctl_json_data(&json, "f", 1);
    rbi_ctl_json_data(&json, "\xff", 1);
    rbi_ctl_json_data(&json, "\xff\xfe", 2);
    rbi_ctl_json_data(&json, "\xff\xfe\xfd", 3);
    rbi_ctl_json_end(&json);
    fclose(out);
    assert_string_equal(text, "{\"a\":\"q\\\"b\\\\n\\n\\u0001\",\"bad\":\"x??y\","
                              "\"n\":18446744073709551615,\"h\":\"0000000000000abc\","
                              "\"list\":[\"x\",{\"t\":true}],\"data\":\"f\",\"base64\":\"/w==\","
                              "\"base64\":\"//4=\",\"base64\":\"//79\"}\n");
    free(text);
}

static void test_exit_of_every_error(void **state)
{
    (void)state;
#define EXIT_KNOWN(name, value, kind, text)                                                        \
    assert_non_null(rbi_ctl_exit_text(rbi_ctl_exit_of(RINGBUS_E_##name)));                         \
    assert_int_not_equal(rbi_ctl_exit_of(RINGBUS_E_##name), RBI_CTL_OK);
    RINGBUS_ERRORS(EXIT_KNOWN)
#undef EXIT_KNOWN
    assert_int_equal(rbi_ctl_exit_of(RINGBUS_E_NO_DAEMON), 3);
    assert_int_equal(rbi_ctl_exit_of(RINGBUS_E_NO_INSTANCE), 4);
    assert_int_equal(rbi_ctl_exit_of(RINGBUS_E_TIMEOUT), 5);
    assert_int_equal(rbi_ctl_exit_of(RINGBUS_E_IN_USE), 6);
    assert_int_equal(rbi_ctl_exit_of(RINGBUS_E_PATH), 2);
    assert_null(rbi_ctl_exit_text(7));
    assert_null(rbi_ctl_exit_text(-1));
}

static void test_age_and_names(void **state)
{
    char age[16];
    (void)state;
    rbi_ctl_age_format(999, age, sizeof age);
    assert_string_equal(age, "999ms");
    rbi_ctl_age_format(1000, age, sizeof age);
    assert_string_equal(age, "1s");
    rbi_ctl_age_format(UINT64_C(90000000), age, sizeof age);
    assert_string_equal(age, "1d");
    assert_string_equal(rbi_ctl_state_name(1), "READY");
    assert_string_equal(rbi_ctl_state_name(99), "?");
    assert_true(rbi_ctl_path_anonymous("/anon/local/host/uid0/client/x/1"));
    assert_false(rbi_ctl_path_anonymous("/anonymous/local/host/uid0/client/x"));
}

/* Scenario 121: what others call themselves stays within its label. */
static void test_label_values(void **state)
{
    char out[RBI_CTL_LABEL_ROOM];
    char longest[2 * RBI_CTL_LABEL_MAX];
    (void)state;
    rbi_ctl_label_format("/a/b", out);
    assert_string_equal(out, "/a/b");
    rbi_ctl_label_format("a\"} 1\nb\\", out);
    assert_string_equal(out, "a\\\"} 1\\nb\\\\");
    rbi_ctl_label_format("\x01\x7f\xff", out);
    assert_string_equal(out, "???");
    rbi_ctl_label_format("", out);
    assert_string_equal(out, "");
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    rbi_ctl_label_format(longest, out);
    assert_int_equal(strlen(out), RBI_CTL_LABEL_ROOM - 1);
    assert_true(RBI_CTL_LABEL_MAX >= RINGBUS_PATH_MAX); /* two paths are two labels */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_args_accepted),
        cmocka_unit_test(test_args_refused_leave_output_alone),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_json_text),
        cmocka_unit_test(test_exit_of_every_error),
        cmocka_unit_test(test_age_and_names),
        cmocka_unit_test(test_label_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
