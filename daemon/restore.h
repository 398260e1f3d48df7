/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_RESTORE_H
#define RINGBUS_DAEMON_RESTORE_H
/*
 * daemon/restore.h - the directory over restarts: the service manager keeps its descriptor
 * (notify.h), and the next daemon begins where the last one ended, with the same epochs and a
 * revision that goes on growing. Not in the same segment: once sealed nobody can write it
 * but the process that made it, and that is dead.
 */
#include "shm/base.h"

struct rbi_daemon;

/**
 * Reads what the manager has kept, if anything, into the registry. What is not whole, or was
 * made by another layout, is left alone, with a line in the log: the daemon starts afresh.
 * What it then has is kept from here on.
 */
void rbi_restore(struct rbi_daemon *daemon);
/** Reads the better one of these. @param fds  of any kind; closed; -1 = none */
void rbi_restore_consume_fds(struct rbi_daemon *daemon, const int *fds, unsigned fd_count);
/**
 * Gives the manager the segment in use to keep, and takes back the one before. Nothing before
 * rbi_restore() is done.
 */
void rbi_restore_keep(struct rbi_daemon *daemon);

#endif
