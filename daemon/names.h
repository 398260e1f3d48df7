/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_NAMES_H
#define RINGBUS_DAEMON_NAMES_H
/*
 * daemon/names.h - the book of names: who had which name under the daemon before, so that nobody
 * else takes it before its owner is back. A file "<socket>.names" beside the lock, of this
 * daemon's user alone; a record for each named instance, written when it registers and blanked
 * when it leaves, so that a daemon that is killed leaves it as it was.
 *
 * A name in it belongs, until the time for coming back is over (settle.h), to whoever proves with
 * the cookie that it is that endpoint, and to the process that had it; and to everybody once that
 * process is dead. Nothing in the book is needed for the daemon to run: without it, or with a
 * damaged record, names are simply free.
 */
#include "bus/wire.h"
#include "daemon/log.h"
#include "daemon/map.h"

struct rbi_daemon;
struct rbi_endpoint;
struct rbi_peer;

struct rbi_names {
    int fd;                 /* -1: there is no book */
    uint32_t record_end;    /* records below this were in use once */
    uint32_t *free_records; /* of those */
    uint32_t free_count;
    uint32_t free_capacity;
    struct rbi_log_limit limit;
    struct rbi_map expected; /* struct names_owner by hash of the path: not back yet */
};

#define RBI_NAMES_NULL                                                                             \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/**
 * Opens the book beside @p socket_path, under whose lock the caller is, and reads what the daemon
 * before has left. Failures are logged and leave it without a book.
 */
void rbi_names_open(struct rbi_names *names, const char *socket_path);
void rbi_names_close(struct rbi_names *names);

/**
 * Whether @p peer may have a name, as far as the daemon before is concerned.
 * @param cookie  that it brings, 0: none
 * @param why     written when not
 */
bool rbi_names_allow(struct rbi_names *names,
                     const struct rbi_peer *peer,
                     const struct rbi_text *path,
                     uint64_t cookie,
                     struct rbi_text *why);
/** Notes an instance that has registered. */
void rbi_names_enter(struct rbi_names *names, struct rbi_endpoint *endpoint);
/** It has left; accepts one that was never noted. */
void rbi_names_leave(struct rbi_names *names, struct rbi_endpoint *endpoint);
/** The time for coming back is over: what is still expected is free. */
void rbi_names_settled(struct rbi_names *names);
#endif
