/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_WATCH_H
#define RINGBUS_DAEMON_WATCH_H
/*
 * daemon/watch.h - who wants to hear of what. WATCH names a prefix, TARGET a cluster or
 * an instance; both are found through the at most 8 prefixes of the path that has
 * changed, so the cost of a change does not grow with watches elsewhere.
 */
#include "bus/record.h"
#include "bus/wire.h"
#include "daemon/list.h"
#include "daemon/map.h"
#include "daemon/quota.h"

struct rbi_daemon;
struct rbi_endpoint;
struct rbi_peer;

enum rbi_watch_kind { RBI_WATCH_PREFIX = 0, RBI_WATCH_TARGET = 1 };

struct rbi_watches {
    struct rbi_map prefixes;
    uint32_t count;
};

RBI_MUST_CHECK int rbi_watches_init(struct rbi_watches *watches);
void rbi_watches_deinit(struct rbi_watches *watches);

/**
 * @param path    canonical
 * @param charge  taken when the watch is added, and returned when it ends
 * @retval 0; 1 it was there already; -errno
 */
RBI_MUST_CHECK int rbi_watch_add(struct rbi_peer *peer,
                                 const struct rbi_text *path,
                                 enum rbi_watch_kind kind,
                                 struct rbi_charge *charge);
/** @retval 0; 1 there was none */
RBI_MUST_CHECK int
rbi_watch_remove(struct rbi_peer *peer, const struct rbi_text *path, enum rbi_watch_kind kind);
void rbi_watch_clear(struct rbi_peer *peer);
/** Sends an EVENT for every visible instance at or below @p path that it may see. */
void rbi_watch_send_present(struct rbi_peer *peer,
                            enum rbi_watch_kind kind,
                            const struct rbi_text *path);
/** The same for all that a client watches: after it has been given rights. */
void rbi_watch_send_all_present(struct rbi_peer *peer);
/** Sends all alarms that fire at and below what a client watches. */
void rbi_watch_send_alarms(struct rbi_peer *peer);
/** Calls for each client that watches a path or what is above it, also more than once. */
void rbi_watch_each(struct rbi_daemon *daemon,
                    const char *path,
                    uint32_t length,
                    void (*call)(struct rbi_peer *peer, void *context),
                    void *context);
/** Tells all whom it concerns. */
void rbi_watch_notify(struct rbi_daemon *daemon,
                      const struct rbi_endpoint *endpoint,
                      enum rbi_change change,
                      enum rbi_reason reason);

#endif
