/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_KNOWN_H
#define RINGBUS_DAEMON_KNOWN_H
/*
 * daemon/known.h - the clusters that are known, as a file, so that a restarted daemon tells "nobody
 * is there now" from "there is no such service" as the one before did. A text file, a line for
 * each, written anew beside its place and renamed there: when a cluster is made by hand before that
 * is answered, else within a second, and for how long they have been empty once more at the end.
 * It is never waited for: what a loss of power takes are names that come back with their owners.
 */
#include "daemon/log.h"

struct rbi_daemon;

#define RBI_KNOWN_PATH_MAX 255U

struct rbi_known {
    char path[RBI_KNOWN_PATH_MAX + 1];
    bool open;  /* it was read: from now on it may be written */
    bool dirty; /* other clusters are known than it says */
    struct rbi_log_limit limit;
};

/** Reads what there is into the registry, as empty clusters; those that it has are left alone. */
void rbi_known_open(struct rbi_daemon *daemon);
/** Writes it if it is outdated. What cannot be written is logged now and then. */
void rbi_known_sync(struct rbi_daemon *daemon);
/** The end of the daemon: the same, with what has become empty since. */
void rbi_known_close(struct rbi_daemon *daemon);

#endif
