/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_SHARE_H
#define RINGBUS_DAEMON_SHARE_H
/*
 * daemon/share.h - what other users take of something that belongs to one: the places for
 * links of an endpoint, the bytes of a user whose servers answer clients of others. An
 * actor, a user id, may hold (remaining + own) / (actors + 1) of it, rounded up: the first
 * gets half, and whoever comes later still finds something. The owner itself is no actor:
 * it may use up what is its own.
 */
#include "daemon/list.h"

#include <stdint.h>

/** What one actor holds. */
struct rbi_share {
    struct rbi_list in_shares;
    struct rbi_shares *shares;
    uint32_t actor;
    uint64_t used;
};

struct rbi_shares {
    struct rbi_list all; /* struct rbi_share */
    uint32_t count;
};

void rbi_shares_init(struct rbi_shares *shares);
/** Nobody holds anything any more. */
bool rbi_shares_empty(const struct rbi_shares *shares);
/** What an actor holds. */
uint64_t rbi_shares_used(const struct rbi_shares *shares, uint32_t actor);
/**
 * What an actor may still take. Costs a step for each actor.
 * @param remaining  what nobody holds, owner and actors together
 */
uint64_t rbi_shares_room(const struct rbi_shares *shares, uint64_t remaining, uint32_t actor);
/** Takes, without a look at the room. @return lent until rbi_share_return(); NULL: no memory */
struct rbi_share *rbi_share_take(struct rbi_shares *shares, uint32_t actor, uint64_t amount);
/** Gives back a part or all of it; accepts NULL. */
void rbi_share_return(struct rbi_share *share, uint64_t amount);

#endif
