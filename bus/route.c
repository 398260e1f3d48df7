/* SPDX-License-Identifier: Apache-2.0 */
/* bus/route.c - the order of the stages, and what is kept of each. */
#include "bus/route_stage.h"

#include <string.h>

static const struct {
    const char *name;
    void (*run)(struct rbi_route *route);
} stages[RBI_ROUTE_STAGES] = {
    [RBI_ROUTE_IN] = {"in", NULL},
    [RBI_ROUTE_STATE] = {"state", rbi_route_state},
    [RBI_ROUTE_ACL] = {"acl", rbi_route_acl},
    [RBI_ROUTE_FILTER] = {"filter", rbi_route_filter},
    [RBI_ROUTE_REALM] = {"realm", rbi_route_realm},
    [RBI_ROUTE_SET] = {"set", rbi_route_set},
    [RBI_ROUTE_TAG] = {"tag", rbi_route_tag},
    [RBI_ROUTE_RULES] = {"rules", rbi_route_label_rules},
    [RBI_ROUTE_LOCALITY] = {"locality", rbi_route_locality},
    [RBI_ROUTE_HEALTH] = {"health", rbi_route_health},
};

static const char *const reasons[RBI_ROUTE_REASONS] = {
    [RBI_ROUTE_FITS] = "fits",
    [RBI_ROUTE_STARTING] = "is starting",
    [RBI_ROUTE_DRAINING] = "is draining",
    [RBI_ROUTE_CLOSED] = "is closed",
    [RBI_ROUTE_ISOLATED] = "is isolated by the operator",
    [RBI_ROUTE_STAGED] = "is staged: only its own path and messages tagged test reach it",
    [RBI_ROUTE_WEIGHT_0] = "has weight 0",
    [RBI_ROUTE_INVISIBLE] = "may not be seen by the caller",
    [RBI_ROUTE_OTHER_REALM] = "belongs to another business",
    [RBI_ROUTE_OTHER_SET] = "is not of the caller's set",
    [RBI_ROUTE_TAGGED] = "is tagged and the message is not",
    [RBI_ROUTE_OTHER_TAG] = "has not the message's tag",
    [RBI_ROUTE_SICK_TAG] = "has the tag, of which none is healthy",
    [RBI_ROUTE_NO_TARGET] = "is no target of the rule",
    [RBI_ROUTE_FAR] = "is farther than those that carry the load",
    [RBI_ROUTE_SHIELDED] = "is shielded",
    [RBI_ROUTE_PANIC] = "cluster is in panic, and fails then by its policy",
    [RBI_ROUTE_FILTERED] = "is left out by the caller's filter",
};

const char *rbi_route_stage_name(enum rbi_route_stage stage)
{
    return stage < RBI_ROUTE_STAGES ? stages[stage].name : "unknown";
}

const char *rbi_route_reason_text(enum rbi_route_reason reason)
{
    return reason < RBI_ROUTE_REASONS ? reasons[reason] : "unknown";
}

unsigned rbi_route_emptied_by(const struct rbi_route_entry *entries,
                              unsigned count,
                              enum rbi_route_stage stage)
{
    unsigned last = RBI_ROUTE_NO_RULE; /* rules narrow in their order */
    for (unsigned i = 0; i < count; i++) {
        const unsigned rule = entries[i].rule;
        if (entries[i].stage == stage && rule != RBI_ROUTE_NO_RULE &&
            (last == RBI_ROUTE_NO_RULE || rule > last)) {
            last = rule;
        }
    }
    return last;
}

const char *
rbi_route_rule_id(const struct rbi_policy *policy, enum rbi_route_stage stage, unsigned rule)
{
    if (stage == RBI_ROUTE_TAG && rule < policy->tags.count) {
        return policy->tags.canaries[rule].id;
    }
    return stage == RBI_ROUTE_RULES && rule < policy->rule_count ? policy->rules[rule].id : "";
}

unsigned rbi_route_room(const struct rbi_route_input *input)
{
    unsigned room = 0;
    for (unsigned i = 0; i < input->cluster_count; i++) {
        room += input->clusters[i].count;
    }
    return room;
}

void rbi_route_drop(struct rbi_route_entry *entry, const struct rbi_route_cause *cause)
{
    if (cause->dry) {
        if (rbi_route_is_in(entry) && entry->would_stage == RBI_ROUTE_IN) {
            entry->would_stage = (uint8_t)cause->stage;
            entry->would_reason = (uint8_t)cause->reason;
            entry->would_rule = (uint8_t)cause->rule;
        }
        return;
    }
    if (rbi_route_is_in(entry)) {
        entry->stage = (uint8_t)cause->stage;
        entry->reason = (uint8_t)cause->reason;
        entry->rule = (uint8_t)cause->rule;
    }
    entry->keyed = entry->keyed && cause->keyed_stay;
}

static void fill(struct rbi_route *route)
{
    struct rbi_route_entry *entry = route->entries;
    for (unsigned i = 0; i < route->in->cluster_count; i++) {
        for (uint32_t j = 0; j < route->in->clusters[i].count; j++, entry++) {
            memset(entry, 0, sizeof *entry);
            entry->cluster = (uint16_t)i;
            entry->index = j;
            entry->rule = RBI_ROUTE_NO_RULE;
            entry->would_rule = RBI_ROUTE_NO_RULE;
            entry->keyed = true;
            const struct rbi_directory_instance *instance = rbi_route_instance(route, entry);
            entry->healthy =
                instance->health == RBI_HEALTH_OK || instance->health == RBI_HEALTH_RAMP;
            entry->rank = (uint8_t)rbi_route_rank_of(route, entry);
        }
    }
}

struct counts {
    uint32_t in;
    uint32_t keyed;
    uint32_t would;
};

static struct counts count(const struct rbi_route *route, enum rbi_route_stage stage)
{
    struct counts counts = {0, 0, 0};
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        counts.in += rbi_route_is_in(entry) ? 1U : 0U;
        counts.keyed += entry->keyed ? 1U : 0U;
        counts.would += entry->would_stage == stage ? 1U : 0U;
    }
    return counts;
}

void rbi_route_run(const struct rbi_route_input *input,
                   struct rbi_route_memory *memory,
                   struct rbi_route_entry *entries,
                   struct rbi_route_result *result)
{
    struct rbi_route route = {.in = input, .memory = memory, .entries = entries, .result = result};
    route.tag = rbi_route_tag_of(input);
    memset(result, 0, sizeof *result);
    result->entry_count = rbi_route_room(input);
    fill(&route);
    uint32_t before = result->entry_count;
    for (unsigned stage = RBI_ROUTE_STATE; stage < RBI_ROUTE_STAGES; stage++) {
        struct rbi_route_step *step = &result->steps[stage];
        step->before = before;
        stages[stage].run(&route);
        const struct counts counts = count(&route, (enum rbi_route_stage)stage);
        step->after = counts.in;
        step->would_out = counts.would;
        if (counts.in == 0 && result->emptied == RBI_ROUTE_IN) {
            result->emptied = (uint8_t)stage;
        }
        if (counts.keyed == 0 && result->keyed_emptied == RBI_ROUTE_IN) {
            result->keyed_emptied = (uint8_t)stage;
        }
        before = counts.in;
    }
    rbi_route_weigh(&route);
}
