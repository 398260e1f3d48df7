/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops of bench, and the checks of what arrives: each message carries its number at
 * both ends and is compared in full with what was sent, as if its receiver read it.
 */
#include "daemon/ctl/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Messages begin at different places of the pattern, so that an old one is not taken for a new. */
#define PLACES     16U
#define PLACE      64U
#define BATCH      256
#define ROWS       200U /* of one job: ten microseconds each, when a job has two milliseconds */
#define LOOKS_MASK 4095U
/* A chunk that comes back wakes nobody. */
#define ROOM_NAP_MS 1
/* A side that is kept from running for seconds loses nothing; this long means lost. */
#define LOST_NS         UINT64_C(30000000000)
#define REQUEST_WAIT_MS 60000U

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" : : : "memory");
#endif
}

int rbi_bench_pattern_init(struct rbi_bench_side *side)
{
    const struct rbi_ctl_args *args = side->plan->args;
    uint32_t most = 0;
    for (unsigned i = 0; i < args->size_count; i++) {
        most = args->sizes[i] > most ? args->sizes[i] : most;
    }
    const size_t bytes = rbi_align_up(most + PLACES * PLACE, sizeof(uint64_t));
    side->pattern = malloc(bytes);
    if (side->pattern == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(side->pattern + i, &word, sizeof word);
    }
    return 0;
}

static unsigned char *place_of(const struct rbi_bench_side *side, uint64_t number)
{
    return side->pattern + number % PLACES * PLACE;
}

/* ---- receiving --------------------------------------------------------------------------- */

static void RBI_COLD wrong(struct rbi_bench_side *side,
                           const unsigned char *data,
                           size_t size,
                           uint64_t number)
{
    const char *what = "with wrong content";
    if (size != side->size) {
        what = "of wrong size";
    } else if (memcmp(data, &side->expected, sizeof side->expected) != 0) {
        what = "lost, twice or out of order";
    }
    rbi_bench_fail(side->page, RBI_CTL_FAILED,
                   "message %" PRIu64 " of %" PRIu32 " bytes: %s (%zu bytes, number %" PRIu64 ")",
                   side->expected, side->size, what, size, number);
}

static void take(struct rbi_bench_side *side, const unsigned char *data, size_t size)
{
    uint64_t number = 0;
    uint64_t last = 0;
    if (size >= RBI_CTL_SIZE_MIN) {
        memcpy(&number, data, sizeof number);
        memcpy(&last, data + size - sizeof last, sizeof last);
    }
    if (RBI_UNLIKELY(size != side->size || number != side->expected || last != ~number ||
                     memcmp(data + 8, place_of(side, number) + 8, size - RBI_CTL_SIZE_MIN) != 0)) {
        wrong(side, data, size, number);
        return;
    }
    side->expected++;
    side->received++;
}

static bool stopped(const struct rbi_bench_side *side)
{
    return atomic_load_explicit(&side->page->lines.stop, memory_order_relaxed) != 0;
}

/* A refused send: may it be tried again? */
static bool again(struct rbi_bench_side *side, int r)
{
    if (r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK) {
        return !stopped(side);
    }
    rbi_bench_fail_bus(side->page, r, "not sent", ringbus_errmsg(side->bus));
    return false;
}

/* From inside a callback, which cannot wait. */
static void send_back(struct rbi_bench_side *side, const struct ringbus_message *message)
{
    for (unsigned tries = 1;; tries++) {
        const int r =
            message->kind == RINGBUS_KIND_REQUEST
                ? ringbus_reply(side->bus, &message->reply_to, message->data, message->size, 0)
                : ringbus_send(side->bus, &side->peer, 0, message->data, message->size, 0);
        if (RBI_LIKELY(r == 1) || !again(side, r)) {
            return;
        }
        pause_cpu();
        if (tries % 64 == 0) {
            (void)sched_yield();
        }
    }
}

void rbi_bench_on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct rbi_bench_side *side = user;
    (void)bus;
    take(side, message->data, message->size);
    if (side->echo) {
        send_back(side, message);
    }
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct rbi_bench_side *side = context;
    (void)bus;
    if (result->outcome == RINGBUS_REPLIED) {
        take(side, result->message->data, result->message->size);
    } else if (!stopped(side)) {
        rbi_bench_fail_bus(side->page, result->error, "a request was not answered", NULL);
    }
}

static bool RBI_COLD still_wanted(struct rbi_bench_side *side)
{
    const uint64_t now_ns = rbi_ctl_now_ns();
    if (side->received != side->progress || side->progress_ns == 0) {
        side->progress = side->received;
        side->progress_ns = now_ns;
    } else if (now_ns - side->progress_ns > LOST_NS) {
        rbi_bench_fail(side->page, RBI_CTL_FAILED,
                       "message %" PRIu64 " of %" PRIu32 " bytes did not arrive within %u s",
                       side->expected, side->size, (unsigned)(LOST_NS / 1000000000));
    }
    return !stopped(side);
}

bool rbi_bench_idle(struct rbi_bench_side *side, int nap_ms)
{
    if (side->sleeping) {
        const int r = ringbus_wait(side->bus, nap_ms);
        if (r < 0) {
            rbi_bench_fail_bus(side->page, r, "the bus failed", ringbus_errmsg(side->bus));
        }
        return still_wanted(side);
    }
    return (++side->looks & LOOKS_MASK) != 0 || still_wanted(side);
}

/* Dispatches; false: leave. When there is nothing, @p rest looks away a while. */
static inline bool dispatch(struct rbi_bench_side *side, int max, bool rest, int nap_ms)
{
    const int r = ringbus_poll(side->bus, max);
    if (RBI_LIKELY(r > 0)) {
        return true;
    }
    if (r < 0) {
        rbi_bench_fail_bus(side->page, r, "the bus failed", ringbus_errmsg(side->bus));
        return false;
    }
    /* Looking again at once would take the line away from the sender that writes it. */
    for (unsigned i = 0; rest && i < 64; i++) {
        pause_cpu();
    }
    return rbi_bench_idle(side, nap_ms);
}

static bool await(struct rbi_bench_side *side, uint64_t received, int max, bool rest)
{
    while (side->received < received) {
        if (!dispatch(side, max, rest, RBI_BENCH_NAP_MS)) {
            return false;
        }
    }
    return true;
}

/* ---- sending ----------------------------------------------------------------------------- */

static inline int attempt(struct rbi_bench_side *side, const unsigned char *data, bool request)
{
    if (request) {
        return ringbus_request(side->bus, &side->peer, 0, data, side->size, 0, REQUEST_WAIT_MS,
                               on_reply, side);
    }
    return ringbus_send(side->bus, &side->peer, 0, data, side->size, 0);
}

/* Sends one message, however often it must be tried. */
static inline bool send_number(struct rbi_bench_side *side, uint64_t number, bool request)
{
    unsigned char *data = place_of(side, number);
    unsigned char *end = data + side->size - sizeof number;
    const uint64_t last = ~number;
    uint64_t saved[2];
    memcpy(&saved[0], data, sizeof number);
    memcpy(&saved[1], end, sizeof number);
    memcpy(data, &number, sizeof number);
    memcpy(end, &last, sizeof last);
    int r = attempt(side, data, request);
    for (unsigned tries = 1; RBI_UNLIKELY(r != 1); tries++) {
        if (!again(side, r)) {
            break;
        }
        pause_cpu();
        if (side->sleeping || tries % 1024 == 0) {
            /* For room, and so that PINGs are answered: no message can come now. */
            if (!dispatch(side, 1, false, ROOM_NAP_MS)) {
                break;
            }
        }
        r = attempt(side, data, request);
    }
    memcpy(data, &saved[0], sizeof number);
    memcpy(end, &saved[1], sizeof number);
    return r == 1;
}

static bool round_trip(struct rbi_bench_side *side, const struct rbi_bench_job *job, uint32_t i)
{
    return send_number(side, job->first + i, job->kind == RBI_BENCH_REQUESTS) &&
           await(side, (uint64_t)i + 1, 1, false);
}

/* In rows, each timed as a whole: the median is spared the rows that were interrupted. */
static bool round_trips_in_rows(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    double samples[RBI_BENCH_SAMPLES_MAX];
    const uint32_t row = job->count / ROWS + 1;
    unsigned rows = 0;
    for (uint32_t i = 0; i < job->count;) {
        const uint32_t end = (uint32_t)rbi_min_u64(i + (uint64_t)row, job->count);
        const uint32_t first = i;
        const uint64_t begin_ns = rbi_ctl_now_ns();
        for (; i < end; i++) {
            if (!round_trip(side, job, i)) {
                return false;
            }
        }
        samples[rows++] = (double)(rbi_ctl_now_ns() - begin_ns) / (end - first);
    }
    side->page->ns[0] = rbi_quantile(samples, rows, 0.5);
    return true;
}

static bool round_trips_timed(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    uint64_t before_ns = rbi_ctl_now_ns();
    for (uint32_t i = 0; i < job->count; i++) {
        if (!round_trip(side, job, i)) {
            return false;
        }
        const uint64_t now_ns = rbi_ctl_now_ns();
        job->histogram[rbi_histogram_index(now_ns - before_ns)]++;
        before_ns = now_ns;
    }
    return true;
}

/* Each one finds side 1 asleep. */
static bool round_trips_apart(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    double samples[RBI_BENCH_SAMPLES_MAX];
    RBI_ASSERT(job->count <= RBI_BENCH_SAMPLES_MAX);
    for (uint32_t i = 0; i < job->count; i++) {
        const uint64_t gap_end_ns = rbi_ctl_now_ns() + job->gap_ns;
        uint64_t before_ns = rbi_ctl_now_ns();
        while (before_ns < gap_end_ns) {
            pause_cpu();
            before_ns = rbi_ctl_now_ns();
        }
        if (!round_trip(side, job, i)) {
            return false;
        }
        const uint64_t ns = rbi_ctl_now_ns() - before_ns;
        samples[i] = (double)ns;
        job->histogram[rbi_histogram_index(ns)]++;
    }
    side->page->ns[0] = rbi_quantile(samples, job->count, 0.5);
    return true;
}

static bool stream(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    const uint64_t begin_ns = rbi_ctl_now_ns();
    for (uint32_t i = 0; i < job->count; i++) {
        if (!send_number(side, job->first + i, false)) {
            return false;
        }
    }
    side->page->ns[0] = (double)(rbi_ctl_now_ns() - begin_ns) / job->count;
    return true;
}

static bool ask(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    if (job->kind == RBI_BENCH_STREAM) {
        return stream(side, job);
    }
    if (side->sleeping) {
        return round_trips_apart(side, job);
    }
    return job->histogram != NULL ? round_trips_timed(side, job) : round_trips_in_rows(side, job);
}

static bool answer(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    const bool one_way = job->kind == RBI_BENCH_STREAM;
    const uint64_t begin_ns = rbi_ctl_now_ns();
    side->echo = !one_way;
    if (!await(side, job->count, one_way ? BATCH : 1, one_way && !side->sleeping)) {
        return false;
    }
    side->page->ns[1] = (double)(rbi_ctl_now_ns() - begin_ns) / job->count;
    return true;
}

bool rbi_bench_job_run(struct rbi_bench_side *side, const struct rbi_bench_job *job)
{
    struct rbi_bench_page *page = side->page;
    const int me = side->number;
    if (job->kind == RBI_BENCH_LINES) {
        page->ns[me] = rbi_lines_round_trips(&page->lines, me, job->count);
        return !stopped(side);
    }
    if (job->kind == RBI_BENCH_LINES_ASLEEP) {
        page->ns[me] = rbi_lines_round_trips_asleep(&page->lines, me, job->count, job->gap_ns);
        return !stopped(side);
    }
    side->size = job->size;
    side->expected = job->first;
    side->received = 0;
    side->progress_ns = 0;
    const bool done = me == 0 ? ask(side, job) : answer(side, job);
    page->messages[me] += side->received;
    page->bytes[me] += side->received * job->size;
    return done && !stopped(side);
}
