/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router chain for keys (features 2.2: death moves keys after the rehash delay; 2.6; scenarios
 * 84, 88): whoever dies, whatever the caller, message and policy, the keys stay dealt out as they
 * were, until it is given up.
 */
#include "bus/route_keyed.h"
#include "route_world.h"
#include "support/test.h"

#include <string.h>

#define ROUNDS 20000U
#define ROOM   (ROUTE_WORLD_CLUSTERS * ROUTE_WORLD_INSTANCES)

/* Makes the last @p count instances of a cluster absent ones. */
static void let_die(struct route_world *w, unsigned cluster, uint32_t count)
{
    w->clusters[cluster].count -= count;
    w->clusters[cluster].absent_count = count;
}

static void test_without_absent_ones_it_is_the_chain(void **state)
{
    (void)state;
    static struct route_world w;
    static struct rbi_route_entry entries[ROOM];
    struct rbi_route_result result;
    route_world_seed(21);
    for (unsigned round = 0; round < ROUNDS; round++) {
        route_world_make(&w);
        rbi_route_run(&w.input, NULL, w.entries, &w.result);
        assert_int_equal(rbi_route_absent(&w.input), 0);
        assert_int_equal(rbi_route_keyed_room(&w.input), rbi_route_room(&w.input));
        rbi_route_keyed_run(&w.input, entries, &result);
        assert_memory_equal(&result, &w.result, sizeof result);
        assert_memory_equal(entries, w.entries, result.entry_count * sizeof entries[0]);
    }
}

static void test_death_moves_no_key(void **state)
{
    (void)state;
    static struct route_world w;
    static struct rbi_route_entry entries[ROOM];
    struct rbi_route_result result;
    unsigned waited = 0;
    unsigned others = 0;
    route_world_seed(22);
    for (unsigned round = 0; round < ROUNDS; round++) {
        route_world_make(&w);
        rbi_route_run(&w.input, NULL, w.entries, &w.result);
        unsigned dead = 0;
        for (unsigned i = 0; i < w.input.cluster_count; i++) {
            let_die(&w, i, route_world_below(w.clusters[i].count + 1));
            dead += w.clusters[i].absent_count;
        }
        assert_int_equal(rbi_route_absent(&w.input), dead);
        assert_int_equal(rbi_route_keyed_room(&w.input), w.result.entry_count);
        rbi_route_keyed_run(&w.input, entries, &result);
        assert_int_equal(result.realm, w.result.realm);
        assert_int_equal(result.keyed_count, w.result.keyed_count);
        for (unsigned i = 0; i < result.entry_count; i++) {
            const bool absent = entries[i].index >= w.clusters[entries[i].cluster].count;
            assert_int_equal(entries[i].hash_weight, w.entries[i].hash_weight);
            assert_int_equal(rbi_route_is_absent(&w.input, &entries[i]), absent);
            waited += absent && entries[i].hash_weight > 0 ? 1U : 0U;
            others += absent && entries[i].hash_weight == 0 ? 1U : 0U;
        }
    }
    assert_true(waited > ROUNDS / 10);
    assert_true(others > ROUNDS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_absent_ones_it_is_the_chain),
        cmocka_unit_test(test_death_moves_no_key),
    };
    return cmocka_run_group_tests_name("route_keyed", tests, NULL, NULL);
}
