/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes: how many a host has, and which one a process is on (features 2.6, level 0). */
#include "bus/numa.h"
#include "support/test.h"

#include <string.h>

#define MS UINT64_C(1000000)

static unsigned count(const char *text)
{
    return rbi_numa_count(text, strlen(text));
}

static void test_count_is_that_of_the_list(void **state)
{
    (void)state;
    assert_int_equal(count("0\n"), 1);
    assert_int_equal(count("0-1\n"), 2);
    assert_int_equal(count("0-1"), 2);
    assert_int_equal(count("0,2-3\n"), 3);
    assert_int_equal(count("0-1023\n"), 1024);
    assert_int_equal(count("1,5,7"), 3);
}

static void test_count_of_what_is_no_list(void **state)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "a",
                                      "0-",
                                      "-1",
                                      "0,",
                                      ",0",
                                      "3-1",
                                      "0-1024",
                                      "0 1",
                                      "0--1",
                                      "0,,1",
                                      "99999999999999999999"};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_int_equal(count(bad[i]), 0);
    }
}

static void test_first_node_is_known_at_once(void **state)
{
    struct rbi_numa_seat seat = {.node = 0};
    (void)state;
    assert_true(rbi_numa_seen(&seat, 0, 1000 * MS));
    assert_int_equal(seat.node, 1);
    assert_false(rbi_numa_seen(&seat, 0, 1100 * MS));
}

static void test_other_node_counts_when_it_lasts(void **state)
{
    struct rbi_numa_seat seat = {.node = 0};
    (void)state;
    assert_true(rbi_numa_seen(&seat, 1, 1000 * MS));
    assert_false(rbi_numa_seen(&seat, 0, 2000 * MS));
    assert_false(rbi_numa_seen(&seat, 0, 6999 * MS));
    assert_int_equal(seat.node, 2);
    assert_true(rbi_numa_seen(&seat, 0, 7000 * MS));
    assert_int_equal(seat.node, 1);
}

static void test_who_is_sent_about_stays_where_it_was(void **state)
{
    struct rbi_numa_seat seat = {.node = 0};
    (void)state;
    assert_true(rbi_numa_seen(&seat, 0, 0));
    for (unsigned i = 1; i < 1000; i++) {
        assert_false(rbi_numa_seen(&seat, i % 2, i * 4000 * MS)); /* home now and then */
        assert_int_equal(seat.node, 1);
    }
    struct rbi_numa_seat wanderer = {.node = 1};
    for (unsigned i = 0; i < 1000; i++) {
        assert_false(rbi_numa_seen(&wanderer, 1 + i % 2, i * 4000 * MS)); /* never home */
        assert_int_equal(wanderer.node, 1);
    }
}

static void test_node_beyond_all_says_nothing(void **state)
{
    struct rbi_numa_seat seat = {.node = 0};
    (void)state;
    assert_false(rbi_numa_seen(&seat, RBI_NUMA_NODES_MAX, 0));
    assert_int_equal(seat.node, 0);
    assert_true(rbi_numa_seen(&seat, RBI_NUMA_NODES_MAX - 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_is_that_of_the_list),
        cmocka_unit_test(test_count_of_what_is_no_list),
        cmocka_unit_test(test_first_node_is_known_at_once),
        cmocka_unit_test(test_other_node_counts_when_it_lasts),
        cmocka_unit_test(test_who_is_sent_about_stays_where_it_was),
        cmocka_unit_test(test_node_beyond_all_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
