/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver that sleeps when its lane is empty, a sender that sleeps when the lane is
 * full; each rings the other as shm/bell.h says. A lost wake-up is a deadlock, which
 * Relacy reports. The bell itself is a semaphore: rings add up, a wait takes one.
 */
#include "relacy_atomic.h"
#include "shm/bell.h"
#include "shm/lane.c"

/**
 * @p lines_each: lines of a record; three fill the lane, so that the sender sleeps as well
 * @p dozes: the receiver sleeps when it finds nothing; otherwise it is told of each record,
 *           which leaves the sender's sleep alone to be searched
 * @p bursts: all records are one burst: released one by one, announced behind the last
 */
template <unsigned lines_each, unsigned records, bool dozes, bool bursts>
struct bell_model : rl::test_suite<bell_model<lines_each, records, dozes, bursts>, 2> {
    static const uint64_t size = lines_each * 64 - 8;
    struct model_line lines[MODEL_LINES];
    rbi_au64 read_pos;
    rbi_au64 sleep_epoch;
    rbi_au64 want_pos;
    rbi_au64 written_hint;
    rl::semaphore<struct receiver_tag> to_receiver;
    rl::semaphore<struct sender_tag> to_sender;
    struct rbi_lane_tx tx;
    uint64_t inside[RBI_LANE_INSIDE_WORDS(MODEL_CAPACITY)];
    struct rbi_lane_rx rx;

    void before()
    {
        model_lines_init(lines);
        rbi_store_rlx(&sleep_epoch, 0);
        rbi_store_rlx(&want_pos, 0);
        rbi_store_rlx(&written_hint, 0);
        rbi_lane_rx_init(&rx, lines, MODEL_CAPACITY, &read_pos, 0);
        memset(inside, 0, sizeof inside);
        rbi_lane_tx_init(&tx, lines, MODEL_CAPACITY, &read_pos, 0, inside);
        to_receiver.init(false, 0, 100, $);
        to_sender.init(false, 0, 100, $);
    }

    void after()
    {
        to_receiver.deinit($);
        to_sender.deinit($);
    }

    void reserve_or_sleep()
    {
        uint64_t i_want = 0;
        unsigned char *body = NULL;
        int r = rbi_lane_reserve(&tx, size, 0, &body);
        while (r == RBI_LANE_FULL) {
            const uint64_t reached = tx.pos + lines_each * 64 + 64 - MODEL_CAPACITY;
            rbi_bell_want_space(&want_pos, reached, i_want++);
            r = rbi_lane_reserve(&tx, size, 0, &body);
            if (r == RBI_LANE_FULL) {
                to_sender.wait(false, false, $);
                r = rbi_lane_reserve(&tx, size, 0, &body);
            }
            rbi_bell_want_none(&want_pos);
        }
        RL_ASSERT(r == RBI_LANE_OK);
    }

    void produce()
    {
        uint64_t rung = 0;
        for (unsigned i = 0; i < records; i++) {
            reserve_or_sleep();
            if (bursts && i + 1 < records) {
                rbi_lane_commit(&tx, size, 1 + i);
                continue;
            }
            if (bursts) {
                rbi_lane_commit(&tx, size, 1 + i);
                rbi_bell_burst_end(&written_hint, tx.pos);
            } else {
                rbi_lane_commit_seq(&tx, size, 1 + i);
            }
            if (!dozes || rbi_bell_wanted(&sleep_epoch, &rung)) {
                unsigned count = 0;
                to_receiver.post(1, count, $);
            }
        }
    }

    void take(const struct rbi_lane_record *record, uint64_t *rung)
    {
        rbi_lane_advance(&rx, record);
        rbi_lane_release_seq(&rx);
        if (rbi_bell_space_wanted(&want_pos, rx.pos, rung)) {
            unsigned count = 0;
            to_sender.post(1, count, $);
        }
    }

    void consume()
    {
        uint64_t rung = 0;
        struct rbi_lane_record record;
        for (unsigned i = 0; i < records;) {
            if (!dozes) {
                to_receiver.wait(false, false, $);
            }
            int r = rbi_lane_peek(&rx, &record);
            RL_ASSERT(dozes || r == RBI_LANE_OK);
            if (r == RBI_LANE_EMPTY) {
                rbi_bell_announce(&sleep_epoch);
                if (bursts) {
                    rbi_bell_burst_seen(&written_hint);
                }
                r = rbi_lane_peek(&rx, &record);
                if (r == RBI_LANE_EMPTY) {
                    to_receiver.wait(false, false, $);
                }
                rbi_bell_retract(&sleep_epoch);
            }
            if (r == RBI_LANE_OK) {
                RL_ASSERT(record.meta == 1 + i);
                take(&record, &rung);
                i++;
            }
        }
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
    bool ok = model_run<bell_model<1, 2, true, false>>("bell, full search", full, UINT64_MAX);
    ok = ok && model_run<bell_model<1, 2, true, true>>("burst, full search", full, UINT64_MAX);
    ok = ok && model_run<bell_model<1, 3, true, true>>("burst, random", random, 100000);
    ok = ok && model_run<bell_model<3, 2, false, false>>("space, full search", full, UINT64_MAX);
    ok = ok && model_run<bell_model<3, 6, true, false>>("bell and space, random", random, 100000);
    ok = ok && model_run<bell_model<1, 8, true, false>>("bell, random", random, 100000);
    return ok ? 0 : 1;
}
