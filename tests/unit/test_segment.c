/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: made, mapped, adopted from peers that may be hostile, and left without a trace. */
#include "shm/segment.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE  (16U * (uint64_t)RBI_PAGE)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static unsigned count_lines(const char *path)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    unsigned lines = 0;
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        lines += c == '\n';
    }
    (void)fclose(file);
    return lines;
}

static unsigned open_fds(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void assert_untouched(const struct rbi_segment *segment)
{
    assert_int_equal(segment->fd, -1);
    assert_null(segment->base);
}

static void test_segment_create_and_adopt(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&own, "test", RBI_SEGMENT_SIDE, SIZE, 0), 0);
    assert_int_equal(own.size, SIZE);
    assert_int_equal(own.mapped, SIZE);
    assert_int_equal(fcntl(own.fd, F_GET_SEALS) & SEALS, SEALS);
    assert_true((fcntl(own.fd, F_GETFD) & FD_CLOEXEC) != 0);
    unsigned char *bytes = own.base;
    for (uint64_t i = sizeof(struct rbi_segment_header); i < SIZE; i++) {
        assert_int_equal(bytes[i], 0);
    }
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_SIDE, RBI_PAGE, SIZE), 0);
    assert_int_equal(peer.fd, -1); /* borrowed */
    bytes[SIZE - 1] = 42;
    assert_int_equal(((const unsigned char *)peer.base)[SIZE - 1], 42);
    rbi_segment_prefault(&own, UINT64_MAX, true);
    rbi_segment_prefault(&peer, UINT64_MAX, false);
    rbi_segment_deinit(&own);
    assert_int_equal(((const unsigned char *)peer.base)[SIZE - 1], 42); /* outlives its owner */
    rbi_segment_deinit(&peer);
    rbi_segment_deinit(&peer);
}

/** Mappings of memfds in this process. */
static unsigned memfd_maps(void)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, "/memfd:") != NULL;
    }
    (void)fclose(file);
    return count;
}

/* The room for the copy costs no mapping, and nothing that comes later lies in it. */
static void test_segment_mirror(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    const uint64_t from = 4U * (uint64_t)RBI_PAGE;
    assert_int_equal(rbi_segment_create(&own, "test", RBI_SEGMENT_SIDE, SIZE, from), 0);
    assert_int_equal(own.mapped, SIZE + SIZE - from);
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_SIDE, RBI_PAGE, SIZE), 0);
    assert_int_equal(peer.mapped, SIZE);
    assert_int_equal(rbi_segment_reserve_mirror(&peer, own.fd, from), 0);
    assert_int_equal(peer.mapped, own.mapped);
    assert_false(own.mirrored);
    assert_false(peer.mirrored);
    assert_int_equal(memfd_maps(), 2);
    unsigned char *bytes = own.base;
    const void *their_base = peer.base;
    bytes[SIZE - 1] = 42;
    for (unsigned i = 0; i < 2; i++) { /* the second time does nothing */
        assert_int_equal(rbi_segment_mirror(&own), 0);
        assert_int_equal(rbi_segment_mirror(&peer), 0);
        assert_true(own.mirrored && peer.mirrored);
        assert_ptr_equal(own.base, bytes);
        assert_ptr_equal(peer.base, their_base);
        assert_int_equal(memfd_maps(), 4);
    }
    assert_int_equal(((const unsigned char *)peer.base)[own.mapped - 1], 42);
    for (uint64_t offset = from; offset < SIZE; offset += 61) {
        bytes[offset] = (unsigned char)offset;
        assert_int_equal(bytes[SIZE + offset - from], (unsigned char)offset);
        bytes[SIZE + offset - from] = (unsigned char)(offset + 1);
        assert_int_equal(((unsigned char *)peer.base)[offset], (unsigned char)(offset + 1));
        assert_int_equal(((unsigned char *)peer.base)[SIZE + offset - from],
                         (unsigned char)(offset + 1));
    }
    rbi_segment_deinit(&own);
    rbi_segment_deinit(&peer);
    assert_int_equal(memfd_maps(), 0);
}

/* The copy of what is not ours is not writable, and cannot be made so. */
static void test_segment_mirror_of_a_peer_is_read_only(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&own, "test", RBI_SEGMENT_SIDE, SIZE, RBI_PAGE), 0);
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_SIDE, RBI_PAGE, SIZE), 0);
    assert_int_equal(rbi_segment_reserve_mirror(&peer, own.fd, RBI_PAGE), 0);
    assert_int_equal(mprotect(peer.base, peer.mapped, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(rbi_segment_mirror(&peer), 0);
    assert_int_equal(mprotect((char *)peer.base + SIZE, SIZE - RBI_PAGE, PROT_READ | PROT_WRITE),
                     -1);
    /* A copy that anybody makes of it in the same way is no better. */
    void *copy = mremap(peer.base, 0, SIZE, MREMAP_MAYMOVE);
    assert_true(copy != MAP_FAILED);
    assert_int_equal(mprotect(copy, SIZE, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(munmap(copy, SIZE), 0);
    rbi_segment_deinit(&peer);
    rbi_segment_deinit(&own);
}

/** KiB of memfds that are mapped page by page in this process. */
static unsigned memfd_rss_kib(void)
{
    char line[512];
    unsigned total = 0;
    bool ours = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strchr(line, ':') > strchr(line, ' ')) { /* a mapping; else "Key:  value" */
            ours = strstr(line, "/memfd:") != NULL;
        } else if (ours && strncmp(line, "Rss:", 4) == 0) {
            total += (unsigned)strtoul(line + 4, NULL, 10);
        }
    }
    (void)fclose(file);
    return total;
}

/* Pages are mapped as far as was asked for, and never the room that holds no copy yet. */
static void test_segment_prefault(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&own, "test", RBI_SEGMENT_SIDE, SIZE, RBI_PAGE), 0);
    assert_true(memfd_rss_kib() <= 4);
    rbi_segment_prefault(&own, SIZE / 2, true);
    assert_int_equal(memfd_rss_kib(), SIZE / 2048);
    rbi_segment_prefault(&own, UINT64_MAX, true);
    assert_int_equal(memfd_rss_kib(), SIZE / 1024);
    assert_int_equal(rbi_segment_mirror(&own), 0);
    rbi_segment_prefault(&own, UINT64_MAX, true);
    assert_int_equal(memfd_rss_kib(), own.mapped / 1024);
    rbi_segment_deinit(&own);
}

static void test_segment_create_refuses_bad_sizes(void **state)
{
    (void)state;
    const struct {
        uint64_t size;
        uint64_t mirror_from;
    } cases[] = {{0, 0},    {1, 0},       {RBI_PAGE + 1, 0},
                 {SIZE, 1}, {SIZE, SIZE}, {SIZE, SIZE + RBI_PAGE}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        struct rbi_segment out = RBI_SEGMENT_NULL;
        assert_int_equal(
            rbi_segment_create(&out, "test", RBI_SEGMENT_SIDE, cases[i].size, cases[i].mirror_from),
            -EINVAL);
        assert_untouched(&out);
    }
}

/* What cannot be is refused before anything is touched: no kill, no SIGBUS, nothing left. */
static void test_segment_create_refuses_more_than_there_is(void **state)
{
    (void)state;
    struct rbi_segment out = RBI_SEGMENT_NULL;
    const unsigned fds = open_fds();
    const uint64_t tib = UINT64_C(1) << 40;
    assert_true(rbi_memory_available() < tib);
    assert_int_equal(rbi_segment_create(&out, "test", RBI_SEGMENT_POOL, tib, 0), -ENOMEM);
    assert_int_equal(
        rbi_segment_create(&out, "test", RBI_SEGMENT_POOL, UINT64_MAX - RBI_PAGE + 1, 0), -ENOMEM);
    assert_untouched(&out);
    assert_int_equal(open_fds(), fds);
}

/** Runs @p body in a child with one limit lowered; its exit status. */
static int with_limit(int resource, rlim_t value, int (*body)(void))
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
        _exit(setrlimit((__rlimit_resource_t)resource, &limit) == 0 ? body() : 99);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status)); /* not killed */
    return WEXITSTATUS(status);
}

static int create_16_mib(void)
{
    struct rbi_segment out = RBI_SEGMENT_NULL;
    const int r = rbi_segment_create(&out, "test", RBI_SEGMENT_POOL, UINT64_C(16) << 20, 0);
    return out.fd == -1 && out.base == NULL ? -r : 98;
}

static void test_segment_create_under_limits(void **state)
{
    (void)state;
    /* Crossing this one would otherwise raise SIGXFSZ. */
    assert_int_equal(with_limit(RLIMIT_FSIZE, 1U << 20, create_16_mib), EFBIG);
    assert_int_equal(with_limit(RLIMIT_NOFILE, 3, create_16_mib), EMFILE);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_int_equal(with_limit(RLIMIT_AS, 1U << 24, create_16_mib), ENOMEM);
#endif
}

/** A memfd as a hostile peer may make it. */
static int make_memfd(uint64_t size, bool allocate, bool header, int seals)
{
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    if (allocate) {
        assert_int_equal(fallocate(fd, 0, 0, (off_t)size), 0);
    }
    if (header) {
        const struct rbi_segment_header good = {.magic = RBI_SEGMENT_MAGIC,
                                                .version = RBI_LAYOUT_VERSION,
                                                .kind = RBI_SEGMENT_SIDE,
                                                .fingerprint = rbi_layout_fingerprint(),
                                                .size_bytes = size};
        assert_int_equal(pwrite(fd, &good, sizeof good, 0), sizeof good);
    }
    if (seals != 0) {
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    return fd;
}

static void assert_adopt(int fd, int expected)
{
    struct rbi_segment out = RBI_SEGMENT_NULL;
    const unsigned maps = count_lines("/proc/self/maps");
    assert_int_equal(rbi_segment_verify(fd, RBI_SEGMENT_SIDE, 2 * RBI_PAGE, SIZE), expected);
    assert_int_equal(count_lines("/proc/self/maps"), maps);
    assert_int_equal(rbi_segment_adopt(&out, fd, RBI_SEGMENT_SIDE, 2 * RBI_PAGE, SIZE), expected);
    if (expected != 0) {
        assert_untouched(&out);
    }
    rbi_segment_deinit(&out);
    if (fd >= 0) {
        assert_true(fcntl(fd, F_GETFD) >= 0);
        (void)close(fd);
    }
}

static void test_segment_adopt_refuses_hostile_descriptors(void **state)
{
    (void)state;
    static const int each[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};
    assert_adopt(make_memfd(SIZE, true, true, SEALS), 0);
    assert_adopt(make_memfd(SIZE, true, true, SEALS | F_SEAL_WRITE), 0);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(each); i++) {
        assert_adopt(make_memfd(SIZE, true, true, SEALS & ~each[i]), -EBADF);
    }
    assert_adopt(make_memfd(SIZE, true, true, 0), -EBADF);
    assert_adopt(make_memfd(SIZE, false, true, SEALS), -EBADF); /* holes */
    assert_adopt(make_memfd(SIZE, true, false, SEALS), -EPROTO);
    assert_adopt(make_memfd(RBI_PAGE, true, true, SEALS), -EFBIG);
    assert_adopt(make_memfd(SIZE + RBI_PAGE, true, true, SEALS), -EFBIG);
    assert_adopt(make_memfd(SIZE - 1, true, true, SEALS), -EFBIG);
    assert_adopt(make_memfd(0, false, false, SEALS), -EBADF);
    assert_adopt(make_memfd(UINT64_C(1) << 40, false, false, SEALS), -EFBIG);
    assert_adopt(-1, -EBADF);
    assert_adopt(open("/dev/null", O_RDWR | O_CLOEXEC), -EBADF);
    assert_adopt(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), -EBADF);
    assert_adopt(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -EBADF);
}

static void test_segment_adopt_refuses_wrong_headers(void **state)
{
    (void)state;
    for (unsigned field = 0; field < 5; field++) {
        struct rbi_segment_header header = {.magic = RBI_SEGMENT_MAGIC,
                                            .version = RBI_LAYOUT_VERSION,
                                            .kind = RBI_SEGMENT_SIDE,
                                            .fingerprint = rbi_layout_fingerprint(),
                                            .size_bytes = SIZE};
        header.magic += field == 0;
        header.version += field == 1;
        header.kind += field == 2;
        header.fingerprint += field == 3;
        header.size_bytes += field == 4;
        const int fd = make_memfd(SIZE, true, false, 0);
        assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS), 0);
        assert_adopt(fd, -EPROTO);
    }
}

/* Whoever receives the descriptor can write to it in no way; the owner's bytes stay. */
static void test_segment_receiver_cannot_write(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&own, "test", RBI_SEGMENT_SIDE, SIZE, 0), 0);
    unsigned char *bytes = own.base;
    memset(bytes + 64, 0xa5, SIZE - 64);
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_SIDE, RBI_PAGE, SIZE), 0);

    assert_int_equal(mprotect(peer.base, SIZE, PROT_READ | PROT_WRITE), -1);
    assert_ptr_equal(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, own.fd, 0), MAP_FAILED);
    assert_ptr_equal(mmap(NULL, SIZE, PROT_WRITE, MAP_SHARED, own.fd, 0), MAP_FAILED);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", own.fd);
    const int again = open(path, O_RDWR | O_CLOEXEC);
    assert_true(again >= 0);
    assert_ptr_equal(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    assert_int_equal(open(path, O_RDWR | O_TRUNC | O_CLOEXEC), -1);
    const int fds[] = {own.fd, again};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        assert_int_equal(pwrite(fds[i], "x", 1, 100), -1);
        assert_int_equal(write(fds[i], "x", 1), -1);
        assert_int_equal(fallocate(fds[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, RBI_PAGE),
                         -1);
        assert_int_equal(fallocate(fds[i], 0, 0, (off_t)(2 * SIZE)), -1);
        assert_int_equal(ftruncate(fds[i], 0), -1);
        assert_int_equal(ftruncate(fds[i], (off_t)(2 * SIZE)), -1);
        assert_int_equal(fcntl(fds[i], F_ADD_SEALS, F_SEAL_WRITE), -1);
    }
    assert_int_equal(madvise(peer.base, SIZE, MADV_REMOVE), -1);
    (void)madvise(peer.base, SIZE, MADV_DONTNEED);

    for (uint64_t i = 64; i < SIZE; i++) {
        assert_int_equal(bytes[i], 0xa5);
    }
    (void)close(again);
    rbi_segment_deinit(&peer);
    rbi_segment_deinit(&own);
}

/* A forked child has neither mapping: it cannot write into what its parent promised. */
static void test_segment_is_not_inherited_by_fork(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&own, "test", RBI_SEGMENT_SIDE, SIZE, RBI_PAGE), 0);
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_SIDE, RBI_PAGE, SIZE), 0);
    assert_int_equal(rbi_segment_mirror(&own), 0);
    assert_int_equal(rbi_segment_reserve_mirror(&peer, own.fd, RBI_PAGE), 0);
    assert_int_equal(rbi_segment_mirror(&peer), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unsigned char resident = 0;
        const bool gone =
            mincore(own.base, RBI_PAGE, &resident) != 0 && errno == ENOMEM &&
            mincore((char *)own.base + SIZE, RBI_PAGE, &resident) != 0 && errno == ENOMEM &&
            mincore(peer.base, RBI_PAGE, &resident) != 0 && errno == ENOMEM &&
            mincore((char *)peer.base + SIZE, RBI_PAGE, &resident) != 0 && errno == ENOMEM &&
            mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, own.fd, 0) == MAP_FAILED;
        _exit(gone ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rbi_segment_deinit(&peer);
    rbi_segment_deinit(&own);
}

static void create_and_deinit(void)
{
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_create(&own, "leak", RBI_SEGMENT_SIDE, SIZE, RBI_PAGE), 0);
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_SIDE, RBI_PAGE, SIZE), 0);
    assert_int_equal(rbi_segment_mirror(&own), 0);
    assert_int_equal(rbi_segment_reserve_mirror(&peer, own.fd, RBI_PAGE), 0);
    assert_int_equal(rbi_segment_mirror(&peer), 0);
    struct rbi_segment refused = RBI_SEGMENT_NULL;
    assert_int_equal(rbi_segment_adopt(&refused, own.fd, RBI_SEGMENT_POOL, RBI_PAGE, SIZE),
                     -EPROTO);
    rbi_segment_close_fd(&own);
    rbi_segment_deinit(&peer);
    rbi_segment_deinit(&own);
}

static void test_segment_leaves_nothing(void **state)
{
    (void)state;
    create_and_deinit();
    const unsigned fds = open_fds();
    const unsigned maps = count_lines("/proc/self/maps");
    for (unsigned i = 0; i < 1000; i++) {
        create_and_deinit();
    }
    assert_int_equal(open_fds(), fds);
    assert_in_range(count_lines("/proc/self/maps"), maps - 2, maps + 2); /* the C library's own */
}

static uint64_t pages_of(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks * 512 / RBI_PAGE;
}

/* Memory for what is used alone: for who trusts its owner. */
static void test_segment_sparse(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    struct rbi_segment peer = RBI_SEGMENT_NULL;
    const uint64_t gib = UINT64_C(1) << 30;
    assert_int_equal(rbi_segment_create_sparse(&own, "test", RBI_SEGMENT_POOL, gib), 0);
    assert_int_equal(own.size, gib);
    assert_int_equal(pages_of(own.fd), 1);
    assert_int_equal(fcntl(own.fd, F_GET_SEALS) & SEALS, SEALS);

    assert_int_equal(rbi_segment_verify(own.fd, RBI_SEGMENT_POOL, gib, gib), -EBADF);
    assert_int_equal(rbi_segment_adopt(&peer, own.fd, RBI_SEGMENT_POOL, gib, gib), -EBADF);
    assert_untouched(&peer);
    assert_int_equal(rbi_segment_verify_sparse(own.fd, RBI_SEGMENT_POOL, gib, gib), 0);
    assert_int_equal(rbi_segment_verify_sparse(own.fd, RBI_SEGMENT_SIDE, gib, gib), -EPROTO);
    assert_int_equal(rbi_segment_adopt_sparse(&peer, own.fd, RBI_SEGMENT_POOL, gib, gib), 0);

    const uint64_t at = gib - UINT64_C(4) * RBI_PAGE;
    assert_int_equal(rbi_segment_reserve(&own, at, UINT64_C(2) * RBI_PAGE), 0);
    assert_int_equal(pages_of(own.fd), 3);
    ((unsigned char *)own.base)[at + 1] = 42;
    assert_int_equal(((const unsigned char *)peer.base)[at + 1], 42);
    assert_int_equal(pages_of(own.fd), 3);
    rbi_segment_deinit(&peer);
    rbi_segment_deinit(&own);
}

static void test_segment_sparse_reserve_refuses_more_than_there_is(void **state)
{
    (void)state;
    struct rbi_segment own = RBI_SEGMENT_NULL;
    const uint64_t available = rbi_memory_available();
    if (available >= RBI_SEGMENT_SIZE_MAX) {
        skip();
    }
    assert_int_equal(
        rbi_segment_create_sparse(&own, "test", RBI_SEGMENT_POOL, RBI_SEGMENT_SIZE_MAX), 0);
    assert_int_equal(rbi_segment_reserve(&own, 0, RBI_SEGMENT_SIZE_MAX), -ENOMEM);
    assert_int_equal(pages_of(own.fd), 1);
    rbi_segment_deinit(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_sparse),
        cmocka_unit_test(test_segment_sparse_reserve_refuses_more_than_there_is),
        cmocka_unit_test(test_segment_create_and_adopt),
        cmocka_unit_test(test_segment_mirror),
        cmocka_unit_test(test_segment_mirror_of_a_peer_is_read_only),
        cmocka_unit_test(test_segment_prefault),
        cmocka_unit_test(test_segment_create_refuses_bad_sizes),
        cmocka_unit_test(test_segment_create_refuses_more_than_there_is),
        cmocka_unit_test(test_segment_create_under_limits),
        cmocka_unit_test(test_segment_adopt_refuses_hostile_descriptors),
        cmocka_unit_test(test_segment_adopt_refuses_wrong_headers),
        cmocka_unit_test(test_segment_receiver_cannot_write),
        cmocka_unit_test(test_segment_is_not_inherited_by_fork),
        cmocka_unit_test(test_segment_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
