/* SPDX-License-Identifier: Apache-2.0 */
/* bus/governance_check.c - what no field can tell of itself: whether fields fit together. */
#include "bus/governance_table.h"

#include <stdlib.h>
#include <string.h>

static const char *check_balance(const struct rbi_balance_policy *balance)
{
    if (balance->keyless < RBI_BALANCE_LEAST || balance->keyless > RBI_BALANCE_RANDOM) {
        return "balance.keyless: expected one of least, rr, weighted, random";
    }
    if (balance->hash_bound != 0 && balance->hash_bound <= 100) {
        return "balance.hash_bound: expected 0% or more than 100%: no instance could have its mean";
    }
    return NULL;
}

static const char *check_shield(const struct rbi_shield_policy *shield)
{
    if (shield->open_min_ms > shield->open_max_ms) {
        return "shield.open_min: expected at most open_max";
    }
    if (shield->close_ok > shield->close_of) {
        return "shield.close_ok: expected at most close_of";
    }
    if (shield->window_count == 0 && shield->preset != RBI_SHIELD_OFF) {
        return "shield.windows: expected one at least; preset: off shields nothing";
    }
    return NULL;
}

static const char *check_tags(const struct rbi_tag_policy *tags)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tags->count; i++) {
        sum += tags->canaries[i].share;
        if (strchr(tags->canaries[i].tag, ',')) {
            return "tags.canaries: expected one tag, without a comma: it is no instance's";
        }
    }
    return sum > 10000 ? "tags.canaries: expected shares of at most 100% together" : NULL;
}

static const char *check_rule(const struct rbi_label_rule *rule)
{
    bool fits = (rule->key_value & ~rule->key_mask) == 0;
    for (unsigned i = 0; i < RBI_LABELS_MAX; i++) {
        fits = fits && (rule->label_values[i] & ~rule->label_masks[i]) == 0;
    }
    if (!fits) {
        return "rules: a value has bits that its mask leaves out: it never matches";
    }
    if (strchr(rule->tag, ',')) {
        return "rules: expected one tag, without a comma: it is no instance's";
    }
    if (rule->tag[0] == '\0' && rule->set[0] == '\0' && rule->idc[0] == '\0' &&
        rule->instance[0] == '\0') {
        return "rules: expected one of tag, set, idc, instance: where the messages go";
    }
    return NULL;
}

static const char *check_degrades(const struct rbi_policy *policy)
{
    for (uint32_t i = 0; i < policy->degrade_count; i++) {
        if (policy->degrades[i].mock_file[0] != '\0' && policy->degrades[i].mock_size > 0) {
            return "degrade: expected one of mock, mock_hex, mock_file in an entry";
        }
    }
    return NULL;
}

static const char *check_parts(const struct rbi_policy *policy)
{
    const char *odd = check_balance(&policy->balance);
    odd = odd ? odd : check_shield(&policy->shield);
    odd = odd ? odd : check_tags(&policy->tags);
    odd = odd ? odd : check_degrades(policy);
    for (uint32_t i = 0; !odd && i < policy->rule_count; i++) {
        odd = check_rule(&policy->rules[i]);
    }
    return odd;
}

const char *rbi_governance_check_policy(const struct rbi_policy *policy)
{
    const char *odd = check_parts(policy);
    if (odd) {
        return odd;
    }
    if (policy->panic.enter > policy->panic.leave) {
        return "panic.enter: expected at most leave";
    }
    if (policy->locality.leave > policy->locality.back) {
        return "locality.leave: expected at most back";
    }
    return NULL;
}

static void check_clusters(const struct rbi_governance *governance,
                           struct rbi_governance_entry *entry,
                           struct rbi_config_errors *errors)
{
    const struct rbi_tree *tree = &governance->tree;
    const uint32_t clusters = rbi_tree_find(tree, 0, "clusters");
    for (uint32_t at = clusters ? rbi_tree_first(tree, clusters) : 0; at;
         at = rbi_tree_next(tree, clusters, at)) {
        memset(entry, 0, sizeof *entry);
        rbi_policy_defaults(&entry->policy);
        rbi_tree_apply(tree, at, entry, NULL, NULL);
        const char *odd = rbi_governance_check_policy(&entry->policy);
        if (odd) {
            char name[RBI_TREE_NAME_MAX];
            rbi_config_error_add(errors, tree->nodes[at].place, "%s.%s",
                                 rbi_tree_name(tree, at, name, sizeof name), odd);
        }
    }
}

static void check_rights(const struct rbi_governance *governance,
                         struct rbi_acl *acl,
                         struct rbi_config_errors *errors)
{
    const struct rbi_tree *tree = &governance->tree;
    const struct rbi_governance_layers one = {.count = 1, .items = {governance}};
    const uint32_t rights = rbi_tree_find(tree, 0, "rights");
    const uint32_t rules = rights ? rbi_tree_find(tree, rights, "rules") : 0;
    struct rbi_acl_fault fault;
    if (rules && rbi_governance_acl(&one, acl) && rbi_acl_check(acl, &fault) != 0) {
        char name[RBI_TREE_NAME_MAX];
        uint32_t at = rbi_tree_first(tree, rules);
        for (uint32_t i = 0; i < fault.rule && at; i++) {
            at = rbi_tree_next(tree, rules, at);
        }
        at = at ? at : rules;
        rbi_config_error_add(errors, tree->nodes[at].place, "%s: %s",
                             rbi_tree_name(tree, at, name, sizeof name), fault.text);
    }
}

bool rbi_governance_check(const struct rbi_governance *governance, struct rbi_config_errors *errors)
{
    const unsigned before = errors->count;
    const struct rbi_config_place whole = {0, 0};
    union {
        struct rbi_governance_entry entry;
        struct rbi_acl acl;
    } *room = malloc(sizeof *room); /* too large for a stack */
    if (!room) {
        rbi_config_error_add(errors, whole, "not enough memory to check it");
        return false;
    }
    if (governance->tree.count > 0) {
        check_clusters(governance, &room->entry, errors);
        check_rights(governance, &room->acl, errors);
        rbi_governance_check_alarms(governance, errors);
    }
    free(room);
    return errors->count == before;
}
