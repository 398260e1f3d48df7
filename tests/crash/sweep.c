/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/sweep.h"

#include "crash/holding.h"
#include "crash/partner.h"
#include "support/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_MS   5000U
#define START_LOOKS 60U
/* Of the daemon, about one victim. */
#define LOG_LINES_MAX 5U

static const struct cluster *cluster;
static struct sweep_options options;
/* As when everybody had opened and there had been no victim yet. */
static struct holding at_start;

static struct {
    const char *operation;
    struct round_point at;
    unsigned number;
} now;

static const char *const mode_names[ROUND_MODES] = {"kill", "pause", "stall", "restart", "outage"};

int sweep_mode(const char *name)
{
    for (int i = 0; i < ROUND_MODES; i++) {
        if (strcmp(mode_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

void sweep_say_where(void)
{
    if (now.operation) {
        (void)fprintf(stderr,
                      "crash: failed; again: crash %s --mode %s --at %u --seed %" PRIu64
                      " (instruction %u behind system call boundary %u)\n",
                      now.operation, mode_names[options.mode], now.number, options.seed,
                      now.at.instructions, now.at.calls);
    }
}

/*
 * Each question is a connection, which the daemon may close after the next look; and what partners
 * have told the daemon last, as where their figures are, it may have read only then. So as it was
 * at the quietest of a row of looks that see no other change.
 */
void sweep_take_quiet(struct holding *out)
{
    partners_settle();
    holding_take(cluster, out);
    for (unsigned same = 0; same < START_LOOKS; same++) {
        struct holding again;
        test_sleep_ms(2);
        partners_run();
        holding_take(cluster, &again);
        if (again.daemon.process.memfd_maps != out->daemon.process.memfd_maps ||
            again.own.memfd_maps != out->own.memfd_maps ||
            again.daemon.process.fds < out->daemon.process.fds) {
            *out = again;
            same = 0;
        }
    }
}

unsigned sweep_first(const struct sweep_options *with, unsigned length, unsigned *stride)
{
    uint64_t random = with->seed;
    const unsigned between =
        with->points == 0 || with->points >= length ? 1 : length / with->points;
    *stride = between * with->shards;
    return (unsigned)(bus_random(&random) % between) + between * with->shard;
}

void sweep_begin(const struct cluster *at, const struct sweep_options *with)
{
    cluster = at;
    options = *with;
    sweep_take_quiet(&at_start);
}

/* ---- a sweep -------------------------------- */

struct sweep {
    unsigned rounds;
    unsigned length; /* of the operation, in steps */
    unsigned last_without;
    unsigned first_with; /* of the points: around the instruction that commits */
    uint32_t arrived_first;
    bool slept;
    unsigned in_use; /* rounds in which the address was still taken for a moment */
    uint64_t down_ns_max;
};

static int run_at(const struct operation *operation,
                  enum round_mode mode,
                  struct round_point at,
                  const struct holding *baseline,
                  struct round_result *result)
{
    now.operation = operation->name;
    now.at = at;
    round_run(cluster, operation, mode, at, baseline, result);
    return result->refused ? -1 : 0;
}

static void note(struct sweep *sweep, unsigned at, const struct round_result *result)
{
    if (sweep->rounds++ == 0) {
        sweep->arrived_first = result->arrived;
        sweep->first_with = UINT32_MAX;
    }
    if (result->arrived == sweep->arrived_first) {
        sweep->last_without = at > sweep->last_without ? at : sweep->last_without;
    } else {
        sweep->first_with = at < sweep->first_with ? at : sweep->first_with;
    }
    sweep->slept |= result->slept;
    sweep->in_use += result->in_use > 0;
    sweep->down_ns_max =
        result->down_ns > sweep->down_ns_max ? result->down_ns : sweep->down_ns_max;
}

/* A point of the operation by number. */
static struct round_point point(const struct operation *operation, unsigned i)
{
    uint64_t random = options.seed + i;
    if (!operation->by_calls) {
        return (struct round_point){.instructions = i};
    }
    /* Even: at a boundary of a system call. Odd: somewhere behind it. */
    const unsigned behind = (unsigned)(bus_random(&random) % 1000);
    return (struct round_point){.calls = i / 2, .instructions = i % 2 != 0 ? behind : 0};
}

/* Partners hear of a death before the daemon has closed the last descriptor of the dead. */
static void take_when_back(const struct holding *start, struct holding *out)
{
    const uint64_t deadline_ms = test_now_ms() + SETTLE_MS;
    for (;;) {
        partners_run();
        holding_take(cluster, out);
        if (holding_counts_equal(start, out)) {
            return;
        }
        if (test_now_ms() > deadline_ms) {
            (void)holding_equal(start, out, true);
            bus_die(__FILE__, __LINE__, "what was held before the first victim is held again");
        }
    }
}

static void say(const struct operation *operation, const struct sweep *sweep, uint64_t start_ms)
{
    (void)printf("crash: %-12s %5u points of %5u, %6" PRIu64 " ms, DOWN within %5.2f ms",
                 operation->name, sweep->rounds, sweep->length, test_now_ms() - start_ms,
                 (double)sweep->down_ns_max / 1e6);
    if (sweep->first_with != UINT32_MAX) {
        (void)printf(", arrived from %u on, not at %u", sweep->first_with, sweep->last_without);
    }
    if (sweep->in_use > 0) {
        (void)printf(", address in use at first in %u", sweep->in_use);
    }
    if (round_void_count() > 0) {
        (void)printf(", %u void so far", round_void_count());
    }
    (void)printf("%s\n", sweep->slept ? ", asleep" : "");
    (void)fflush(stdout);
}

/* Scenario 39: what happens to one client fills no log. */
static void check_log(unsigned lines_before, unsigned rounds)
{
    const unsigned lines = cluster_log_count(cluster, "") - lines_before;
    CHECK(lines <= LOG_LINES_MAX * rounds);
}

static void check_after(const struct holding *before)
{
    struct holding after;
    const uint64_t deadline_ms = test_now_ms() + SETTLE_MS;
    do {
        partners_run();
        holding_take(cluster, &after);
    } while (!holding_equal(before, &after, false) && test_now_ms() < deadline_ms);
    CHECK(holding_equal(before, &after, true));
}

int sweep_operation(const struct operation *operation)
{
    struct round_result result;
    struct holding start = at_start;
    struct holding before;
    struct sweep sweep = {0};
    const uint64_t start_ms = test_now_ms();
    const struct round_point whole = {.calls = operation->by_calls ? UINT32_MAX : 0,
                                      .instructions = operation->by_calls ? 0 : UINT32_MAX};
    partners_want(operation, true);
    if (operation->wanted) {
        sweep_take_quiet(&start);
    }
    /* Twice whole: its length, and all that is made once is made. */
    for (unsigned i = 0; i < 2; i++) {
        if (run_at(operation, ROUND_KILL, whole, &start, &result) != 0) {
            return -1;
        }
    }
    sweep.length = operation->by_calls ? 2 * result.calls : result.instructions;
    take_when_back(&start, &before);
    const unsigned log_lines = cluster_log_count(cluster, "");
    unsigned stride = 0;
    unsigned at = sweep_first(&options, sweep.length, &stride);
    at = options.at >= 0 ? (unsigned)options.at : at;
    do {
        now.number = at;
        CHECK(run_at(operation, options.mode, point(operation, at), &before, &result) == 0);
        note(&sweep, at, &result);
        at += stride;
        /* To the end of the operation, which is nearer in one round than in another; one that
         * spins by the clock, on a machine that stands still, may have none. */
    } while (options.at < 0 && (at <= sweep.length || (result.reached && at <= 2 * sweep.length)));
    check_after(&before);
    check_log(log_lines, sweep.rounds);
    partners_want(operation, false);
    take_when_back(&at_start, &before);
    say(operation, &sweep, start_ms);
    return 0;
}
