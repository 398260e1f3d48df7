/* SPDX-License-Identifier: Apache-2.0 */
/* bus/route_class.c - what the classes of messages ask, taken from a policy. */
#include "bus/route_class.h"

#include <string.h>

static void take_rule(struct rbi_route_match *match, const struct rbi_label_rule *rule)
{
    match->method_low = rule->method_low;
    match->method_span = rule->method_high - rule->method_low;
    match->key_mask = rule->key_mask;
    match->key_value = rule->key_value & rule->key_mask;
    for (unsigned i = 0; i < RBI_LABELS_MAX; i++) {
        match->label_masks[i] = rule->label_masks[i];
        match->label_values[i] = rule->label_values[i];
    }
}

void rbi_route_classes_init(struct rbi_route_classes *classes,
                            const struct rbi_policy *policy,
                            const struct rbi_subject *caller)
{
    memset(classes, 0, sizeof *classes);
    for (uint32_t i = 0; i < policy->rule_count && i < RBI_RULES_MAX; i++) {
        const struct rbi_label_rule *rule = &policy->rules[i];
        if (rule->mode != RBI_STAGE_OFF && rule->method_low <= rule->method_high &&
            rbi_subject_matches(&rule->caller, caller)) {
            take_rule(&classes->rules[i], rule);
            classes->enabled |= 1U << i;
            classes->rule_count = i + 1;
        }
    }
    if (policy->tags.mode == RBI_STAGE_OFF) {
        return;
    }
    uint32_t below = 0;
    for (uint32_t i = 0; i < policy->tags.count && i < RBI_CANARIES_MAX; i++) {
        below += policy->tags.canaries[i].share;
        classes->below[i] = below;
        classes->canary_count = i + 1;
    }
}
