/* SPDX-License-Identifier: Apache-2.0 */
/* bus/governance.c - layers of text to what holds for a cluster, an instance, and rights. */
#include "bus/governance.h"

#include "bus/glob.h"
#include "bus/governance_file.h"
#include "bus/governance_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rbi_governance_deinit(struct rbi_governance *governance)
{
    rbi_tree_deinit(&governance->tree);
    rbi_governance_free_files(governance);
    free(governance->instances);
    governance->instances = NULL;
    governance->instance_count = 0;
}

void rbi_governance_prepare_shield(void *structure, const char *preset, size_t length)
{
    const struct rbi_tree_field *shield = &rbi_governance_schema.fields[0].fields[0].fields[2];
    const struct rbi_config_key *key = &shield->fields[0].key;
    struct rbi_shield_policy named = {.preset = RBI_SHIELD_DEFAULT};
    struct rbi_config_fault fault;
    if (preset) {
        RBI_ASSERT(rbi_config_value_parse(key, preset, length, &named, &fault) == 0);
        rbi_shield_preset(structure, (enum rbi_shield_preset)named.preset);
    }
}

/** Section of a text, or 0. */
static uint32_t section(const struct rbi_governance *governance, const char *name)
{
    return governance->tree.count > 0 ? rbi_tree_find(&governance->tree, 0, name) : 0;
}

/** Node of a free name in a section, or 0. */
static uint32_t
find_name(const struct rbi_governance *governance, const char *in, const char *name, size_t length)
{
    const struct rbi_tree *tree = &governance->tree;
    const uint32_t names = section(governance, in);
    uint32_t at = names ? rbi_tree_first(tree, names) : 0;
    while (at && (tree->nodes[at].length != length ||
                  memcmp(rbi_tree_text(tree, &tree->nodes[at]), name, length) != 0)) {
        at = rbi_tree_next(tree, names, at);
    }
    return at;
}

/* ---- clusters --------------------------------------------------------------------------- */

static bool
entry_matches(const struct rbi_tree *tree, uint32_t entry, const char *path, size_t length)
{
    const uint32_t match = rbi_tree_find(tree, entry, "match");
    const struct rbi_tree_node *node = &tree->nodes[match];
    const char *pattern = rbi_tree_text(tree, node);
    /* Most entries are not about this cluster, and say so before their first star. */
    const size_t plain = strcspn(pattern, "*");
    return plain <= length && memcmp(pattern, path, plain) == 0 &&
           rbi_glob_match(pattern, node->length, path, length);
}

static void list_full(void *context, const struct rbi_tree_node *list)
{
    struct rbi_governance_fault *fault = context;
    if (fault && fault->text[0] == '\0') {
        (void)snprintf(fault->text, sizeof fault->text,
                       "%s: all entries that match have more than %llu together, with line %u",
                       list->field->key.name, (unsigned long long)list->field->key.max,
                       list->place.line);
    }
}

static void apply_layer(const struct rbi_governance *governance,
                        const char *path,
                        size_t length,
                        struct rbi_governance_entry *entry,
                        struct rbi_governance_fault *fault)
{
    const struct rbi_tree *tree = &governance->tree;
    const uint32_t clusters = section(governance, "clusters");
    const size_t realm_length = length > 1 ? strcspn(path + 1, "/") : 0;
    const uint32_t realm = find_name(governance, "realms", path + 1, realm_length);
    if (realm) {
        rbi_tree_defaults(tree->nodes[realm].field, &entry->policy.realm);
        rbi_tree_apply(tree, realm, &entry->policy.realm, list_full, fault);
    }
    for (uint32_t at = clusters ? rbi_tree_first(tree, clusters) : 0; at;
         at = rbi_tree_next(tree, clusters, at)) {
        if (entry_matches(tree, at, path, length)) {
            rbi_tree_apply(tree, at, entry, list_full, fault);
        }
    }
}

/** Items that were there before a layer stand where they stood: others were appended. */
static void keep_items(struct rbi_policy *policy, const struct rbi_policy *before)
{
    memcpy(policy->tags.canaries, before->tags.canaries,
           before->tags.count * sizeof policy->tags.canaries[0]);
    memcpy(policy->rules, before->rules, before->rule_count * sizeof policy->rules[0]);
    memcpy(policy->limits, before->limits, before->limit_count * sizeof policy->limits[0]);
    memcpy(policy->degrades, before->degrades, before->degrade_count * sizeof policy->degrades[0]);
}

static void apply_all(const struct rbi_governance_layers *layers,
                      const char *path,
                      size_t length,
                      struct rbi_governance_entry *entry,
                      struct rbi_governance_fault *fault)
{
    char terminated[RBI_PATH_MAX + 1] = {0};
    memcpy(terminated, path, rbi_min_u64(length, RBI_PATH_MAX));
    memset(entry, 0, sizeof *entry);
    rbi_policy_defaults(&entry->policy);
    for (unsigned i = 0; i < layers->count; i++) {
        if (layers->fixed != 0 && i == layers->fixed) {
            const struct rbi_policy before = entry->policy;
            apply_layer(layers->items[i], terminated, length, entry, fault);
            keep_items(&entry->policy, &before);
        } else {
            apply_layer(layers->items[i], terminated, length, entry, fault);
        }
    }
}

/** Limits that no entry gives a rate are none. */
static void drop_limits(struct rbi_policy *policy, struct rbi_governance_fault *fault)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < policy->limit_count; i++) {
        if (policy->limits[i].rate == 0) {
            (void)snprintf(fault->text, sizeof fault->text, "limits: %s has no rate",
                           policy->limits[i].id);
        } else if (i != kept++) {
            policy->limits[kept - 1] = policy->limits[i];
        }
    }
    memset(&policy->limits[kept], 0, (policy->limit_count - kept) * sizeof policy->limits[0]);
    policy->limit_count = kept;
}

bool rbi_governance_policy(const struct rbi_governance_layers *layers,
                           const char *path,
                           size_t length,
                           struct rbi_policy *policy,
                           struct rbi_governance_fault *fault)
{
    struct rbi_governance_entry entry;
    struct rbi_governance_fault found = {.text = ""};
    apply_all(layers, path, length, &entry, &found);
    drop_limits(&entry.policy, &found);
    const char *odd = rbi_governance_check_policy(&entry.policy);
    if (found.text[0] == '\0' && odd) {
        (void)snprintf(found.text, sizeof found.text, "%s", odd);
    }
    rbi_governance_fill_files(layers, &entry.policy);
    rbi_policy_seal(&entry.policy);
    *policy = entry.policy;
    if (fault) {
        *fault = found;
    }
    return found.text[0] == '\0';
}

void rbi_governance_describe(const struct rbi_governance_layers *layers,
                             const char *path,
                             size_t length,
                             struct rbi_governance_description *out)
{
    struct rbi_governance_entry entry;
    apply_all(layers, path, length, &entry, NULL);
    *out = entry.description;
}

/* ---- instances and rights --------------------------------------------------------------- */

/** Entry of an instance, or 0. */
static uint32_t find_instance(const struct rbi_governance *governance, const char *path)
{
    uint32_t low = 0;
    uint32_t high = governance->instance_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(governance->instances[middle].text, path);
        if (order == 0) {
            return governance->instances[middle].node;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

bool rbi_governance_override(const struct rbi_governance_layers *layers,
                             const char *path,
                             size_t length,
                             struct rbi_governance_override *out)
{
    char terminated[RBI_PATH_MAX + 1] = {0};
    memcpy(terminated, path, rbi_min_u64(length, RBI_PATH_MAX));
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < layers->count; i++) {
        const uint32_t node = find_instance(layers->items[i], terminated);
        if (node) {
            rbi_tree_apply(&layers->items[i]->tree, node, out, NULL, NULL);
        }
    }
    return out->given != 0;
}

static void rights_full(void *context, const struct rbi_tree_node *list)
{
    bool *full = context;
    (void)list;
    *full = true;
}

bool rbi_governance_acl(const struct rbi_governance_layers *layers, struct rbi_acl *out)
{
    bool full = false;
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < layers->count; i++) {
        const uint32_t rights = section(layers->items[i], "rights");
        if (rights) {
            rbi_tree_apply(&layers->items[i]->tree, rights, out, rights_full, &full);
        }
    }
    return !full;
}
