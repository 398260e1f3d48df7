/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_METRICS_CALLS_H
#define RINGBUS_DAEMON_CTL_METRICS_CALLS_H
/*
 * daemon/ctl/metrics_calls.h - how calls ended and how long they took, as the daemon has summed it
 * over the callers of the host, and what fires: in the text format of Prometheus.
 */
#include "daemon/ctl/control.h"

/** Prints all series of clusters, instances and alarms at or below a prefix. @return exit code */
RBI_MUST_CHECK int rbi_ctl_metrics_calls(struct rbi_ctl_control *control, const char *prefix);

#endif
