/* SPDX-License-Identifier: Apache-2.0 */
/* The NUMA node of an endpoint (features 2.6, level 0): known where there are several only. */
#include "libclient/internal.h"
#include "support/test.h"

#include <sched.h>

static struct ringbus bus; /* connected to nobody */

static uint32_t here(void)
{
    unsigned cpu = 0;
    unsigned node = 0;
    assert_int_equal(getcpu(&cpu, &node), 0);
    return node + 1;
}

static int setup(void **state)
{
    (void)state;
    memset(&bus, 0, sizeof bus);
    bus.now_ns = 1000 * RBI_NS_PER_MS;
    return 0;
}

static void test_one_node_is_none(void **state)
{
    (void)state;
    rbi_place_begin(&bus, 1);
    rbi_place_look(&bus);
    assert_int_equal(bus.place.node, 0);
    rbi_place_begin(&bus, 0); /* a daemon that does not say */
    rbi_place_look(&bus);
    assert_int_equal(bus.place.node, 0);
}

static void test_node_is_where_it_runs(void **state)
{
    (void)state;
    const uint32_t before = here();
    rbi_place_begin(&bus, 2);
    assert_true(bus.place.node == before || bus.place.node == here());
    rbi_place_begin(&bus, 1); /* another daemon, on a host with one */
    assert_int_equal(bus.place.node, 0);
}

static void test_move_is_noted_when_it_lasts(void **state)
{
    (void)state;
    rbi_place_begin(&bus, 2);
    const uint32_t away = bus.place.node + 1;
    bus.place.seat.node = bus.place.node = away; /* it was there before */
    rbi_place_look(&bus);
    assert_int_equal(bus.place.node, away);
    bus.now_ns += RBI_NUMA_MOVED_NS;
    rbi_place_look(&bus);
    assert_int_equal(bus.place.node, away - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_node_is_none, setup),
        cmocka_unit_test_setup(test_node_is_where_it_runs, setup),
        cmocka_unit_test_setup(test_move_is_noted_when_it_lasts, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
