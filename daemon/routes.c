/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/routes.h"

#include "bus/hosts_table.h"
#include "daemon/blobs.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PUBLISH_NS (UINT64_C(20) * 1000 * 1000)

void rbi_routes_init(struct rbi_routes *routes)
{
    *routes = (struct rbi_routes){.router = &rbi_ways_dijkstra};
}

void rbi_routes_deinit(struct rbi_routes *routes)
{
    free(routes->ways);
    free(routes->published);
    routes->ways = NULL;
    routes->published = NULL;
}

bool rbi_routes_is_bridge(const struct rbi_routes *routes, uint32_t uid, uint32_t pid)
{
    return routes->bridge && pid != 0 && pid == routes->bridge_pid && uid == routes->bridge_uid;
}

/* ---- the table in the directory ------------------------------------------------------------ */

static int line_compare(const void *a, const void *b)
{
    return strcmp(((const struct rbi_hosts_line *)a)->name,
                  ((const struct rbi_hosts_line *)b)->name);
}

/** What is known by now. @return NULL: nothing, or no memory */
static struct rbi_hosts_table *routes_table(const struct rbi_daemon *daemon, uint64_t *bytes)
{
    const struct rbi_hosts *hosts = &daemon->hosts;
    *bytes = rbi_hosts_table_bytes(hosts->count);
    struct rbi_hosts_table *table = hosts->count ? calloc(1, *bytes) : NULL;
    if (!table) {
        return NULL;
    }
    table->version = 1;
    table->line_bytes = sizeof(struct rbi_hosts_line);
    memcpy(table->own, daemon->routes.own, sizeof(table->own));
    RBI_LIST_EACH(node, spare, &hosts->all)
    {
        const struct rbi_host *host = RBI_CONTAINER_OF(node, struct rbi_host, in_hosts);
        struct rbi_hosts_line *line = &table->lines[table->count++];
        line->number = host->number;
        line->state = rbi_host_state(host);
        line->cost = host->way.cost;
        line->hops = host->way.hops;
        memcpy(line->name, host->name, sizeof(line->name));
        memcpy(line->next, host->way.next, sizeof(line->next));
    }
    qsort(table->lines, table->count, sizeof(table->lines[0]), line_compare);
    return table;
}

static void routes_publish(void *context)
{
    struct rbi_daemon *daemon = context;
    struct rbi_routes *routes = &daemon->routes;
    uint64_t bytes = 0;
    struct rbi_hosts_table *table = routes_table(daemon, &bytes);
    if (table && routes->published && bytes == routes->published_bytes &&
        memcmp(table, routes->published, bytes) == 0) {
        free(table);
        return;
    }
    rbi_blob_release(daemon, routes->published ? RBI_HOSTS_TABLE_KEY : 0);
    free(routes->published);
    routes->published = NULL;
    if (table && rbi_blob_hold(daemon, RBI_HOSTS_TABLE_KEY, table, bytes) < 0) {
        rbi_log(RBI_LOG_ERROR, "directory_stale", "cluster=hosts error=\"no room\"");
        free(table);
        table = NULL;
    }
    routes->published = table;
    routes->published_bytes = bytes;
}

void rbi_routes_touch(struct rbi_daemon *daemon)
{
    struct rbi_loop_timer *timer = &daemon->routes.publish_timer;
    if (!timer->heap_idx && !daemon->stopping) {
        rbi_loop_timer_set(daemon->loop, timer, rbi_loop_now_ns(daemon->loop) + PUBLISH_NS,
                           routes_publish, daemon);
    }
}

/* ---- ways ---------------------------------------------------------------------------------- */

/** A way has changed: for who asks here, for the bridge, and for the directory. */
static void routes_way(void *context, const struct rbi_ways_change *change)
{
    struct rbi_daemon *daemon = context;
    struct rbi_host *host = rbi_hosts_take(&daemon->hosts, change->host);
    struct rbi_peer *bridge = daemon->routes.bridge;
    if (host) {
        host->way = (struct rbi_host_way){.cost = change->cost, .hops = change->hops};
        memcpy(host->way.next, change->next, strlen(change->next));
        rbi_hosts_drop(&daemon->hosts, host);
    }
    if (bridge && !bridge->doomed) {
        struct rbi_wire_way way = {.cost = change->cost, .hops = change->hops};
        rbi_text_set(&way.host, change->host);
        rbi_text_set(&way.next, change->next);
        rbi_peer_send(bridge, RBI_WIRE_WAY, &way, 0);
    }
    if (change->other_next) {
        rbi_log(RBI_LOG_INFO, "way_changed", "host=%s next=%s cost=%" PRIu32 " hops=%" PRIu32,
                change->host, change->next[0] ? change->next : "none", change->cost, change->hops);
    }
    rbi_routes_touch(daemon);
}

static void routes_turn(void *context)
{
    struct rbi_daemon *daemon = context;
    struct rbi_routes *routes = &daemon->routes;
    rbi_ways_turn(routes->ways, routes->router, rbi_loop_now_ns(daemon->loop), routes_way, daemon);
    if (routes->ways->due_ns != UINT64_MAX) {
        rbi_loop_timer_set(daemon->loop, &routes->turn_timer, routes->ways->due_ns, routes_turn,
                           daemon);
    }
}

void rbi_routes_arm(struct rbi_daemon *daemon)
{
    struct rbi_routes *routes = &daemon->routes;
    if (!daemon->stopping) {
        rbi_loop_timer_set(daemon->loop, &routes->turn_timer, routes->ways->due_ns, routes_turn,
                           daemon);
    }
}

/* ---- the bridge's main connection ---------------------------------------------------------- */

void rbi_routes_peer_gone(struct rbi_peer *peer)
{
    struct rbi_daemon *daemon = peer->daemon;
    struct rbi_routes *routes = &daemon->routes;
    if (routes->bridge != peer) {
        return;
    }
    routes->bridge = NULL;
    routes->bridge_pid = 0;
    routes->staging.open = false;
    if (daemon->stopping) {
        return;
    }
    rbi_log(RBI_LOG_WARNING, "bridge_gone", "host=%s pid=%s why=\"%s\"", routes->own,
            rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid),
            peer->doom_reason ? peer->doom_reason : "it has left");
    RBI_LIST_EACH(node, spare, &daemon->hosts.all)
    {
        struct rbi_host *host = RBI_CONTAINER_OF(node, struct rbi_host, in_hosts);
        host->told = false;
        rbi_hosts_drop(&daemon->hosts, host);
    }
    rbi_ways_forget_all(routes->ways, rbi_loop_now_ns(daemon->loop));
    rbi_routes_arm(daemon);
    rbi_routes_touch(daemon);
}
