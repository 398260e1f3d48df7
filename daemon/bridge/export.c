/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/export.h"

#include "daemon/bridge/export_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rbi_export_new(uint64_t incarnation,
                   const struct rbi_bridge_globs *globs,
                   rbi_export_sink_fn sink,
                   void *context,
                   struct rbi_export **out)
{
    struct rbi_export *export = calloc(1, sizeof *export);
    if (!export) {
        return -ENOMEM;
    }
    export->log = calloc(RBI_EXPORT_LOG_MAX, sizeof *export->log);
    const int result = export->log ? rbi_map_init(&export->by_id) : -ENOMEM;
    if (result < 0) {
        free(export->log);
        free(export);
        return result;
    }
    rbi_list_init(&export->clusters);
    rbi_list_init(&export->hosts);
    export->incarnation = incarnation;
    export->globs = globs;
    export->sink = sink;
    export->context = context;
    export->log_from = 1;
    *out = export;
    return 0;
}

void rbi_export_configure(struct rbi_export *export, const struct rbi_bridge_globs *globs)
{
    export->globs = globs;
    export->globs_changed = true;
}

/* ---- what has changed -------------------------------------------------------------------- */

void rbi_export_removed(struct rbi_export *export, const struct rbi_pidf *who, uint32_t reason)
{
    if (export->reason_count < EXPORT_REASONS_MAX) { /* else it is taken for a crash */
        export->reasons[export->reason_count++] =
            (struct export_reason){.who = *who, .reason = reason, .look = export->look};
    }
}

void rbi_export_note(struct rbi_export *export, const struct rbi_remote *remote, uint32_t reason)
{
    const uint64_t revision = ++export->revision;
    struct rbi_remote_item *item = &export->log[revision % RBI_EXPORT_LOG_MAX];
    *item = (struct rbi_remote_item){
        .incarnation = export->incarnation, .revision = revision, .remote = *remote};
    if (reason != UINT32_MAX) {
        item->flags = RBI_ITEM_REMOVED;
        item->remote.state = reason;
    }
    if (revision - export->log_from >= RBI_EXPORT_LOG_MAX) {
        export->log_from = revision - RBI_EXPORT_LOG_MAX + 1;
    }
}

/** Whether somebody who knows that revision can be told what changed since. */
static bool log_has(const struct rbi_export *export, uint64_t known)
{
    return known <= export->revision && known + 1 >= export->log_from;
}

/* ---- all of it --------------------------------------------------------------------------- */

static void list_release(struct rbi_export *export, struct export_list **list)
{
    struct export_list *old = *list;
    *list = NULL;
    if (old && --old->users == 0) {
        export->list = export->list == old ? NULL : export->list;
        free(old);
    }
}

/** What is exported now, which those who ask for it at one time share. */
static struct export_list *list_take(struct rbi_export *export)
{
    struct export_list *list = export->list;
    if (list && list->revision == export->revision) {
        list->users++;
        return list;
    }
    list = malloc(sizeof *list + export->count * sizeof list->remotes[0]);
    if (!list) {
        return NULL;
    }
    *list = (struct export_list){.users = 1, .revision = export->revision};
    RBI_LIST_EACH(node, spare, &export->clusters)
    {
        const struct export_cluster *cluster =
            RBI_CONTAINER_OF(node, struct export_cluster, in_clusters);
        for (uint32_t i = 0; i < cluster->count; i++) {
            list->remotes[list->count++] = cluster->ones[i].remote;
        }
    }
    export->list = list;
    return list;
}

/* ---- hosts ------------------------------------------------------------------------------- */

static struct export_host *host_find(const struct rbi_export *export, uint64_t id)
{
    RBI_LIST_EACH(node, spare, &export->hosts)
    {
        struct export_host *host = RBI_CONTAINER_OF(node, struct export_host, in_hosts);
        if (host->id == id) {
            return host;
        }
    }
    return NULL;
}

static void host_free(struct rbi_export *export, struct export_host *host)
{
    list_release(export, &host->list);
    rbi_list_remove(&host->in_hosts);
    export->host_count--;
    free(host);
}

/** Makes room by forgetting one that cannot be told anything. @return whether there is */
static bool host_room(struct rbi_export *export)
{
    RBI_LIST_EACH(node, spare, &export->hosts)
    {
        struct export_host *host = RBI_CONTAINER_OF(node, struct export_host, in_hosts);
        if (export->host_count < RBI_EXPORT_HOSTS_MAX) {
            break;
        }
        if (host->paused) {
            host_free(export, host);
        }
    }
    return export->host_count < RBI_EXPORT_HOSTS_MAX;
}

int rbi_export_ask(struct rbi_export *export,
                   uint64_t id,
                   uint64_t known_incarnation,
                   uint64_t known_revision)
{
    struct export_host *host = host_find(export, id);
    if (!host) {
        if (!host_room(export)) {
            return -ENOSPC;
        }
        host = calloc(1, sizeof *host);
        if (!host) {
            return -ENOMEM;
        }
        host->id = id;
        rbi_list_push_back(&export->hosts, &host->in_hosts);
        export->host_count++;
    }
    list_release(export, &host->list);
    host->paused = false;
    host->at = 0;
    host->known = known_revision;
    host->phase = known_incarnation == export->incarnation && log_has(export, known_revision)
                      ? EXPORT_CHANGES
                      : EXPORT_LIST;
    return 0;
}

void rbi_export_pause(struct rbi_export *export, uint64_t id)
{
    struct export_host *host = host_find(export, id);
    if (host) {
        host->paused = true;
        host->at = 0; /* a list begins anew, whatever of it has come through */
        list_release(export, &host->list);
    }
}

void rbi_export_resume(struct rbi_export *export, uint64_t id)
{
    struct export_host *host = host_find(export, id);
    if (host && host->paused) {
        host->paused = false;
        host->phase = host->phase == EXPORT_LIST ? EXPORT_LIST : EXPORT_CHANGES;
    }
}

void rbi_export_forget(struct rbi_export *export, uint64_t id)
{
    struct export_host *host = host_find(export, id);
    if (host) {
        host_free(export, host);
    }
}

void rbi_export_free(struct rbi_export *export)
{
    if (!export) {
        return;
    }
    while (!rbi_list_empty(&export->hosts)) {
        host_free(export, RBI_LIST_FIRST(&export->hosts, struct export_host, in_hosts));
    }
    while (!rbi_list_empty(&export->clusters)) {
        struct export_cluster *cluster =
            RBI_LIST_FIRST(&export->clusters, struct export_cluster, in_clusters);
        rbi_list_remove(&cluster->in_clusters);
        free(cluster->ones);
        free(cluster);
    }
    rbi_map_deinit(&export->by_id);
    free(export->scratch);
    free(export->log);
    free(export);
}

/* ---- telling ----------------------------------------------------------------------------- */

/** The next item for a host. @retval false it has everything */
static bool
next_item(struct rbi_export *export, struct export_host *host, struct rbi_remote_item *out)
{
    if (host->phase != EXPORT_LIST && !log_has(export, host->known)) {
        list_release(export, &host->list);
        host->phase = EXPORT_LIST; /* it was too slow, or we were too quick */
        host->at = 0;
    }
    if (host->phase == EXPORT_LIST) {
        if (!host->list) {
            host->list = list_take(export);
        }
        if (!host->list) {
            return false; /* no memory: it asks again */
        }
        *out = (struct rbi_remote_item){.incarnation = export->incarnation,
                                        .revision = host->list->revision,
                                        .number = host->at + 1};
        out->flags = host->at == 0 ? RBI_ITEM_FIRST : 0;
        if (host->at < host->list->count) {
            out->remote = host->list->remotes[host->at];
        } else {
            out->flags |= RBI_ITEM_LAST;
        }
        return true;
    }
    if (host->known < export->revision) {
        *out = export->log[(host->known + 1) % RBI_EXPORT_LOG_MAX];
        out->flags |= out->revision == export->revision ? RBI_ITEM_LAST : 0;
        return true;
    }
    *out = (struct rbi_remote_item){
        .incarnation = export->incarnation, .revision = host->known, .flags = RBI_ITEM_LAST};
    return host->phase == EXPORT_CHANGES;
}

/** The host has taken that one. */
static void
item_told(struct rbi_export *export, struct export_host *host, const struct rbi_remote_item *item)
{
    const bool last = (item->flags & RBI_ITEM_LAST) != 0;
    host->at++;
    if (host->phase != EXPORT_LIST || last) {
        host->known = item->revision;
    }
    if (last) {
        list_release(export, &host->list);
        host->phase = EXPORT_CALM;
        host->at = 0;
    }
}

/** @retval 0 all was told; 1 more would follow; -errno it is gone */
static int host_tell(struct rbi_export *export, struct export_host *host)
{
    struct rbi_remote_item item;
    for (unsigned i = 0; i < RBI_EXPORT_TURN; i++) {
        if (!next_item(export, host, &item)) {
            return 0;
        }
        const int result = export->sink(export->context, host->id, &item);
        if (result != 0) {
            return result == -ENOBUFS ? 0 : result; /* the caller hears when there is room */
        }
        item_told(export, host, &item);
    }
    return next_item(export, host, &item) ? 1 : 0;
}

bool rbi_export_pump(struct rbi_export *export)
{
    bool more = false;
    if (!export->ready) {
        return false; /* nothing is better than half of it */
    }
    RBI_LIST_EACH(node, spare, &export->hosts)
    {
        struct export_host *host = RBI_CONTAINER_OF(node, struct export_host, in_hosts);
        const int result = host->paused ? 0 : host_tell(export, host);
        if (result < 0) {
            host_free(export, host);
        }
        more = more || result > 0;
    }
    return more;
}

uint32_t rbi_export_count(const struct rbi_export *export)
{
    return export->count;
}

uint64_t rbi_export_revision(const struct rbi_export *export)
{
    return export->revision;
}

uint32_t rbi_export_hosts(const struct rbi_export *export)
{
    return export->host_count;
}
