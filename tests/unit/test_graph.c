/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways through a graph (features 2.12, 6.10): against all ways of at most 8 hops, tried one after
 * another by Floyd's and Warshall's recurrence with a bound on hops; ties; loops; diamonds.
 */
#include "bus/graph.h"
#include "support/test.h"

#include <string.h>

#define NODES_MAX 24U
#define EDGES_MAX 400U

static uint64_t seed = 11;
static struct rbi_graph_edge edges[EDGES_MAX];
static uint32_t edge_count;
static struct rbi_graph_way ways[NODES_MAX];
static struct rbi_graph_way best[RBI_GRAPH_STATES(NODES_MAX)];
static uint32_t heap[RBI_GRAPH_STATES(NODES_MAX)];
static uint32_t place[RBI_GRAPH_STATES(NODES_MAX)];
static struct rbi_graph_scratch scratch = {.best = best, .heap = heap, .place = place};

static uint32_t random_below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % n);
}

static int setup(void **state)
{
    (void)state;
    edge_count = 0;
    return 0;
}

static void add(uint32_t from, uint32_t to, uint32_t cost)
{
    assert_true(edge_count < EDGES_MAX);
    edges[edge_count++] = (struct rbi_graph_edge){.from = from, .to = to, .cost = cost};
}

static void add_both(uint32_t a, uint32_t b, uint32_t cost)
{
    add(a, b, cost);
    add(b, a, cost);
}

static void search(uint32_t source, uint32_t nodes, uint32_t avoid)
{
    struct rbi_graph graph;
    rbi_graph_init(&graph, edges, edge_count, nodes);
    rbi_graph_search(&graph, source, avoid, &scratch, ways);
}

static void check_way(uint32_t node, uint32_t cost, uint32_t hops, uint32_t first)
{
    assert_int_equal(ways[node].cost, cost);
    assert_int_equal(ways[node].hops, hops);
    assert_int_equal(ways[node].first, first);
}

static void test_ties_go_to_fewer_hops_then_to_the_lower_neighbour(void **state)
{
    (void)state;
    /* A diamond, 0 to 3 by 1 or 2 (scenario 113), and a longer one of the same cost. */
    add_both(0, 2, 10);
    add_both(2, 3, 10);
    add_both(0, 1, 10);
    add_both(1, 3, 10);
    add_both(0, 4, 5);
    add_both(4, 5, 5);
    add_both(5, 3, 10);
    search(0, 6, RBI_GRAPH_NONE);
    check_way(0, 0, 0, 0);
    check_way(3, 20, 2, 1);
    check_way(5, 10, 2, 4);
    search(0, 6, 1);
    check_way(1, RBI_GRAPH_NONE, RBI_GRAPH_NONE, RBI_GRAPH_NONE);
    check_way(3, 20, 2, 2);
    search(1, 6, 1);
    check_way(1, RBI_GRAPH_NONE, RBI_GRAPH_NONE, RBI_GRAPH_NONE);
    check_way(3, RBI_GRAPH_NONE, RBI_GRAPH_NONE, RBI_GRAPH_NONE);
}

static void test_way_ends_after_eight_hops_and_a_dearer_short_one_is_found(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        add_both(i, i + 1, 1);
    }
    search(0, 11, RBI_GRAPH_NONE);
    check_way(8, 8, 8, 1);
    check_way(9, RBI_GRAPH_NONE, RBI_GRAPH_NONE, RBI_GRAPH_NONE);
    /* To 4 by a short and dear edge: what is behind 8 is reached by that alone. */
    add_both(0, 4, 100);
    search(0, 11, RBI_GRAPH_NONE);
    check_way(4, 4, 4, 1);
    check_way(8, 8, 8, 1);
    check_way(9, 105, 6, 4);
    check_way(10, 106, 7, 4);
}

static void test_edges_are_taken_as_they_are_heard(void **state)
{
    (void)state;
    add(0, 1, 7);
    add(0, 1, 3); /* twice */
    add(1, 1, 1); /* to itself */
    add(1, 2, 0); /* for nothing */
    add(9, 1, 1); /* of nobody */
    add(1, 9, 1);
    add(2, 0, UINT32_MAX);
    search(0, 3, RBI_GRAPH_NONE);
    check_way(1, 3, 1, 1);
    check_way(2, 4, 2, 1);
    search(2, 3, RBI_GRAPH_NONE);
    check_way(0, RBI_GRAPH_COST_MAX, 1, 0);
    check_way(1, RBI_GRAPH_COST_MAX + 3, 2, 0);
}

/* ---- against all ways ------------------------------------------------------------------ */

static bool is_better(const struct rbi_graph_way *a, const struct rbi_graph_way *b)
{
    return a->cost != b->cost   ? a->cost < b->cost
           : a->hops != b->hops ? a->hops < b->hops
                                : a->first < b->first;
}

/* The best way to each node of exactly so many hops, one hop after another. */
static void try_all(uint32_t source, uint32_t nodes, uint32_t avoid, struct rbi_graph_way *out)
{
    const struct rbi_graph_way none = {RBI_GRAPH_NONE, RBI_GRAPH_NONE, RBI_GRAPH_NONE};
    struct rbi_graph_way of[RBI_GRAPH_HOPS_MAX + 1][NODES_MAX];
    for (uint32_t hops = 0; hops <= RBI_GRAPH_HOPS_MAX; hops++) {
        for (uint32_t i = 0; i < nodes; i++) {
            of[hops][i] = none;
        }
    }
    if (source != avoid) {
        of[0][source] = (struct rbi_graph_way){.cost = 0, .hops = 0, .first = source};
    }
    for (uint32_t hops = 1; hops <= RBI_GRAPH_HOPS_MAX; hops++) {
        for (uint32_t i = 0; i < edge_count; i++) {
            const struct rbi_graph_way *to = &of[hops - 1][edges[i].from];
            if (to->cost == RBI_GRAPH_NONE || edges[i].to == avoid ||
                edges[i].from == edges[i].to) {
                continue;
            }
            const struct rbi_graph_way way = {.cost = to->cost + edges[i].cost,
                                              .hops = hops,
                                              .first = hops == 1 ? edges[i].to : to->first};
            if (is_better(&way, &of[hops][edges[i].to])) {
                of[hops][edges[i].to] = way;
            }
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        out[i] = none;
        for (uint32_t hops = 0; hops <= RBI_GRAPH_HOPS_MAX; hops++) {
            out[i] = is_better(&of[hops][i], &out[i]) ? of[hops][i] : out[i];
        }
    }
}

static void test_random_graphs_as_by_trying_all_ways(void **state)
{
    struct rbi_graph_way expected[NODES_MAX];
    for (unsigned round = 0; round < 20000; round++) {
        (void)setup(state);
        const uint32_t nodes = 1 + random_below(NODES_MAX);
        const uint32_t count = random_below(4 * nodes);
        const uint32_t spread = 1 + random_below(12); /* few costs: many ties */
        for (uint32_t i = 0; i < count; i++) {
            add(random_below(nodes), random_below(nodes), 1 + random_below(spread));
        }
        const uint32_t source = random_below(nodes);
        const uint32_t avoid = random_below(3) == 0 ? random_below(nodes) : RBI_GRAPH_NONE;
        try_all(source, nodes, avoid, expected);
        search(source, nodes, avoid);
        assert_memory_equal(ways, expected, nodes * sizeof *ways);
    }
}

/*
 * Each node goes by its own search, and what is sent that way arrives: at each hop it is nearer,
 * for all go by the same edges.
 */
static void test_next_hops_of_all_lead_to_the_end(void **state)
{
    static struct rbi_graph_way all[NODES_MAX][NODES_MAX];
    for (unsigned round = 0; round < 2000; round++) {
        (void)setup(state);
        const uint32_t nodes = 2 + random_below(NODES_MAX - 1);
        for (uint32_t i = 0; i < 3 * nodes; i++) {
            add_both(random_below(nodes), random_below(nodes), 1 + random_below(4));
        }
        for (uint32_t i = 0; i < nodes; i++) {
            search(i, nodes, RBI_GRAPH_NONE);
            memcpy(all[i], ways, sizeof ways);
        }
        for (uint32_t from = 0; from < nodes; from++) {
            for (uint32_t to = 0; to < nodes; to++) {
                uint32_t at = from;
                uint32_t left = all[from][to].cost;
                while (left != RBI_GRAPH_NONE && at != to) {
                    const uint32_t next = all[at][to].first;
                    assert_true(all[next][to].cost < left);
                    left = all[next][to].cost;
                    at = next;
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ties_go_to_fewer_hops_then_to_the_lower_neighbour, setup),
        cmocka_unit_test_setup(test_way_ends_after_eight_hops_and_a_dearer_short_one_is_found,
                               setup),
        cmocka_unit_test_setup(test_edges_are_taken_as_they_are_heard, setup),
        cmocka_unit_test_setup(test_random_graphs_as_by_trying_all_ways, setup),
        cmocka_unit_test_setup(test_next_hops_of_all_lead_to_the_end, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
