/* SPDX-License-Identifier: Apache-2.0 */
/* From where a cluster is called (features 2.6, locality: capacity_spill). Virtual time. */
#include "bus/demand.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define SWEEP (250 * MS)

static struct rbi_demand demand;
static uint64_t now_ns;
static unsigned told; /* times */

static int setup(void **state)
{
    (void)state;
    now_ns = 5000 * MS;
    told = 0;
    rbi_demand_init(&demand, now_ns);
    return 0;
}

/* A quarter of a second in which so many calls came from two groups. */
static void sweep(uint32_t r1, uint32_t r2)
{
    if (r1 > 0) {
        rbi_demand_add(&demand, "r1", 0, r1);
    }
    if (r2 > 0) {
        rbi_demand_add(&demand, "r2/z", 0, r2);
    }
    now_ns += SWEEP;
    told += rbi_demand_turn(&demand, now_ns) ? 1U : 0U;
}

static void sweeps(unsigned count, uint32_t r1, uint32_t r2)
{
    for (unsigned i = 0; i < count; i++) {
        sweep(r1, r2);
    }
}

static void test_shares_are_those_of_the_calls(void **state)
{
    (void)state;
    sweeps(40, 300, 100);
    assert_int_equal(told, 1);
    assert_in_range(rbi_demand_group(&demand, "r1"), 7490, 7510);
    assert_in_range(rbi_demand_group(&demand, "r1/other"), 7490, 7510);
    assert_in_range(rbi_demand_group(&demand, "r2"), 2490, 2510);
    assert_int_equal(rbi_demand_group(&demand, "r3"), 0);
    assert_int_equal(rbi_demand_group(&demand, ""), 0);
}

static void test_few_calls_say_nothing(void **state)
{
    (void)state;
    sweeps(4000, 0, 3); /* 12 a second: 87 within the time that counts */
    assert_int_equal(told, 0);
    assert_int_equal(rbi_demand_group(&demand, "r2"), 0);
    sweeps(40, 1, 3);
    assert_int_equal(told, 1);
    assert_true(rbi_demand_group(&demand, "r2") > 0);
}

/* Every share that is told has all callers choose anew. */
static void test_shares_are_told_when_they_have_moved(void **state)
{
    (void)state;
    sweeps(40, 300, 100);
    assert_int_equal(told, 1);
    sweeps(4000, 310, 90); /* by 2.5 points */
    assert_int_equal(told, 1);
    sweeps(4000, 276, 124); /* by 6 */
    assert_int_equal(told, 2);
    assert_in_range(rbi_demand_group(&demand, "r1"), 6900, 7000);
    sweeps(400, 200, 200);
    assert_in_range(told, 4, 8);
    assert_in_range(rbi_demand_group(&demand, "r1"), 5000, 5500);
}

static void test_shares_are_not_told_more_than_once_a_second(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 400; i++) {
        sweep(i % 8 < 4 ? 100000 : 0, i % 8 < 4 ? 0 : 100000);
    }
    assert_in_range(told, 1, 100);
}

static void test_calls_that_end_are_forgotten(void **state)
{
    (void)state;
    sweeps(40, 300, 100);
    sweeps(20, 0, 400); /* 5 s: half of what was */
    assert_in_range(rbi_demand_group(&demand, "r1"), 2800, 4200);
    sweeps(4000, 0, 0);
    assert_int_equal(rbi_demand_group(&demand, "r1"), 0);
    assert_int_equal(rbi_demand_group(&demand, "r2"), 0);
    assert_int_equal(demand.count, 0);
}

static void test_nodes_are_places_of_their_group(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        rbi_demand_add(&demand, "r1", 1, 100);
        rbi_demand_add(&demand, "r1", 2, 300);
        rbi_demand_add(&demand, "", 1, 600);
        sweep(0, 0);
    }
    assert_in_range(rbi_demand_group(&demand, "r1"), 3990, 4010);
    assert_in_range(rbi_demand_node(&demand, "r1/z", 1), 990, 1010);
    assert_in_range(rbi_demand_node(&demand, "r1", 2), 2990, 3010);
    assert_in_range(rbi_demand_group(&demand, ""), 5990, 6010);
    assert_in_range(rbi_demand_node(&demand, "", 1), 5990, 6010);
    assert_int_equal(rbi_demand_node(&demand, "r1", 0), 0);
    assert_int_equal(rbi_demand_node(&demand, "r1", 3), 0);
}

/* They come from other processes: as many places, and as many calls, as those like to say. */
static void test_any_number_of_places_and_calls(void **state)
{
    char idc[RBI_LABEL_MAX + 1];
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(idc, sizeof idc, "room%u", i);
        rbi_demand_add(&demand, idc, i % 3, 1000);
    }
    assert_int_equal(demand.count, RBI_DEMAND_PLACES_MAX);
    now_ns += 1000 * MS;
    assert_true(rbi_demand_turn(&demand, now_ns));
    assert_int_equal(rbi_demand_group(&demand, "room0"), 10);
    assert_int_equal(rbi_demand_group(&demand, "room999"), 0);
    for (unsigned i = 0; i < 100000; i++) {
        rbi_demand_add(&demand, "room0", 0, UINT32_MAX);
        rbi_demand_add(&demand, "room1", 1, UINT32_MAX);
    }
    now_ns += 1000 * MS;
    assert_true(rbi_demand_turn(&demand, now_ns));
    assert_in_range(rbi_demand_group(&demand, "room0"), 4990, 5010);
    sweeps(100000, 0, 0);
    assert_int_equal(demand.count, 0);
    assert_int_equal(demand.elsewhere, 0);
}

static void test_late_turn_ages_at_once(void **state)
{
    (void)state;
    sweeps(40, 300, 100);
    now_ns += UINT64_C(3600) * 1000 * MS;
    assert_true(rbi_demand_turn(&demand, now_ns));
    assert_int_equal(rbi_demand_group(&demand, "r1"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shares_are_those_of_the_calls, setup),
        cmocka_unit_test_setup(test_few_calls_say_nothing, setup),
        cmocka_unit_test_setup(test_shares_are_told_when_they_have_moved, setup),
        cmocka_unit_test_setup(test_shares_are_not_told_more_than_once_a_second, setup),
        cmocka_unit_test_setup(test_calls_that_end_are_forgotten, setup),
        cmocka_unit_test_setup(test_nodes_are_places_of_their_group, setup),
        cmocka_unit_test_setup(test_any_number_of_places_and_calls, setup),
        cmocka_unit_test_setup(test_late_turn_ages_at_once, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
