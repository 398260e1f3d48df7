/* SPDX-License-Identifier: Apache-2.0 */
/* bus/ways_turn.c - next hops, with hysteresis. See bus/ways.h. */
#include "bus/ways.h"

#include <string.h>

/** What there is to say of a way, and to whom. */
struct turn {
    struct rbi_ways *ways;
    const struct rbi_ways_router *router;
    uint64_t now_ns;
    rbi_ways_emit_fn emit;
    void *context;
};

/** A way as it could be. */
struct candidate {
    uint32_t next; /* place, or RBI_WAYS_NONE */
    uint32_t cost;
    uint32_t hops;
};

static const struct candidate no_way = {.next = RBI_WAYS_NONE};

static void turn_take(struct turn *t, struct rbi_ways_host *host, const struct candidate *way)
{
    const bool other_next = host->next != way->next;
    if (!other_next && host->cost == way->cost && host->hops == way->hops) {
        return;
    }
    host->next = way->next;
    host->cost = way->cost;
    host->hops = way->hops;
    host->since_ns = other_next ? t->now_ns : host->since_ns;
    const struct rbi_ways_change change = {
        .host = host->name,
        .next = way->next == RBI_WAYS_NONE ? "" : t->ways->hosts[way->next].name,
        .cost = way->cost,
        .hops = way->hops,
        .other_next = other_next};
    t->emit(t->context, &change);
}

/** The cheapest way of all. */
static struct candidate turn_best(const struct turn *t, const struct rbi_ways_host *host)
{
    const struct rbi_graph_way *found = &t->ways->found[host->number];
    return found->cost == RBI_GRAPH_NONE ? no_way
                                         : (struct candidate){.next = t->ways->order[found->first],
                                                              .cost = found->cost,
                                                              .hops = found->hops};
}

/**
 * The cheapest way that begins as before.
 * @param begin  cost of the edge to that neighbour; what lies behind it is in ways->other
 */
static struct candidate
turn_kept(const struct turn *t, const struct rbi_ways_host *host, uint32_t next, uint32_t begin)
{
    const struct rbi_graph_way *rest = &t->ways->other[host->number];
    if (host == &t->ways->hosts[next]) {
        return (struct candidate){.next = next, .cost = begin, .hops = 1};
    }
    if (rest->cost == RBI_GRAPH_NONE || rest->hops + 1 > RBI_GRAPH_HOPS_MAX) {
        return no_way;
    }
    return (struct candidate){.next = next, .cost = begin + rest->cost, .hops = rest->hops + 1};
}

/** Decides between the way that holds and the best. */
static void turn_choose(struct turn *t, struct rbi_ways_host *host, const struct candidate *kept)
{
    const struct candidate best = turn_best(t, host);
    const bool better = (uint64_t)best.cost * 100 <= (uint64_t)kept->cost * (100 - RBI_WAYS_BETTER);
    const uint64_t due_ns = host->since_ns + RBI_WAYS_HOLD_NS;
    if (kept->next == RBI_WAYS_NONE || best.next == kept->next) {
        turn_take(t, host, &best);
        return;
    }
    const bool change = better && best.next != RBI_WAYS_NONE;
    turn_take(t, host, change && t->now_ns >= due_ns ? &best : kept);
    if (change && t->now_ns < due_ns) {
        t->ways->due_ns = rbi_min_u64(t->ways->due_ns, due_ns);
    }
}

/** Whether a host has a way that may not be the best any more. */
static bool turn_doubts(const struct turn *t, const struct rbi_ways_host *host)
{
    return host->next != RBI_WAYS_NONE && turn_best(t, host).next != host->next;
}

/** Those whose way begins with one neighbour: what lies behind it is looked for once. */
static void turn_neighbour(struct turn *t, uint32_t next)
{
    struct rbi_ways *ways = t->ways;
    const uint32_t begin = rbi_ways_edge_cost(ways, ways->own, next);
    bool searched = false;
    for (uint32_t i = 0; i < ways->count; i++) {
        struct rbi_ways_host *host = &ways->hosts[ways->order[i]];
        if (host->next != next || !turn_doubts(t, host)) {
            continue;
        }
        if (begin == RBI_GRAPH_NONE) {
            turn_choose(t, host, &no_way);
            continue;
        }
        if (!searched) {
            rbi_ways_search(ways, t->router, next, ways->own, ways->other);
            searched = true;
        }
        const struct candidate kept = turn_kept(t, host, next, begin);
        turn_choose(t, host, &kept);
    }
}

/** Forgets hosts that nobody tells of any more; none of them has a way. */
static void turn_sweep(struct rbi_ways *ways)
{
    static const char none[] = "";
    bool named[RBI_WAYS_HOSTS_MAX] = {false};
    uint32_t kept = 0;
    named[ways->own] = true;
    for (uint32_t i = 0; i < ways->count; i++) {
        const struct rbi_ways_host *host = &ways->hosts[ways->order[i]];
        named[ways->order[i]] |= host->told;
        for (uint32_t k = 0; k < host->link_count; k++) {
            named[host->links[k].to] = true;
        }
    }
    for (uint32_t i = 0; i < ways->count; i++) {
        const uint32_t place = ways->order[i];
        if (named[place]) {
            ways->order[kept++] = place;
        } else {
            ways->hosts[place].name[0] = none[0];
        }
    }
    ways->count = kept;
}

void rbi_ways_turn(struct rbi_ways *ways,
                   const struct rbi_ways_router *router,
                   uint64_t now_ns,
                   rbi_ways_emit_fn emit,
                   void *context)
{
    struct turn t = {
        .ways = ways, .router = router, .now_ns = now_ns, .emit = emit, .context = context};
    bool done[RBI_WAYS_HOSTS_MAX] = {false}; /* neighbours */
    if (now_ns < ways->due_ns) {
        return;
    }
    ways->due_ns = UINT64_MAX;
    rbi_ways_draw(ways);
    rbi_ways_search(ways, router, ways->own, RBI_WAYS_NONE, ways->found);
    for (uint32_t i = 0; i < ways->count; i++) {
        const struct rbi_ways_host *host = &ways->hosts[ways->order[i]];
        if (ways->order[i] != ways->own && turn_doubts(&t, host) && !done[host->next]) {
            done[host->next] = true;
            turn_neighbour(&t, host->next);
        }
    }
    for (uint32_t i = 0; i < ways->count; i++) {
        struct rbi_ways_host *host = &ways->hosts[ways->order[i]];
        if (ways->order[i] != ways->own && !turn_doubts(&t, host)) {
            const struct candidate best = turn_best(&t, host);
            turn_take(&t, host, &best);
        }
    }
    turn_sweep(ways);
    rbi_ways_draw(ways);
}
