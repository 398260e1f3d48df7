/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/lane.h"
#include "tests/support/test.h"

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

static void setup(struct fixture *f, uint64_t capacity, uint64_t start_pos)
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

static void teardown(struct fixture *f)
{
    assert_int_equal(munmap(f->base, 2 * f->capacity), 0);
    free(f->inside);
}

/** Bytes that depend on the record and look like commit words at every 8 bytes. */
static void fill(unsigned char *body, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++) {
        body[i] = (unsigned char)(i % 8 < 4 ? (seed + i / 8) & 0x3f : 0x40 + seed % 0x80);
    }
}

static bool filled(const unsigned char *body, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++) {
        if (body[i] != (unsigned char)(i % 8 < 4 ? (seed + i / 8) & 0x3f : 0x40 + seed % 0x80)) {
            return false;
        }
    }
    return true;
}

static int put(struct fixture *f, uint64_t size, uint64_t seed)
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

static void take(struct fixture *f, uint64_t size, uint64_t seed)
{
    struct rbi_lane_record record = {0};
    assert_int_equal(rbi_lane_peek(&f->rx, &record), RBI_LANE_OK);
    assert_int_equal(record.size, size);
    assert_int_equal(record.meta, seed % 0xfffff + 1);
    assert_true(filled(record.body, size, seed));
    rbi_lane_advance(&f->rx, &record);
}

static void assert_empty(struct fixture *f)
{
    struct rbi_lane_record record = {0};
    assert_int_equal(rbi_lane_peek(&f->rx, &record), RBI_LANE_EMPTY);
}

/* Positions pass 2^32, 2^63 and 2^64 with mixed sizes; the fill level never leaves its range. */
static void run_over_wrap(uint64_t start_pos, unsigned messages)
{
    struct fixture f;
    setup(&f, CAPACITY, start_pos);
    uint64_t rng = 88172645463325252U;
    unsigned sent = 0;
    unsigned received = 0;
    uint64_t sizes[256]; /* more than records fit */
    while (received < messages) {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        const uint64_t size =
            (rng >> 8) % 8 == 0 ? rng % (rbi_lane_body_max(CAPACITY) + 1) : rng % 200;
        if (sent < messages && put(&f, size, sent) == RBI_LANE_OK) {
            sizes[sent++ % 256] = size;
        }
        const uint64_t used = rbi_lane_used(&f.tx);
        assert_true(used <= CAPACITY);
        assert_true(f.tx.zeroed - f.tx.pos <= CAPACITY);
        if (rng % 3 == 0) {
            for (unsigned n = (unsigned)(rng >> 32) % 20; n > 0 && received < sent; n--) {
                take(&f, sizes[received % 256], received);
                received++;
            }
            rbi_lane_release(&f.rx);
        }
    }
    assert_empty(&f);
    teardown(&f);
}

static void test_lane_positions_wrap(void **state)
{
    (void)state;
    run_over_wrap((UINT64_C(1) << 32) - 1024, 100000);
    run_over_wrap((UINT64_C(1) << 63) - 1024, 100000);
    run_over_wrap((uint64_t)0 - 1024, 100000);
    run_over_wrap(0, 100000);
}

/* Every line of a 4 KiB lane as the start, every size in steps of 8 and around them. */
static void test_lane_each_offset_and_size(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    assert_int_equal(max, CAPACITY - 512 - 64 - 8);
    unsigned seed = 0;
    for (uint64_t line = 0; line < CAPACITY / RBI_LINE; line++) {
        for (uint64_t size = 0; size <= max; size += 8) {
            while ((f.tx.pos & f.tx.mask) != line * RBI_LINE) {
                assert_int_equal(put(&f, 1, 7), RBI_LANE_OK);
                take(&f, 1, 7);
                rbi_lane_release(&f.rx);
            }
            const uint64_t exact = rbi_min_u64(max, size + seed % 3);
            assert_int_equal(put(&f, exact, seed), RBI_LANE_OK);
            take(&f, exact, seed);
            assert_empty(&f);
            rbi_lane_release(&f.rx);
            assert_int_equal(rbi_lane_used(&f.tx), 0);
            seed++;
        }
    }
    teardown(&f);
}

static void test_lane_size_zero_is_delivered(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    assert_int_equal(put(&f, 0, 5), RBI_LANE_OK);
    take(&f, 0, 5);
    assert_empty(&f);
    teardown(&f);
}

/* All lines but the one that stays zero can be in use, and no more; no deadlock afterwards. */
static void test_lane_exact_fit(void **state)
{
    (void)state;
    for (uint64_t start = 0; start < CAPACITY; start += RBI_LINE) {
        struct fixture f;
        setup(&f, CAPACITY, start);
        for (unsigned round = 0; round < 3; round++) {
            for (unsigned i = 0; i < CAPACITY / RBI_LINE - 1; i++) {
                assert_int_equal(put(&f, 56, i), RBI_LANE_OK);
            }
            assert_int_equal(put(&f, 0, 0), RBI_LANE_FULL);
            assert_int_equal(rbi_lane_used(&f.tx), CAPACITY - RBI_LINE);
            for (unsigned i = 0; i < CAPACITY / RBI_LINE - 1; i++) {
                take(&f, 56, i);
            }
            assert_empty(&f);
            assert_int_equal(put(&f, 0, 0), RBI_LANE_FULL); /* not released yet */
            rbi_lane_release(&f.rx);
        }
        assert_int_equal(put(&f, rbi_lane_body_max(CAPACITY), 3), RBI_LANE_OK);
        take(&f, rbi_lane_body_max(CAPACITY), 3);
        assert_empty(&f);
        teardown(&f);
    }
}

/* Data leaves room; the largest record fits an empty lane even so; control uses that room. */
static void test_lane_control_room(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    unsigned char *body = NULL;
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    assert_int_equal(rbi_lane_reserve(&f.tx, max, RBI_LANE_CONTROL_ROOM, &body), RBI_LANE_OK);
    unsigned data = 0;
    while (rbi_lane_reserve(&f.tx, 56, RBI_LANE_CONTROL_ROOM, &body) == RBI_LANE_OK) {
        rbi_lane_commit(&f.tx, 56, 1);
        data++;
    }
    assert_int_equal(data, CAPACITY / RBI_LINE - 1 - 8);
    unsigned control = 0;
    while (rbi_lane_reserve(&f.tx, 56, 0, &body) == RBI_LANE_OK) {
        rbi_lane_commit(&f.tx, 56, 1);
        control++;
    }
    assert_int_equal(control, 8);
    teardown(&f);
}

static void test_lane_reserve_refuses_sizes_over_the_limit(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    const uint64_t sizes[] = {max + 1,           CAPACITY,          CAPACITY + 1,
                              UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 8,
                              UINT64_MAX - 71,   UINT64_MAX - 8,    UINT64_MAX};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(sizes); i++) {
        unsigned char *body = NULL;
        assert_int_equal(rbi_lane_reserve(&f.tx, sizes[i], 0, &body), -EMSGSIZE);
        assert_null(body);
        assert_int_equal(f.tx.pos, 0);
    }
    assert_int_equal(put(&f, max, 1), RBI_LANE_OK);
    take(&f, max, 1);
    teardown(&f);
}

/* What an aborted or a shortened reservation left in the lines is never taken for a record. */
static void test_lane_abort_and_shorter_commit(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    for (unsigned i = 0; i < 2000; i++) {
        unsigned char *body = NULL;
        const uint64_t reserved = (i * 97U) % max + 1;
        assert_int_equal(rbi_lane_reserve(&f.tx, reserved, 0, &body), RBI_LANE_OK);
        memset(body, 0x11, reserved);
        assert_empty(&f);
        if (i % 3 == 0) {
            /* aborted; a smaller one takes its place */
            const uint64_t size = reserved / (1 + i % 5);
            assert_int_equal(put(&f, size, i), RBI_LANE_OK);
            take(&f, size, i);
        } else {
            const uint64_t size = reserved / (1 + i % 7);
            fill(body, size, i);
            rbi_lane_commit_seq(&f.tx, size, i + 1);
            take(&f, size, i);
        }
        assert_empty(&f);
        rbi_lane_release_seq(&f.rx);
        assert_empty(&f);
    }
    teardown(&f);
}

static void test_lane_reserve_refuses_hostile_read_positions(void **state)
{
    (void)state;
    for (unsigned step = 0; step < 4; step++) {
        struct fixture f;
        setup(&f, CAPACITY, (uint64_t)0 - 2048);
        while (put(&f, 56, 1) == RBI_LANE_OK) {
        }
        const uint64_t start = f.tx.read_seen;
        const uint64_t hostile[] = {
            start - RBI_LINE,    /* behind what it said before */
            f.tx.pos + RBI_LINE, /* ahead of what was written */
            start + 1,           /* no line */
            start + (UINT64_C(1) << 63),
        };
        unsigned char *body = NULL;
        rbi_store_rlx(&f.read_pos, hostile[step]);
        assert_int_equal(rbi_lane_reserve(&f.tx, 56, 0, &body), -EPROTO);
        assert_null(body);
        assert_int_equal(rbi_lane_used(&f.tx), CAPACITY - RBI_LINE);
        assert_true(rbi_lane_unread_first(&f.tx) == start);
        teardown(&f);
    }
}

/*
 * Lines that a large record is to be written over are not zeroed first. If it is then not
 * written, or a shorter one is, what lies there must not pass for a record.
 */
static void test_lane_large_records_leave_nothing(void **state)
{
    (void)state;
    const uint64_t capacity = UINT64_C(65536);
    struct fixture f;
    setup(&f, capacity, (uint64_t)0 - capacity);
    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t large = 2000 + i * 7919 % (rbi_lane_body_max(capacity) - 2000);
        const uint64_t sent = i % 3 == 0 ? large : i % 3 == 1 ? large * (i % 5) / 5 : 40;
        unsigned char *body = NULL;
        assert_int_equal(rbi_lane_reserve(&f.tx, large, 0, &body), RBI_LANE_OK);
        fill(body, large, i);
        if (i % 3 == 2) { /* given up for a small one */
            assert_int_equal(rbi_lane_reserve(&f.tx, sent, 0, &body), RBI_LANE_OK);
        }
        fill(body, sent, i);
        rbi_lane_commit(&f.tx, sent, (uint32_t)(i % 0xfffff) + 1);
        take(&f, sent, i);
        assert_empty(&f);
        rbi_lane_release(&f.rx);
    }
    teardown(&f);
}

/* The producer owns the bytes and writes what it likes: never a byte outside, never a hang. */
static void test_lane_peek_refuses_hostile_records(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    const uint64_t words[] = {1,
                              UINT64_C(1) << 32 | (max + 1),
                              UINT64_C(1) << 32 | UINT32_MAX,
                              UINT64_C(1) << 32 | CAPACITY,
                              UINT64_MAX,
                              UINT32_MAX};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(words); i++) {
        struct rbi_lane_record record = {.size = 12345};
        rbi_store_rlx(rbi_au64_at(f.base, 0), words[i]);
        assert_int_equal(rbi_lane_peek(&f.rx, &record), -EPROTO);
        assert_int_equal(record.size, 12345);
    }
    struct rbi_lane_record record = {0};
    f.rx.pos = CAPACITY - RBI_LINE;
    rbi_store_rlx(rbi_au64_at(f.base, CAPACITY - RBI_LINE), UINT64_C(1) << 32 | max);
    assert_int_equal(rbi_lane_peek(&f.rx, &record), RBI_LANE_OK);
    assert_true(record.body + record.size <= f.base + 2 * (size_t)CAPACITY);
    teardown(&f);
}

/* What a dead receiver had not released is walked record by record. */
static void test_lane_unread_walk(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, (uint64_t)0 - 1024);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(put(&f, i * 10, i), RBI_LANE_OK);
    }
    for (unsigned i = 0; i < 7; i++) {
        take(&f, i * 10, i);
    }
    rbi_lane_release(&f.rx);
    unsigned char *body = NULL;
    assert_int_equal(rbi_lane_reserve(&f.tx, 500, 0, &body), RBI_LANE_OK); /* never committed */
    memset(body, 0x11, 500);
    uint64_t pos = rbi_lane_unread_first(&f.tx);
    struct rbi_lane_record record = {0};
    unsigned i = 7;
    for (; rbi_lane_unread_at(&f.tx, pos, &record) == RBI_LANE_OK; pos = record.next) {
        assert_int_equal(record.size, i * 10);
        assert_true(filled(record.body, record.size, i));
        i++;
    }
    assert_int_equal(i, 20);
    teardown(&f);
}

/* What is withdrawn is still walked, and the receiver sees it for what it is. */
static void test_lane_withdrawn_from_a_position_on(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, (uint64_t)0 - 1024);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(put(&f, 100 + i, i), RBI_LANE_OK);
    }
    struct rbi_lane_record record = {0};
    uint64_t pos = rbi_lane_unread_first(&f.tx);
    assert_int_equal(rbi_lane_unread_at(&f.tx, pos, &record), RBI_LANE_OK);
    rbi_lane_withdraw(&f.tx, record.next);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(rbi_lane_unread_at(&f.tx, pos, &record), RBI_LANE_OK);
        assert_int_equal(record.size, 100 + i);
        pos = record.next;
        assert_int_equal(rbi_lane_peek(&f.rx, &record), RBI_LANE_OK);
        assert_true(rbi_lane_is_withdrawn(&record) == (i > 0));
        rbi_lane_advance(&f.rx, &record);
    }
    assert_int_equal(rbi_lane_unread_at(&f.tx, pos, &record), RBI_LANE_EMPTY);
    teardown(&f);
}

/* A hostile receiver stops inside a record: the walk stays within what was written. */
static void test_lane_unread_walk_from_inside_a_record(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    unsigned char *body = NULL;
    assert_int_equal(rbi_lane_reserve(&f.tx, 2000, 0, &body), RBI_LANE_OK);
    for (uint64_t offset = 0; offset + 8 <= 2000; offset += 8) {
        const uint64_t word =
            UINT64_C(1) << 32 | (offset * 3); /* a record, too long from some place on */
        memcpy(body + offset, &word, sizeof word);
    }
    rbi_lane_commit(&f.tx, 2000, 1);
    for (uint64_t pos = 0; pos <= f.tx.pos + 4096; pos += RBI_LINE) {
        struct rbi_lane_record record;
        if (rbi_lane_unread_at(&f.tx, pos, &record) == RBI_LANE_OK) {
            assert_true(record.next - pos <= f.tx.pos - pos);
            assert_true(record.size <= f.tx.pos - pos - RBI_LANE_HEADER);
        }
    }
    teardown(&f);
}

/** Takes the second mapping away, as before the first message of a link. */
static void shut(struct fixture *f)
{
    assert_true(mmap(f->base + f->capacity, f->capacity, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    rbi_lane_tx_shut(&f->tx);
    rbi_lane_rx_shut(&f->rx);
    assert_true(rbi_lane_tx_is_shut(&f->tx) && rbi_lane_rx_is_shut(&f->rx));
}

/* Nothing but control records of a line, lap after lap, and none touches the missing half. */
static void test_lane_shut_takes_what_does_not_wrap(void **state)
{
    (void)state;
    struct fixture f;
    struct rbi_lane_record record = {0};
    unsigned char *body = NULL;
    setup(&f, CAPACITY, 0);
    shut(&f);
    for (unsigned i = 0; i < 3 * CAPACITY / RBI_LINE; i++) {
        const uint64_t left = CAPACITY - (f.tx.pos & f.tx.mask);
        assert_int_equal(rbi_lane_reserve(&f.tx, 1, 0, &body), -EMSGSIZE);
        if (left < 1024) {
            assert_int_equal(rbi_lane_reserve_once(&f.tx, left - 7, 0, &body), -EMSGSIZE);
        }
        assert_int_equal(rbi_lane_reserve_once(&f.tx, 56, 0, &body), RBI_LANE_OK);
        fill(body, 56, i);
        rbi_lane_commit(&f.tx, 56, i + 1);
        take(&f, 56, i);
        rbi_lane_release(&f.rx);
    }
    /* What fits in front of the end is a matter of asking for it. */
    assert_int_equal(f.tx.pos % CAPACITY, 0);
    assert_int_equal(rbi_lane_reserve_once(&f.tx, 500, 0, &body), RBI_LANE_OK);
    fill(body, 500, 7);
    rbi_lane_commit(&f.tx, 500, 1);
    assert_int_equal(rbi_lane_peek(&f.rx, &record), -EPROTO);
    assert_int_equal(rbi_lane_peek_once(&f.rx, &record), RBI_LANE_OK);
    assert_true(record.size == 500 && filled(record.body, 500, 7));
    teardown(&f);
}

/* A hostile record in a shut lane never leads behind the one mapping, at whatever position. */
static void test_lane_shut_believes_nothing_that_wraps(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    for (uint64_t pos = 0; pos < CAPACITY; pos += RBI_LINE) {
        setup(&f, CAPACITY, pos);
        shut(&f);
        const uint64_t left = CAPACITY - pos;
        const uint64_t sizes[] = {0,        8,        56,  57,      left - 9,
                                  left - 8, left - 7, max, max + 1, UINT32_MAX};
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(sizes); i++) {
            struct rbi_lane_record record;
            rbi_store_rlx(rbi_au64_at(f.base, pos), UINT64_C(1) << 32 | sizes[i]);
            int r = rbi_lane_peek(&f.rx, &record);
            assert_int_equal(r, sizes[i] <= 56 ? RBI_LANE_OK : -EPROTO);
            r = rbi_lane_peek_once(&f.rx, &record);
            assert_int_equal(r, sizes[i] + 8 <= left && sizes[i] <= max ? RBI_LANE_OK : -EMSGSIZE);
            if (r == RBI_LANE_OK) {
                assert_true(record.body + record.size <= f.base + CAPACITY);
            }
        }
        rbi_store_rlx(rbi_au64_at(f.base, pos), 8); /* meta 0 */
        struct rbi_lane_record record;
        assert_int_equal(rbi_lane_peek(&f.rx, &record), -EPROTO);
        assert_int_equal(rbi_lane_peek_once(&f.rx, &record), -EPROTO);
        teardown(&f);
    }
}

static void test_lane_opens_with_its_full_size(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t max = rbi_lane_body_max(CAPACITY);
    unsigned char *body = NULL;
    setup(&f, CAPACITY, 3 * CAPACITY - RBI_LINE);
    rbi_lane_tx_shut(&f.tx);
    rbi_lane_rx_shut(&f.rx);
    assert_int_equal(rbi_lane_reserve(&f.tx, max, 0, &body), -EMSGSIZE);
    rbi_lane_tx_open(&f.tx);
    rbi_lane_rx_open(&f.rx);
    assert_false(rbi_lane_tx_is_shut(&f.tx) || rbi_lane_rx_is_shut(&f.rx));
    assert_int_equal(put(&f, max, 5), RBI_LANE_OK);
    take(&f, max, 5);
    assert_int_equal(rbi_lane_reserve(&f.tx, max + 1, 0, &body), -EMSGSIZE);
    teardown(&f);
}

/* Publishing again what is published already must not take the line from the producer. */
static void test_lane_release_stores_only_what_is_new(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, CAPACITY, 0);
    rbi_store_rlx(&f.read_pos, 640);
    rbi_lane_release(&f.rx);
    assert_int_equal(rbi_load_rlx(&f.read_pos), 640);
    rbi_lane_release_seq(&f.rx); /* orders the look at want_pos: always stores */
    assert_int_equal(rbi_load_rlx(&f.read_pos), 0);
    teardown(&f);
}

/** Bodies that are commit words where a line begins; a reader may not stand on any of them. */
static void test_lane_read_pos_inside_a_record(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t seed = 99;
    unsigned inside = 0;
    setup(&f, CAPACITY, (uint64_t)0 - 8192);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned char *body = NULL;
        seed = seed * UINT64_C(6364136223846793005) + 1;
        const uint64_t size = (seed >> 33) % (i % 7 == 0 ? rbi_lane_body_max(CAPACITY) + 1 : 300);
        const uint64_t sent = size - (i % 5 == 0 ? size / 2 : 0);
        const uint64_t start = f.tx.pos;
        const uint64_t published = rbi_load_rlx(&f.read_pos);
        const int r = rbi_lane_reserve(&f.tx, size, 0, &body);
        if (r == RBI_LANE_FULL) {
            struct rbi_lane_record record;
            assert_int_equal(rbi_lane_peek(&f.rx, &record), RBI_LANE_OK);
            rbi_lane_advance(&f.rx, &record);
            rbi_lane_release(&f.rx);
            continue;
        }
        assert_int_equal(r, RBI_LANE_OK);
        fill(body, size, i);
        if (i % 3 == 0) {
            continue; /* replaced by the next one */
        }
        rbi_lane_commit(&f.tx, sent, 1 + i % 200);
        for (uint64_t pos = start; pos - start <= f.tx.pos - start; pos += RBI_LINE) {
            uint64_t got = 0;
            const bool whole = pos == start || pos == f.tx.pos;
            rbi_store_rlx(&f.read_pos, pos);
            assert_int_equal(rbi_lane_read_pos(&f.tx, &got), whole ? 0 : -EPROTO);
            inside += !whole;
        }
        rbi_store_rlx(&f.read_pos, published);
    }
    assert_true(inside > 10000);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_read_pos_inside_a_record),
        cmocka_unit_test(test_lane_positions_wrap),
        cmocka_unit_test(test_lane_each_offset_and_size),
        cmocka_unit_test(test_lane_size_zero_is_delivered),
        cmocka_unit_test(test_lane_exact_fit),
        cmocka_unit_test(test_lane_control_room),
        cmocka_unit_test(test_lane_reserve_refuses_sizes_over_the_limit),
        cmocka_unit_test(test_lane_abort_and_shorter_commit),
        cmocka_unit_test(test_lane_reserve_refuses_hostile_read_positions),
        cmocka_unit_test(test_lane_peek_refuses_hostile_records),
        cmocka_unit_test(test_lane_unread_walk),
        cmocka_unit_test(test_lane_withdrawn_from_a_position_on),
        cmocka_unit_test(test_lane_unread_walk_from_inside_a_record),
        cmocka_unit_test(test_lane_release_stores_only_what_is_new),
        cmocka_unit_test(test_lane_large_records_leave_nothing),
        cmocka_unit_test(test_lane_shut_takes_what_does_not_wrap),
        cmocka_unit_test(test_lane_shut_believes_nothing_that_wraps),
        cmocka_unit_test(test_lane_opens_with_its_full_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
