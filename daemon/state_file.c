/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int state_file_check(int fd, uint64_t *size)
{
    struct stat found;
    if (fstat(fd, &found) < 0) {
        return -errno;
    }
    if (!S_ISREG(found.st_mode)) {
        return -EINVAL;
    }
    if ((found.st_uid != 0 && found.st_uid != geteuid()) ||
        (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return -EPERM;
    }
    *size = (uint64_t)found.st_size;
    return 0;
}

int rbi_state_file_open(const char *path, uint64_t *size)
{
    /* O_NONBLOCK: a FIFO in its place must not stop the daemon. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    const int result = state_file_check(fd, size);
    if (result < 0) {
        (void)close(fd);
        return result;
    }
    return fd;
}

int rbi_state_file_create(const char *path)
{
    /* O_EXCL: neither a FIFO, at which to wait, nor a file that another keeps open. */
    if (unlink(path) < 0 && errno != ENOENT) {
        return -errno;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : fd;
}
