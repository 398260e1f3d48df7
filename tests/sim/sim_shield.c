/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon a sick instance is shielded, how rarely a well one, and how it comes back, on virtual
 * time: callers whose calls arrive at random (Poisson), counted by each of them and swept every
 * 250 ms as the daemon does. Features 2.4 and section 6 item 2, with their numbers; scenario 90
 * (fault found at low traffic), 91 (nobody looks healthy), 118 (probes). RINGBUS_TEST_FULL=1:
 * more trials and more hours.
 *
 *   sim_shield [--seed N]
 */
#include "support/shield.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLERS   32U
#define SITES_MAX 20U /* instances */
#define WARM_S    70.0
#define S_NS      1e9

struct caller_count {
    uint32_t ok;
    uint32_t fail;
    uint32_t streak;
};

struct site {
    double rate;    /* calls a second that it would get */
    double fails;   /* share of them that fail */
    double next_ns; /* its next call, since the start */
    struct caller_count callers[CALLERS];
};

struct sim {
    struct shield_bench bench;
    struct site sites[SITES_MAX]; /* instance i + 1 */
    unsigned count;
    uint64_t rng;
    double now_ns; /* since the start */
    bool probing;  /* a caller holds a token */
    unsigned out;  /* taken out of service */
    unsigned probes;
    unsigned sent_to_shielded;
};

static struct sim sim;
static bool full;
static unsigned failures;

static void check(bool right, const char *what, double value, double bound)
{
    if (!right) {
        (void)printf("FAILED: %s: %.2f, bound %.2f\n", what, value, bound);
        failures++;
    }
}

static uint64_t draw(void)
{
    sim.rng ^= sim.rng << 13;
    sim.rng ^= sim.rng >> 7;
    sim.rng ^= sim.rng << 17;
    return sim.rng;
}

/** Uniform in (0, 1]. */
static double unit(void)
{
    return ((double)(draw() >> 11) + 1) * 0x1p-53;
}

static void note(void *context, const struct rbi_shield_event *event)
{
    shield_note(context, event);
    sim.out += event->kind == RBI_SHIELD_CHANGED && event->to == RBI_HEALTH_OPEN &&
               event->from != RBI_HEALTH_HALF_OPEN;
}

static void start(uint64_t seed, unsigned count, double rate, double background)
{
    memset(&sim, 0, sizeof sim);
    sim.rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    sim.count = count;
    if (!shield_begin(&sim.bench, RBI_SHIELD_DEFAULT, count)) {
        exit(1);
    }
    sim.bench.turn.emit = note;
    sim.bench.policy.jitter = 20;
    shield_apply(&sim.bench);
    for (unsigned i = 0; i < count; i++) {
        sim.sites[i].rate = rate;
        sim.sites[i].fails = background;
        sim.sites[i].next_ns = -log(unit()) / rate * S_NS;
    }
}

static void stop(void)
{
    rbi_shield_deinit(&sim.bench.cluster);
}

static const struct rbi_shield_member *member_of(unsigned site)
{
    return shield_of(&sim.bench, (int32_t)site + 1);
}

static bool serves(unsigned site)
{
    const uint32_t health = member_of(site)->health;
    return health == RBI_HEALTH_OK || health == RBI_HEALTH_RAMP;
}

/** Where a call goes that was meant for @p site: elsewhere while that is shielded. */
static unsigned route(unsigned site)
{
    if (serves(site) || rbi_shield_panics(&sim.bench.cluster)) {
        return site;
    }
    const unsigned first = (unsigned)(draw() % sim.count);
    for (unsigned i = 0; i < sim.count; i++) {
        const unsigned other = (first + i) % sim.count;
        if (serves(other)) {
            return other;
        }
    }
    sim.sent_to_shielded++;
    return site;
}

/** One call, and its outcome in the caller's own counters. */
static bool call(unsigned site)
{
    struct caller_count *count = &sim.sites[site].callers[draw() % CALLERS];
    const bool failed = unit() <= sim.sites[site].fails;
    count->ok += !failed;
    count->fail += failed;
    count->streak = failed ? count->streak + 1 : 0;
    return !failed;
}

/** A call takes the token along, if its caller was given one. */
static void call_or_probe(unsigned site)
{
    if (sim.probing) {
        sim.probing = false;
        sim.probes++;
        const bool well = call((unsigned)sim.bench.grant.instance - 1);
        shield_end(&sim.bench, well ? RBI_SHIELD_PROBE_OK : RBI_SHIELD_PROBE_FAIL);
    } else {
        (void)call(route(site));
    }
}

/** What the daemon does each 250 ms. A PING finds its loop well: it is its calls that fail. */
static void sweep(void)
{
    for (unsigned i = 0; i < sim.count; i++) {
        for (unsigned j = 0; j < CALLERS; j++) {
            struct caller_count *count = &sim.sites[i].callers[j];
            const struct rbi_shield_outcomes outcomes = {
                .ok = count->ok, .fail = count->fail, .streak = count->streak};
            rbi_shield_count(&sim.bench.cluster, (int32_t)i + 1, SHIELD_LIFE, &outcomes);
            count->ok = 0;
            count->fail = 0;
        }
    }
    const unsigned before = sim.bench.count;
    sim.bench.turn.random = draw();
    rbi_shield_sweep(&sim.bench.cluster, &sim.bench.turn);
    for (unsigned i = before; i < sim.bench.count; i++) {
        const struct rbi_shield_event *event = &sim.bench.events[i % SHIELD_EVENTS];
        if (event->kind == RBI_SHIELD_PING) {
            rbi_shield_ping(&sim.bench.cluster, event->instance, event->token, true,
                            &sim.bench.turn);
        }
    }
    sim.probing = sim.probing || shield_grant(&sim.bench);
}

/** All calls up to the next sweep, then the sweep. */
static void run_step(void)
{
    const double end_ns = sim.now_ns + RBI_WINDOW_STEP_MS * 1e6;
    for (;;) {
        unsigned first = 0;
        for (unsigned i = 1; i < sim.count; i++) {
            first = sim.sites[i].next_ns < sim.sites[first].next_ns ? i : first;
        }
        if (sim.sites[first].next_ns > end_ns) {
            break;
        }
        sim.bench.turn.now_ns = SHIELD_START + (uint64_t)sim.sites[first].next_ns;
        call_or_probe(first);
        sim.sites[first].next_ns += -log(unit()) / sim.sites[first].rate * S_NS;
    }
    sim.now_ns = end_ns;
    sim.bench.turn.now_ns = SHIELD_START + (uint64_t)end_ns;
    sweep();
}

static void run(double seconds)
{
    const double end_ns = sim.now_ns + seconds * S_NS;
    while (sim.now_ns < end_ns) {
        run_step();
    }
}

/** Seconds until instance 1 is shielded (or is not, with @p out false); @p bound if never. */
static double run_until(bool out, double bound)
{
    const double since_ns = sim.now_ns;
    while (serves(0) == out && sim.now_ns - since_ns < bound * S_NS) {
        run_step();
    }
    return (sim.now_ns - since_ns) / S_NS;
}

/* ---- times ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

struct row {
    double rate;
    double fails;
    double features; /* median there, s */
    double bound;    /* of ours, s */
    unsigned trials;
};

/** From a fault in the middle of a step to OPEN; the step is what a sweep may be late for. */
static void measure(const struct row *row, uint64_t seed)
{
    enum { TRIALS_MAX = 1000 };
    static double times[TRIALS_MAX];
    const unsigned trials = row->trials * (full ? 5 : 1);
    for (unsigned i = 0; i < trials; i++) {
        start(seed + i, 4, row->rate, 0);
        run(WARM_S);
        /* At a moment between two sweeps: what the step has seen until then was well. */
        const double phase_s = unit() * 0.25;
        const double rest_s = 0.25 - phase_s;
        sim.sites[0].fails = row->fails * (rest_s / 0.25); /* of this one step */
        run_step();
        sim.sites[0].fails = row->fails;
        times[i] = serves(0) ? rest_s + run_until(true, 300) : rest_s;
        stop();
    }
    qsort(times, trials, sizeof *times, compare);
    const double median = times[trials / 2];
    (void)printf("%8.1f %6.0f %% %10.1f %10.2f %8.2f %8.2f %8.1f\n", row->rate, row->fails * 100,
                 row->features, median, times[trials * 9 / 10], times[trials - 1], row->bound);
    check(median <= row->bound, "median time to shield", median, row->bound);
    check(times[trials - 1] < 300, "never shielded", times[trials - 1], 300);
}

static void measure_times(uint64_t seed)
{
    static const struct row rows[] = {
        {1000, 1.0, 1.0, 1.3, 10}, {1000, 0.7, 3.0, 10, 10}, {100, 1.0, 1.0, 1.3, 50},
        {100, 0.6, 8.5, 10, 50},   {20, 1.0, 1.0, 1.3, 200}, {20, 0.6, 4.5, 10, 200},
        {5, 1.0, 1.9, 3.0, 200},   {5, 0.6, 3.7, 10, 200},   {0.5, 1.0, 28, 60, 200},
    };
    (void)printf("time to shield, s, of one of 4 instances; %u callers\n"
                 "calls/s   failing   features     median      90 %%      max    bound\n",
                 CALLERS);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        measure(&rows[i], seed + i * 10000);
    }
}

/** Shields in @p hours of instances that all fail as much. */
static unsigned false_shields(uint64_t seed, double rate, double background, unsigned hours)
{
    start(seed, 4, rate, background);
    run(3600.0 * hours);
    const unsigned out = sim.out;
    stop();
    return out;
}

static void measure_false_shields(uint64_t seed)
{
    const double none = full ? 0.05 : 0;
    const struct {
        double rate;
        double background;
        double bound; /* an instance and hour */
    } rows[] = {{100, 0.1, none}, {100, 0.2, none}, {20, 0.1, none}, {20, 0.2, none},
                {20, 0.3, 3},     {5, 0.2, 3},      {5, 0.3, 20}};
    const unsigned hours = full ? 20 : 1;
    (void)printf("\nfalse shields in %u h of 4 instances\ncalls/s  failing  an instance and hour\n",
                 hours);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        const unsigned out = false_shields(seed + i, rows[i].rate, rows[i].background, hours);
        const double an_hour = (double)out / hours / 4;
        (void)printf("%7.0f %6.0f %% %21.2f\n", rows[i].rate, rows[i].background * 100, an_hour);
        /* In an hour none; in very many chance has its turn. */
        check(an_hour <= rows[i].bound, "false shields", an_hour, rows[i].bound);
    }
}

/* ---- stories ----------------------------------------------------------------------------- */

/* Scenario 90: 20 instances, 1 request a second each, one drops 70 %; probes let it back. */
static void story_low_traffic(uint64_t seed)
{
    const unsigned trials = full ? 500 : 50;
    double worst_out = 0;
    double worst_back = 0;
    double sum_out = 0;
    unsigned others = 0;
    for (unsigned i = 0; i < trials; i++) {
        start(seed + i, 20, 1, 0);
        run(WARM_S);
        sim.sites[0].fails = 0.7;
        const double out = run_until(true, 300);
        sum_out += out;
        worst_out = fmax(worst_out, out);
        sim.sites[0].fails = 0;
        worst_back = fmax(worst_back, run_until(false, 300));
        others += sim.out - 1;
        stop();
    }
    (void)printf("\nscenario 90: out after %.1f s (mean), %.1f s (max); healed, back after %.1f s "
                 "(max)\n",
                 sum_out / trials, worst_out, worst_back);
    check(worst_out <= 60, "scenario 90: time to shield", worst_out, 60);
    check(worst_back <= 3, "scenario 90: time until it is back", worst_back, 3);
    check(others == 0, "scenario 90: shields of others", others, 0);
}

/* Sick for long: out but for its probes, at most 4 a second; back soon after it is healed. */
static void story_long_illness(uint64_t seed)
{
    static const double sick_s[] = {5, 60, 600};
    (void)printf("\n");
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(sick_s); i++) {
        start(seed + i, 4, 100, 0);
        run(WARM_S);
        sim.sites[0].fails = 1;
        (void)run_until(true, 10);
        sim.probes = 0;
        run(sick_s[i]);
        const double probes = sim.probes;
        check(probes <= 4 * sick_s[i] + 1, "probes of a sick one", probes, 4 * sick_s[i]);
        sim.sites[0].fails = 0;
        const double back = run_until(false, 300);
        const double since_ns = sim.now_ns;
        while (member_of(0)->health != RBI_HEALTH_OK && sim.now_ns < since_ns + 60 * S_NS) {
            run_step();
        }
        const double ramp = (sim.now_ns - since_ns) / S_NS;
        (void)printf("sick for %3.0f s: %2.0f probes, back %.1f s after it was healed, all of its "
                     "weight %.1f s later\n",
                     sick_s[i], probes, back, ramp);
        check(back <= 72 + 3, "time until it is back", back, 75);
        check(ramp <= 3.25, "ramp", ramp, 3.25);
        stop();
    }
}

/* Scenario 91: all ten fail for a minute. Panic within 1.5 s, somebody is always there to call,
 * and when they are well again panic ends. */
static void story_all_fail(uint64_t seed)
{
    start(seed, 10, 50, 0);
    run(WARM_S);
    for (unsigned i = 0; i < sim.count; i++) {
        sim.sites[i].fails = 1;
    }
    const double since_ns = sim.now_ns;
    while (!rbi_shield_panics(&sim.bench.cluster) && sim.now_ns < since_ns + 10 * S_NS) {
        run_step();
    }
    const double panic = (sim.now_ns - since_ns) / S_NS;
    unsigned most_out = 0;
    for (unsigned i = 0; i < 240; i++) {
        run_step();
        const unsigned out = shield_out(&sim.bench);
        most_out = out > most_out ? out : most_out;
    }
    const bool held = rbi_shield_panics(&sim.bench.cluster);
    for (unsigned i = 0; i < sim.count; i++) {
        sim.sites[i].fails = 0;
    }
    const double healed_ns = sim.now_ns;
    while (rbi_shield_panics(&sim.bench.cluster) && sim.now_ns < healed_ns + 60 * S_NS) {
        run_step();
    }
    const double calm = (sim.now_ns - healed_ns) / S_NS;
    run(180);
    (void)printf("\nscenario 91: panic %.2f s after all ten failed, at most %u shielded, over "
                 "%.1f s after they were healed\n",
                 panic, most_out, calm);
    check(panic <= 1.5, "scenario 91: panic", panic, 1.5);
    check(held, "scenario 91: panic holds", held, 1);
    check(most_out <= 5, "scenario 91: shielded", most_out, 5);
    check(calm <= 15, "scenario 91: panic is over", calm, 15);
    check(sim.sent_to_shielded == 0, "scenario 91: nobody to call", sim.sent_to_shielded, 0);
    check(shield_out(&sim.bench) == 0, "scenario 91: still shielded", shield_out(&sim.bench), 0);
    stop();
}

/* Caps: all instances but none of them, whatever N is, under an operator who wants no median. */
static void story_caps(uint64_t seed)
{
    static const unsigned may[] = {0, 0, 1, 1, 2, 2, 3};
    for (unsigned n = 1; n <= 6; n++) {
        start(seed + n, n, 50, 0);
        sim.bench.policy.above_median = 0;
        shield_apply(&sim.bench);
        run(10);
        for (unsigned i = 0; i < n; i++) {
            sim.sites[i].fails = 1;
        }
        unsigned most_out = 0;
        for (unsigned i = 0; i < 400; i++) {
            run_step();
            const unsigned out = shield_out(&sim.bench);
            most_out = out > most_out ? out : most_out;
        }
        check(most_out == may[n], "shielded of so many", most_out, may[n]);
        check(sim.sent_to_shielded == 0, "nobody to call", sim.sent_to_shielded, 0);
        stop();
    }
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("RINGBUS_TEST_FULL");
    uint64_t seed = 1;
    full = wanted != NULL && wanted[0] == '1';
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 10);
    } else if (argc != 1) {
        (void)fprintf(stderr, "usage: sim_shield [--seed N]\n");
        return 2;
    }
    measure_times(seed);
    measure_false_shields(seed);
    story_low_traffic(seed);
    story_long_illness(seed);
    story_all_fail(seed);
    story_caps(seed);
    return failures != 0;
}
