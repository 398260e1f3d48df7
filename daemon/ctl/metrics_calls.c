/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/metrics_calls.h"

#include "bus/alarm.h"
#include "bus/dry_run.h"
#include "bus/histogram.h"
#include "daemon/ctl/metrics.h"
#include "daemon/ctl/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER  "cluster"
#define INSTANCE "instance"
#define NS_PER_S 1e9

/* All rows of one kind: a metric is printed for all of them before the next one begins. */
struct calls {
    struct rbi_wire_row_calls *rows;
    size_t count;
    size_t room;
};

struct alarms {
    struct rbi_wire_row_alarm *rows;
    size_t count;
    size_t room;
};

/* Room for one more: doubles. @return the place; NULL: no memory */
static void *more(void **rows, size_t *count, size_t *room, size_t size)
{
    if (*count == *room) {
        const size_t wanted = *room == 0 ? 16 : *room * 2;
        void *larger = realloc(*rows, wanted * size);
        if (larger == NULL) {
            return NULL;
        }
        *rows = larger;
        *room = wanted;
    }
    return (char *)*rows + (*count)++ * size;
}

static int on_calls(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct calls *calls = context;
    (void)fd;
    if (type != RBI_WIRE_ROW_CALLS || rbi_ctl_path_anonymous(body->row_calls.path.bytes)) {
        return RBI_CTL_OK;
    }
    void *rows = calls->rows;
    struct rbi_wire_row_calls *row = more(&rows, &calls->count, &calls->room, sizeof *row);
    calls->rows = rows;
    if (row == NULL) {
        return RBI_CTL_FAILED;
    }
    *row = body->row_calls;
    return RBI_CTL_OK;
}

static int on_alarm(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct alarms *alarms = context;
    (void)fd;
    if (type != RBI_WIRE_ROW_ALARM) {
        return RBI_CTL_OK;
    }
    void *rows = alarms->rows;
    struct rbi_wire_row_alarm *row = more(&rows, &alarms->count, &alarms->room, sizeof *row);
    alarms->rows = rows;
    if (row == NULL) {
        return RBI_CTL_FAILED;
    }
    *row = body->row_alarm;
    return RBI_CTL_OK;
}

/* ---- calls --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *help;
    size_t offset;
} counts[] = {
    {"calls_ok", "Calls that were answered.", offsetof(struct rbi_wire_row_calls, ok)},
    {"calls_failed", "Calls that were answered with a failure.",
     offsetof(struct rbi_wire_row_calls, failed)},
    {"calls_lost", "Calls that were not answered.", offsetof(struct rbi_wire_row_calls, lost)},
    {"calls_slow", "Calls answered later than the policy calls slow.",
     offsetof(struct rbi_wire_row_calls, slow)},
};

static const struct {
    const char *quantile;
    size_t offset;
} quantiles[] = {
    {"0.5", offsetof(struct rbi_wire_row_calls, p50_ns)},
    {"0.9", offsetof(struct rbi_wire_row_calls, p90_ns)},
    {"0.99", offsetof(struct rbi_wire_row_calls, p99_ns)},
    {"0.999", offsetof(struct rbi_wire_row_calls, p999_ns)},
};

static uint64_t u64_at(const struct rbi_wire_row_calls *row, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)row + offset, sizeof value);
    return value;
}

static void counts_print(const char *group, const struct calls *calls)
{
    for (size_t i = 0; i < RBI_ARRAY_SIZE(counts); i++) {
        rbi_ctl_metric_begin(group, counts[i].name, counts[i].help, false);
        for (size_t k = 0; k < calls->count; k++) {
            rbi_ctl_metric_value(group, counts[i].name, false, calls->rows[k].path.bytes,
                                 u64_at(&calls->rows[k], counts[i].offset));
        }
    }
}

static void quantiles_print(const char *group, const char *help, const struct calls *calls)
{
    char label[RBI_CTL_LABEL_ROOM];
    rbi_ctl_metric_begin(group, "latency_quantile_seconds", help, true);
    for (size_t k = 0; k < calls->count; k++) {
        rbi_ctl_label_format(calls->rows[k].path.bytes, label);
        for (size_t i = 0; i < RBI_ARRAY_SIZE(quantiles); i++) {
            printf("ringbus_%s_latency_quantile_seconds{path=\"%s\",quantile=\"%s\"} %.9g\n", group,
                   label, quantiles[i].quantile,
                   (double)u64_at(&calls->rows[k], quantiles[i].offset) / NS_PER_S);
        }
    }
}

/* Buckets end at powers of two of nanoseconds, where the counts are exact. */
static void histogram_print(const struct rbi_wire_row_calls *row)
{
    char label[RBI_CTL_LABEL_ROOM];
    uint64_t below[RBI_HISTOGRAM_OCTAVES] = {0};
    uint64_t total = 0;
    rbi_ctl_label_format(row->path.bytes, label);
    if (row->below.length == sizeof below) {
        memcpy(below, row->below.bytes, sizeof below);
        total = below[RBI_HISTOGRAM_OCTAVES - 1];
    }
    for (uint32_t i = 0; i + 1 < RBI_HISTOGRAM_OCTAVES; i++) {
        printf("ringbus_cluster_latency_seconds_bucket{path=\"%s\",le=\"%.9g\"} %" PRIu64 "\n",
               label, (double)(RBI_HISTOGRAM_FIRST_NS << i) / NS_PER_S, below[i]);
    }
    printf("ringbus_cluster_latency_seconds_bucket{path=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", label,
           total);
    printf("ringbus_cluster_latency_seconds_sum{path=\"%s\"} %.9g\n", label,
           (double)row->latency_ns / NS_PER_S);
    printf("ringbus_cluster_latency_seconds_count{path=\"%s\"} %" PRIu64 "\n", label, total);
}

static int calls_print(struct rbi_ctl_control *control, const char *prefix)
{
    struct calls clusters = {.rows = NULL};
    struct calls instances = {.rows = NULL};
    int r = rbi_ctl_control_query(control, RBI_QUERY_CLUSTER_CALLS, prefix, on_calls, &clusters);
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_control_query(control, RBI_QUERY_INSTANCE_CALLS, prefix, on_calls, &instances);
    }
    if (r == RBI_CTL_OK) {
        counts_print(CLUSTER, &clusters);
        printf("# HELP ringbus_cluster_latency_seconds Time that calls took, however they ended.\n"
               "# TYPE ringbus_cluster_latency_seconds histogram\n");
        for (size_t i = 0; i < clusters.count; i++) {
            histogram_print(&clusters.rows[i]);
        }
        quantiles_print(CLUSTER, "The same, over the last 10 s; 0 without calls.", &clusters);
        counts_print(INSTANCE, &instances);
        quantiles_print(INSTANCE, "Time that its calls took, since it was first called.",
                        &instances);
    }
    free(clusters.rows);
    free(instances.rows);
    return r;
}

/* ---- alarms -------------------------------------------------------------------------------- */

static int alarms_print(struct rbi_ctl_control *control, const char *prefix)
{
    struct alarms alarms = {.rows = NULL};
    char rule[RBI_CTL_LABEL_ROOM];
    char path[RBI_CTL_LABEL_ROOM];
    const int r = rbi_ctl_control_query(control, RBI_QUERY_ALARMS, prefix, on_alarm, &alarms);
    if (r == RBI_CTL_OK) {
        rbi_ctl_metric_begin("alarm", "firing", "1 while a rule of alarms fires.", true);
    }
    for (size_t i = 0; r == RBI_CTL_OK && i < alarms.count; i++) {
        rbi_ctl_label_format(alarms.rows[i].rule.bytes, rule);
        rbi_ctl_label_format(alarms.rows[i].path.bytes, path);
        printf("ringbus_alarm_firing{rule=\"%s\",path=\"%s\"} %d\n", rule, path,
               alarms.rows[i].state >= RBI_ALARM_FIRING ? 1 : 0);
    }
    free(alarms.rows);
    return r;
}

/* ---- dry runs ------------------------------------------------------------------------------ */

static int on_dry_run(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    const struct rbi_wire_row_dry_run *row = &body->row_dry_run;
    char rule[RBI_CTL_LABEL_ROOM];
    char path[RBI_CTL_LABEL_ROOM];
    (void)context;
    (void)fd;
    if (type == RBI_WIRE_ROW_DRY_RUN) {
        rbi_ctl_label_format(row->rule.bytes, rule);
        rbi_ctl_label_format(row->path.bytes, path);
        printf("ringbus_dry_run_messages_total{path=\"%s\",kind=\"%s\",rule=\"%s\"} %" PRIu64 "\n",
               path, rbi_dry_kind_name(row->kind), rule, row->count);
    }
    return RBI_CTL_OK;
}

static int dry_runs_print(struct rbi_ctl_control *control, const char *prefix)
{
    rbi_ctl_metric_begin("dry_run", "messages",
                         "Messages that a rule would have refused, or sent to others.", false);
    return rbi_ctl_control_query(control, RBI_QUERY_DRY_RUNS, prefix, on_dry_run, NULL);
}

int rbi_ctl_metrics_calls(struct rbi_ctl_control *control, const char *prefix)
{
    int r = calls_print(control, prefix);
    if (r == RBI_CTL_OK) {
        r = alarms_print(control, prefix);
    }
    return r == RBI_CTL_OK ? dry_runs_print(control, prefix) : r;
}
