/* SPDX-License-Identifier: Apache-2.0 */
/*
 * micro_lane [--seconds N] [--capacity BYTES] [--json]
 *
 * The lane alone, between two pinned threads: round trip and one-way rate of 48-byte
 * payloads (one line each), beside the machine's limit, a ping-pong over two cache
 * lines. Short blocks of all three alternate, because the distance between two
 * virtual cores changes while one looks; what counts is the ratio within a block.
 */
#include "shm/lane.h"
#include "shm/segment.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAYLOAD     48U
#define BODY        56U /* with the eight bytes of a message header */
#define PINGS       1000U
#define FLOW        20000U
#define BLOCKS_MAX  16384U
#define EMPTY_PAUSE 64U /* looks that a consumer skips when it finds nothing */

/** One direction: its lane, and the other end's read position. */
struct way {
    struct rbi_segment segment;
    RBI_ALIGNED(128) rbi_au64 read_pos;
    RBI_ALIGNED(128) struct rbi_lane_tx tx;
    RBI_ALIGNED(128) struct rbi_lane_rx rx;
};

struct block {
    double ping_ns;
    double round_ns;
    double flow_mps;
};

static RBI_ALIGNED(128) rbi_au64 ping;
static RBI_ALIGNED(128) rbi_au64 pong;
static RBI_ALIGNED(128) rbi_au64 phase; /* number of the block part that the echo thread runs */
static struct way there;
static struct way back;
static unsigned char sink[PAYLOAD];

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static double now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void pin(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        (void)fprintf(stderr, "micro_lane: not pinned to CPU %u\n", cpu);
    }
}

static void put(struct rbi_lane_tx *tx, const unsigned char *payload)
{
    unsigned char *body = NULL;
    int r = rbi_lane_reserve(tx, BODY, RBI_LANE_CONTROL_ROOM, &body);
    while (RBI_UNLIKELY(r != RBI_LANE_OK)) {
        RBI_ASSERT(r == RBI_LANE_FULL);
        pause_cpu();
        r = rbi_lane_reserve(tx, BODY, RBI_LANE_CONTROL_ROOM, &body);
    }
    memset(body, 0, BODY - PAYLOAD);
    memcpy(body + BODY - PAYLOAD, payload, PAYLOAD);
    rbi_lane_commit(tx, BODY, 1);
}

/** Takes up to @p max records that lie there, publishes once; returns how many. */
static unsigned take(struct rbi_lane_rx *rx, unsigned max)
{
    struct rbi_lane_record record;
    unsigned count = 0;
    while (count < max && rbi_lane_peek(rx, &record) == RBI_LANE_OK) {
        memcpy(sink, record.body + BODY - PAYLOAD, PAYLOAD);
        __asm__ volatile("" : : "r"(sink) : "memory"); /* the copy happens */
        rbi_lane_advance(rx, &record);
        count++;
    }
    if (count > 0) {
        rbi_lane_release(rx);
    }
    return count;
}

static void echo_pings(uint64_t from)
{
    for (uint64_t i = 1; i <= PINGS; i++) {
        while (rbi_load_acq(&ping) != from + i) { /* bench alone: limit of the machine */
            pause_cpu();
        }
        rbi_store_rel(&pong, from + i);
    }
}

static double run_pings(uint64_t from)
{
    const double start = now_ns();
    for (uint64_t i = 1; i <= PINGS; i++) {
        rbi_store_rel(&ping, from + i);
        while (rbi_load_acq(&pong) != from + i) {
            pause_cpu();
        }
    }
    return (now_ns() - start) / PINGS;
}

static void echo_rounds(void)
{
    for (unsigned i = 0; i < PINGS; i++) {
        while (take(&there.rx, 1) == 0) {
            pause_cpu();
        }
        put(&back.tx, sink);
    }
}

static double run_rounds(void)
{
    static const unsigned char payload[PAYLOAD] = {1};
    const double start = now_ns();
    for (unsigned i = 0; i < PINGS; i++) {
        put(&there.tx, payload);
        while (take(&back.rx, 1) == 0) {
            pause_cpu();
        }
    }
    return (now_ns() - start) / PINGS;
}

static void receive_flow(void)
{
    for (unsigned i = 0; i < FLOW;) {
        const unsigned got = take(&there.rx, 256);
        i += got;
        for (unsigned k = 0; got == 0 && k < EMPTY_PAUSE; k++) {
            pause_cpu();
        }
    }
}

static double run_flow(void)
{
    static const unsigned char payload[PAYLOAD] = {1};
    const double start = now_ns();
    for (unsigned i = 0; i < FLOW; i++) {
        put(&there.tx, payload);
    }
    while (rbi_lane_used(&there.tx) != 0) {
        pause_cpu();
    }
    return FLOW / (now_ns() - start) * 1e3;
}

static void *echo_thread(void *arg)
{
    (void)arg;
    pin(1);
    for (uint64_t seen = 0;;) {
        const uint64_t now = rbi_load_acq(&phase);
        if (now == seen) {
            pause_cpu();
            continue;
        }
        seen = now;
        if (now == UINT64_MAX) {
            return NULL;
        }
        switch (now % 3) {
        case 1:
            echo_pings(now / 3 * PINGS);
            break;
        case 2:
            echo_rounds();
            break;
        default:
            receive_flow();
            break;
        }
    }
}

static void run_block(uint64_t number, struct block *out)
{
    rbi_store_rel(&phase, 3 * number + 1);
    out->ping_ns = run_pings(number * PINGS);
    rbi_store_rel(&phase, 3 * number + 2);
    out->round_ns = run_rounds();
    rbi_store_rel(&phase, 3 * number + 3);
    out->flow_mps = run_flow();
}

static void open_way(struct way *way, uint64_t capacity)
{
    const struct rbi_segment null = RBI_SEGMENT_NULL;
    way->segment = null;
    if (rbi_segment_create(&way->segment, "micro-lane", RBI_SEGMENT_SIDE, RBI_PAGE + capacity,
                           RBI_PAGE) != 0 ||
        rbi_segment_mirror(&way->segment) != 0) {
        (void)fprintf(stderr, "micro_lane: no segment\n");
        exit(1);
    }
    rbi_segment_prefault(&way->segment, UINT64_MAX, true);
    unsigned char *lane = (unsigned char *)way->segment.base + RBI_PAGE;
    rbi_lane_rx_init(&way->rx, lane, capacity, &way->read_pos, 0);
    uint64_t *inside = (uint64_t *)calloc(RBI_LANE_INSIDE_WORDS(capacity), sizeof(uint64_t));
    if (inside == NULL) {
        exit(1);
    }
    rbi_lane_tx_init(&way->tx, lane, capacity, &way->read_pos, 0, inside);
}

static int by_ping(const void *a, const void *b)
{
    const double x = ((const struct block *)a)->ping_ns;
    const double y = ((const struct block *)b)->ping_ns;
    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, by_value);
    return values[(size_t)((double)(count - 1) * q)];
}

/** One line over blocks that saw the same distance between the cores. */
static void report(const char *regime, const struct block *blocks, size_t count, bool json)
{
    static double ping_ns[BLOCKS_MAX];
    static double ratio[BLOCKS_MAX];
    static double mps[BLOCKS_MAX];
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ping_ns[i] = blocks[i].ping_ns;
        ratio[i] = blocks[i].round_ns / blocks[i].ping_ns;
        mps[i] = blocks[i].flow_mps;
    }
    const double limit = quantile(ping_ns, count, 0.5);
    const double mid = quantile(ratio, count, 0.5);
    const double low = quantile(ratio, count, 0.1);
    const double high = quantile(ratio, count, 0.9);
    const double rate = quantile(mps, count, 0.5);
    if (json) {
        (void)printf("{\"bench\":\"micro_lane\",\"regime\":\"%s\",\"blocks\":%zu,\"limit_ns\":%.1f,"
                     "\"round_ratio\":%.3f,\"one_way_mps\":%.2f}\n",
                     regime, count, limit, mid, rate);
        return;
    }
    (void)printf("%-4s %4zu blocks: limit %6.1f ns, round trip %.2f x limit (%.2f-%.2f), "
                 "one way %5.1f M/s (p90 %.1f)\n",
                 regime, count, limit, mid, low, high, rate, quantile(mps, count, 0.9));
}

int main(int argc, char **argv)
{
    static struct block blocks[BLOCKS_MAX];
    double seconds = 3;
    uint64_t capacity = UINT64_C(64) << 10;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
            seconds = strtod(argv[++i], NULL);
        } else if (i + 1 < argc && strcmp(argv[i], "--capacity") == 0) {
            capacity = strtoull(argv[++i], NULL, 0);
        } else {
            (void)fprintf(stderr, "usage: micro_lane [--seconds N] [--capacity BYTES] [--json]\n");
            return 2;
        }
    }
    if (!rbi_is_pow2(capacity) || capacity < RBI_LANE_CAPACITY_MIN ||
        capacity > RBI_LANE_CAPACITY_MAX) {
        (void)fprintf(stderr, "micro_lane: the capacity is a power of two from 4 KiB to 64 MiB\n");
        return 2;
    }
    open_way(&there, capacity);
    open_way(&back, capacity);
    pthread_t thread;
    if (pthread_create(&thread, NULL, echo_thread, NULL) != 0) {
        return 1;
    }
    pin(0);
    const double end = now_ns() + seconds * 1e9;
    size_t count = 0;
    while (count < BLOCKS_MAX && now_ns() < end) {
        run_block(count, &blocks[count]);
        count++;
    }
    rbi_store_rel(&phase, UINT64_MAX);
    (void)pthread_join(thread, NULL);
    qsort(blocks, count, sizeof blocks[0], by_ping);
    size_t near = 0;
    while (near < count && blocks[near].ping_ns < 250) {
        near++;
    }
    size_t far = near;
    while (far < count && blocks[far].ping_ns < 1000) {
        far++;
    }
    report("near", blocks, near, json);
    report("far", blocks + near, far - near, json);
    if (!json && far < count) {
        (void)printf("%zu blocks left out: something else had one of the cores\n", count - far);
    }
    rbi_segment_deinit(&there.segment);
    rbi_segment_deinit(&back.segment);
    return 0;
}
