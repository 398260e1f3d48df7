/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/query.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/query_rows.h"

#include <inttypes.h>
#include <string.h>

/* Rows sent in a row before other clients have their turn. */
#define ROW_BATCH 128U

static uint64_t query_age_ms(const struct rbi_daemon *daemon, uint64_t since_ns)
{
    return (rbi_loop_now_ns(daemon->loop) - since_ns) / 1000000;
}

/** Whether a row is about what was asked for, and what its asker may see. */
static bool query_wants(struct rbi_peer *peer, const struct rbi_endpoint *endpoint)
{
    const struct rbi_query_run *run = &peer->query;
    struct rbi_text why;
    return (run->prefix.length == 0 ||
            rbi_path_has_prefix(endpoint->path.bytes, endpoint->path.length, run->prefix.bytes,
                                run->prefix.length)) &&
           rbi_rights_may(peer, RBI_ACL_WATCH, endpoint, &why);
}

enum rbi_row_result rbi_query_row(struct rbi_peer *peer,
                                  enum rbi_wire_type type,
                                  const void *row,
                                  const int *fds,
                                  unsigned fd_count)
{
    return rbi_peer_try_send_with_fds(peer, type, row, peer->query.serial, fds, fd_count) == 0
               ? RBI_ROW_SENT
               : RBI_ROW_WAIT;
}

/* ---- endpoints ------------------------------------------------------------------------- */

/** Of a proxy: where it is at home. */
static void query_add_home(struct rbi_wire_row_endpoint *row, const struct rbi_origin *origin)
{
    if (origin) {
        rbi_text_set(&row->host, origin->host);
        rbi_text_set(&row->via, origin->via);
        row->cost = origin->cost;
        row->stale = origin->stale;
        row->hidden = origin->hidden;
        row->uid = origin->uid;
        row->pid = 0;
    }
}

static enum rbi_row_result query_send_endpoint(struct rbi_peer *peer,
                                               const struct rbi_endpoint *endpoint)
{
    struct rbi_wire_row_endpoint row = {
        .path = endpoint->path,
        .cluster = endpoint->cluster_id,
        .instance = endpoint->instance,
        .incarnation = endpoint->incarnation,
        .state = endpoint->state,
        .weight = endpoint->seen.weight,
        .health = rbi_origin_health(endpoint),
        .ramp = endpoint->health.ramp,
        .panic = endpoint->cluster && rbi_health_panics(endpoint->cluster),
        .uid = endpoint->peer->uid,
        .pid = endpoint->peer->pid,
        .age_ms = query_age_ms(peer->daemon, endpoint->registered_ns),
        .links = endpoint->link_count,
        .pool_bytes = endpoint->pool_bytes,
    };
    rbi_text_set(&row.program, endpoint->peer->program);
    rbi_text_set(&row.tags, endpoint->seen.tags);
    rbi_text_set(&row.set, endpoint->seen.set);
    rbi_text_set(&row.idc, endpoint->seen.idc);
    query_add_home(&row, endpoint->origin);
    return rbi_query_row(peer, RBI_WIRE_ROW_ENDPOINT, &row, &endpoint->page_fd, 1);
}

static enum rbi_row_result query_next_endpoint(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->registry.endpoints)
    {
        const struct rbi_endpoint *endpoint =
            RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->number <= run->cursor || !query_wants(peer, endpoint)) {
            continue;
        }
        const enum rbi_row_result result = query_send_endpoint(peer, endpoint);
        if (result == RBI_ROW_SENT) {
            run->cursor = endpoint->number;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

/* ---- links ----------------------------------------------------------------------------- */

static enum rbi_row_result query_next_link(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->links.all)
    {
        const struct rbi_link *link = RBI_CONTAINER_OF(node, struct rbi_link, in_links);
        if (link->number <= run->cursor ||
            (!query_wants(peer, link->requester) && !query_wants(peer, link->server))) {
            continue;
        }
        const struct rbi_wire_row_link row = {
            .link_id = link->id,
            .requester = link->requester->path,
            .server = link->server->path,
            .state = link->linked,
            .age_ms = query_age_ms(peer->daemon, link->created_ns),
            .side_bytes = link->side_bytes[0] + link->side_bytes[1],
        };
        const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_LINK, &row, NULL, 0);
        if (result == RBI_ROW_SENT) {
            run->cursor = link->number;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

/* ---- calls and alarms ------------------------------------------------------------------- */

static bool query_wants_path(struct rbi_peer *peer, const struct rbi_text *path)
{
    const struct rbi_text *prefix = &peer->query.prefix;
    struct rbi_text why;
    return (prefix->length == 0 ||
            rbi_path_has_prefix(path->bytes, path->length, prefix->bytes, prefix->length)) &&
           rbi_rights_may_path(peer, RBI_ACL_WATCH, path->bytes, path->length, &why);
}

static enum rbi_row_result query_next_cluster_calls(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->health.clusters)
    {
        const struct rbi_cluster_health *health =
            RBI_CONTAINER_OF(node, struct rbi_cluster_health, in_clusters);
        if (health->number <= run->cursor || !query_wants_path(peer, &health->cluster->path)) {
            continue;
        }
        struct rbi_wire_row_calls row = {.path = health->cluster->path};
        rbi_figures_cluster_row(health->figures, rbi_loop_now_ns(peer->daemon->loop), &row);
        const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_CALLS, &row, NULL, 0);
        if (result == RBI_ROW_SENT) {
            run->cursor = health->number;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

static enum rbi_row_result query_next_instance_calls(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->registry.endpoints)
    {
        const struct rbi_endpoint *endpoint =
            RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->number <= run->cursor || !endpoint->health.figures ||
            !query_wants(peer, endpoint)) {
            continue;
        }
        struct rbi_wire_row_calls row = {.path = endpoint->path};
        rbi_figures_instance_row(endpoint->health.figures, &row);
        const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_CALLS, &row, NULL, 0);
        if (result == RBI_ROW_SENT) {
            run->cursor = endpoint->number;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

static enum rbi_row_result query_next_alarm(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->alarms.entries)
    {
        const struct rbi_alarm_entry *entry =
            RBI_CONTAINER_OF(node, struct rbi_alarm_entry, in_desk);
        if (entry->number <= run->cursor || !query_wants_path(peer, &entry->path)) {
            continue;
        }
        struct rbi_wire_row_alarm row;
        rbi_alarm_row(peer->daemon, entry, &row);
        const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_ALARM, &row, NULL, 0);
        if (result == RBI_ROW_SENT) {
            run->cursor = entry->number;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

static enum rbi_row_result query_next_dry_run(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->dry.sums)
    {
        const struct rbi_dry_sum *sum = RBI_CONTAINER_OF(node, struct rbi_dry_sum, in_desk);
        if (sum->number <= run->cursor || !query_wants_path(peer, &sum->path)) {
            continue;
        }
        const struct rbi_wire_row_dry_run row = {
            .path = sum->path, .kind = sum->kind, .rule = sum->rule, .count = sum->count};
        const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_DRY_RUN, &row, NULL, 0);
        if (result == RBI_ROW_SENT) {
            run->cursor = sum->number;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

/* ---- status ---------------------------------------------------------------------------- */

typedef void (*status_fn)(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);

static void status_version(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    (void)daemon;
    rbi_text_set(&row->text, RINGBUS_VERSION_TEXT);
}

static void status_loop(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    rbi_text_set(&row->text, rbi_loop_backend(daemon->loop));
}

static void status_socket(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    rbi_text_set(&row->text, daemon->listener.path);
}

static void status_config(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    rbi_text_set(&row->text, daemon->config_path ? daemon->config_path : "none");
}

static void status_incarnation(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->incarnation;
}

static void status_uptime(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = query_age_ms(daemon, daemon->started_ns);
}

static void status_connections(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->peers.count;
}

static void status_endpoints(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->registry.endpoint_count;
}

static void status_clusters(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = rbi_map_count(&daemon->registry.clusters);
}

static void status_links(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->links.count;
}

static void status_watches(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->watches.count;
}

static void status_nodes(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->nodes.count;
}

static void status_revision(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->registry.revision;
}

static void status_alarms(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->alarms.firing;
}

static void status_directory(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->publish.segment.size;
}

static void status_growths(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->publish.growths;
}

static void status_refused(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->listener.refused_no_fds;
}

static void status_tables(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->tables.count;
}

static void status_inflight(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    rbi_inflight_look(daemon);
    row->value = daemon->inflight.total;
}

static void status_log(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    (void)daemon;
    row->value = rbi_log_dropped();
}

static const struct {
    const char *name;
    status_fn fill;
} status_rows[] = {
    {"version", status_version},
    {"loop", status_loop},
    {"socket", status_socket},
    {"config", status_config},
    {"incarnation", status_incarnation},
    {"uptime_ms", status_uptime},
    {"connections", status_connections},
    {"endpoints", status_endpoints},
    {"clusters", status_clusters},
    {"links", status_links},
    {"watches", status_watches},
    {"nodes", status_nodes},
    {"slot_tables", status_tables},
    {"revision", status_revision},
    {"alarms_firing", status_alarms},
    {"directory_bytes", status_directory},
    {"directory_growths", status_growths},
    {"connections_without_descriptors", status_refused},
    {"descriptors_in_flight", status_inflight},
    {"log_lines_dropped", status_log},
    {"bridge_host", rbi_query_bridge_host},
    {"bridge_pid", rbi_query_bridge_pid},
    {"bridge_ms", rbi_query_bridge_ms},
    {"bridge_starts", rbi_query_bridge_starts},
    {"bridge_hosts", rbi_query_bridge_hosts},
    {"bridge_ways", rbi_query_bridge_ways},
};

static const struct {
    const char *name;
    size_t offset;
} status_counters[] = {
#define STATUS_COUNTER(name) {#name, offsetof(struct rbi_daemon_counters, name)},
    RBI_DAEMON_COUNTERS(STATUS_COUNTER)
#undef STATUS_COUNTER
};

static enum rbi_row_result query_next_status(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    struct rbi_wire_row_status row = {.value = 0};
    const size_t rows = RBI_ARRAY_SIZE(status_rows);
    if (run->cursor < rows) {
        rbi_text_set(&row.name, status_rows[run->cursor].name);
        status_rows[run->cursor].fill(peer->daemon, &row);
    } else if (run->cursor < rows + RBI_ARRAY_SIZE(status_counters)) {
        const size_t idx = run->cursor - rows;
        rbi_text_set(&row.name, status_counters[idx].name);
        memcpy(&row.value, (const char *)&peer->daemon->counters + status_counters[idx].offset,
               sizeof(row.value));
    } else {
        return RBI_ROW_NONE;
    }
    const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_STATUS, &row, NULL, 0);
    if (result == RBI_ROW_SENT) {
        run->cursor++;
    }
    return result;
}

/* ---- the run --------------------------------------------------------------------------- */

static enum rbi_row_result query_next(struct rbi_peer *peer)
{
    switch ((enum rbi_query)peer->query.what) {
    case RBI_QUERY_STATUS:
        return query_next_status(peer);
    case RBI_QUERY_ENDPOINTS:
        return query_next_endpoint(peer);
    case RBI_QUERY_LINKS:
        return query_next_link(peer);
    case RBI_QUERY_ALARMS:
        return query_next_alarm(peer);
    case RBI_QUERY_CLUSTER_CALLS:
        return query_next_cluster_calls(peer);
    case RBI_QUERY_INSTANCE_CALLS:
        return query_next_instance_calls(peer);
    case RBI_QUERY_DRY_RUNS:
        return query_next_dry_run(peer);
    case RBI_QUERY_HOSTS:
        return rbi_query_next_host(peer);
    case RBI_QUERY_WAYS:
        return rbi_query_next_way(peer);
    }
    return RBI_ROW_NONE;
}

static void query_end(struct rbi_peer *peer)
{
    const struct rbi_wire_query_end end = {.rows = peer->query.rows};
    if (rbi_query_row(peer, RBI_WIRE_QUERY_END, &end, NULL, 0) == RBI_ROW_SENT) {
        peer->query.active = false;
        rbi_peer_resume(peer);
    }
}

void rbi_query_continue(struct rbi_peer *peer)
{
    for (unsigned i = 0; i < ROW_BATCH && peer->query.active && !peer->doomed; i++) {
        const enum rbi_row_result result = query_next(peer);
        if (result == RBI_ROW_NONE) {
            query_end(peer);
            return;
        }
        if (result == RBI_ROW_WAIT) {
            return;
        }
        peer->query.rows++;
    }
}

void rbi_query_start(struct rbi_peer *peer, const struct rbi_wire_query *query, uint32_t serial)
{
    peer->query = (struct rbi_query_run){
        .active = true, .what = query->what, .serial = serial, .prefix = query->prefix};
    /* The answer itself is driven by the socket becoming writable. */
    rbi_peer_update_want(peer);
}
