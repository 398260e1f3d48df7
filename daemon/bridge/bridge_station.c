/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/bridge_station.c - what the daemon of this host tells, handed to other parts. */
#include "daemon/bridge/bridge.h"
#include "daemon/bridge/export.h"
#include "daemon/bridge/fars.h"
#include "daemon/bridge/flood.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/station.h"
#include "daemon/bridge/status.h"
#include "daemon/log.h"

#define AGAIN_NS UINT64_C(10000000)

static void look(struct rbi_bridge *bridge)
{
    if (bridge->directory == NULL) {
        return;
    }
    const int result = rbi_export_look(bridge->export, bridge->directory, bridge->settled);
    if (result != 0 || (bridge->settled && rbi_export_again(bridge->export))) {
        rbi_loop_timer_set(bridge->loop, &bridge->look_timer, rbi_bridge_now_ns(bridge) + AGAIN_NS,
                           rbi_bridge_station_look_again, bridge);
    }
    rbi_bridge_pump(bridge);
}

void rbi_bridge_station_look_again(void *context)
{
    look(context);
}

/* More than a turn has room for goes with the next. */
static void pump_again(void *context)
{
    rbi_bridge_pump(context);
}

void rbi_bridge_pump(struct rbi_bridge *bridge)
{
    if (rbi_export_pump(bridge->export)) {
        rbi_loop_timer_set(bridge->loop, &bridge->pump_timer, rbi_bridge_now_ns(bridge), pump_again,
                           bridge);
    }
}

static void orphaned(void *context)
{
    struct rbi_bridge *bridge = context;
    rbi_log(RBI_LOG_WARNING, "orphaned", "socket=%s effect=\"this bridge ends\"", bridge->socket);
    rbi_loop_stop(bridge->loop);
}

/** Links go on without the daemon, and the next one takes us over; but not for ever. */
static void wait_for_daemon(struct rbi_bridge *bridge)
{
    if (bridge->orphan_ns != 0) {
        rbi_loop_timer_set(bridge->loop, &bridge->orphan_timer,
                           rbi_bridge_now_ns(bridge) + bridge->orphan_ns, orphaned, bridge);
    }
}

static void on_joined(void *context)
{
    struct rbi_bridge *bridge = context;
    rbi_loop_timer_cancel(bridge->loop, &bridge->orphan_timer);
    rbi_log(RBI_LOG_INFO, "daemon_joined", "socket=%s", bridge->socket);
    rbi_flood_tell_daemon(bridge);
    rbi_status_tell(bridge);
}

static void on_lost(void *context)
{
    wait_for_daemon(context);
}

static void on_way(void *context, const char *host, const char *next, uint32_t cost, uint32_t hops)
{
    rbi_fars_way(context, host, next, cost, hops);
}

static void on_directory(void *context, const struct rbi_directory_view *view, bool settled)
{
    struct rbi_bridge *bridge = context;
    bridge->directory = view;
    bridge->settled = settled;
    look(bridge);
}

static void on_removed(void *context, const struct rbi_pidf *instance, enum rbi_reason reason)
{
    struct rbi_bridge *bridge = context;
    rbi_export_removed(bridge->export, instance, reason);
}

static void on_confirm(void *context, const char *host, const char *prefix)
{
    struct rbi_bridge *bridge = context;
    (void)rbi_import_desk_confirm(bridge->import, host, prefix);
}

static const struct rbi_station_events events = {.on_joined = on_joined,
                                                 .on_lost = on_lost,
                                                 .on_way = on_way,
                                                 .on_directory = on_directory,
                                                 .on_removed = on_removed,
                                                 .on_confirm = on_confirm};

int rbi_bridge_station_start(struct rbi_bridge *bridge)
{
    wait_for_daemon(bridge);
    return rbi_station_new(bridge->loop, bridge->socket, &bridge->config, bridge->incarnation,
                           &events, bridge, &bridge->station);
}

void rbi_bridge_station_look(struct rbi_bridge *bridge)
{
    rbi_station_configure(bridge->station, &bridge->config);
    look(bridge);
}

void rbi_bridge_station_stop(struct rbi_bridge *bridge)
{
    rbi_loop_timer_cancel(bridge->loop, &bridge->look_timer);
    rbi_loop_timer_cancel(bridge->loop, &bridge->pump_timer);
    rbi_loop_timer_cancel(bridge->loop, &bridge->orphan_timer);
    rbi_station_free(bridge->station);
    bridge->station = NULL;
    bridge->directory = NULL;
}
