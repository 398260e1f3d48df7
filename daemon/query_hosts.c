/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/query_hosts.c - rows about other hosts and the ways there. */
#include "daemon/daemon.h"
#include "daemon/query_rows.h"

#include <string.h>

/* Whole ways of all hosts are searched for when there are no more than these. */
#define PATHS_MAX 64U

enum rbi_row_result rbi_query_next_host(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    RBI_LIST_EACH(node, spare, &peer->daemon->hosts.all)
    {
        const struct rbi_host *host = RBI_CONTAINER_OF(node, struct rbi_host, in_hosts);
        if (host->order <= run->cursor) {
            continue;
        }
        struct rbi_wire_row_host row = {.state = 0};
        if (host->told) {
            _Static_assert(sizeof(row) >= sizeof(host->row), "a ROW_HOST begins as HOST does");
            memcpy(&row, &host->row, sizeof(host->row));
        }
        rbi_text_set(&row.name, host->name);
        row.number = host->number;
        row.state = rbi_host_state(host);
        if (host->way.hops > 0) {
            rbi_text_set(&row.via, host->way.hops > 1 ? host->way.next : "");
            row.cost = host->way.cost;
        }
        const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_HOST, &row, NULL, 0);
        if (result == RBI_ROW_SENT) {
            run->cursor = host->order;
        }
        return result;
    }
    return RBI_ROW_NONE;
}

/* ---- ways ----------------------------------------------------------------------------------- */

/** What is asked for: "", "FROM" or "FROM TO". */
struct asked {
    char from[RBI_HOST_NAME_MAX + 1];
    char to[RBI_HOST_NAME_MAX + 1];
};

/** @return whether it names hosts, as far as it names any */
static bool
asked_parse(const struct rbi_daemon *daemon, const struct rbi_text *text, struct asked *out)
{
    const char *space = memchr(text->bytes, ' ', text->length);
    const size_t from = space ? (size_t)(space - text->bytes) : text->length;
    const size_t to = space ? text->length - from - 1 : 0;
    *out = (struct asked){.from = ""};
    memcpy(out->from, daemon->routes.own, sizeof(out->from));
    if (from > 0) {
        if (!rbi_host_name_valid(text->bytes, from)) {
            return false;
        }
        memset(out->from, 0, sizeof(out->from));
        memcpy(out->from, text->bytes, from);
    }
    if (to > 0) {
        if (!rbi_host_name_valid(space + 1, to)) {
            return false;
        }
        memcpy(out->to, space + 1, to);
    }
    return true;
}

/** A name in the list of those on the way; what does not fit any more is left out. */
static void way_append(struct rbi_wire_row_way *row, const char *name)
{
    const size_t length = strlen(name);
    if (row->path.length + length + 1 <= RBI_WIRE_DATA_MAX) {
        memcpy(&row->path.bytes[row->path.length], name, length);
        row->path.bytes[row->path.length + length] = '\n';
        row->path.length = (uint16_t)(row->path.length + length + 1);
    }
}

/** Fills the row of one host. @return false: no way leads there from @p from, or it is that host */
static bool way_fill(struct rbi_daemon *daemon,
                     const struct asked *asked,
                     const char *to,
                     struct rbi_wire_row_way *row)
{
    struct rbi_routes *routes = &daemon->routes;
    struct rbi_ways_path path;
    *row = (struct rbi_wire_row_way){.cost = 0};
    if (rbi_ways_path(routes->ways, routes->router, asked->from, to, &path) < 0 || path.hops == 0) {
        return false;
    }
    rbi_text_set(&row->host, to);
    rbi_text_set(&row->next, path.hosts[0]);
    row->cost = path.cost;
    row->hops = path.hops;
    row->age_ms = path.since_ns ? (rbi_loop_now_ns(daemon->loop) - path.since_ns) / 1000000 : 0;
    for (uint32_t i = 0; i < path.hops; i++) {
        way_append(row, path.hosts[i]);
    }
    return true;
}

/** Of many hosts only what is known without searching: those from here. */
static bool way_fill_known(struct rbi_daemon *daemon,
                           const struct rbi_ways_host *host,
                           struct rbi_wire_row_way *row)
{
    const struct rbi_ways *ways = daemon->routes.ways;
    *row = (struct rbi_wire_row_way){.cost = host->cost, .hops = host->hops};
    if (host->next == RBI_WAYS_NONE) {
        return false;
    }
    rbi_text_set(&row->host, host->name);
    rbi_text_set(&row->next, ways->hosts[host->next].name);
    row->age_ms = (rbi_loop_now_ns(daemon->loop) - host->since_ns) / 1000000;
    return true;
}

enum rbi_row_result rbi_query_next_way(struct rbi_peer *peer)
{
    struct rbi_query_run *run = &peer->query;
    struct rbi_daemon *daemon = peer->daemon;
    struct rbi_ways *ways = daemon->routes.ways;
    struct rbi_wire_row_way row;
    struct asked asked;
    if (!ways || !asked_parse(daemon, &run->prefix, &asked)) {
        return RBI_ROW_NONE;
    }
    const bool from_here = strcmp(asked.from, daemon->routes.own) == 0;
    for (; run->cursor < ways->count; run->cursor++) {
        const struct rbi_ways_host *host = &ways->hosts[ways->order[run->cursor]];
        if (asked.to[0] != '\0' && strcmp(asked.to, host->name) != 0) {
            continue;
        }
        const bool whole = asked.to[0] != '\0' || ways->count <= PATHS_MAX || !from_here;
        if (whole ? way_fill(daemon, &asked, host->name, &row)
                  : way_fill_known(daemon, host, &row)) {
            const enum rbi_row_result result = rbi_query_row(peer, RBI_WIRE_ROW_WAY, &row, NULL, 0);
            run->cursor += result == RBI_ROW_SENT;
            return result;
        }
    }
    return RBI_ROW_NONE;
}

/* ---- status --------------------------------------------------------------------------------- */

void rbi_query_bridge_host(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    const struct rbi_routes *routes = &daemon->routes;
    rbi_text_set(&row->text, routes->bridge ? routes->own : "none");
}

void rbi_query_bridge_pid(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->routes.bridge ? daemon->routes.bridge_pid : 0;
}

void rbi_query_bridge_ms(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    const struct rbi_routes *routes = &daemon->routes;
    row->value = routes->bridge ? (rbi_loop_now_ns(daemon->loop) - routes->since_ns) / 1000000 : 0;
}

void rbi_query_bridge_starts(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->bridge.starts;
}

void rbi_query_bridge_hosts(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    row->value = daemon->hosts.count;
}

void rbi_query_bridge_ways(struct rbi_daemon *daemon, struct rbi_wire_row_status *row)
{
    RBI_LIST_EACH(node, spare, &daemon->hosts.all)
    {
        row->value += RBI_CONTAINER_OF(node, struct rbi_host, in_hosts)->way.hops > 0;
    }
}
