/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost wake-ups: a receiver that sleeps in poll() whenever all its lanes are empty,
 * senders with gaps tuned around the moment of falling asleep, lanes so small that
 * the senders sleep for space as well. Whoever sleeps through a whole second while
 * there is something to do, and finds no ring after a second look, has lost one.
 */
#include "shm/bell.h"
#include "stress.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY    RBI_LANE_CAPACITY_MIN
#define SENDERS_MAX 16U
#define WATCH_MS    1000
#define META_DATA   1U
#define META_END    2U

/** One link's half that is used here. */
struct link {
    struct stress_lane lane;
    int sender_end;
    int receiver_end;
    RBI_ALIGNED(128) rbi_au64 want_pos;
    RBI_ALIGNED(128) rbi_au64 written_hint;
    RBI_ALIGNED(128) uint64_t space_rung; /* receiver's */
    uint64_t received;
    uint64_t seed;
    uint64_t end_ns;
    bool ended;
};

static struct link links[SENDERS_MAX];
static RBI_ALIGNED(128) rbi_au64 sleep_epoch;

static void spin_ns(uint64_t ns)
{
    for (const uint64_t end = stress_now_ns() + ns; stress_now_ns() < end;) {
    }
}

/** Sleeps on @p count bells. @return false when a second has passed without a ring. */
static bool sleep_on(struct pollfd *fds, unsigned count)
{
    return poll(fds, count, WATCH_MS) > 0;
}

static unsigned char *reserve(struct link *link, uint64_t size)
{
    struct pollfd bell = {.fd = link->sender_end, .events = POLLIN};
    unsigned char *body = NULL;
    int r = rbi_lane_reserve(&link->lane.tx, size, 0, &body);
    while (r == RBI_LANE_FULL) {
        const uint64_t need = rbi_lane_record_bytes(size) + RBI_LINE;
        rbi_bell_want_space(&link->want_pos, link->lane.tx.pos + need - CAPACITY,
                            link->lane.tx.pos / 64);
        r = rbi_lane_reserve(&link->lane.tx, size, 0, &body);
        if (r == RBI_LANE_FULL && !sleep_on(&bell, 1)) {
            r = rbi_lane_reserve(&link->lane.tx, size, 0, &body);
            STRESS_CHECK(r == RBI_LANE_FULL || sleep_on(&bell, 1));
        }
        rbi_bell_want_none(&link->want_pos);
        STRESS_CHECK(rbi_bell_drain(link->sender_end) == 0);
        r = r == RBI_LANE_FULL ? rbi_lane_reserve(&link->lane.tx, size, 0, &body) : r;
    }
    STRESS_CHECK(r == RBI_LANE_OK);
    return body;
}

/** The next record must not be what wakes a receiver that has missed this one. */
static void wait_until_taken(const struct link *link)
{
    for (unsigned i = 1; rbi_lane_used(&link->lane.tx) != 0; i++) {
        if (i % 64 == 0) {
            (void)sched_yield();
        }
    }
}

static void *send_all(void *arg)
{
    struct link *link = (struct link *)arg;
    uint64_t rng = link->seed;
    uint64_t rung = 0;
    uint64_t sequence = 0;
    for (bool last = false; !last;) {
        last = stress_now_ns() >= link->end_ns;
        bool more = true;
        while (more) {
            const uint64_t dice = stress_random(&rng) >> 20;
            const uint64_t size = 8 + dice % 256;
            memcpy(reserve(link, size), &sequence, sizeof sequence);
            sequence++;
            /* Whoever may come to wait must have rung before: a burst ends while there is room. */
            more = !last && dice / 256 % 4 != 0 && rbi_lane_used(&link->lane.tx) <= CAPACITY / 2;
            if (more || dice / 1024 % 2 == 0) {
                rbi_lane_commit(&link->lane.tx, size, last ? META_END : META_DATA);
            } else {
                rbi_lane_commit_seq(&link->lane.tx, size, last ? META_END : META_DATA);
            }
            if (!more && dice / 1024 % 2 == 0) {
                rbi_bell_burst_end(&link->written_hint, link->lane.tx.pos);
            }
        }
        if (rbi_bell_wanted(&sleep_epoch, &rung)) {
            STRESS_CHECK(rbi_bell_ring(link->sender_end) == 0);
        }
        const uint64_t dice = stress_random(&rng) >> 20;
        if (dice % 8 != 0) {
            wait_until_taken(link);
        }
        /* Around the moment at which the receiver, having found nothing more, falls asleep. */
        spin_ns(dice / 8 % (dice % 16 < 12 ? 600 : 20000));
    }
    return NULL;
}

/** Takes what lies in one lane; true when there was anything. */
static bool take(struct link *link)
{
    struct rbi_lane_record record;
    bool any = false;
    int r = RBI_LANE_OK;
    while ((r = rbi_lane_peek(&link->lane.rx, &record)) == RBI_LANE_OK) {
        uint64_t sequence = 0;
        memcpy(&sequence, record.body, sizeof sequence);
        STRESS_CHECK(sequence == link->received);
        link->received++;
        link->ended = record.meta == META_END;
        rbi_lane_advance(&link->lane.rx, &record);
        any = true;
    }
    STRESS_CHECK(r == RBI_LANE_EMPTY);
    if (any) {
        rbi_lane_release_seq(&link->lane.rx);
        if (rbi_bell_space_wanted(&link->want_pos, link->lane.rx.pos, &link->space_rung)) {
            STRESS_CHECK(rbi_bell_ring(link->receiver_end) == 0);
        }
    }
    return any;
}

static bool take_all(unsigned count)
{
    bool any = false;
    for (unsigned i = 0; i < count; i++) {
        any = take(&links[i]) || any;
    }
    return any;
}

static bool all_ended(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!links[i].ended) {
            return false;
        }
    }
    return true;
}

static void sleep_once(struct pollfd *bells, unsigned count)
{
    if (!sleep_on(bells, count)) {
        for (unsigned i = 0; i < count; i++) {
            struct rbi_lane_record record;
            if (rbi_lane_peek(&links[i].lane.rx, &record) == RBI_LANE_OK) {
                STRESS_CHECK(sleep_on(bells, count)); /* or a wake-up was lost */
                break;
            }
        }
    }
}

/** @return times slept; the bells are drained before or behind the look at the lanes in turn. */
static uint64_t receive_all(unsigned count, uint64_t *gap_ns_max)
{
    struct pollfd bells[SENDERS_MAX];
    for (unsigned i = 0; i < count; i++) {
        bells[i] = (struct pollfd){.fd = links[i].receiver_end, .events = POLLIN};
    }
    uint64_t sleeps = 0;
    uint64_t last_ns = stress_now_ns();
    while (!all_ended(count)) {
        if (take_all(count)) {
            const uint64_t now_ns = stress_now_ns();
            *gap_ns_max = rbi_max_u64(*gap_ns_max, now_ns - last_ns);
            last_ns = now_ns;
            continue;
        }
        rbi_bell_announce(&sleep_epoch);
        for (unsigned i = 0; i < count; i++) {
            rbi_bell_burst_seen(&links[i].written_hint);
        }
        if (!take_all(count)) {
            sleeps++;
            sleep_once(bells, count);
        }
        rbi_bell_retract(&sleep_epoch);
        if (sleeps % 2 == 0) {
            (void)take_all(count);
        }
        for (unsigned i = 0; i < count; i++) {
            STRESS_CHECK((bells[i].revents & POLLIN) == 0 ||
                         rbi_bell_drain(links[i].receiver_end) == 0);
        }
    }
    return sleeps;
}

static void use_one_core(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        (void)printf("skipped: cannot choose the core\n");
        _Exit(77);
    }
}

int main(int argc, char **argv)
{
    struct stress_options options;
    stress_parse(&options, argc, argv);
    STRESS_CHECK(options.senders >= 1 && options.senders <= SENDERS_MAX);
    if (options.one_core) {
        use_one_core();
    }
    pthread_t threads[SENDERS_MAX];
    for (unsigned i = 0; i < options.senders; i++) {
        int ends[2];
        STRESS_CHECK(rbi_bell_pair(ends) == 0);
        stress_lane_open(&links[i].lane, CAPACITY, (uint64_t)0 - CAPACITY);
        links[i].sender_end = ends[0];
        links[i].receiver_end = ends[1];
        links[i].seed = options.seed + 2U * i;
        links[i].end_ns = stress_now_ns() + (uint64_t)(options.seconds * 1e9);
    }
    for (unsigned i = 0; i < options.senders; i++) {
        STRESS_CHECK(pthread_create(&threads[i], NULL, send_all, &links[i]) == 0);
    }
    uint64_t gap_ns_max = 0;
    const uint64_t sleeps = receive_all(options.senders, &gap_ns_max);
    uint64_t received = 0;
    for (unsigned i = 0; i < options.senders; i++) {
        STRESS_CHECK(pthread_join(threads[i], NULL) == 0);
        received += links[i].received;
        stress_lane_close(&links[i].lane);
    }
    STRESS_CHECK(sleeps > 0);
    (void)printf("ok: %" PRIu64 " records, %" PRIu64 " sleeps, longest gap %.1f ms\n", received,
                 sleeps, (double)gap_ns_max / 1e6);
    return 0;
}
