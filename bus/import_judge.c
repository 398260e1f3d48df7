/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/import_impl.h"
#include "bus/record.h"

/* From so many instances on, more than half of them at once are many. */
#define GUARD_MIN 4U

void rbi_import_see(struct rbi_import *import, uint32_t idx)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    const struct rbi_import_host *host = &import->hosts[entry->host];
    struct rbi_import_cluster *cluster = rbi_import_cluster(import, entry->remote.pidf.cluster);
    const bool doubted = !entry->listed || !host->reachable;
    if (doubted != entry->doubted) {
        cluster->doubted += doubted ? 1U : UINT32_MAX;
        entry->doubted = doubted;
        entry->held = false; /* whoever goes out of sight again waits again */
    }
    entry->state = !entry->listed                    ? RBI_IMPORT_UNCONFIRMED
                   : host->reachable && host->source ? RBI_IMPORT_LIVE
                                                     : RBI_IMPORT_STALE;
    if (cluster->doubted == 0) {
        cluster->held = false;
    }
    rbi_import_queue(import, idx);
}

static bool too_many(const struct rbi_import_cluster *cluster)
{
    return cluster->doubted > 0 &&
           (cluster->doubted == cluster->entries ||
            (cluster->entries >= GUARD_MIN && 2 * cluster->doubted > cluster->entries));
}

void rbi_import_guard(struct rbi_import *import, uint64_t id, bool tell, uint64_t now_ns)
{
    struct rbi_import_cluster *cluster = rbi_import_cluster(import, id);
    if (!cluster || import->config.mass_hold_ns == 0 || !too_many(cluster)) {
        return;
    }
    for (uint32_t idx = cluster->first; idx != RBI_IMPORT_NONE;
         idx = import->entries[idx].cluster_next) {
        struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->doubted && !entry->held) {
            entry->held = true; /* once while it is out of sight: the wait has an end */
            entry->hold_until_ns = now_ns + import->config.mass_hold_ns;
        }
    }
    if (tell && !cluster->held) {
        cluster->held = true;
        cluster->tell = true;
        import->tells++;
        import->counters.mass_held++;
    }
}

/** When the second signal is there, for one that is out of sight. */
static uint64_t second_signal_ns(const struct rbi_import *import,
                                 const struct rbi_import_entry *entry)
{
    const struct rbi_import_host *host = &import->hosts[entry->host];
    if (entry->listed) { /* so its host cannot be reached */
        return host->reach_ns + import->config.grace_ns;
    }
    /* A suspicion from long before says nothing: its link has had time to come back. */
    const bool suspect =
        entry->suspect_ns != 0 && entry->suspect_ns + import->config.grace_ns >= entry->unlisted_ns;
    return suspect || !host->reachable ? 0 : entry->unlisted_ns + import->config.grace_ns;
}

static void judge(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    const struct rbi_import_entry *entry = &import->entries[idx];
    uint64_t due_ns = second_signal_ns(import, entry);
    if (entry->held) {
        due_ns = rbi_max_u64(due_ns, entry->hold_until_ns);
    }
    if (due_ns > now_ns) {
        rbi_import_soon(import, due_ns);
        return;
    }
    rbi_import_drop(import, idx,
                    import->hosts[entry->host].reachable ? RBI_REASON_SILENT
                                                         : RBI_REASON_UNREACHABLE);
}

void rbi_import_drop(struct rbi_import *import, uint32_t idx, uint32_t reason)
{
    import->hosts[import->entries[idx].host].whole = true;
    rbi_import_retire(import, idx, reason);
}

void rbi_import_tick(struct rbi_import *import, uint64_t now_ns)
{
    import->due_ns = NEVER;
    for (uint32_t idx = 0; idx < import->entry_end; idx++) {
        const struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->state == RBI_IMPORT_FREE || entry->state == RBI_IMPORT_GONE) {
            continue;
        }
        if (entry->refused && !entry->shown && entry->retry_ns <= now_ns) {
            rbi_import_queue(import, idx);
        } else if (entry->refused && !entry->shown) {
            rbi_import_soon(import, entry->retry_ns);
        }
        if (entry->doubted) {
            judge(import, idx, now_ns);
        }
    }
    for (uint32_t i = 0; i < import->host_count; i++) {
        struct rbi_import_host *host = &import->hosts[i];
        if (host->source && host->ask_ns == NEVER && host->refresh_ns <= now_ns) {
            rbi_import_want_list(import, i, false, now_ns);
        } else if (host->source && host->ask_ns == NEVER) {
            rbi_import_soon(import, host->refresh_ns);
        }
        rbi_import_soon(import, host->ask_ns);
    }
}
