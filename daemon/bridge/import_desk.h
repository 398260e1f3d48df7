/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_IMPORT_DESK_H
#define RINGBUS_DAEMON_BRIDGE_IMPORT_DESK_H
/*
 * daemon/bridge/import_desk.h - carries out what bus/import decides: proxies are registered,
 * changed and removed, hosts are asked, the files of what is known are kept
 * (daemon/bridge/import_store.h). One thread, on the loop.
 */
#include "bus/import.h"
#include "daemon/loop.h"

struct rbi_import_desk;

/**
 * What the desk needs of the rest of the bridge. Called from the loop and from inside calls of the
 * desk; they may call the desk, and what that causes follows when they have returned.
 */
struct rbi_import_desk_calls {
    /** Registers a proxy. @retval 0 @p user is set; -errno tried again like a refusal */
    int (*add)(void *context,
               const struct rbi_import_host *host,
               uint32_t entry,
               const struct rbi_remote *remote,
               bool stale,
               void **user);
    void (*update)(void *context, void *user, const struct rbi_remote *remote, bool stale);
    /** @param reason  enum rbi_reason; LEFT: in order, after what is under way */
    void (*remove)(void *context, void *user, uint32_t reason);
    /** Sends DIR_ASK. @retval 0; -errno tried again */
    int (*ask)(void *context, uint64_t host, uint64_t incarnation, uint64_t revision);
};

/**
 * @param config  of the bridge, lent
 * @param folder  where files of what is known are kept; NULL: none are
 * @retval 0; -errno
 */
RBI_MUST_CHECK int rbi_import_desk_new(struct rbi_loop *loop,
                                       const struct rbi_bridge_config *config,
                                       const char *folder,
                                       const struct rbi_import_desk_calls *calls,
                                       void *context,
                                       struct rbi_import_desk **out);
/** Writes what is known; proxies stay the caller's. Accepts NULL. */
void rbi_import_desk_free(struct rbi_import_desk *desk);
/** After a reload; @p config is lent. */
void rbi_import_desk_configure(struct rbi_import_desk *desk,
                               const struct rbi_bridge_config *config);

/** There is a way to a host, or none any more. */
void rbi_import_desk_reach(struct rbi_import_desk *desk,
                           uint64_t host,
                           const char *name,
                           bool reachable);
/** The way to a host is another one: what was under way on the old one is asked for again. */
void rbi_import_desk_way_changed(struct rbi_import_desk *desk, uint64_t host);
/** What lists the instances of a host cannot be asked: rbi_import_source_lost(). */
void rbi_import_desk_source_lost(struct rbi_import_desk *desk, uint64_t host);
/** A DIR_ITEM of a host. @retval 0; -EPROTO, -ENOENT as rbi_import_item() */
RBI_MUST_CHECK int rbi_import_desk_item(struct rbi_import_desk *desk,
                                        uint64_t host,
                                        const struct rbi_remote_item *item);
/** A host leaves in order (BYE). */
void rbi_import_desk_leave(struct rbi_import_desk *desk, uint64_t host);
/* Of an entry, as given to add(): a link of it ended by silence, it was heard of, its host says
 * that it is not there, the daemon says that its path is in use (and the proxy has been freed). An
 * entry that is gone is ignored. */
void rbi_import_desk_suspect(struct rbi_import_desk *desk, uint32_t entry);
void rbi_import_desk_alive(struct rbi_import_desk *desk, uint32_t entry);
void rbi_import_desk_dead(struct rbi_import_desk *desk, uint32_t entry);
void rbi_import_desk_taken(struct rbi_import_desk *desk, uint32_t entry);
/** CONFIRM of a tool; empty texts stand for all. @return how many are removed by it */
uint32_t
rbi_import_desk_confirm(struct rbi_import_desk *desk, const char *host, const char *prefix);
/** To look at: hosts, entries, counters. */
const struct rbi_import *rbi_import_desk_table(const struct rbi_import_desk *desk);

#endif
