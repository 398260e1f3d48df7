/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_RIGHTS_H
#define RINGBUS_LIBCLIENT_RIGHTS_H
/*
 * libclient/rights.h - what ringbusd says of rights: a link that may not be any more, rules that
 * have changed, a name that another has taken over.
 */
#include "bus/wire.h"
#include "libclient/cluster.h"
#include "libclient/end.h"

#include <ringbus/ringbus.h>

struct ringbus;

/** How requests and messages that end with a link end. */
static inline int rbi_end_error(const struct rbi_end *end)
{
    return end->leave_reason == RBI_REASON_DENIED        ? RINGBUS_E_DENIED
           : end->leave_reason == RBI_REASON_UNREACHABLE ? RINGBUS_E_UNREACHABLE
                                                         : RINGBUS_E_PEER_GONE;
}

/** Whether an instance is out of reach for want of a right. */
static inline bool rbi_member_is_denied(const struct rbi_member *member)
{
    return member->denied && (member->end == NULL || !member->end->usable);
}

/** What the daemon says denies a member. Untrusted text, cut off. */
void rbi_rights_denied(struct rbi_member *member, const char *text);
/** What denies an instance, or with 0 any of the cluster; "" is not known, or nothing. Lent. */
const char *rbi_rights_why(const struct rbi_cluster *cluster, int32_t instance);
/** The daemon has ended a link: the right to it is gone. Nothing more is read from it. */
void rbi_rights_revoked(struct ringbus *bus, struct rbi_end *end, const char *text);
/** The rules have changed: what was DENIED is asked for again, at once. */
void rbi_rights_changed(struct ringbus *bus);
/** A method that needs no right: that of answers. */
#define RBI_METHOD_ANSWER UINT64_MAX

/**
 * Which methods may come on a link, and be sent; NULL: as before. What cannot be read is none.
 * @retval 0; RINGBUS_E_NO_MEMORY (noted)
 */
int rbi_rights_methods(struct ringbus *bus,
                       struct rbi_end *end,
                       const struct rbi_text *get,
                       const struct rbi_text *send);
void rbi_rights_on_methods(struct ringbus *bus, const struct rbi_wire_methods *body);
/**
 * Whether a peer may send what has come from it. Untrusted record. Looks at what the daemon has
 * said before it denies: the end may be leaving then.
 */
bool rbi_rights_may_come(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);
/** Whether an instance is out of reach for messages of a method, for want of a right. */
bool rbi_rights_bars(const struct rbi_member *member, uint32_t method);
/**
 * Whether instances, of the cluster or of its imports, differ in the methods that they bar. Where
 * all bar the same there is nobody to be chosen rather, and each send finds out by itself.
 */
bool rbi_rights_barring(const struct rbi_cluster *cluster);
/** Which of those bar a method: the same number for the same ones; 0: none. Cost: their number */
uint64_t rbi_rights_barred(const struct rbi_cluster *cluster, uint32_t method);
/** Whether a message may be sent on an end that is hindered. 0; BUSY; DENIED (noted) */
int rbi_send_hindered(struct ringbus *bus, struct rbi_end *end, uint64_t method);
/** Another has our name: all links end here and now, and the handle is as closed. */
void rbi_rights_replaced(struct ringbus *bus, const struct rbi_wire_replaced *body);

#endif
