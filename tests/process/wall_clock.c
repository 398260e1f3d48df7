/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: the wall clock is off by the seconds in the file that RINGBUS_TEST_WALL names,
 * for whoever reads it. Every other clock is as it was. See test_client_clock.c.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static const _Atomic int64_t *off_s;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("RINGBUS_TEST_WALL");
    const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *word = mmap(NULL, sizeof *off_s, PROT_READ, MAP_SHARED, fd, 0);
        off_s = word != MAP_FAILED ? word : NULL;
        (void)close(fd);
    }
}

static int64_t offset(void)
{
    return off_s != NULL ? atomic_load(off_s) : 0;
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int r = (int)syscall(SYS_clock_gettime, clock, out);
    if (r == 0 &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)) {
        out->tv_sec += offset();
    }
    return r;
}

SHOWN int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return -1;
    }
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

SHOWN time_t time(time_t *out)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}
