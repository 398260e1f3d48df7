/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/import_impl.h"
#include "bus/record.h"

#include <errno.h>
#include <string.h>

/* What hosts tell of their instances: bus/remote.h says how. */

/** Whether a host still tells us what we asked: then the answer may take its time. */
static void answer_goes_on(struct rbi_import *import, struct rbi_import_host *host, uint64_t now_ns)
{
    if (host->asking) {
        host->ask_ns = now_ns + RBI_IMPORT_ASK_NS;
        rbi_import_soon(import, host->ask_ns);
    }
}

/** All that the host lists is as it lists it now. */
static void answer_whole(struct rbi_import *import, uint32_t at, uint64_t now_ns)
{
    struct rbi_import_host *host = &import->hosts[at];
    if (host->ask_ns != NEVER && !host->asking) {
        return; /* to be asked, as something is missing: this answers nothing */
    }
    host->asking = false;
    host->whole = false;
    host->ask_ns = NEVER;
    host->refresh_ns = now_ns + RBI_IMPORT_REFRESH_NS;
    rbi_import_soon(import, host->refresh_ns);
    if (host->source) {
        return;
    }
    host->source = true;
    for (uint32_t idx = 0; idx < import->entry_end; idx++) {
        const struct rbi_import_entry *entry = &import->entries[idx];
        if (entry->host == at && entry->state != RBI_IMPORT_FREE &&
            entry->state != RBI_IMPORT_GONE) {
            rbi_import_see(import, idx);
        }
    }
}

static void refuse(struct rbi_import *import, struct rbi_import_host *host)
{
    host->tell_refused = host->tell_refused || host->refused == 0;
    host->refused++;
    import->counters.refused++;
}

/** The host lists this instance. */
static void take(struct rbi_import *import, uint32_t at, const struct rbi_remote *remote)
{
    struct rbi_import_host *host = &import->hosts[at];
    uint32_t idx = rbi_import_lookup(import, at, &remote->pidf);
    if (idx != RBI_IMPORT_NONE &&
        import->entries[idx].remote.pidf.incarnation != remote->pidf.incarnation) {
        rbi_import_retire(import, idx, RBI_REASON_REPLACED); /* how it ended was not to be heard */
        idx = RBI_IMPORT_NONE;
    }
    if (idx == RBI_IMPORT_NONE) {
        idx = rbi_import_new(import, at, remote);
        if (idx == RBI_IMPORT_NONE) {
            refuse(import, host);
            return;
        }
    }
    struct rbi_import_entry *entry = &import->entries[idx];
    if (!rbi_remote_equal(&entry->remote, remote)) {
        entry->remote = *remote;
        entry->changed = true;
    }
    entry->list = host->list;
    entry->listed = true;
    entry->cached = false;
    rbi_import_see(import, idx);
}

/** The host does not list it any more, and does not say why. */
static void miss(struct rbi_import *import, uint32_t idx, uint64_t now_ns)
{
    struct rbi_import_entry *entry = &import->entries[idx];
    if (entry->listed) {
        entry->listed = false;
        entry->unlisted_ns = now_ns;
        rbi_import_see(import, idx);
    }
}

static void
remove_one(struct rbi_import *import, uint32_t at, const struct rbi_remote *remote, uint64_t now_ns)
{
    const uint32_t idx = rbi_import_lookup(import, at, &remote->pidf);
    if (idx == RBI_IMPORT_NONE ||
        import->entries[idx].remote.pidf.incarnation != remote->pidf.incarnation) {
        return;
    }
    if (remote->state != RBI_REASON_NONE) {
        rbi_import_retire(import, idx, remote->state); /* it is known there how it ended */
        return;
    }
    miss(import, idx, now_ns);
    rbi_import_guard(import, remote->pidf.cluster, true, now_ns);
    rbi_import_soon(import, now_ns);
}

/* ---- all that is exported ---------------------------------------------------------------- */

static void list_begin(struct rbi_import_host *host, const struct rbi_remote_item *item)
{
    host->listing = true;
    host->torn = false;
    host->list++;
    host->list_incarnation = item->incarnation;
    host->list_revision = item->revision;
    host->list_number = 0;
    host->refused = 0;
    host->tell_refused = false;
}

/** The list is whole: who is not named in it is out of sight. */
static void list_end(struct rbi_import *import, uint32_t at, uint64_t now_ns)
{
    struct rbi_import_host *host = &import->hosts[at];
    host->listing = false;
    host->incarnation = host->list_incarnation;
    host->revision = host->list_revision;
    answer_whole(import, at, now_ns);
    /* First all of them, then the guard: it counts. */
    for (unsigned guard = 0; guard < 2; guard++) {
        for (uint32_t idx = 0; idx < import->entry_end; idx++) {
            const struct rbi_import_entry *entry = &import->entries[idx];
            if (entry->host != at || entry->state == RBI_IMPORT_FREE ||
                entry->state == RBI_IMPORT_GONE || entry->list == host->list) {
                continue;
            }
            if (entry->cached) { /* a file does not know better than the host itself */
                rbi_import_retire(import, idx, RBI_REASON_SILENT);
            } else if (guard) {
                rbi_import_guard(import, entry->remote.pidf.cluster, true, now_ns);
            } else {
                miss(import, idx, now_ns);
            }
        }
    }
    rbi_import_soon(import, now_ns);
}

static bool item_is_valid(const struct rbi_remote_item *item)
{
    struct rbi_remote remote;
    if (!(item->flags & RBI_ITEM_REMOVED)) {
        return rbi_remote_valid(&item->remote);
    }
    remote = item->remote;
    remote.state = RBI_ENDPOINT_READY;
    return rbi_remote_valid(&remote) && item->remote.state <= RBI_REASON_LAST;
}

/** The instance of an item, if it has one. @retval 0; -EPROTO */
static int item_instance(struct rbi_import *import,
                         uint32_t at,
                         const struct rbi_remote_item *item,
                         uint64_t now_ns)
{
    if (item->remote.path_length == 0) {
        return 0;
    }
    if (!item_is_valid(item)) {
        import->hosts[at].malformed++;
        import->counters.malformed++;
        return -EPROTO;
    }
    if (item->flags & RBI_ITEM_REMOVED) {
        remove_one(import, at, &item->remote, now_ns);
    } else if (rbi_import_wanted(import, &item->remote)) {
        take(import, at, &item->remote);
    }
    return 0;
}

static int item_of_list(struct rbi_import *import,
                        uint32_t at,
                        const struct rbi_remote_item *item,
                        uint64_t now_ns)
{
    struct rbi_import_host *host = &import->hosts[at];
    if (item->incarnation != host->list_incarnation || item->revision != host->list_revision ||
        item->number != host->list_number + 1 || (item->flags & RBI_ITEM_REMOVED)) {
        import->counters.gaps++; /* something of it was lost */
        rbi_import_want_list(import, at, true, now_ns);
        return 0;
    }
    host->list_number = item->number;
    const int result = item_instance(import, at, item, now_ns);
    if (item->flags & RBI_ITEM_LAST) {
        list_end(import, at, now_ns);
    }
    return result;
}

/* ---- changes ----------------------------------------------------------------------------- */

static int item_of_changes(struct rbi_import *import,
                           uint32_t at,
                           const struct rbi_remote_item *item,
                           uint64_t now_ns)
{
    struct rbi_import_host *host = &import->hosts[at];
    const uint64_t expected = host->revision + (item->remote.path_length != 0 ? 1U : 0U);
    int result = 0;
    if (item->number != 0 || item->incarnation != host->incarnation || item->revision > expected) {
        if (host->ask_ns == NEVER) { /* else what we ask for will say it */
            import->counters.gaps++;
            rbi_import_want_list(import, at, false, now_ns);
        }
        return 0;
    }
    if (item->revision == expected) {
        host->revision = item->revision;
        result = item_instance(import, at, item, now_ns);
    }
    if ((item->flags & RBI_ITEM_LAST) && item->revision == host->revision && !host->whole) {
        answer_whole(import, at, now_ns);
    }
    return result;
}

int rbi_import_item(struct rbi_import *import,
                    uint64_t id,
                    const struct rbi_remote_item *item,
                    uint64_t now_ns)
{
    const uint32_t at = rbi_import_host(import, id);
    if (at == RBI_IMPORT_NONE || !import->hosts[at].reachable) {
        return -ENOENT;
    }
    struct rbi_import_host *host = &import->hosts[at];
    if (item->incarnation == 0) {
        host->malformed++;
        import->counters.malformed++;
        return -EPROTO;
    }
    if (item->flags & RBI_ITEM_FIRST) {
        list_begin(host, item);
    } else if (host->torn) {
        return 0; /* only another list makes it good */
    }
    answer_goes_on(import, host, now_ns);
    return host->listing ? item_of_list(import, at, item, now_ns)
                         : item_of_changes(import, at, item, now_ns);
}
