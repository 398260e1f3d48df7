/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/sweep.h"

#include "measure/lines.h"
#include "measure/quantiles.h"

#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX   40U
#define BLOCKS_MAX  400U
#define BLOCK_NS    2.5e6 /* of the contender; the base takes half of it */
#define BLOCK_COST  6e-3  /* seconds, with the limit, the base and the turn */
#define WARM_BLOCKS 4U
#define FEW         2U /* blocks, to see that it works */
#define LEAST       5U /* undisturbed blocks, or all count */

struct sample {
    double limit_ns;
    double base_ns;
    double ns;
    double cpu_ns[2];
    double side_ns[2];
    bool disturbed;
};

/** A pair and what it measured at the present size. */
struct entrant {
    struct bench_pair pair;
    bool said_failure;
    double guess_ns;      /* a message */
    double base_guess_ns; /* a message of the base */
    uint64_t messages;
    unsigned count;
    double latency[2][5]; /* near, far */
    struct sample samples[BLOCKS_MAX];
};

void bench_size_text(char *out, size_t out_size, uint64_t size)
{
    if (size >= (1U << 20) && size % (1U << 20) == 0) {
        (void)snprintf(out, out_size, "%llu MiB", (unsigned long long)(size >> 20));
    } else if (size >= 1024 && size % 1024 == 0) {
        (void)snprintf(out, out_size, "%llu KiB", (unsigned long long)(size >> 10));
    } else {
        (void)snprintf(out, out_size, "%llu B", (unsigned long long)size);
    }
}

static bool listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool takes_part(const struct bench_run *run,
                       const struct bench_sweep *sweep,
                       const struct bench_contender *contender)
{
    const unsigned mode = sweep->mode == BENCH_BUSY ? BENCH_CAN_BUSY : BENCH_CAN_SLEEP;
    const unsigned way = sweep->kind == BENCH_KIND_TRIPS ? BENCH_TRIPS : BENCH_STREAM;
    if ((contender->abilities & mode) == 0 || (contender->abilities & way) == 0 ||
        ((contender->abilities & BENCH_IS_LIMIT) != 0 && !sweep->limits) ||
        ((contender->abilities & BENCH_NAMED) != 0 && sweep->only == NULL)) {
        return false;
    }
    return bench_run_wants(run, contender) &&
           (sweep->only == NULL || listed(sweep->only, contender->name));
}

/* ---- the base -------------------------------------------------------------------------------- */

static const struct bench_base *
base_for(const struct bench_sweep *sweep, const struct bench_contender *contender, uint64_t size)
{
    const struct bench_base *common = NULL;
    for (unsigned i = 0; i < sweep->base_count; i++) {
        const struct bench_base *base = &sweep->bases[i];
        if (size < base->size_min || size > base->size_max) {
            continue;
        }
        if (base->only != NULL && strcmp(base->only, contender->name) == 0) {
            return base;
        }
        if (base->only == NULL && common == NULL) {
            common = base;
        }
    }
    return common != NULL && common->contender == contender && common->mode == sweep->mode ? NULL
                                                                                           : common;
}

static unsigned slot_of(const struct entrant *entrant, const struct bench_base *base)
{
    for (unsigned i = 1; i < entrant->pair.slot_count; i++) {
        if (entrant->pair.places[i].contender == base->contender &&
            entrant->pair.places[i].mode == base->mode) {
            return i;
        }
    }
    return 0;
}

static void add_place(struct bench_run *run,
                      struct bench_pair *pair,
                      const struct bench_contender *contender,
                      enum bench_mode mode)
{
    struct bench_place *place = &pair->places[pair->slot_count++];
    place->contender = contender;
    place->mode = mode;
    place->size_max = contender->size_max;
    place->number = ++run->pair_number;
    (void)snprintf(place->directory, sizeof place->directory, "%s", run->directory);
    (void)snprintf(place->bus_socket, sizeof place->bus_socket, "%s", run->bus_socket);
}

static void enter(struct bench_run *run,
                  const struct bench_sweep *sweep,
                  const struct bench_contender *contender,
                  struct entrant *entrant)
{
    struct bench_pair *pair = &entrant->pair;
    pair->cpu[0] = sweep->cpu[0];
    pair->cpu[1] = sweep->cpu[1];
    pair->pin_first = sweep->pin_first;
    add_place(run, pair, contender, sweep->mode);
    for (const uint64_t *size = sweep->sizes; *size != 0; size++) {
        const struct bench_base *base = base_for(sweep, contender, *size);
        if (base != NULL && slot_of(entrant, base) == 0 && pair->slot_count < BENCH_SLOTS) {
            add_place(run, pair, base->contender, base->mode);
        }
    }
    (void)bench_pair_start(pair);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint64_t fitting(double budget_ns, double guess_ns)
{
    const double count = guess_ns > 0 ? budget_ns / guess_ns : 1;
    return count < 1 ? 1 : count > 1e6 ? 1000000 : (uint64_t)count;
}

struct turn {
    bool warm;
    bool timed;
};

/* In the warm-up every byte is compared, and the counts grow until a block has its length. */
static int
one_block(const struct bench_sweep *sweep, struct entrant *e, uint64_t size, struct turn turn)
{
    const struct bench_contender *contender = e->pair.places[0].contender;
    const struct bench_base *base = base_for(sweep, contender, size);
    struct bench_outcome out;
    struct bench_part first = {.slot = base != NULL ? slot_of(e, base) : 0,
                               .kind = sweep->kind,
                               .gap_ns = sweep->gap_ns,
                               .whole = turn.warm,
                               .size = size};
    struct bench_part part = first;
    if (first.slot != 0 && !turn.timed) {
        first.size = base->fixed_size != 0 ? base->fixed_size : size;
        first.count = fitting(turn.warm ? BLOCK_NS / 16 : BLOCK_NS / 2,
                              e->base_guess_ns + (double)sweep->gap_ns);
    }
    part.slot = 0;
    part.timed = turn.timed;
    part.count = sweep->count > 0 && !turn.warm ? sweep->count
                                                : fitting(turn.warm ? BLOCK_NS / 8 : BLOCK_NS,
                                                          e->guess_ns + (double)sweep->gap_ns);
    if (bench_pair_block(&e->pair, &first, &part, &out) != 0) {
        return -1;
    }
    e->guess_ns = out.ns[1];
    e->base_guess_ns = first.count > 0 ? out.ns[0] : e->base_guess_ns;
    e->messages += part.count;
    if (!turn.warm && !turn.timed && e->count < BLOCKS_MAX) {
        const struct sample sample = {.limit_ns = out.limit_ns,
                                      .base_ns = first.count > 0 ? out.ns[0] : 0,
                                      .ns = out.ns[1],
                                      .cpu_ns = {out.cpu_ns[0], out.cpu_ns[1]},
                                      .side_ns = {out.side_ns[0], out.side_ns[1]},
                                      .disturbed = out.disturbed};
        e->samples[e->count++] = sample;
    }
    return 0;
}

static void keep_latency(struct entrant *e)
{
    static const double at[] = {0.5, 0.9, 0.99, 0.999, 1.0};
    for (unsigned regime = 0; regime < 2; regime++) {
        const uint32_t *histogram = bench_pair_histogram(&e->pair, regime);
        for (unsigned i = 0; i < 5; i++) {
            e->latency[regime][i] = rbi_histogram_quantile(histogram, at[i]);
        }
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

/* Of the samples of one regime, the median and its spread of one quantity. */
struct spread {
    double p10;
    double p50;
    double p90;
};

static struct spread spread_of(double *values, unsigned count)
{
    const struct spread s = {.p10 = rbi_quantile(values, count, 0.1),
                             .p50 = rbi_quantile(values, count, 0.5),
                             .p90 = rbi_quantile(values, count, 0.9)};
    return s;
}

static bool is_near(const struct sample *sample)
{
    return sample->limit_ns <= RBI_LINES_NEAR_NS_MAX;
}

static unsigned disturbed_blocks(const struct entrant *e)
{
    unsigned n = 0;
    for (unsigned i = 0; i < e->count; i++) {
        n += e->samples[i].disturbed ? 1U : 0U;
    }
    return n;
}

static bool minds_the_scheduler(const struct bench_sweep *sweep)
{
    return sweep->mode == BENCH_BUSY && sweep->cpu[0] != sweep->cpu[1];
}

/* With both sides polling, a block in which the scheduler interfered measures the scheduler. */
static unsigned left_out(const struct bench_sweep *sweep, const struct entrant *e)
{
    const unsigned n = disturbed_blocks(e);
    return minds_the_scheduler(sweep) && e->count - n >= LEAST ? n : 0;
}

static bool counts(const struct bench_sweep *sweep, const struct sample *sample, int regime)
{
    return sweep->cpu[0] == sweep->cpu[1] ? regime == 2 : regime == !is_near(sample);
}

static double ratio_of(const struct bench_sweep *sweep, const struct sample *s)
{
    const double base = s->base_ns > 0 ? s->base_ns : s->limit_ns;
    if (sweep->kind == BENCH_KIND_TRIPS) {
        return base > 0 ? s->ns / base : 0;
    }
    return s->base_ns > 0 ? s->base_ns / s->ns : 0;
}

static void figure(struct bench_run *run,
                   const struct bench_sweep *sweep,
                   struct entrant *e,
                   uint64_t size,
                   int regime)
{
    static const char *const names[] = {"near", "far", "all"};
    static double value[BLOCKS_MAX];
    static double ratio[BLOCKS_MAX];
    static double limit[BLOCKS_MAX];
    static double cpu[2][BLOCKS_MAX];
    const struct bench_contender *contender = e->pair.places[0].contender;
    const struct bench_base *base = base_for(sweep, contender, size);
    const unsigned disturbed = left_out(sweep, e);
    unsigned n = 0;
    for (unsigned i = 0; i < e->count; i++) {
        const struct sample *s = &e->samples[i];
        if (counts(sweep, s, regime) && !(s->disturbed && disturbed > 0)) {
            value[n] = sweep->kind == BENCH_KIND_TRIPS ? s->ns : 1e3 / s->ns;
            ratio[n] = ratio_of(sweep, s);
            limit[n] = s->limit_ns;
            cpu[0][n] = s->cpu_ns[0];
            cpu[1][n++] = s->cpu_ns[1];
        }
    }
    if (n == 0) {
        return;
    }
    const struct spread v = spread_of(value, n);
    const struct spread r = spread_of(ratio, n);
    struct bench_figure f = {.workload = sweep->workload,
                             .contender = contender->name,
                             .mode = sweep->mode == BENCH_BUSY ? "busy" : "sleep",
                             .regime = names[regime],
                             .unit = sweep->unit,
                             .value = v.p50,
                             .value_p10 = v.p10,
                             .value_p90 = v.p90,
                             .ratio = r.p50,
                             .ratio_p10 = r.p10,
                             .ratio_p90 = r.p90,
                             .limit_ns = rbi_quantile(limit, n, 0.5),
                             .cpu_ns = {rbi_quantile(cpu[0], n, 0.5), rbi_quantile(cpu[1], n, 0.5)},
                             .size = size,
                             .messages = e->messages,
                             .blocks = n,
                             .disturbed = disturbed};
    if (base != NULL) {
        f.base = base->text;
    } else if (sweep->kind == BENCH_KIND_TRIPS && sweep->mode == BENCH_BUSY && r.p50 > 0) {
        f.base = "two lines";
    }
    memcpy(f.latency, e->latency[regime == 1], sizeof f.latency);
    bench_size_text(f.param, sizeof f.param, size);
    bench_run_figure(run, &f);
}

/* ---- one size after the other ---------------------------------------------------------------- */

static void say_if_failed(struct bench_run *run, const struct bench_sweep *sweep, struct entrant *e)
{
    if (e->pair.failed && !e->said_failure) {
        e->said_failure = true;
        bench_run_failed(run, sweep->workload, e->pair.places[0].contender, e->pair.why);
    }
}

static bool can_take(const struct entrant *e, uint64_t size)
{
    return !e->pair.failed && size <= e->pair.places[0].contender->size_max;
}

static void turns(const struct bench_sweep *sweep,
                  struct entrant **all,
                  unsigned n,
                  uint64_t size,
                  struct turn turn)
{
    for (unsigned i = 0; i < n; i++) {
        if (can_take(all[i], size)) {
            (void)one_block(sweep, all[i], size, turn);
        }
    }
}

static void one_size(struct bench_run *run,
                     const struct bench_sweep *sweep,
                     struct entrant **all,
                     unsigned n,
                     uint64_t size,
                     unsigned blocks)
{
    const struct turn warm = {.warm = true};
    const struct turn plain = {.warm = false};
    const struct turn timed = {.timed = true};
    for (unsigned i = 0; i < n; i++) {
        all[i]->count = 0;
        all[i]->messages = 0;
        all[i]->guess_ns = all[i]->base_guess_ns = BLOCK_NS / 32;
        bench_pair_clear_histogram(&all[i]->pair);
    }
    for (unsigned b = 0; b < (run->options.smoke ? FEW : WARM_BLOCKS); b++) {
        turns(sweep, all, n, size, warm);
    }
    for (unsigned b = 0; b < blocks; b++) {
        turns(sweep, all, n, size, plain);
        if (sweep->kind == BENCH_KIND_TRIPS && b % 5 == 0) {
            turns(sweep, all, n, size, timed);
        }
    }
    /* A machine with other work on it: again, for those that had no peace. */
    const bool again = minds_the_scheduler(sweep) && !run->options.smoke;
    for (unsigned b = 0; again && b < 2 * blocks; b++) {
        for (unsigned i = 0; i < n; i++) {
            if (can_take(all[i], size) && all[i]->count - disturbed_blocks(all[i]) < blocks / 2) {
                (void)one_block(sweep, all[i], size, plain);
            }
        }
    }
    for (unsigned i = 0; i < n; i++) {
        say_if_failed(run, sweep, all[i]);
        if (can_take(all[i], size)) {
            keep_latency(all[i]);
            for (int regime = 0; regime < 3; regime++) {
                figure(run, sweep, all[i], size, regime);
            }
        }
    }
}

static unsigned size_count(const struct bench_sweep *sweep)
{
    unsigned n = 0;
    while (sweep->sizes[n] != 0) {
        n++;
    }
    return n;
}

static unsigned
blocks_for(const struct bench_run *run, const struct bench_sweep *sweep, unsigned pairs)
{
    if (sweep->blocks > 0 || run->options.smoke) {
        return sweep->blocks > 0 ? sweep->blocks : FEW;
    }
    const double turns = (double)pairs * size_count(sweep) * BLOCK_COST;
    const double blocks = turns > 0 ? sweep->seconds / turns : 0;
    return blocks < 5 ? 5 : blocks > BLOCKS_MAX ? BLOCKS_MAX : (unsigned)blocks;
}

int bench_sweep(struct bench_run *run, const struct bench_sweep *sweep)
{
    struct entrant *all[PAIRS_MAX];
    unsigned n = 0;
    const unsigned failures = run->failures;
    for (unsigned i = 0; bench_contenders[i] != NULL && n < PAIRS_MAX; i++) {
        if (takes_part(run, sweep, bench_contenders[i])) {
            all[n] = calloc(1, sizeof *all[n]);
            if (all[n] == NULL) {
                break;
            }
            enter(run, sweep, bench_contenders[i], all[n]);
            say_if_failed(run, sweep, all[n]);
            n++;
        }
    }
    for (const uint64_t *size = sweep->sizes; *size != 0; size++) {
        one_size(run, sweep, all, n, *size, blocks_for(run, sweep, n));
    }
    for (unsigned i = n; i-- > 0;) {
        const bool failed = all[i]->pair.failed;
        if (bench_pair_stop(&all[i]->pair) != 0 && !failed) {
            bench_run_failed(run, sweep->workload, all[i]->pair.places[0].contender,
                             "a side did not end in order");
        }
        free(all[i]);
    }
    return run->failures == failures ? 0 : -1;
}
