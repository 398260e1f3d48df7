/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_BOUND_H
#define RINGBUS_LIBCLIENT_BOUND_H
/*
 * libclient/bound.h - keys whose owner has much more than its share to do go to the next rank
 * (balance.hash_bound, bus/balance_bound.h).
 */
#include "bus/balance_bound.h"

struct rbi_choice;
struct rbi_end;
struct ringbus;

/** Loads of the members of a table, by their place in it. */
struct rbi_bound {
    unsigned room;
    bool picked; /* since the last tick */
    uint32_t percent;
    struct rbi_least_member *members;
    uint64_t *limits;
    uint64_t *from; /* by member: what is unread was written to its lane after that */
    uint64_t sent;  /* since the limits were computed */
    uint64_t again; /* how many, until that is due */
};

/**
 * How many of @p count messages that were written to a lane behind @p from are not handled yet.
 * @param from  advanced to where they begin now
 */
uint32_t rbi_bound_left(const struct rbi_end *end, uint32_t count, uint64_t *from);
void rbi_bound_free(struct rbi_bound *bound);
/** For the table that was made just now. @return 0; -ENOMEM */
int rbi_bound_make(struct rbi_choice *choice, uint32_t percent);
/** Looks at the loads anew, if a pick has gone by them. With each tick. */
void rbi_bound_look(struct rbi_choice *choice);
/**
 * Whom a key goes to now: its owner, or the next that has less to do than it may have.
 * @param away  set: not to the owner, though that can be sent to
 * @return NULL: the owner cannot be sent to
 */
struct rbi_end *rbi_bound_end(struct rbi_choice *choice, uint64_t key, bool *away);

#endif
