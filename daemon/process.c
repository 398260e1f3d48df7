/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of /proc/PID/stat, counted from 1; the fields before it are numbers, but for the second. */
#define FIELD_STARTED 22

uint64_t rbi_process_started(uint32_t pid)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "/proc/%" PRIu32 "/stat", pid);
    const int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* The second is the program's own word for itself, in parentheses, which may hold anything. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') {
        return 0; /* or it has ended, and nobody has asked for its status yet */
    }
    for (unsigned field = 2; at && field < FIELD_STARTED; field++) {
        at = strchr(at + 1, ' ');
    }
    const uint64_t started = at ? strtoull(at, NULL, 10) : 0;
    return at && started == 0 ? 1 : started;
}

/** Whether it is still the process that it was: what was read before is its own then. */
static bool process_lives(int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) == 0;
}

size_t rbi_process_file(uint32_t pid, int pidfd, char *out, size_t size)
{
    char name[32];
    out[0] = '\0';
    if (pid == 0 || pidfd < 0) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "/proc/%" PRIu32 "/exe", pid);
    const ssize_t length = readlink(name, out, size - 1);
    const bool known = length > 0 && (size_t)length < size - 1 && process_lives(pidfd);
    out[known ? length : 0] = '\0';
    return known ? (size_t)length : 0;
}

/** @return bytes of the whole file; 0: it cannot be read, or there is more */
static size_t process_read(const char *name, char *out, size_t size)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && used < size) {
        n = read(fd, out + used, size - used);
        used += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return n == 0 ? used : 0;
}

const char *rbi_process_cgroup(uint32_t pid, int pidfd, char **text, size_t *length)
{
    char name[32];
    *text = NULL;
    if (pid == 0 || pidfd < 0 || !(*text = malloc(RBI_CGROUP_TEXT_MAX))) {
        return NULL;
    }
    (void)snprintf(name, sizeof(name), "/proc/%" PRIu32 "/cgroup", pid);
    const size_t used = process_read(name, *text, RBI_CGROUP_TEXT_MAX);
    const char *path = rbi_cgroup_path(*text, used, length);
    return path && process_lives(pidfd) ? path : NULL;
}
