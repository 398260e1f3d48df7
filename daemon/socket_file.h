/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_SOCKET_FILE_H
#define RINGBUS_DAEMON_SOCKET_FILE_H
/*
 * daemon/socket_file.h - a socket file that takes connections from the instant it is there. bind()
 * makes the file and listen() comes after it: in between, who connects is refused, as at the file
 * of a daemon that was killed. So it is made beside its place, "<path>.new", listens there, and is
 * moved to its place, which never takes the place of another's.
 */
#include "shm/base.h"

#include <sys/types.h>

/**
 * Listens at @p path, where nothing is; what one that was killed has left beside it is removed.
 * The caller holds the lock of the place (lock.h).
 * @param path  at most RBI_SOCKET_PATH_MAX bytes
 * @param mode  of the file, from its first instant, whatever the umask
 * @param step  set on failure: which call it was
 * @return a non-blocking, close-on-exec descriptor; -EEXIST something is there; -errno
 */
RBI_MUST_CHECK int
rbi_socket_file_listen(const char *path, mode_t mode, int backlog, const char **step);

#endif
