/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_RELAYED_H
#define RINGBUS_LIBCLIENT_RELAYED_H
/*
 * libclient/relayed.h - links to instances of other hosts: the lanes lead to a proxy of the peer in
 * the bridge of this host, and on from there. Part of internal.h: include that.
 *
 * What is else than on a link within the host:
 *   - the bridge says when the way is cut, and when it is there again (HOLD); the peer is suspect
 *     meanwhile, and not judged (bus/link.h)
 *   - what ends the link need not be the end of the peer: RBI_REASON_UNREACHABLE
 *   - what the bridge had sent on may have been seen, and nobody here knows (undelivered.c); it is
 *     sent again to the same life (send_on.h), which knows (seen.h), or that is told of it (gap.h)
 *
 * A position of what the peer sent is that in its own lane. Ours has the same records, and HOLD
 * and DISCONNECT of the bridge.
 */
#include "bus/record.h"
#include "libclient/end.h"

struct ringbus;

/** A HOLD record came. On another link it is a lie. */
void rbi_relayed_hold(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);

/** The other side of the bell is closed, and nothing else is known. */
static inline enum rbi_reason rbi_relayed_lost(const struct rbi_end *end)
{
    return end->relayed ? RBI_REASON_UNREACHABLE : RBI_REASON_CRASHED;
}

/**
 * Why the daemon says that a link has ended: of a proxy that crashed, it is the bridge which did.
 * The crash of the peer itself is told in the lane.
 */
static inline enum rbi_reason rbi_relayed_told(const struct rbi_end *end, enum rbi_reason reason)
{
    return end->relayed && reason == RBI_REASON_CRASHED ? RBI_REASON_UNREACHABLE : reason;
}

/** The life that an ended link led to is over, as it, or its host, said. */
static inline bool rbi_relayed_over(const struct rbi_end *end)
{
    return end->leave_reason == RBI_REASON_LEFT || end->leave_reason == RBI_REASON_CRASHED ||
           end->leave_reason == RBI_REASON_REPLACED;
}

/** A link is READY: what earlier ones to the peer left comes before anything new. */
void rbi_relayed_up(struct ringbus *bus, struct rbi_end *end);
/** Lets new messages pass where nothing is left that comes first. In poll only. */
void rbi_relayed_step(struct ringbus *bus);
/** A link is over, and what its peer had not consumed is dealt with. */
void rbi_relayed_end(struct ringbus *bus, struct rbi_end *end);
/** A message must not pass what comes first: RINGBUS_E_FULL (noted). */
RBI_COLD int rbi_relayed_refuse(struct ringbus *bus, const struct rbi_end *end);

/** How far we have read of what the peer sent, in its own count. */
static inline uint64_t rbi_relayed_read_pos(const struct rbi_end *end)
{
    return end->rx.pos - end->inserted_bytes;
}

#endif
