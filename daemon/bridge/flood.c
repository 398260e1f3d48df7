/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/flood.h"

#include "daemon/bridge/fars.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/station.h"

#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
/* A cost that has changed is told so much later, with others. What has come or gone is told now. */
#define COST_NS (2000 * MS)

/* Whether edges have come or gone, or costs have changed by enough. */
enum change { SAME = 0, COSTS, EDGES };

static enum change look(struct rbi_bridge *bridge)
{
    enum change change = SAME;
    RBI_LIST_EACH(node, spare, &bridge->neighbours)
    {
        const struct rbi_neighbour *neighbour =
            RBI_CONTAINER_OF(node, struct rbi_neighbour, in_bridge);
        const uint32_t cost = rbi_neighbour_cost(neighbour);
        if ((cost == 0) != (neighbour->cost == 0)) {
            return EDGES;
        }
        change = cost != neighbour->cost ? COSTS : change;
    }
    return change;
}

static void own_edges(struct rbi_bridge *bridge, struct rbi_frame_edges *edges)
{
    *edges = (struct rbi_frame_edges){.origin = bridge->self,
                                      .incarnation = bridge->incarnation,
                                      .sequence = bridge->edges_sequence,
                                      .hops = RBI_FRAME_HOPS_MAX};
    rbi_frame_host_set(&edges->name, bridge->config.host);
    RBI_LIST_EACH(node, spare, &bridge->neighbours)
    {
        const struct rbi_neighbour *neighbour =
            RBI_CONTAINER_OF(node, struct rbi_neighbour, in_bridge);
        if (neighbour->cost != 0 && edges->list.count < RBI_FRAME_EDGES_MAX) {
            struct rbi_frame_edge *edge = &edges->list.edge[edges->list.count++];
            edge->to = neighbour->id;
            edge->cost = neighbour->cost;
            rbi_frame_host_set(&edge->name, neighbour->peer.host);
        }
    }
}

static void tell_neighbours(struct rbi_bridge *bridge,
                            const struct rbi_frame_edges *edges,
                            const struct rbi_session *but)
{
    RBI_LIST_EACH(node, spare, &bridge->neighbours)
    {
        const struct rbi_neighbour *neighbour =
            RBI_CONTAINER_OF(node, struct rbi_neighbour, in_bridge);
        if (neighbour->session != NULL && neighbour->session != but) {
            (void)rbi_session_send(neighbour->session, RBI_FRAME_EDGES, 0, 0, edges);
        }
    }
}

static void tell(void *context)
{
    static struct rbi_frame_edges edges;
    struct rbi_bridge *bridge = context;
    RBI_LIST_EACH(node, spare, &bridge->neighbours)
    {
        struct rbi_neighbour *neighbour = RBI_CONTAINER_OF(node, struct rbi_neighbour, in_bridge);
        neighbour->cost = rbi_neighbour_cost(neighbour);
    }
    bridge->edges_sequence++;
    own_edges(bridge, &edges);
    tell_neighbours(bridge, &edges, NULL);
    rbi_station_edges(bridge->station, &edges);
}

void rbi_flood_look(struct rbi_bridge *bridge)
{
    const enum change change = look(bridge);
    if (change == EDGES) {
        rbi_loop_timer_cancel(bridge->loop, &bridge->edges_timer);
        tell(bridge);
    } else if (change == COSTS && bridge->edges_timer.heap_idx == 0) {
        rbi_loop_timer_set(bridge->loop, &bridge->edges_timer, rbi_bridge_now_ns(bridge) + COST_NS,
                           tell, bridge);
    }
}

void rbi_flood_greet(struct rbi_session *session)
{
    static struct rbi_frame_edges edges;
    struct rbi_bridge *bridge = session->bridge;
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    own_edges(bridge, &edges);
    (void)rbi_session_send(session, RBI_FRAME_EDGES, 0, 0, &edges);
    for (struct rbi_far *far = NULL; (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL;) {
        if (far->edges != NULL && far->id != session->neighbour->id) {
            (void)rbi_session_send(session, RBI_FRAME_EDGES, 0, 0, far->edges);
        }
    }
}

static bool is_newer(const struct rbi_far *far, const struct rbi_frame_edges *edges)
{
    return far->edges == NULL || edges->incarnation > far->edges->incarnation ||
           (edges->incarnation == far->edges->incarnation &&
            edges->sequence > far->edges->sequence);
}

void rbi_flood_on_edges(struct rbi_session *session, const struct rbi_frame_edges *edges)
{
    struct rbi_bridge *bridge = session->bridge;
    if (edges->origin == bridge->self) {
        return; /* our own, or those of a life before, which ours are newer than */
    }
    struct rbi_far *far = rbi_fars_named(bridge, edges->name.bytes);
    if (far == NULL || far->id != edges->origin || !is_newer(far, edges)) {
        return;
    }
    if (far->edges == NULL) {
        far->edges = malloc(sizeof *far->edges);
    }
    if (far->edges == NULL) {
        return; /* it is told again with the next change */
    }
    *far->edges = *edges;
    rbi_station_edges(bridge->station, edges);
    if (edges->hops > 0) {
        far->edges->hops = (uint8_t)(edges->hops - 1);
        tell_neighbours(bridge, far->edges, session);
    }
}

void rbi_flood_tell_daemon(struct rbi_bridge *bridge)
{
    static struct rbi_frame_edges edges;
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    own_edges(bridge, &edges);
    rbi_station_edges(bridge->station, &edges);
    for (struct rbi_far *far = NULL; (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL;) {
        if (far->edges != NULL) {
            rbi_station_edges(bridge->station, far->edges);
        }
    }
}
