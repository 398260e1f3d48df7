/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_HANDOFF_H
#define RINGBUS_SHM_HANDOFF_H
/*
 * shm/handoff.h - bytes with descriptors over a Unix SOCK_SEQPACKET socket: the
 * way in which segments travel. Nothing here waits; EINTR never reaches the caller;
 * SIGPIPE is never raised.
 */
#include "shm/base.h"

#include <sys/types.h>

/** Most descriptors that one message of ours carries. */
#define RBI_HANDOFF_FDS_MAX 8U
/** Most that the kernel delivers in one message; room is kept so that none can hide. */
#define RBI_HANDOFF_FDS_KERNEL 253U

/** Received descriptors, each owned until taken. Zero-initialise with RBI_FDLIST_NULL. */
struct rbi_fdlist {
    int fds[RBI_HANDOFF_FDS_MAX];
    unsigned count;
    bool truncated; /* the kernel dropped some (limit or security module) */
    bool surplus;   /* more came than a message of ours carries; the rest was closed */
};
#define RBI_FDLIST_NULL                                                                            \
    {                                                                                              \
        .count = 0                                                                                 \
    }

/**
 * Closes a descriptor of unknown sort that a peer sent. A socket that is set to linger
 * would hold us in close() for as long as the peer likes; it is told not to first.
 */
void rbi_fd_discard(int fd);
/** Takes descriptor @p idx out of the list: the caller owns it. -1 when there is none. */
int rbi_fdlist_steal(struct rbi_fdlist *list, unsigned idx);
/** Discards what is left and empties the list. */
void rbi_fdlist_deinit(struct rbi_fdlist *list);

/**
 * Sends one packet.
 *
 * @param sock    connected SEQPACKET socket, borrowed
 * @param data    at least one byte
 * @param size    bytes
 * @param fds     borrowed; the kernel holds its own references after success
 * @param fd_count at most RBI_HANDOFF_FDS_MAX
 * @retval 0            sent whole
 * @retval -EAGAIN      no room in the socket; wait until it is writable
 * @retval -ETOOMANYREFS too many descriptors of this user are in flight; retry later
 * @retval -errno       the peer is gone, or what the kernel refused
 */
RBI_MUST_CHECK int
rbi_handoff_send(int sock, const void *data, size_t size, const int *fds, unsigned fd_count);

/**
 * Receives one packet; descriptors arrive close-on-exec.
 *
 * Every SCM_RIGHTS block is looked at; credentials and the like are skipped.
 *
 * @param sock   borrowed
 * @param data   room for @p size bytes
 * @param fds    an empty list; filled, caller deinits it
 * @retval >0    bytes of the packet
 * @retval 0     end of file: the peer has closed
 * @retval -EAGAIN nothing there
 * @retval -EMSGSIZE the packet was longer than @p size; it was dropped, its descriptors closed
 * @retval -errno what the kernel said
 */
RBI_MUST_CHECK ssize_t rbi_handoff_recv(int sock, void *data, size_t size, struct rbi_fdlist *fds);

/** Longest path that fits a Unix socket address, in bytes without the terminator: 107. */
#define RBI_SOCKET_PATH_MAX 107U

/**
 * Starts to connect a non-blocking, close-on-exec SEQPACKET socket to @p path.
 *
 * @return the descriptor (owned by the caller), or
 * @retval -ENAMETOOLONG  longer than RBI_SOCKET_PATH_MAX: nothing was done
 * @retval -errno         ENOENT or ECONNREFUSED: nobody listens; EAGAIN: its backlog is full
 */
RBI_MUST_CHECK int rbi_handoff_connect(const char *path);

#endif
