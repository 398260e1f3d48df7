/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/import_impl.h"

#include <string.h>

/* What is to be done: hosts are asked first, then what people should know, then the instances. */

/* An answer that does not come so often is none: what its host lists is not known any more. */
#define ASK_TRIES 3U

/** The next host that is to be asked. @retval false none */
static bool next_ask(struct rbi_import *import, uint64_t now_ns, struct rbi_import_action *out)
{
    for (uint32_t at = 0; at < import->host_count; at++) {
        struct rbi_import_host *host = &import->hosts[at];
        if (host->ask_ns > now_ns) {
            continue;
        }
        host->ask_tries++;
        host->asking = true;
        host->asked_ns = now_ns;
        host->ask_ns = now_ns + RBI_IMPORT_ASK_NS +
                       rbi_min_u64(RBI_IMPORT_ASK_MIN_NS << rbi_min_u64(host->ask_tries, 8),
                                   RBI_IMPORT_ASK_MAX_NS);
        rbi_import_soon(import, host->ask_ns);
        import->counters.asked++;
        out->what = RBI_IMPORT_DO_ASK;
        out->host = at;
        out->incarnation = host->whole ? 0 : host->incarnation;
        out->revision = host->whole ? 0 : host->revision;
        if (host->ask_tries > ASK_TRIES && host->source) {
            host->source = false;
            rbi_import_see_host(import, at, now_ns);
        }
        return true;
    }
    return false;
}

static bool next_refused(struct rbi_import *import, struct rbi_import_action *out)
{
    for (uint32_t at = 0; at < import->host_count; at++) {
        struct rbi_import_host *host = &import->hosts[at];
        if (host->tell_refused && !host->listing) { /* a list is told of once, with its count */
            host->tell_refused = false;
            out->what = RBI_IMPORT_DO_REFUSED;
            out->host = at;
            out->count = (uint32_t)rbi_min_u64(host->refused, UINT32_MAX);
            out->total = host->entries;
            return true;
        }
    }
    return false;
}

static bool next_held(struct rbi_import *import, struct rbi_import_action *out)
{
    for (uint32_t slot = 0; import->tells > 0 && slot <= import->slot_mask; slot++) {
        struct rbi_import_cluster *cluster = &import->clusters[slot];
        if (cluster->id != 0 && cluster->tell) {
            cluster->tell = false;
            import->tells--;
            out->what = RBI_IMPORT_DO_HELD;
            out->cluster = cluster->id;
            out->entry = cluster->first;
            out->host = import->entries[cluster->first].host;
            out->count = cluster->doubted;
            out->total = cluster->entries;
            return true;
        }
    }
    return false;
}

/** What is to be told of one that is GONE. @retval false nothing: nobody was told that it was there
 */
static bool entry_remove(struct rbi_import *import,
                         uint32_t idx,
                         uint64_t now_ns,
                         struct rbi_import_action *out)
{
    const struct rbi_import_entry *entry = &import->entries[idx];
    if (!entry->shown) {
        rbi_import_release(import, idx, now_ns);
        return false;
    }
    import->removing = idx;
    import->counters.removed++;
    out->what = RBI_IMPORT_DO_REMOVE;
    out->reason = entry->reason;
    return true;
}

/** Whether one that is not registered may be now; else why not, if that is to be told. */
static bool entry_register(struct rbi_import *import,
                           uint32_t idx,
                           uint64_t now_ns,
                           struct rbi_import_action *out)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    const uint32_t holder = rbi_import_holder(import, idx);
    if (entry->refused && entry->retry_ns > now_ns) {
        return false;
    }
    if (holder != RBI_IMPORT_NONE) {
        if (entry->conflict || import->entries[holder].state == RBI_IMPORT_GONE) {
            return false; /* told, or there in a moment */
        }
        entry->conflict = true;
        import->counters.conflicts++;
        out->what = RBI_IMPORT_DO_CONFLICT;
        return true;
    }
    entry->conflict = false;
    entry->refused = false;
    entry->shown = true;
    import->counters.registered++;
    out->what = RBI_IMPORT_DO_REGISTER;
    return true;
}

static bool entry_action(struct rbi_import *import,
                         uint32_t idx,
                         uint64_t now_ns,
                         struct rbi_import_action *out)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    const bool stale = entry->state != RBI_IMPORT_LIVE;
    out->entry = idx;
    out->host = entry->host;
    out->stale = stale;
    if (entry->state == RBI_IMPORT_GONE) {
        return entry_remove(import, idx, now_ns, out);
    }
    if (entry->shown) {
        if (!entry->changed && entry->shown_stale == stale) {
            return false;
        }
        out->what = RBI_IMPORT_DO_UPDATE;
    } else if (!entry_register(import, idx, now_ns, out) || !entry->shown) {
        return out->what != RBI_IMPORT_DO_NOTHING;
    }
    entry->changed = false;
    entry->shown_stale = stale;
    return true;
}

void rbi_import_next(struct rbi_import *import, uint64_t now_ns, struct rbi_import_action *out)
{
    memset(out, 0, sizeof *out);
    if (import->removing != RBI_IMPORT_NONE) {
        const uint32_t idx = import->removing;
        import->removing = RBI_IMPORT_NONE;
        rbi_import_release(import, idx, now_ns);
    }
    if (import->due_ns <= now_ns) {
        rbi_import_tick(import, now_ns);
    }
    if (next_ask(import, now_ns, out) || next_held(import, out) || next_refused(import, out)) {
        return;
    }
    uint32_t idx = rbi_import_unqueue(import);
    while (idx != RBI_IMPORT_NONE) {
        if (entry_action(import, idx, now_ns, out)) {
            return;
        }
        memset(out, 0, sizeof *out);
        idx = rbi_import_unqueue(import);
    }
}

uint64_t rbi_import_due_ns(const struct rbi_import *import)
{
    return import->due_ns;
}
