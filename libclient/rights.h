/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_RIGHTS_H
#define RINGBUS_LIBCLIENT_RIGHTS_H
/*
 * libclient/rights.h - what ringbusd says of rights: a link that may not be any more, rules that
 * have changed, a name that another has taken over. Part of internal.h: include that.
 */
#include "bus/wire.h"
#include "libclient/cluster.h"
#include "libclient/end.h"

struct ringbus;

/** How requests and messages that end with a link end. */
static inline int rbi_end_error(const struct rbi_end *end)
{
    return end->leave_reason == RBI_REASON_DENIED ? RINGBUS_E_DENIED : RINGBUS_E_PEER_GONE;
}

/** Whether an instance is out of reach for want of a right. */
static inline bool rbi_member_is_denied(const struct rbi_member *member)
{
    return member->denied && (member->end == NULL || !member->end->usable);
}

/** The daemon has ended a link: the right to it is gone. Nothing more is read from it. */
void rbi_rights_revoked(struct ringbus *bus, struct rbi_end *end, const char *text);
/** The rules have changed: what was DENIED is asked for again, at once. */
void rbi_rights_changed(struct ringbus *bus);
/** Another has our name: all links end here and now, and the handle is as closed. */
void rbi_rights_replaced(struct ringbus *bus, const struct rbi_wire_replaced *body);

#endif
