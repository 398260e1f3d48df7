/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage of locality over time (features 2.6: leave under 71 %, return from 85 % for 5 s; 2.5:
 * 72 % healthy still takes all), and slow start (features 2.3). Virtual time.
 */
#include "route_table.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* A room of 100 instances' weight of which some is healthy, and another room. */
struct rooms {
    struct route_table table;
    struct rbi_route_memory memory;
};

/* Share of the home room in percent. */
static unsigned home_share(struct rooms *rooms, unsigned healthy_percent, uint64_t now_ms)
{
    char instances[200];
    snprintf(instances, sizeof instances,
             "a(idc=r1,weight=%u) b(idc=r1,weight=%u,shielded) c(idc=r2,weight=300)",
             healthy_percent * 10, 1000 - healthy_percent * 10);
    rooms->table.now_ns = now_ms * MS;
    assert_true(route_table_row(&rooms->table, "idc=r1", "-", instances));
    route_table_run(&rooms->table, &rooms->memory);
    const uint64_t home = rooms->table.entries[0].weight;
    const uint64_t other = rooms->table.entries[2].weight;
    return (unsigned)((home * 100 + (home + other) / 2) / (home + other));
}

static void rooms_init(struct rooms *rooms)
{
    memset(rooms, 0, sizeof *rooms);
    assert_true(route_table_policy(&rooms->table, "locality=prefer"));
}

static void test_level_takes_all_until_it_is_left(void **state)
{
    (void)state;
    static struct rooms rooms;
    rooms_init(&rooms);
    assert_int_equal(home_share(&rooms, 100, 1000), 100);
    assert_int_equal(home_share(&rooms, 72, 2000), 100);
    assert_int_equal(home_share(&rooms, 71, 3000), 100);
    assert_int_equal(rooms.table.result.again_ns, 0);
    assert_int_equal(home_share(&rooms, 70, 4000), 98);
    assert_int_equal(home_share(&rooms, 50, 5000), 70);
    assert_int_equal(home_share(&rooms, 1, 6000), 1);
    assert_int_equal(home_share(&rooms, 50, 7000), 70);
}

/* Both rooms stay in the view until the home room has been well for 5 s on end. */
static void test_level_comes_back_after_hold(void **state)
{
    (void)state;
    static struct rooms rooms;
    rooms_init(&rooms);
    assert_int_equal(home_share(&rooms, 70, 1000), 98);
    assert_int_equal(home_share(&rooms, 84, 2000), 99);
    assert_int_equal(rooms.table.result.again_ns, 0);
    assert_int_equal(home_share(&rooms, 84, 60000), 99);
    assert_int_equal(home_share(&rooms, 85, 61000), 99);
    assert_int_equal(rooms.table.result.again_ns, 66000 * MS);
    assert_int_equal(home_share(&rooms, 84, 62000), 99); /* not on end */
    assert_int_equal(home_share(&rooms, 90, 63000), 99);
    assert_int_equal(rooms.table.result.again_ns, 68000 * MS);
    assert_int_equal(home_share(&rooms, 86, 67999), 99);
    assert_int_equal(home_share(&rooms, 86, 68000), 100);
    assert_int_equal(rooms.table.result.again_ns, 0);
    assert_int_equal(rooms.table.result.in_count, 1);
    assert_int_equal(home_share(&rooms, 72, 69000), 100);
}

/* Health that swings around the bound moves the view once, not each time. */
static void test_level_does_not_swing(void **state)
{
    (void)state;
    static struct rooms rooms;
    unsigned changes = 0;
    unsigned in = 1;
    rooms_init(&rooms);
    for (unsigned second = 0; second < 600; second++) {
        home_share(&rooms, second % 2 == 0 ? 70 : 84, second * 1000);
        changes += rooms.table.result.in_count != in ? 1U : 0U;
        in = rooms.table.result.in_count;
    }
    assert_int_equal(changes, 1);
}

/* Shares follow the levels' shares whatever the number and weights of their instances. */
static void test_shares_are_levels_shares(void **state)
{
    (void)state;
    static struct rooms rooms;
    rooms_init(&rooms);
    for (unsigned healthy = 1; healthy <= 70; healthy++) {
        struct rooms fresh = rooms;
        const double expected = healthy * 1.4;
        assert_in_range(home_share(&fresh, healthy, 1000), (unsigned)expected,
                        (unsigned)expected + 1);
        assert_int_equal(fresh.table.result.share[RBI_ROUTE_HOST], healthy * 140);
        assert_int_equal(fresh.table.result.share[RBI_ROUTE_ANY], 10000 - healthy * 140);
    }
}

/* ---- slow start --------------------------------------------------------------------------- */

/* Who has kept a view is told when it is old, although nothing happened. */
static void test_slow_start_asks_to_run_again(void **state)
{
    (void)state;
    static struct route_table table;
    assert_true(route_table_policy(&table, "slow_start=20000"));
    assert_true(route_table_row(&table, "-", "-", "a b(age_ms=10000)"));
    route_table_run(&table, NULL);
    assert_int_equal(table.result.again_ns, table.now_ns + 1000 * MS);
    assert_true(route_table_row(&table, "-", "-", "a b(age_ms=20000)"));
    route_table_run(&table, NULL);
    assert_int_equal(table.result.again_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_takes_all_until_it_is_left),
        cmocka_unit_test(test_level_comes_back_after_hold),
        cmocka_unit_test(test_level_does_not_swing),
        cmocka_unit_test(test_shares_are_levels_shares),
        cmocka_unit_test(test_slow_start_asks_to_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
