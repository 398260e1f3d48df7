/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Newer than the C library of some supported systems; part of the kernel's interface. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/** As large as the smallest table of outcomes, which the first link makes. */
#define UNCHECKED (UINT64_C(8) * RBI_PAGE)

/** Left over when a segment takes the last memory: page tables, stacks, the C library. */
static uint64_t slack(uint64_t size)
{
    return (UINT64_C(1) << 20) + size / 64;
}

static bool range_ok(uint64_t size, uint64_t mirror_from)
{
    return size >= RBI_PAGE && size <= RBI_SEGMENT_SIZE_MAX && size % RBI_PAGE == 0 &&
           mirror_from % RBI_PAGE == 0 && mirror_from < size;
}

/**
 * These two ask first, since the kernel would answer by a kill (memory) or a signal (file size).
 * What is small lies within the slack that the check of any other segment has left: each look
 * costs 20 us.
 */
static int check_memory(uint64_t size)
{
    if (size > UNCHECKED) {
        const uint64_t available = rbi_memory_available();
        if (size > available || available - size < slack(size)) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int check_file_size(uint64_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        size > limit.rlim_cur) {
        return -EFBIG;
    }
    return 0;
}

static int create_memfd(const char *name)
{
    /* Systems with vm.memfd_noexec=2 insist on the flag, kernels before 6.3 do not know it. */
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    return fd < 0 ? -errno : fd;
}

static int reserve_pages(int fd, uint64_t offset, uint64_t size)
{
    for (;;) {
        if (fallocate(fd, 0, (off_t)offset, (off_t)size) == 0) {
            return 0;
        }
        if (errno != EINTR) {
            return errno == ENOSPC ? -ENOMEM : -errno;
        }
    }
}

/**
 * Whether this system makes a second mapping out of one without a descriptor: the only way to
 * a writable one once the segment is sealed. Linux does; Valgrind, for one, refuses it.
 */
static bool duplicates(void *base)
{
    void *copy = mremap(base, 0, RBI_PAGE, MREMAP_MAYMOVE);
    return copy != MAP_FAILED && munmap(copy, RBI_PAGE) == 0;
}

/**
 * Maps the segment and keeps room for a copy of its tail from @p mirror_from on right
 * behind. The room is a part of the same mapping, beyond the end of the file: it costs no
 * mapping of its own, and nothing else can come to lie there.
 */
static int map(struct rbi_segment *segment, int fd, int prot, uint64_t mirror_from)
{
    const uint64_t tail = mirror_from == 0 ? 0 : segment->size - mirror_from;
    const uint64_t total = segment->size + tail;
    char *base = mmap(NULL, total, prot, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return -errno;
    }
    const bool now = tail != 0 && !duplicates(base);
    if ((now && mmap(base + segment->size, tail, prot, MAP_SHARED | MAP_FIXED, fd,
                     (off_t)mirror_from) == MAP_FAILED) ||
        madvise(base, total, MADV_DONTFORK) != 0) {
        const int err = errno;
        (void)munmap(base, total);
        return -err;
    }
    segment->base = base;
    segment->mapped = total;
    segment->mirrored = now;
    return 0;
}

static void write_header(const struct rbi_segment *segment, enum rbi_segment_kind kind)
{
    struct rbi_segment_header *header = segment->base;
    RBI_ASSERT(header != NULL); /* mapped: map() has succeeded */
    header->magic = RBI_SEGMENT_MAGIC;
    header->version = RBI_LAYOUT_VERSION_MIN;
    header->kind = (uint32_t)kind;
    header->fingerprint = rbi_layout_fingerprint();
    header->size_bytes = segment->size;
}

/** @param reserved  bytes of the front that get their pages now */
static int create(struct rbi_segment *out,
                  const char *name,
                  enum rbi_segment_kind kind,
                  uint64_t size,
                  uint64_t mirror_from,
                  uint64_t reserved)
{
    int r = check_memory(reserved);
    if (r == 0) {
        r = check_file_size(size);
    }
    if (r != 0) {
        return r;
    }
    if (!range_ok(size, mirror_from)) {
        return -EINVAL;
    }
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    segment.size = size;
    segment.fd = create_memfd(name);
    if (segment.fd < 0) {
        return segment.fd;
    }
    if (reserved < size && ftruncate(segment.fd, (off_t)size) != 0) {
        r = -errno;
    } else {
        r = reserve_pages(segment.fd, 0, reserved);
    }
    if (r == 0) {
        /* Before sealing: afterwards nobody gets a writable mapping, not even the owner. */
        r = map(&segment, segment.fd, PROT_READ | PROT_WRITE, mirror_from);
    }
    if (r == 0) {
        write_header(&segment, kind);
        r = fcntl(segment.fd, F_ADD_SEALS, SEALS) == 0 ? 0 : -errno;
    }
    if (r != 0) {
        rbi_segment_deinit(&segment);
        return r;
    }
    *out = segment;
    return 0;
}

int rbi_segment_create(struct rbi_segment *out,
                       const char *name,
                       enum rbi_segment_kind kind,
                       uint64_t size,
                       uint64_t mirror_from)
{
    return create(out, name, kind, size, mirror_from, size);
}

int rbi_segment_create_sparse(struct rbi_segment *out,
                              const char *name,
                              enum rbi_segment_kind kind,
                              uint64_t size)
{
    return create(out, name, kind, size, 0, RBI_PAGE);
}

int rbi_segment_reserve(const struct rbi_segment *segment, uint64_t offset, uint64_t bytes)
{
    RBI_ASSERT(offset <= segment->size && bytes <= segment->size - offset);
    const int r = check_memory(bytes);
    return r != 0 ? r : reserve_pages(segment->fd, offset, bytes);
}

/** Whether a descriptor may have pages that are not there yet. */
enum holes { HOLES_REFUSED, HOLES_ALLOWED };

/** What must hold of a descriptor for reading its mapping never to fail or to cost us pages. */
static int check_fd(int fd, enum holes holes, uint64_t size_min, uint64_t size_max, uint64_t *size)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        return -EBADF;
    }
    /* Sealed against resizing: what is found now stays. */
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode) || (uint64_t)fs.f_type != TMPFS_MAGIC || st.st_size <= 0) {
        return -EBADF; /* huge pages, which are sealable as well, may be missing when touched */
    }
    *size = (uint64_t)st.st_size;
    if (*size < size_min || *size > size_max || *size > RBI_SEGMENT_SIZE_MAX ||
        *size < sizeof(struct rbi_segment_header) || *size % RBI_PAGE != 0) {
        return -EFBIG;
    }
    return holes == HOLES_REFUSED && (uint64_t)st.st_blocks * 512 < *size ? -EBADF : 0;
}

/** @param header  a copy: the owner may go on writing */
static int
check_header(const struct rbi_segment_header *header, enum rbi_segment_kind kind, uint64_t size)
{
    if (header->magic != RBI_SEGMENT_MAGIC || header->version == 0 ||
        header->version != rbi_layout_version_of(header->fingerprint) ||
        header->kind != (uint32_t)kind || header->size_bytes != size) {
        return -EPROTO;
    }
    return 0;
}

static int check_mapped(const struct rbi_segment *segment, enum rbi_segment_kind kind)
{
    struct rbi_segment_header header;
    RBI_ASSERT(segment->base != NULL);
    memcpy(&header, segment->base, sizeof header);
    return check_header(&header, kind, segment->size);
}

static int
verify(int fd, enum holes holes, enum rbi_segment_kind kind, uint64_t size_min, uint64_t size_max)
{
    struct rbi_segment_header header;
    uint64_t size = 0;
    const int r = check_fd(fd, holes, size_min, size_max, &size);
    if (r != 0) {
        return r;
    }
    const ssize_t n = pread(fd, &header, sizeof header, 0);
    if (n != (ssize_t)sizeof header) {
        return n < 0 ? -errno : -EPROTO;
    }
    return check_header(&header, kind, size);
}

int rbi_segment_verify(int fd, enum rbi_segment_kind kind, uint64_t size_min, uint64_t size_max)
{
    return verify(fd, HOLES_REFUSED, kind, size_min, size_max);
}

int rbi_segment_verify_sparse(int fd,
                              enum rbi_segment_kind kind,
                              uint64_t size_min,
                              uint64_t size_max)
{
    return verify(fd, HOLES_ALLOWED, kind, size_min, size_max);
}

static int adopt(struct rbi_segment *out,
                 int fd,
                 enum holes holes,
                 enum rbi_segment_kind kind,
                 uint64_t size_min,
                 uint64_t size_max)
{
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    int r = check_fd(fd, holes, size_min, size_max, &segment.size);
    if (r != 0) {
        return r;
    }
    r = map(&segment, fd, PROT_READ, 0);
    if (r != 0) {
        return r;
    }
    r = check_mapped(&segment, kind);
    if (r == 0 && madvise(segment.base, segment.mapped, MADV_DONTDUMP) != 0) {
        r = -errno;
    }
    if (r != 0) {
        rbi_segment_deinit(&segment);
        return r;
    }
    *out = segment;
    return 0;
}

int rbi_segment_adopt(struct rbi_segment *out,
                      int fd,
                      enum rbi_segment_kind kind,
                      uint64_t size_min,
                      uint64_t size_max)
{
    return adopt(out, fd, HOLES_REFUSED, kind, size_min, size_max);
}

int rbi_segment_adopt_sparse(struct rbi_segment *out,
                             int fd,
                             enum rbi_segment_kind kind,
                             uint64_t size_min,
                             uint64_t size_max)
{
    return adopt(out, fd, HOLES_ALLOWED, kind, size_min, size_max);
}

int rbi_segment_reserve_mirror(struct rbi_segment *segment, int fd, uint64_t mirror_from)
{
    RBI_ASSERT(segment->mapped == segment->size && range_ok(segment->size, mirror_from));
    struct rbi_segment next = *segment;
    int r = map(&next, fd, PROT_READ, mirror_from);
    if (r == 0 && madvise(next.base, next.mapped, MADV_DONTDUMP) != 0) {
        r = -errno;
        (void)munmap(next.base, next.mapped);
    }
    if (r != 0) {
        return r;
    }
    (void)munmap(segment->base, segment->mapped);
    *segment = next;
    return 0;
}

int rbi_segment_mirror(struct rbi_segment *segment)
{
    const uint64_t tail = segment->mapped - segment->size;
    if (segment->mirrored) {
        return 0;
    }
    RBI_ASSERT(tail > 0 && tail < segment->size);
    char *end = (char *)segment->base + segment->size;
    /* An old size of 0 leaves the old one in place. Too many mappings are found out first. */
    if (mremap(end - tail, 0, tail, MREMAP_MAYMOVE | MREMAP_FIXED, end) == MAP_FAILED) {
        const int error = errno;
        /* It may have unmapped the room before it failed: keep that, or others move in there. */
        (void)mmap(end, tail, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        return -error;
    }
    segment->mirrored = true;
    return 0;
}

void rbi_segment_prefault(const struct rbi_segment *segment, uint64_t max_bytes, bool writable)
{
    const uint64_t whole = segment->mirrored ? segment->mapped : segment->size;
    const uint64_t size = rbi_min_u64(whole, max_bytes);
    if (segment->base == NULL ||
        madvise(segment->base, size, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) {
        return;
    }
    /* Before Linux 5.14: a read of each page maps it; the first write then costs little. */
    const volatile unsigned char *bytes = segment->base;
    for (uint64_t offset = 0; offset < size; offset += RBI_PAGE) {
        (void)bytes[offset];
    }
}

void rbi_segment_close_fd(struct rbi_segment *segment)
{
    if (segment->fd >= 0) {
        (void)close(segment->fd);
    }
    segment->fd = -1;
}

void rbi_segment_deinit(struct rbi_segment *segment)
{
    rbi_segment_close_fd(segment);
    if (segment->base != NULL) {
        (void)munmap(segment->base, segment->mapped);
    }
    segment->base = NULL;
    segment->size = 0;
    segment->mapped = 0;
    segment->mirrored = false;
}
