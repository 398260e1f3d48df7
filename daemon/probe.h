/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_PROBE_H
#define RINGBUS_DAEMON_PROBE_H
/* daemon/probe.h - whether a daemon lives behind a socket file. Waits up to a second. */
#include "shm/base.h"

/**
 * A connection alone proves nothing: the kernel takes a moment to let go of a killed
 * daemon's socket when io_uring has requests on it, and connects clients meanwhile. So
 * it is asked, and must say something.
 */
bool rbi_probe_alive(const char *socket_path);

#endif
