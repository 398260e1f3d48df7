/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/governance_alarm.c - the section "alarms": the table of its keys, and texts over each other
 * to one list of rules.
 */
#include "bus/governance_table.h"

#include <string.h>

#define HOUR UINT64_C(3600000)

static const char *const metrics[] = {"error_ratio", "lost_ratio", "slow_ratio", "p50_us",
                                      "p90_us",      "p99_us",     "p999_us",    "mean_us",
                                      "rate",        "instances",  "shielded",   "healthy_ratio",
                                      "queue_depth", "panic",      NULL};
_Static_assert(RBI_ARRAY_SIZE(metrics) == RBI_ALARM_METRICS + 1, "names of metrics");
static const char *const ops[] = {">", "<", NULL};

/* clang-format off */

#define OF struct rbi_alarm_rule
static const struct rbi_tree_field fields[] = {
    NEEDED(LABEL, "id", id, 1, RBI_LABEL_MAX, "Name of the rule, in the log and in events."),
    FIELD(GLOB, "match", match, 1, RBI_GLOB_MAX, "/**",
          "Clusters that it is about, each for itself."),
    {.key = {.name = "metric", .type = RBI_CONFIG_TYPE_CHOICE, .offset = offsetof(OF, metric),
             .max = RBI_ALARM_METRICS - 1, .choices = metrics,
             .text = "Figure that is looked at; those of calls are of the last 10 s, of all "
             "callers."},
     .kind = RBI_TREE_VALUE, .flags = RBI_TREE_REQUIRED},
    CHOICE("op", below, ops, ">", "Fires above the threshold, or with < below it."),
    NEEDED(DECIMAL, "threshold", threshold, 0, RBI_ALARM_LARGE * RBI_ALARM_UNIT,
           "Ratios are of 1, times in microseconds."),
    FIELD(DURATION, "for", for_ms, 0, HOUR, "10s", "It fires when that has been so for so long."),
    FIELD(DURATION, "clear_for", clear_ms, 0, HOUR, "10s",
          "And is over when it has not been so for so long."),
    FIELD(NUMBER, "calls", calls, 1, 1000000, "1",
          "Ratios and times of calls count when there are so many in the 10 s."),
};
#undef OF
const struct rbi_tree_field rbi_governance_alarm_item = MAP_ITEM(fields);

/* clang-format on */

static uint32_t alarms_of(const struct rbi_governance *governance)
{
    return governance->tree.count > 0 ? rbi_tree_find(&governance->tree, 0, "alarms") : 0;
}

/** The rule with an id, or a new one with the defaults; NULL: there is no room. */
static struct rbi_alarm_rule *
rule_of(struct rbi_alarm_rules *rules, const struct rbi_tree_field *item, const char *id)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->items[i].id, id) == 0) {
            return &rules->items[i];
        }
    }
    if (rules->count == RBI_ALARMS_MAX) {
        return NULL;
    }
    struct rbi_alarm_rule *rule = &rules->items[rules->count++];
    memset(rule, 0, sizeof *rule);
    rbi_tree_defaults(item, rule);
    return rule;
}

/** @return whether there was room for all */
static bool apply_layer(const struct rbi_governance *governance, struct rbi_alarm_rules *out)
{
    const struct rbi_tree *tree = &governance->tree;
    const uint32_t alarms = alarms_of(governance);
    bool room = true;
    for (uint32_t at = alarms ? rbi_tree_first(tree, alarms) : 0; at;
         at = rbi_tree_next(tree, alarms, at)) {
        const struct rbi_tree_node *id = &tree->nodes[rbi_tree_find(tree, at, "id")];
        struct rbi_alarm_rule *rule = rule_of(out, tree->nodes[at].field, rbi_tree_text(tree, id));
        if (rule) {
            rbi_tree_apply(tree, at, rule, NULL, NULL);
        }
        room = room && rule;
    }
    return room;
}

bool rbi_governance_alarms(const struct rbi_governance_layers *layers, struct rbi_alarm_rules *out)
{
    bool room = true;
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < layers->count; i++) {
        room = apply_layer(layers->items[i], out) && room;
    }
    return room;
}

void rbi_governance_check_alarms(const struct rbi_governance *governance,
                                 struct rbi_config_errors *errors)
{
    const struct rbi_tree *tree = &governance->tree;
    const uint32_t alarms = alarms_of(governance);
    for (uint32_t at = alarms ? rbi_tree_first(tree, alarms) : 0; at;
         at = rbi_tree_next(tree, alarms, at)) {
        struct rbi_alarm_rule rule = {.id = ""};
        rbi_tree_defaults(tree->nodes[at].field, &rule);
        rbi_tree_apply(tree, at, &rule, NULL, NULL);
        const char *odd = rbi_alarm_check(&rule);
        if (odd) {
            char name[RBI_TREE_NAME_MAX];
            rbi_config_error_add(errors, tree->nodes[at].place, "%s.%s",
                                 rbi_tree_name(tree, at, name, sizeof name), odd);
        }
    }
}
