/* SPDX-License-Identifier: Apache-2.0 */
#include "faults/errors.h"

#include "shm/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define ERRORS_MAX 6

struct row {
    const char *name;
    long call;
    int errors[ERRORS_MAX + 1]; /* to the first 0 */
};

#define ROW(name, ...)                                                                             \
    {                                                                                              \
#name, SYS_##name,                                                                         \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/*
 * No EAGAIN for what wakes somebody: a bell or an eventfd that takes no more has rung; nor for
 * reading, since nobody else reads what a descriptor is ready for. No EPERM but where a security
 * module, a seccomp filter of a container or a sealed file gives it.
 */
static const struct row rows[] = {
    ROW(openat, EMFILE, ENFILE, ENOMEM, EACCES, EINTR),
    ROW(memfd_create, EMFILE, ENFILE, ENOMEM, EPERM),
    ROW(fallocate, ENOSPC, ENOMEM, EINTR, EOPNOTSUPP),
    ROW(ftruncate, ENOMEM, EINTR, EPERM),
    ROW(mmap, ENOMEM, EAGAIN, EPERM),
    ROW(mremap, ENOMEM, EAGAIN),
    ROW(mprotect, ENOMEM),
    ROW(madvise, ENOMEM, EAGAIN, EINVAL),
    ROW(fcntl, EMFILE, EPERM),
    ROW(fstatfs, ENOMEM),
    ROW(socket, EMFILE, ENFILE, ENOMEM, ENOBUFS),
    ROW(socketpair, EMFILE, ENFILE, ENOMEM),
    ROW(connect, EAGAIN, EINTR, ECONNREFUSED, EPERM),
    ROW(bind, EACCES, ENOMEM, EADDRINUSE),
    ROW(listen, ENOBUFS),
    ROW(accept4, EMFILE, ENFILE, ENOMEM, ECONNABORTED, EINTR, EAGAIN),
    ROW(getsockopt, ENOMEM, ENOBUFS),
    ROW(setsockopt, ENOMEM, EPERM),
    ROW(getpeername, ENOBUFS),
    ROW(sendmsg, ENOMEM, ENOBUFS, EAGAIN, EINTR, ETOOMANYREFS, EPIPE),
    ROW(recvmsg, ENOMEM, EINTR, ECONNRESET),
    ROW(sendto, ENOMEM, ENOBUFS, EINTR),
    ROW(recvfrom, ENOMEM, EINTR),
    ROW(read, EINTR),
    ROW(write, EINTR),
    ROW(writev, EINTR),
    ROW(epoll_create1, EMFILE, ENFILE, ENOMEM),
    ROW(epoll_ctl, ENOMEM, ENOSPC),
    ROW(epoll_wait, EINTR),
    ROW(epoll_pwait, EINTR),
    ROW(epoll_pwait2, EINTR),
    ROW(poll, EINTR, ENOMEM),
    ROW(ppoll, EINTR, ENOMEM),
    ROW(clock_nanosleep, EINTR),
    ROW(eventfd2, EMFILE, ENFILE, ENOMEM),
    ROW(timerfd_create, EMFILE, ENFILE, ENOMEM),
    ROW(timerfd_settime, EPERM),
    ROW(signalfd4, EMFILE, ENFILE, ENOMEM),
    ROW(pidfd_open, EMFILE, ENFILE, ENOMEM, ESRCH),
    ROW(getrandom, EAGAIN, EINTR),
    ROW(membarrier, EPERM, EINVAL),
    ROW(flock, EINTR, ENOLCK),
    ROW(io_uring_setup, EMFILE, ENFILE, ENOMEM, EPERM, ENOSYS),
    ROW(io_uring_enter, EINTR, EAGAIN, EBUSY, ENOMEM),
    ROW(io_uring_register, ENOMEM, EINVAL, EPERM),
    ROW(clone3, EAGAIN, ENOMEM),
    ROW(prlimit64, EPERM),
#ifdef SYS_newfstatat
    ROW(newfstatat, ENOMEM, EACCES),
#endif
#ifdef SYS_unlink
    ROW(unlink, EACCES),
    ROW(chmod, EPERM),
#endif
};

static const struct row *find(long call)
{
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        if (rows[i].call == call) {
            return &rows[i];
        }
    }
    return NULL;
}

/** Some calls can fail with some arguments only. */
static bool can_fail(long call, const uint64_t arguments[6])
{
    switch (call) {
    case SYS_epoll_ctl:
        return arguments[1] == EPOLL_CTL_ADD;
    case SYS_fcntl:
        return arguments[1] == F_DUPFD || arguments[1] == F_DUPFD_CLOEXEC ||
               arguments[1] == F_ADD_SEALS;
    default:
        return true;
    }
}

int errors_of(long call, const uint64_t arguments[6], unsigned pick)
{
    const struct row *row = find(call);
    if (row == NULL || !can_fail(call, arguments)) {
        return 0;
    }
    for (unsigned i = 0; row->errors[i] != 0; i++) {
        if (i == pick) {
            return row->errors[i];
        }
    }
    return 0;
}

const char *errors_call_name(long call)
{
    static char number[32];
    const struct row *row = find(call);
    (void)snprintf(number, sizeof number, "call %ld", call);
    return row != NULL ? row->name : number;
}

bool errors_is_invisible(long call, int error)
{
    /* For memory and threads EAGAIN means that a limit is reached. */
    const bool limit = call == SYS_mmap || call == SYS_mremap || call == SYS_madvise ||
                       call == SYS_clone3 || call == SYS_io_uring_enter;
    return error == EINTR || (error == EAGAIN && !limit);
}
