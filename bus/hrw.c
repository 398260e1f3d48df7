/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/hrw.c - rendezvous slot table, the plain way: what bus/table.c must agree with. It decides
 * which instance owns which key, on every host and in every release: tests/unit/test_hrw.c pins
 * the result, and nothing here may change it.
 */
#include "bus/hrw.h"

#include "bus/hrw_score.h"

static uint16_t
owner_of(uint64_t slot_seed, const struct rbi_hrw_member *members, unsigned member_count)
{
    uint16_t best = RBI_HRW_NONE;
    uint64_t best_score = 0;
    for (unsigned i = 0; i < member_count; i++) {
        if (members[i].weight == 0) {
            continue;
        }
        const uint64_t seed = rbi_hrw_seed(members[i].instance);
        const uint64_t score = rbi_hrw_minus_log2(rbi_hrw_hash(seed, slot_seed));
        if (best == RBI_HRW_NONE ||
            rbi_hrw_better(score, members[i].weight, members[i].instance, best_score,
                           members[best].weight, members[best].instance)) {
            best = (uint16_t)i;
            best_score = score;
        }
    }
    return best;
}

void rbi_hrw_build(uint16_t *owner,
                   uint32_t slots,
                   const struct rbi_hrw_member *members,
                   unsigned member_count)
{
    RBI_ASSERT(rbi_is_pow2(slots) && member_count <= RBI_HRW_MEMBERS_MAX);
    for (uint32_t slot = 0; slot < slots; slot++) {
        owner[slot] = owner_of(rbi_hrw_slot_seed(slot), members, member_count);
    }
}
