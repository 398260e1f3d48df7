/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_DEMAND_H
#define RINGBUS_DAEMON_DEMAND_H
/*
 * daemon/demand.h - from where the clusters are called (bus/demand.h): fed by what the callers have
 * counted, at each sweep of daemon/health.h, and published with the instances of a cluster. Only
 * where it can matter: instances lie in several places, and the policy relieves one of them.
 */
#include "bus/demand.h"

struct rbi_cluster;
struct rbi_cluster_health;
struct rbi_directory_instance;
struct rbi_endpoint;

/** So many calls of @p caller to the cluster have ended since the last sweep. */
void rbi_demand_take(struct rbi_cluster_health *health,
                     const struct rbi_endpoint *caller,
                     uint64_t calls);
/** The sweep is over. @return whether the cluster is to be published */
bool rbi_demand_judge(struct rbi_cluster_health *health, uint64_t now_ns);
/** What others are to see of it, of an instance whose place is set. */
void rbi_demand_fill(const struct rbi_cluster *cluster, struct rbi_directory_instance *out);

#endif
