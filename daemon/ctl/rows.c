/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/rows.h"

#include "bus/directory.h"
#include "bus/pidf.h"
#include "shm/layout.h"
#include "shm/segment.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more element: doubles. @return false when memory is short */
static bool grow(void **items, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return true;
    }
    size_t wanted = *room == 0 ? 64 : *room * 2;
    void *larger = realloc(*items, wanted * size);
    if (larger == NULL) {
        return false;
    }
    *items = larger;
    *room = wanted;
    return true;
}

static void page_read(struct rbi_ctl_page *out, int fd)
{
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    if (rbi_segment_adopt(&segment, fd, RBI_SEGMENT_PAGE, RBI_PAGE, RBI_PAGE) != 0) {
        return;
    }
    const struct rbi_page *page = segment.base;
    out->counters = calloc(RBI_COUNTER_COUNT, sizeof *out->counters);
    if (out->counters != NULL) {
        out->known = true;
        out->asleep = (rbi_load_rlx(&page->sleep_epoch) & 1) != 0;
        out->busy_poll = (page->flags & RBI_PAGE_BUSY_POLL) != 0;
        out->debug_hold = (page->flags & RBI_PAGE_DEBUG_HOLD) != 0;
        out->load_depth = rbi_load_rlx(&page->load_depth);
        out->load_ewma_ns = rbi_load_rlx(&page->load_ewma_ns);
        out->poll_tick_ms = rbi_load_rlx(&page->poll_tick_ms);
        for (unsigned i = 0; i < RBI_COUNTER_COUNT; i++) {
            out->counters[i] = rbi_load_rlx(&page->counters[i]);
        }
    }
    rbi_segment_deinit(&segment);
}

static int on_endpoint(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct rbi_ctl_rows *rows = context;
    if (type != RBI_WIRE_ROW_ENDPOINT) {
        return RBI_CTL_OK;
    }
    void *items = rows->endpoints;
    bool ok = grow(&items, rows->endpoint_count, &rows->endpoint_room, sizeof *rows->endpoints);
    rows->endpoints = items;
    if (!ok) {
        return RBI_CTL_FAILED;
    }
    struct rbi_ctl_endpoint *endpoint = &rows->endpoints[rows->endpoint_count++];
    memset(endpoint, 0, sizeof *endpoint);
    endpoint->row = body->row_endpoint;
    if (rows->want_pages && fd >= 0) {
        page_read(&endpoint->page, fd);
    }
    return RBI_CTL_OK;
}

static int on_link(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct rbi_ctl_rows *rows = context;
    (void)fd;
    if (type != RBI_WIRE_ROW_LINK) {
        return RBI_CTL_OK;
    }
    void *items = rows->links;
    bool ok = grow(&items, rows->link_count, &rows->link_room, sizeof *rows->links);
    rows->links = items;
    if (!ok) {
        return RBI_CTL_FAILED;
    }
    rows->links[rows->link_count++] = body->row_link;
    return RBI_CTL_OK;
}

static int by_path(const void *a, const void *b)
{
    const struct rbi_ctl_endpoint *left = a;
    const struct rbi_ctl_endpoint *right = b;
    return strcmp(left->row.path.bytes, right->row.path.bytes);
}

int rbi_ctl_rows_endpoints(struct rbi_ctl_rows *rows,
                           struct rbi_ctl_control *control,
                           const char *prefix)
{
    int r = rbi_ctl_control_query(control, RBI_QUERY_ENDPOINTS, prefix, on_endpoint, rows);
    if (r == RBI_CTL_OK && rows->endpoint_count > 1) {
        qsort(rows->endpoints, rows->endpoint_count, sizeof *rows->endpoints, by_path);
    }
    return r;
}

int rbi_ctl_rows_links(struct rbi_ctl_rows *rows,
                       struct rbi_ctl_control *control,
                       const char *prefix)
{
    return rbi_ctl_control_query(control, RBI_QUERY_LINKS, prefix, on_link, rows);
}

void rbi_ctl_rows_deinit(struct rbi_ctl_rows *rows)
{
    for (size_t i = 0; i < rows->endpoint_count; i++) {
        free(rows->endpoints[i].page.counters);
    }
    free(rows->endpoints);
    free(rows->links);
    memset(rows, 0, sizeof *rows);
}

bool rbi_ctl_path_anonymous(const char *path)
{
    static const char prefix[] = "/anon";
    return rbi_path_has_prefix(path, strlen(path), prefix, sizeof prefix - 1);
}

const char *rbi_ctl_state_name(uint32_t state)
{
    static const char *const names[] = {"STARTING", "READY", "BUSY", "DRAINING", "CLOSED"};
    return state < RBI_ARRAY_SIZE(names) ? names[state] : "?";
}

const char *rbi_ctl_health_name(uint32_t health)
{
    static const char *const names[] = {[RBI_HEALTH_OK] = "ok",
                                        [RBI_HEALTH_OPEN] = "shielded",
                                        [RBI_HEALTH_HALF_OPEN] = "probed",
                                        [RBI_HEALTH_RAMP] = "ramp"};
    return health < RBI_ARRAY_SIZE(names) ? names[health] : "?";
}

const char *rbi_ctl_home_text(const struct rbi_wire_row_endpoint *row, char *buffer, size_t size)
{
    if (row->host.length == 0) {
        (void)snprintf(buffer, size, "%s", row->program.bytes);
    } else {
        (void)snprintf(buffer, size, "@%s%s", row->host.bytes,
                       row->stale != 0 ? " (out of sight)" : "");
    }
    return buffer;
}

void rbi_ctl_home_json(struct rbi_ctl_json *json, const struct rbi_wire_row_endpoint *row)
{
    if (row->host.length > 0) {
        rbi_ctl_json_text(json, "host", row->host.bytes);
        rbi_ctl_json_text(json, "via", row->via.bytes);
        rbi_ctl_json_u64(json, "cost", row->cost);
        rbi_ctl_json_bool(json, "stale", row->stale != 0);
        rbi_ctl_json_bool(json, "hidden", row->hidden != 0);
    }
}

void rbi_ctl_age_format(uint64_t age_ms, char *buffer, size_t size)
{
    static const struct {
        uint64_t unit_ms;
        const char *name;
    } units[] = {{UINT64_C(86400000), "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(units); i++) {
        if (age_ms >= units[i].unit_ms) {
            snprintf(buffer, size, "%" PRIu64 "%s", age_ms / units[i].unit_ms, units[i].name);
            return;
        }
    }
    snprintf(buffer, size, "%" PRIu64 "ms", age_ms);
}

void rbi_ctl_pid_format(uint32_t pid, char *buffer, size_t size)
{
    if (pid == 0) {
        (void)snprintf(buffer, size, "unknown");
    } else {
        (void)snprintf(buffer, size, "%" PRIu32, pid);
    }
}
