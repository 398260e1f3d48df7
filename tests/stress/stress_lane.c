/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lane and pool together: one thread sends records of every size, inline or as a
 * reference to a chunk, and drops some reservations; the other checks every byte
 * and gives the chunks back. Nothing may be lost, torn, repeated or reused early.
 */
#include "shm/pool.h"
#include "stress.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define CAPACITY    (UINT64_C(16) << 10)
#define ENTRIES     16U
#define META_INLINE 1U
#define META_CHUNK  2U
#define META_END    3U

/** What a chunk record's body holds. */
struct reference {
    uint64_t sequence;
    uint64_t offset;
    uint64_t size;
    uint64_t slot;
};

static struct stress_lane lane;
static struct rbi_pool pool;
static struct rbi_refs refs;
static RBI_ALIGNED(128) rbi_au64 returns_pos;
static RBI_ALIGNED(128) rbi_word returns_ring[ENTRIES];

/** Every byte depends on the record and its place; each 8 bytes look like a commit word. */
static unsigned char byte_of(uint64_t sequence, uint64_t idx)
{
    return (unsigned char)(idx % 8 < 4 ? (sequence + idx) & 0x3f : 1 + sequence % 255);
}

static void fill(unsigned char *bytes, uint64_t size, uint64_t sequence)
{
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = byte_of(sequence, i);
    }
}

static void check(const unsigned char *bytes, uint64_t size, uint64_t sequence)
{
    for (uint64_t i = 0; i < size; i++) {
        STRESS_CHECK(bytes[i] == byte_of(sequence, i));
    }
}

static unsigned char *reserve(uint64_t size)
{
    for (;;) {
        unsigned char *body = NULL;
        const int r = rbi_lane_reserve(&lane.tx, size, 0, &body);
        STRESS_CHECK(r >= 0 && rbi_lane_used(&lane.tx) <= CAPACITY);
        if (r == RBI_LANE_OK) {
            return body;
        }
        (void)sched_yield();
    }
}

static void send_inline(uint64_t sequence, uint64_t size)
{
    unsigned char *body = reserve(8 + size);
    memcpy(body, &sequence, sizeof sequence);
    fill(body + 8, size, sequence);
    rbi_lane_commit(&lane.tx, 8 + size, META_INLINE);
}

static void collect(void)
{
    STRESS_CHECK(rbi_refs_collect(&refs, &pool) >= 0);
    (void)sched_yield();
}

static void send_chunk(uint64_t sequence, uint64_t size)
{
    struct rbi_chunk chunk;
    uint32_t slot = 0;
    while (rbi_pool_take(&pool, size, &chunk) != RBI_POOL_OK) {
        collect();
    }
    fill(chunk.data, size, sequence);
    while (rbi_refs_take(&refs, &pool, chunk.idx, &slot) != RBI_POOL_OK) {
        collect();
    }
    rbi_pool_unref(&pool, chunk.idx);
    const struct reference reference = {
        .sequence = sequence, .offset = chunk.offset, .size = size, .slot = slot};
    memcpy(reserve(sizeof reference), &reference, sizeof reference);
    rbi_lane_commit(&lane.tx, sizeof reference, META_CHUNK);
}

static void *send_all(void *arg)
{
    const struct stress_options *options = (const struct stress_options *)arg;
    const uint64_t end_ns = stress_now_ns() + (uint64_t)(options->seconds * 1e9);
    uint64_t rng = options->seed;
    uint64_t sequence = 0;
    while (sequence % 64 != 0 || stress_now_ns() < end_ns) {
        const uint64_t dice = stress_random(&rng) >> 16;
        if (dice % 16 == 0) {
            memset(reserve(dice / 16 % 3000), 0x11, dice / 16 % 3000); /* never committed */
        }
        if (dice % 4 == 1) {
            send_chunk(sequence, dice / 16 % 8192 + 1);
        } else {
            send_inline(sequence, dice % 32 == 2 ? dice / 32 % 10000 : dice / 32 % 120);
        }
        sequence++;
    }
    memcpy(reserve(sizeof sequence), &sequence, sizeof sequence);
    rbi_lane_commit(&lane.tx, sizeof sequence, META_END);
    return NULL;
}

static void
check_record(const struct rbi_lane_record *record, uint64_t expected, struct rbi_returns *returns)
{
    uint64_t sequence = 0;
    STRESS_CHECK(record->size >= sizeof sequence);
    memcpy(&sequence, record->body, sizeof sequence);
    STRESS_CHECK(sequence == expected);
    if (record->meta == META_INLINE) {
        check(record->body + 8, record->size - 8, sequence);
    } else if (record->meta == META_CHUNK) {
        struct reference reference;
        STRESS_CHECK(record->size == sizeof reference);
        memcpy(&reference, record->body, sizeof reference);
        check((const unsigned char *)pool.segment.base + reference.offset, reference.size,
              sequence);
        rbi_returns_put(returns, (uint32_t)reference.slot);
    }
}

static uint64_t receive_all(uint64_t seed)
{
    struct rbi_returns returns;
    struct rbi_lane_record record = {0};
    uint64_t rng = seed;
    uint64_t count = 0;
    rbi_returns_init(&returns, &returns_pos, returns_ring, ENTRIES);
    do {
        const int r = rbi_lane_peek(&lane.rx, &record);
        STRESS_CHECK(r >= 0);
        if (r == RBI_LANE_EMPTY) {
            rbi_lane_release(&lane.rx);
            (void)sched_yield();
            continue;
        }
        check_record(&record, count, &returns);
        count++;
        rbi_lane_advance(&lane.rx, &record);
        if (stress_random(&rng) % 8 == 0) {
            rbi_lane_release(&lane.rx);
        }
    } while (record.meta != META_END);
    rbi_lane_release(&lane.rx);
    return count;
}

int main(int argc, char **argv)
{
    struct stress_options options;
    stress_parse(&options, argc, argv);
    static const struct rbi_pool_plan plan = {
        .class_count = 2,
        .classes = {{.chunk_bytes = 1024, .count = 4}, {.chunk_bytes = 8192, .count = 4}}};
    STRESS_CHECK(rbi_pool_init(&pool, &plan) == 0);
    STRESS_CHECK(rbi_refs_init(&refs, ENTRIES, &returns_pos, returns_ring) == 0);
    stress_lane_open(&lane, CAPACITY, (uint64_t)0 - (UINT64_C(1) << 20)); /* wraps soon */
    pthread_t sender;
    STRESS_CHECK(pthread_create(&sender, NULL, send_all, &options) == 0);
    const uint64_t count = receive_all(options.seed);
    STRESS_CHECK(pthread_join(sender, NULL) == 0);
    STRESS_CHECK(rbi_refs_collect(&refs, &pool) >= 0);
    STRESS_CHECK(rbi_refs_used(&refs) == 0 && rbi_pool_used(&pool) == 0);
    STRESS_CHECK(rbi_lane_used(&lane.tx) == 0);
    (void)printf("ok: %" PRIu64 " records\n", count);
    rbi_refs_deinit(&refs);
    rbi_pool_deinit(&pool);
    stress_lane_close(&lane);
    return 0;
}
