/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alarms.h"

#include "bus/glob.h"
#include "bus/governance.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rbi_alarms_init(struct rbi_alarm_desk *desk)
{
    *desk = (struct rbi_alarm_desk){.generation = 1};
    rbi_list_init(&desk->entries);
    return rbi_map_init(&desk->by_key);
}

/* ---- entries ----------------------------------------------------------------------------- */

/** Name of one rule for one cluster. */
static uint64_t alarm_key(uint64_t cluster, const char *id)
{
    char text[sizeof(cluster) + RBI_LABEL_MAX];
    const size_t length = strnlen(id, RBI_LABEL_MAX);
    memcpy(text, &cluster, sizeof(cluster));
    memcpy(text + sizeof(cluster), id, length);
    return rbi_cluster_id(text, sizeof(cluster) + length);
}

static void alarm_drop(struct rbi_alarm_desk *desk, struct rbi_alarm_entry *entry)
{
    (void)rbi_map_remove(&desk->by_key, entry->key);
    rbi_list_remove(&entry->in_desk);
    free(entry);
}

void rbi_alarms_deinit(struct rbi_alarm_desk *desk)
{
    while (desk->by_key.ready && !rbi_list_empty(&desk->entries)) {
        alarm_drop(desk, RBI_LIST_FIRST(&desk->entries, struct rbi_alarm_entry, in_desk));
    }
    rbi_map_deinit(&desk->by_key);
    free(desk->rules);
    *desk = (struct rbi_alarm_desk){.rules = NULL};
}

/** Makes the entry of a rule and a cluster, if there is none. Without memory it is not judged. */
static void
alarm_add(struct rbi_alarm_desk *desk, uint32_t rule, uint64_t cluster, const struct rbi_text *path)
{
    const uint64_t key = alarm_key(cluster, desk->rules->items[rule].id);
    struct rbi_alarm_entry *entry = NULL;
    if (rbi_map_get(&desk->by_key, key)) {
        return;
    }
    entry = calloc(1, sizeof(*entry));
    if (!entry || rbi_map_put(&desk->by_key, key, entry) < 0) {
        rbi_log(RBI_LOG_ERROR, "alarm_lost", "rule=%s path=%s error=\"no memory\"",
                desk->rules->items[rule].id, path->bytes);
        free(entry);
        return;
    }
    entry->number = ++desk->next_number;
    entry->key = key;
    entry->rule = rule;
    entry->cluster = cluster;
    entry->path = *path;
    rbi_list_push_back(&desk->entries, &entry->in_desk);
}

static bool rule_matches(const struct rbi_alarm_rule *rule, const struct rbi_text *path)
{
    return rbi_glob_match(rule->match, strlen(rule->match), path->bytes, path->length);
}

/** A rule that names one cluster is about it before anybody has been there. */
static void alarm_add_named(struct rbi_alarm_desk *desk, uint32_t rule)
{
    const char *match = desk->rules->items[rule].match;
    struct rbi_path_info info;
    struct rbi_text path;
    if (!strchr(match, '*') && rbi_path_parse(match, strlen(match), &info) == 0 &&
        info.elements == RBI_PATH_CLUSTER_ELEMENTS) {
        rbi_text_set(&path, match);
        alarm_add(desk, rule, rbi_cluster_id(path.bytes, path.length), &path);
    }
}

/** Clusters that have come since the last look, or since the rules are others. */
static void alarms_scan(struct rbi_daemon *daemon)
{
    struct rbi_alarm_desk *desk = &daemon->alarms;
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_cluster *cluster = NULL;
    while ((cluster = rbi_map_next(&daemon->registry.clusters, &cursor)) != NULL) {
        if (cluster->alarm_generation == desk->generation) {
            continue;
        }
        cluster->alarm_generation = desk->generation;
        for (uint32_t i = 0; i < desk->rules->count; i++) {
            if (rule_matches(&desk->rules->items[i], &cluster->path)) {
                alarm_add(desk, i, cluster->id, &cluster->path);
            }
        }
    }
}

/* ---- sweeps ------------------------------------------------------------------------------- */

static void facts_member(const struct rbi_endpoint *endpoint, struct rbi_alarm_facts *facts)
{
    const bool chosen =
        endpoint->visible && (endpoint->seen.override & RBI_OVERRIDE_ISOLATED) == 0 &&
        (endpoint->state == RBI_ENDPOINT_READY || endpoint->state == RBI_ENDPOINT_BUSY);
    const uint32_t health = rbi_origin_health(endpoint);
    const bool shielded = health == RBI_HEALTH_OPEN || health == RBI_HEALTH_HALF_OPEN;
    if (!chosen) {
        return;
    }
    facts->instances++;
    facts->shielded += shielded;
    facts->weight += endpoint->seen.weight;
    facts->healthy += shielded ? 0 : endpoint->seen.weight;
    if (endpoint->page.base) {
        const struct rbi_page *page = endpoint->page.base;
        facts->queue_depth = rbi_max_u64(facts->queue_depth, rbi_load_rlx(&page->load_depth));
    }
}

/** @param recent  room for the sum of the window */
static void facts_of(const struct rbi_cluster *cluster,
                     uint64_t now_ns,
                     struct rbi_figures *recent,
                     struct rbi_alarm_facts *facts)
{
    *facts = (struct rbi_alarm_facts){.recent = NULL};
    if (!cluster) {
        return;
    }
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        facts_member(cluster->members[i], facts);
    }
    facts->panics = rbi_health_panics(cluster);
    if (cluster->health && cluster->health->figures) {
        facts->span_ns = rbi_figures_window_sum(&cluster->health->figures->recent, now_ns, recent);
        facts->recent = recent;
    }
}

static void alarm_change(struct rbi_daemon *daemon,
                         const struct rbi_alarm_entry *entry,
                         enum rbi_alarm_change change)
{
    struct rbi_alarm_desk *desk = &daemon->alarms;
    if (change != RBI_ALARM_NONE) {
        desk->firing += change == RBI_ALARM_FIRED ? 1 : UINT32_MAX;
        desk->told++;
        rbi_alarm_tell(daemon, entry, &desk->rules->items[entry->rule], change);
    }
}

/** Nothing can be said of a cluster that was forgotten, unless a rule names it. */
static bool alarm_outlived(struct rbi_daemon *daemon,
                           struct rbi_alarm_entry *entry,
                           const struct rbi_cluster *cluster)
{
    const struct rbi_alarm_rule *rule = &daemon->alarms.rules->items[entry->rule];
    if (cluster || !strchr(rule->match, '*')) {
        return false;
    }
    if (rbi_alarm_fires(&entry->alarm)) {
        alarm_change(daemon, entry, RBI_ALARM_RESOLVED);
    }
    alarm_drop(&daemon->alarms, entry);
    return true;
}

bool rbi_alarms_wanted(const struct rbi_daemon *daemon)
{
    return daemon->alarms.rules && daemon->alarms.rules->count != 0;
}

void rbi_alarms_sweep(struct rbi_daemon *daemon)
{
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    struct rbi_alarm_facts facts = {.recent = NULL};
    struct rbi_figures recent;
    uint64_t known = 0;
    /* Those of the daemon before have not all come back: what is missing says nothing. */
    if (!rbi_alarms_wanted(daemon) || daemon->settle.settling) {
        return;
    }
    alarms_scan(daemon);
    RBI_LIST_EACH(node, spare, &daemon->alarms.entries)
    {
        struct rbi_alarm_entry *entry = RBI_CONTAINER_OF(node, struct rbi_alarm_entry, in_desk);
        const struct rbi_cluster *cluster = rbi_registry_cluster(&daemon->registry, entry->cluster);
        if (alarm_outlived(daemon, entry, cluster)) {
            continue;
        }
        if (known != entry->cluster) { /* those of a cluster stand together */
            facts_of(cluster, now_ns, &recent, &facts);
            known = entry->cluster;
        }
        const struct rbi_alarm_rule *rule = &daemon->alarms.rules->items[entry->rule];
        alarm_change(daemon, entry, rbi_alarm_step(&entry->alarm, rule, &facts, now_ns));
    }
}

/* ---- another configuration ---------------------------------------------------------------- */

/** Index of a rule, or UINT32_MAX. */
static uint32_t rule_find(const struct rbi_alarm_rules *rules, const char *id)
{
    for (uint32_t i = 0; rules && i < rules->count; i++) {
        if (strcmp(rules->items[i].id, id) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/** Entries whose rule is gone, or is about others now, are over; the rest goes on. */
static void alarms_move(struct rbi_daemon *daemon, const struct rbi_alarm_rules *rules)
{
    struct rbi_alarm_desk *desk = &daemon->alarms;
    RBI_LIST_EACH(node, spare, &desk->entries)
    {
        struct rbi_alarm_entry *entry = RBI_CONTAINER_OF(node, struct rbi_alarm_entry, in_desk);
        const uint32_t rule = rule_find(rules, desk->rules->items[entry->rule].id);
        if (rule != UINT32_MAX && rule_matches(&rules->items[rule], &entry->path)) {
            entry->rule = rule;
            continue;
        }
        if (rbi_alarm_fires(&entry->alarm)) {
            alarm_change(daemon, entry, RBI_ALARM_RESOLVED);
        }
        alarm_drop(desk, entry);
    }
}

void rbi_alarms_set(struct rbi_daemon *daemon)
{
    struct rbi_alarm_desk *desk = &daemon->alarms;
    const struct rbi_governance_layers layers = rbi_live_layers(&daemon->live);
    struct rbi_alarm_rules *rules = calloc(1, sizeof(*rules));
    if (!rules) {
        rbi_log(RBI_LOG_ERROR, "alarms_stale", "error=\"no memory\"");
        return;
    }
    if (!rbi_governance_alarms(&layers, rules)) {
        rbi_log(RBI_LOG_WARNING, "alarms_cut", "rules=%u", RBI_ALARMS_MAX);
    }
    const bool same =
        desk->rules ? memcmp(rules, desk->rules, sizeof(*rules)) == 0 : rules->count == 0;
    if (same) {
        free(rules);
        return;
    }
    alarms_move(daemon, rules);
    free(desk->rules);
    desk->rules = rules;
    desk->generation++;
    for (uint32_t i = 0; i < rules->count; i++) {
        alarm_add_named(desk, i);
    }
    rbi_health_wake(daemon);
}
