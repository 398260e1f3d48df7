/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_LANE_H
#define RINGBUS_TESTS_UNIT_LANE_H
/* A lane in a mirrored mapping, both ends in this process. */
#include "shm/lane.h"
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPACITY 4096U

/** A lane in a mirrored mapping, both ends in this process. */
struct fixture {
    unsigned char *base;
    uint64_t capacity;
    RBI_ALIGNED(64) rbi_au64 read_pos;
    struct rbi_lane_tx tx;
    struct rbi_lane_rx rx;
    uint64_t *inside;
};

static inline void setup(struct fixture *f, uint64_t capacity, uint64_t start_pos)
{
    const int fd = memfd_create("test-lane", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)capacity), 0);
    f->base = mmap(NULL, 2 * capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f->base != MAP_FAILED);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(mmap(f->base + i * capacity, capacity, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    }
    (void)close(fd);
    f->capacity = capacity;
    rbi_lane_rx_init(&f->rx, f->base, capacity, &f->read_pos, start_pos);
    f->inside = (uint64_t *)calloc(RBI_LANE_INSIDE_WORDS(capacity), sizeof(uint64_t));
    assert_non_null(f->inside);
    rbi_lane_tx_init(&f->tx, f->base, capacity, &f->read_pos, start_pos, f->inside);
}

static inline void teardown(struct fixture *f)
{
    assert_int_equal(munmap(f->base, 2 * f->capacity), 0);
    free(f->inside);
}

/** Bytes that depend on the record and look like commit words at every 8 bytes. */
static inline void fill(unsigned char *body, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++) {
        body[i] = (unsigned char)(i % 8 < 4 ? (seed + i / 8) & 0x3f : 0x40 + seed % 0x80);
    }
}

static inline bool filled(const unsigned char *body, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++) {
        if (body[i] != (unsigned char)(i % 8 < 4 ? (seed + i / 8) & 0x3f : 0x40 + seed % 0x80)) {
            return false;
        }
    }
    return true;
}

static inline int put(struct fixture *f, uint64_t size, uint64_t seed)
{
    unsigned char *body = NULL;
    const int r = rbi_lane_reserve(&f->tx, size, 0, &body);
    if (r == RBI_LANE_OK) {
        assert_int_equal((uintptr_t)body % 64, RBI_LANE_HEADER);
        fill(body, size, seed);
        rbi_lane_commit(&f->tx, size, (uint32_t)(seed % 0xfffff) + 1);
    }
    return r;
}

static inline void take(struct fixture *f, uint64_t size, uint64_t seed)
{
    struct rbi_lane_record record = {0};
    assert_int_equal(rbi_lane_peek(&f->rx, &record), RBI_LANE_OK);
    assert_int_equal(record.size, size);
    assert_int_equal(record.meta, seed % 0xfffff + 1);
    assert_true(filled(record.body, size, seed));
    rbi_lane_advance(&f->rx, &record);
}

static inline void assert_empty(struct fixture *f)
{
    struct rbi_lane_record record = {0};
    assert_int_equal(rbi_lane_peek(&f->rx, &record), RBI_LANE_EMPTY);
}

#endif
