/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_SIDE_H
#define RINGBUS_DAEMON_SIDE_H
/* daemon/side.h - checks an end of a link before it is handed to the other end. */
#include "daemon/quota.h"
#include "daemon/request.h"

/**
 * Checks the size of a side and charges its owner.
 * @return whether that was done; if not the client has been told and nothing is charged
 */
RBI_MUST_CHECK bool rbi_side_charge(const struct rbi_request *request,
                                    uint64_t side_bytes,
                                    struct rbi_charge *charge);
/**
 * Checks size, seals and kind of a side and charges its owner.
 * @param fd  borrowed
 * @return whether it may pass; if not the client has been told and nothing is charged
 */
RBI_MUST_CHECK bool rbi_side_admit(const struct rbi_request *request,
                                   int fd,
                                   uint64_t side_bytes,
                                   struct rbi_charge *charge);

#endif
