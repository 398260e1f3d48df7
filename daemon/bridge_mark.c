/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge_mark.h"

#include "daemon/state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
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

bool rbi_bridge_mark_read(const char *socket, struct rbi_bridge_mark *out)
{
    char path[MARK_PATH_MAX];
    char text[MARK_TEXT_MAX];
    uint64_t size = 0;
    int pid = 0;
    const int fd = mark_path(socket, path, sizeof(path)) ? rbi_state_file_open(path, &size) : -1;
    if (fd < 0) {
        return false;
    }
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%d %" SCNu64 " %" SCNx64, &pid, &out->started, &out->fingerprint) == 3 &&
           (out->pid = pid) > 1 && out->started != 0;
}

void rbi_bridge_mark_remove(const char *socket)
{
    char path[MARK_PATH_MAX];
    if (mark_path(socket, path, sizeof(path))) {
        (void)unlink(path);
    }
}
