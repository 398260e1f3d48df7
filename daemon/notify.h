/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_NOTIFY_H
#define RINGBUS_DAEMON_NOTIFY_H
/*
 * daemon/notify.h - the protocols of a service manager, spoken directly: readiness
 * and status (NOTIFY_SOCKET), handed-over sockets (LISTEN_FDS), watchdog.
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
/** First handed-over socket, close-on-exec, or -1. Takes the variables out of the environment. */
int rbi_notify_listen_fd(void);
/** How often the manager wants to hear "WATCHDOG=1", in ns: half of what it said; 0 = never. */
uint64_t rbi_notify_watchdog_ns(void);

#endif
