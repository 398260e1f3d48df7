/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mock.h"

#include "bus/governance_file.h"
#include "daemon/blobs.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading -------------------------------------------------------------------------- */

/** Folder of the configuration file, to go on from. @return descriptor; -errno */
static int open_folder(const char *config_path)
{
    char folder[PATH_MAX] = ".";
    const char *slash = config_path ? strrchr(config_path, '/') : NULL;
    const size_t length = slash ? (size_t)(slash - config_path) : 0;
    if (!config_path || length >= sizeof(folder)) {
        return config_path ? -ENAMETOOLONG : -ENOENT;
    }
    if (slash) {
        memcpy(folder, length ? config_path : "/", length ? length : 1);
        folder[length ? length : 1] = '\0';
    }
    const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

/**
 * One element of a path after the other, so that none leads out.
 * @param at  folder to begin in, taken over
 * @return descriptor; -errno
 */
static int open_below(int at, const char *path)
{
    while (at >= 0 && *path) {
        char element[NAME_MAX + 1];
        const size_t length = strcspn(path, "/");
        const bool last = path[length] == '\0';
        int next = -1;
        errno = EINVAL; /* ".", "..", "//", absolute, or a slash at the end */
        if (length > 0 && length <= NAME_MAX && strncmp(path, "..", length) != 0 &&
            (last || path[length + 1] != '\0')) {
            memcpy(element, path, length);
            element[length] = '\0';
            next = openat(at, element,
                          last ? O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
                               : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        const int error = errno;
        (void)close(at);
        at = next >= 0 ? next : -error;
        path += length + (last ? 0 : 1);
    }
    return at;
}

/** @param bytes  room for one more than may be. @return size; -errno */
static ssize_t read_all(int fd, unsigned char *bytes)
{
    struct stat status;
    size_t used = 0;
    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if (!S_ISREG(status.st_mode)) {
        return -EINVAL;
    }
    while (used <= RBI_MOCK_FILE_MAX) {
        const ssize_t got = read(fd, bytes + used, RBI_MOCK_FILE_MAX + 1 - used);
        if (got < 0 && errno != EINTR) {
            return -errno;
        }
        if (got == 0) {
            return (ssize_t)used;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    return -EFBIG;
}

static const char *why_not(int error, const char *config_path)
{
    switch (error) {
    case EINVAL:
        return "expected a file, by a path without . and .. below the folder of the configuration";
    case EFBIG:
        return "it has more than 65536 bytes";
    case ELOOP:
        return "a symbolic link leads to it";
    default:
        return config_path ? rbi_log_errno(error) : "the daemon was started without --config";
    }
}

/** @retval 0;  1 @p errors has it;  -ENOMEM */
static int read_one(const char *config_path,
                    struct rbi_governance *governance,
                    uint32_t node,
                    const char *path,
                    struct rbi_config_errors *errors)
{
    unsigned char *bytes = malloc(RBI_MOCK_FILE_MAX + 1);
    if (!bytes) {
        return -ENOMEM;
    }
    const int fd = open_below(open_folder(config_path), path);
    const ssize_t size = fd >= 0 ? read_all(fd, bytes) : fd;
    if (fd >= 0) {
        (void)close(fd);
    }
    int result = 1;
    if (size >= 0) {
        result = rbi_governance_take_file(governance, path, bytes, (uint32_t)size);
    } else {
        char name[RBI_TREE_NAME_MAX];
        rbi_config_error_add(errors, governance->tree.nodes[node].place, "%s: %s: %s",
                             rbi_tree_name(&governance->tree, node, name, sizeof(name)), path,
                             why_not((int)-size, config_path));
    }
    free(bytes);
    return result;
}

int rbi_mocks_read(const char *config_path,
                   struct rbi_governance *governance,
                   struct rbi_config_errors *errors)
{
    const char *path = NULL;
    int result = 0;
    for (uint32_t at = rbi_governance_next_file(governance, 0, &path); at && result >= 0;
         at = rbi_governance_next_file(governance, at, &path)) {
        if (!rbi_governance_has_file(governance, path)) {
            const int read = read_one(config_path, governance, at, path, errors);
            result = read != 0 ? read : result;
        }
    }
    return result;
}

/* ---- publishing ----------------------------------------------------------------------- */

void rbi_mocks_hold(struct rbi_daemon *daemon, const struct rbi_policy *policy)
{
    const struct rbi_governance_layers layers = rbi_live_layers(&daemon->live);
    for (uint32_t i = 0; i < policy->degrade_count; i++) {
        const uint64_t key = policy->degrades[i].file_key;
        const struct rbi_governance_file *file =
            key ? rbi_governance_find_file(&layers, key) : NULL;
        const int result = file  ? rbi_blob_hold(daemon, key, file->bytes, file->size)
                           : key ? -ENOENT
                                 : 0;
        if (result < 0) {
            rbi_log(RBI_LOG_ERROR, "mock_absent", "id=%s error=\"%s\"", policy->degrades[i].id,
                    rbi_log_errno(-result));
        }
    }
}

void rbi_mocks_release(struct rbi_daemon *daemon, uint64_t key)
{
    const struct rbi_policy *policy = key ? rbi_blob_bytes(daemon, key) : NULL;
    for (uint32_t i = 0; policy && i < policy->degrade_count; i++) {
        rbi_blob_release(daemon, policy->degrades[i].file_key);
    }
}
