/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rows of truth tables, and says results in their words. */
#include "route_table.h"

#include "shm/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words: "name=value", up to a separator ---------------------------------------------- */

struct word {
    char name[96];
    char value[192];
};

/* Takes a word off @p rest; parentheses keep what is in them together. */
static bool next_word(const char **rest, const char *separators, struct word *word)
{
    char text[256];
    size_t length = 0;
    unsigned depth = 0;
    *rest += strspn(*rest, separators);
    while (**rest != '\0' && (depth > 0 || strchr(separators, **rest) == NULL)) {
        depth += **rest == '(' ? 1U : 0U;
        depth -= **rest == ')' && depth > 0 ? 1U : 0U;
        if (length + 1 < sizeof text) {
            text[length++] = **rest;
        }
        (*rest)++;
    }
    text[length] = '\0';
    if (length == 0) {
        return false;
    }
    const char *equals = strchr(text, '=');
    const size_t name = equals != NULL ? (size_t)(equals - text) : length;
    snprintf(word->name, sizeof word->name, "%.*s", (int)name, text);
    snprintf(word->value, sizeof word->value, "%s", equals != NULL ? equals + 1 : "");
    return true;
}

static uint32_t number(const struct word *word)
{
    return (uint32_t)strtoul(word->value, NULL, 0);
}

static bool is(const struct word *word, const char *name)
{
    return strcmp(word->name, name) == 0;
}

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%.*s", (int)size - 1, text);
}

/* The insides of "(...)". */
static void unwrap(const char *value, char *to, size_t size)
{
    const size_t length = strlen(value);
    snprintf(to, size, "%.*s", length > 2 ? (int)length - 2 : 0, value + (length > 0 ? 1 : 0));
}

static uint32_t mode(const struct word *word)
{
    return strcmp(word->value, "off") == 0      ? RBI_STAGE_OFF
           : strcmp(word->value, "prefer") == 0 ? RBI_STAGE_PREFER
                                                : RBI_STAGE_STRICT;
}

/* ---- policies ---------------------------------------------------------------------------- */

static bool read_canary(struct rbi_canary *canary, const struct word *whole)
{
    char inside[192];
    const char *rest = inside;
    struct word word;
    unwrap(whole->value, inside, sizeof inside);
    while (next_word(&rest, ",", &word)) {
        if (is(&word, "tag")) {
            copy(canary->tag, sizeof canary->tag, word.value);
        } else if (is(&word, "share")) {
            canary->share = number(&word);
        } else if (is(&word, "dry")) {
            canary->dry_run = 1;
        } else {
            return false;
        }
    }
    return true;
}

static bool read_rule(struct rbi_label_rule *rule, const struct word *whole)
{
    char inside[192];
    const char *rest = inside;
    struct word word;
    rule->method_high = UINT32_MAX;
    rule->mode = RBI_STAGE_PREFER;
    unwrap(whole->value, inside, sizeof inside);
    while (next_word(&rest, ",", &word)) {
        if (is(&word, "mode")) {
            rule->mode = mode(&word);
        } else if (is(&word, "tag")) {
            copy(rule->tag, sizeof rule->tag, word.value);
        } else if (is(&word, "set")) {
            copy(rule->set, sizeof rule->set, word.value);
        } else if (is(&word, "idc")) {
            copy(rule->idc, sizeof rule->idc, word.value);
        } else if (is(&word, "instance")) {
            copy(rule->instance, sizeof rule->instance, word.value);
        } else if (is(&word, "dry")) {
            rule->dry_run = 1;
        } else {
            return false;
        }
    }
    return true;
}

/* "[a,b][c]" */
static void read_priorities(struct rbi_locality_policy *locality, const char *text)
{
    while (*text == '[') {
        struct rbi_idc_priority *entry = &locality->priorities[locality->count++];
        const size_t length = strcspn(text, "]");
        char groups[96];
        snprintf(groups, sizeof groups, "%.*s", (int)length - 1, text + 1);
        const char *rest = groups;
        struct word word;
        while (next_word(&rest, ",", &word)) {
            copy(entry->groups[entry->count++], sizeof entry->groups[0], word.name);
        }
        text += length + 1;
    }
}

static bool read_locality(struct rbi_locality_policy *locality, const struct word *word)
{
    if (is(word, "locality")) {
        locality->mode = mode(word);
    } else if (is(word, "priority")) {
        read_priorities(locality, word->value);
    } else if (is(word, "min_local")) {
        locality->min_local = number(word);
    } else if (is(word, "locality_dry")) {
        locality->dry_run = 1;
    } else {
        return false;
    }
    return true;
}

static bool read_policy(struct route_table *table, const struct word *word)
{
    struct rbi_policy *policy = &table->policy;
    if (is(word, "keyed")) {
        table->keyed = true;
    } else if (is(word, "realm")) {
        policy->realm.mode = mode(word);
    } else if (is(word, "remote_first")) {
        policy->realm.remote_first = number(word);
    } else if (is(word, "set")) {
        policy->set.mode = mode(word);
    } else if (is(word, "set_dry")) {
        policy->set.dry_run = 1;
    } else if (is(word, "tag")) {
        policy->tags.mode = mode(word);
    } else if (is(word, "tag_dry")) {
        policy->tags.dry_run = 1;
    } else if (is(word, "leaks")) {
        policy->tags.untagged_leaks = 1;
    } else if (is(word, "canary")) {
        return read_canary(&policy->tags.canaries[policy->tags.count++], word);
    } else if (is(word, "rule")) {
        return read_rule(&policy->rules[policy->rule_count++], word);
    } else if (is(word, "panic")) {
        policy->panic.mode = strcmp(word->value, "fail") == 0 ? RBI_PANIC_FAIL : 0;
    } else if (is(word, "slow_start")) {
        policy->balance.slow_start_ms = number(word);
    } else {
        return read_locality(&policy->locality, word);
    }
    return true;
}

bool route_table_policy(struct route_table *table, const char *policy)
{
    struct word word;
    memset(table, 0, sizeof *table);
    rbi_policy_defaults(&table->policy);
    table->policy.locality.mode = RBI_STAGE_OFF;
    table->now_ns = UINT64_C(1000000000000);
    while (next_word(&policy, " ", &word)) {
        if (!read_policy(table, &word)) {
            return false;
        }
    }
    rbi_policy_seal(&table->policy);
    return rbi_policy_valid(&table->policy);
}

/* ---- rows -------------------------------------------------------------------------------- */

static bool read_caller(struct route_table *table, const char *text)
{
    struct word word;
    table->caller = (struct rbi_route_caller){.set = "", .idc = "", .host = 0};
    while (next_word(&text, " ", &word)) {
        if (is(&word, "set")) {
            copy(table->texts[0], sizeof table->texts[0], word.value);
            table->caller.set = table->texts[0];
        } else if (is(&word, "idc")) {
            copy(table->texts[1], sizeof table->texts[1], word.value);
            table->caller.idc = table->texts[1];
        } else if (is(&word, "host")) {
            table->caller.host = number(&word);
        } else if (is(&word, "node")) {
            table->caller.node = 1 + number(&word);
        } else if (!is(&word, "-")) {
            return false;
        }
    }
    return true;
}

static bool read_message(struct route_table *table, const char *text)
{
    struct word word;
    table->message = (struct rbi_route_message){.tag = "", .rules = 0, .canary = 0};
    while (next_word(&text, " ", &word)) {
        if (is(&word, "tag")) {
            copy(table->texts[2], sizeof table->texts[2], word.value);
            table->message.tag = table->texts[2];
        } else if (is(&word, "rules")) {
            for (const char *digit = word.value; *digit != '\0'; digit++) {
                table->message.rules |= 1U << (unsigned)(*digit - '0');
            }
        } else if (is(&word, "canary")) {
            table->message.canary = number(&word);
        } else if (!is(&word, "-")) {
            return false;
        }
    }
    return true;
}

static bool read_state(struct rbi_directory_instance *instance, const struct word *word)
{
    static const struct {
        const char *name;
        uint32_t state;
    } states[] = {
        {"starting", RBI_ENDPOINT_STARTING}, {"ready", RBI_ENDPOINT_READY},
        {"busy", RBI_ENDPOINT_BUSY},         {"draining", RBI_ENDPOINT_DRAINING},
        {"closed", RBI_ENDPOINT_CLOSED},
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(states); i++) {
        if (is(word, states[i].name)) {
            instance->state = states[i].state;
            return true;
        }
    }
    return false;
}

static bool read_condition(struct rbi_directory_instance *instance, const struct word *word)
{
    if (is(word, "shielded")) {
        instance->health = RBI_HEALTH_OPEN;
    } else if (is(word, "probed")) {
        instance->health = RBI_HEALTH_HALF_OPEN;
    } else if (is(word, "ramp")) {
        instance->health = RBI_HEALTH_RAMP;
        instance->ramp = number(word);
    } else if (is(word, "isolated")) {
        instance->override |= RBI_OVERRIDE_ISOLATED;
    } else if (is(word, "staged")) {
        instance->override |= RBI_OVERRIDE_STAGED;
    } else {
        return read_state(instance, word);
    }
    return true;
}

static bool read_attribute(struct route_table *table,
                           struct rbi_directory_instance *instance,
                           const struct word *word,
                           unsigned cluster,
                           unsigned index)
{
    if (is(word, "set")) {
        copy(instance->set, sizeof instance->set, word->value);
    } else if (is(word, "idc")) {
        copy(instance->idc, sizeof instance->idc, word->value);
    } else if (is(word, "tags")) { /* "a+b" */
        copy(instance->tags, sizeof instance->tags, word->value);
        for (char *plus = instance->tags; (plus = strchr(plus, '+')) != NULL;) {
            *plus = ',';
        }
    } else if (is(word, "host")) {
        instance->host = number(word);
    } else if (is(word, "weight")) {
        instance->weight = number(word);
    } else if (is(word, "age_ms")) {
        instance->ready_ns = table->now_ns - number(word) * UINT64_C(1000000);
    } else if (is(word, "hidden")) {
        table->invisible[cluster] |= UINT64_C(1) << index;
    } else if (is(word, "node")) {
        instance->node = (uint16_t)(1 + number(word));
    } else {
        return read_condition(instance, word);
    }
    return true;
}

static bool read_instance(struct route_table *table, const char *text, unsigned cluster)
{
    const unsigned index = table->clusters[cluster].count++;
    struct rbi_directory_instance *instance = &table->instances[cluster][index];
    const size_t name = strcspn(text, "(");
    memset(instance, 0, sizeof *instance);
    snprintf(instance->name, sizeof instance->name, "%.*s", (int)name, text);
    instance->name_length = (uint32_t)strlen(instance->name);
    instance->instance = rbi_instance_id(instance->name, instance->name_length);
    instance->state = RBI_ENDPOINT_READY;
    instance->weight = 100;
    char inside[192];
    const char *rest = inside;
    struct word word;
    unwrap(text + name, inside, sizeof inside);
    while (next_word(&rest, ",", &word)) {
        if (!read_attribute(table, instance, &word, cluster, index)) {
            return false;
        }
    }
    return true;
}

static void begin_cluster(struct route_table *table)
{
    const unsigned cluster = table->cluster_count++;
    table->invisible[cluster] = 0;
    table->clusters[cluster] = (struct rbi_route_cluster){
        .instances = table->instances[cluster],
        .invisible = &table->invisible[cluster],
    };
}

/* What the daemon says of the calls from the place of each instance, for all of the cluster. */
static void demand(struct route_table *table, bool of_group, uint16_t share)
{
    const unsigned cluster = table->cluster_count - 1;
    for (unsigned i = 0; i < table->clusters[cluster].count; i++) {
        struct rbi_directory_instance *instance = &table->instances[cluster][i];
        *(of_group ? &instance->demand : &instance->node_demand) = share;
    }
}

static bool read_instances(struct route_table *table, const char *text)
{
    struct word word;
    table->cluster_count = 0;
    begin_cluster(table);
    while (next_word(&text, " ", &word)) {
        char whole[292];
        snprintf(whole, sizeof whole, "%s%s%s", word.name, word.value[0] != '\0' ? "=" : "",
                 word.value);
        if (is(&word, ";")) {
            begin_cluster(table);
        } else if (is(&word, "panic")) {
            table->clusters[table->cluster_count - 1].panic = true;
        } else if (is(&word, "demand") || is(&word, "node_demand")) {
            demand(table, is(&word, "demand"), (uint16_t)number(&word));
        } else if (!is(&word, "-") && !read_instance(table, whole, table->cluster_count - 1)) {
            return false;
        }
    }
    return true;
}

bool route_table_row(struct route_table *table,
                     const char *caller,
                     const char *message,
                     const char *instances)
{
    return read_caller(table, caller) && read_message(table, message) &&
           read_instances(table, instances);
}

void route_table_run(struct route_table *table, struct rbi_route_memory *memory)
{
    const struct rbi_route_input input = {
        .caller = &table->caller,
        .message = &table->message,
        .policy = &table->policy,
        .clusters = table->clusters,
        .cluster_count = table->cluster_count,
        .now_ns = table->now_ns,
    };
    rbi_route_run(&input, memory, table->entries, &table->result);
}

/* ---- results ----------------------------------------------------------------------------- */

static uint32_t weight_of(const struct route_table *table, const struct rbi_route_entry *entry)
{
    return table->keyed ? entry->hash_weight : entry->weight;
}

static void append(char *text, size_t size, const char *more)
{
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length > 0 ? " " : "", more);
}

void route_table_result(const struct route_table *table,
                        const char *expected,
                        char *text,
                        size_t size)
{
    uint64_t total = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < table->result.entry_count; i++) {
        total += weight_of(table, &table->entries[i]);
    }
    for (unsigned i = 0; i < table->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &table->entries[i];
        const uint64_t weight = weight_of(table, entry);
        const char *name = table->instances[entry->cluster][entry->index].name;
        char one[96];
        if (weight > 0 && strchr(expected, ':') != NULL) {
            snprintf(one, sizeof one, "%s:%llu", name,
                     (unsigned long long)((weight * 100 + total / 2) / total));
            append(text, size, one);
        } else if (weight > 0) {
            append(text, size, name);
        }
    }
    if (total == 0) {
        const unsigned stage = table->keyed ? table->result.keyed_emptied : table->result.emptied;
        snprintf(text, size, "- (%s)", rbi_route_stage_name((enum rbi_route_stage)stage));
    }
}
