/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/import_desk.h"

#include "daemon/bridge/import_store.h"
#include "daemon/log.h"
#include "daemon/wall.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS    UINT64_C(1000000)
#define LOG_LIMIT_NS UINT64_C(10000000000)

/** Memory of the table. */
struct room {
    struct rbi_import_entry *entries;
    struct rbi_import_cluster *clusters;
    uint32_t *paths;
};

struct rbi_import_desk {
    struct rbi_loop *loop;
    const struct rbi_bridge_config *config;
    const struct rbi_import_desk_calls *calls;
    void *context;
    struct rbi_import import;
    struct room room;
    struct rbi_loop_timer timer;
    bool running; /* actions are being carried out, and what they cause follows them */
    struct rbi_import_store *store;
    struct rbi_log_limit limit;
    uint32_t loaded;
};

static uint64_t now(const struct rbi_import_desk *desk)
{
    return rbi_loop_now_ns(desk->loop);
}

static struct rbi_import_config config_of(const struct rbi_bridge_config *config)
{
    return (struct rbi_import_config){.own_host = rbi_host_id(config->host, strlen(config->host)),
                                      .grace_ns = config->grace_ms * NS_PER_MS,
                                      .mass_hold_ns = config->mass_hold_ms * NS_PER_MS,
                                      .limit = config->limits.instances,
                                      .globs = &config->import};
}

/* ---- what is to be done ------------------------------------------------------------------ */

static void keep(struct rbi_import_desk *desk, const struct rbi_import_entry *entry)
{
    if (desk->store) {
        rbi_import_store_dirty(desk->store, entry->remote.pidf.cluster);
    }
}

/** Of what others can provoke, a line now and then. */
static bool may_log(struct rbi_import_desk *desk)
{
    uint64_t suppressed = 0;
    return rbi_log_limit_pass(&desk->limit, now(desk), LOG_LIMIT_NS, &suppressed);
}

static void do_register(struct rbi_import_desk *desk, const struct rbi_import_action *action)
{
    struct rbi_import_entry *entry = &desk->import.entries[action->entry];
    void *user = NULL;
    const int result = desk->calls->add(desk->context, &desk->import.hosts[action->host],
                                        action->entry, &entry->remote, action->stale, &user);
    if (result < 0) {
        rbi_import_taken(&desk->import, action->entry, now(desk));
        if (may_log(desk)) {
            rbi_log(RBI_LOG_WARNING, "instance_not_imported", "host=%s path=%s error=\"%s\"",
                    desk->import.hosts[action->host].name, entry->remote.path,
                    rbi_log_errno(-result));
        }
        return;
    }
    entry->user = user;
    keep(desk, entry);
}

static void do_remove(struct rbi_import_desk *desk, const struct rbi_import_action *action)
{
    struct rbi_import_entry *entry = &desk->import.entries[action->entry];
    void *user = entry->user;
    entry->user = NULL;
    keep(desk, entry);
    if (user) {
        desk->calls->remove(desk->context, user, action->reason);
    }
}

static void do_ask(struct rbi_import_desk *desk, const struct rbi_import_action *action)
{
    const struct rbi_import_host *host = &desk->import.hosts[action->host];
    const int result =
        desk->calls->ask(desk->context, host->id, action->incarnation, action->revision);
    if (result < 0) { /* asked again when no answer comes */
        rbi_log(RBI_LOG_DEBUG, "not_asked", "host=%s error=\"%s\"", host->name,
                rbi_log_errno(-result));
    }
}

static void do_held(struct rbi_import_desk *desk, const struct rbi_import_action *action)
{
    const struct rbi_remote *remote = &desk->import.entries[action->entry].remote;
    rbi_log(RBI_LOG_WARNING, "removals_held",
            "cluster=%.*s out_of_sight=%" PRIu32 " of=%" PRIu32 " hold_ms=%" PRIu32
            " text=\"many at once stay so long; ringbusctl bridge confirm ends it\"",
            (int)rbi_remote_cluster_length(remote), remote->path, action->count, action->total,
            desk->config->mass_hold_ms);
}

static void do_log(struct rbi_import_desk *desk, const struct rbi_import_action *action)
{
    const struct rbi_import_host *host = &desk->import.hosts[action->host];
    if (action->what == RBI_IMPORT_DO_REFUSED) {
        rbi_log(RBI_LOG_WARNING, "import_full",
                "host=%s left_out=%" PRIu32 " taken=%" PRIu32 " limit=%" PRIu32
                " text=\"raise bridge.limits.instances, or import less\"",
                host->name, action->count, action->total, desk->config->limits.instances);
    } else if (may_log(desk)) {
        rbi_log(RBI_LOG_WARNING, "import_conflict",
                "host=%s path=%s text=\"another host has an instance of this path\"", host->name,
                desk->import.entries[action->entry].remote.path);
    }
}

static void carry_out(struct rbi_import_desk *desk, const struct rbi_import_action *action)
{
    struct rbi_import_entry *entry = &desk->import.entries[action->entry];
    switch (action->what) {
    case RBI_IMPORT_DO_REGISTER:
        do_register(desk, action);
        break;
    case RBI_IMPORT_DO_UPDATE:
        desk->calls->update(desk->context, entry->user, &entry->remote, action->stale);
        keep(desk, entry);
        break;
    case RBI_IMPORT_DO_REMOVE:
        do_remove(desk, action);
        break;
    case RBI_IMPORT_DO_ASK:
        do_ask(desk, action);
        break;
    case RBI_IMPORT_DO_HELD:
        do_held(desk, action);
        break;
    case RBI_IMPORT_DO_CONFLICT:
    case RBI_IMPORT_DO_REFUSED:
        do_log(desk, action);
        break;
    case RBI_IMPORT_DO_NOTHING:
        break;
    }
}

static void run(struct rbi_import_desk *desk);

static void run_due(void *context)
{
    run(context);
}

/** Carries out what is to be done. What a call in it causes comes behind it, not within. */
static void run(struct rbi_import_desk *desk)
{
    struct rbi_import_action action;
    if (desk->running) {
        return;
    }
    desk->running = true;
    for (rbi_import_next(&desk->import, now(desk), &action); action.what != RBI_IMPORT_DO_NOTHING;
         rbi_import_next(&desk->import, now(desk), &action)) {
        carry_out(desk, &action);
    }
    desk->running = false;
    const uint64_t due_ns = rbi_import_due_ns(&desk->import);
    if (due_ns == UINT64_MAX) {
        rbi_loop_timer_cancel(desk->loop, &desk->timer);
    } else {
        rbi_loop_timer_set(desk->loop, &desk->timer, due_ns, run_due, desk);
    }
}

/* ---- files ------------------------------------------------------------------------------- */

/** The store asks for a cluster: what is registered of it, whatever its state. */
static uint32_t list_cluster(
    void *context, uint64_t id, struct rbi_import_store_row *rows, uint32_t max, uint64_t *revision)
{
    const struct rbi_import_desk *desk = context;
    uint32_t count = 0;
    *revision = 0;
    for (uint32_t i = 0; i < desk->import.entry_end; i++) {
        const struct rbi_import_entry *entry = &desk->import.entries[i];
        const struct rbi_import_host *host = &desk->import.hosts[entry->host];
        if (entry->state == RBI_IMPORT_FREE || entry->state == RBI_IMPORT_GONE ||
            entry->remote.pidf.cluster != id) {
            continue;
        }
        *revision = rbi_max_u64(*revision, host->revision);
        if (count < max) {
            memcpy(rows[count].host, host->name, sizeof rows[count].host);
            rows[count].remote = entry->remote;
        }
        count++;
    }
    return count;
}

static void load_row(void *context,
                     const struct rbi_import_store_head *head,
                     const struct rbi_import_store_row *row)
{
    struct rbi_import_desk *desk = context;
    (void)head;
    if (rbi_import_load(&desk->import, rbi_host_id(row->host, strlen(row->host)), row->host,
                        &row->remote, now(desk)) == 0) {
        desk->loaded++;
    } else { /* not wanted any more, or no room: its file is to say so */
        rbi_import_store_dirty(desk->store, row->remote.pidf.cluster);
    }
}

/** What an earlier life knew. Without a folder for it the bridge works as well. */
static void start_store(struct rbi_import_desk *desk, const char *folder)
{
    const int result = rbi_import_store_new(desk->loop, folder, list_cluster, desk, &desk->store);
    if (result < 0) {
        rbi_log(RBI_LOG_WARNING, "instances_not_kept",
                "folder=%s error=\"%s\" text=\"what is known of other hosts is lost with a "
                "restart\"",
                folder, rbi_log_errno(-result));
        return;
    }
    const uint32_t ignored = rbi_import_store_load(desk->store, load_row, desk);
    if (desk->loaded > 0 || ignored > 0) {
        rbi_log(RBI_LOG_INFO, "instances_loaded",
                "folder=%s instances=%" PRIu32 " ignored=%" PRIu32, folder, desk->loaded, ignored);
    }
}

/* ---- life -------------------------------------------------------------------------------- */

static void room_free(const struct room *room)
{
    free(room->entries);
    free(room->clusters);
    free(room->paths);
}

/** @retval 0; -ENOMEM */
static int room_make(uint32_t max, struct room *out)
{
    const uint32_t slots = rbi_import_slots(max);
    const struct room room = {.entries = calloc(max, sizeof *room.entries),
                              .clusters = calloc(slots, sizeof *room.clusters),
                              .paths = calloc(slots, sizeof *room.paths)};
    if (!room.entries || !room.clusters || !room.paths) {
        room_free(&room);
        return -ENOMEM;
    }
    *out = room;
    return 0;
}

int rbi_import_desk_new(struct rbi_loop *loop,
                        const struct rbi_bridge_config *config,
                        const char *folder,
                        const struct rbi_import_desk_calls *calls,
                        void *context,
                        struct rbi_import_desk **out)
{
    struct rbi_import_desk *desk = calloc(1, sizeof *desk);
    if (!desk || room_make(config->limits.instances, &desk->room) < 0) {
        free(desk);
        return -ENOMEM;
    }
    desk->loop = loop;
    desk->config = config;
    desk->calls = calls;
    desk->context = context;
    const struct rbi_import_config import = config_of(config);
    rbi_import_init(&desk->import, &import, desk->room.entries, config->limits.instances,
                    desk->room.clusters, desk->room.paths);
    if (folder) {
        start_store(desk, folder);
    }
    /* In the loop: whoever makes us is not ready for what we call yet. */
    rbi_loop_timer_set(loop, &desk->timer, now(desk), run_due, desk);
    *out = desk;
    return 0;
}

void rbi_import_desk_free(struct rbi_import_desk *desk)
{
    if (!desk) {
        return;
    }
    rbi_loop_timer_cancel(desk->loop, &desk->timer);
    rbi_import_store_free(desk->store);
    room_free(&desk->room);
    free(desk);
}

void rbi_import_desk_configure(struct rbi_import_desk *desk, const struct rbi_bridge_config *config)
{
    struct room larger;
    desk->config = config;
    if (config->limits.instances > desk->import.entry_max) {
        if (room_make(config->limits.instances, &larger) == 0) {
            rbi_import_move(&desk->import, larger.entries, config->limits.instances,
                            larger.clusters, larger.paths);
            room_free(&desk->room);
            desk->room = larger;
        } else {
            rbi_log(RBI_LOG_WARNING, "import_not_larger", "limit=%" PRIu32 " stays=%" PRIu32,
                    config->limits.instances, desk->import.entry_max);
        }
    }
    const struct rbi_import_config import = config_of(config);
    rbi_import_configure(&desk->import, &import, now(desk));
    run(desk);
}

/* ---- what happened ----------------------------------------------------------------------- */

void rbi_import_desk_reach(struct rbi_import_desk *desk,
                           uint64_t host,
                           const char *name,
                           bool reachable)
{
    const int result = rbi_import_reach(&desk->import, host, name, reachable, now(desk));
    if (result < 0 && may_log(desk)) {
        rbi_log(RBI_LOG_WARNING, "host_not_imported", "host=%s error=\"%s\"", name,
                rbi_log_errno(-result));
    }
    run(desk);
}

void rbi_import_desk_way_changed(struct rbi_import_desk *desk, uint64_t host)
{
    rbi_import_way_changed(&desk->import, host, now(desk));
    run(desk);
}

void rbi_import_desk_source_lost(struct rbi_import_desk *desk, uint64_t host)
{
    rbi_import_source_lost(&desk->import, host, now(desk));
    run(desk);
}

int rbi_import_desk_item(struct rbi_import_desk *desk,
                         uint64_t host,
                         const struct rbi_remote_item *item)
{
    const int result = rbi_import_item(&desk->import, host, item, now(desk));
    if (result == -EPROTO && may_log(desk)) {
        const struct rbi_import_host *from = rbi_import_host_find(&desk->import, host);
        rbi_log(RBI_LOG_WARNING, "import_malformed", "host=%s items=%" PRIu64, from->name,
                from->malformed);
    }
    run(desk);
    return result;
}

void rbi_import_desk_leave(struct rbi_import_desk *desk, uint64_t host)
{
    rbi_import_leave(&desk->import, host, now(desk));
    run(desk);
}

void rbi_import_desk_suspect(struct rbi_import_desk *desk, uint32_t entry)
{
    rbi_import_suspect(&desk->import, entry, now(desk));
    run(desk);
}

void rbi_import_desk_alive(struct rbi_import_desk *desk, uint32_t entry)
{
    rbi_import_alive(&desk->import, entry, now(desk));
    run(desk);
}

void rbi_import_desk_dead(struct rbi_import_desk *desk, uint32_t entry)
{
    rbi_import_dead(&desk->import, entry, now(desk));
    run(desk);
}

void rbi_import_desk_taken(struct rbi_import_desk *desk, uint32_t entry)
{
    rbi_import_taken(&desk->import, entry, now(desk));
    run(desk);
}

uint32_t rbi_import_desk_confirm(struct rbi_import_desk *desk, const char *host, const char *prefix)
{
    const uint64_t id = host[0] != '\0' ? rbi_host_id(host, strlen(host)) : 0;
    const char *below = prefix[0] != '\0' ? prefix : "/";
    const uint32_t count = rbi_import_confirm(&desk->import, id, below, strlen(below), now(desk));
    rbi_log(RBI_LOG_INFO, "removals_confirmed", "host=%s prefix=%s count=%" PRIu32,
            id != 0 ? host : "*", below, count);
    run(desk);
    return count;
}

const struct rbi_import *rbi_import_desk_table(const struct rbi_import_desk *desk)
{
    return &desk->import;
}
