/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_SEGMENT_H
#define RINGBUS_SHM_SEGMENT_H
/*
 * shm/segment.h - a piece of shared memory with one writer.
 *
 * The owner creates an anonymous memfd, reserves its pages, maps it writable and
 * seals it (SHRINK | GROW | FUTURE_WRITE | SEAL) before the descriptor can leave:
 * from then on nobody, the owner's own descendants included, can map it
 * writable, write() to it, punch holes or resize it. A receiver adopts a
 * descriptor only after checking that all of this holds, so that reading can
 * never raise SIGBUS.
 *
 * Threads: a segment belongs to one thread at a time. All calls here are cold:
 * several system calls each.
 */
#include "shm/base.h"
#include "shm/layout.h"

/** A mapped segment. Zero-initialise with RBI_SEGMENT_NULL; deinit accepts that. */
struct rbi_segment {
    int fd;          /* owned; -1 when closed or handed over */
    void *base;      /* start of the mapping, or NULL */
    uint64_t size;   /* of the segment, bytes */
    uint64_t mapped; /* of the mapping: size, plus room for a second copy of the tail behind it */
    bool mirrored;   /* the copy is there: all of the mapping may be touched */
};

/** Largest segment in bytes. */
#define RBI_SEGMENT_SIZE_MAX (UINT64_C(4) << 30)

#define RBI_SEGMENT_NULL                                                                           \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/**
 * Creates, reserves, maps and seals a segment. Its header is written; the rest is zero.
 *
 * @param out         written on success only; the caller owns it
 * @param name        shown in /proc/PID/maps as memfd:NAME; copied
 * @param kind        what it holds
 * @param size        bytes, multiple of RBI_PAGE, at most RBI_SEGMENT_SIZE_MAX
 * @param mirror_from 0, or the page-aligned offset from which the rest can be mapped a
 *                    second time right behind the end: rbi_segment_mirror() does that
 * @retval 0        done
 * @retval -ENOMEM  not enough memory in the machine or its control group; nothing was touched
 * @retval -EFBIG   above RLIMIT_FSIZE, which counts for shared memory as well
 * @retval -EINVAL  @p size or @p mirror_from out of range
 * @retval -errno   what memfd_create, fallocate, mmap or fcntl refused
 */
RBI_MUST_CHECK int rbi_segment_create(struct rbi_segment *out,
                                      const char *name,
                                      enum rbi_segment_kind kind,
                                      uint64_t size,
                                      uint64_t mirror_from);

/**
 * The same without its pages, but for the first: they are reserved piece by piece, with
 * rbi_segment_reserve(), before they are written to. For what costs memory only when it is used,
 * between parties of which the reader trusts the writer.
 */
RBI_MUST_CHECK int rbi_segment_create_sparse(struct rbi_segment *out,
                                             const char *name,
                                             enum rbi_segment_kind kind,
                                             uint64_t size);

/**
 * Takes the pages of a sparse segment that lie in a range, as create does for all.
 * @param segment  with its descriptor
 * @retval 0; -ENOMEM; -EFBIG; -errno
 */
RBI_MUST_CHECK int
rbi_segment_reserve(const struct rbi_segment *segment, uint64_t offset, uint64_t bytes);

/**
 * Checks a received descriptor and maps it read-only. Untrusted input.
 *
 * Verified before mapping: a memfd with all four seals, a size in bounds and all its
 * pages allocated (a hole would be filled by, and charged to, whoever reads it); after
 * it: magic, kind, version, fingerprint and size in the header. The contents
 * beyond the header are for the caller to check.
 *
 * @param out         written on success only
 * @param fd          borrowed: the caller still owns it
 * @param kind        what it must hold
 * @param size_min    bytes
 * @param size_max    bytes
 * @retval 0           mapped
 * @retval -EBADF      not a memfd, without the seals, or with holes
 * @retval -EFBIG      size out of the given bounds
 * @retval -EPROTO     another layout, kind or size than it says
 * @retval -errno      what the kernel refused
 */
RBI_MUST_CHECK int rbi_segment_adopt(struct rbi_segment *out,
                                     int fd,
                                     enum rbi_segment_kind kind,
                                     uint64_t size_min,
                                     uint64_t size_max);

/**
 * Checks a received descriptor as rbi_segment_adopt() does, for one who only passes it on or
 * maps it later: it is not mapped. Parameters and answers are the same.
 */
RBI_MUST_CHECK int
rbi_segment_verify(int fd, enum rbi_segment_kind kind, uint64_t size_min, uint64_t size_max);

/**
 * The same two for what may have holes. Of an owner that is trusted alone: a hole that is read
 * takes a page, charged to who reads it. Both take what has none as well.
 */
RBI_MUST_CHECK int rbi_segment_adopt_sparse(struct rbi_segment *out,
                                            int fd,
                                            enum rbi_segment_kind kind,
                                            uint64_t size_min,
                                            uint64_t size_max);
RBI_MUST_CHECK int
rbi_segment_verify_sparse(int fd, enum rbi_segment_kind kind, uint64_t size_min, uint64_t size_max);

/**
 * Keeps room behind an adopted segment for a second copy of its tail. The address may change.
 *
 * @param segment      adopted
 * @param fd           the descriptor that it was adopted from; borrowed
 * @param mirror_from  page-aligned offset below the size; already checked
 */
RBI_MUST_CHECK int
rbi_segment_reserve_mirror(struct rbi_segment *segment, int fd, uint64_t mirror_from);

/**
 * Maps the tail a second time into the room that was kept for it; needs no descriptor and
 * moves nothing. Until then touching the room raises SIGBUS. The second copy is as
 * writable, or not, as the first.
 *
 * @retval 0        mapped, now or before
 * @retval -ENOMEM  too many mappings in this process; may be tried again
 * @retval -errno   what else mremap refused
 */
RBI_MUST_CHECK int rbi_segment_mirror(struct rbi_segment *segment);

/**
 * Maps pages now, so that the first lap is as fast as the tenth. Failure is harmless.
 * @param max_bytes  of the front; what lies behind is mapped when it is touched
 * @param writable   map for writing: an own segment
 */
void rbi_segment_prefault(const struct rbi_segment *segment, uint64_t max_bytes, bool writable);

/** Closes the descriptor, keeps the mapping. */
void rbi_segment_close_fd(struct rbi_segment *segment);

/** Unmaps and closes. Accepts RBI_SEGMENT_NULL and half-built ones. */
void rbi_segment_deinit(struct rbi_segment *segment);

/**
 * Memory that this process may still take, in bytes: the smallest of what the
 * machine has and what each control group above the process leaves. UINT64_MAX
 * when unknown.
 */
uint64_t rbi_memory_available(void);

#endif
