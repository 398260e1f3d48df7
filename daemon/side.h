/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_SIDE_H
#define RINGBUS_DAEMON_SIDE_H
/* daemon/side.h - checks an end of a link before it is handed to the other end. */
#include "daemon/quota.h"
#include "daemon/request.h"

/**
 * Checks the size of a side and charges its owner, who offers it.
 * @param actor  uid of the endpoint that asked for the link
 * @param why    set when it is refused: one sentence, for the other end
 * @return 0: it may pass; else the code of the refusal: the client has been told, and nothing
 *         is charged
 */
RBI_MUST_CHECK int rbi_side_charge(const struct rbi_request *request,
                                   uint32_t actor,
                                   uint64_t side_bytes,
                                   struct rbi_charge *charge,
                                   struct rbi_text *why);
/**
 * The same, and checks seals and kind.
 * @param fd  borrowed
 */
RBI_MUST_CHECK int rbi_side_admit(const struct rbi_request *request,
                                  uint32_t actor,
                                  int fd,
                                  uint64_t side_bytes,
                                  struct rbi_charge *charge,
                                  struct rbi_text *why);

#endif
