/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/fan.c - one to many and many to one: broadcast, N senders to one receiver,
 * one sender to N receivers, and what choosing one of N costs.
 */
#include "bench/crowd.h"

#include <stdlib.h>

#define BLOCKS_MAX  200U
#define BURST       16U
#define SMALL       1024U
#define LARGE       65536U
#define LARGE_BURST 4U
#define LANE_BYTES  32768U /* takes a burst that nobody reads yet */
#define LOOKS       1024U  /* at a counter, between two at the processes */
#define WARM        3U     /* blocks; in them all bytes are compared */

struct fan {
    struct bench_crowd crowd;
    struct ringbus *bus;
    struct ringbus_addr all; /* the cluster */
    uint64_t received;       /* by the members, as asked for so far */
    uint64_t expected[513];  /* next number from each member */
    uint64_t errors;
    uint64_t taken;
    uint64_t picked; /* messages to whom was chosen */
    bool whole;
    unsigned char *payload; /* as the receivers expect it, but for number and check word */
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct fan *fan = user;
    (void)bus;
    const int32_t i = message->from.instance;
    if (i < 1 || i > 512 ||
        !bench_crowd_check(message->data, message->size, fan->expected[i], fan->whole)) {
        fan->errors++;
        return;
    }
    fan->expected[i]++;
    fan->taken++;
}

struct shape {
    const char *cluster;
    unsigned members;
    size_t size; /* of a payload */
    bool rising; /* of all messages each member gets a part */
};

static int fan_open(struct bench_run *run, struct fan *fan, const struct shape *shape)
{
    struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_BUSY);
    memset(fan, 0, sizeof *fan);
    fan->crowd.cluster = shape->cluster;
    fan->crowd.count = shape->members;
    fan->crowd.mode = RINGBUS_MODE_BUSY;
    fan->crowd.lane_bytes = LANE_BYTES;
    fan->crowd.small_pool = true;
    options.lane_bytes = LANE_BYTES;
    options.pool[0].chunk_bytes = shape->size <= 1024 ? 1024 : (uint32_t)shape->size;
    options.pool[0].count = 256;
    options.on_message = on_message;
    options.user = fan;
    fan->payload = malloc(shape->size);
    if (fan->payload == NULL || bench_crowd_start(run, &fan->crowd) != 0) {
        return -1;
    }
    bench_crowd_fill(fan->payload, shape->size);
    fan->crowd.page->rising = shape->rising;
    bench_crowd_order(&fan->crowd, BENCH_CROWD_POLL);
    bench_pin(0);
    fan->bus = bench_endpoint_open(&options, NULL);
    return fan->bus == NULL
               ? -1
               : bench_endpoint_link(fan->bus, shape->cluster, shape->members, &fan->all);
}

static int fan_close(struct fan *fan)
{
    (void)ringbus_close(fan->bus, 0);
    free(fan->payload);
    return bench_crowd_stop(&fan->crowd) != 0 || fan->errors != 0 ? -1 : 0;
}

static void compare_whole(struct fan *fan, bool whole)
{
    fan->whole = whole;
    if (fan->crowd.page != NULL) {
        atomic_store(&fan->crowd.page->whole, whole);
    }
}

/* Waits until the members have received @p more messages than before: as many, not more. */
static int await_members(struct fan *fan, uint64_t more)
{
    uint64_t received;
    unsigned looks = 0;
    fan->received += more;
    bench_watch_begin(&fan->crowd.watch);
    while ((received = atomic_load(&fan->crowd.page->received)) < fan->received) {
        bench_pause();
        if (++looks % LOOKS == 0 && bench_watch_stuck(&fan->crowd.watch, received)) {
            (void)fprintf(stderr, "bench: %s: messages were lost\n", fan->crowd.cluster);
            return -1;
        }
    }
    if (received > fan->received) {
        (void)fprintf(stderr, "bench: %s: messages came twice\n", fan->crowd.cluster);
        return -1;
    }
    return 0;
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static int publish(struct fan *fan, size_t size, uint64_t number, bool reference)
{
    if (!reference) {
        bench_crowd_stamp(fan->payload, size, number);
        return ringbus_send(fan->bus, &fan->all, 0, fan->payload, size, 0);
    }
    struct ringbus_loan loan;
    int r = ringbus_loan(fan->bus, size, &loan);
    if (r != 0) {
        return r;
    }
    if (fan->whole) {
        memcpy(loan.data, fan->payload, size);
    }
    bench_crowd_stamp(loan.data, size, number);
    r = ringbus_send_loan(fan->bus, &fan->all, 0, &loan, size, 0);
    (void)ringbus_loan_return(fan->bus, &loan);
    return r;
}

struct broadcast {
    unsigned readers;
    size_t size;
    unsigned burst; /* publishes that nobody needs to read meanwhile */
    bool reference;
    double seconds;
};

static void say_broadcast(struct bench_run *run, const struct broadcast *b, double *ns, unsigned n)
{
    char param[24];
    const bool small = b->size == SMALL;
    (void)snprintf(param, sizeof param, "%u reader%s%s", b->readers, b->readers == 1 ? "" : "s",
                   small ? "" : ", 64 KiB");
    bench_run_value(run, small ? "broadcast" : "broadcast-large",
                    b->reference ? "ringbus-ref" : "ringbus", param, b->readers, "busy", "ns", ns,
                    n);
}

static int broadcast_to(struct bench_run *run, const struct broadcast *b)
{
    static struct fan fan;
    double ns[BLOCKS_MAX];
    unsigned n = 0;
    uint64_t number = 0;
    const struct shape shape = {.cluster = "Readers", .members = b->readers, .size = b->size};
    const char *regime = bench_regime();
    int r = fan_open(run, &fan, &shape);
    fan.all.instance = RINGBUS_ALL;
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(b->seconds * 1e9);
    for (unsigned k = 0; r == 0 && n < BLOCKS_MAX && (k < 10 || bench_now_ns() < end_ns); k++) {
        compare_whole(&fan, k < WARM);
        const uint64_t start = bench_now_ns();
        for (unsigned i = 0; r == 0 && i < b->burst; i++) {
            if (publish(&fan, b->size, number++, b->reference) != (int)b->readers) {
                (void)fprintf(stderr, "bench: a broadcast did not reach all: %s\n",
                              ringbus_errmsg(fan.bus));
                r = -1;
            }
        }
        ns[n] = (double)(bench_now_ns() - start) / b->burst;
        n += k >= WARM ? 1U : 0U;
        r = r == 0 ? await_members(&fan, (uint64_t)b->burst * b->readers) : r;
        (void)ringbus_poll(fan.bus, 64);
    }
    r = fan_close(&fan) != 0 ? -1 : r;
    run->regime = bench_regime_still(regime);
    if (r == 0) {
        say_broadcast(run, b, ns, n);
    }
    return r;
}

static int broadcast(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned all[] = {1, 2, 4, 8, 16, 32, 64};
    const bool brief = run->options.quick || run->options.smoke;
    int r = 0;
    for (unsigned i = brief ? 12 : 0; i < 14; i++) {
        const struct broadcast b = {.readers = all[i / 2],
                                    .size = SMALL,
                                    .burst = BURST,
                                    .reference = i % 2 == 0,
                                    .seconds = bench_run_seconds(run, workload) / (brief ? 2 : 14)};
        r = broadcast_to(run, &b) != 0 ? -1 : r;
    }
    return r;
}

static int broadcast_large(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned all[] = {1, 8, 64};
    int r = 0;
    for (unsigned i = 0; i < 6; i++) {
        const struct broadcast b = {.readers = all[i / 2],
                                    .size = LARGE,
                                    .burst = LARGE_BURST,
                                    .reference = i % 2 == 0,
                                    .seconds = bench_run_seconds(run, workload) / 6};
        r = broadcast_to(run, &b) != 0 ? -1 : r;
    }
    return r;
}

/* ---- N to one, one to N ---------------------------------------------------------------------- */

static int gather(struct fan *fan, unsigned members, uint64_t share, double *rate)
{
    const uint64_t target = fan->taken + share * members;
    unsigned looks = 0;
    fan->crowd.page->share = share;
    fan->crowd.page->share_size = 48;
    uint64_t start = 0; /* when the first arrives: the members have to wake up */
    bench_crowd_order(&fan->crowd, BENCH_CROWD_SEND);
    bench_watch_begin(&fan->crowd.watch);
    while (fan->taken < target && fan->errors == 0) {
        const int got = ringbus_poll(fan->bus, 1024);
        if (start == 0 && got > 0) {
            start = bench_now_ns();
        }
        for (unsigned i = 0; got == 0 && i < 32; i++) {
            bench_pause();
        }
        if (++looks % LOOKS == 0 && bench_watch_stuck(&fan->crowd.watch, fan->taken)) {
            (void)fprintf(stderr, "bench: messages were lost on the way to one\n");
            return -1;
        }
    }
    *rate = (double)(share * members) * 1e3 / (double)(bench_now_ns() - start);
    bench_crowd_order(&fan->crowd, BENCH_CROWD_REST);
    return fan->errors == 0 && fan->taken == target ? 0 : -1;
}

static int
scatter(struct fan *fan, unsigned members, uint64_t share, uint64_t *number, double *rate)
{
    unsigned char *payload = fan->payload;
    const size_t size = 48;
    struct ringbus_addr to = fan->all;
    unsigned refused = 0;
    bench_watch_begin(&fan->crowd.watch);
    const uint64_t start = bench_now_ns();
    for (uint64_t k = 0; k < share; k++, (*number)++) {
        bench_crowd_stamp(payload, size, *number);
        for (unsigned i = 1; i <= members; i++) {
            to.instance = (int32_t)i;
            int r;
            while ((r = ringbus_send(fan->bus, &to, 0, payload, size, 0)) == RINGBUS_E_FULL) {
                bench_pause();
                if (++refused % LOOKS == 0 && bench_watch_stuck(&fan->crowd.watch, *number)) {
                    return -1;
                }
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
    const struct shape shape = {.cluster = "Fan", .members = members, .size = 48};
    const char *regime = bench_regime();
    int r = fan_open(run, &fan, &shape);
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    for (unsigned b = 0; r == 0 && n < BLOCKS_MAX && (b < 6 || bench_now_ns() < end_ns); b++) {
        compare_whole(&fan, b < WARM);
        bench_crowd_order(&fan.crowd, BENCH_CROWD_POLL);
        r = scatter(&fan, members, share, &number, &out[n]);
        bench_crowd_order(&fan.crowd, BENCH_CROWD_REST);
        r = r == 0 ? gather(&fan, members, share, &in[n]) : r;
        n += b >= WARM ? 1U : 0U;
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

enum pick { DIRECT_RANDOM, BY_HASH, DIRECT_TURN, NO_KEY };

/* Few enough for every lane to take its share while nobody reads. */
static unsigned picks(unsigned members)
{
    return members * 64 < 2048 ? members * 64 : 2048;
}

/*
 * A pick is what an addressed send takes more than one whose instance was given. Without a key two
 * are drawn: those named for comparison come in any order as well.
 */
static double
time_sends(struct fan *fan, unsigned members, uint64_t seed, enum pick pick, int *failed)
{
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
        const uint64_t number = fan->picked++;
        const int r = ringbus_send(fan->bus, &to, x, &number, sizeof number,
                                   pick == BY_HASH ? RINGBUS_KEY : 0);
        *failed |= r != 1;
    }
    return (double)(bench_now_ns() - start) / count;
}

static int dispatch_over(struct bench_run *run, unsigned members, double seconds)
{
    static struct fan fan;
    static const char *const sends[] = {"named, any order", "by hash", "named, in order", "no key"};
    static double all[4][BLOCKS_MAX];
    double by_hash[BLOCKS_MAX];
    double no_key[BLOCKS_MAX];
    char param[24];
    unsigned n = 0;
    int failed = 0;
    uint64_t seed = UINT64_C(0x2545f4914f6cdd1d);
    const struct shape shape = {
        .cluster = "Picked", .members = members, .size = sizeof(uint64_t), .rising = true};
    int r = fan_open(run, &fan, &shape);
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
        no_key[n] = ns[NO_KEY] - ns[DIRECT_RANDOM];
        n += b >= WARM ? 1U : 0U;
    }
    r = fan_close(&fan) != 0 || failed != 0 ? -1 : r;
    if (r == 0) {
        (void)snprintf(param, sizeof param, "%u instances", members);
        bench_run_value(run, "dispatch", "hash", param, 0, "busy", "ns", by_hash, n);
        bench_run_value(run, "dispatch", "no key", param, 0, "busy", "ns", no_key, n);
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
const struct bench_workload bench_broadcast_large = {
    "broadcast-large", "one publish of 64 KiB to N readers, time of the publisher", 3, false,
    broadcast_large};
const struct bench_workload bench_fan = {
    "fan", "48 B messages from N senders to one, and from one to N", 4, false, fan};
const struct bench_workload bench_dispatch = {
    "dispatch", "what choosing one of N instances takes more than naming it", 3, true, dispatch};
