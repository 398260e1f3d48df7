/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include "daemon/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_FDS_START 3

/* The environment is read before anything else runs; the daemon has one thread. */
static const char *environment(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe) */
}

#define SOCKET_NAME "ringbus"
#define STORED_NAME "ringbus-directory-" /* and its index */
#define HANDED_MAX  1024U

static struct {
    int fd;                            /* connected; 0 = no manager, descriptor 0 is never ours */
    int listen_fd;                     /* these too: 0 = none */
    bool listen_named;                 /* by our name, and not by its unit's */
    int stored_fds[RBI_NOTIFY_STORED]; /* as handed over */
    bool stored[RBI_NOTIFY_STORED];    /* the manager has one of this index */
    unsigned current;                  /* index of the one in use */
    bool mute;                         /* it has been said that the manager hears nothing */
} notify_state;

/** Nobody to tell is not our failure: the manager has timeouts of its own. But it is said, once. */
static void notify_failed(const char *step, int error)
{
    if (!notify_state.mute) {
        rbi_log(RBI_LOG_WARNING, "notify_failed", "step=%s error=\"%s\"", step,
                rbi_log_errno(error));
    }
    notify_state.mute = true;
}

void rbi_notify_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = environment("NOTIFY_SOCKET");
    const size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        notify_failed("socket", errno);
        return;
    }
    while (connect(fd, (const struct sockaddr *)(const void *)&address, size) < 0) {
        if (errno != EINTR) {
            notify_failed("connect", errno);
            (void)close(fd);
            return;
        }
    }
    notify_state.fd = fd;
}

void rbi_notify_close(void)
{
    if (notify_state.fd) {
        (void)close(notify_state.fd);
        notify_state.fd = 0;
    }
}

void rbi_notify(const char *state)
{
    if (!notify_state.fd) {
        return;
    }
    ssize_t n = 0;
    do {
        n = send(notify_state.fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        notify_failed("send", errno);
    } else {
        notify_state.mute = false;
    }
}

/** A decimal environment variable, or 0 when absent or malformed. */
static uint64_t environment_number(const char *name)
{
    const char *text = environment(name);
    char *end = NULL;
    if (!text || *text < '0' || *text > '9') {
        return 0;
    }
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' ? value : 0;
}

/** True when the variable names this process, or is absent and @p if_absent says so. */
static bool environment_is_self(const char *name, bool if_absent)
{
    return environment(name) ? environment_number(name) == (uint64_t)getpid() : if_absent;
}

static bool name_is(const char *name, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(name, wanted, length) == 0;
}

/** Index of a kept descriptor by its name, or RBI_NOTIFY_STORED. */
static unsigned stored_idx(const char *name, size_t length)
{
    for (unsigned i = 0; i < RBI_NOTIFY_STORED; i++) {
        char wanted[32];
        (void)snprintf(wanted, sizeof(wanted), STORED_NAME "%u", i);
        if (name_is(name, length, wanted)) {
            return i;
        }
    }
    return RBI_NOTIFY_STORED;
}

/**
 * Puts one handed-over descriptor where it belongs by its name. A socket has the name of its
 * unit unless that says otherwise, so any other name will do when none is ours.
 * @return what is left over, or -1
 */
static int handed_sort(int fd, const char *name, size_t length)
{
    const unsigned idx = stored_idx(name, length);
    int *place = idx < RBI_NOTIFY_STORED ? &notify_state.stored_fds[idx] : &notify_state.listen_fd;
    const bool ours = name_is(name, length, SOCKET_NAME);
    if (*place && (idx < RBI_NOTIFY_STORED || !ours || notify_state.listen_named)) {
        return fd;
    }
    const int before = *place;
    *place = fd;
    if (idx < RBI_NOTIFY_STORED) {
        notify_state.stored[idx] = true;
    } else {
        notify_state.listen_named = ours;
    }
    return before ? before : -1;
}

void rbi_notify_take_fds(void)
{
    const bool ours = environment_is_self("LISTEN_PID", false);
    const uint64_t count = environment_number("LISTEN_FDS");
    const char *names = environment("LISTEN_FDNAMES");
    for (uint64_t i = 0; ours && i < count && i < HANDED_MAX; i++) {
        const int fd = LISTEN_FDS_START + (int)i;
        const size_t length = names ? strcspn(names, ":") : 0;
        const int left = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? handed_sort(fd, names, length) : -1;
        if (left >= 0) {
            rbi_log(RBI_LOG_WARNING, "handed_over_in_vain", "fd=%d", left);
            (void)close(left);
        }
        names = names && names[length] == ':' ? names + length + 1 : "";
    }
    (void)unsetenv("LISTEN_PID");     /* NOLINT(concurrency-mt-unsafe) */
    (void)unsetenv("LISTEN_FDS");     /* NOLINT(concurrency-mt-unsafe) */
    (void)unsetenv("LISTEN_FDNAMES"); /* NOLINT(concurrency-mt-unsafe) */
}

/** Gives a descriptor out of its place. */
static int steal(int *place)
{
    const int fd = *place;
    *place = 0;
    return fd ? fd : -1;
}

int rbi_notify_listen_fd(void)
{
    return steal(&notify_state.listen_fd);
}

int rbi_notify_stored_fd(unsigned idx)
{
    return steal(&notify_state.stored_fds[idx]);
}

/** @return whether the manager's socket took it */
static bool send_stored(unsigned idx, int fd)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%s=1\nFDNAME=" STORED_NAME "%u",
                   fd >= 0 ? "FDSTORE" : "FDSTOREREMOVE", idx);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    if (sendmsg(notify_state.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return false;
    }
    notify_state.stored[idx] = fd >= 0;
    return true;
}

void rbi_notify_store(int fd)
{
    if (!notify_state.fd) {
        return;
    }
    /* The new one first: at no time is there none. The index is one that is not in use. */
    const unsigned next =
        notify_state.stored[notify_state.current] ? !notify_state.current : notify_state.current;
    if (notify_state.stored[next]) {
        (void)send_stored(next, -1);
    }
    if (!send_stored(next, fd)) {
        return; /* the one before is better than none: the next daemon knows it for old */
    }
    notify_state.current = next;
    if (notify_state.stored[!next]) {
        (void)send_stored(!next, -1);
    }
}

uint64_t rbi_notify_watchdog_ns(void)
{
    return environment_is_self("WATCHDOG_PID", true)
               ? environment_number("WATCHDOG_USEC") * 1000 / 2
               : 0;
}
