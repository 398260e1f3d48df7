/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender with a pool of one or two chunks and a link of two slots, a receiver that reads
 * each chunk and returns its slot. A chunk must never be written while it is read, nor
 * an entry of the return ring; nothing may be lost: all chunks come back.
 */
#include "relacy_atomic.h"
#include "shm/lane.c"
#include "shm/segment.h"

int rbi_segment_create(struct rbi_segment *out,
                       const char *name,
                       enum rbi_segment_kind kind,
                       uint64_t size,
                       uint64_t mirror_from)
{
    /* Chunk contents are rl::var of the model; only the head is ever written here. */
    static uint64_t page[RBI_PAGE / 8];
    (void)name;
    (void)kind;
    (void)mirror_from;
    out->fd = -1;
    out->base = page;
    out->size = size;
    out->mapped = size;
    return 0;
}

int rbi_segment_create_sparse(struct rbi_segment *out,
                              const char *name,
                              enum rbi_segment_kind kind,
                              uint64_t size)
{
    return rbi_segment_create(out, name, kind, size, 0);
}

int rbi_segment_reserve(const struct rbi_segment *segment, uint64_t offset, uint64_t bytes)
{
    (void)segment;
    (void)offset;
    (void)bytes;
    return 0;
}

void rbi_segment_prefault(const struct rbi_segment *segment, uint64_t max_bytes, bool writable)
{
    (void)segment;
    (void)max_bytes;
    (void)writable;
}

void rbi_segment_deinit(struct rbi_segment *segment)
{
    segment->base = NULL;
}

#include "shm/pool.c"

#define BODY    56U
#define ENTRIES 2U

template <unsigned chunk_count, unsigned messages>
struct pool_model : rl::test_suite<pool_model<chunk_count, messages>, 2> {
    struct model_line lines[MODEL_LINES];
    rbi_au64 read_pos;
    struct rbi_lane_tx tx;
    uint64_t inside[RBI_LANE_INSIDE_WORDS(MODEL_CAPACITY)];
    struct rbi_lane_rx rx;
    rbi_word chunks[chunk_count];
    rbi_word ring[ENTRIES];
    rbi_au64 returns_pos;
    struct rbi_pool pool;
    struct rbi_refs refs;
    struct rbi_returns returns;

    void before()
    {
        struct rbi_pool_plan plan;
        plan.class_count = 1;
        plan.classes[0].chunk_bytes = 64;
        plan.classes[0].count = chunk_count;
        RL_ASSERT(rbi_pool_init(&pool, &plan) == 0);
        model_lines_init(lines);
        rbi_lane_rx_init(&rx, lines, MODEL_CAPACITY, &read_pos, 0);
        memset(inside, 0, sizeof inside);
        rbi_lane_tx_init(&tx, lines, MODEL_CAPACITY, &read_pos, 0, inside);
        rbi_store_rlx(&returns_pos, 0);
        RL_ASSERT(rbi_refs_init(&refs, ENTRIES, &returns_pos, ring) == 0);
        rbi_returns_init(&returns, &returns_pos, ring, ENTRIES);
    }

    void after()
    {
        RL_ASSERT(rbi_refs_collect(&refs, &pool) >= 0);
        RL_ASSERT(rbi_refs_used(&refs) == 0 && rbi_pool_used(&pool) == 0);
        rbi_refs_deinit(&refs);
        rbi_pool_deinit(&pool);
    }

    void collect_until(bool done)
    {
        if (!done) {
            RL_ASSERT(rbi_refs_collect(&refs, &pool) >= 0);
            rl::yield(1, $);
        }
    }

    void send(unsigned i)
    {
        struct rbi_chunk chunk;
        for (bool done = false; !done;) {
            const int r = rbi_pool_take(&pool, 64, &chunk);
            done = r == RBI_POOL_OK;
            RL_ASSERT(done || r == RBI_POOL_EMPTY);
            collect_until(done);
        }
        rbi_word_put(&chunks[chunk.idx], 10 + i);
        uint32_t slot = 0;
        for (bool done = false; !done;) {
            done = rbi_refs_take(&refs, &pool, chunk.idx, &slot) == RBI_POOL_OK;
            collect_until(done);
        }
        rbi_pool_unref(&pool, chunk.idx);
        unsigned char *body = NULL;
        while (rbi_lane_reserve(&tx, BODY, 0, &body) != RBI_LANE_OK) {
            rl::yield(1, $);
        }
        rbi_word_put(&model_line_of(lines, body, 0)->body, (uint64_t)chunk.idx << 32 | slot);
        rbi_lane_commit(&tx, BODY, 1 + i);
    }

    void receive(unsigned i)
    {
        struct rbi_lane_record record;
        while (rbi_lane_peek(&rx, &record) != RBI_LANE_OK) {
            rl::yield(1, $);
        }
        const uint64_t word = rbi_word_get(&model_line_of(lines, record.body, 0)->body);
        rbi_lane_advance(&rx, &record);
        rbi_lane_release(&rx);
        RL_ASSERT(rbi_word_get(&chunks[word >> 32]) == 10 + i);
        rbi_returns_put(&returns, (uint32_t)word);
    }

    void thread(unsigned index)
    {
        for (unsigned i = 0; i < messages; i++) {
            if (index == 0) {
                send(i);
            } else {
                receive(i);
            }
        }
    }
};

int main()
{
    const rl::scheduler_type_e full = rl::fair_full_search_scheduler_type;
    const rl::scheduler_type_e random = rl::random_scheduler_type;
    bool ok = model_run<pool_model<1, 2>>("pool, full search", full, UINT64_MAX);
    ok = ok && model_run<pool_model<1, 6>>("pool of one, random", random, 100000);
    ok = ok && model_run<pool_model<2, 8>>("pool of two, random", random, 100000);
    return ok ? 0 : 1;
}
