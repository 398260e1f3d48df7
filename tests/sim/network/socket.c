/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket.c - connected Unix sockets, with packets and descriptors under way. What happens when
 * one end goes is as Linux has it: whoever closes with something unread resets the other,
 * which is told so once, before what it can still read.
 */
#include "tests/sim/network/kernel.h"

#include <errno.h>
#include <stdio.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* What the kernel charges for a packet besides its bytes. */
#define PACKET_OVERHEAD 768U
/* net.core.wmem_default; a stream socket of ours carries bells only. */
#define STREAM_BUFFER ((size_t)212992)
#define BACKLOG_MAX   64U

/* ---- state ------------------------------------------------------------------------------ */

static struct sim_file *socket_file(int fd)
{
    struct sim_file *file = sim_fd_file(fd);
    if (file != NULL && file->kind != SIM_SOCKET) {
        errno = ENOTSOCK;
        return NULL;
    }
    return file;
}

static struct sim_file *socket_new(int type)
{
    struct sim_file *file = sim_file_new(SIM_SOCKET);
    file->u.socket.type = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    file->u.socket.last = &file->u.socket.first;
    return file;
}

static void connect_to(struct sim_file *file, struct sim_file *peer, const struct sim_process *of)
{
    struct sim_socket *s = &file->u.socket;
    s->peer = peer;
    s->connected = true;
    s->peer_process = of->id;
    s->peer_life = of->life;
}

static size_t buffer_room(const struct sim_socket *receiver)
{
    return receiver->type == SOCK_STREAM ? STREAM_BUFFER : sim.send_buffer;
}

uint32_t sim_socket_ready(const struct sim_file *file)
{
    const struct sim_socket *s = &file->u.socket;
    uint32_t ready = 0;
    if (!s->connected) {
        return EPOLLOUT | EPOLLHUP;
    }
    const bool no_receive = s->no_receive || s->peer == NULL;
    const bool no_send = s->no_send || s->peer == NULL;
    if (s->first != NULL || no_receive) {
        ready |= EPOLLIN;
    }
    if (no_receive) {
        ready |= EPOLLRDHUP;
    }
    if (no_receive && no_send) {
        ready |= EPOLLHUP;
    }
    if (s->reset) {
        ready |= EPOLLERR;
    }
    if (s->peer == NULL || s->peer->u.socket.queued < buffer_room(&s->peer->u.socket)) {
        ready |= EPOLLOUT;
    }
    return ready;
}

static void free_packet(struct sim_packet *packet)
{
    for (unsigned i = 0; i < packet->file_count; i++) {
        sim_file_unref(packet->files[i]);
    }
    sim_heap_free(&sim.heap, packet);
}

static struct sim_packet *take_packet(struct sim_socket *s)
{
    struct sim_packet *packet = s->first;
    s->first = packet->next;
    if (s->first == NULL) {
        s->last = &s->first;
    }
    s->queued -= packet->size + PACKET_OVERHEAD;
    return packet;
}

void sim_socket_close(struct sim_file *file)
{
    struct sim_socket *s = &file->u.socket;
    struct sim_file *peer = s->peer;
    if (peer != NULL) {
        peer->u.socket.peer = NULL;
        peer->u.socket.reset |= s->first != NULL;
        sim_file_edge(peer);
    }
    while (s->first != NULL) {
        free_packet(take_packet(s));
    }
}

/* ---- beginning ---------------------------------------------------------------------------- */

int sim_socket(int domain, int type, int protocol)
{
    (void)protocol;
    sim_call();
    if (domain != AF_UNIX) {
        sim_unsupported("socket() of family %d", domain);
    }
    return sim_fd_install(socket_new(type));
}

int sim_socketpair(int domain, int type, int protocol, int ends[2])
{
    (void)domain;
    (void)protocol;
    sim_call();
    struct sim_file *a = socket_new(type);
    struct sim_file *b = socket_new(type);
    connect_to(a, b, sim.current);
    connect_to(b, a, sim.current);
    ends[0] = sim_fd_install(a);
    if (ends[0] < 0) {
        sim_file_unref(b);
        return -1;
    }
    ends[1] = sim_fd_install(b);
    if (ends[1] < 0) {
        sim_fd_close(sim.current, (unsigned)ends[0]);
        return -1;
    }
    return 0;
}

int sim_bind(int fd, const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)address;
    (void)size;
    if (socket_file(fd) == NULL || strcmp(local->sun_path, SIM_SOCKET_BESIDE) != 0) {
        sim_unsupported("bind() to %s", local->sun_path);
    }
    if (sim.beside_inode != 0) {
        errno = EADDRINUSE;
        return -1;
    }
    sim.beside_inode = ++sim.inodes;
    return 0;
}

int sim_listen(int fd, int backlog)
{
    struct sim_file *file = socket_file(fd);
    (void)backlog;
    if (file == NULL) {
        return -1;
    }
    file->kind = SIM_LISTENER;
    memset(&file->u, 0, sizeof file->u);
    sim.listener = file;
    return 0;
}

void sim_listener_close(struct sim_file *file)
{
    if (sim.listener == file) {
        sim.listener = NULL;
    }
    for (unsigned i = 0; i < file->u.listener.count; i++) {
        sim_file_unref(file->u.listener.first[i]);
    }
}

int sim_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    (void)address;
    (void)size;
    sim_call();
    struct sim_file *file = socket_file(fd);
    struct sim_file *listener = sim.socket_inode != 0 ? sim.listener : NULL;
    if (file == NULL) {
        return -1;
    }
    if (listener == NULL || listener->u.listener.count >= BACKLOG_MAX) {
        errno = listener != NULL ? EAGAIN : sim.socket_inode != 0 ? ECONNREFUSED : ENOENT;
        return -1;
    }
    struct sim_file *server = socket_new(SOCK_SEQPACKET);
    connect_to(server, file, sim.current);
    connect_to(file, server, sim.current);
    listener->u.listener.first[listener->u.listener.count++] = server;
    sim_file_edge(listener);
    return 0;
}

int sim_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    (void)address;
    (void)size;
    (void)flags;
    sim_call();
    struct sim_file *listener = sim_fd_file(fd);
    if (listener == NULL || listener->kind != SIM_LISTENER) {
        sim_unsupported("accept4(%d)", fd);
    }
    if (listener->u.listener.count == 0) {
        errno = EAGAIN;
        return -1;
    }
    struct sim_file *server = listener->u.listener.first[0];
    listener->u.listener.count--;
    memmove(&listener->u.listener.first[0], &listener->u.listener.first[1],
            listener->u.listener.count * sizeof(struct sim_file *));
    return sim_fd_install(server);
}

/* ---- sending and receiving ------------------------------------------------------------------ */

static int send_error(struct sim_socket *s)
{
    if (s->reset && s->type == SOCK_SEQPACKET) {
        s->reset = false;
        return ECONNRESET;
    }
    return !s->connected ? ENOTCONN : s->peer == NULL || s->no_send ? EPIPE : 0;
}

static ssize_t
send_packet(struct sim_file *file, const void *data, size_t size, const int *fds, unsigned fd_count)
{
    struct sim_socket *s = &file->u.socket;
    errno = send_error(s);
    if (errno != 0) {
        return -1;
    }
    struct sim_socket *peer = &s->peer->u.socket;
    if (peer->queued >= buffer_room(peer)) {
        errno = EAGAIN;
        return -1;
    }
    struct sim_packet *packet = sim_heap_alloc(&sim.heap, sizeof *packet + size);
    if (packet == NULL) {
        sim_unsupported("the heap of the kernel is full");
    }
    packet->next = NULL;
    packet->size = size;
    packet->file_count = fd_count;
    for (unsigned i = 0; i < fd_count; i++) {
        packet->files[i] = sim_fd_file(fds[i]);
        if (packet->files[i] == NULL) {
            sim_unsupported("sending descriptor %d, which is not open", fds[i]);
        }
        sim_file_ref(packet->files[i]);
    }
    memcpy(packet->bytes, data, size);
    *peer->last = packet;
    peer->last = &packet->next;
    peer->queued += size + PACKET_OVERHEAD;
    sim_file_edge(s->peer);
    return (ssize_t)size;
}

ssize_t sim_send(int fd, const void *data, size_t size, int flags)
{
    (void)flags;
    if (fd == STDERR_FILENO) {
        if (sim.verbose) {
            sim_log("%.*s", (int)size - 1, (const char *)data);
        }
        return (ssize_t)size;
    }
    sim_call();
    struct sim_file *file = socket_file(fd);
    return file != NULL ? send_packet(file, data, size, NULL, 0) : -1;
}

ssize_t sim_sendmsg(int fd, const struct msghdr *message, int flags)
{
    int fds[8];
    unsigned count = 0;
    (void)flags;
    sim_call();
    struct sim_file *file = socket_file(fd);
    if (file == NULL) {
        return -1;
    }
    if (message->msg_controllen > 0) {
        const struct cmsghdr *cmsg = CMSG_FIRSTHDR(message);
        count = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        if (count > 8 || message->msg_iovlen != 1) {
            sim_unsupported("sendmsg() with %u descriptors", count);
        }
        memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
    }
    return send_packet(file, message->msg_iov->iov_base, message->msg_iov->iov_len, fds, count);
}

static void install_files(struct sim_packet *packet, struct msghdr *message)
{
    int fds[8];
    unsigned count = 0;
    for (; count < packet->file_count; count++) {
        sim_file_ref(packet->files[count]);
        fds[count] = sim_fd_install(packet->files[count]);
        if (fds[count] < 0) {
            message->msg_flags |= MSG_CTRUNC;
            break;
        }
    }
    if (count == 0) {
        message->msg_controllen = 0;
        return;
    }
    struct cmsghdr *cmsg = message->msg_control;
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(cmsg), fds, count * sizeof(int));
    message->msg_controllen = CMSG_SPACE(count * sizeof(int));
}

/** A stream gives as many bytes as there are; nobody looks at which. */
static ssize_t receive_stream(struct sim_socket *s, size_t room)
{
    ssize_t taken = 0;
    while (s->first != NULL && (size_t)taken + s->first->size <= room) {
        struct sim_packet *packet = take_packet(s);
        taken += (ssize_t)packet->size;
        free_packet(packet);
    }
    return taken;
}

ssize_t sim_recvmsg(int fd, struct msghdr *message, int flags)
{
    (void)flags;
    sim_call();
    struct sim_file *file = socket_file(fd);
    if (file == NULL) {
        return -1;
    }
    struct sim_socket *s = &file->u.socket;
    message->msg_flags = 0;
    if (s->reset) {
        s->reset = false;
        errno = ECONNRESET;
        return -1;
    }
    if (s->first == NULL) {
        message->msg_controllen = 0;
        if (s->peer == NULL || s->no_receive) {
            return 0;
        }
        errno = EAGAIN;
        return -1;
    }
    if (s->peer != NULL) {
        sim_file_edge(s->peer); /* it has room again */
    }
    const struct iovec *iov = message->msg_iov;
    if (s->type == SOCK_STREAM) {
        message->msg_controllen = 0;
        return receive_stream(s, iov->iov_len);
    }
    struct sim_packet *packet = take_packet(s);
    const size_t size = packet->size < iov->iov_len ? packet->size : iov->iov_len;
    message->msg_flags = packet->size > size ? MSG_TRUNC : 0;
    memcpy(iov->iov_base, packet->bytes, size);
    install_files(packet, message);
    free_packet(packet);
    return (ssize_t)size;
}

/* ---- the rest ------------------------------------------------------------------------------ */

int sim_shutdown(int fd, int how)
{
    struct sim_file *file = socket_file(fd);
    if (file == NULL) {
        return -1;
    }
    const bool receive = how != SHUT_WR;
    const bool send = how != SHUT_RD;
    file->u.socket.no_receive |= receive;
    file->u.socket.no_send |= send;
    sim_file_edge(file);
    if (file->u.socket.peer != NULL) {
        struct sim_socket *peer = &file->u.socket.peer->u.socket;
        peer->no_receive |= send;
        peer->no_send |= receive;
        sim_file_edge(file->u.socket.peer);
    }
    return 0;
}

int sim_getsockopt(int fd, int level, int name, void *out, socklen_t *size)
{
    const struct sim_file *file = socket_file(fd);
    if (file == NULL || level != SOL_SOCKET) {
        return -1;
    }
    const struct sim_socket *s = &file->u.socket;
    int value = 0;
    switch (name) {
    case SO_PEERCRED: {
        const struct ucred credentials = {.pid = (pid_t)(1000 * (s->peer_process + 1)), .uid = 1};
        memcpy(out, &credentials, sizeof credentials);
        *size = sizeof credentials;
        return 0;
    }
    case SO_PEERPIDFD: {
        struct sim_file *pidfd = sim_file_new(SIM_PIDFD);
        pidfd->u.pid.process = s->peer_process;
        pidfd->u.pid.life = s->peer_life;
        value = sim_fd_install(pidfd);
        break;
    }
    case SO_DOMAIN:
        value = AF_UNIX;
        break;
    case SO_TYPE:
        value = s->type;
        break;
    default:
        sim_unsupported("getsockopt(%d)", name);
    }
    memcpy(out, &value, sizeof value);
    *size = sizeof value;
    return value < 0 ? -1 : 0;
}

int sim_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    (void)level;
    (void)name;
    (void)value;
    (void)size;
    return socket_file(fd) != NULL ? 0 : -1;
}

int sim_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
    (void)address;
    (void)size;
    const struct sim_file *file = socket_file(fd);
    if (file == NULL) {
        return -1;
    }
    if (!file->u.socket.connected || file->u.socket.peer == NULL) {
        errno = ENOTCONN;
        return -1;
    }
    return 0;
}

int sim_getsockname(int fd, struct sockaddr *address, socklen_t *size)
{
    (void)address;
    (void)size;
    sim_unsupported("getsockname(%d)", fd);
}
