/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/bridge.h"

#include "daemon/bridge/door.h"
#include "daemon/bridge/ends.h"
#include "daemon/bridge/export.h"
#include "daemon/bridge/fars.h"
#include "daemon/bridge/flood.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/station.h"
#include "daemon/bridge/status.h"
#include "daemon/bridge/tls.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/log.h"
#include "daemon/wall.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static int failed(const char *step, int error)
{
    rbi_log(RBI_LOG_ERROR, "bridge_failed", "step=%s error=\"%s\"", step, rbi_log_errno(-error));
    return error;
}

/* ---- who may come --------------------------------------------------------------------------- */

static bool is_known(void *context, const char *host)
{
    return rbi_neighbour_find(context, host) != NULL;
}

/* ---- what others export, and we -------------------------------------------------------------- */

static int sink(void *context, uint64_t host, const struct rbi_remote_item *item)
{
    struct rbi_bridge *bridge = context;
    const struct rbi_far *far = rbi_fars_find(bridge, host);
    struct rbi_session *session = far != NULL ? rbi_far_way(far) : NULL;
    const struct rbi_frame_dir_item frame = {
        .envelope = {.from = bridge->self, .to = host, .hops = RBI_FRAME_HOPS_MAX}, .item = *item};
    if (session == NULL) {
        return -EHOSTUNREACH;
    }
    if (rbi_session_room(session) < RBI_FRAME_CONTROL_MAX) {
        return -ENOBUFS;
    }
    return rbi_session_send(session, RBI_FRAME_DIR_ITEM, 0, 0, &frame);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int start_tls(struct rbi_bridge *bridge)
{
    const struct rbi_bridge_config *config = &bridge->config;
    const struct rbi_tls_files files = {.certificate = config->certificate,
                                        .key = config->key,
                                        .ca = config->ca,
                                        .crl = config->crl};
    char why[RBI_TLS_WHY_MAX + 1];
    if (config->insecure) {
        rbi_log(RBI_LOG_WARNING, "insecure",
                "text=\"hosts are not proved and nothing is "
                "encrypted (bridge.insecure)\"");
        return 0;
    }
    const int result = rbi_tls_new(bridge->loop, config->host, &files, why, &bridge->tls);
    if (result == -EINVAL) {
        struct rbi_log_text text;
        rbi_log(RBI_LOG_ERROR, "certificates_refused", "reason=%s using=none",
                rbi_log_quote(&text, why, strlen(why)));
    }
    return result;
}

static void set_terms(struct rbi_bridge *bridge)
{
    bridge->terms = (struct rbi_conn_terms){
        .loop = bridge->loop,
        .tls = bridge->tls,
        .queue_bytes = bridge->config.limits.queue_bytes,
        .batch_delay_ns = bridge->config.batch_delay_us * US,
        .known = is_known,
        .known_context = bridge,
    };
}

static int open_doors(struct rbi_bridge *bridge)
{
    const struct rbi_bridge_config *config = &bridge->config;
    for (uint32_t i = 0; i < config->listen_count; i++) {
        const int result = rbi_door_new(&bridge->terms, config->listen[i], &rbi_session_ops, bridge,
                                        &bridge->doors[i]);
        if (result < 0) {
            rbi_log(RBI_LOG_ERROR, "listen_failed", "address=%s error=\"%s\"", config->listen[i],
                    rbi_log_errno(-result));
            return result;
        }
        rbi_log(RBI_LOG_INFO, "listening", "address=%s", rbi_door_address(bridge->doors[i]));
    }
    return 0;
}

static void close_doors(struct rbi_bridge *bridge)
{
    for (uint32_t i = 0; i < RBI_BRIDGE_LISTEN_MAX; i++) {
        bridge->doors[i] = rbi_door_free(bridge->doors[i]);
    }
}

static int start_desk(struct rbi_bridge *bridge)
{
    const struct rbi_desk_options options = {.loop = bridge->loop,
                                             .socket = bridge->socket,
                                             .events = &rbi_tunnel_desk_events,
                                             .context = bridge};
    return rbi_desk_new(&options, &bridge->desk);
}

/* It grows from one life to the next, so that what is heard of an earlier one is known as old. */
static uint64_t new_incarnation(const struct rbi_loop *loop)
{
    return rbi_wall_now_s() << 32 | (rbi_loop_now_ns(loop) / MS & UINT32_MAX);
}

static int start_directory(struct rbi_bridge *bridge)
{
    int result =
        rbi_export_new(bridge->incarnation, &bridge->config.export, sink, bridge, &bridge->export);
    if (result == 0) {
        result = rbi_import_desk_new(bridge->loop, &bridge->config, bridge->folder,
                                     &rbi_far_end_calls, bridge, &bridge->import);
    }
    if (result == 0) {
        result = rbi_bridge_station_start(bridge);
    }
    return result;
}

int rbi_bridge_init(struct rbi_bridge *bridge,
                    const struct rbi_bridge_config *config,
                    const struct rbi_bridge_options *options)
{
    *bridge = (struct rbi_bridge){.config = *config,
                                  .loop = options->loop,
                                  .socket = options->socket,
                                  .folder = options->folder,
                                  .orphan_ns = options->orphan_ns,
                                  .self = rbi_host_id(config->host, strlen(config->host)),
                                  .incarnation = new_incarnation(options->loop)};
    rbi_list_init(&bridge->neighbours);
    rbi_list_init(&bridge->sessions);
    rbi_list_init(&bridge->touched);
    rbi_list_init(&bridge->unsettled);
    int result = rbi_map_init(&bridge->hosts);
    result = result == 0 ? rbi_map_init(&bridge->tunnels) : result;
    if (result == 0) {
        result = start_tls(bridge);
    }
    if (result < 0) {
        return failed("certificates", result);
    }
    set_terms(bridge);
    result = start_desk(bridge);
    if (result < 0) {
        return failed("desk", result);
    }
    result = start_directory(bridge);
    if (result < 0) {
        return failed("directory", result);
    }
    result = open_doors(bridge);
    if (result < 0) {
        return failed("listen", result);
    }
    rbi_neighbours_configure(bridge);
    rbi_status_start(bridge);
    rbi_log(RBI_LOG_INFO, "bridge_started", "host=%s incarnation=%" PRIu64 " loop=%s", config->host,
            bridge->incarnation, rbi_loop_backend(bridge->loop));
    return 0;
}

void rbi_bridge_configure(struct rbi_bridge *bridge, const struct rbi_bridge_config *config)
{
    char why[RBI_TLS_WHY_MAX + 1];
    bridge->config = *config;
    bridge->terms.queue_bytes = config->limits.queue_bytes;
    bridge->terms.batch_delay_ns = config->batch_delay_us * US;
    if (bridge->tls != NULL) {
        const struct rbi_tls_files files = {.certificate = config->certificate,
                                            .key = config->key,
                                            .ca = config->ca,
                                            .crl = config->crl};
        (void)rbi_tls_reload(bridge->tls, &files, why); /* it logs why not */
    }
    rbi_export_configure(bridge->export, &bridge->config.export);
    rbi_import_desk_configure(bridge->import, &bridge->config);
    rbi_neighbours_configure(bridge);
    rbi_bridge_station_look(bridge);
}

void rbi_bridge_stop(struct rbi_bridge *bridge)
{
    bridge->stopping = true;
    close_doors(bridge);
    while (!rbi_list_empty(&bridge->neighbours)) {
        rbi_neighbour_remove(RBI_LIST_FIRST(&bridge->neighbours, struct rbi_neighbour, in_bridge));
    }
}

static void free_tunnels(struct rbi_bridge *bridge)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_far *far = NULL;
    while (bridge->hosts.ready && (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL) {
        while (!rbi_list_empty(&far->tunnels)) {
            rbi_tunnel_free(RBI_LIST_FIRST(&far->tunnels, struct rbi_tunnel, in_far));
        }
    }
}

/* What was said last still leaves, for a second at most; then the kernel holds nothing of them. */
static void drain_connections(const struct rbi_bridge *bridge)
{
    while (bridge->terms.alive > 0 && rbi_loop_turn(bridge->loop, 10 * MS) == 0) {
    }
}

void rbi_bridge_deinit(struct rbi_bridge *bridge)
{
    rbi_bridge_stop(bridge);
    while (!rbi_list_empty(&bridge->sessions)) {
        struct rbi_session *session =
            RBI_LIST_FIRST(&bridge->sessions, struct rbi_session, in_sessions);
        rbi_session_end(session, "this bridge ends", true);
        if (rbi_loop_turn(bridge->loop, 0) < 0) { /* frees it */
            break;
        }
    }
    free_tunnels(bridge);
    rbi_status_stop(bridge);
    rbi_bridge_station_stop(bridge);
    if (bridge->import != NULL) {
        rbi_import_desk_free(bridge->import);
    }
    rbi_far_ends_free(bridge);
    bridge->desk = rbi_desk_free(bridge->desk);
    rbi_export_free(bridge->export);
    rbi_loop_timer_cancel(bridge->loop, &bridge->edges_timer);
    rbi_loop_timer_cancel(bridge->loop, &bridge->unsettled_timer);
    rbi_loop_undefer(bridge->loop, &bridge->touched_task);
    rbi_fars_free(bridge);
    rbi_map_deinit(&bridge->tunnels);
    drain_connections(bridge);
    bridge->tls = rbi_tls_free(bridge->tls);
}
