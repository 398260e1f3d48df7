/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_PATH_MAX 256
#define LOCK_TRIES    16

static int lock_path(const char *socket_path, char path[LOCK_PATH_MAX])
{
    return snprintf(path, LOCK_PATH_MAX, "%s.lock", socket_path) < LOCK_PATH_MAX ? 0
                                                                                 : -ENAMETOOLONG;
}

/** Whether the open file still has that name. */
static bool lock_file_is(int fd, const char *path)
{
    struct stat open_file;
    struct stat named;
    return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

/** For people who look into the file; nothing ever reads it back. */
static void lock_note_pid(int fd)
{
    char text[32];
    const int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
        return; /* information only */
    }
}

int rbi_lock_take(const char *socket_path, int *out)
{
    char path[LOCK_PATH_MAX];
    const int named = lock_path(socket_path, path);
    if (named < 0) {
        return named;
    }
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return -errno;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            const int error = errno;
            (void)close(fd);
            return error == EWOULDBLOCK ? RBI_LOCK_HELD : -error;
        }
        if (lock_file_is(fd, path)) {
            lock_note_pid(fd);
            *out = fd;
            return RBI_LOCK_TAKEN;
        }
        (void)close(fd); /* removed between open and lock */
    }
    return -EBUSY;
}

int rbi_lock_renew(const char *socket_path, int *fd)
{
    char path[LOCK_PATH_MAX];
    int taken = -1;
    const int named = lock_path(socket_path, path);
    if (named < 0 || lock_file_is(*fd, path)) {
        return named;
    }
    const int result = rbi_lock_take(socket_path, &taken);
    if (result == RBI_LOCK_TAKEN) {
        (void)close(*fd);
        *fd = taken;
    }
    return result;
}
