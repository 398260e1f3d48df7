/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - descriptors, the small kinds of files, and the two names of the file system. */
#include "tests/sim/network/kernel.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define FIRST_FD 3U /* 0, 1 and 2 are what they always are */

/* ---- files ------------------------------------------------------------------------------ */

struct sim_file *sim_file_new(enum sim_kind kind)
{
    struct sim_file *file = sim_heap_alloc(&sim.heap, sizeof *file);
    if (file == NULL) {
        sim_unsupported("the heap of the kernel is full");
    }
    memset(file, 0, sizeof *file);
    file->kind = kind;
    file->refs = 1;
    sim.files++;
    return file;
}

void sim_file_ref(struct sim_file *file)
{
    file->refs++;
}

void sim_file_unref(struct sim_file *file)
{
    if (--file->refs > 0) {
        return;
    }
    sim_epoll_forget(file);
    switch (file->kind) {
    case SIM_SOCKET:
        sim_socket_close(file);
        break;
    case SIM_LISTENER:
        sim_listener_close(file);
        break;
    case SIM_EPOLL:
        sim_epoll_close(file);
        break;
    case SIM_MEMFD:
        sim_memory_close(file);
        break;
    case SIM_LOCK:
        if (sim.lock_holder == file) {
            sim.lock_holder = NULL;
        }
        break;
    case SIM_NULL:
    case SIM_EVENTFD:
    case SIM_TIMERFD:
    case SIM_SIGNALFD:
    case SIM_PIDFD:
        break;
    }
    sim.files--;
    sim_heap_free(&sim.heap, file);
}

void sim_file_edge(struct sim_file *file)
{
    file->edges++;
}

uint32_t sim_file_ready(const struct sim_file *file)
{
    switch (file->kind) {
    case SIM_EVENTFD:
        return (file->u.counter != 0 ? EPOLLIN : 0U) | EPOLLOUT;
    case SIM_SIGNALFD:
        return file->u.counter != 0 ? EPOLLIN : 0U;
    case SIM_TIMERFD:
        return file->u.expires_ns <= sim.now_ns ? EPOLLIN : 0U;
    case SIM_PIDFD: {
        const struct sim_process *process = &sim.processes[file->u.pid.process];
        return process->life != file->u.pid.life || process->state == SIM_ENDED ? EPOLLIN : 0U;
    }
    case SIM_SOCKET:
        return sim_socket_ready(file);
    case SIM_LISTENER:
        return file->u.listener.count != 0 ? EPOLLIN : 0U;
    case SIM_EPOLL:
        return sim_epoll_ready(file);
    case SIM_NULL:
    case SIM_LOCK:
    case SIM_MEMFD:
        break;
    }
    return EPOLLIN | EPOLLOUT;
}

/* ---- descriptors ------------------------------------------------------------------------- */

struct sim_file *sim_fd_file(int fd)
{
    struct sim_file *file = fd >= 0 && fd < (int)SIM_FDS_MAX ? sim.current->fds[fd] : NULL;
    if (file == NULL) {
        errno = EBADF;
    }
    return file;
}

int sim_fd_install(struct sim_file *file)
{
    struct sim_process *process = sim.current;
    for (unsigned fd = FIRST_FD; fd < SIM_FDS_MAX; fd++) {
        if (process->fds[fd] == NULL) {
            process->fds[fd] = file;
            process->fd_count++;
            return (int)fd;
        }
    }
    sim_file_unref(file);
    errno = EMFILE;
    return -1;
}

void sim_fd_close(struct sim_process *process, unsigned fd)
{
    struct sim_file *file = process->fds[fd];
    process->fds[fd] = NULL;
    process->fd_count--;
    sim_file_unref(file);
}

int sim_close(int fd)
{
    sim_call();
    if (sim_fd_file(fd) == NULL) {
        /* The next owner of that number would lose it to a second close. */
        sim_unsupported("close(%d): not open", fd);
    }
    sim_fd_close(sim.current, (unsigned)fd);
    return 0;
}

int sim_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    const int argument = va_arg(args, int);
    va_end(args);
    struct sim_file *file = sim_fd_file(fd);
    if (file == NULL) {
        return -1;
    }
    switch (command) {
    case F_DUPFD_CLOEXEC:
        sim_file_ref(file);
        return sim_fd_install(file);
    case F_SETFD:
    case F_SETFL:
        return 0;
    case F_ADD_SEALS:
    case F_GET_SEALS:
        if (file->kind != SIM_MEMFD) {
            errno = EINVAL;
            return -1;
        }
        file->u.memory.seals |= command == F_ADD_SEALS ? argument : 0;
        return command == F_ADD_SEALS ? 0 : file->u.memory.seals;
    default:
        sim_unsupported("fcntl(%d, %d)", fd, command);
    }
}

/* ---- counters, timers, signals ----------------------------------------------------------- */

int sim_eventfd(unsigned value, int flags)
{
    (void)flags;
    struct sim_file *file = sim_file_new(SIM_EVENTFD);
    file->u.counter = value;
    return sim_fd_install(file);
}

int sim_timerfd_create(int clock, int flags)
{
    (void)clock;
    (void)flags;
    struct sim_file *file = sim_file_new(SIM_TIMERFD);
    file->u.expires_ns = SIM_NEVER;
    return sim_fd_install(file);
}

int sim_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old)
{
    (void)old;
    struct sim_file *file = sim_fd_file(fd);
    if (file == NULL || flags != TFD_TIMER_ABSTIME) {
        sim_unsupported("timerfd_settime() of a relative time");
    }
    const uint64_t at_ns =
        (uint64_t)time->it_value.tv_sec * SIM_S + (uint64_t)time->it_value.tv_nsec;
    file->u.expires_ns = at_ns == 0 ? SIM_NEVER : at_ns;
    return 0;
}

int sim_signalfd(int fd, const sigset_t *set, int flags)
{
    (void)set;
    (void)flags;
    if (fd != -1) {
        sim_unsupported("signalfd() of an open one");
    }
    return sim_fd_install(sim_file_new(SIM_SIGNALFD));
}

static ssize_t read_signal(struct sim_file *file, void *out, size_t size)
{
    struct signalfd_siginfo info = {.ssi_signo = SIGTERM};
    if (file->u.counter == 0 || size < sizeof info) {
        errno = EAGAIN;
        return -1;
    }
    file->u.counter = 0;
    memcpy(out, &info, sizeof info);
    return (ssize_t)sizeof info;
}

ssize_t sim_read(int fd, void *out, size_t size)
{
    sim_call();
    struct sim_file *file = sim_fd_file(fd);
    uint64_t value = 0;
    if (file == NULL) {
        return -1;
    }
    if (file->kind == SIM_SIGNALFD) {
        return read_signal(file, out, size);
    }
    if (file->kind == SIM_EVENTFD) {
        value = file->u.counter;
        file->u.counter = 0;
    } else if (file->kind == SIM_TIMERFD) {
        value = file->u.expires_ns <= sim.now_ns ? 1 : 0;
        file->u.expires_ns = value != 0 ? SIM_NEVER : file->u.expires_ns;
    } else {
        sim_unsupported("read() of a file of kind %d", (int)file->kind);
    }
    if (value == 0 || size < sizeof value) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(out, &value, sizeof value);
    return (ssize_t)sizeof value;
}

ssize_t sim_write(int fd, const void *data, size_t size)
{
    sim_call();
    struct sim_file *file = sim_fd_file(fd);
    uint64_t value = 0;
    if (file == NULL || file->kind != SIM_EVENTFD || size != sizeof value) {
        sim_unsupported("write(%d)", fd);
    }
    memcpy(&value, data, sizeof value);
    file->u.counter += value;
    sim_file_edge(file);
    return (ssize_t)size;
}

/* ---- names: the socket of the daemon and its lock file ------------------------------------- */

static bool is_lock(const char *path)
{
    return strcmp(path, SIM_SOCKET_PATH ".lock") == 0;
}

int sim_open(const char *path, int flags, ...)
{
    if (strcmp(path, "/dev/null") == 0) {
        return sim_fd_install(sim_file_new(SIM_NULL));
    }
    if (!is_lock(path)) {
        errno = ENOENT;
        return -1;
    }
    if (sim.lock_inode == 0 && (flags & O_CREAT) != 0) {
        sim.lock_inode = ++sim.inodes;
    }
    struct sim_file *file = sim_file_new(SIM_LOCK);
    file->u.lock.number = sim.lock_inode;
    return sim_fd_install(file);
}

/* Beside the configuration, which is no file here, lies nothing. */
int sim_openat(int folder, const char *path, int flags, ...)
{
    (void)folder;
    (void)path;
    (void)flags;
    errno = ENOENT;
    return -1;
}

int sim_flock(int fd, int operation)
{
    struct sim_file *file = sim_fd_file(fd);
    if (file == NULL || file->kind != SIM_LOCK || operation != (LOCK_EX | LOCK_NB)) {
        sim_unsupported("flock(%d, %d)", fd, operation);
    }
    if (sim.lock_holder != NULL && sim.lock_holder != file) {
        errno = EWOULDBLOCK;
        return -1;
    }
    sim.lock_holder = file;
    return 0;
}

ssize_t sim_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    (void)data;
    (void)offset;
    return sim_fd_file(fd) != NULL ? (ssize_t)size : -1;
}

int sim_ftruncate(int fd, off_t size)
{
    (void)size;
    return sim_fd_file(fd) != NULL ? 0 : -1;
}

/* The number of the socket of that name, 0 when there is none; NULL: no socket has such a name. */
static unsigned *socket_inode(const char *path)
{
    return strcmp(path, SIM_SOCKET_PATH) == 0     ? &sim.socket_inode
           : strcmp(path, SIM_SOCKET_BESIDE) == 0 ? &sim.beside_inode
                                                  : NULL;
}

int sim_access(const char *path, int mode)
{
    const unsigned *inode = socket_inode(path);
    (void)mode;
    if (inode != NULL && *inode != 0) {
        return 0;
    }
    errno = ENOENT;
    return -1;
}

int sim_unlink(const char *path)
{
    unsigned *inode = socket_inode(path);
    if (sim_access(path, F_OK) < 0) {
        return -1;
    }
    *inode = 0;
    sim.listener = inode == &sim.socket_inode ? NULL : sim.listener;
    return 0;
}

/* There are no files that could be renamed. */
int sim_rename(const char *old_path, const char *new_path)
{
    (void)old_path;
    (void)new_path;
    errno = ENOENT;
    return -1;
}

/* Sockets alone, and to a name that nothing has. */
int sim_renameat2(
    int old_folder, const char *old_path, int new_folder, const char *new_path, unsigned flags)
{
    unsigned *from = socket_inode(old_path);
    unsigned *to = socket_inode(new_path);
    if (old_folder != AT_FDCWD || new_folder != AT_FDCWD || flags != RENAME_NOREPLACE ||
        from == NULL || to == NULL) {
        sim_unsupported("renameat2() of %s", old_path);
    }
    if (*from == 0 || *to != 0) {
        errno = *from == 0 ? ENOENT : EEXIST;
        return -1;
    }
    *to = *from;
    *from = 0;
    return 0;
}

int sim_chmod(const char *path, mode_t mode)
{
    return sim_access(path, (int)mode);
}

int sim_link(const char *old_path, const char *new_path)
{
    (void)new_path;
    sim_unsupported("link() of %s", old_path);
}

/* Nor is there a /proc. */
ssize_t sim_readlink(const char *path, char *out, size_t size)
{
    (void)path;
    (void)out;
    (void)size;
    errno = ENOENT;
    return -1;
}

int sim_fsync(int fd)
{
    return sim_fd_file(fd) != NULL ? 0 : -1;
}

int sim_mkdir(const char *path, mode_t mode)
{
    (void)path;
    (void)mode;
    errno = EEXIST;
    return -1;
}

int sim_fstat(int fd, struct stat *out)
{
    const struct sim_file *file = sim_fd_file(fd);
    if (file == NULL) {
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->st_mode = S_IFREG | 0600;
    if (file->kind == SIM_MEMFD) {
        out->st_size = (off_t)file->u.memory.size;
        out->st_blocks = file->u.memory.buffer != NULL ? out->st_size / 512 : 0;
    } else if (file->kind == SIM_LOCK) {
        out->st_ino = file->u.lock.number;
    } else {
        out->st_mode = S_IFSOCK | 0600;
    }
    return 0;
}

int sim_lstat(const char *path, struct stat *out)
{
    const unsigned *named = socket_inode(path);
    const unsigned inode = is_lock(path) ? sim.lock_inode : named != NULL ? *named : 0;
    if (inode == 0) {
        errno = ENOENT;
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->st_ino = inode;
    out->st_mode = (is_lock(path) ? S_IFREG : S_IFSOCK) | 0600;
    return 0;
}
