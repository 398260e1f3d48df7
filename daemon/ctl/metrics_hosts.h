/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_METRICS_HOSTS_H
#define RINGBUS_DAEMON_CTL_METRICS_HOSTS_H
/* daemon/ctl/metrics_hosts.h - what metrics says of other hosts, with a label "host". */
#include "daemon/ctl/control.h"

/** Prints them; nothing without other hosts. Complains itself. @return exit code */
RBI_MUST_CHECK int rbi_ctl_metrics_hosts(struct rbi_ctl_control *control);

#endif
