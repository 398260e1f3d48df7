/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/bell.h"

#include "shm/handoff.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/** A peer that floods its own bell is drained at most this many bytes a call. */
#define DRAIN_CALLS_MAX 4U
#define DRAIN_BYTES     512U
/** More packets than the largest usual socket buffer holds. */
#define CLOSE_CALLS_MAX 1024U

static int gone(int err)
{
    return err == EPIPE || err == ECONNRESET || err == ENOTCONN ? -EPIPE : -err;
}

int rbi_bell_pair(int ends[2])
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        return -errno;
    }
    ends[0] = pair[0];
    ends[1] = pair[1];
    return 0;
}

int rbi_bell_ring(int fd)
{
    static const unsigned char one = 1;
    for (;;) {
        /* The flags say it again, for the peer can clear O_NONBLOCK on what it handed us. */
        if (send(fd, &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            return 0;
        }
        if (errno == EAGAIN) {
            return 0; /* so many rings lie there that one more changes nothing */
        }
        if (errno != EINTR) {
            return gone(errno);
        }
    }
}

int rbi_bell_drain(int fd)
{
    unsigned char bytes[DRAIN_BYTES];
    for (unsigned call = 0; call < DRAIN_CALLS_MAX; call++) {
        /* Descriptors that the peer attached are taken as well: the kernel, dropping them for
         * us, would wait for a socket that lingers. */
        struct rbi_fdlist fds = RBI_FDLIST_NULL;
        const ssize_t n = rbi_handoff_recv(fd, bytes, sizeof bytes, &fds);
        rbi_fdlist_deinit(&fds);
        if (n == 0) {
            return -EPIPE;
        }
        if (n < 0) {
            return n == -EAGAIN ? 0 : gone((int)-n);
        }
        if ((size_t)n < sizeof bytes) {
            return 0;
        }
    }
    return 0;
}

void rbi_bell_hang_up(int fd)
{
    (void)shutdown(fd, SHUT_WR);
}

bool rbi_bell_is_hung_up(int fd)
{
    struct pollfd bell = {.fd = fd, .events = POLLRDHUP};
    return poll(&bell, 1, 0) == 1;
}

void rbi_bell_close(int fd)
{
    /* What lies in it goes with it, and must not be what makes close() wait. */
    (void)shutdown(fd, SHUT_RDWR);
    for (unsigned call = 0; call < CLOSE_CALLS_MAX; call++) {
        unsigned char bytes[DRAIN_BYTES];
        struct rbi_fdlist fds = RBI_FDLIST_NULL;
        const ssize_t n = rbi_handoff_recv(fd, bytes, sizeof bytes, &fds);
        rbi_fdlist_deinit(&fds);
        if (n <= 0) {
            break;
        }
    }
    rbi_fd_discard(fd);
}

int rbi_bell_check(int fd)
{
    int domain = 0;
    int type = 0;
    socklen_t domain_len = sizeof domain;
    socklen_t type_len = sizeof type;
    struct sockaddr_un peer;
    socklen_t peer_len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) != 0 || domain != AF_UNIX ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_STREAM ||
        getpeername(fd, (struct sockaddr *)(void *)&peer, &peer_len) != 0) {
        return -EBADF;
    }
    return 0;
}
