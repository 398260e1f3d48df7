/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/status.h"

#include "daemon/bridge/dial.h"
#include "daemon/bridge/ends.h"
#include "daemon/bridge/fars.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/station.h"
#include "daemon/bridge/tunnel.h"

#include <string.h>

#define MS          UINT64_C(1000000)
#define INTERVAL_NS (1000 * MS)

static void count_streams(const struct rbi_far *far, struct rbi_wire_host *row)
{
    row->streams = far->tunnel_count;
    row->resends = far->resends;
    row->duplicates = far->duplicates;
    RBI_LIST_EACH(node, spare, &far->tunnels)
    {
        const struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_far);
        row->held += tunnel->session == NULL ? 1U : 0U;
        row->resends += tunnel->stream.tx.resent;
        row->duplicates += tunnel->stream.rx.duplicates;
    }
    struct rbi_import_figures known;
    rbi_import_figures(rbi_import_desk_table(far->bridge->import), far->id, &known);
    row->instances = known.instances;
    row->unconfirmed = known.unconfirmed;
    row->mass_held = known.held > 0 && known.unconfirmed > 0;
}

static uint32_t state_of(const struct rbi_far *far)
{
    struct rbi_dial_report report;
    if (far->direct != NULL && far->direct->session != NULL) {
        return RBI_HOST_UP;
    }
    if (rbi_far_way(far) != NULL) {
        return RBI_HOST_REACHABLE;
    }
    if (far->direct == NULL || far->direct->dial == NULL) {
        return RBI_HOST_DOWN;
    }
    rbi_dial_report(far->direct->dial, &report);
    return report.state == RBI_DIAL_TRYING ? RBI_HOST_CONNECTING : RBI_HOST_DOWN;
}

static void count_connection(const struct rbi_neighbour *neighbour, struct rbi_wire_host *row)
{
    const struct rbi_session *session = neighbour->session;
    struct rbi_conn_figures figures = {0};
    row->peer = 1;
    row->connects = (uint32_t)neighbour->connects;
    row->sent_frames = neighbour->frames_out;
    row->sent_bytes = neighbour->bytes_out;
    row->received_frames = neighbour->frames_in;
    row->received_bytes = neighbour->bytes_in;
    rbi_text_set(&row->address, neighbour->peer.address);
    rbi_text_set(&row->why, neighbour->why);
    if (session == NULL || session->conn == NULL) {
        struct rbi_dial_report report;
        if (neighbour->dial != NULL) {
            rbi_dial_report(neighbour->dial, &report);
            rbi_text_set(&row->why, report.why[0] != '\0' ? report.why : neighbour->why);
        }
        return;
    }
    rbi_conn_figures(session->conn, &figures);
    row->sent_frames += session->frames_out;
    row->sent_bytes += figures.bytes_out;
    row->received_frames += session->frames_in;
    row->received_bytes += figures.bytes_in;
    row->queue_bytes = figures.queued;
    row->rtt_ns = session->srtt_ns;
    row->incarnation = session->incarnation;
    row->secure = session->bridge->tls == NULL ? 0 : figures.kernel_tls ? 2 : 1;
    rbi_text_set(&row->address, rbi_conn_address(session->conn));
}

static void tell(struct rbi_far *far)
{
    struct rbi_bridge *bridge = far->bridge;
    struct rbi_wire_host row = {.state = state_of(far),
                                .cost = far->cost,
                                .connected_ms = (rbi_bridge_now_ns(bridge) - far->since_ns) / MS,
                                .forwarded = far->forwarded};
    const struct rbi_session *way = rbi_far_way(far);
    rbi_text_set(&row.name, far->name);
    if (way != NULL && way->neighbour != far->direct) {
        rbi_text_set(&row.via, way->neighbour->peer.host);
    }
    if (far->direct != NULL) {
        count_connection(far->direct, &row);
        row.cost = row.cost == 0 ? far->direct->cost : row.cost;
    }
    count_streams(far, &row);
    rbi_station_host(bridge->station, &row);
}

void rbi_status_tell(struct rbi_bridge *bridge)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    for (struct rbi_far *far = NULL; (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL;) {
        tell(far);
    }
}

static void due(void *context)
{
    struct rbi_bridge *bridge = context;
    if (rbi_station_is_joined(bridge->station)) {
        rbi_status_tell(bridge);
    }
    rbi_loop_timer_set(bridge->loop, &bridge->status_timer, rbi_bridge_now_ns(bridge) + INTERVAL_NS,
                       due, bridge);
}

void rbi_status_start(struct rbi_bridge *bridge)
{
    due(bridge);
}

void rbi_status_stop(struct rbi_bridge *bridge)
{
    rbi_loop_timer_cancel(bridge->loop, &bridge->status_timer);
}
