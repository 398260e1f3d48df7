/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/share.h"

#include <stdlib.h>

void rbi_shares_init(struct rbi_shares *shares)
{
    rbi_list_init(&shares->all);
    shares->count = 0;
}

bool rbi_shares_empty(const struct rbi_shares *shares)
{
    return shares->count == 0;
}

static struct rbi_share *share_find(const struct rbi_shares *shares, uint32_t actor)
{
    RBI_LIST_EACH(node, spare, &shares->all)
    {
        struct rbi_share *share = RBI_CONTAINER_OF(node, struct rbi_share, in_shares);
        if (share->actor == actor) {
            return share;
        }
    }
    return NULL;
}

uint64_t rbi_shares_used(const struct rbi_shares *shares, uint32_t actor)
{
    const struct rbi_share *share = share_find(shares, actor);
    return share ? share->used : 0;
}

uint64_t rbi_shares_room(const struct rbi_shares *shares, uint64_t remaining, uint32_t actor)
{
    const struct rbi_share *share = share_find(shares, actor);
    const uint64_t own = share ? share->used : 0;
    const uint64_t parts = (uint64_t)shares->count + (share ? 1 : 2);
    /* Rounded up: of very little, the first still gets one. Limits are far below 2^63. */
    const uint64_t most = (remaining + own + parts - 1) / parts;
    return rbi_min_u64(remaining, most > own ? most - own : 0);
}

struct rbi_share *rbi_share_take(struct rbi_shares *shares, uint32_t actor, uint64_t amount)
{
    struct rbi_share *share = share_find(shares, actor);
    RBI_ASSERT(amount > 0);
    if (!share) {
        share = calloc(1, sizeof(*share));
        if (!share) {
            return NULL;
        }
        share->shares = shares;
        share->actor = actor;
        rbi_list_push_back(&shares->all, &share->in_shares);
        shares->count++;
    }
    share->used += amount;
    return share;
}

void rbi_share_return(struct rbi_share *share, uint64_t amount)
{
    if (!share) {
        return;
    }
    RBI_ASSERT(share->used >= amount);
    share->used -= amount;
    if (share->used == 0) {
        rbi_list_remove(&share->in_shares);
        share->shares->count--;
        free(share);
    }
}
