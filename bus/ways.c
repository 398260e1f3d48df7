/* SPDX-License-Identifier: Apache-2.0 */
/* bus/ways.c - hosts and edges, and the graph that they are. See bus/ways.h. */
#include "bus/ways.h"

#include <errno.h>
#include <string.h>

static void dijkstra(void *context,
                     const struct rbi_graph *graph,
                     uint32_t source,
                     uint32_t avoid,
                     struct rbi_graph_scratch *scratch,
                     struct rbi_graph_way *ways)
{
    (void)context;
    rbi_graph_search(graph, source, avoid, scratch, ways);
}

const struct rbi_ways_router rbi_ways_dijkstra = {.search = dijkstra};

/* ---- hosts --------------------------------------------------------------------------------- */

/** Where a name is in the order, or is to be. */
static uint32_t ways_lower_bound(const struct rbi_ways *ways, const char *name)
{
    uint32_t low = 0;
    uint32_t high = ways->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(ways->hosts[ways->order[middle]].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t rbi_ways_find(const struct rbi_ways *ways, const char *name)
{
    const uint32_t at = ways_lower_bound(ways, name);
    return at < ways->count && strcmp(ways->hosts[ways->order[at]].name, name) == 0
               ? ways->order[at]
               : RBI_WAYS_NONE;
}

static uint32_t ways_free_place(const struct rbi_ways *ways)
{
    for (uint32_t i = 0; i < RBI_WAYS_HOSTS_MAX; i++) {
        if (ways->hosts[i].name[0] == '\0') {
            return i;
        }
    }
    return RBI_WAYS_NONE;
}

/** Place of a host, made when it has none; RBI_WAYS_NONE: there are too many. */
static uint32_t ways_take(struct rbi_ways *ways, const char *name, uint64_t now_ns)
{
    const uint32_t at = ways_lower_bound(ways, name);
    if (at < ways->count && strcmp(ways->hosts[ways->order[at]].name, name) == 0) {
        return ways->order[at];
    }
    const uint32_t place = ways_free_place(ways);
    if (place == RBI_WAYS_NONE) {
        return RBI_WAYS_NONE;
    }
    struct rbi_ways_host *host = &ways->hosts[place];
    *host = (struct rbi_ways_host){.next = RBI_WAYS_NONE, .since_ns = now_ns};
    memcpy(host->name, name, strnlen(name, RBI_HOST_NAME_MAX));
    memmove(&ways->order[at + 1], &ways->order[at], (ways->count - at) * sizeof(ways->order[0]));
    ways->order[at] = place;
    ways->count++;
    return place;
}

void rbi_ways_init(struct rbi_ways *ways, const char *own)
{
    ways->count = 0;
    ways->due_ns = UINT64_MAX;
    ways->own = ways_take(ways, own, 0);
    rbi_ways_draw(ways);
}

/* ---- edges --------------------------------------------------------------------------------- */

static void ways_changed(struct rbi_ways *ways, uint64_t now_ns)
{
    ways->due_ns = rbi_min_u64(ways->due_ns, now_ns + RBI_WAYS_COALESCE_NS);
}

int rbi_ways_set(struct rbi_ways *ways,
                 const char *origin,
                 const struct rbi_ways_edge *edges,
                 uint32_t count,
                 uint64_t now_ns)
{
    if (count > RBI_WAYS_EDGES_MAX) {
        return -E2BIG;
    }
    const uint32_t place = ways_take(ways, origin, now_ns);
    if (place == RBI_WAYS_NONE) {
        return -ENOSPC;
    }
    struct rbi_ways_host *host = &ways->hosts[place];
    int result = 0;
    host->told = true;
    host->link_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t to = ways_take(ways, edges[i].to, now_ns);
        if (to == RBI_WAYS_NONE) {
            result = -ENOSPC;
        } else {
            host->links[host->link_count++] =
                (struct rbi_ways_link){.to = to, .cost = edges[i].cost};
        }
    }
    ways_changed(ways, now_ns);
    return result;
}

static void ways_untell(struct rbi_ways_host *host)
{
    host->told = false;
    host->link_count = 0;
}

void rbi_ways_forget(struct rbi_ways *ways, const char *origin, uint64_t now_ns)
{
    const uint32_t place = rbi_ways_find(ways, origin);
    if (place != RBI_WAYS_NONE) {
        ways_untell(&ways->hosts[place]);
        ways_changed(ways, now_ns);
    }
}

void rbi_ways_forget_all(struct rbi_ways *ways, uint64_t now_ns)
{
    for (uint32_t i = 0; i < ways->count; i++) {
        ways_untell(&ways->hosts[ways->order[i]]);
    }
    ways_changed(ways, now_ns);
}

/* ---- the graph ------------------------------------------------------------------------------ */

void rbi_ways_draw(struct rbi_ways *ways)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ways->count; i++) {
        ways->hosts[ways->order[i]].number = i;
    }
    for (uint32_t i = 0; i < ways->count; i++) {
        const struct rbi_ways_host *host = &ways->hosts[ways->order[i]];
        for (uint32_t k = 0; k < host->link_count; k++) {
            ways->edges[count++] =
                (struct rbi_graph_edge){.from = i,
                                        .to = ways->hosts[host->links[k].to].number,
                                        .cost = host->links[k].cost};
        }
    }
    rbi_graph_init(&ways->graph, ways->edges, count, ways->count);
}

static uint32_t edge_cost(const struct rbi_graph *graph, uint32_t from, uint32_t to)
{
    uint32_t low = 0;
    uint32_t high = graph->edge_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct rbi_graph_edge *edge = &graph->edges[middle];
        if (edge->from < from || (edge->from == from && edge->to < to)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < graph->edge_count && graph->edges[low].from == from && graph->edges[low].to == to
               ? graph->edges[low].cost
               : RBI_GRAPH_NONE;
}

uint32_t rbi_ways_edge_cost(const struct rbi_ways *ways, uint32_t from, uint32_t to)
{
    return edge_cost(&ways->graph, ways->hosts[from].number, ways->hosts[to].number);
}

/** Whether a way can be one. */
static bool ways_is_sound(const struct rbi_ways *ways,
                          uint32_t from,
                          uint32_t avoid,
                          const struct rbi_graph_way *way)
{
    return way->cost != RBI_GRAPH_NONE && way->hops >= 1 && way->hops <= RBI_GRAPH_HOPS_MAX &&
           way->first < ways->count && way->first != avoid &&
           edge_cost(&ways->graph, from, way->first) != RBI_GRAPH_NONE;
}

void rbi_ways_search(struct rbi_ways *ways,
                     const struct rbi_ways_router *router,
                     uint32_t from,
                     uint32_t avoid,
                     struct rbi_graph_way *out)
{
    static const struct rbi_graph_way none = {
        .cost = RBI_GRAPH_NONE, .hops = RBI_GRAPH_NONE, .first = RBI_GRAPH_NONE};
    struct rbi_graph_scratch scratch = {
        .best = ways->best, .heap = ways->heap, .place = ways->place};
    const uint32_t source = ways->hosts[from].number;
    const uint32_t shunned = avoid == RBI_WAYS_NONE ? RBI_GRAPH_NONE : ways->hosts[avoid].number;
    router->search(router->context, &ways->graph, source, shunned, &scratch, out);
    for (uint32_t i = 0; i < ways->count; i++) {
        if (i != source && !ways_is_sound(ways, source, shunned, &out[i])) {
            out[i] = none;
        }
    }
}
