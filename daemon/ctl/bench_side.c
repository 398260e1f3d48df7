/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A side of bench: its endpoints one after the other, and what side 0 orders when. Time decides
 * how many blocks there are; how many messages a block has is learned from the one before.
 */
#include "daemon/ctl/bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Several times: one that was put off its core says little. */
#define LINES_TIMES         5U
#define LINES_ROUNDS        400U
#define LINES_ASLEEP_ROUNDS 50U
/* Enough to fall asleep in. */
#define GAP_NS    UINT64_C(20000)
#define COUNT_MIN 4.0
#define COUNT_MAX 1000000.0
#define GUESS_NS  20000.0
/* Of each part of a block; longer in long runs, which have no room for more blocks. */
#define PART_NS         2e6
#define PART_NS_SECONDS 10U
/* PINGs do not matter here: a side that is kept from running is not dead. */
#define PING_MS     60000U
#define PING_MISSES 100U

/* ---- failing ----------------------------------------------------------------------------- */

void rbi_bench_fail(struct rbi_bench_page *page, int code, const char *format, ...)
{
    char text[sizeof page->fail_text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    /* What fails because the other side has left already is no reason. */
    if (atomic_exchange(&page->lines.stop, 1) == 0) {
        memcpy(page->fail_text, text, sizeof text);
        page->fail_code = code;
    }
}

void rbi_bench_fail_bus(struct rbi_bench_page *page, int error, const char *what, const char *text)
{
    const char *sentence = text != NULL && *text != '\0' ? text : ringbus_strerror(error);
    rbi_bench_fail(page, rbi_ctl_exit_of(error), "%s: %s (%s)", what, sentence,
                   ringbus_error_name(error));
}

static bool stopped(const struct rbi_bench_side *side)
{
    return atomic_load_explicit(&side->page->lines.stop, memory_order_relaxed) != 0;
}

static bool meet(struct rbi_bench_side *side)
{
    return rbi_lines_meet(&side->page->lines, side->number,
                          side->plan->together ? 0 : RBI_LINES_LOOKS);
}

/* ---- the endpoint ------------------------------------------------------------------------ */

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct rbi_bench_side *side = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        side->peer = event->addr;
        side->ready = true;
    } else if (event->type == RINGBUS_EVENT_DOWN && side->needed) {
        rbi_bench_fail(side->page, RBI_CTL_FAILED, "the link between the two sides ended");
    } else if (event->type == RINGBUS_EVENT_LINK_FAILED &&
               ringbus_error_kind(event->error) == RINGBUS_ERROR_DENIED) {
        rbi_bench_fail_bus(side->page, event->error, event->path, NULL);
    }
}

static bool side_open(struct rbi_bench_side *side, enum rbi_bench_mode mode, uint32_t spin_us)
{
    const struct rbi_ctl_args *args = side->plan->args;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    char path[RINGBUS_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s/%d", side->plan->cluster, (int)getpid());
    options.path = path;
    options.socket = args->socket;
    options.mode = mode == RBI_BENCH_BUSY ? RINGBUS_MODE_BUSY : RINGBUS_MODE_SLEEP;
    options.spin_us = spin_us;
    options.connect_timeout_ms = args->timeout_ms;
    options.ping_interval_ms = PING_MS;
    options.ping_misses = PING_MISSES;
    options.on_message = rbi_bench_on_message;
    options.on_event = on_event;
    options.user = side;
    side->sleeping = mode == RBI_BENCH_SLEEP;
    side->ready = false;
    side->needed = false;
    const int r = ringbus_open(&options, &side->bus);
    if (r != 0) {
        side->bus = NULL;
        rbi_bench_fail_bus(side->page, r, path, ringbus_errmsg(NULL));
    }
    return r == 0;
}

static void side_close(struct rbi_bench_side *side)
{
    side->needed = false;
    (void)ringbus_close(side->bus, 0);
    side->bus = NULL;
}

static bool target(struct rbi_bench_side *side, int peer_pid)
{
    char path[RINGBUS_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s/%d", side->plan->cluster, peer_pid);
    const int r = ringbus_target(side->bus, path, NULL, NULL);
    if (r < 0) {
        rbi_bench_fail_bus(side->page, r, path, ringbus_errmsg(side->bus));
    }
    return r == 0;
}

static bool await_ready(struct rbi_bench_side *side)
{
    const uint64_t wait_ns = (uint64_t)side->plan->args->timeout_ms * 1000000;
    const uint64_t begin_ns = rbi_ctl_now_ns();
    side->progress_ns = 0;
    while (!side->ready) {
        (void)ringbus_wait(side->bus, 10);
        if (ringbus_poll(side->bus, 64) < 0 || stopped(side)) {
            return false;
        }
        if (!side->ready && rbi_ctl_now_ns() - begin_ns > wait_ns) {
            rbi_bench_fail(side->page, RBI_CTL_TIMEOUT,
                           "the two sides were not introduced to each other in time");
            return false;
        }
    }
    return true;
}

/* ---- opening and introducing ------------------------------------------------------------- */

static void connect_listen(struct rbi_bench_side *side)
{
    if (!side_open(side, RBI_BENCH_SLEEP, 0)) {
        return;
    }
    if (meet(side)) {
        while (atomic_load(&side->page->connected) == 0 && !stopped(side)) {
            (void)ringbus_wait(side->bus, RBI_BENCH_NAP_MS);
            (void)ringbus_poll(side->bus, 64);
        }
    }
    side_close(side);
}

static void connect_once(struct rbi_bench_side *side)
{
    struct rbi_bench_page *page = side->page;
    const uint64_t begin_ns = rbi_ctl_now_ns();
    if (!side_open(side, RBI_BENCH_SLEEP, 0)) {
        return;
    }
    const uint64_t open_ns = rbi_ctl_now_ns();
    if (target(side, page->pids[1]) && await_ready(side)) {
        page->open_us[page->open_count] = (double)(open_ns - begin_ns) / 1e3;
        page->introduce_us[page->open_count] = (double)(rbi_ctl_now_ns() - open_ns) / 1e3;
        page->open_count++;
    }
    side_close(side);
}

static void connect_measure(struct rbi_bench_side *side)
{
    if (!meet(side)) {
        return;
    }
    for (unsigned i = 0; i < RBI_BENCH_OPENS && !stopped(side); i++) {
        connect_once(side);
    }
    atomic_store(&side->page->connected, 1);
}

/* ---- blocks, on side 0 ------------------------------------------------------------------- */

struct pace {
    double trip_ns;
    double message_ns;
};

static void note_switches(struct rbi_bench_side *side)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        side->page->switches[side->number] = (uint64_t)usage.ru_nivcsw;
    }
}

static bool order(struct rbi_bench_side *side, struct rbi_bench_job job)
{
    struct rbi_bench_page *page = side->page;
    job.first = page->next;
    page->next += job.count;
    page->job = job;
    if (!meet(side)) {
        return false;
    }
    const bool done = rbi_bench_job_run(side, &job);
    note_switches(side);
    return done && meet(side);
}

/* On one core side 1 sleeps by itself, and spinning would keep it from that. */
static uint64_t gap_ns(const struct rbi_bench_side *side)
{
    return side->plan->together ? 0 : GAP_NS;
}

static uint32_t count_for(double ns, unsigned seconds)
{
    const double part_ns =
        seconds > PART_NS_SECONDS ? PART_NS * seconds / PART_NS_SECONDS : PART_NS;
    const double count = part_ns / (ns > 1 ? ns : 1);
    return (uint32_t)(count < COUNT_MIN ? COUNT_MIN : count > COUNT_MAX ? COUNT_MAX : count);
}

/* The best of several tells where the cores lie, the median what a round trip takes. */
static bool measure_lines(struct rbi_bench_side *side, struct rbi_bench_block *block)
{
    const struct rbi_bench_job job = {.kind = RBI_BENCH_LINES, .count = LINES_ROUNDS};
    double ns[LINES_TIMES];
    for (unsigned i = 0; i < LINES_TIMES; i++) {
        if (!order(side, job)) {
            return false;
        }
        ns[i] = side->page->ns[0];
    }
    block->limit_ns = rbi_quantile(ns, LINES_TIMES, 0.5);
    block->regime =
        rbi_quantile(ns, LINES_TIMES, 0) <= RBI_LINES_NEAR_NS_MAX ? RBI_BENCH_NEAR : RBI_BENCH_FAR;
    return true;
}

/* What the machine takes now: what the figures of this block are compared with. */
static bool measure_limit(struct rbi_bench_side *side, struct rbi_bench_block *block)
{
    block->regime = RBI_BENCH_TOGETHER;
    if (!side->plan->together && !measure_lines(side, block)) {
        return false;
    }
    if (side->sleeping) {
        const struct rbi_bench_job job = {
            .kind = RBI_BENCH_LINES_ASLEEP, .count = LINES_ASLEEP_ROUNDS, .gap_ns = gap_ns(side)};
        if (!order(side, job)) {
            return false;
        }
        block->limit_ns = side->page->ns[0];
    }
    return true;
}

/* Busy twice, as a row and each timed; asleep the clock does not matter. */
static bool measure_trips(struct rbi_bench_side *side,
                          struct rbi_bench_series *series,
                          struct rbi_bench_block *block,
                          struct pace *pace,
                          struct rbi_bench_job job)
{
    const unsigned seconds = side->plan->args->seconds;
    uint32_t *histogram = series->histogram[block->regime];
    job.gap_ns = side->sleeping ? gap_ns(side) : 0;
    job.histogram = side->sleeping ? histogram : NULL;
    job.count = count_for(pace->trip_ns + (double)job.gap_ns, seconds);
    if (side->sleeping && job.count > RBI_BENCH_SAMPLES_MAX) {
        job.count = RBI_BENCH_SAMPLES_MAX;
    }
    if (!order(side, job)) {
        return false;
    }
    block->trip_ns = side->page->ns[0];
    pace->trip_ns = block->trip_ns;
    if (side->sleeping) {
        return true;
    }
    job.histogram = histogram;
    job.count = count_for(pace->trip_ns, seconds);
    return order(side, job);
}

static bool measure_stream(struct rbi_bench_side *side,
                           struct rbi_bench_block *block,
                           struct pace *pace,
                           uint32_t size)
{
    const double *ns = side->page->ns;
    const struct rbi_bench_job job = {.kind = RBI_BENCH_STREAM,
                                      .size = size,
                                      .count =
                                          count_for(pace->message_ns, side->plan->args->seconds)};
    if (!order(side, job)) {
        return false;
    }
    /* Over when the slower side has done its part. */
    block->message_ns = ns[0] > ns[1] ? ns[0] : ns[1];
    pace->message_ns = block->message_ns;
    return true;
}

static bool run_block(struct rbi_bench_side *side,
                      struct rbi_bench_series *series,
                      struct pace *pace,
                      const struct rbi_bench_job *job)
{
    const uint64_t *switches = side->page->switches;
    const uint64_t before = switches[0] + switches[1];
    struct rbi_bench_block block = {0};
    if (!measure_limit(side, &block) || !measure_trips(side, series, &block, pace, *job) ||
        (job->kind == RBI_BENCH_TRIPS && !measure_stream(side, &block, pace, job->size))) {
        return false;
    }
    block.disturbed = switches[0] + switches[1] > before;
    series->blocks[series->block_count++] = block;
    return true;
}

/* Every size in turn, then requests; again and again until the time is over. */
static void run_blocks(struct rbi_bench_side *side, enum rbi_bench_mode mode, uint64_t end_ns)
{
    const struct rbi_ctl_args *args = side->plan->args;
    struct rbi_bench_series *all = side->page->series[mode];
    struct pace paces[RBI_BENCH_SERIES_MAX];
    for (unsigned i = 0; i <= args->size_count; i++) {
        paces[i] = (struct pace){.trip_ns = GUESS_NS, .message_ns = GUESS_NS};
    }
    do {
        for (unsigned i = 0; i <= args->size_count; i++) {
            const bool request = i == args->size_count;
            const struct rbi_bench_job job = {.kind =
                                                  request ? RBI_BENCH_REQUESTS : RBI_BENCH_TRIPS,
                                              .size = args->sizes[request ? 0 : i]};
            if (!run_block(side, &all[i], &paces[i], &job)) {
                return;
            }
        }
    } while (rbi_ctl_now_ns() < end_ns && all[0].block_count < RBI_BENCH_BLOCKS_MAX);
    const struct rbi_bench_job end = {.kind = RBI_BENCH_END};
    side->page->job = end;
    (void)meet(side);
}

/* ---- both -------------------------------------------------------------------------------- */

static void follow(struct rbi_bench_side *side)
{
    while (meet(side) && side->page->job.kind != RBI_BENCH_END) {
        const struct rbi_bench_job job = side->page->job;
        if (!rbi_bench_job_run(side, &job)) {
            return;
        }
        note_switches(side);
        if (!meet(side)) {
            return;
        }
    }
}

static void run_mode(struct rbi_bench_side *side, enum rbi_bench_mode mode, uint64_t end_ns)
{
    /* Sleeping is to be measured, and not the spinning before it: as little as there is. */
    const uint32_t spin_us = mode == RBI_BENCH_SLEEP ? 1 : 0;
    /* The listener first; side 0 would wait for it, and count that. */
    if (side->number == 0 && !meet(side)) {
        return;
    }
    if (!side_open(side, mode, spin_us)) {
        return;
    }
    const bool met = side->number == 0 ? target(side, side->page->pids[1]) : meet(side);
    if (met && await_ready(side)) {
        side->needed = true;
        if (side->number == 0) {
            run_blocks(side, mode, end_ns);
        } else {
            follow(side);
        }
    }
    side_close(side);
}

void rbi_bench_side_run(const struct rbi_bench_plan *plan, struct rbi_bench_page *page, int number)
{
    struct rbi_bench_side side = {.plan = plan, .page = page, .number = number};
    const uint64_t begin_ns = rbi_ctl_now_ns();
    const uint64_t total_ns = plan->args->seconds * UINT64_C(1000000000);
    page->pids[number] = (int)getpid();
    if (rbi_bench_pin(plan->cpus[number]) != 0 || rbi_bench_pattern_init(&side) != 0) {
        rbi_bench_fail(page, RBI_CTL_FAILED, "core %d cannot be had, or no memory",
                       plan->cpus[number]);
        return;
    }
    if (number == 0) {
        connect_measure(&side);
    } else {
        connect_listen(&side);
    }
    const bool both = plan->modes[RBI_BENCH_BUSY] && plan->modes[RBI_BENCH_SLEEP];
    for (unsigned mode = 0; mode < RBI_BENCH_MODES && !stopped(&side); mode++) {
        const uint64_t part_ns = both && mode == RBI_BENCH_BUSY ? total_ns / 2 : total_ns;
        if (plan->modes[mode]) {
            run_mode(&side, (enum rbi_bench_mode)mode, begin_ns + part_ns);
        }
    }
    free(side.pattern);
}
