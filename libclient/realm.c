/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/realm.c - the same cluster of other businesses, which the policy of a target imports:
 * they are targeted with it, as it is, and untargeted with it. Whose instances serve is the
 * router chain's to say (bus/route_realm.c): the own ones while any of them is healthy.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool imports(const struct rbi_cluster *cluster, const struct rbi_cluster *other)
{
    for (unsigned i = 0; i < cluster->import_count; i++) {
        if (cluster->imports[i] == other) {
            return true;
        }
    }
    return false;
}

/* "/game_b/eu/..." for "/game_a/eu/...". @return false: too long, or no path, or the same */
static bool
import_path(const struct rbi_cluster *cluster, const char *realm, char *out, size_t size)
{
    struct rbi_path_info info;
    const char *rest = strchr(cluster->path + 1, '/');
    const int length = snprintf(out, size, "/%s%s", realm, rest != NULL ? rest : "");
    return length > 0 && (size_t)length < size && strcmp(out, cluster->path) != 0 &&
           rbi_path_parse(out, (size_t)length, &info) == 0 &&
           info.elements == RBI_PATH_CLUSTER_ELEMENTS;
}

/* What was chosen of it is chosen no more: @p cluster is to be made anew. */
static void release(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_cluster *import)
{
    cluster->dispatch_stale |= RBI_DISPATCH_STALE;
    import->importers--;
    if (import->importers == 0 && !import->whole) {
        rbi_cluster_narrow(bus, import);
    }
}

void rbi_realm_release(struct ringbus *bus, struct rbi_cluster *cluster)
{
    struct rbi_cluster **old = cluster->imports;
    const unsigned count = cluster->import_count;
    cluster->imports = NULL;
    cluster->import_count = 0;
    for (unsigned i = 0; i < count; i++) {
        release(bus, cluster, old[i]);
    }
    free(old);
}

/* @return false: no memory */
static bool take(struct ringbus *bus, struct rbi_cluster *cluster, const char *path)
{
    struct rbi_cluster *import = rbi_cluster_find(bus, rbi_cluster_id(path, strlen(path)));
    const bool all = import != NULL && import->all;
    if (import == NULL) {
        import = rbi_cluster_add(bus, path);
    }
    if (import == NULL) {
        return false;
    }
    if (imports(cluster, import)) {
        return true;
    }
    cluster->imports[cluster->import_count++] = import;
    import->importers++;
    if (!all) {
        import->redeliver = cluster->redeliver;
        import->redeliver_ms = cluster->redeliver_ms;
        rbi_cluster_want_all(bus, import, &cluster->target);
    }
    return true;
}

void rbi_realm_follow(struct ringbus *bus, struct rbi_cluster *cluster)
{
    const struct rbi_realm_policy *realm = &rbi_cluster_policy(cluster)->realm;
    struct rbi_cluster **old = cluster->imports;
    const unsigned old_count = cluster->import_count;
    const bool wanted = realm->mode == RBI_STAGE_PREFER && cluster->whole;
    char path[RBI_PATH_MAX + 1];
    cluster->imports = NULL;
    cluster->import_count = 0;
    if (wanted && realm->count > 0) {
        cluster->imports = calloc(realm->count, sizeof(struct rbi_cluster *));
    }
    for (unsigned i = 0; cluster->imports != NULL && i < realm->count; i++) {
        if (import_path(cluster, realm->imports[i], path, sizeof path) &&
            !take(bus, cluster, path)) {
            (void)rbi_fail_errno(bus, -ENOMEM, "the imports of a target");
            break; /* those before it serve */
        }
    }
    for (unsigned i = 0; i < old_count; i++) {
        release(bus, cluster,
                old[i]); /* after the new ones were taken: what stays is not let go of */
    }
    free(old);
}
