/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_WAIT_H
#define RINGBUS_LIBCLIENT_WAIT_H
/* libclient/wait.h - whether there is anything to do, before sleeping. */
#include "libclient/end.h"

struct ringbus;

bool rbi_wait_lane_ready(struct ringbus *bus);
/** Tells the senders of the first @p count ends what we have read. */
void rbi_wait_release(struct ringbus *bus, unsigned count);
/** Whether something is in one of the lanes that a poll would look at. */
bool rbi_wait_turn_ready(struct ringbus *bus);
/** Whether something is in a lane. */
bool rbi_wait_end_ready(const struct rbi_end *end);
/** And may be read now. */
static inline bool rbi_wait_end_due(const struct rbi_end *end)
{
    return !end->held && rbi_wait_end_ready(end);
}
/** Before an external loop waits: announce sleep and look once more. */
void rbi_wait_prepare(struct ringbus *bus);

#endif
