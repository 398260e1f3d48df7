/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_FIGURES_H
#define RINGBUS_DAEMON_FIGURES_H
/*
 * daemon/figures.h - how the calls of all callers of this host ended and how long they took, for
 * each instance and each cluster that was called: what ringbusctl shows, and alarms are about.
 * Taken with what shields are judged by (health.h), from the same memory of the callers.
 */
#include "bus/figures.h"
#include "bus/wire.h"
#include "daemon/outcome.h"

/** Of a cluster that somebody has called. */
struct rbi_cluster_figures {
    struct rbi_figures all; /* since this daemon started */
    struct rbi_figures_window recent;
};

/** Of one life of an instance that somebody has called. */
struct rbi_endpoint_figures {
    struct rbi_figures all;
};

/**
 * Takes what has come for one instance. Where memory is short nothing is counted.
 * @param cluster   of a cluster; made at its first call; freed by free()
 * @param instance  the same of the instance
 */
void rbi_figures_take(struct rbi_outcome_reader *reader,
                      const struct rbi_outcome_news *news,
                      uint64_t now_ns,
                      struct rbi_cluster_figures **cluster,
                      struct rbi_endpoint_figures **instance);

/** Fills a row, but for its path. @param figures  NULL: nothing was counted */
void rbi_figures_cluster_row(const struct rbi_cluster_figures *figures,
                             uint64_t now_ns,
                             struct rbi_wire_row_calls *row);
void rbi_figures_instance_row(const struct rbi_endpoint_figures *figures,
                              struct rbi_wire_row_calls *row);

#endif
