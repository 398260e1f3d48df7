/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_QUERY_ROWS_H
#define RINGBUS_DAEMON_QUERY_ROWS_H
/* daemon/query_rows.h - what the files that answer QUERY share: one row at a time. */
#include "daemon/query.h"

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
/** The next ROW_HOST, ROW_WAY: query_hosts.c */
enum rbi_row_result rbi_query_next_host(struct rbi_peer *peer);
enum rbi_row_result rbi_query_next_way(struct rbi_peer *peer);

#endif
