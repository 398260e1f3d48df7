/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/governance.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/policy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers ---------------------------------------------------------------------------- */

struct rbi_governance_layers rbi_live_layers(const struct rbi_live *live)
{
    struct rbi_governance_layers layers = {.count = RBI_LIVE_LAYERS};
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

bool rbi_live_label(struct rbi_endpoint *endpoint)
{
    _Static_assert(RBI_LABEL_MAX == RBI_DIRECTORY_LABEL_MAX, "labels of the operator");
    const struct rbi_endpoint_labels *own = &endpoint->own;
    const struct rbi_endpoint_labels before = endpoint->seen;
    const struct rbi_governance_layers layers = rbi_live_layers(&endpoint->daemon->live);
    struct rbi_governance_override said = {.given = 0};
    if (endpoint->name_offset != 0) {
        (void)rbi_governance_override(&layers, endpoint->path.bytes, endpoint->path.length, &said);
    }
    endpoint->seen.weight = said.given & RBI_GIVEN_WEIGHT ? said.weight : own->weight;
    endpoint->seen.override =
        (said.isolated ? RBI_OVERRIDE_ISOLATED : 0) | (said.staged ? RBI_OVERRIDE_STAGED : 0);
    label_copy(endpoint->seen.set, own->set, said.set, said.given & RBI_GIVEN_SET);
    label_copy(endpoint->seen.idc, own->idc, said.idc, said.given & RBI_GIVEN_IDC);
    label_copy(endpoint->seen.tags, own->tags, said.tags, said.given & RBI_GIVEN_TAGS);
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

/** @return how many are seen otherwise now */
static uint64_t live_update_instances(struct rbi_daemon *daemon)
{
    uint64_t changed = 0;
    RBI_LIST_EACH(node, spare, &daemon->registry.endpoints)
    {
        struct rbi_endpoint *endpoint = RBI_CONTAINER_OF(node, struct rbi_endpoint, in_registry);
        if (endpoint->cluster && rbi_live_label(endpoint)) {
            rbi_rights_forget(endpoint->peer); /* a rule may name its tags */
            rbi_registry_update(daemon, endpoint);
            changed++;
        }
    }
    return changed;
}

static void live_update_rights(struct rbi_daemon *daemon)
{
    const struct rbi_governance_layers layers = rbi_live_layers(&daemon->live);
    struct rbi_acl *acl = calloc(1, sizeof(*acl));
    if (!acl) {
        rbi_log(RBI_LOG_ERROR, "rights_stale", "error=\"no memory\"");
        return;
    }
    if (!rbi_governance_acl(&layers, acl)) {
        rbi_log(RBI_LOG_WARNING, "rights_cut", "rules=%u", RBI_ACL_RULES_MAX);
    }
    rbi_rights_set(daemon, acl);
    free(acl);
}

static void live_changed(struct rbi_daemon *daemon)
{
    rbi_policies_clear(&daemon->live);
    daemon->live.generation++;
    live_update_rights(daemon); /* first: nobody is told of what it may not see */
    const uint64_t instances = live_update_instances(daemon);
    const uint64_t clusters = live_update_clusters(daemon);
    if (clusters + instances != 0) {
        rbi_log(RBI_LOG_INFO, "governance_changed", "clusters=%" PRIu64 " instances=%" PRIu64,
                clusters, instances);
    }
}

void rbi_live_replace(struct rbi_daemon *daemon,
                      enum rbi_live_layer layer,
                      struct rbi_governance *text)
{
    rbi_governance_deinit(&daemon->live.layers[layer]);
    daemon->live.layers[layer] = *text;
    *text = RBI_GOVERNANCE_NULL;
    live_changed(daemon);
}

void rbi_live_init(struct rbi_daemon *daemon, struct rbi_governance *file)
{
    daemon->live = (struct rbi_live){.generation = 1};
    if (file) {
        daemon->live.layers[RBI_LIVE_FILE] = *file;
        *file = RBI_GOVERNANCE_NULL;
    }
    live_update_rights(daemon);
}
