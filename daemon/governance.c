/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/governance.h"

#include "bus/governance_static.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/policy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers ---------------------------------------------------------------------------- */

struct rbi_governance_layers rbi_live_layers(const struct rbi_live *live)
{
    struct rbi_governance_layers layers = {.count = RBI_LIVE_LAYERS, .fixed = RBI_LIVE_APPLIED};
    for (unsigned i = 0; i < RBI_LIVE_LAYERS; i++) {
        layers.items[i] = &live->layers[i];
    }
    return layers;
}

void rbi_live_deinit(struct rbi_live *live)
{
    rbi_policies_clear(live);
    free(live->policies);
    for (unsigned i = 0; i < RBI_LIVE_LAYERS; i++) {
        rbi_governance_deinit(&live->layers[i]);
    }
    *live = (struct rbi_live){.generation = 0};
}

/* ---- instances ------------------------------------------------------------------------- */

static void label_copy(char *to, const char *own, const char *said, bool given)
{
    memset(to, 0, RBI_LABEL_MAX + 1);
    memcpy(to, given ? said : own, strnlen(given ? said : own, RBI_LABEL_MAX));
}

static void live_label(const struct rbi_endpoint *endpoint,
                       const struct rbi_governance_layers *layers,
                       struct rbi_endpoint_labels *seen)
{
    _Static_assert(RBI_LABEL_MAX == RBI_DIRECTORY_LABEL_MAX, "labels of the operator");
    const struct rbi_endpoint_labels *own = &endpoint->own;
    struct rbi_governance_override said = {.given = 0};
    if (endpoint->name_offset != 0) {
        (void)rbi_governance_override(layers, endpoint->path.bytes, endpoint->path.length, &said);
    }
    seen->weight = said.given & RBI_GIVEN_WEIGHT ? said.weight : own->weight;
    seen->weight_given = (said.given & RBI_GIVEN_WEIGHT) != 0;
    seen->override =
        (said.isolated ? RBI_OVERRIDE_ISOLATED : 0) | (said.staged ? RBI_OVERRIDE_STAGED : 0);
    label_copy(seen->set, own->set, said.set, said.given & RBI_GIVEN_SET);
    label_copy(seen->idc, own->idc, said.idc, said.given & RBI_GIVEN_IDC);
    label_copy(seen->tags, own->tags, said.tags, said.given & RBI_GIVEN_TAGS);
}

bool rbi_live_label(struct rbi_endpoint *endpoint)
{
    const struct rbi_governance_layers layers = rbi_live_layers(&endpoint->daemon->live);
    const struct rbi_endpoint_labels before = endpoint->seen;
    live_label(endpoint, &layers, &endpoint->seen);
    return memcmp(&before, &endpoint->seen, sizeof(before)) != 0;
}

/* ---- a change -------------------------------------------------------------------------- */

/** Numbers of all clusters that others see: publishing may take idle ones out of the map. */
static uint64_t *live_list_clusters(struct rbi_registry *registry, uint64_t *count)
{
    uint64_t *ids = calloc(rbi_map_count(&registry->clusters) + 1, sizeof(*ids));
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    const struct rbi_cluster *cluster = NULL;
    *count = 0;
    while (ids && (cluster = rbi_map_next(&registry->clusters, &cursor)) != NULL) {
        if (cluster->epoch != 0) {
            ids[(*count)++] = cluster->id;
        }
    }
    return ids;
}

/** @return how many have another policy now */
static uint64_t live_update_clusters(struct rbi_daemon *daemon)
{
    uint64_t count = 0;
    uint64_t changed = 0;
    uint64_t *ids = live_list_clusters(&daemon->registry, &count);
    if (!ids) {
        rbi_log(RBI_LOG_ERROR, "policy_stale", "cluster=all error=\"no memory\"");
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct rbi_cluster *cluster = rbi_registry_cluster(&daemon->registry, ids[i]);
        if (!cluster) {
            continue;
        }
        const uint64_t key = rbi_daemon_policy(daemon, cluster)->fingerprint;
        if (cluster->policy_key != (key == rbi_policy_default()->fingerprint ? 0 : key)) {
            rbi_registry_refresh(daemon, cluster);
            changed++;
        }
    }
    free(ids);
    return changed;
}

/** Labels all instances anew, and marks those that are seen otherwise now. */
static void live_label_instances(struct rbi_daemon *daemon)
{
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        struct rbi_endpoint *endpoint = RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        const struct rbi_endpoint_labels before = endpoint->seen;
        if (endpoint->cluster && rbi_live_label(endpoint)) {
            endpoint->stale = true;
            if (strcmp(before.tags, endpoint->seen.tags) != 0) {
                rbi_rights_forget(endpoint->peer); /* a rule may name them */
            }
        }
    }
}

/** @return how many are seen otherwise now */
static uint64_t live_update_instances(struct rbi_daemon *daemon)
{
    uint64_t changed = 0;
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        struct rbi_endpoint *endpoint = RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->stale) { /* with all others of its cluster */
            changed += rbi_registry_update_stale(daemon, endpoint->cluster);
        }
    }
    return changed;
}

/** Rules of the file alone, which stand first in all of them. @return whether there is room */
static bool live_file_rights(const struct rbi_governance_layers *layers, struct rbi_acl *out)
{
    const struct rbi_governance_layers file = {.count = 1, .items = {layers->items[0]}};
    return rbi_governance_acl(&file, out);
}

/** A rule of the file may have come to an id that a push had before: it stands as it is there. */
static void live_keep_file_rights(struct rbi_acl *all, const struct rbi_acl *file)
{
    for (uint32_t i = 0; i < file->count; i++) {
        if (memcmp(&all->rules[i], &file->rules[i], sizeof(file->rules[i])) != 0) {
            rbi_log(RBI_LOG_WARNING, "rights_kept", "rule=%s", file->rules[i].id);
            all->rules[i] = file->rules[i];
        }
    }
}

static void live_update_rights(struct rbi_daemon *daemon)
{
    const struct rbi_governance_layers layers = rbi_live_layers(&daemon->live);
    struct rbi_acl *acls = calloc(2, sizeof(*acls)); /* all, the file's */
    if (!acls) {
        rbi_log(RBI_LOG_ERROR, "rights_stale", "error=\"no memory\"");
        return;
    }
    if (!rbi_governance_acl(&layers, &acls[0])) {
        rbi_log(RBI_LOG_WARNING, "rights_cut", "rules=%u", RBI_ACL_RULES_MAX);
    }
    (void)live_file_rights(&layers, &acls[1]);
    live_keep_file_rights(&acls[0], &acls[1]);
    rbi_rights_set(daemon, &acls[0]);
    free(acls);
}

/** The file may have got an item whose id a push had before: it is as the file says. */
static void live_log_kept(const struct rbi_daemon *daemon)
{
    struct rbi_governance_clash clash;
    const struct rbi_governance *layers = daemon->live.layers;
    if (rbi_governance_clash(&layers[RBI_LIVE_FILE], &layers[RBI_LIVE_APPLIED], &clash) == 1) {
        rbi_log(RBI_LOG_WARNING, "items_kept", "file=%s:%u:%u list=%s id=%s",
                daemon->config_path ? daemon->config_path : "none", clash.fixed.line,
                clash.fixed.column, clash.list, clash.id);
    }
}

static struct rbi_live_change live_changed(struct rbi_daemon *daemon)
{
    live_log_kept(daemon);
    rbi_policies_clear(&daemon->live);
    daemon->live.generation++;
    live_label_instances(daemon); /* first: a rule may name a tag that one has by now */
    live_update_rights(daemon);   /* then: nobody is told of what it may not see */
    rbi_alarms_set(daemon);
    const uint64_t instances = live_update_instances(daemon);
    const uint64_t clusters = live_update_clusters(daemon);
    rbi_dry_desk_update(daemon);
    if (clusters + instances != 0) {
        rbi_log(RBI_LOG_INFO, "governance_changed", "clusters=%" PRIu64 " instances=%" PRIu64,
                clusters, instances);
    }
    return (struct rbi_live_change){.clusters = clusters, .instances = instances};
}

static void live_take(struct rbi_live *live, enum rbi_live_layer layer, struct rbi_governance *text)
{
    rbi_governance_deinit(&live->layers[layer]);
    live->layers[layer] = *text;
    *text = RBI_GOVERNANCE_NULL;
}

void rbi_live_set_file(struct rbi_daemon *daemon, struct rbi_governance *file)
{
    live_take(&daemon->live, RBI_LIVE_FILE, file);
    (void)live_changed(daemon);
}

struct rbi_live_change rbi_live_set(struct rbi_daemon *daemon,
                                    struct rbi_governance *applied,
                                    struct rbi_governance *edits)
{
    live_take(&daemon->live, RBI_LIVE_APPLIED, applied);
    live_take(&daemon->live, RBI_LIVE_EDITS, edits);
    return live_changed(daemon);
}

/* ---- a change that is only thought of --------------------------------------------------- */

/** @return whether nothing is wrong with the cluster that was not before */
static bool live_try_cluster(struct rbi_daemon *daemon,
                             const struct rbi_governance_layers *then,
                             struct rbi_cluster *cluster,
                             bool *changes,
                             struct rbi_text *why)
{
    struct rbi_policy after;
    struct rbi_policy before;
    struct rbi_governance_fault fault;
    const struct rbi_text *path = &cluster->path;
    const struct rbi_governance_layers now = rbi_live_layers(&daemon->live);
    const bool good = rbi_governance_policy(then, path->bytes, path->length, &after, &fault);
    *changes = rbi_daemon_policy(daemon, cluster)->fingerprint != after.fingerprint;
    if (good || !rbi_governance_policy(&now, path->bytes, path->length, &before, NULL)) {
        return true;
    }
    rbi_text_format(why, "%.120s: %.120s", path->bytes, fault.text);
    return false;
}

static bool live_try_clusters(struct rbi_daemon *daemon,
                              const struct rbi_governance_layers *then,
                              uint64_t *changed,
                              struct rbi_text *why)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_cluster *cluster = NULL;
    while ((cluster = rbi_map_next(&daemon->registry.clusters, &cursor)) != NULL) {
        bool changes = false;
        if (!live_try_cluster(daemon, then, cluster, &changes, why)) {
            return false;
        }
        *changed += changes;
    }
    return true;
}

static uint64_t live_try_instances(struct rbi_daemon *daemon,
                                   const struct rbi_governance_layers *then)
{
    uint64_t changed = 0;
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        const struct rbi_endpoint *endpoint =
            RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        struct rbi_endpoint_labels seen;
        if (endpoint->cluster) {
            live_label(endpoint, then, &seen);
            changed += memcmp(&seen, &endpoint->seen, sizeof(seen)) != 0;
        }
    }
    return changed;
}

/** Rights of a push stand behind those of the file and do not change them (features B11). */
static bool live_rights_fit(const struct rbi_governance_layers *then, struct rbi_text *why)
{
    struct rbi_acl *acls = calloc(2, sizeof(*acls));
    bool good = false;
    if (!acls) {
        rbi_text_set(why, "no memory to check it");
    } else if (!live_file_rights(then, &acls[0]) || !rbi_governance_acl(then, &acls[1])) {
        rbi_text_format(why, "rights.rules: together with the file more than %u",
                        RBI_ACL_RULES_MAX);
    } else if (memcmp(acls[0].rules, acls[1].rules, acls[0].count * sizeof(acls[0].rules[0])) !=
               0) {
        rbi_text_set(why, "rights.rules: an id is one of the file's, whose rules stay as they are");
    } else {
        good = true;
    }
    free(acls);
    return good;
}

/** @return whether nothing is wrong that a reload of the file has not made so before */
static bool live_try_rights(const struct rbi_daemon *daemon,
                            const struct rbi_governance_layers *then,
                            struct rbi_text *why)
{
    const struct rbi_governance_layers now = rbi_live_layers(&daemon->live);
    struct rbi_text ignored;
    return live_rights_fit(then, why) || !live_rights_fit(&now, &ignored);
}

bool rbi_live_try_push(const struct rbi_daemon *daemon,
                       const struct rbi_governance *pushed,
                       struct rbi_text *why)
{
    struct rbi_governance_clash clash;
    const int result = rbi_governance_clash(&daemon->live.layers[RBI_LIVE_FILE], pushed, &clash);
    if (result == 1) {
        rbi_text_format(why,
                        "%u:%u: %s: %.40s stands in %.80s:%u:%u, and a push does not change it: "
                        "take another id, or change the file and reload it",
                        clash.pushed.line, clash.pushed.column, clash.list, clash.id,
                        daemon->config_path ? daemon->config_path : "the file", clash.fixed.line,
                        clash.fixed.column);
    } else if (result < 0) {
        rbi_text_set(why, "no memory to check it");
    }
    return result == 0;
}

/** @return whether there is room for all alarms, or was none before */
static bool live_try_alarms(const struct rbi_daemon *daemon,
                            const struct rbi_governance_layers *then,
                            struct rbi_text *why)
{
    const struct rbi_governance_layers now = rbi_live_layers(&daemon->live);
    struct rbi_alarm_rules *rules = calloc(1, sizeof(*rules));
    const bool good =
        rules && (rbi_governance_alarms(then, rules) || !rbi_governance_alarms(&now, rules));
    if (!rules) {
        rbi_text_set(why, "no memory to check it");
    } else if (!good) {
        rbi_text_format(why, "alarms: together with the file more than %u", RBI_ALARMS_MAX);
    }
    free(rules);
    return good;
}

bool rbi_live_try(struct rbi_daemon *daemon,
                  const struct rbi_governance *applied,
                  const struct rbi_governance *edits,
                  struct rbi_live_change *change,
                  struct rbi_text *why)
{
    struct rbi_governance_layers then = rbi_live_layers(&daemon->live);
    then.items[RBI_LIVE_APPLIED] = applied;
    then.items[RBI_LIVE_EDITS] = edits;
    *change = (struct rbi_live_change){.clusters = 0};
    if (!live_try_rights(daemon, &then, why) || !live_try_alarms(daemon, &then, why) ||
        !live_try_clusters(daemon, &then, &change->clusters, why)) {
        return false;
    }
    change->instances = live_try_instances(daemon, &then);
    return true;
}

void rbi_live_init(struct rbi_daemon *daemon, struct rbi_governance *file)
{
    daemon->live = (struct rbi_live){.generation = 1};
    if (file) {
        daemon->live.layers[RBI_LIVE_FILE] = *file;
        *file = RBI_GOVERNANCE_NULL;
    }
    live_update_rights(daemon);
    rbi_alarms_set(daemon);
}
