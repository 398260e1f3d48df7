/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/socket_file.h"

#include "shm/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

/** The name beside the place, which may be too long for the kernel: then by way of its folder. */
struct socket_beside {
    char path[RBI_SOCKET_PATH_MAX + 1];
    int folder; /* open while the path leads through it; -1 */
};

/** A short name in the same folder, another for each place. @retval 0; -errno */
static int beside_through_folder(const char *path, struct socket_beside *out)
{
    char folder[RBI_SOCKET_PATH_MAX + 1];
    const char *end = strrchr(path, '/');
    const size_t length = end ? (size_t)(end - path) + 1 : 0;
    memcpy(folder, path, length);
    folder[length] = '\0';
    out->folder = open(length ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (out->folder < 0) {
        return -errno;
    }
    (void)snprintf(out->path, sizeof(out->path), "/proc/self/fd/%d/.%016" PRIx64 ".new",
                   out->folder, XXH3_64bits(path, strlen(path)));
    return 0;
}

static int beside_init(const char *path, struct socket_beside *out)
{
    out->folder = -1;
    const int length = snprintf(out->path, sizeof(out->path), "%s.new", path);
    return length <= (int)RBI_SOCKET_PATH_MAX ? 0 : beside_through_folder(path, out);
}

static void beside_deinit(struct socket_beside *beside)
{
    if (beside->folder >= 0) {
        (void)close(beside->folder);
    }
}

/** Takes a leftover away; what is no socket is somebody's. @retval 0; -EEXIST; -errno */
static int beside_clear(const char *path)
{
    struct stat found;
    if (lstat(path, &found) < 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISSOCK(found.st_mode)) {
        return -EEXIST;
    }
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/** @retval 0; -errno, and @p step says of which call */
static int beside_bind(int fd, const char *path, mode_t mode, const char **step)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    *step = "bind";
    if (bind(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) < 0) {
        return -errno;
    }
    /* At its place the mode is exact from the first instant, and no umask is changed for it: that
     * is the other threads' as well. */
    *step = "chmod";
    return chmod(path, mode) < 0 ? -errno : 0;
}

/** Moves without taking the place of anything; some file systems know one way, some the other. */
static int beside_move(const char *beside, const char *path)
{
    if (renameat2(AT_FDCWD, beside, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    return errno != EINVAL && errno != ENOSYS ? -errno : link(beside, path) < 0 ? -errno : 0;
}

/** @retval 0; -EEXIST something is there; -errno */
static int beside_place(const char *beside, const char *path)
{
    struct stat made;
    struct stat placed;
    const int result = lstat(beside, &made) < 0 ? -errno : beside_move(beside, path);
    if (result < 0) {
        return result;
    }
    /* Without the lock, whose file somebody may have deleted, it can be another daemon's by now. */
    const bool ours =
        lstat(path, &placed) == 0 && placed.st_ino == made.st_ino && placed.st_dev == made.st_dev;
    return ours ? 0 : -EEXIST;
}

static int socket_file_make(
    int fd, const char *beside, const char *path, mode_t mode, int backlog, const char **step)
{
    *step = "clear";
    int result = beside_clear(beside);
    if (result < 0) {
        return result;
    }
    result = beside_bind(fd, beside, mode, step);
    if (result == 0) {
        *step = "listen";
        result = listen(fd, backlog) < 0 ? -errno : 0;
    }
    if (result == 0) {
        *step = "rename";
        result = beside_place(beside, path);
    }
    (void)unlink(beside);
    return result;
}

int rbi_socket_file_listen(const char *path, mode_t mode, int backlog, const char **step)
{
    struct socket_beside beside;
    *step = "folder";
    int result = beside_init(path, &beside);
    if (result < 0) {
        return result;
    }
    *step = "socket";
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    result = fd < 0 ? -errno : socket_file_make(fd, beside.path, path, mode, backlog, step);
    beside_deinit(&beside);
    if (result < 0 && fd >= 0) {
        (void)close(fd);
    }
    return result < 0 ? result : fd;
}
