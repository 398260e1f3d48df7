/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_DOOR_H
#define RINGBUS_DAEMON_BRIDGE_DOOR_H
/*
 * daemon/bridge/door.h - a listening socket for other hosts. Who comes in has to show who it is
 * within the time of the handshake; at most RBI_DOOR_HALL_MAX do so at a time, and beyond
 * that whoever has tried for the longest has to go.
 */
#include "daemon/bridge/conn.h"

struct rbi_door;

#define RBI_DOOR_HALL_MAX 64U

/**
 * Listens.
 * @param terms    kept by the caller
 * @param address  "10.0.0.2:7740", "[::]:7740"; no name. Port 0: any, see rbi_door_address()
 * @param ops      of the connections, with @p context, until rbi_conn_own()
 * @retval -EINVAL      no such address can be
 * @retval -EADDRINUSE  somebody listens there: another bridge, or one that just ends
 * @retval -errno       the kernel's refusal
 */
RBI_MUST_CHECK int rbi_door_new(struct rbi_conn_terms *terms,
                                const char *address,
                                const struct rbi_conn_ops *ops,
                                void *context,
                                struct rbi_door **out);
/** Closes it, and whoever has not yet shown who it is; others stay. @return NULL. Accepts NULL. */
struct rbi_door *rbi_door_free(struct rbi_door *door);
/** Where it listens, with the port that it has got. */
const char *rbi_door_address(const struct rbi_door *door);

#endif
