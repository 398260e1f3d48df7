/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_STATE_FILE_H
#define RINGBUS_DAEMON_STATE_FILE_H
/*
 * daemon/state_file.h - files that a daemon leaves to the next one. What is in them holds as if an
 * operator had said it, and the folder of the socket may be one that others can write to: so only
 * a file that nobody but this user, or root, can have written is read, and a new one is never
 * written into something that was there before.
 */
#include "shm/base.h"

/**
 * Opens one to be read. Never waits, whatever is in its place.
 * @param size  written: bytes of it
 * @retval descriptor; -ENOENT; -EPERM others could have written it; -EINVAL no plain file; -errno
 */
RBI_MUST_CHECK int rbi_state_file_open(const char *path, uint64_t *size);
/** Makes an empty one, mode 0600, in the place of what is left of an earlier attempt.
 *  @retval descriptor, for reading and writing; -errno */
RBI_MUST_CHECK int rbi_state_file_create(const char *path);

#endif
