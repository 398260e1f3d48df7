/* SPDX-License-Identifier: Apache-2.0 */
/* The file of ringbus-broker (scenarios 122, 123, 125, 126): what it takes, and where it says that
 * something is wrong. */
#include "daemon/broker/config.h"
#include "support/config.h"

#include <stdio.h>
#include <stdlib.h>

#define SIDES                                                                                      \
    "sides:\n"                                                                                     \
    "  - {name: in, path: /a/b/c/d/e/broker/b1}\n"                                                 \
    "  - {name: out, path: /z/b/c/d/e/broker/b1}\n"

static struct rbi_broker_config config;
static struct rbi_config_errors errors;

static int parse(const char *text)
{
    return rbi_broker_config_parse(text, strlen(text), &config, &errors);
}

static void refused(const char *text, unsigned line, unsigned column, const char *says)
{
    config_refused_once(parse(text), &errors, line, column, says);
}

static void test_defaults(void **state)
{
    (void)state;
    config_accepted(parse(SIDES), SIDES, &errors);
    assert_int_equal(config.request_timeout_ms, 30000);
    assert_int_equal(config.hold_ms, 3000);
    assert_int_equal(config.drain_ms, 10000);
    assert_int_equal(config.requests, 1024);
    assert_int_equal(config.spin_us, 0);
    assert_int_equal(config.lane_bytes, 65536);
    assert_int_equal(config.pool_count, 0);
    assert_int_equal(config.side_count, 2);
    assert_string_equal(config.sides[1].name, "out");
    assert_string_equal(config.sides[1].socket, "");
    assert_int_equal(config.export_count, 0);
}

static void test_everything(void **state)
{
    (void)state;
    static const char text[] =
        "broker:\n"
        "  request_timeout: 5s\n"
        "  hold: 0ms\n"
        "  drain: 1m\n"
        "  requests: 7\n"
        "  spin: 20us\n"
        "  lane: 131072\n"
        "  pool: [{chunk: 64KiB, count: 8}, {chunk: 1MiB, count: 2}]\n"
        "exports:\n" /* in any order */
        "  - {id: x, from: in, to: out, match: /a/b/c/d/e/*, as: /z/b/c/d/e/*,\n"
        "     brokers: true, redeliver: true}\n"
        "sides:\n"
        "  - name: in\n"
        "    path: /a/b/c/d/e/broker/b1\n"
        "    socket: /run/x.sock\n"
        "    token_file: /etc/token\n"
        "    upstream: [/a/**, /b/*/c]\n"
        "  - {name: out, path: /z/b/c/d/e/broker/b1}\n";
    config_accepted(parse(text), text, &errors);
    assert_int_equal(config.request_timeout_ms, 5000);
    assert_int_equal(config.hold_ms, 0);
    assert_int_equal(config.drain_ms, 60000);
    assert_int_equal(config.requests, 7);
    assert_int_equal(config.spin_us, 20);
    assert_int_equal(config.lane_bytes, 131072);
    assert_int_equal(config.pool_count, 2);
    assert_int_equal(config.pool[1].bytes, 1048576);
    assert_int_equal(config.pool[1].count, 2);
    assert_string_equal(config.sides[0].socket, "/run/x.sock");
    assert_string_equal(config.sides[0].token, "/etc/token");
    assert_int_equal(config.sides[0].upstream_count, 2);
    assert_string_equal(config.sides[0].upstream[1], "/b/*/c");
    assert_int_equal(config.export_count, 1);
    assert_int_equal(config.exports[0].brokers, 1);
    assert_int_equal(config.exports[0].redeliver, 1);
    assert_int_equal(config.exports[0].from_side, 0);
    assert_int_equal(config.exports[0].to_side, 1);
}

/* Nothing is written when it is wrong. */
static void test_what_is_wrong(void **state)
{
    (void)state;
    struct rbi_broker_config *before = malloc(sizeof config);
    assert_non_null(before);
    config_accepted(parse(SIDES), SIDES, &errors);
    memcpy(before, &config, sizeof config);
    refused("{}\n", 0, 0, "sides");
    refused("sides: []\n", 0, 0, "sides: expected one at least");
    refused("side: []\n", 1, 1, "did you mean sides");
    refused("sides:\n  - {name: in, path: /a/b/c/d/e/broker}\n", 2, 22, "seven elements");
    refused("sides:\n  - {name: in}\n", 2, 5, "path is missing");
    refused("sides:\n  - {name: in, pass: x, path: /a/b/c/d/e/broker/b1}\n", 2, 16,
            "unknown key \"pass\"");
    refused("sides:\n"
            "  - {name: in, path: /a/b/c/d/e/broker/b1}\n"
            "  - {name: in, path: /a/b/c/d/e/broker/b2}\n",
            3, 5, "id \"in\" is taken, in line 2");
    refused("sides:\n"
            "  - {name: in, path: /a/b/c/d/e/broker/b1}\n"
            "  - {name: out, path: /a/b/c/d/e/broker/b1}\n",
            3, 23, "side in has it on the same bus");
    refused("broker: {hold: 5}\n" SIDES, 1, 16, "unit is missing");
    refused("broker: {lane: 5000}\n" SIDES, 1, 16, "power of two");
    refused("broker: {requests: 0}\n" SIDES, 1, 20, "out of range");
    refused("broker: {pool: [{chunk: 1MiB, count: 2}, {chunk: 64KiB, count: 8}]}\n" SIDES, 0, 0,
            "ascend");
    refused(SIDES "sides: []\n", 4, 1, "duplicate key, given in line 1 and again in line 4");
#define EXPORT(text) SIDES "exports:\n  - {id: x, " text "}\n"
    refused(EXPORT("from: in, to: out, match: /a/b/c/d/e/f"), 5, 5, "as is missing");
    refused(EXPORT("from: inn, to: out, match: /a/b/c/d/e/f, as: /z/b/c/d/e/f"), 5, 19,
            "there is no side inn");
    refused(EXPORT("from: in, to: oot, match: /a/b/c/d/e/f, as: /z/b/c/d/e/f"), 5, 27,
            "there is no side oot");
    refused(EXPORT("from: in, to: out, match: /a/b/c/d/e, as: /z/b/c/d/e/f"), 5, 39,
            "six elements");
    refused(EXPORT("from: in, to: out, match: /a/b/c/d/e/*, as: /z/b/c/d/e/f"), 5, 57,
            "as many * as match");
    refused(EXPORT("from: in, to: in, match: /a/b/c/d/e/*, as: /a/b/*/d/e/f"), 5, 56,
            "another name than match");
    refused(EXPORT("from: in, to: out, match: /a/b/c/d/e/*, as: /z/b/c/d/e/*}\n"
                   "  - {id: y, from: in, to: out, match: /a/b/c/d/f/*, as: /z/b/c/d/*/x"),
            6, 57, "export x has names of the same kind");
    refused(EXPORT("from: in, to: out, match: /a/b/c/d/e/f, as: /z/b/c/d/e/f, brokers: yes"), 5, 80,
            "true");
    assert_memory_equal(before, &config, sizeof config);
    free(before);
}

/* More than there is room for is said, not cut. */
static void test_too_many(void **state)
{
    (void)state;
    char text[4096] = "sides:\n";
    for (unsigned i = 0; i <= RBI_BROKER_SIDES_MAX; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used,
                       "  - {name: s%u, path: /a/b/c/d/e/broker/b%u}\n", i, i);
    }
    refused(text, 10, 5, "at most 8 items");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
