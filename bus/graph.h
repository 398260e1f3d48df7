/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GRAPH_H
#define RINGBUS_BUS_GRAPH_H
/*
 * bus/graph.h - the cheapest ways from a node to all others, over edges with a cost, of at most
 * RBI_GRAPH_HOPS_MAX hops. Pure; no allocation.
 *
 * Dijkstra's algorithm with a binary heap, over pairs of node and hops: what is cheapest may be too
 * long, so a node that was reached is reached again by whatever is dearer and shorter. Ties go to
 * fewer hops, then to the lower first hop: nodes are numbered in the order of their addresses, so
 * all who know the same edges find the same ways, in whatever order they heard of them.
 */
#include "shm/base.h"

#define RBI_GRAPH_NODES_MAX 1024U
#define RBI_GRAPH_HOPS_MAX  8U
/** Costs are cut to this; so the sum of a way never overflows. */
#define RBI_GRAPH_COST_MAX UINT32_C(100000000)
#define RBI_GRAPH_NONE     UINT32_MAX

/** A directed edge. */
struct rbi_graph_edge {
    uint32_t from; /* number of a node */
    uint32_t to;
    uint32_t cost; /* 0 counts as 1: a hop is never free, so that a way never turns round */
};

struct rbi_graph {
    const struct rbi_graph_edge *edges; /* by from, then to; one for each pair, the cheapest */
    uint32_t edge_count;
    uint32_t node_count;
};

/** The way to a node. */
struct rbi_graph_way {
    uint32_t cost;  /* RBI_GRAPH_NONE: there is none */
    uint32_t hops;  /* 0: the node itself */
    uint32_t first; /* the neighbour that it begins with */
};

/** Pairs of a node and hops to it. */
#define RBI_GRAPH_STATES(node_count) ((node_count) * (RBI_GRAPH_HOPS_MAX + 1U))

/** Where a search keeps its place: RBI_GRAPH_STATES(node_count) entries each. */
struct rbi_graph_scratch {
    struct rbi_graph_way *best; /* for each pair */
    uint32_t *heap;             /* pairs to be looked at */
    uint32_t *place;            /* of each pair in the heap */
};

/**
 * Takes edges as they were heard: in any order, one several times, some to themselves.
 * Cost: count x log(count).
 * @param edges       lent for the graph's life; sorted, and what is of no use is left out
 * @param node_count  1 to RBI_GRAPH_NODES_MAX; edges of nodes beyond it are left out
 */
void rbi_graph_init(struct rbi_graph *graph,
                    struct rbi_graph_edge *edges,
                    uint32_t edge_count,
                    uint32_t node_count);
/**
 * Searches from @p source.
 * Cost: edges x hops x log(nodes).
 * @param avoid  a node that no way may touch, or RBI_GRAPH_NONE
 * @param ways   node_count entries, all written
 */
void rbi_graph_search(const struct rbi_graph *graph,
                      uint32_t source,
                      uint32_t avoid,
                      struct rbi_graph_scratch *scratch,
                      struct rbi_graph_way *ways);

#endif
