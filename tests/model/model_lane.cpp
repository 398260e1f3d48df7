/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One producer, one consumer, a lane of four lines, records of one and two lines. The
 * second line of a record, where a commit word would lie, holds words that look like
 * one, and so does an aborted record. The consumer must see each record once, in order, whole,
 * and nothing behind the last.
 */
#include "relacy_atomic.h"
#include "shm/lane.c"

/** Bytes of a body that fills @p lines lines. */
#define BODY(lines) ((lines)*64U - 8U)
#define LOOKS_LIKE  ((uint64_t)0x77 << 32 | 40U)

/** @p seq: with the sequentially consistent verbs; @p aborts: drops a reservation before each. */
template <bool seq, bool aborts, unsigned records>
struct lane_model : rl::test_suite<lane_model<seq, aborts, records>, 2> {
    struct model_line lines[MODEL_LINES];
    rbi_au64 read_pos;
    struct rbi_lane_tx tx;
    uint64_t inside[RBI_LANE_INSIDE_WORDS(MODEL_CAPACITY)];
    struct rbi_lane_rx rx;

    static unsigned lines_of(unsigned i)
    {
        return 1 + i % 2;
    }

    void before()
    {
        model_lines_init(lines);
        rbi_lane_rx_init(&rx, lines, MODEL_CAPACITY, &read_pos, (uint64_t)0 - 128);
        memset(inside, 0, sizeof inside);
        rbi_lane_tx_init(&tx, lines, MODEL_CAPACITY, &read_pos, (uint64_t)0 - 128, inside);
    }

    void fill(unsigned char *body, unsigned count, uint64_t value)
    {
        rbi_word_put(&model_line_of(lines, body, 0)->body, value);
        for (unsigned i = 1; i < count; i++) {
            struct model_line *line = model_line_of(lines, body, i);
            rbi_word_put(&line->word_plain, value);
            rbi_store_rlx(&line->word, LOOKS_LIKE);
        }
    }

    unsigned char *reserve(uint64_t size)
    {
        for (;;) {
            unsigned char *body = NULL;
            const int r = rbi_lane_reserve(&tx, size, 0, &body);
            if (r == RBI_LANE_OK) {
                return body;
            }
            RL_ASSERT(r == RBI_LANE_FULL);
            rl::yield(1, $);
        }
    }

    void produce()
    {
        for (unsigned i = 0; i < records; i++) {
            if (aborts) {
                fill(reserve(BODY(2)), 2, 99);
            }
            const uint64_t size = BODY(lines_of(i));
            fill(reserve(size), lines_of(i), 10 + i);
            if (seq) {
                rbi_lane_commit_seq(&tx, size, 1 + i);
            } else {
                rbi_lane_commit(&tx, size, 1 + i);
            }
        }
    }

    void consume()
    {
        struct rbi_lane_record record;
        for (unsigned i = 0; i < records;) {
            const int r = rbi_lane_peek(&rx, &record);
            if (r == RBI_LANE_EMPTY) {
                rl::yield(1, $);
                continue;
            }
            RL_ASSERT(r == RBI_LANE_OK && record.meta == 1 + i);
            RL_ASSERT(record.size == BODY(lines_of(i)));
            RL_ASSERT(rbi_word_get(&model_line_of(lines, record.body, 0)->body) == 10 + i);
            for (unsigned k = 1; k < lines_of(i); k++) {
                struct model_line *line = model_line_of(lines, record.body, k);
                RL_ASSERT(rbi_word_get(&line->word_plain) == 10 + i);
                RL_ASSERT(rbi_load_rlx(&line->word) == LOOKS_LIKE);
            }
            rbi_lane_advance(&rx, &record);
            if (seq) {
                rbi_lane_release_seq(&rx);
            } else {
                rbi_lane_release(&rx);
            }
            i++;
        }
        RL_ASSERT(rbi_lane_peek(&rx, &record) == RBI_LANE_EMPTY);
    }

    void thread(unsigned index)
    {
        if (index == 0) {
            produce();
        } else {
            consume();
        }
    }
};

int main()
{
    const rl::scheduler_type_e full = rl::fair_full_search_scheduler_type;
    const rl::scheduler_type_e random = rl::random_scheduler_type;
#if RBI_LANE_ZERO_RUN == 1
    const rl::scheduler_type_e bound = rl::fair_context_bound_scheduler_type;
    bool ok =
        model_run<lane_model<false, false, 3>>("lane by lines, 6 switches", bound, UINT64_MAX, 6);
    ok = ok && model_run<lane_model<false, false, 8>>("lane by lines, random", random, 2000000);
    ok = ok && model_run<lane_model<true, true, 6>>("lane seq by lines with aborts, random", random,
                                                    2000000);
    (void)full;
#else
    bool ok = model_run<lane_model<false, false, 3>>("lane, full search", full, UINT64_MAX);
    ok = ok && model_run<lane_model<true, false, 3>>("lane seq, full search", full, UINT64_MAX);
    ok = ok && model_run<lane_model<false, true, 6>>("lane with aborts, random", random, 100000);
    ok = ok && model_run<lane_model<true, false, 8>>("lane seq, random", random, 100000);
#endif
    return ok ? 0 : 1;
}
