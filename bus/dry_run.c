/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/dry_run.h"

#include <string.h>

const char *rbi_dry_kind_name(uint32_t kind)
{
    static const char *const names[RBI_DRY_KINDS] = {
        [RBI_DRY_NONE] = "?",           [RBI_DRY_LIMIT] = "limit",   [RBI_DRY_SET] = "set",
        [RBI_DRY_TAGS] = "tags",        [RBI_DRY_CANARY] = "canary", [RBI_DRY_RULE] = "rule",
        [RBI_DRY_LOCALITY] = "locality"};
    return kind < RBI_DRY_KINDS ? names[kind] : "?";
}

static bool has_limit(const struct rbi_policy *policy, const char *id)
{
    for (uint32_t i = 0; i < policy->limit_count; i++) {
        if (policy->limits[i].dry_run != 0 && strcmp(policy->limits[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_canary(const struct rbi_policy *policy, const char *id)
{
    for (uint32_t i = 0; i < policy->tags.count; i++) {
        const struct rbi_canary *canary = &policy->tags.canaries[i];
        if ((canary->dry_run != 0 || policy->tags.dry_run != 0) && strcmp(canary->id, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_rule(const struct rbi_policy *policy, const char *id)
{
    for (uint32_t i = 0; i < policy->rule_count; i++) {
        if (policy->rules[i].dry_run != 0 && strcmp(policy->rules[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

bool rbi_dry_routes(const struct rbi_policy *policy)
{
    bool dry =
        policy->set.dry_run != 0 || policy->tags.dry_run != 0 || policy->locality.dry_run != 0;
    for (uint32_t i = 0; i < policy->tags.count; i++) {
        dry = dry || policy->tags.canaries[i].dry_run != 0;
    }
    for (uint32_t i = 0; i < policy->rule_count; i++) {
        dry = dry || policy->rules[i].dry_run != 0;
    }
    return dry;
}

bool rbi_dry_has(const struct rbi_policy *policy, uint32_t kind, const char *id)
{
    switch (kind) {
    case RBI_DRY_LIMIT:
        return has_limit(policy, id);
    case RBI_DRY_SET:
        return policy->set.dry_run != 0 && id[0] == '\0';
    case RBI_DRY_TAGS:
        return policy->tags.dry_run != 0 && id[0] == '\0';
    case RBI_DRY_CANARY:
        return has_canary(policy, id);
    case RBI_DRY_RULE:
        return has_rule(policy, id);
    case RBI_DRY_LOCALITY:
        return policy->locality.dry_run != 0 && id[0] == '\0';
    default:
        return false;
    }
}
