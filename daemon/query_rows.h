/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_QUERY_ROWS_H
#define RINGBUS_DAEMON_QUERY_ROWS_H
/* daemon/query_rows.h - what the files that answer QUERY share: one row at a time. */
#include "daemon/query.h"

struct rbi_daemon;

/** What became of the next row. */
enum rbi_row_result {
    RBI_ROW_SENT = 0,
    RBI_ROW_WAIT = 1, /* the asker does not read: the same again when it does */
    RBI_ROW_NONE = 2, /* there are no more */
};

/** Sends a row of the answer that is under way, if it can go at once. */
enum rbi_row_result rbi_query_row(struct rbi_peer *peer,
                                  enum rbi_wire_type type,
                                  const void *row,
                                  const int *fds,
                                  unsigned fd_count);
/** Rows of the status that are about the bridge: query_hosts.c */
void rbi_query_bridge_host(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);
void rbi_query_bridge_pid(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);
void rbi_query_bridge_ms(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);
void rbi_query_bridge_starts(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);
void rbi_query_bridge_hosts(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);
void rbi_query_bridge_ways(struct rbi_daemon *daemon, struct rbi_wire_row_status *row);
/** The next ROW_HOST, ROW_WAY: query_hosts.c */
enum rbi_row_result rbi_query_next_host(struct rbi_peer *peer);
enum rbi_row_result rbi_query_next_way(struct rbi_peer *peer);

#endif
