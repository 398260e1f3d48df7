/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_HEALTH_H
#define RINGBUS_DAEMON_HEALTH_H
/*
 * daemon/health.h - how well the instances answer, judged for all processes of the host at once:
 * every 250 ms what the callers have counted is summed.
 */
#include "daemon/list.h"
#include "daemon/loop.h"
#include "daemon/outcome.h"

struct rbi_daemon;
struct rbi_endpoint;

struct rbi_health_desk {
    struct rbi_list readers; /* struct rbi_outcome_reader of each endpoint that has told of one */
    struct rbi_loop_timer timer;
};

void rbi_health_init(struct rbi_health_desk *health);
/** An endpoint has told where it counts, for the first time: sweeps go on from now. */
void rbi_health_add_reader(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint);

#endif
