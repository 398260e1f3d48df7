/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that are made to hurt (scenario 126): each is parsed in a child with 512 MiB of
 * address space and 1 MiB of stack, and must end with an error within a second.
 */
#include "bus/config.h"
#include "tests/support/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define TEXT_ROOM (12U << 20)
static char *text;
static size_t used;

static RBI_PRINTF(1, 2) void add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    used += (size_t)vsnprintf(text + used, TEXT_ROOM - used, format, args);
    va_end(args);
}

static void add_many(const char *piece, size_t count)
{
    const size_t length = strlen(piece);
    assert_true(used + length * count < TEXT_ROOM);
    for (size_t i = 0; i < count; i++, used += length) {
        memcpy(text + used, piece, length);
    }
}

static uint64_t now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/** In the child: 0 all as it must be, else what is wrong. */
static int judge(void)
{
    static struct rbi_config config;
    static struct rbi_config_errors errors;
    struct rbi_config untouched;
    if (!SANITIZED) { /* shadow memory needs more */
        const struct rlimit memory = {512U << 20, 512U << 20};
        const struct rlimit stack = {1U << 20, 1U << 20};
        if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_STACK, &stack) != 0) {
            return 10;
        }
    }
    memset(&config, 0x5a, sizeof config);
    memset(&untouched, 0x5a, sizeof untouched);
    const uint64_t start_ms = now_ms();
    const int r = rbi_config_parse(text, used, &config, &errors);
    const uint64_t took_ms = now_ms() - start_ms;
    if (r != 1 || errors.count == 0) {
        return 1;
    }
    if (took_ms > (SANITIZED ? 10000 : 1000)) {
        return 2;
    }
    if (memcmp(&config, &untouched, sizeof config) != 0) {
        return 3;
    }
    for (unsigned i = 0; i < errors.count && i < RBI_CONFIG_ERRORS_MAX; i++) {
        if (!memchr(errors.items[i].text, '\0', sizeof errors.items[i].text) ||
            strlen(errors.items[i].text) < 10) {
            return 4;
        }
    }
    return 0;
}

/** Parses what was added so far in a child, and starts anew. */
static void assert_harmless(const char *what)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(judge());
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("%s: wait status 0x%x", what, (unsigned)status);
    }
    used = 0;
}

static void test_alias_bombs(void **state)
{
    (void)state;
    add("a: &a [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n");
    for (char c = 'b'; c <= 'i'; c++) {
        const char p = (char)(c - 1);
        add("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, p, p, p, p, p, p, p, p, p);
    }
    assert_harmless("nine levels of laughs");
    add("&x [*x]\n");
    assert_harmless("a list that holds itself");
    add("daemon: &d\n  <<: *d\n");
    assert_harmless("a merge of itself");
    add("daemon:\n  socket: *nobody\n");
    assert_harmless("an undefined alias");
    add_many("&a ", 300000);
    assert_harmless("anchors without end");
    add("daemon: [");
    add_many("*a,", 300000);
    assert_harmless("aliases without end");
}

static void test_depth(void **state)
{
    (void)state;
    static const char *const openers[] = {"[",   "{",  "- ",   "? ",      "[\n",
                                          "{\n", "[{", "{a: ", "[\"a\": "};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(openers); i++) {
        add_many(openers[i], 100000);
        assert_harmless(openers[i]);
        add("daemon:\n  socket: ");
        add_many(openers[i], 100000);
        assert_harmless(openers[i]);
    }
    for (unsigned i = 0; i < 1400; i++) {
        add("%*sa:\n", (int)i, "");
    }
    assert_harmless("indented ever deeper");
}

static void test_sizes(void **state)
{
    (void)state;
    add_many("x", 10U << 20);
    assert_harmless("a scalar of 10 MiB");
    add_many("x", 10U << 20);
    add(": 1\n");
    assert_harmless("a key of 10 MiB");
    for (unsigned i = 0; i < 1000000; i++) {
        add("k%u: 1\n", i);
    }
    assert_harmless("a million keys");
    /* The same just below the limit, so that the reader has to go through with them. */
    add("daemon:\n  socket: ");
    add_many("x", 1000000);
    assert_harmless("a scalar of 1 MB");
    add("? ");
    add_many("x", 1000000);
    add("\n: 1\n");
    assert_harmless("a key of 1 MB");
    for (unsigned i = 0; i < 90000; i++) {
        add("k%u: 1\n", i);
    }
    assert_harmless("90,000 keys");
    add("daemon:\n");
    for (unsigned i = 0; i < 80000; i++) {
        add("  loop: 1\n");
    }
    assert_harmless("80,000 duplicates");
    add("{");
    add_many("a,", 500000);
    assert_harmless("a flat map without end");
    for (unsigned i = 0; i < 60000; i++) {
        add("%%TAG !a%u! b\n", i);
    }
    assert_harmless("60,000 directives");
    add_many("\n", 1000000);
    assert_harmless("nothing but line ends");
    add("daemon:\n  socket: \"");
    add_many("\\n", 500000);
    assert_harmless("escapes without end");
    add("daemon:\n  socket: |\n");
    add_many("   a\n", 200000);
    assert_harmless("a block without end");
    add("a: [");
    add_many("\n", 500000);
    assert_harmless("line ends in a list");
}

/* The same in the sections that are trees. */
static void test_nested_sections(void **state)
{
    (void)state;
    static const char *const openers[] = {"[", "{", "- ", "[{", "{match: ", "{rules: [{labels: ["};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(openers); i++) {
        add("clusters: [{match: /a, rules: ");
        add_many(openers[i], 50000);
        assert_harmless(openers[i]);
    }
    add("clusters:\n");
    for (unsigned i = 0; i < 40000; i++) {
        add("- {match: /a%u}\n", i);
    }
    assert_harmless("40,000 entries");
    add("instances:\n");
    for (unsigned i = 0; i < 20000; i++) {
        add("  /a/b/c/d/e/f/%u: {weight: 1}\n", i);
    }
    assert_harmless("20,000 instances");
    add("instances:\n");
    for (unsigned i = 0; i < 30000; i++) {
        add("  /a/b/c/d/e/f/1: {weight: x}\n");
    }
    assert_harmless("one instance 30,000 times");
    add("clusters: [{match: /a");
    for (unsigned i = 0; i < 90000; i++) {
        add(", k%u: 1", i);
    }
    add("}]\n");
    assert_harmless("90,000 unknown keys");
    add("clusters: [{match: /a");
    add_many(", set: {mode: x}", 50000);
    add("}]\n");
    assert_harmless("50,000 duplicates");
    add("clusters: [{match: '");
    add_many("*a", 400000);
    add("'}]\n");
    assert_harmless("a pattern of 800 KB");
    add("clusters:\n");
    for (unsigned i = 0; i < 1024; i++) {
        add("- {match: /**, degrade: [{id: %u, mock_hex: zz}]}\n", i);
    }
    assert_harmless("errors in a thousand entries");
    add("rights: {rules: [");
    for (unsigned i = 0; i < 20000; i++) {
        add("{id: a, verbs: [own]},");
    }
    add("]}\n");
    assert_harmless("one rule 20,000 times");
}

static void test_limit_is_named(void **state)
{
    (void)state;
    static struct rbi_config config;
    static struct rbi_config_errors errors;
    used = 0;
    add("{}");
    add_many(" ", RBI_CONFIG_TEXT_MAX - 2);
    assert_int_equal(rbi_config_parse(text, used, &config, &errors), 0);
    add_many(" ", 1);
    assert_int_equal(rbi_config_parse(text, used, &config, &errors), 1);
    assert_int_equal(errors.items[0].line, 0);
    assert_non_null(strstr(errors.items[0].text, "at most 1048576 bytes, found more"));
    used = 0;
}

/* Each prefix of a good file: read or refused, never anything else (128: half-written files). */
static void test_every_prefix(void **state)
{
    (void)state;
    static const char whole[] = "daemon:\n  socket: \"/a\\x62\"\n  loop: {x: [1, 'y']}\n"
                                "liveness:\n  interval: 5s # why\n";
    static struct rbi_config config;
    static struct rbi_config_errors errors;
    for (size_t n = 0; n <= sizeof whole - 1; n++) {
        char *exact = malloc(n + 1); /* so that a sanitizer sees a byte too far */
        assert_non_null(exact);
        memcpy(exact, whole, n);
        const int r = rbi_config_parse(exact, n, &config, &errors);
        assert_true(r == 0 || (r == 1 && errors.count > 0));
        free(exact);
    }
}

static int setup(void **state)
{
    (void)state;
    text = malloc(TEXT_ROOM);
    return text ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alias_bombs),     cmocka_unit_test(test_depth),
        cmocka_unit_test(test_nested_sections), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_limit_is_named),  cmocka_unit_test(test_every_prefix),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
