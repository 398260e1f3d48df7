/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/figures.h"

#include <stdlib.h>

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
