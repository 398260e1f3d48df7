/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_NOTIFY_H
#define RINGBUS_DAEMON_NOTIFY_H
/*
 * daemon/notify.h - the protocols of a service manager, spoken directly: readiness
 * and status (NOTIFY_SOCKET), handed-over sockets (LISTEN_FDS), descriptors that it keeps
 * over a restart (FDSTORE), watchdog.
 */
#include "shm/base.h"

/**
 * Opens the way to the manager, if there is one. It is kept open: a daemon that is out of
 * descriptors must still be able to say that it lives.
 */
void rbi_notify_open(void);
void rbi_notify_close(void);
/** Sends lines such as "READY=1"; nothing happens when no manager listens. */
void rbi_notify(const char *state);
/** Kept descriptors at most: the one in use, and the one that it takes over from. */
#define RBI_NOTIFY_STORED 2U
/**
 * Takes in what was handed over: what was kept, by name, and the socket, which is named
 * "ringbus", or is the first other one. Everything becomes close-on-exec, what is left over is
 * closed, and the variables leave the environment. Once, before anything is opened.
 */
void rbi_notify_take_fds(void);
/** Handed-over socket, or -1. The caller owns it. */
int rbi_notify_listen_fd(void);
/** What the manager had kept, or -1. The caller owns it. */
int rbi_notify_stored_fd(unsigned idx);
/** Gives the manager a descriptor to keep instead of the one that it keeps. */
void rbi_notify_store(int fd);
/** How often the manager wants to hear "WATCHDOG=1", in ns: half of what it said; 0 = never. */
uint64_t rbi_notify_watchdog_ns(void);

#endif
