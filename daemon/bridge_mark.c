/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge_mark.h"

#include "daemon/state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#define MARK_PATH_MAX 256
#define MARK_TEXT_MAX 128

/** @return whether the name is not too long */
static bool mark_path(const char *socket, char *out, size_t size)
{
    return snprintf(out, size, "%s.child", socket) < (int)size;
}

uint64_t rbi_bridge_mark_of(const struct rbi_bridge_config *config)
{
    uint64_t hash = XXH3_64bits(config->host, sizeof(config->host));
    hash = XXH3_64bits_withSeed(config->listen, sizeof(config->listen), hash + config->insecure);
    return hash ? hash : 1;
}

int rbi_bridge_mark_write(const char *socket, const struct rbi_bridge_mark *mark)
{
    char path[MARK_PATH_MAX];
    char text[MARK_TEXT_MAX];
    if (!mark_path(socket, path, sizeof(path))) {
        return -ENAMETOOLONG;
    }
    const int fd = rbi_state_file_create(path);
    if (fd < 0) {
        return fd;
    }
    const int length = snprintf(text, sizeof(text), "%d %" PRIu64 " %016" PRIx64 "\n",
                                (int)mark->pid, mark->started, mark->fingerprint);
    const ssize_t n = write(fd, text, (size_t)length);
    const int result = n == length ? 0 : n < 0 ? -errno : -ENOSPC;
    (void)close(fd);
    return result;
}

/** "PID STARTED FINGERPRINT", the last hexadecimal. @return whether it is that */
static bool mark_parse(const char *text, struct rbi_bridge_mark *out)
{
    char *end = NULL;
    const unsigned long pid = strtoul(text, &end, 10);
    if (end == text || *end != ' ' || pid <= 1 || pid > INT32_MAX) {
        return false;
    }
    out->pid = (pid_t)pid;
    const char *started = end + 1;
    out->started = strtoull(started, &end, 10);
    if (end == started || *end != ' ' || out->started == 0) {
        return false;
    }
    const char *fingerprint = end + 1;
    out->fingerprint = strtoull(fingerprint, &end, 16);
    return end != fingerprint && *end == '\n';
}

bool rbi_bridge_mark_read(const char *socket, struct rbi_bridge_mark *out)
{
    char path[MARK_PATH_MAX];
    char text[MARK_TEXT_MAX];
    uint64_t size = 0;
    const int fd = mark_path(socket, path, sizeof(path)) ? rbi_state_file_open(path, &size) : -1;
    if (fd < 0) {
        return false;
    }
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return mark_parse(text, out);
}

void rbi_bridge_mark_remove(const char *socket)
{
    char path[MARK_PATH_MAX];
    if (mark_path(socket, path, sizeof(path))) {
        (void)unlink(path);
    }
}
