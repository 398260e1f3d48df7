/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_HEALTH_H
#define RINGBUS_LIBCLIENT_HEALTH_H
/*
 * libclient/health.h - what the daemon found out about instances that we target, as events.
 */
struct rbi_cluster;
struct rbi_wire_event;
struct ringbus;

/** What an EVENT says of the health of an instance that we target, and of its cluster's. */
void rbi_health_event(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct rbi_wire_event *event);

#endif
