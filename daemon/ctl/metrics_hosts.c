/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of other hosts, for metrics: a series for each that is known. */
#include "daemon/ctl/metrics_hosts.h"

#include "daemon/ctl/metrics.h"

#include <inttypes.h>
#include <stdlib.h>

#define HOST "host"

/** As many as a daemon knows. */
#define HOSTS_MAX 1024U

struct hosts {
    struct rbi_wire_row_host *rows; /* HOSTS_MAX */
    size_t count;
};

static uint64_t is_up(const struct rbi_wire_row_host *row)
{
    return row->state == RBI_HOST_UP || row->state == RBI_HOST_REACHABLE;
}

#define FIGURE_OF(name)                                                                            \
    static uint64_t name##_of(const struct rbi_wire_row_host *row)                                 \
    {                                                                                              \
        return row->name;                                                                          \
    }
FIGURE_OF(cost)
FIGURE_OF(rtt_ns)
FIGURE_OF(instances)
FIGURE_OF(unconfirmed)
FIGURE_OF(streams)
FIGURE_OF(held)
FIGURE_OF(queue_bytes)
FIGURE_OF(connects)
FIGURE_OF(sent_frames)
FIGURE_OF(sent_bytes)
FIGURE_OF(received_frames)
FIGURE_OF(received_bytes)
FIGURE_OF(resends)
FIGURE_OF(duplicates)
FIGURE_OF(forwarded)
#undef FIGURE_OF

static const struct {
    const char *name;
    const char *help;
    bool gauge;
    uint64_t (*of)(const struct rbi_wire_row_host *row);
} figures[] = {
    {"up", "1 while it can be reached.", true, is_up},
    {"cost", "Of the way there; 0: none.", true, cost_of},
    {"rtt_ns", "Round trip between the bridges; 0: unknown.", true, rtt_ns_of},
    {"instances", "Instances of it that are seen here.", true, instances_of},
    {"unconfirmed", "Of them: out of sight, and not yet known to be gone.", true, unconfirmed_of},
    {"streams", "Links to and from it.", true, streams_of},
    {"held", "Of them: without a way just now.", true, held_of},
    {"queue_bytes", "Bytes that wait to be sent.", true, queue_bytes_of},
    {"connects", "Connections that came up.", false, connects_of},
    {"sent_frames", "Frames sent.", false, sent_frames_of},
    {"sent_bytes", "Bytes sent.", false, sent_bytes_of},
    {"received_frames", "Frames received.", false, received_frames_of},
    {"received_bytes", "Bytes received.", false, received_bytes_of},
    {"resends", "Records sent again.", false, resends_of},
    {"duplicates", "Records that came again, and were left out.", false, duplicates_of},
    {"forwarded", "Frames to it that were another host's.", false, forwarded_of},
};

static int on_row(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct hosts *hosts = context;
    (void)fd;
    if (type == RBI_WIRE_ROW_HOST && hosts->count < HOSTS_MAX) {
        hosts->rows[hosts->count++] = body->row_host;
    }
    return RBI_CTL_OK;
}

int rbi_ctl_metrics_hosts(struct rbi_ctl_control *control)
{
    struct hosts hosts = {.rows = calloc(HOSTS_MAX, sizeof *hosts.rows)};
    if (!hosts.rows) {
        return RBI_CTL_FAILED;
    }
    const int r = rbi_ctl_control_query(control, RBI_QUERY_HOSTS, "", on_row, &hosts);
    for (size_t i = 0; r == RBI_CTL_OK && hosts.count > 0 && i < RBI_ARRAY_SIZE(figures); i++) {
        rbi_ctl_metric_begin(HOST, figures[i].name, figures[i].help, figures[i].gauge);
        for (size_t k = 0; k < hosts.count; k++) {
            char name[RBI_CTL_LABEL_ROOM];
            rbi_ctl_label_format(hosts.rows[k].name.bytes, name);
            printf("ringbus_" HOST "_%s%s{host=\"%s\"} %" PRIu64 "\n", figures[i].name,
                   figures[i].gauge ? "" : "_total", name, figures[i].of(&hosts.rows[k]));
        }
    }
    free(hosts.rows);
    return r;
}
