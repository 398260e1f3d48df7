/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_INTEREST_H
#define RINGBUS_DAEMON_INTEREST_H
/*
 * daemon/interest.h - what WATCH and TARGET have in common: OK, then an EVENT for each
 * instance that is there (initial = 1), then changes as they come.
 */
#include "daemon/request.h"
#include "daemon/watch.h"

void rbi_interest_add(const struct rbi_request *request,
                      const struct rbi_text *path,
                      enum rbi_watch_kind kind);
void rbi_interest_remove(const struct rbi_request *request,
                         const struct rbi_text *path,
                         enum rbi_watch_kind kind);

#endif
