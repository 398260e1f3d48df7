/* SPDX-License-Identifier: Apache-2.0 */
/* bus/ways_path.c - whole ways, for people: each host on it is asked where it sends on to. */
#include "bus/ways.h"

#include <errno.h>

/** Where a host sends on what is for another, or RBI_WAYS_NONE. */
static uint32_t
path_next(struct rbi_ways *ways, const struct rbi_ways_router *router, uint32_t at, uint32_t to)
{
    if (at == ways->own) {
        return ways->hosts[to].next;
    }
    rbi_ways_search(ways, router, at, RBI_WAYS_NONE, ways->other);
    const struct rbi_graph_way *way = &ways->other[ways->hosts[to].number];
    return way->cost == RBI_GRAPH_NONE ? RBI_WAYS_NONE : ways->order[way->first];
}

int rbi_ways_path(struct rbi_ways *ways,
                  const struct rbi_ways_router *router,
                  const char *from,
                  const char *to,
                  struct rbi_ways_path *out)
{
    uint32_t at = rbi_ways_find(ways, from);
    const uint32_t end = rbi_ways_find(ways, to);
    *out = (struct rbi_ways_path){.hops = 0};
    if (at == RBI_WAYS_NONE || end == RBI_WAYS_NONE) {
        return -ENOENT;
    }
    out->since_ns = at == ways->own && end != ways->own ? ways->hosts[end].since_ns : 0;
    while (at != end) {
        const uint32_t next = path_next(ways, router, at, end);
        const uint32_t cost =
            next == RBI_WAYS_NONE ? RBI_GRAPH_NONE : rbi_ways_edge_cost(ways, at, next);
        if (cost == RBI_GRAPH_NONE || out->hops == RBI_GRAPH_HOPS_MAX) {
            out->hops = 0; /* it ends, or goes round */
            out->cost = 0;
            return 0;
        }
        out->hosts[out->hops++] = ways->hosts[next].name;
        out->cost += cost;
        at = next;
    }
    return 0;
}
