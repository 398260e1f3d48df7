/* SPDX-License-Identifier: Apache-2.0 */
/* flaw.c - memory that is none, or not what it says it is. */
#include "hostile/flaw.h"

#include "hostile/peer.h"
#include "shm/layout.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SEALS_ALL (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static int make_file(const char *folder, uint64_t bytes)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/hostile-XXXXXX", folder);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
        (void)!ftruncate(fd, (off_t)bytes);
    }
    return fd;
}

static int one_of(int fds[2])
{
    (void)close(fds[1]);
    return fds[0];
}

/** Descriptors that are not memory at all; -1 when the flaw is another. */
static int make_strange(enum flaw flaw, uint64_t bytes)
{
    int pair[2];
    switch ((int)flaw) {
    case FLAW_FILE:
        return make_file("/var/tmp", bytes);
    case FLAW_TMPFS_FILE:
        return make_file("/dev/shm", bytes);
    case FLAW_PIPE:
        return pipe2(pair, O_CLOEXEC) == 0 ? one_of(pair) : -1;
    case FLAW_DEV_NULL:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case FLAW_DEV_ZERO:
        return open("/dev/zero", O_RDWR | O_CLOEXEC);
    case FLAW_SOCKET:
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 ? one_of(pair) : -1;
    case FLAW_EVENTFD:
        return eventfd(0, EFD_CLOEXEC);
    case FLAW_EPOLL:
        return epoll_create1(EPOLL_CLOEXEC);
    case FLAW_PIDFD:
        return (int)syscall(SYS_pidfd_open, getpid(), 0);
    case FLAW_TIMER:
        return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    case FLAW_FOLDER:
        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    default:
        return -1;
    }
}

static int seals_of(enum flaw flaw)
{
    switch ((int)flaw) {
    case FLAW_NO_SEALS:
        return 0;
    case FLAW_NO_SHRINK:
        return SEALS_ALL & ~F_SEAL_SHRINK;
    case FLAW_NO_GROW:
        return SEALS_ALL & ~F_SEAL_GROW;
    case FLAW_NO_FUTURE_WRITE:
        return SEALS_ALL & ~F_SEAL_FUTURE_WRITE;
    case FLAW_NO_SEAL:
        return SEALS_ALL & ~F_SEAL_SEAL;
    case FLAW_OTHER_SEAL: /* of whom nobody wants to write: no owner's memory */
        return (SEALS_ALL & ~F_SEAL_FUTURE_WRITE) | F_SEAL_WRITE;
    default:
        return SEALS_ALL;
    }
}

static struct rbi_side make_head(enum flaw flaw, enum rbi_segment_kind kind, uint64_t bytes)
{
    struct rbi_side side;
    memset(&side, 0, sizeof(side));
    side.segment = (struct rbi_segment_header){
        .magic = RBI_SEGMENT_MAGIC + (flaw == FLAW_MAGIC),
        .version = RBI_LAYOUT_VERSION + (flaw == FLAW_VERSION),
        .kind = flaw == FLAW_KIND_NEXT        ? (uint32_t)kind % 3 + 1
                : flaw == FLAW_KIND_DIRECTORY ? RBI_SEGMENT_DIRECTORY
                : flaw == FLAW_KIND_0         ? 0
                                              : (uint32_t)kind,
        .fingerprint = rbi_layout_fingerprint() + (flaw == FLAW_FINGERPRINT),
        .size_bytes = bytes + (flaw == FLAW_SIZE_FIELD ? RBI_PAGE : 0)};
    if (kind == RBI_SEGMENT_SIDE) {
        side.lane_offset = RBI_PAGE;
        side.lane_capacity = PEER_LANE_CAPACITY;
        side.returns_offset = sizeof(struct rbi_side);
        side.returns_capacity = PEER_RETURNS;
    }
    return side;
}

/** The same memory, opened anew in another way. */
static int reopen(int fd, int flags)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int again = open(path, flags | O_CLOEXEC);
    (void)close(fd);
    return again;
}

/** Sealable as well, but its pages may be missing when they are touched; none is, here. */
static int make_huge(void)
{
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0) {
        return open("/dev/null", O_RDWR | O_CLOEXEC); /* no huge pages in this kernel */
    }
    (void)!ftruncate(fd, 2 << 20);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS_ALL), 0);
    return fd;
}

int flaw_make(enum flaw flaw, enum rbi_segment_kind kind, uint64_t bytes)
{
    const int strange = make_strange(flaw, bytes);
    if (strange >= 0) {
        return strange;
    }
    const struct rbi_side head = make_head(flaw, kind, bytes);
    const uint64_t size = flaw == FLAW_SHORT      ? bytes - RBI_PAGE
                          : flaw == FLAW_LONG     ? bytes + RBI_PAGE
                          : flaw == FLAW_UNEVEN   ? bytes - 1
                          : flaw == FLAW_EMPTY    ? 0
                          : flaw == FLAW_TEBIBYTE ? UINT64_C(1) << 40
                                                  : bytes;
    if (flaw == FLAW_HUGE_PAGES) {
        return make_huge();
    }
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    if (flaw != FLAW_HOLE && flaw != FLAW_TEBIBYTE && size > 0) {
        assert_int_equal(fallocate(fd, 0, 0, (off_t)size), 0);
    }
    if (size >= sizeof(head)) {
        assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
        if (kind == RBI_SEGMENT_PAGE && flaw == FLAW_HOLE) {
            /* One page that is written has no hole. */
            assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, RBI_PAGE),
                             0);
        }
    }
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals_of(flaw)), 0);
    if (flaw == FLAW_PATH_ONLY) {
        return reopen(fd, O_PATH);
    }
    return flaw == FLAW_WRITE_ONLY ? reopen(fd, O_WRONLY) : fd;
}
