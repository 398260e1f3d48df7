/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/station.h"

#include "bus/wire_cursor.h"
#include "daemon/bridge/uplink.h"
#include "daemon/log.h"
#include "shm/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Changes of the directory wait so long for more of them. */
#define LOOK_NS      UINT64_C(10000000)
#define LOG_LIMIT_NS UINT64_C(10000000000)
/* An edge: length of the name, the name, cost. */
#define EDGE_MAX (1U + RBI_HOST_NAME_MAX + 4U)

struct rbi_station {
    struct rbi_loop *loop;
    const struct rbi_bridge_config *config;
    uint64_t incarnation;
    const struct rbi_station_events *events;
    void *context;
    struct rbi_uplink uplink;
    bool joined;
    bool lost;              /* on_lost() is to come */
    uint32_t bridge_serial; /* of BRIDGE; 0: not said yet */
    struct rbi_loop_task task;
    struct rbi_loop_timer timer;
    bool look_set;
    struct rbi_log_limit limit;
    struct rbi_segment segment; /* the directory */
    struct rbi_directory_view view;
    bool mapped;
    bool settled;
    char watched[RBI_BRIDGE_GLOBS_MAX][RBI_PATH_MAX + 1];
    uint32_t watched_count;
};

static struct rbi_station *station_of(struct rbi_uplink *uplink)
{
    return RBI_CONTAINER_OF(uplink, struct rbi_station, uplink);
}

/* ---- the directory ----------------------------------------------------------------------- */

static void look_due(void *context)
{
    struct rbi_station *station = context;
    station->look_set = false;
    if (station->mapped) {
        station->events->on_directory(station->context, &station->view, station->settled);
    }
}

void rbi_station_look(struct rbi_station *station)
{
    if (!station->look_set) {
        station->look_set = true;
        rbi_loop_timer_set(station->loop, &station->timer, rbi_loop_now_ns(station->loop) + LOOK_NS,
                           look_due, station);
    }
}

/** Maps what the daemon has sent. @retval 0; -errno */
static int map(struct rbi_station *station, const struct rbi_wire_hello_ok *body, int fd)
{
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    struct rbi_directory_view view;
    int result = rbi_segment_adopt(&segment, fd, RBI_SEGMENT_DIRECTORY, body->directory_bytes,
                                   body->directory_bytes);
    if (result == 0) {
        result = rbi_directory_view_init(&view, segment.base, segment.size);
    }
    if (result < 0) {
        rbi_segment_deinit(&segment);
        return result;
    }
    rbi_segment_deinit(&station->segment);
    station->segment = segment;
    station->view = view;
    station->mapped = true;
    return 0;
}

static void say_bridge(struct rbi_station *station)
{
    struct rbi_wire_bridge body = {.incarnation = station->incarnation,
                                   .instances = station->config->limits.instances};
    rbi_text_set(&body.host, station->config->host);
    station->bridge_serial = rbi_uplink_send(&station->uplink, RBI_WIRE_BRIDGE, &body, NULL, 0);
}

static void
on_hello(struct rbi_uplink *uplink, const struct rbi_wire_hello_ok *body, struct rbi_fdlist *fds)
{
    struct rbi_station *station = station_of(uplink);
    const bool same =
        station->mapped && rbi_directory_daemon(&station->view) == body->daemon_incarnation;
    const int fd = rbi_fdlist_steal(fds, 0);
    const int result = fd < 0 ? -EBADF : map(station, body, fd);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (result < 0) {
        rbi_log(RBI_LOG_WARNING, "directory_refused", "error=\"%s\"", rbi_log_errno(-result));
        rbi_uplink_drop(uplink, "its directory cannot be read");
        return;
    }
    station->settled = body->settling == 0 || (same && station->settled);
    rbi_station_look(station);
    if (station->bridge_serial == 0) {
        say_bridge(station);
    }
}

/* ---- what is watched --------------------------------------------------------------------- */

/** The path below which all lies that a glob describes: its elements before the first star. */
static void prefix_of(const char *glob, char out[RBI_PATH_MAX + 1])
{
    size_t length = strcspn(glob, "*");
    if (glob[length] == '*') {
        while (length > 0 && glob[length - 1] != '/') {
            length--;
        }
        length -= length > 0 ? 1U : 0U; /* the slash */
    }
    (void)snprintf(out, RBI_PATH_MAX + 1, "%.*s", (int)length, glob);
    if (out[0] != '/') {
        (void)snprintf(out, RBI_PATH_MAX + 1, "/");
    }
}

static bool covers(const char *prefix, const char *path)
{
    return rbi_path_has_prefix(path, strlen(path), prefix, strlen(prefix));
}

/** Prefixes of all globs, without those that lie below others. @return how many */
static uint32_t prefixes_of(const struct rbi_bridge_globs *globs,
                            char out[RBI_BRIDGE_GLOBS_MAX][RBI_PATH_MAX + 1])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < globs->count; i++) {
        char prefix[RBI_PATH_MAX + 1];
        uint32_t kept = 0;
        bool covered = false;
        prefix_of(globs->items[i], prefix);
        for (uint32_t j = 0; j < count; j++) {
            covered = covered || covers(out[j], prefix);
        }
        if (covered) {
            continue;
        }
        for (uint32_t j = 0; j < count; j++) {
            if (!covers(prefix, out[j])) {
                memmove(out[kept++], out[j], sizeof out[j]);
            }
        }
        memcpy(out[kept], prefix, sizeof prefix);
        count = kept + 1;
    }
    return count;
}

static void watch(struct rbi_station *station, enum rbi_wire_type type, const char *prefix)
{
    if (type == RBI_WIRE_WATCH) {
        struct rbi_wire_watch body;
        memset(&body, 0, sizeof body);
        rbi_text_set(&body.prefix, prefix);
        (void)rbi_uplink_send(&station->uplink, type, &body, NULL, 0);
    } else {
        struct rbi_wire_unwatch body;
        memset(&body, 0, sizeof body);
        rbi_text_set(&body.prefix, prefix);
        (void)rbi_uplink_send(&station->uplink, type, &body, NULL, 0);
    }
}

static void watch_all(struct rbi_station *station, enum rbi_wire_type type)
{
    for (uint32_t i = 0; i < station->watched_count && station->joined; i++) {
        watch(station, type, station->watched[i]);
    }
}

/* ---- what the daemon says ---------------------------------------------------------------- */

static void on_joined(struct rbi_station *station)
{
    station->joined = true;
    rbi_uplink_settled(&station->uplink);
    station->watched_count = prefixes_of(&station->config->export, station->watched);
    watch_all(station, RBI_WIRE_WATCH);
    rbi_station_look(station);
    if (station->joined) { /* still */
        station->events->on_joined(station->context);
    }
}

static void on_error(struct rbi_station *station,
                     const struct rbi_wire_header *header,
                     const struct rbi_wire_error *body)
{
    struct rbi_log_text text = {{0}};
    uint64_t suppressed = 0;
    (void)rbi_log_quote(&text, body->text.bytes, body->text.length);
    if (header->reply_to == station->bridge_serial) {
        if (rbi_log_limit_pass(&station->limit, rbi_loop_now_ns(station->loop), LOG_LIMIT_NS,
                               &suppressed)) {
            rbi_log(RBI_LOG_WARNING, "bridge_refused",
                    "code=%" PRId32 " text=%s suppressed=%" PRIu64, body->code, text.bytes,
                    suppressed);
        }
        rbi_uplink_drop(&station->uplink, "it does not take us as its bridge");
        return;
    }
    rbi_log(RBI_LOG_WARNING, "watch_refused", "code=%" PRId32 " text=%s", body->code, text.bytes);
}

static void on_event(struct rbi_station *station, const struct rbi_wire_event *body)
{
    if (body->change == RBI_CHANGE_REMOVED) {
        const struct rbi_pidf who = {
            .cluster = body->cluster, .instance = body->instance, .incarnation = body->incarnation};
        const enum rbi_reason reason =
            body->reason <= RBI_REASON_LAST ? (enum rbi_reason)body->reason : RBI_REASON_CRASHED;
        station->events->on_removed(station->context, &who, reason);
    }
    rbi_station_look(station);
}

static void on_frame(struct rbi_uplink *uplink,
                     const struct rbi_wire_header *header,
                     const union rbi_wire_body *body,
                     struct rbi_fdlist *fds)
{
    struct rbi_station *station = station_of(uplink);
    (void)fds;
    switch (header->type) {
    case RBI_WIRE_OK:
        if (header->reply_to == station->bridge_serial && !station->joined) {
            on_joined(station);
        }
        break;
    case RBI_WIRE_ERROR:
        on_error(station, header, &body->error);
        break;
    case RBI_WIRE_EVENT:
        on_event(station, &body->event);
        break;
    case RBI_WIRE_SETTLED:
        station->settled = true;
        rbi_station_look(station);
        break;
    case RBI_WIRE_RESYNC:
        rbi_station_look(station);
        break;
    case RBI_WIRE_WAY:
        station->events->on_way(station->context, body->way.host.bytes, body->way.next.bytes,
                                body->way.cost, body->way.hops);
        break;
    case RBI_WIRE_CONFIRM:
        station->events->on_confirm(station->context, body->confirm.host.bytes,
                                    body->confirm.prefix.bytes);
        break;
    default:
        break; /* of nodes and alarms below what is watched, and what later versions say */
    }
}

static void tell_lost(void *context)
{
    struct rbi_station *station = context;
    if (station->lost && !station->joined) {
        station->events->on_lost(station->context);
    }
    station->lost = false;
}

/** Perhaps from inside a call of ours: it is told in the loop. */
static void on_lost(struct rbi_uplink *uplink, const char *why)
{
    struct rbi_station *station = station_of(uplink);
    if (station->joined) {
        rbi_log(RBI_LOG_WARNING, "daemon_lost", "why=\"%s\"", why);
    }
    station->lost = station->lost || station->joined;
    station->joined = false;
    station->bridge_serial = 0;
    rbi_loop_defer(station->loop, &station->task, tell_lost, station);
}

/* ---- what it is told --------------------------------------------------------------------- */

bool rbi_station_is_joined(const struct rbi_station *station)
{
    return station->joined;
}

/** As many edges as fit, from the one at @p at on. @return the first that does not */
static uint32_t
fill_edges(const struct rbi_frame_edge_list *list, uint32_t at, struct rbi_data *out)
{
    struct rbi_writer writer;
    rbi_writer_init(&writer, out->bytes, sizeof out->bytes);
    while (at < list->count && writer.used + EDGE_MAX <= sizeof out->bytes) {
        const struct rbi_frame_edge *edge = &list->edge[at++];
        rbi_writer_u8(&writer, edge->name.length);
        rbi_writer_bytes(&writer, edge->name.bytes, edge->name.length);
        rbi_writer_u32(&writer, edge->cost);
    }
    out->length = (uint16_t)writer.used;
    return at;
}

void rbi_station_edges(struct rbi_station *station, const struct rbi_frame_edges *edges)
{
    uint32_t at = 0;
    bool begin = true;
    while (station->joined && (begin || at < edges->list.count)) {
        struct rbi_wire_edges body = {
            .incarnation = edges->incarnation, .seq = edges->sequence, .begin = begin};
        rbi_text_set(&body.origin, edges->name.bytes);
        at = fill_edges(&edges->list, at, &body.to);
        body.end = at == edges->list.count;
        begin = false;
        (void)rbi_uplink_send(&station->uplink, RBI_WIRE_EDGES, &body, NULL, 0);
    }
}

void rbi_station_host(struct rbi_station *station, const struct rbi_wire_host *host)
{
    if (station->joined) {
        (void)rbi_uplink_send(&station->uplink, RBI_WIRE_HOST, host, NULL, 0);
    }
}

void rbi_station_hop(struct rbi_station *station, const struct rbi_wire_hop *hop)
{
    if (station->joined) {
        (void)rbi_uplink_send(&station->uplink, RBI_WIRE_HOP, hop, NULL, 0);
    }
}

/* ---- life -------------------------------------------------------------------------------- */

int rbi_station_new(struct rbi_loop *loop,
                    const char *socket,
                    const struct rbi_bridge_config *config,
                    uint64_t incarnation,
                    const struct rbi_station_events *events,
                    void *context,
                    struct rbi_station **out)
{
    static const struct rbi_uplink_events uplink_events = {
        .on_hello = on_hello, .on_frame = on_frame, .on_lost = on_lost};
    struct rbi_station *station = calloc(1, sizeof *station);
    if (station == NULL) {
        return -ENOMEM;
    }
    station->loop = loop;
    station->config = config;
    station->incarnation = incarnation;
    station->events = events;
    station->context = context;
    station->segment = (struct rbi_segment)RBI_SEGMENT_NULL;
    rbi_uplink_init(&station->uplink, loop, socket, "ringbus-bridge", &uplink_events);
    rbi_uplink_start(&station->uplink);
    *out = station;
    return 0;
}

void rbi_station_free(struct rbi_station *station)
{
    if (station == NULL) {
        return;
    }
    rbi_uplink_deinit(&station->uplink);
    rbi_loop_undefer(station->loop, &station->task);
    rbi_loop_timer_cancel(station->loop, &station->timer);
    rbi_segment_deinit(&station->segment);
    free(station);
}

void rbi_station_configure(struct rbi_station *station, const struct rbi_bridge_config *config)
{
    station->config = config;
    watch_all(station, RBI_WIRE_UNWATCH);
    station->watched_count = prefixes_of(&config->export, station->watched);
    watch_all(station, RBI_WIRE_WATCH);
    rbi_station_look(station);
}
