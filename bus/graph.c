/* SPDX-License-Identifier: Apache-2.0 */
/* bus/graph.c - see bus/graph.h. */
#include "bus/graph.h"

#include <stdlib.h>

#define HOPS   (RBI_GRAPH_HOPS_MAX + 1U)
#define UNSEEN RBI_GRAPH_NONE        /* a pair's place: it never was in the heap */
#define DONE   (RBI_GRAPH_NONE - 1U) /* it was looked at */

/* ---- edges ----------------------------------------------------------------------------- */

static int by_ends_and_cost(const void *a, const void *b)
{
    const struct rbi_graph_edge *x = a;
    const struct rbi_graph_edge *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    if (x->to != y->to) {
        return x->to < y->to ? -1 : 1;
    }
    return x->cost < y->cost ? -1 : x->cost > y->cost;
}

void rbi_graph_init(struct rbi_graph *graph,
                    struct rbi_graph_edge *edges,
                    uint32_t edge_count,
                    uint32_t node_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < edge_count; i++) {
        struct rbi_graph_edge edge = edges[i];
        edge.cost = edge.cost == 0                   ? 1
                    : edge.cost > RBI_GRAPH_COST_MAX ? RBI_GRAPH_COST_MAX
                                                     : edge.cost;
        if (edge.from < node_count && edge.to < node_count && edge.from != edge.to) {
            edges[count++] = edge;
        }
    }
    qsort(edges, count, sizeof *edges, by_ends_and_cost);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || edges[kept - 1].from != edges[i].from ||
            edges[kept - 1].to != edges[i].to) {
            edges[kept++] = edges[i];
        }
    }
    *graph = (struct rbi_graph){.edges = edges, .edge_count = kept, .node_count = node_count};
}

/* Position of the first edge from a node. */
static uint32_t first_edge(const struct rbi_graph *graph, uint32_t node)
{
    uint32_t low = 0;
    uint32_t high = graph->edge_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (graph->edges[middle].from < node) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- heap ------------------------------------------------------------------------------ */

static bool is_better(const struct rbi_graph_way *a, const struct rbi_graph_way *b)
{
    if (a->cost != b->cost) {
        return a->cost < b->cost;
    }
    if (a->hops != b->hops) {
        return a->hops < b->hops;
    }
    return a->first < b->first;
}

static void heap_set(struct rbi_graph_scratch *scratch, uint32_t at, uint32_t pair)
{
    scratch->heap[at] = pair;
    scratch->place[pair] = at;
}

static void heap_up(struct rbi_graph_scratch *scratch, uint32_t at)
{
    const uint32_t pair = scratch->heap[at];
    while (at > 0) {
        const uint32_t parent = (at - 1) / 2;
        if (!is_better(&scratch->best[pair], &scratch->best[scratch->heap[parent]])) {
            break;
        }
        heap_set(scratch, at, scratch->heap[parent]);
        at = parent;
    }
    heap_set(scratch, at, pair);
}

static uint32_t heap_take(struct rbi_graph_scratch *scratch, uint32_t *size)
{
    const uint32_t taken = scratch->heap[0];
    const uint32_t pair = scratch->heap[--*size];
    uint32_t at = 0;
    for (uint32_t child = 1; child < *size; child = 2 * at + 1) {
        if (child + 1 < *size && is_better(&scratch->best[scratch->heap[child + 1]],
                                           &scratch->best[scratch->heap[child]])) {
            child++;
        }
        if (!is_better(&scratch->best[scratch->heap[child]], &scratch->best[pair])) {
            break;
        }
        heap_set(scratch, at, scratch->heap[child]);
        at = child;
    }
    heap_set(scratch, at, pair);
    scratch->place[taken] = DONE;
    return taken;
}

/* ---- search ---------------------------------------------------------------------------- */

/* Whether the node was reached as cheaply with no more hops: the pair leads to nothing better. */
static bool is_dominated(const struct rbi_graph_scratch *scratch, uint32_t pair)
{
    const uint32_t first = pair - pair % HOPS;
    for (uint32_t fewer = first; fewer < pair; fewer++) {
        if (scratch->best[fewer].cost <= scratch->best[pair].cost) {
            return true;
        }
    }
    return false;
}

static void reach(struct rbi_graph_scratch *scratch,
                  uint32_t *size,
                  uint32_t node,
                  const struct rbi_graph_way *way)
{
    const uint32_t pair = node * HOPS + way->hops;
    if (scratch->place[pair] == DONE || !is_better(way, &scratch->best[pair])) {
        return;
    }
    scratch->best[pair] = *way;
    if (scratch->place[pair] == UNSEEN) {
        heap_set(scratch, *size, pair);
        ++*size;
    }
    heap_up(scratch, scratch->place[pair]);
}

static void go_on(const struct rbi_graph *graph,
                  uint32_t avoid,
                  struct rbi_graph_scratch *scratch,
                  uint32_t *size,
                  uint32_t pair)
{
    const uint32_t node = pair / HOPS;
    const struct rbi_graph_way *way = &scratch->best[pair];
    for (uint32_t i = first_edge(graph, node);
         i < graph->edge_count && graph->edges[i].from == node; i++) {
        const struct rbi_graph_edge *edge = &graph->edges[i];
        if (edge->to == avoid) {
            continue;
        }
        const struct rbi_graph_way next = {.cost = way->cost + edge->cost,
                                           .hops = way->hops + 1,
                                           .first = way->hops == 0 ? edge->to : way->first};
        reach(scratch, size, edge->to, &next);
    }
}

void rbi_graph_search(const struct rbi_graph *graph,
                      uint32_t source,
                      uint32_t avoid,
                      struct rbi_graph_scratch *scratch,
                      struct rbi_graph_way *ways)
{
    static const struct rbi_graph_way none = {
        .cost = RBI_GRAPH_NONE, .hops = RBI_GRAPH_NONE, .first = RBI_GRAPH_NONE};
    const struct rbi_graph_way here = {.cost = 0, .hops = 0, .first = source};
    uint32_t size = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        ways[i] = none;
    }
    for (uint32_t i = 0; i < RBI_GRAPH_STATES(graph->node_count); i++) {
        scratch->best[i] = none;
        scratch->place[i] = UNSEEN;
    }
    if (source != avoid) {
        reach(scratch, &size, source, &here);
    }
    while (size > 0) {
        const uint32_t pair = heap_take(scratch, &size);
        const struct rbi_graph_way *way = &scratch->best[pair];
        if (is_dominated(scratch, pair)) {
            continue;
        }
        if (is_better(way, &ways[pair / HOPS])) {
            ways[pair / HOPS] = *way;
        }
        if (way->hops < RBI_GRAPH_HOPS_MAX) {
            go_on(graph, avoid, scratch, &size, pair);
        }
    }
}
