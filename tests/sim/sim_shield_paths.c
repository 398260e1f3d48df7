/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sequence of so many events that a shielded instance can see, on the real state machine.
 * After each of them: it is in a state with an end, holds no place of a probe that is over; and
 * from there, whatever was before,
 *   - in silence (nobody answers, nobody calls) it never stays HALF_OPEN beyond its bound
 *   - when all is well it is back in service within its bound, and OK after the ramp
 * Features 2.5, section 3 (breaker never recovers), section 6 item 3; scenario 118. With
 * RINGBUS_TEST_FULL=1 one event more.
 */
#include "support/shield.h"

#include <stdio.h>
#include <stdlib.h>

#define ID        2
#define DEPTH     4U
#define DEPTH_MAX 8U

enum event {
    EV_SWEEP,
    EV_SECOND, /* and a sweep: as long as a PING, a probe, the first open time */
    EV_MINUTE, /* longer than all of them */
    EV_FAILS,
    EV_PONG,
    EV_LOST,
    EV_GRANT,
    EV_OK,
    EV_FAIL,
    EV_CANCELLED,
    EV_RESTART,
    EV_COUNT
};

static const char letters[EV_COUNT + 1] = ".sMxpl?ofcR";

/* Where the paths begin: OPEN, probing, one probe before it is back, and back. */
static const char *const begins[] = {"x", "xsp", "xsp?o.?o", "xsp?o.?o.?o"};

struct paths {
    struct shield_bench bench;
    uint32_t incarnation;
    const char *begin;
    unsigned path[DEPTH_MAX];
    unsigned depth;
    uint64_t count;
    uint64_t reached[4]; /* by health, at the end of a path */
};

static struct paths paths;

static const struct rbi_shield_member *member(void)
{
    return shield_of(&paths.bench, ID);
}

static void check(bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "after %s ", paths.begin);
        for (unsigned i = 0; i < paths.depth; i++) {
            (void)fputc(letters[paths.path[i]], stderr);
        }
        (void)fprintf(stderr, ": %s\n", what);
        exit(1);
    }
}

static bool serves(void)
{
    return member()->health == RBI_HEALTH_OK || member()->health == RBI_HEALTH_RAMP;
}

static void feed(unsigned event)
{
    struct shield_bench *bench = &paths.bench;
    switch (event) {
    case EV_SWEEP:
        shield_sweep(bench);
        break;
    case EV_SECOND:
        shield_sweep_after(bench, 1000);
        break;
    case EV_MINUTE:
        shield_sweep_after(bench, 61000);
        break;
    case EV_FAILS: {
        const struct rbi_shield_outcomes fails = {.fail = 20, .streak = 20};
        rbi_shield_count(&bench->cluster, ID, paths.incarnation, &fails);
        shield_sweep(bench);
        break;
    }
    case EV_PONG:
    case EV_LOST:
        shield_answer(bench, ID, event == EV_PONG);
        break;
    case EV_GRANT:
        (void)shield_grant(bench);
        break;
    case EV_OK:
        shield_end(bench, RBI_SHIELD_PROBE_OK);
        break;
    case EV_FAIL:
        shield_end(bench, RBI_SHIELD_PROBE_FAIL);
        break;
    case EV_CANCELLED:
        shield_end(bench, RBI_SHIELD_PROBE_CANCELLED);
        break;
    default:
        check(rbi_shield_put(&bench->cluster, ID, ++paths.incarnation, 100, &bench->turn) == 0,
              "no memory");
        check(member()->health == RBI_HEALTH_OK && member()->shields == 0,
              "restart: state is left");
        break;
    }
}

static void replay(void)
{
    rbi_shield_deinit(&paths.bench.cluster);
    if (!shield_begin(&paths.bench, RBI_SHIELD_DEFAULT, 3)) {
        exit(1);
    }
    paths.incarnation = SHIELD_LIFE;
    for (const char *letter = paths.begin; *letter != '\0'; letter++) {
        feed((unsigned)(strchr(letters, *letter) - letters));
    }
    for (unsigned i = 0; i < paths.depth; i++) {
        feed(paths.path[i]);
    }
}

/** Longest time in HALF_OPEN: idle, then a probe and a PING, each found out by a sweep. */
static uint64_t bound_ns(void)
{
    const uint64_t sweep_ns = RBI_WINDOW_STEP_MS * SHIELD_MS;
    return RBI_SHIELD_IDLE_FACTOR * member()->open_ns + 2 * 1000 * SHIELD_MS + 3 * sweep_ns;
}

/** Swept on time from now on: what was missed before does not count. */
static void check_silence(void)
{
    const uint64_t begin_ns = paths.bench.turn.now_ns;
    for (unsigned i = 0; i < 120; i++) {
        shield_sweep(&paths.bench);
        const uint64_t now_ns = paths.bench.turn.now_ns;
        check(member()->health != RBI_HEALTH_OPEN || now_ns < member()->until_ns, "OPEN too long");
        check(member()->health != RBI_HEALTH_HALF_OPEN ||
                  now_ns - rbi_max_u64(begin_ns, member()->since_ns) <= bound_ns(),
              "HALF_OPEN too long");
    }
}

/** PINGs are answered, probes are well: how long that takes at most. */
static void check_recovery(void)
{
    const uint64_t begin_ns = paths.bench.turn.now_ns;
    const uint64_t rest_ns =
        member()->health == RBI_HEALTH_OPEN ? member()->until_ns - begin_ns : 0;
    /* One probe that was lost before may still keep it out once more, for longer. */
    const uint64_t longest_ns = rest_ns + 4 * member()->open_ns + 10000 * SHIELD_MS;
    while (!serves()) {
        check(paths.bench.turn.now_ns - begin_ns <= longest_ns, "is not back");
        shield_sweep(&paths.bench);
        shield_answer(&paths.bench, ID, true);
        if (shield_grant(&paths.bench)) {
            shield_end(&paths.bench, RBI_SHIELD_PROBE_OK);
        }
    }
    for (unsigned i = 0; i < 14 && member()->health != RBI_HEALTH_OK; i++) {
        shield_sweep(&paths.bench);
    }
    check(member()->health == RBI_HEALTH_OK && member()->ramp == 100, "ramp has no end");
    check(!rbi_shield_panics(&paths.bench.cluster), "panic for one of three");
}

static void check_path(void)
{
    replay();
    paths.count++;
    paths.reached[member()->health]++;
    for (unsigned i = 0; i < RBI_SHIELD_PROBES_MAX; i++) {
        check(member()->probes[i].token == 0 || member()->health == RBI_HEALTH_HALF_OPEN,
              "a probe is left");
    }
    check_recovery();
    replay();
    check_silence();
}

static void check_paths(void)
{
    unsigned at = paths.depth;
    memset(paths.path, 0, sizeof paths.path);
    while (at > 0) {
        check_path();
        at = paths.depth;
        while (at > 0 && ++paths.path[at - 1] == EV_COUNT) {
            paths.path[--at] = 0;
        }
    }
}

int main(void)
{
    const char *full = getenv("RINGBUS_TEST_FULL");
    paths.depth = full != NULL && full[0] == '1' ? DEPTH + 1 : DEPTH;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(begins); i++) {
        paths.begin = begins[i];
        check_paths();
    }
    (void)printf(
        "sim_shield_paths: %llu paths of %u events: %llu to OK, %llu OPEN, %llu HALF_OPEN, "
        "%llu RAMP\n",
        (unsigned long long)paths.count, paths.depth, (unsigned long long)paths.reached[0],
        (unsigned long long)paths.reached[1], (unsigned long long)paths.reached[2],
        (unsigned long long)paths.reached[3]);
    rbi_shield_deinit(&paths.bench.cluster);
    return 0;
}
