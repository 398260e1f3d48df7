/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REACH_H
#define RINGBUS_LIBCLIENT_REACH_H
/*
 * libclient/reach.h - whom a broadcast (RINGBUS_ALL) reaches: who is linked and takes messages,
 * past all stages of the router chain but the first, which keeps out what the operator or the
 * instance itself has taken out of service. Flags of the sender narrow it. Part of internal.h:
 * include that.
 *
 * What the snapshot says is looked up once for each of its epochs, with the chain; a broadcast
 * without flags walks a list.
 */
#include "bus/route.h"

struct rbi_cluster;
struct rbi_member;
struct ringbus;

#define RBI_REACH_OPEN    1U /* ready, not drained, isolated or staged, weight above 0 */
#define RBI_REACH_HEALTHY 2U /* not shielded, also in panic */
#define RBI_REACH_SET     4U /* a strict set stage leaves it for us */

/** Flags of a sender that narrow or widen a broadcast. */
#define RBI_REACH_FLAGS (RINGBUS_HEALTHY_ONLY | RINGBUS_SAME_SET | RINGBUS_WITH_SELF)

/**
 * Notes of each member what the snapshot says.
 * @param own      the cluster's instances, without those of imports
 * @param entries  room for all of them; overwritten
 */
void rbi_reach_look(const struct ringbus *bus,
                    struct rbi_cluster *cluster,
                    const struct rbi_route_cluster *own,
                    struct rbi_route_entry *entries);
/** Lists whom a broadcast without flags reaches. @return false: no memory, and nobody is listed */
bool rbi_reach_collect(struct rbi_cluster *cluster);
/**
 * Whether a broadcast with these flags goes to a member. Cheap; nothing is asked anew.
 * @retval 0
 * @retval RINGBUS_E_NOT_READY, _DENIED, _DRAINING  it is not linked, or takes nothing now
 * @retval RINGBUS_E_SHIELDED  and the flags ask for who is healthy
 * @retval RINGBUS_E_NO_MATCH  isolated, staged, of weight 0, or outside of the set asked for
 */
int rbi_reach_verdict(const struct rbi_member *member, unsigned flags);

#endif
