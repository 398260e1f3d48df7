/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/fan.c - one to many and many to one: broadcast, N senders to one receiver,
 * one sender to N receivers, and what choosing one of N costs.
 */
#include "bench/crowd.h"

#include <stdlib.h>

#define BLOCKS_MAX  200U
#define BURST       16U
#define LANE_BYTES  32768U /* takes a burst that nobody reads yet */
#define PATIENCE_NS UINT64_C(3000000000)

struct fan {
    struct bench_crowd crowd;
    struct ringbus *bus;
    struct ringbus_addr all; /* the cluster */
    uint64_t received;       /* by the members, as asked for so far */
    uint64_t expected[513];  /* next number from each member */
    uint64_t errors;
    uint64_t taken;
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct fan *fan = user;
    (void)bus;
    const int32_t i = message->from.instance;
    if (i < 1 || i > 512 || !bench_crowd_check(message->data, message->size, fan->expected[i])) {
        fan->errors++;
        return;
    }
    fan->expected[i]++;
    fan->taken++;
}

static int fan_open(struct bench_run *run, struct fan *fan, const char *cluster, unsigned members)
{
    struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_BUSY);
    memset(fan, 0, sizeof *fan);
    fan->crowd.cluster = cluster;
    fan->crowd.count = members;
    fan->crowd.mode = RINGBUS_MODE_BUSY;
    fan->crowd.lane_bytes = LANE_BYTES;
    fan->crowd.small_pool = true;
    options.lane_bytes = LANE_BYTES;
    options.pool[0].chunk_bytes = 1024;
    options.pool[0].count = 256;
    options.on_message = on_message;
    options.user = fan;
    if (bench_crowd_start(run, &fan->crowd) != 0) {
        return -1;
    }
    bench_crowd_order(&fan->crowd, BENCH_CROWD_POLL);
    bench_pin(0);
    fan->bus = bench_endpoint_open(&options, NULL);
    return fan->bus == NULL ? -1 : bench_endpoint_link(fan->bus, cluster, members, &fan->all);
}

static int fan_close(struct fan *fan)
{
    (void)ringbus_close(fan->bus, 0);
    return bench_crowd_stop(&fan->crowd) != 0 || fan->errors != 0 ? -1 : 0;
}

/* Waits until the members have received @p more messages than before. */
static int await_members(struct fan *fan, uint64_t more)
{
    const uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
    fan->received += more;
    while (atomic_load(&fan->crowd.page->received) < fan->received) {
        bench_pause();
        if (bench_now_ns() > end_ns) {
            (void)fprintf(stderr, "bench: %s: messages were lost\n", fan->crowd.cluster);
            return -1;
        }
    }
    return 0;
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static int publish(struct fan *fan, uint64_t number, bool reference)
{
    unsigned char payload[1024] = {0};
    if (!reference) {
        bench_crowd_stamp(payload, sizeof payload, number);
        return ringbus_send(fan->bus, &fan->all, 0, payload, sizeof payload, 0);
    }
    struct ringbus_loan loan;
    int r = ringbus_loan(fan->bus, sizeof payload, &loan);
    if (r != 0) {
        return r;
    }
    bench_crowd_stamp(loan.data, sizeof payload, number);
    r = ringbus_send_loan(fan->bus, &fan->all, 0, &loan, sizeof payload, 0);
    (void)ringbus_loan_return(fan->bus, &loan);
    return r;
}

static int broadcast_to(struct bench_run *run, unsigned readers, bool reference, double seconds)
{
    static struct fan fan;
    double ns[BLOCKS_MAX];
    char param[24];
    unsigned n = 0;
    uint64_t number = 0;
    const char *regime = bench_regime();
    int r = fan_open(run, &fan, "Readers", readers);
    fan.all.instance = RINGBUS_ALL;
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    for (unsigned b = 0; r == 0 && n < BLOCKS_MAX && (b < 10 || bench_now_ns() < end_ns); b++) {
        const uint64_t start = bench_now_ns();
        for (unsigned i = 0; r == 0 && i < BURST; i++) {
            if (publish(&fan, number++, reference) != (int)readers) {
                (void)fprintf(stderr, "bench: a broadcast did not reach all: %s\n",
                              ringbus_errmsg(fan.bus));
                r = -1;
            }
        }
        ns[n] = (double)(bench_now_ns() - start) / BURST;
        n += b >= 3 ? 1U : 0U; /* warm by then */
        r = r == 0 ? await_members(&fan, (uint64_t)BURST * readers) : r;
        (void)ringbus_poll(fan.bus, 64);
    }
    r = fan_close(&fan) != 0 ? -1 : r;
    run->regime = bench_regime_still(regime);
    if (r == 0) {
        (void)snprintf(param, sizeof param, "%u reader%s", readers, readers == 1 ? "" : "s");
        bench_run_value(run, "broadcast", reference ? "ringbus-ref" : "ringbus", param, readers,
                        "busy", "ns", ns, n);
    }
    return r;
}

static int broadcast(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned all[] = {1, 2, 4, 8, 16, 32, 64};
    const bool brief = run->options.quick || run->options.smoke;
    int r = 0;
    for (unsigned i = brief ? 6 : 0; i < 7; i++) {
        const double seconds = bench_run_seconds(run, workload) / (brief ? 2 : 14);
        r = broadcast_to(run, all[i], true, seconds) != 0 ? -1 : r;
        r = broadcast_to(run, all[i], false, seconds) != 0 ? -1 : r;
    }
    return r;
}

/* ---- N to one, one to N ---------------------------------------------------------------------- */

static int gather(struct fan *fan, unsigned members, uint64_t share, double *rate)
{
    const uint64_t target = fan->taken + share * members;
    const uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
    fan->crowd.page->share = share;
    fan->crowd.page->share_size = 48;
    uint64_t start = 0; /* when the first arrives: the members have to wake up */
    bench_crowd_order(&fan->crowd, BENCH_CROWD_SEND);
    while (fan->taken < target && fan->errors == 0) {
        const int got = ringbus_poll(fan->bus, 1024);
        if (start == 0 && got > 0) {
            start = bench_now_ns();
        }
        if (got == 0) {
            for (unsigned i = 0; i < 32; i++) {
                bench_pause();
            }
        }
        if (bench_now_ns() > end_ns) {
            (void)fprintf(stderr, "bench: messages were lost on the way to one\n");
            return -1;
        }
    }
    *rate = (double)(share * members) * 1e3 / (double)(bench_now_ns() - start);
    bench_crowd_order(&fan->crowd, BENCH_CROWD_REST);
    return fan->errors == 0 ? 0 : -1;
}

static int
scatter(struct fan *fan, unsigned members, uint64_t share, uint64_t *number, double *rate)
{
    unsigned char payload[48] = {0};
    struct ringbus_addr to = fan->all;
    const uint64_t start = bench_now_ns();
    for (uint64_t k = 0; k < share; k++, (*number)++) {
        bench_crowd_stamp(payload, sizeof payload, *number);
        for (unsigned i = 1; i <= members; i++) {
            to.instance = (int32_t)i;
            int r;
            while ((r = ringbus_send(fan->bus, &to, 0, payload, sizeof payload, 0)) ==
                   RINGBUS_E_FULL) {
                bench_pause();
            }
            if (r != 1) {
                return -1;
            }
        }
    }
    const int r = await_members(fan, share * members);
    *rate = (double)(share * members) * 1e3 / (double)(bench_now_ns() - start);
    return r;
}

static int fan_rates(struct bench_run *run, unsigned members, double seconds)
{
    static struct fan fan;
    double in[BLOCKS_MAX];
    double out[BLOCKS_MAX];
    char param[24];
    uint64_t number = 0;
    unsigned n = 0;
    const uint64_t share = 65536 / members;
    const char *regime = bench_regime();
    int r = fan_open(run, &fan, "Fan", members);
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    for (unsigned b = 0; r == 0 && n < BLOCKS_MAX && (b < 5 || bench_now_ns() < end_ns); b++) {
        bench_crowd_order(&fan.crowd, BENCH_CROWD_POLL);
        r = scatter(&fan, members, share, &number, &out[n]);
        bench_crowd_order(&fan.crowd, BENCH_CROWD_REST);
        r = r == 0 ? gather(&fan, members, share, &in[n]) : r;
        n += b >= 2 ? 1U : 0U;
    }
    r = fan_close(&fan) != 0 ? -1 : r;
    run->regime = bench_regime_still(regime);
    if (r == 0) {
        (void)snprintf(param, sizeof param, "%u link%s", members, members == 1 ? "" : "s");
        bench_run_value(run, "fan", "to one", param, members, "busy", "M/s", in, n);
        bench_run_value(run, "fan", "from one", param, members, "busy", "M/s", out, n);
    }
    return r;
}

static int fan(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned all[] = {1, 4, 16, 64};
    int r = 0;
    for (unsigned i = 0; i < 4; i++) {
        r = fan_rates(run, all[i], bench_run_seconds(run, workload) / 4) != 0 ? -1 : r;
    }
    return r;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

enum pick { DIRECT_RANDOM, BY_HASH, DIRECT_TURN, IN_TURN };

/* Few enough for every lane to take its share while nobody reads. */
static unsigned picks(unsigned members)
{
    return members * 64 < 2048 ? members * 64 : 2048;
}

/* A pick is what an addressed send takes more than one whose instance was given. */
static double
time_sends(struct fan *fan, unsigned members, uint64_t seed, enum pick pick, int *failed)
{
    const unsigned char payload[8] = {0};
    struct ringbus_addr to = fan->all;
    uint64_t x = seed;
    const unsigned count = picks(members);
    const uint64_t start = bench_now_ns();
    for (unsigned i = 0; i < count; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        to.instance = pick == DIRECT_RANDOM ? (int32_t)(((x >> 32) * members) >> 32) + 1
                      : pick == DIRECT_TURN ? (int32_t)(i % members) + 1
                                            : RINGBUS_ANY;
        const int r = ringbus_send(fan->bus, &to, x, payload, sizeof payload,
                                   pick == BY_HASH ? RINGBUS_KEY : 0);
        *failed |= r != 1;
    }
    return (double)(bench_now_ns() - start) / count;
}

static void count_only(struct fan *fan)
{
    /* Numbers are not in order here: the members count, and that is all that is asked. */
    atomic_store(&fan->crowd.page->errors, 0);
}

static int dispatch_over(struct bench_run *run, unsigned members, double seconds)
{
    static struct fan fan;
    static const char *const sends[] = {"named, any order", "by hash", "named, in order",
                                        "in turn"};
    static double all[4][BLOCKS_MAX];
    double by_hash[BLOCKS_MAX];
    double in_turn[BLOCKS_MAX];
    char param[24];
    unsigned n = 0;
    int failed = 0;
    uint64_t seed = UINT64_C(0x2545f4914f6cdd1d);
    int r = fan_open(run, &fan, "Picked", members);
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    for (unsigned b = 0; r == 0 && n < BLOCKS_MAX && (b < 8 || bench_now_ns() < end_ns); b++) {
        double ns[4];
        seed = seed * UINT64_C(6364136223846793005) + 1;
        for (unsigned pick = 0; r == 0 && pick < 4; pick++) {
            /* While the members rest, so that nobody takes the lines away. */
            bench_crowd_order(&fan.crowd, BENCH_CROWD_REST);
            ns[pick] = time_sends(&fan, members, seed | 1, (enum pick)pick, &failed);
            bench_crowd_order(&fan.crowd, BENCH_CROWD_POLL);
            r = await_members(&fan, picks(members));
            all[pick][n] = ns[pick];
        }
        by_hash[n] = ns[BY_HASH] - ns[DIRECT_RANDOM];
        in_turn[n] = ns[IN_TURN] - ns[DIRECT_TURN];
        n += b >= 3 ? 1U : 0U;
    }
    count_only(&fan);
    r = fan_close(&fan) != 0 || failed != 0 ? -1 : r;
    if (r == 0) {
        (void)snprintf(param, sizeof param, "%u instances", members);
        bench_run_value(run, "dispatch", "hash", param, 0, "busy", "ns", by_hash, n);
        bench_run_value(run, "dispatch", "in turn", param, 0, "busy", "ns", in_turn, n);
        for (unsigned pick = 0; pick < 4; pick++) {
            (void)snprintf(param, sizeof param, "a send to one of %u", members);
            bench_run_value(run, "dispatch", sends[pick], param, 0, "busy", "ns", all[pick], n);
        }
    }
    return r;
}

static int dispatch(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned all[] = {8, 64, 512};
    int r = 0;
    for (unsigned i = 0; i < 3; i++) {
        r = dispatch_over(run, all[i], bench_run_seconds(run, workload) / 3) != 0 ? -1 : r;
    }
    return r;
}

const struct bench_workload bench_broadcast = {
    "broadcast", "one publish of 1 KiB to N readers, time of the publisher", 7, true, broadcast};
const struct bench_workload bench_fan = {
    "fan", "48 B messages from N senders to one, and from one to N", 4, false, fan};
const struct bench_workload bench_dispatch = {
    "dispatch", "what choosing one of N instances takes more than naming it", 3, true, dispatch};
