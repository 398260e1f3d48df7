/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_rules.c - stage 6: parameter routing. Each rule that matches the message narrows what
 * the ones before it left to its targets. A rule whose targets have a tag lets an untagged message
 * reach that tag: it names it.
 */
#include "bus/glob.h"
#include "bus/label.h"
#include "bus/route_stage.h"

#include <string.h>

static bool matches(const struct rbi_route *route, unsigned rule)
{
    return (route->in->message->rules >> rule & 1U) != 0 &&
           route->in->policy->rules[rule].mode != RBI_STAGE_OFF;
}

static bool is_target(const struct rbi_label_rule *rule,
                      const struct rbi_directory_instance *instance)
{
    return (rule->tag[0] == '\0' || rbi_label_has_tag(instance->tags, rule->tag)) &&
           (rule->set[0] == '\0' || rbi_label_set_covers(rule->set, instance->set)) &&
           (rule->idc[0] == '\0' || rbi_label_idc_covers(rule->idc, instance->idc)) &&
           (rule->instance[0] == '\0' || rbi_glob_match(rule->instance, strlen(rule->instance),
                                                        instance->name, instance->name_length));
}

bool rbi_route_opened(const struct rbi_route *route, const struct rbi_directory_instance *instance)
{
    const struct rbi_policy *policy = route->in->policy;
    for (unsigned i = 0; i < policy->rule_count; i++) {
        const struct rbi_label_rule *rule = &policy->rules[i];
        if (matches(route, i) && rule->dry_run == 0 && rule->tag[0] != '\0' &&
            rbi_label_has_tag(instance->tags, rule->tag)) {
            return true;
        }
    }
    return false;
}

/* In a dry run also those that only the rule itself would have let pass the stage of tags. */
static bool stands_for_choice(const struct rbi_route_entry *entry,
                              const struct rbi_label_rule *rule)
{
    return rbi_route_is_in(entry) ||
           (rule->dry_run != 0 && rule->tag[0] != '\0' && entry->stage == RBI_ROUTE_TAG &&
            entry->reason == RBI_ROUTE_TAGGED);
}

static bool has_healthy_target(const struct rbi_route *route, const struct rbi_label_rule *rule)
{
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (stands_for_choice(entry, rule) && entry->healthy &&
            is_target(rule, rbi_route_instance(route, entry))) {
            return true;
        }
    }
    return false;
}

static void narrow(struct rbi_route *route, unsigned index)
{
    const struct rbi_label_rule *rule = &route->in->policy->rules[index];
    const struct rbi_route_cause cause = {.stage = RBI_ROUTE_RULES,
                                          .reason = RBI_ROUTE_NO_TARGET,
                                          .rule = index,
                                          .dry = rule->dry_run != 0};
    struct rbi_route_step *step = rbi_route_step(route, RBI_ROUTE_RULES);
    step->skipped = false;
    step->mode = (uint8_t)(rule->mode > step->mode ? rule->mode : step->mode);
    if (rule->mode == RBI_STAGE_PREFER && !has_healthy_target(route, rule)) {
        step->fell_back = step->fell_back || !cause.dry;
        return;
    }
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (!is_target(rule, rbi_route_instance(route, entry))) {
            rbi_route_drop(entry, &cause);
        }
    }
}

void rbi_route_label_rules(struct rbi_route *route)
{
    rbi_route_step(route, RBI_ROUTE_RULES)->skipped = true;
    for (unsigned i = 0; i < route->in->policy->rule_count; i++) {
        if (matches(route, i)) {
            narrow(route, i);
        }
    }
}
