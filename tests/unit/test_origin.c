/* SPDX-License-Identifier: Apache-2.0 */
/* Where a message began, from broker to broker (features B21, D54): what goes in comes out, what
 * cannot be is refused, and no way is endless. */
#include "bus/origin.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH "/game/eu/pc/w1/gate/gate/7"

static uint64_t words[RBI_ORIGIN_WORDS_MAX + 1];

static struct rbi_origin some(void)
{
    struct rbi_origin origin;
    struct rbi_path_info info;
    memset(&origin, 0, sizeof origin);
    assert_int_equal(rbi_pidf_parse(PATH, strlen(PATH), &origin.pidf, &info), 0);
    origin.pidf.incarnation = 99;
    (void)snprintf(origin.path, sizeof origin.path, PATH);
    origin.hops = 2;
    origin.via[0] = 11;
    origin.via[1] = UINT64_MAX;
    return origin;
}

static unsigned encode(const struct rbi_origin *origin)
{
    memset(words, 0x5a, sizeof words);
    rbi_origin_encode(origin, (unsigned char *)words);
    const unsigned count = rbi_origin_words(origin);
    assert_true(words[count] == UINT64_C(0x5a5a5a5a5a5a5a5a)); /* not a byte more */
    return count;
}

static int decode(unsigned count, struct rbi_origin *out)
{
    return rbi_origin_decode((const unsigned char *)words, count, out);
}

static void test_layout_is_pinned(void **state)
{
    (void)state;
    const struct rbi_origin in = some();
    struct rbi_origin out;
    assert_int_equal(encode(&in), 9); /* head, address, two brokers, 26 bytes */
    assert_true(words[0] == (9 | 2 << 8 | 26 << 16));
    assert_memory_equal(&words[1], &in.pidf, 16);
    assert_true(words[3] == 11 && words[4] == UINT64_MAX);
    assert_memory_equal(&words[5], PATH "\0\0\0\0\0\0", 32);
    assert_int_equal(decode(9, &out), 0);
    assert_memory_equal(&out, &in, sizeof in);
}

/* Cut at every word it is refused, and nothing is written; what follows is not its own. */
static void test_short_ones_are_refused(void **state)
{
    (void)state;
    const struct rbi_origin in = some();
    struct rbi_origin out;
    struct rbi_origin untouched;
    memset(&out, 0x33, sizeof out);
    untouched = out;
    const unsigned count = encode(&in);
    for (unsigned cut = 0; cut < count; cut++) {
        assert_int_equal(decode(cut, &out), -EPROTO);
        assert_memory_equal(&out, &untouched, sizeof out);
    }
    assert_int_equal(decode(count + 1, &out), 0);
}

static void test_impossible_values_are_refused(void **state)
{
    (void)state;
    const struct rbi_origin in = some();
    struct rbi_origin out;
    static const uint64_t heads[] = {
        9 | 0 << 8 | 26 << 16,   /* no broker */
        9 | 9 << 8 | 26 << 16,   /* too many */
        9 | 2 << 8 | 0 << 16,    /* no path */
        9 | 2 << 8 | 255 << 16,  /* longer than its words */
        2 | 2 << 8 | 26 << 16,   /* fewer words than it has */
        200 | 2 << 8 | 26 << 16, /* more */
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(heads); i++) {
        (void)encode(&in);
        words[0] = heads[i];
        assert_int_equal(decode(9, &out), -EPROTO);
    }
    (void)encode(&in);
    words[1] ^= 1; /* the address of another path */
    assert_int_equal(decode(9, &out), -EPROTO);
    (void)encode(&in);
    memcpy(&words[5], "/game/eu/", 9); /* and the other way round */
    ((unsigned char *)&words[5])[1] = 'G';
    assert_int_equal(decode(9, &out), -EPROTO);
    (void)encode(&in);
    ((unsigned char *)&words[5])[0] = 'g'; /* not a path */
    assert_int_equal(decode(9, &out), -EPROTO);
}

/* Words of later versions stand behind the path, and are counted in the head. */
static void test_what_later_versions_add_is_skipped(void **state)
{
    (void)state;
    const struct rbi_origin in = some();
    struct rbi_origin out;
    (void)encode(&in);
    words[0] = (UINT64_C(0xffffffffff) << 24) | 11 | 2 << 8 | 26 << 16;
    assert_int_equal(decode(11, &out), 0);
    assert_memory_equal(&out, &in, sizeof in);
}

/* A way goes nowhere twice, and ends. */
static void test_a_way_is_not_endless(void **state)
{
    (void)state;
    struct rbi_origin origin = some();
    assert_int_equal(rbi_origin_pass(&origin, 11), 1);
    assert_int_equal(rbi_origin_pass(&origin, UINT64_MAX), 1);
    assert_int_equal(origin.hops, 2);
    for (uint64_t broker = 100; origin.hops < RBI_HOPS_MAX; broker++) {
        assert_int_equal(rbi_origin_pass(&origin, broker), 0);
        assert_true(origin.via[origin.hops - 1] == broker);
    }
    assert_int_equal(rbi_origin_pass(&origin, 1000), 2);
    assert_int_equal(rbi_origin_pass(&origin, 11), 1);
    assert_int_equal(origin.hops, RBI_HOPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_is_pinned),
        cmocka_unit_test(test_short_ones_are_refused),
        cmocka_unit_test(test_impossible_values_are_refused),
        cmocka_unit_test(test_what_later_versions_add_is_skipped),
        cmocka_unit_test(test_a_way_is_not_endless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
