/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_WAYS_H
#define RINGBUS_BUS_WAYS_H
/*
 * bus/ways.h - which neighbour leads to each host: edges as hosts tell of them, by name, to next
 * hops. Pure: time is an argument, memory the caller's.
 *
 *   ways.c       hosts and edges
 *   ways_turn.c  next hops, with hysteresis
 *   ways_path.c  whole ways, for people
 *
 * Changes are collected for RBI_WAYS_COALESCE_NS. A way that holds is kept unless it broke, or
 * another is cheaper by RBI_WAYS_BETTER percent and it has held for RBI_WAYS_HOLD_NS: costs that
 * swing do not make ways swing. Ties go to the lower name, so hosts that know the same edges and
 * begin anew decide alike; where they do not, yet, frames that come back are dropped by who is in
 * their list of visited hosts.
 *
 * An edge holds in its direction alone. A host that forwards nothing for others tells no edges:
 * ways end there then.
 */
#include "bus/bridge_config.h"
#include "bus/graph.h"

#define RBI_WAYS_HOSTS_MAX   RBI_GRAPH_NODES_MAX
#define RBI_WAYS_EDGES_MAX   RBI_BRIDGE_PEERS_MAX /* of one host */
#define RBI_WAYS_COALESCE_NS (UINT64_C(10) * 1000 * 1000)
#define RBI_WAYS_HOLD_NS     (UINT64_C(2) * 1000 * 1000 * 1000)
#define RBI_WAYS_BETTER      20U /* percent */
#define RBI_WAYS_NONE        UINT32_MAX

/** Where a host leads to. */
struct rbi_ways_edge {
    char to[RBI_HOST_NAME_MAX + 1];
    uint32_t cost;
};

/**
 * What finds ways: rbi_ways_dijkstra, or another. What it says is checked: a first hop that no edge
 * leads to, or a way that is too long, is no way.
 */
struct rbi_ways_router {
    /** As rbi_graph_search(). */
    void (*search)(void *context,
                   const struct rbi_graph *graph,
                   uint32_t source,
                   uint32_t avoid,
                   struct rbi_graph_scratch *scratch,
                   struct rbi_graph_way *ways);
    void *context;
};
extern const struct rbi_ways_router rbi_ways_dijkstra;

struct rbi_ways_link {
    uint32_t to; /* place of a host */
    uint32_t cost;
};

/** A host, at a place that is its own while it is known. */
struct rbi_ways_host {
    char name[RBI_HOST_NAME_MAX + 1]; /* "": the place is free */
    bool told;                        /* its edges are known, be it none */
    uint32_t link_count;
    struct rbi_ways_link links[RBI_WAYS_EDGES_MAX];
    uint32_t number; /* in the graph: hosts by name */
    uint32_t next;   /* place of the neighbour that leads there, or RBI_WAYS_NONE */
    uint32_t cost;
    uint32_t hops;
    uint64_t since_ns; /* that it is this neighbour, or none */
};

/** Large: not for a stack. Zero-initialise, then rbi_ways_init(). */
struct rbi_ways {
    struct rbi_ways_host hosts[RBI_WAYS_HOSTS_MAX];
    uint32_t order[RBI_WAYS_HOSTS_MAX]; /* places, by name */
    uint32_t count;
    uint32_t own;    /* place of this host, which is never forgotten */
    uint64_t due_ns; /* when rbi_ways_turn() has something to do; UINT64_MAX: nothing */
    /* For searches. */
    struct rbi_graph graph;
    struct rbi_graph_edge edges[RBI_WAYS_HOSTS_MAX * RBI_WAYS_EDGES_MAX];
    struct rbi_graph_way best[RBI_GRAPH_STATES(RBI_WAYS_HOSTS_MAX)];
    uint32_t heap[RBI_GRAPH_STATES(RBI_WAYS_HOSTS_MAX)];
    uint32_t place[RBI_GRAPH_STATES(RBI_WAYS_HOSTS_MAX)];
    struct rbi_graph_way found[RBI_WAYS_HOSTS_MAX]; /* from this host */
    struct rbi_graph_way other[RBI_WAYS_HOSTS_MAX]; /* from another */
};

/** @param own  name of this host */
void rbi_ways_init(struct rbi_ways *ways, const char *own);
/** Place of a host, or RBI_WAYS_NONE. */
uint32_t rbi_ways_find(const struct rbi_ways *ways, const char *name);
/**
 * All edges of a host are these; of two to one host the cheaper counts.
 * @retval 0
 * @retval -E2BIG   more than RBI_WAYS_EDGES_MAX: nothing has changed
 * @retval -ENOSPC  more hosts than RBI_WAYS_HOSTS_MAX: some edges are left out
 */
RBI_MUST_CHECK int rbi_ways_set(struct rbi_ways *ways,
                                const char *origin,
                                const struct rbi_ways_edge *edges,
                                uint32_t count,
                                uint64_t now_ns);
/** A host tells of no edges any more. */
void rbi_ways_forget(struct rbi_ways *ways, const char *origin, uint64_t now_ns);
/** All of them. */
void rbi_ways_forget_all(struct rbi_ways *ways, uint64_t now_ns);

/** A way has changed. Names are lent for the call. */
struct rbi_ways_change {
    const char *host;
    const char *next; /* "": there is no way */
    uint32_t cost;
    uint32_t hops;
    bool other_next; /* false: another cost or length of the same way */
};
typedef void (*rbi_ways_emit_fn)(void *context, const struct rbi_ways_change *change);
/**
 * Finds the ways anew, when that is due, and tells of what has changed; hosts that no edge tells
 * of any more are forgotten after that.
 * Cost: as rbi_graph_search(), once, and once more for each neighbour that may lose a way.
 */
void rbi_ways_turn(struct rbi_ways *ways,
                   const struct rbi_ways_router *router,
                   uint64_t now_ns,
                   rbi_ways_emit_fn emit,
                   void *context);

/** A way from one host to another. */
struct rbi_ways_path {
    uint32_t cost;
    uint32_t hops;                         /* 0: there is none, or both are the same */
    const char *hosts[RBI_GRAPH_HOPS_MAX]; /* behind the first; the last is where it leads; lent */
    uint64_t since_ns; /* of ways from this host: that its next hop is this; else 0 */
};
/**
 * From this host: as it is. From another: as that one finds it when it knows what is known here,
 * and has no older way that it keeps.
 * @retval 0; -ENOENT one of them is not known
 */
RBI_MUST_CHECK int rbi_ways_path(struct rbi_ways *ways,
                                 const struct rbi_ways_router *router,
                                 const char *from,
                                 const char *to,
                                 struct rbi_ways_path *out);

/* ---- for the files of it ----------------------------------------------------------------- */

/** Numbers the hosts and makes the graph of what is known. */
void rbi_ways_draw(struct rbi_ways *ways);
/** Searches; what the router says is checked. @param out  found or other */
void rbi_ways_search(struct rbi_ways *ways,
                     const struct rbi_ways_router *router,
                     uint32_t from,
                     uint32_t avoid,
                     struct rbi_graph_way *out);
/** Cost of the edge between two places, or RBI_GRAPH_NONE. */
uint32_t rbi_ways_edge_cost(const struct rbi_ways *ways, uint32_t from, uint32_t to);

#endif
