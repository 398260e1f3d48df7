/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_RECEIVE_H
#define RINGBUS_LIBCLIENT_RECEIVE_H
/* libclient/receive.h - messages that take more than a look (receive.c). */
#include "bus/record.h"
#include "shm/base.h"

struct rbi_end;
struct rbi_view;
struct ringbus;

/**
 * What came cannot be read before more is mapped, and that failed with @p r. Who lacks memory
 * now may have it soon, and the message waits where it is; but not for ever.
 * @return RBI_LANE_EMPTY; -EPROTO
 */
RBI_COLD int rbi_receive_starve(struct ringbus *bus, struct rbi_end *end, int r);
/**
 * A message on a link that is not flowing: it is the first, or nobody may send one. 0; -EPROTO;
 * RBI_LANE_EMPTY: none of it is for us
 */
RBI_COLD int rbi_receive_first(const struct ringbus *bus, struct rbi_end *end);
/** A reference that cannot be right: it may be the first one. 0; RBI_LANE_EMPTY; -EPROTO */
RBI_COLD int rbi_receive_anew(struct ringbus *bus,
                              struct rbi_end *end,
                              const struct rbi_record *record,
                              struct rbi_view *view);

#define RBI_RECEIVE_PASSES 1
/**
 * Of a link whose messages are looked at, each. RBI_RECEIVE_PASSES; 0: it was refused;
 * RBI_LANE_EMPTY: not now; -EPROTO
 */
__attribute__((noinline)) int
rbi_receive_check(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);

#endif
