/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_locality.c - stage 7: the nearest that can carry it. A level takes all as long as
 * enough of it is healthy; one that was left takes healthy x overprovision, and the next levels the
 * rest, until it has been well for long enough. A group with far less capacity than it has callers
 * gives its excess to all others.
 */
#include "bus/label.h"
#include "bus/route_stage.h"

#define WHOLE UINT64_C(10000) /* of shares */

struct level {
    uint64_t weight;
    uint64_t healthy_weight;
    uint64_t share; /* of WHOLE */
    uint32_t healthy;
};

struct levels {
    struct level level[RBI_ROUTE_RANKS];
    uint64_t weight;
    uint64_t healthy_weight;
};

static void survey(const struct rbi_route *route, struct levels *levels)
{
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (rbi_route_is_in(entry)) {
            struct level *level = &levels->level[entry->rank];
            const uint32_t weight = rbi_route_instance(route, entry)->weight;
            level->weight += weight;
            level->healthy_weight += entry->healthy ? weight : 0;
            level->healthy += entry->healthy ? 1U : 0U;
            levels->weight += weight;
            levels->healthy_weight += entry->healthy ? weight : 0;
        }
    }
}

static bool at_least(const struct level *level, uint32_t percent)
{
    return level->healthy_weight * 100 >= level->weight * percent;
}

/* Whether the level has been left: hysteresis, so that it does not swing around one bound. */
static bool is_left(struct rbi_route *route, unsigned rank, const struct level *level)
{
    const struct rbi_locality_policy *policy = &route->in->policy->locality;
    struct rbi_route_memory *memory = route->memory;
    const uint32_t bit = 1U << rank;
    if (memory == NULL) {
        return !at_least(level, policy->leave);
    }
    const bool was_left = (memory->left & bit) != 0;
    if (!at_least(level, was_left ? policy->back : policy->leave)) {
        memory->left |= bit;
        memory->back_since[rank] = 0;
        return true;
    }
    if (!was_left) {
        return false;
    }
    if (memory->back_since[rank] == 0) {
        memory->back_since[rank] = route->in->now_ns;
    }
    const uint64_t back_ns = memory->back_since[rank] + policy->hold_ms * UINT64_C(1000000);
    if (route->in->now_ns < back_ns) {
        rbi_route_again(route, back_ns);
        return true;
    }
    memory->left &= ~bit;
    memory->back_since[rank] = 0;
    return false;
}

/* What a level can take, of WHOLE. */
static uint64_t capacity(struct rbi_route *route, unsigned rank, const struct level *level)
{
    const struct rbi_locality_policy *policy = &route->in->policy->locality;
    const bool left = is_left(route, rank, level);
    if (level->healthy_weight == 0 || level->healthy < policy->min_local) {
        return 0;
    }
    if (!left) {
        return WHOLE;
    }
    /* It is not back yet: at the most what it took when it was left. */
    const uint64_t most = WHOLE * policy->overprovision * policy->leave / 10000;
    const uint64_t now =
        WHOLE * policy->overprovision * level->healthy_weight / (100 * level->weight);
    return rbi_min_u64(rbi_min_u64(now, most), WHOLE);
}

/* Shares of the levels, nearest first. @return their sum before it is made whole */
static uint64_t divide(struct rbi_route *route, struct levels *levels)
{
    uint64_t given = 0;
    for (unsigned rank = 0; rank < RBI_ROUTE_RANKS; rank++) {
        struct level *level = &levels->level[rank];
        if (level->weight > 0) {
            level->share = rbi_min_u64(capacity(route, rank, level), WHOLE - given);
            given += level->share;
        }
    }
    for (unsigned rank = 0; given > 0 && rank < RBI_ROUTE_RANKS; rank++) {
        levels->level[rank].share = levels->level[rank].share * WHOLE / given;
    }
    return given;
}

/* The caller's own group has less capacity than it has callers: the excess goes to the others. */
static void relieve(const struct rbi_route *route, struct levels *levels)
{
    const uint64_t demand = route->in->clusters[route->result->realm].demand;
    const uint64_t percent = route->in->policy->locality.capacity_spill;
    uint64_t local_weight = 0;
    uint64_t local_share = 0;
    for (unsigned rank = 0; rank <= RBI_ROUTE_GROUP; rank++) {
        local_weight += levels->level[rank].healthy_weight;
        local_share += levels->level[rank].share;
    }
    const uint64_t far_weight = levels->healthy_weight - local_weight;
    if (demand == 0 || percent == 0 || far_weight == 0 || local_share == 0) {
        return;
    }
    const uint64_t most =
        local_weight * WHOLE * WHOLE * 100 / (levels->healthy_weight * percent * demand);
    if (local_share <= most) {
        return;
    }
    const uint64_t excess = local_share - most;
    for (unsigned rank = 0; rank < RBI_ROUTE_RANKS; rank++) {
        struct level *level = &levels->level[rank];
        if (rank <= RBI_ROUTE_GROUP) {
            level->share = level->share * most / local_share;
        } else {
            level->share += excess * level->healthy_weight / far_weight;
        }
    }
}

static void drop(struct rbi_route *route, const struct rbi_route_cause *cause, const bool *out)
{
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (out[entry->rank]) {
            rbi_route_drop(entry, cause);
        }
    }
}

/* Only the own room will do. A caller that does not say where it is has none, and gets all. */
static void confine(struct rbi_route *route, struct rbi_route_cause cause)
{
    bool out[RBI_ROUTE_RANKS] = {false};
    for (unsigned rank = RBI_ROUTE_GROUP + 1; rank < RBI_ROUTE_RANKS; rank++) {
        out[rank] = rbi_label_idc_parse(route->in->caller->idc).group.length > 0;
    }
    drop(route, &cause, out);
}

/*
 * Whether the shields account for a panic. Those that fail like all others are not shielded: levels
 * full of them carry nothing.
 */
static bool shields_account(const struct rbi_route *route, const struct levels *levels)
{
    return levels->healthy_weight * 100 < levels->weight * route->in->policy->panic.leave;
}

static void prefer(struct rbi_route *route, struct rbi_route_cause cause)
{
    struct levels levels = {.healthy_weight = 0};
    bool out[RBI_ROUTE_RANKS];
    survey(route, &levels);
    const uint64_t given = divide(route, &levels);
    if (given == 0) {
        return; /* nobody healthy anywhere: health decides, or panic */
    }
    relieve(route, &levels);
    for (unsigned rank = 0; rank < RBI_ROUTE_RANKS; rank++) {
        out[rank] = levels.level[rank].share == 0;
        route->result->share[rank] = cause.dry ? 0 : (uint32_t)levels.level[rank].share;
    }
    route->spilled_enough = !cause.dry && given == WHOLE && shields_account(route, &levels);
    cause.keyed_stay = true;
    drop(route, &cause, out);
}

void rbi_route_locality(struct rbi_route *route)
{
    const struct rbi_locality_policy *policy = &route->in->policy->locality;
    const struct rbi_route_cause cause = {.stage = RBI_ROUTE_LOCALITY,
                                          .reason = RBI_ROUTE_FAR,
                                          .rule = RBI_ROUTE_NO_RULE,
                                          .dry = policy->dry_run != 0};
    struct rbi_route_step *step = rbi_route_step(route, RBI_ROUTE_LOCALITY);
    step->mode = (uint8_t)policy->mode;
    step->skipped = policy->mode == RBI_STAGE_OFF || route->result->set_applies;
    if (step->skipped) {
        return;
    }
    if (policy->mode == RBI_STAGE_STRICT) {
        confine(route, cause);
    }
    prefer(route, cause);
}
