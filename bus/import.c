/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/import.h"

#include "bus/glob.h"
#include "bus/import_impl.h"
#include "bus/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint32_t rbi_import_slots(uint32_t entry_max)
{
    return (uint32_t)rbi_pow2_ceil(2 * (uint64_t)entry_max);
}

void rbi_import_init(struct rbi_import *import,
                     const struct rbi_import_config *config,
                     struct rbi_import_entry *entries,
                     uint32_t entry_max,
                     struct rbi_import_cluster *clusters,
                     uint32_t *paths)
{
    const uint32_t slots = rbi_import_slots(entry_max);
    memset(import, 0, sizeof *import);
    memset(entries, 0, entry_max * sizeof *entries);
    memset(clusters, 0, slots * sizeof *clusters);
    for (uint32_t i = 0; i < slots; i++) {
        paths[i] = RBI_IMPORT_NONE;
    }
    for (uint32_t i = 0; i < entry_max; i++) {
        entries[i].next = i + 1 < entry_max ? i + 1 : RBI_IMPORT_NONE;
    }
    import->config = *config;
    import->entries = entries;
    import->entry_max = entry_max;
    import->clusters = clusters;
    import->paths = paths;
    import->slot_mask = slots - 1;
    import->dirty_first = RBI_IMPORT_NONE;
    import->removing = RBI_IMPORT_NONE;
    import->due_ns = NEVER;
}

/** Walks the entries of a host that are not GONE. @param at  RBI_IMPORT_NONE: of all */
static uint32_t next_of(const struct rbi_import *import, uint32_t at, uint32_t idx)
{
    for (; idx < import->entry_end; idx++) {
        const struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->state != RBI_IMPORT_FREE && entry->state != RBI_IMPORT_GONE &&
            (at == RBI_IMPORT_NONE || entry->host == at)) {
            return idx;
        }
    }
    return RBI_IMPORT_NONE;
}

#define EACH_OF(idx, import, at)                                                                   \
    for (uint32_t idx = next_of(import, at, 0); (idx) != RBI_IMPORT_NONE;                          \
         (idx) = next_of(import, at, (idx) + 1))

static bool is_standing(const struct rbi_import *import, uint32_t idx)
{
    return idx < import->entry_max && import->entries[idx].state != RBI_IMPORT_FREE &&
           import->entries[idx].state != RBI_IMPORT_GONE;
}

bool rbi_import_wanted(const struct rbi_import *import, const struct rbi_remote *remote)
{
    const struct rbi_bridge_globs *globs = import->config.globs;
    for (uint32_t i = 0; i < globs->count; i++) {
        if (rbi_glob_match(globs->items[i], strlen(globs->items[i]), remote->path,
                           rbi_remote_cluster_length(remote))) {
            return true;
        }
    }
    return false;
}

void rbi_import_configure(struct rbi_import *import,
                          const struct rbi_import_config *config,
                          uint64_t now_ns)
{
    import->config = *config;
    EACH_OF(idx, import, RBI_IMPORT_NONE)
    {
        if (!rbi_import_wanted(import, &import->entries[idx].remote)) {
            rbi_import_retire(import, idx, RBI_REASON_LEFT);
        }
    }
    for (uint32_t at = 0; at < import->host_count; at++) {
        if (import->hosts[at].reachable) {
            rbi_import_want_list(import, at, true, now_ns); /* others may be wanted now */
        }
    }
    rbi_import_soon(import, now_ns);
}

/* ---- hosts ------------------------------------------------------------------------------- */

uint32_t rbi_import_host(const struct rbi_import *import, uint64_t id)
{
    for (uint32_t at = 0; at < import->host_count; at++) {
        if (import->hosts[at].id == id) {
            return at;
        }
    }
    return RBI_IMPORT_NONE;
}

const struct rbi_import_host *rbi_import_host_find(const struct rbi_import *import, uint64_t id)
{
    const uint32_t at = rbi_import_host(import, id);
    return at == RBI_IMPORT_NONE ? NULL : &import->hosts[at];
}

void rbi_import_figures(const struct rbi_import *import,
                        uint64_t id,
                        struct rbi_import_figures *out)
{
    const uint32_t at = rbi_import_host(import, id);
    memset(out, 0, sizeof *out);
    if (at == RBI_IMPORT_NONE) {
        return;
    }
    EACH_OF(idx, import, at)
    {
        const struct rbi_import_entry *entry = &import->entries[idx];
        out->instances++;
        out->stale += entry->state != RBI_IMPORT_LIVE ? 1U : 0U;
        out->unconfirmed += entry->state == RBI_IMPORT_UNCONFIRMED ? 1U : 0U;
        out->held += entry->doubted && entry->held ? 1U : 0U;
    }
}

/** A place for a host: a new one, or that of one of which nothing is known any more. */
static uint32_t host_place(struct rbi_import *import)
{
    if (import->host_count < RBI_IMPORT_HOSTS_MAX) {
        return import->host_count++;
    }
    for (uint32_t at = 0; at < import->host_count; at++) {
        if (!import->hosts[at].reachable && import->hosts[at].entries == 0) {
            return at;
        }
    }
    return RBI_IMPORT_NONE;
}

static int
host_make(struct rbi_import *import, uint64_t id, const char *name, uint64_t now_ns, uint32_t *out)
{
    if (id == 0 || id == import->config.own_host) {
        return -EINVAL;
    }
    uint32_t at = rbi_import_host(import, id);
    if (at == RBI_IMPORT_NONE) {
        at = host_place(import);
        if (at == RBI_IMPORT_NONE) {
            return -ENOSPC;
        }
        struct rbi_import_host *host = &import->hosts[at];
        memset(host, 0, sizeof *host);
        host->id = id;
        host->reach_ns = now_ns;
        host->ask_ns = NEVER;
        (void)snprintf(host->name, sizeof host->name, "%s", name);
    }
    *out = at;
    return 0;
}

/** All of a host are seen anew, since something of the host itself has changed. */
void rbi_import_see_host(struct rbi_import *import, uint32_t at, uint64_t now_ns)
{
    EACH_OF(idx, import, at)
    {
        rbi_import_see(import, idx);
    }
    EACH_OF(idx, import, at)
    {
        if (import->entries[idx].doubted) {
            rbi_import_guard(import, import->entries[idx].remote.pidf.cluster, false, now_ns);
        }
    }
    rbi_import_soon(import, now_ns);
}

/**
 * A list that does not come to its end. What it named is newer than the revision that is known: the
 * changes from there on would lead back into the past.
 */
static void host_unlist(struct rbi_import_host *host)
{
    host->torn = host->torn || host->listing;
    host->whole = host->whole || host->listing;
    host->listing = false;
}

/** Nothing of it can be asked, nor is anything of it under way. */
static void host_silence(struct rbi_import_host *host)
{
    host->source = false;
    host_unlist(host);
    host->asking = false;
    host->ask_ns = NEVER;
    host->ask_tries = 0;
}

int rbi_import_reach(
    struct rbi_import *import, uint64_t id, const char *name, bool reachable, uint64_t now_ns)
{
    uint32_t at = 0;
    const int result = host_make(import, id, name, now_ns, &at);
    if (result != 0 || import->hosts[at].reachable == reachable) {
        return result;
    }
    struct rbi_import_host *host = &import->hosts[at];
    host->reachable = reachable;
    host->reach_ns = now_ns;
    host_silence(host);
    if (reachable) {
        rbi_import_want_list(import, at, false, now_ns);
    }
    rbi_import_see_host(import, at, now_ns);
    return 0;
}

void rbi_import_source_lost(struct rbi_import *import, uint64_t id, uint64_t now_ns)
{
    const uint32_t at = rbi_import_host(import, id);
    if (at != RBI_IMPORT_NONE && import->hosts[at].reachable) {
        host_silence(&import->hosts[at]);
        rbi_import_want_list(import, at, false, now_ns);
        rbi_import_see_host(import, at, now_ns);
    }
}

void rbi_import_leave(struct rbi_import *import, uint64_t id, uint64_t now_ns)
{
    const uint32_t at = rbi_import_host(import, id);
    if (at == RBI_IMPORT_NONE) {
        return;
    }
    EACH_OF(idx, import, at)
    {
        rbi_import_retire(import, idx, RBI_REASON_LEFT);
    }
    import->hosts[at].reachable = false;
    import->hosts[at].reach_ns = now_ns;
    import->hosts[at].incarnation = 0;
    import->hosts[at].refused = 0;
    host_silence(&import->hosts[at]);
}

int rbi_import_load(struct rbi_import *import,
                    uint64_t id,
                    const char *name,
                    const struct rbi_remote *remote,
                    uint64_t now_ns)
{
    uint32_t at = 0;
    if (!rbi_remote_valid(remote) || !rbi_import_wanted(import, remote)) {
        return -EINVAL;
    }
    const int result = host_make(import, id, name, now_ns, &at);
    if (result != 0) {
        return result;
    }
    if (import->hosts[at].incarnation != 0 ||
        rbi_import_lookup(import, at, &remote->pidf) != RBI_IMPORT_NONE) {
        return -EEXIST;
    }
    const uint32_t idx = rbi_import_new(import, at, remote);
    if (idx == RBI_IMPORT_NONE) {
        return -ENOSPC;
    }
    import->entries[idx].listed = true;
    import->entries[idx].cached = true;
    import->entries[idx].list = import->hosts[at].list;
    rbi_import_see(import, idx);
    rbi_import_guard(import, remote->pidf.cluster, false, now_ns);
    rbi_import_soon(import, now_ns);
    return 0;
}

void rbi_import_way_changed(struct rbi_import *import, uint64_t id, uint64_t now_ns)
{
    const uint32_t at = rbi_import_host(import, id);
    if (at != RBI_IMPORT_NONE && import->hosts[at].reachable) {
        rbi_import_want_list(import, at, false, now_ns);
    }
}

void rbi_import_want_list(struct rbi_import *import, uint32_t at, bool whole, uint64_t now_ns)
{
    struct rbi_import_host *host = &import->hosts[at];
    uint64_t wait_ns = 0;
    if (host->asked_ns != 0 && now_ns - host->asked_ns < RBI_IMPORT_ASK_MAX_NS) {
        wait_ns = rbi_min_u64(RBI_IMPORT_ASK_MIN_NS << rbi_min_u64(host->ask_tries, 8),
                              RBI_IMPORT_ASK_MAX_NS);
    } else {
        host->ask_tries = 0;
    }
    host->whole = host->whole || whole;
    host->asking = false; /* whatever is under way is not what is wanted */
    host_unlist(host);
    host->ask_ns = now_ns + wait_ns;
    rbi_import_soon(import, host->ask_ns);
}

/* ---- of single ones ---------------------------------------------------------------------- */

void rbi_import_suspect(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    if (is_standing(import, idx)) {
        import->entries[idx].suspect_ns = rbi_max_u64(now_ns, 1);
        rbi_import_soon(import, now_ns);
    }
}

void rbi_import_alive(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    (void)now_ns;
    if (is_standing(import, idx)) {
        import->entries[idx].suspect_ns = 0;
        import->entries[idx].cached = false;
    }
}

void rbi_import_dead(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    (void)now_ns;
    if (is_standing(import, idx)) {
        rbi_import_drop(import, idx, RBI_REASON_CRASHED);
    }
}

void rbi_import_taken(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    if (!is_standing(import, idx)) {
        return;
    }
    struct rbi_import_entry *entry = &import->entries[idx];
    entry->shown = false;
    entry->user = NULL;
    entry->refused = true;
    entry->retry_ns = now_ns + rbi_min_u64(RBI_IMPORT_TAKEN_MIN_NS << rbi_min_u64(entry->tries, 8),
                                           RBI_IMPORT_TAKEN_MAX_NS);
    entry->tries++;
    rbi_import_soon(import, entry->retry_ns);
}

uint32_t rbi_import_confirm(struct rbi_import *import,
                            uint64_t id,
                            const char *prefix,
                            size_t prefix_length,
                            uint64_t now_ns)
{
    const uint32_t at = id == 0 ? RBI_IMPORT_NONE : rbi_import_host(import, id);
    uint32_t count = 0;
    (void)now_ns;
    if (id != 0 && at == RBI_IMPORT_NONE) {
        return 0;
    }
    EACH_OF(idx, import, at)
    {
        const struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->doubted && rbi_path_has_prefix(entry->remote.path, entry->remote.path_length,
                                                  prefix, prefix_length)) {
            rbi_import_drop(import, idx, RBI_REASON_CRASHED);
            import->counters.confirmed++;
            count++;
        }
    }
    return count;
}
