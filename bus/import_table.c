/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/import_impl.h"

#include <string.h>

/*
 * Entries are found by their ids, in buckets of a hash table; GONE ones stay there until their
 * removal was told, so that nothing takes their path before. Clusters lie in a table of their own,
 * probed one slot after the other.
 */

/* Fibonacci hashing: ids of clusters are hashes, those of instances may be small numbers. */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static uint32_t bucket_of(const struct rbi_import *import, const struct rbi_pidf *pidf)
{
    const uint64_t mixed = (pidf->cluster ^ (uint32_t)pidf->instance) * GOLDEN;
    return (uint32_t)(mixed >> 32) & import->slot_mask;
}

static bool same_ids(const struct rbi_pidf *a, const struct rbi_pidf *b)
{
    return a->cluster == b->cluster && a->instance == b->instance;
}

uint32_t
rbi_import_lookup(const struct rbi_import *import, uint32_t host, const struct rbi_pidf *pidf)
{
    uint32_t idx = import->paths[bucket_of(import, pidf)];
    for (; idx != RBI_IMPORT_NONE; idx = import->entries[idx].next) {
        const struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->host == host && entry->state != RBI_IMPORT_GONE &&
            same_ids(&entry->remote.pidf, pidf)) {
            return idx;
        }
    }
    return RBI_IMPORT_NONE;
}

uint32_t rbi_import_holder(const struct rbi_import *import, uint32_t idx)
{
    const struct rbi_pidf *pidf = &import->entries[idx].remote.pidf;
    uint32_t other = import->paths[bucket_of(import, pidf)];
    for (; other != RBI_IMPORT_NONE; other = import->entries[other].next) {
        const struct rbi_import_entry *entry = &import->entries[other];
        if (other != idx && entry->shown && same_ids(&entry->remote.pidf, pidf)) {
            return other;
        }
    }
    return RBI_IMPORT_NONE;
}

uint32_t rbi_import_find(const struct rbi_import *import, const char *path, size_t length)
{
    struct rbi_pidf pidf;
    struct rbi_path_info info;
    if (rbi_pidf_parse(path, length, &pidf, &info) != 0) {
        return RBI_IMPORT_NONE;
    }
    uint32_t idx = import->paths[bucket_of(import, &pidf)];
    for (; idx != RBI_IMPORT_NONE; idx = import->entries[idx].next) {
        const struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->shown && entry->state != RBI_IMPORT_GONE &&
            entry->remote.path_length == length && memcmp(entry->remote.path, path, length) == 0) {
            return idx;
        }
    }
    return RBI_IMPORT_NONE;
}

/* ---- clusters ---------------------------------------------------------------------------- */

static uint32_t cluster_home(const struct rbi_import *import, uint64_t id)
{
    return (uint32_t)((id * GOLDEN) >> 32) & import->slot_mask;
}

/** Slot of a cluster, or the free one where it would be: there are twice as many as entries. */
static uint32_t cluster_slot(const struct rbi_import *import, uint64_t id)
{
    uint32_t slot = cluster_home(import, id);
    while (import->clusters[slot].id != 0 && import->clusters[slot].id != id) {
        slot = (slot + 1) & import->slot_mask;
    }
    return slot;
}

struct rbi_import_cluster *rbi_import_cluster(const struct rbi_import *import, uint64_t id)
{
    struct rbi_import_cluster *cluster = &import->clusters[cluster_slot(import, id)];
    return cluster->id == id ? cluster : NULL;
}

/** Frees a slot, and moves up those behind it that would not be found any more. */
static void cluster_forget(struct rbi_import *import, uint32_t slot)
{
    uint32_t hole = slot;
    import->tells -= import->clusters[slot].tell ? 1U : 0U;
    for (uint32_t at = (slot + 1) & import->slot_mask; import->clusters[at].id != 0;
         at = (at + 1) & import->slot_mask) {
        const uint32_t home = cluster_home(import, import->clusters[at].id);
        if (((at - home) & import->slot_mask) >= ((at - hole) & import->slot_mask)) {
            import->clusters[hole] = import->clusters[at];
            hole = at;
        }
    }
    memset(&import->clusters[hole], 0, sizeof import->clusters[hole]);
}

static void cluster_join(struct rbi_import *import, uint32_t idx)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    struct rbi_import_cluster *cluster =
        &import->clusters[cluster_slot(import, entry->remote.pidf.cluster)];
    if (cluster->id == 0) {
        cluster->id = entry->remote.pidf.cluster;
        cluster->first = RBI_IMPORT_NONE;
    }
    entry->cluster_prev = RBI_IMPORT_NONE;
    entry->cluster_next = cluster->first;
    if (cluster->first != RBI_IMPORT_NONE) {
        import->entries[cluster->first].cluster_prev = idx;
    }
    cluster->first = idx;
    cluster->entries++;
}

static void cluster_leave(struct rbi_import *import, uint32_t idx)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    const uint32_t slot = cluster_slot(import, entry->remote.pidf.cluster);
    struct rbi_import_cluster *cluster = &import->clusters[slot];
    if (entry->cluster_prev != RBI_IMPORT_NONE) {
        import->entries[entry->cluster_prev].cluster_next = entry->cluster_next;
    } else {
        cluster->first = entry->cluster_next;
    }
    if (entry->cluster_next != RBI_IMPORT_NONE) {
        import->entries[entry->cluster_next].cluster_prev = entry->cluster_prev;
    }
    cluster->doubted -= entry->doubted ? 1U : 0U;
    cluster->held = cluster->held && cluster->doubted > 0;
    entry->doubted = false;
    if (--cluster->entries == 0) {
        cluster_forget(import, slot);
    }
}

/* ---- entries ----------------------------------------------------------------------------- */

/**
 * One host may take of what is left as much as would be left for each of the others that are known:
 * one that tells of everything it can think of leaves room for the next. Alone it may take all.
 */
static bool host_has_room(const struct rbi_import *import, uint32_t host)
{
    const uint64_t own = import->hosts[host].entries;
    const uint32_t limit = import->config.limit;
    const uint64_t room = limit != 0 ? rbi_min_u64(limit, import->entry_max) : import->entry_max;
    const uint64_t left = room - rbi_min_u64(room, import->entry_count);
    uint64_t others = 0;
    for (uint32_t i = 0; i < import->host_count; i++) {
        const struct rbi_import_host *other = &import->hosts[i];
        others += i != host && (other->reachable || other->entries > 0) ? 1U : 0U;
    }
    return left > 0 && own + 1 <= (left + own + others) / (others + 1);
}

static void bucket_join(struct rbi_import *import, uint32_t idx)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    uint32_t *bucket = &import->paths[bucket_of(import, &entry->remote.pidf)];
    entry->next = *bucket;
    *bucket = idx;
}

uint32_t rbi_import_new(struct rbi_import *import, uint32_t host, const struct rbi_remote *remote)
{
    const uint32_t idx = import->entry_free;
    if (idx == RBI_IMPORT_NONE || !host_has_room(import, host)) {
        return RBI_IMPORT_NONE;
    }
    struct rbi_import_entry *entry = &import->entries[idx];
    import->entry_free = entry->next;
    import->entry_count++;
    import->entry_end = (uint32_t)rbi_max_u64(import->entry_end, (uint64_t)idx + 1);
    import->hosts[host].entries++;
    memset(entry, 0, sizeof *entry);
    entry->remote = *remote;
    entry->host = host;
    entry->state = RBI_IMPORT_STALE;
    bucket_join(import, idx);
    cluster_join(import, idx);
    return idx;
}

void rbi_import_move(struct rbi_import *import,
                     struct rbi_import_entry *entries,
                     uint32_t entry_max,
                     struct rbi_import_cluster *clusters,
                     uint32_t *paths)
{
    const struct rbi_import_cluster *old = import->clusters;
    const uint32_t old_mask = import->slot_mask;
    const uint32_t slots = rbi_import_slots(entry_max);
    RBI_ASSERT(entry_max >= import->entry_max);
    memset(entries, 0, entry_max * sizeof *entries);
    memcpy(entries, import->entries, import->entry_end * sizeof *entries);
    memset(clusters, 0, slots * sizeof *clusters);
    import->entries = entries;
    import->entry_max = entry_max;
    import->clusters = clusters;
    import->paths = paths;
    import->slot_mask = slots - 1;
    for (uint32_t slot = 0; slot <= old_mask; slot++) {
        if (old[slot].id != 0) {
            clusters[cluster_slot(import, old[slot].id)] = old[slot];
        }
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        paths[slot] = RBI_IMPORT_NONE;
    }
    import->entry_free = RBI_IMPORT_NONE;
    for (uint32_t idx = entry_max; idx-- > 0;) { /* so that the first are taken first */
        if (entries[idx].state == RBI_IMPORT_FREE) {
            entries[idx].next = import->entry_free;
            import->entry_free = idx;
        } else {
            bucket_join(import, idx);
        }
    }
}

void rbi_import_retire(struct rbi_import *import, uint32_t idx, uint32_t reason)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    cluster_leave(import, idx);
    entry->state = RBI_IMPORT_GONE;
    entry->reason = reason;
    rbi_import_queue(import, idx);
}

/** Those that waited for the path. */
static void wake_waiting(struct rbi_import *import, const struct rbi_pidf *pidf)
{
    uint32_t idx = import->paths[bucket_of(import, pidf)];
    for (; idx != RBI_IMPORT_NONE; idx = import->entries[idx].next) {
        if (same_ids(&import->entries[idx].remote.pidf, pidf)) {
            rbi_import_queue(import, idx);
        }
    }
}

/** There is room again: whom we cut may have more for us. */
static void ask_again(struct rbi_import *import, uint64_t now_ns)
{
    for (uint32_t i = 0; i < import->host_count; i++) {
        struct rbi_import_host *host = &import->hosts[i];
        if (host->refused > 0 && host->reachable && host->ask_ns == NEVER) {
            host->whole = true;
            host->ask_ns = now_ns + RBI_IMPORT_ASK_MAX_NS;
            rbi_import_soon(import, host->ask_ns);
        }
    }
}

void rbi_import_release(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    const struct rbi_pidf pidf = entry->remote.pidf;
    uint32_t *link = &import->paths[bucket_of(import, &pidf)];
    while (*link != idx) {
        link = &import->entries[*link].next;
    }
    *link = entry->next;
    import->hosts[entry->host].entries--;
    import->entry_count--;
    entry->state = RBI_IMPORT_FREE;
    entry->shown = false;
    entry->next = import->entry_free;
    import->entry_free = idx;
    wake_waiting(import, &pidf);
    ask_again(import, now_ns);
}

/* ---- what is to be told ------------------------------------------------------------------ */

void rbi_import_queue(struct rbi_import *import, uint32_t idx)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    if (entry->queued) {
        return;
    }
    entry->queued = true;
    entry->dirty_next = RBI_IMPORT_NONE;
    if (import->dirty_first == RBI_IMPORT_NONE) {
        import->dirty_first = idx;
    } else {
        import->entries[import->dirty_last].dirty_next = idx;
    }
    import->dirty_last = idx;
}

uint32_t rbi_import_unqueue(struct rbi_import *import)
{
    const uint32_t idx = import->dirty_first;
    if (idx != RBI_IMPORT_NONE) {
        import->dirty_first = import->entries[idx].dirty_next;
        import->entries[idx].queued = false;
    }
    return idx;
}
