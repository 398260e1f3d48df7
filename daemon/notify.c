/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include <errno.h>
#include <fcntl.h>
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

static struct {
    int fd; /* connected; 0 = no manager, descriptor 0 is never ours */
} notify_state;

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
        return;
    }
    if (connect(fd, (const struct sockaddr *)(const void *)&address, size) < 0) {
        (void)close(fd);
        return;
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
    if (notify_state.fd) {
        /* Nobody to tell is not our failure: the manager has timeouts of its own. */
        (void)send(notify_state.fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
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

int rbi_notify_listen_fd(void)
{
    const bool ours = environment_is_self("LISTEN_PID", false);
    const uint64_t count = environment_number("LISTEN_FDS");
    (void)unsetenv("LISTEN_PID");     /* NOLINT(concurrency-mt-unsafe) */
    (void)unsetenv("LISTEN_FDS");     /* NOLINT(concurrency-mt-unsafe) */
    (void)unsetenv("LISTEN_FDNAMES"); /* NOLINT(concurrency-mt-unsafe) */
    if (!ours || count == 0 || fcntl(LISTEN_FDS_START, F_SETFD, FD_CLOEXEC) < 0) {
        return -1;
    }
    return LISTEN_FDS_START;
}

uint64_t rbi_notify_watchdog_ns(void)
{
    return environment_is_self("WATCHDOG_PID", true)
               ? environment_number("WATCHDOG_USEC") * 1000 / 2
               : 0;
}
