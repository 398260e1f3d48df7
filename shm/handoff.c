/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/handoff.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/** Credentials and security labels may share the control data with descriptors. */
#define CONTROL_OTHER 512U
#define CONTROL_MAX   (CMSG_SPACE(RBI_HANDOFF_FDS_KERNEL * sizeof(int)) + CONTROL_OTHER)

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == RBI_SOCKET_PATH_MAX + 1, "kernel");

void rbi_fd_discard(int fd)
{
    const struct linger none = {.l_onoff = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none); /* fails if it is no socket */
    (void)close(fd);
}

int rbi_fdlist_steal(struct rbi_fdlist *list, unsigned idx)
{
    if (idx >= list->count) {
        return -1;
    }
    const int fd = list->fds[idx];
    list->fds[idx] = -1;
    return fd;
}

void rbi_fdlist_deinit(struct rbi_fdlist *list)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (list->fds[i] >= 0) {
            rbi_fd_discard(list->fds[i]);
        }
    }
    list->count = 0;
    list->truncated = false;
    list->surplus = false;
}

int rbi_handoff_send(int sock, const void *data, size_t size, const int *fds, unsigned fd_count)
{
    union {
        struct cmsghdr align;
        unsigned char bytes[CMSG_SPACE(RBI_HANDOFF_FDS_MAX * sizeof(int))];
    } control;
    RBI_ASSERT(size > 0 && fd_count <= RBI_HANDOFF_FDS_MAX);
    /* sendmsg() does not write through it; the structure serves both directions. */
    struct iovec iov = {.iov_len = size};
    memcpy(&iov.iov_base, &data, sizeof data);
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
    }
    for (;;) {
        if (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            return 0; /* a packet goes whole or not at all */
        }
        if (errno != EINTR) {
            return -errno;
        }
    }
}

/** Takes in the descriptors of one SCM_RIGHTS block; closes those that no message of ours has. */
static void take_rights(struct rbi_fdlist *list, struct cmsghdr *cmsg)
{
    const size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
        if (list->count < RBI_HANDOFF_FDS_MAX) {
            list->fds[list->count++] = fd;
        } else {
            list->surplus = true;
            rbi_fd_discard(fd);
        }
    }
}

ssize_t rbi_handoff_recv(int sock, void *data, size_t size, struct rbi_fdlist *fds)
{
    union {
        struct cmsghdr align;
        unsigned char bytes[CONTROL_MAX];
    } control;
    struct iovec iov = {.iov_base = data, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    RBI_ASSERT(size > 0 && fds->count == 0);
    ssize_t n = -1;
    do {
        n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -errno;
    }
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg); cmsg != NULL; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
        if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
            take_rights(fds, cmsg);
        }
    }
    fds->truncated = (msg.msg_flags & MSG_CTRUNC) != 0;
    if (n == 0 || (msg.msg_flags & MSG_TRUNC) != 0) {
        rbi_fdlist_deinit(fds);
        return n == 0
                   ? 0
                   : -EMSGSIZE; /* an empty packet is as good as a closed peer: nobody sends one */
    }
    return n;
}

int rbi_handoff_connect(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    if (len > RBI_SOCKET_PATH_MAX) {
        return -ENAMETOOLONG;
    }
    if (len == 0) {
        return -ENOENT; /* the kernel would take it for an abstract name */
    }
    memcpy(addr.sun_path, path, len + 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    while (connect(fd, (const struct sockaddr *)(const void *)&addr, sizeof addr) != 0) {
        const int err = errno;
        if (err == EINTR) {
            continue;
        }
        (void)close(fd);
        return -err;
    }
    return fd;
}
