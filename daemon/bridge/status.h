/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_STATUS_H
#define RINGBUS_DAEMON_BRIDGE_STATUS_H
/* daemon/bridge/status.h - what the daemon, and so ringbusctl, hears of hosts: once a second. */
struct rbi_bridge;

void rbi_status_start(struct rbi_bridge *bridge);
void rbi_status_stop(struct rbi_bridge *bridge);
/** All hosts, now. */
void rbi_status_tell(struct rbi_bridge *bridge);

#endif
