/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance.c - sets up what the policy's ways to choose need, and nothing else.
 */
#include "bus/balance.h"

enum rbi_balance_mode rbi_balance_mode_of(const struct rbi_balance_policy *policy, bool keyed)
{
    const enum rbi_balance_mode mode = (enum rbi_balance_mode)policy->mode;
    const bool by_key =
        mode == RBI_BALANCE_AUTO || mode == RBI_BALANCE_HASH || mode == RBI_BALANCE_MAGLEV;
    if (!by_key) {
        return mode;
    }
    if (keyed) {
        return mode == RBI_BALANCE_AUTO ? RBI_BALANCE_HASH : mode;
    }
    const bool named =
        policy->keyless >= RBI_BALANCE_LEAST && policy->keyless <= RBI_BALANCE_RANDOM;
    return named ? (enum rbi_balance_mode)policy->keyless : RBI_BALANCE_LEAST;
}

bool rbi_balance_shape(const struct rbi_balance_policy *policy, struct rbi_table_shape *shape)
{
    const enum rbi_balance_mode mode = rbi_balance_mode_of(policy, true);
    const bool maglev = mode == RBI_BALANCE_MAGLEV;
    if (mode != RBI_BALANCE_HASH && !maglev) {
        return false;
    }
    const bool asked = policy->on_shield == RBI_ON_SHIELD_FAILOVER || policy->hash_bound != 0;
    *shape = (struct rbi_table_shape){.kind = maglev ? RBI_TABLE_MAGLEV : RBI_TABLE_HRW,
                                      .slots = maglev               ? RBI_TABLE_SLOTS_MAGLEV
                                               : policy->slots != 0 ? policy->slots
                                                                    : RBI_TABLE_SLOTS_LARGE,
                                      .ranks = asked ? policy->ranks : 1,
                                      .strict = maglev ? 0 : policy->strict};
    return true;
}

void rbi_balance_init(struct rbi_balance *balance, uint64_t who, uint64_t when)
{
    *balance = (struct rbi_balance){.choice = RBI_PICK_NONE};
    rbi_random_init(&balance->random, who, when);
    rbi_random_init(&balance->least.random, rbi_random_next(&balance->random), when);
    rbi_turn_init(&balance->turn, &balance->random);
}

static size_t aligned(size_t bytes)
{
    return rbi_align_up(bytes, 16);
}

static bool takes_turns(enum rbi_balance_mode mode)
{
    return mode == RBI_BALANCE_RR || mode == RBI_BALANCE_WEIGHTED;
}

void rbi_balance_plan(struct rbi_balance_plan *plan,
                      const struct rbi_balance_policy *policy,
                      struct rbi_least_member *members,
                      unsigned count,
                      uint32_t *weights)
{
    RBI_ASSERT(count <= RBI_PICK_NONE);
    const enum rbi_balance_mode keyless = rbi_balance_mode_of(policy, false);
    *plan = (struct rbi_balance_plan){
        .policy = policy, .members = members, .weights = weights, .count = count};
    for (unsigned i = 0; i < count; i++) {
        /* In plain turn a weight says only who is in. */
        const bool plain = keyless == RBI_BALANCE_RR && members[i].weight != 0;
        weights[i] = plain ? 1 : members[i].weight;
    }
    plan->scratch_bytes = aligned(rbi_least_scratch_bytes(count));
    if (takes_turns(keyless)) {
        plan->turns = rbi_turn_length(weights, count);
        plan->bytes = aligned(plan->turns * sizeof(uint16_t));
        plan->scratch_bytes =
            rbi_max_u64(plan->scratch_bytes, aligned(rbi_turn_scratch_bytes(count, plan->turns)));
    } else {
        plan->bytes = aligned(count * sizeof(struct rbi_alias_column));
    }
    plan->bytes += policy->hash_bound != 0 ? aligned(count * sizeof(uint64_t)) : 0;
}

void rbi_balance_build(struct rbi_balance *balance,
                       const struct rbi_balance_plan *plan,
                       void *memory,
                       void *scratch)
{
    unsigned char *free_bytes = memory;
    balance->keyed = rbi_balance_mode_of(plan->policy, true);
    balance->keyless = rbi_balance_mode_of(plan->policy, false);
    balance->sticky_ms = plan->policy->sticky_ms;
    balance->choice = RBI_PICK_NONE;
    balance->bound_percent = plan->policy->hash_bound;
    balance->bound = NULL;
    balance->member_count = plan->count;
    balance->least.members = plan->members; /* the bound looks at them, too */
    if (plan->policy->hash_bound != 0) {
        balance->bound = (uint64_t *)(void *)free_bytes;
        free_bytes += aligned(plan->count * sizeof *balance->bound);
    }
    if (takes_turns((enum rbi_balance_mode)balance->keyless)) {
        rbi_turn_build(&balance->turn, (uint16_t *)(void *)free_bytes, plan->turns, plan->weights,
                       plan->count, scratch);
    } else if (balance->keyless == RBI_BALANCE_RANDOM) {
        rbi_alias_build(&balance->alias, (struct rbi_alias_column *)(void *)free_bytes,
                        plan->weights, plan->count, scratch);
    } else {
        rbi_least_build(&balance->least, plan->members, plan->count,
                        (struct rbi_alias_column *)(void *)free_bytes, scratch);
    }
    rbi_balance_set_table(balance, NULL);
}

void rbi_balance_set_table(struct rbi_balance *balance, const struct rbi_table *table)
{
    balance->owners = NULL;
    balance->limits = NULL;
    if (table != NULL) {
        RBI_ASSERT(table->member_count == balance->member_count);
        balance->owners = table->owners;
        balance->shape = table->shape;
        balance->limits = balance->bound;
        rbi_balance_refresh(balance);
    }
}

void rbi_balance_refresh(struct rbi_balance *balance)
{
    if (balance->limits != NULL) {
        rbi_bound_refresh(balance->bound, balance->least.members, balance->member_count,
                          balance->bound_percent);
    }
}

void rbi_balance_stay(struct rbi_balance *balance, uint16_t choice)
{
    balance->choice = choice;
}

uint16_t rbi_balance_pick_sticky(struct rbi_balance *balance, bool fresh, uint64_t now_ns)
{
    if (balance->choice == RBI_PICK_NONE || now_ns >= balance->choice_until_ns) {
        balance->choice = rbi_balance_pick_keyless(balance, fresh);
        balance->choice_until_ns = now_ns + balance->sticky_ms * UINT64_C(1000000);
    }
    return balance->choice;
}
