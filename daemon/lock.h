/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LOCK_H
#define RINGBUS_DAEMON_LOCK_H
/*
 * daemon/lock.h - the advisory lock on "<socket>.lock". What decides is the lock on the
 * open file; whatever its text says is for people.
 */
#include "shm/base.h"

enum rbi_lock_result {
    RBI_LOCK_TAKEN = 0,
    RBI_LOCK_HELD = 1, /* by somebody else */
};

/** @param fd  written on RBI_LOCK_TAKEN: hold it open. @retval RBI_LOCK_*; -errno */
RBI_MUST_CHECK int rbi_lock_take(const char *socket_path, int *fd);
/**
 * Makes sure that the lock held is on the file of that name; takes a new one if the file
 * was removed. On failure the old lock stays.
 */
RBI_MUST_CHECK int rbi_lock_renew(const char *socket_path, int *fd);

#endif
