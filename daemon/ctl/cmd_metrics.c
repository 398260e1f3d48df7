/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics: the figures of the daemon and of the instances that there are, for a monitoring system.
 * How many series there are is bounded: a fixed number, and one of each kind for each instance that
 * is registered now. No label holds what is new with each start: process, incarnation, address;
 * and endpoints without a path of their own, whose path holds a process, have no series.
 */
#include "bus/directory.h"
#include "daemon/ctl/metrics.h"
#include "daemon/ctl/metrics_calls.h"
#include "daemon/ctl/metrics_hosts.h"
#include "daemon/ctl/rows.h"
#include "shm/layout.h"

#include <string.h>

#define DAEMON   "daemon"
#define INSTANCE "instance"

struct daemon_info {
    char version[RBI_CTL_LABEL_ROOM];
    char loop[RBI_CTL_LABEL_ROOM];
};

static int on_status(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct daemon_info *info = context;
    const struct rbi_wire_row_status *row = &body->row_status;
    const char *name = row->name.bytes;
    (void)fd;
    if (type != RBI_WIRE_ROW_STATUS) {
        return RBI_CTL_OK;
    }
    if (strcmp(name, "version") == 0) {
        rbi_ctl_label_format(row->text.bytes, info->version);
    } else if (strcmp(name, "loop") == 0) {
        rbi_ctl_label_format(row->text.bytes, info->loop);
    }
    /* An incarnation is an id, and so is the number of a process. A name that is none of ours
     * would break the format. */
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789");
    if (row->text.length == 0 && length > 0 && name[length] == '\0' &&
        strcmp(name, "incarnation") != 0 && strcmp(name, "bridge_pid") != 0) {
        const bool gauge = rbi_ctl_figure_is_gauge(name);
        rbi_ctl_metric_begin(DAEMON, name, "As ringbusctl status has it.", gauge);
        rbi_ctl_metric_value(DAEMON, name, gauge, NULL, row->value);
    }
    return RBI_CTL_OK;
}

static int daemon_print(struct rbi_ctl_control *control)
{
    struct daemon_info info = {.version = "", .loop = ""};
    const int r = rbi_ctl_control_query(control, RBI_QUERY_STATUS, "", on_status, &info);
    if (r == RBI_CTL_OK) {
        rbi_ctl_metric_begin(DAEMON, "info", "Always 1.", true);
        printf("ringbus_daemon_info{version=\"%s\",loop=\"%s\"} 1\n", info.version, info.loop);
    }
    return r;
}

/* ---- instances ------------------------------------------------------------------------------ */

enum figure { READY, SHIELDED, PANIC, WEIGHT, LINKS, AGE };

static const struct {
    const char *name;
    const char *help;
} figures[] = {
    [READY] = {"ready", "1 when it is dispatched to."},
    [SHIELDED] = {"shielded", "1 when its calls failed too often, until it is well again."},
    [PANIC] = {"panic", "1 while the shields of its cluster are ignored."},
    [WEIGHT] = {"weight", "Its share of dispatch."},
    [LINKS] = {"links", "Its links."},
    [AGE] = {"age_ms", "Time since it was registered."},
};

static uint64_t figure_of(const struct rbi_wire_row_endpoint *row, enum figure figure)
{
    switch (figure) {
    case READY:
        return row->state == RBI_ENDPOINT_READY;
    case SHIELDED:
        return row->health == RBI_HEALTH_OPEN || row->health == RBI_HEALTH_HALF_OPEN;
    case PANIC:
        return row->panic;
    case WEIGHT:
        return row->weight;
    case LINKS:
        return row->links;
    case AGE:
        break;
    }
    return row->age_ms;
}

static bool has_series(const struct rbi_ctl_endpoint *endpoint)
{
    /* One that is hidden may have the path of one that is not. */
    return !rbi_ctl_path_anonymous(endpoint->row.path.bytes) && endpoint->row.hidden == 0;
}

static void figures_print(const struct rbi_ctl_rows *rows)
{
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(figures); i++) {
        rbi_ctl_metric_begin(INSTANCE, figures[i].name, figures[i].help, true);
        for (size_t k = 0; k < rows->endpoint_count; k++) {
            const struct rbi_wire_row_endpoint *row = &rows->endpoints[k].row;
            if (has_series(&rows->endpoints[k])) {
                rbi_ctl_metric_value(INSTANCE, figures[i].name, true, row->path.bytes,
                                     figure_of(row, (enum figure)i));
            }
        }
    }
}

/* What the instances count in their own memory: their words, as ringbusctl show has them. */
static void counters_print(const struct rbi_ctl_rows *rows)
{
    static const struct {
        const char *name;
        const char *help;
    } counters[] = {
#define COUNTER(name, text) {#name, text},
        RBI_COUNTERS(COUNTER)
#undef COUNTER
    };
    for (unsigned i = 0; i < RBI_COUNTER_COUNT; i++) {
        rbi_ctl_metric_begin(INSTANCE, counters[i].name, counters[i].help, false);
        for (size_t k = 0; k < rows->endpoint_count; k++) {
            const struct rbi_ctl_endpoint *endpoint = &rows->endpoints[k];
            if (has_series(endpoint) && endpoint->page.counters != NULL) {
                rbi_ctl_metric_value(INSTANCE, counters[i].name, false, endpoint->row.path.bytes,
                                     endpoint->page.counters[i]);
            }
        }
    }
}

int rbi_ctl_metrics(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct rbi_ctl_rows rows = {.want_pages = true};
    const char *prefix = NULL;
    int r = rbi_ctl_control_init_below(&control, args, &prefix);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = daemon_print(&control);
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_rows_endpoints(&rows, &control, prefix);
    }
    if (r == RBI_CTL_OK) {
        figures_print(&rows);
        counters_print(&rows);
        r = rbi_ctl_metrics_calls(&control, prefix);
    }
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_metrics_hosts(&control);
    }
    rbi_ctl_rows_deinit(&rows);
    rbi_ctl_control_deinit(&control);
    return r;
}
