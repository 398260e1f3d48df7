/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_locality.c - stage 7: the nearest that can carry it. A level takes all as long as
 * enough of it is healthy; one that was left takes healthy x overprovision, and the next levels the
 * rest, until it has been well for long enough. A group with far less capacity than it has callers
 * gives its excess to all others, and so does a NUMA node within its group.
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
    /* Of the calls to the cluster, of WHOLE; 0: unknown. */
    uint64_t demand;      /* from the caller's group */
    uint64_t node_demand; /* and from its node in it */
};

/* What is known of the calls from the caller's place says an instance of the same place. */
static void survey_demand(const struct rbi_route *route,
                          const struct rbi_route_entry *entry,
                          struct levels *levels)
{
    const struct rbi_directory_instance *instance = rbi_route_instance(route, entry);
    const struct rbi_label_idc own = rbi_label_idc_parse(route->in->caller->idc);
    const struct rbi_label_idc idc = rbi_label_idc_parse(instance->idc);
    if (entry->rank > RBI_ROUTE_GROUP || (own.group.length == 0) != (idc.group.length == 0)) {
        return; /* a caller without a group takes those of groups on its host as well */
    }
    levels->demand = rbi_max_u64(levels->demand, rbi_min_u64(instance->demand, WHOLE));
    if (entry->rank == RBI_ROUTE_NODE) {
        levels->node_demand =
            rbi_max_u64(levels->node_demand, rbi_min_u64(instance->node_demand, WHOLE));
    }
}

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
            survey_demand(route, entry, levels);
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

/*
 * The levels up to @p near have far less of the capacity than @p demand, which is their callers'
 * share of all calls, of WHOLE: the excess goes to those behind them, up to @p last. 0: unknown.
 */
static void relieve(const struct rbi_route *route,
                    struct levels *levels,
                    unsigned near,
                    unsigned last,
                    uint64_t demand)
{
    const uint64_t percent = route->in->policy->locality.capacity_spill;
    uint64_t near_weight = 0;
    uint64_t near_share = 0;
    uint64_t far_weight = 0;
    for (unsigned rank = 0; rank <= last; rank++) {
        const struct level *level = &levels->level[rank];
        near_weight += rank <= near ? level->healthy_weight : 0;
        near_share += rank <= near ? level->share : 0;
        far_weight += rank <= near ? 0 : level->healthy_weight;
    }
    if (demand == 0 || percent == 0 || far_weight == 0 || near_share == 0) {
        return;
    }
    const uint64_t most =
        near_weight * WHOLE * WHOLE * 100 / (levels->healthy_weight * percent * demand);
    if (near_share <= most) {
        return;
    }
    const uint64_t excess = near_share - most;
    for (unsigned rank = 0; rank <= last; rank++) {
        struct level *level = &levels->level[rank];
        if (rank <= near) {
            level->share = level->share * most / near_share;
        } else {
            level->share += excess * level->healthy_weight / far_weight;
        }
    }
}

/* What a node cannot carry need not leave its group; a caller without a group has only the node. */
static void relieve_all(const struct rbi_route *route, struct levels *levels)
{
    if (rbi_label_idc_parse(route->in->caller->idc).group.length > 0) {
        relieve(route, levels, RBI_ROUTE_GROUP, RBI_ROUTE_RANKS - 1, levels->demand);
    }
    relieve(route, levels, RBI_ROUTE_NODE, RBI_ROUTE_GROUP, levels->node_demand);
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
    relieve_all(route, &levels);
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
