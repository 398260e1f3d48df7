/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/figures.h"

#include <stdlib.h>
#include <string.h>

void rbi_figures_take(struct rbi_outcome_reader *reader,
                      const struct rbi_outcome_news *news,
                      uint64_t now_ns,
                      struct rbi_cluster_figures **cluster,
                      struct rbi_endpoint_figures **instance)
{
    struct rbi_figures_growth growth = {.ok = news->ok,
                                        .failed = news->failed,
                                        .lost = news->lost,
                                        .slow = news->slow,
                                        .latency_ns = news->latency_ns};
    if (!*cluster) {
        *cluster = calloc(1, sizeof(**cluster));
    }
    if (!*instance) {
        *instance = calloc(1, sizeof(**instance));
    }
    if (!*cluster || !*instance || rbi_outcome_latency(reader, news->slot, &growth.latency) < 0) {
        return;
    }
    rbi_figures_add(&(*cluster)->all, &growth);
    rbi_figures_window_add(&(*cluster)->recent, now_ns, &growth);
    rbi_figures_add(&(*instance)->all, &growth);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void row_counts(const struct rbi_figures *all, struct rbi_wire_row_calls *row)
{
    row->ok = all->ok;
    row->failed = all->failed;
    row->lost = all->lost;
    row->slow = all->slow;
    row->latency_ns = all->latency_ns;
}

static void row_quantiles(const struct rbi_histogram *latency, struct rbi_wire_row_calls *row)
{
    row->p50_ns = rbi_histogram_quantile_ns(latency, 500000);
    row->p90_ns = rbi_histogram_quantile_ns(latency, 900000);
    row->p99_ns = rbi_histogram_quantile_ns(latency, 990000);
    row->p999_ns = rbi_histogram_quantile_ns(latency, 999000);
}

void rbi_figures_cluster_row(const struct rbi_cluster_figures *figures,
                             uint64_t now_ns,
                             struct rbi_wire_row_calls *row)
{
    struct rbi_figures recent;
    uint64_t below[RBI_HISTOGRAM_OCTAVES];
    _Static_assert(sizeof(below) <= sizeof(row->below.bytes), "a row holds all");
    if (!figures) {
        return;
    }
    row_counts(&figures->all, row);
    row->recent_ms = rbi_figures_window_sum(&figures->recent, now_ns, &recent) / 1000000;
    row->recent_calls = rbi_figures_calls(&recent);
    row->recent_bad = row->recent_calls - recent.ok;
    row_quantiles(&recent.latency, row);
    for (uint32_t i = 0; i < RBI_HISTOGRAM_OCTAVES; i++) {
        below[i] = rbi_histogram_below(&figures->all.latency, i);
    }
    row->below.length = sizeof(below);
    memcpy(row->below.bytes, below, sizeof(below));
}

void rbi_figures_instance_row(const struct rbi_endpoint_figures *figures,
                              struct rbi_wire_row_calls *row)
{
    row_counts(&figures->all, row);
    row_quantiles(&figures->all.latency, row);
}
