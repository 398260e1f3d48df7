/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Next hops by the names of hosts (features D64 to D67, 2.12): against all orders of hearing,
 * hysteresis, the hop limit, a calculator that lies, forgetting. Scenario group I: loops, diamonds,
 * edges to oneself.
 */
#include "bus/ways.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct rbi_ways *ways;
static uint64_t now = 1000 * MS;
static unsigned changes;
static unsigned other_nexts;

static uint64_t seed = 17;

static unsigned random_below(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((seed >> 33) % n);
}

static int setup(void **state)
{
    (void)state;
    ways = calloc(1, sizeof(*ways));
    assert_non_null(ways);
    rbi_ways_init(ways, "a");
    now = 1000 * MS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(ways);
    return 0;
}

/** "b:10 c:5" */
static void tell(const char *origin, const char *text)
{
    struct rbi_ways_edge edges[RBI_WAYS_EDGES_MAX + 1];
    uint32_t count = 0;
    for (int used = 0; *text != '\0'; text += used) {
        assert_int_equal(sscanf(text, "%63[^:]:%u%n", edges[count].to, &edges[count].cost, &used),
                         2);
        used += text[used] == ' ';
        count++;
    }
    assert_int_equal(rbi_ways_set(ways, origin, edges, count, now), 0);
}

static void note(void *context, const struct rbi_ways_change *change)
{
    (void)context;
    changes++;
    other_nexts += change->other_next;
    assert_true(change->host[0] != '\0');
    assert_true((change->next[0] == '\0') == (change->hops == 0));
}

static void turn(void)
{
    changes = 0;
    other_nexts = 0;
    now += RBI_WAYS_COALESCE_NS;
    rbi_ways_turn(ways, &rbi_ways_dijkstra, now, note, NULL);
}

/** @param next  "" none */
static void check(const char *host, const char *next, uint32_t cost, uint32_t hops)
{
    const uint32_t place = rbi_ways_find(ways, host);
    if (next[0] == '\0' && place == RBI_WAYS_NONE) {
        return;
    }
    assert_true(place != RBI_WAYS_NONE);
    const struct rbi_ways_host *found = &ways->hosts[place];
    assert_string_equal(found->next == RBI_WAYS_NONE ? "" : ways->hosts[found->next].name, next);
    assert_int_equal(found->cost, cost);
    assert_int_equal(found->hops, hops);
}

static void test_line_and_its_ends(void **state)
{
    (void)state;
    tell("a", "b:10");
    tell("b", "a:10 c:20");
    tell("c", "b:20");
    rbi_ways_turn(ways, &rbi_ways_dijkstra, now, note, NULL); /* more may come within 10 ms */
    check("c", "", 0, 0);
    turn();
    assert_int_equal(changes, 2);
    check("b", "b", 10, 1);
    check("c", "b", 30, 2);
    turn();
    assert_int_equal(changes, 0);
    tell("b", "a:10");
    turn();
    assert_int_equal(changes, 1);
    check("c", "", 0, 0);
    tell("c", "");
    rbi_ways_forget(ways, "c", now);
    turn();
    assert_true(rbi_ways_find(ways, "c") == RBI_WAYS_NONE);
}

static void test_diamond_loops_and_oneself(void **state)
{
    (void)state;
    tell("a", "b:10 c:10 a:1");
    tell("b", "a:10 d:10 c:1");
    tell("c", "a:10 d:10 b:1 c:3");
    tell("d", "b:10 c:10");
    turn();
    check("d", "b", 20, 2); /* of two alike the lower name */
    check("a", "", 0, 0);
    tell("b", "a:10");
    turn();
    check("d", "c", 20, 2); /* it broke: at once */
    tell("c", "");
    turn();
    check("d", "", 0, 0);
}

static void test_better_ways_wait(void **state)
{
    (void)state;
    tell("a", "b:50 c:100");
    tell("b", "d:50");
    tell("c", "d:100");
    turn();
    check("d", "b", 100, 2);
    /* Not by a fifth: never. */
    tell("c", "d:1");
    tell("a", "b:50 c:80");
    now += 2 * RBI_WAYS_HOLD_NS;
    turn();
    check("d", "b", 100, 2);
    /* By a fifth: it has held for long enough. */
    tell("a", "b:50 c:79");
    turn();
    assert_int_equal(other_nexts, 1);
    check("d", "c", 80, 2);
    /* And back only after two seconds, without that anybody says anything more. */
    tell("a", "b:1 c:79");
    turn();
    check("d", "c", 80, 2);
    now += RBI_WAYS_HOLD_NS;
    turn();
    check("d", "b", 51, 2);
}

static void test_hold_of_two_seconds(void **state)
{
    (void)state;
    tell("a", "b:50 c:100");
    tell("b", "d:50");
    tell("c", "d:100");
    turn();
    check("d", "b", 100, 2);
    const uint64_t chosen = now;
    tell("a", "b:50 c:1");
    tell("c", "d:1");
    turn();
    check("d", "b", 100, 2);
    check("c", "c", 1, 1);
    assert_int_equal(ways->due_ns, chosen + RBI_WAYS_HOLD_NS);
    now = chosen + RBI_WAYS_HOLD_NS - RBI_WAYS_COALESCE_NS;
    turn();
    check("d", "c", 2, 2);
    /* What breaks does not wait. */
    tell("c", "");
    turn();
    check("d", "b", 100, 2);
    assert_int_equal(ways->due_ns, UINT64_MAX);
}

static void test_cost_of_what_is_kept_is_its_own(void **state)
{
    (void)state;
    tell("a", "b:50 c:50");
    tell("b", "d:50");
    tell("c", "d:60");
    turn();
    tell("b", "d:55");
    turn();
    assert_int_equal(changes, 1);
    assert_int_equal(other_nexts, 0);
    check("d", "b", 105, 2);
    /* The one that is kept gets dearer, and still no other is better by a fifth. */
    tell("b", "d:80");
    now += 2 * RBI_WAYS_HOLD_NS;
    turn();
    check("d", "b", 130, 2);
    tell("b", "d:88");
    turn();
    check("d", "c", 110, 2);
}

static void test_eight_hops(void **state)
{
    (void)state;
    tell("a", "b:1 z:1000");
    tell("b", "c:1");
    tell("c", "d:1");
    tell("d", "e:1");
    tell("e", "f:1");
    tell("f", "g:1");
    tell("g", "h:1");
    tell("h", "i:1");
    tell("i", "j:1");
    turn();
    check("i", "b", 8, 8);
    check("j", "", 0, 0);
    tell("z", "h:1");
    turn();
    check("j", "z", 1003, 4); /* dearer and shorter */
    check("i", "b", 8, 8);
    /* What is kept may not be longer than eight either. */
    tell("a", "b:1 z:1");
    tell("z", "y:1");
    tell("y", "h:1");
    turn();
    check("j", "z", 5, 5);
}

/* The way that holds may have become too long: it is cheaper, and none. */
static void test_what_is_kept_is_not_too_long(void **state)
{
    (void)state;
    tell("a", "b:1 z:1000");
    tell("b", "c:1");
    tell("c", "d:1");
    tell("d", "e:1");
    tell("e", "f:1");
    tell("f", "g:1");
    tell("g", "h:1");
    tell("h", "t:1");
    tell("z", "t:1");
    turn();
    check("t", "b", 8, 8);
    tell("h", "i:1");
    tell("i", "t:1");
    turn();
    check("t", "z", 1001, 2);
}

/* A calculator that says what cannot be is not believed. */
static void lie(void *context,
                const struct rbi_graph *graph,
                uint32_t source,
                uint32_t avoid,
                struct rbi_graph_scratch *scratch,
                struct rbi_graph_way *out)
{
    rbi_graph_search(graph, source, avoid, scratch, out);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        switch (*(int *)context) {
        case 0:
            out[i].first = 2; /* no edge leads there */
            break;
        case 1:
            out[i].hops = 9;
            break;
        case 2:
            out[i].first = UINT32_MAX;
            break;
        default:
            out[i].hops = 0;
            break;
        }
    }
}

static void test_calculator_can_be_replaced_and_is_checked(void **state)
{
    (void)state;
    tell("a", "b:1");
    tell("b", "c:1");
    for (int kind = 0; kind < 4; kind++) {
        const struct rbi_ways_router liar = {.search = lie, .context = &kind};
        now += RBI_WAYS_COALESCE_NS;
        ways->due_ns = now;
        rbi_ways_turn(ways, &liar, now, note, NULL);
        check("b", "", 0, 0);
        check("c", "", 0, 0);
    }
    ways->due_ns = now;
    turn();
    check("c", "b", 2, 2);
}

static void test_paths(void **state)
{
    struct rbi_ways_path path;
    (void)state;
    tell("a", "b:1");
    tell("b", "a:1 c:2");
    tell("c", "b:2 d:3");
    tell("d", "c:3");
    turn();
    assert_int_equal(rbi_ways_path(ways, &rbi_ways_dijkstra, "a", "d", &path), 0);
    assert_int_equal(path.hops, 3);
    assert_int_equal(path.cost, 6);
    assert_string_equal(path.hosts[0], "b");
    assert_string_equal(path.hosts[2], "d");
    assert_int_equal(path.since_ns, now);
    assert_int_equal(rbi_ways_path(ways, &rbi_ways_dijkstra, "d", "a", &path), 0);
    assert_int_equal(path.hops, 3);
    assert_string_equal(path.hosts[0], "c");
    assert_string_equal(path.hosts[2], "a");
    assert_int_equal(path.since_ns, 0);
    assert_int_equal(rbi_ways_path(ways, &rbi_ways_dijkstra, "a", "a", &path), 0);
    assert_int_equal(path.hops, 0);
    assert_int_equal(rbi_ways_path(ways, &rbi_ways_dijkstra, "a", "x", &path), -ENOENT);
    tell("c", "d:3");
    turn();
    assert_int_equal(rbi_ways_path(ways, &rbi_ways_dijkstra, "d", "a", &path), 0);
    assert_int_equal(path.hops, 0);
}

/** What a graph comes to: each host's next hop. */
static void outcome(char *out, size_t size)
{
    out[0] = '\0';
    for (uint32_t i = 0; i < ways->count; i++) {
        const struct rbi_ways_host *host = &ways->hosts[ways->order[i]];
        const size_t used = strlen(out);
        (void)snprintf(out + used, size - used, "%s>%s:%u/%u ", host->name,
                       host->next == RBI_WAYS_NONE ? "" : ways->hosts[host->next].name, host->cost,
                       host->hops);
    }
}

static void test_order_of_hearing_does_not_matter(void **state)
{
    static const char *const told[][2] = {
        {"a", "b:3 c:3 d:9"}, {"b", "a:3 e:4 f:2"},     {"c", "a:3 e:4 f:2"}, {"d", "a:9 f:1"},
        {"e", "b:4 c:4"},     {"f", "b:2 c:2 d:1 g:1"}, {"g", "f:1"}};
    char first[512];
    char again[512];
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        unsigned order[RBI_ARRAY_SIZE(told)];
        rbi_ways_forget_all(ways, now);
        turn();
        assert_int_equal(ways->count, 1);
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(told); i++) {
            const unsigned k = random_below(i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(told); i++) {
            tell(told[round == 0 ? i : order[i]][0], told[round == 0 ? i : order[i]][1]);
        }
        turn();
        outcome(round == 0 ? first : again, sizeof(first));
        assert_string_equal(round == 0 ? first : again, first);
    }
    check("e", "b", 7, 2);
    check("g", "b", 6, 3);
}

static void test_too_many(void **state)
{
    static struct rbi_ways_edge edges[RBI_WAYS_EDGES_MAX + 1];
    char name[RBI_HOST_NAME_MAX + 1];
    (void)state;
    assert_int_equal(rbi_ways_set(ways, "a", edges, RBI_WAYS_EDGES_MAX + 1, now), -E2BIG);
    int result = 0;
    for (unsigned i = 0; result == 0; i++) {
        (void)snprintf(name, sizeof(name), "h%u", i);
        result = rbi_ways_set(ways, name, edges, 0, now);
        assert_true(i <= RBI_WAYS_HOSTS_MAX);
    }
    assert_int_equal(result, -ENOSPC);
    assert_int_equal(ways->count, RBI_WAYS_HOSTS_MAX);
    (void)snprintf(edges[0].to, sizeof(edges[0].to), "h0");
    (void)snprintf(edges[1].to, sizeof(edges[1].to), "new");
    edges[0].cost = 4;
    assert_int_equal(rbi_ways_set(ways, "a", edges, 2, now), -ENOSPC);
    turn();
    check("h0", "h0", 4, 1);
    rbi_ways_forget_all(ways, now);
    turn();
    assert_int_equal(ways->count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_line_and_its_ends),
        TEST(test_diamond_loops_and_oneself),
        TEST(test_better_ways_wait),
        TEST(test_hold_of_two_seconds),
        TEST(test_cost_of_what_is_kept_is_its_own),
        TEST(test_eight_hops),
        TEST(test_what_is_kept_is_not_too_long),
        TEST(test_calculator_can_be_replaced_and_is_checked),
        TEST(test_paths),
        TEST(test_order_of_hearing_does_not_matter),
        TEST(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
