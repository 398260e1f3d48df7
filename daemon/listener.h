/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LISTENER_H
#define RINGBUS_DAEMON_LISTENER_H
/*
 * daemon/listener.h - the socket at which clients arrive, and the lock that makes sure
 * that one daemon owns it. The lock is held on an open file "<socket>.lock" (no pid is
 * ever believed); a leftover socket is removed only under it. A socket file that
 * others remove is noticed within seconds and made anew.
 */
#include "daemon/log.h"
#include "daemon/loop.h"
#include "shm/handoff.h"

struct rbi_daemon;

struct rbi_listener {
    int fd;
    int lock_fd;
    int reserve_fd;   /* given up to refuse a client when descriptors are out */
    bool handed_over; /* a service manager owns the socket file */
    char path[RBI_SOCKET_PATH_MAX + 1];
    uint64_t inode;
    uint64_t device;
    uint32_t mode;
    struct rbi_loop_source source;
    struct rbi_loop_timer pause_timer;
    struct rbi_log_limit lost_limit;
    struct rbi_log_limit fd_limit;
    uint64_t refused_no_fds;
};

#define RBI_LISTENER_NULL                                                                          \
    {                                                                                              \
        .fd = -1, .lock_fd = -1, .reserve_fd = -1                                                  \
    }

enum rbi_listener_result {
    RBI_LISTENER_OK = 0,
    RBI_LISTENER_RUNNING = 1, /* another daemon owns the place */
};

/**
 * Where the socket goes: @p option, else @p configured, else the standard places.
 * @retval 0; -EINVAL no place; -ENAMETOOLONG; each is logged
 */
RBI_MUST_CHECK int
rbi_listener_place(const char *option, const char *configured, char path[RBI_SOCKET_PATH_MAX + 1]);
/**
 * Takes the lock, binds and listens, or takes over the socket of a service manager.
 * Failures are logged.
 * @retval RBI_LISTENER_OK; RBI_LISTENER_RUNNING; -errno
 */
RBI_MUST_CHECK int
rbi_listener_open(struct rbi_listener *listener, const char *path, uint32_t mode);
/** Begins to accept. */
RBI_MUST_CHECK int rbi_listener_start(struct rbi_daemon *daemon);
/** Looks whether the socket file is still ours; binds again if not. Now and then. */
void rbi_listener_check(struct rbi_daemon *daemon);
/** Stops listening and removes the socket file. */
void rbi_listener_close(struct rbi_listener *listener);

#endif
