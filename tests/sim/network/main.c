/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_network - runs histories of a simulated bus from one seed on, and prints the command
 * that repeats one that failed. README.md says what is simulated, and what is not.
 */
#include "tests/sim/network/world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static struct {
    uint64_t seed;
    uint64_t runs;
    uint64_t seconds;
    uint64_t troubles;
    uint64_t skip;
    bool shrink;
} given = {.seed = 1, .runs = UINT64_MAX, .seconds = 10, .troubles = TROUBLES_MAX};

static void aborted(int number)
{
    (void)fprintf(stderr,
                  "\nsim_network: signal %d in history %" PRIu64 "\n"
                  "repeat: sim_network --seed %" PRIu64 " --runs 1 --verbose\n",
                  number, world.seed, world.seed);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static uint64_t real_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SIM_S + (uint64_t)now.tv_nsec;
}

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t *number = strcmp(argv[i], "--seed") == 0       ? &given.seed
                           : strcmp(argv[i], "--runs") == 0     ? &given.runs
                           : strcmp(argv[i], "--seconds") == 0  ? &given.seconds
                           : strcmp(argv[i], "--troubles") == 0 ? &given.troubles
                           : strcmp(argv[i], "--skip") == 0     ? &given.skip
                                                                : NULL;
        if (strcmp(argv[i], "--verbose") == 0) {
            sim.verbose = true;
        } else if (strcmp(argv[i], "--shrink") == 0) {
            given.shrink = true;
        } else if (number != NULL && value != NULL) {
            *number = strtoull(value, NULL, 0);
            i++;
        } else {
            return false;
        }
    }
    return true;
}

static void print_failure(uint64_t troubles, uint64_t skip)
{
    (void)fprintf(stderr, "sim_network: seed %" PRIu64 ", %s\nrepeat: sim_network --seed %" PRIu64,
                  world.seed, world.failure, world.seed);
    if (troubles < TROUBLES_MAX || skip != 0) {
        (void)fprintf(stderr, " --troubles %" PRIu64 " --skip 0x%" PRIx64, troubles, skip);
    }
    (void)fprintf(stderr, " --runs 1 --verbose\n");
}

/** The shortest beginning of a history that fails, without what is not needed for that. */
static void shrink(uint64_t seed)
{
    unsigned troubles = 0;
    uint64_t skip = 0;
    while (troubles < TROUBLES_MAX && history_run(seed, troubles, 0)) {
        troubles++;
    }
    for (unsigned i = 0; i < troubles; i++) {
        const uint64_t more = skip | UINT64_C(1) << i;
        if (!history_run(seed, troubles, more)) {
            skip = more;
        }
    }
    if (!history_run(seed, troubles, skip)) {
        print_failure(troubles, skip);
    }
}

static void print_figures(double seconds)
{
    (void)printf("sim_network: %" PRIu64 " histories from seed %" PRIu64 " in %.1f s (%.0f/s), "
                 "%" PRIu64 " steps\n",
                 world.figures.histories, given.seed, seconds,
                 (double)world.figures.histories / seconds, world.figures.events);
    (void)printf("  %" PRIu64 " lives, %" PRIu64 " killed, %" PRIu64 " pauses, %" PRIu64
                 " kills of the daemon, %" PRIu64 " READY, %" PRIu64 " DOWN\n",
                 world.figures.lives, world.figures.kills, world.figures.pauses,
                 world.figures.daemon_kills, world.figures.links, world.figures.downs);
    (void)printf("  %" PRIu64 " sent, %" PRIu64 " refused, %" PRIu64 " delivered, %" PRIu64
                 " given back (%" PRIu64 " maybe seen)\n",
                 world.figures.sent, world.figures.refused, world.figures.delivered,
                 world.figures.given_back, world.figures.maybe_seen);
    (void)printf("  %" PRIu64 " requests: %" PRIu64 " replied, %" PRIu64 " unknown, %" PRIu64
                 " not sent\n",
                 world.figures.requests, world.figures.replied, world.figures.unknown,
                 world.figures.not_sent);
    (void)printf("  %" PRIu64 " with a key looked at, %" PRIu64 " refused while its owner may come "
                 "back, %" PRIu64 " by a limit; %" PRIu64 " dead waited for, %" PRIu64
                 " shielded\n",
                 world.figures.keys, world.figures.waiting, world.figures.limited,
                 world.figures.absences, world.figures.shielded);
    (void)printf("  %" PRIu64 " went on to another, %" PRIu64 " times drained, %" PRIu64
                 " changes of slots told, %" PRIu64 " refused for not owning the key\n",
                 world.figures.redelivered, world.figures.drained, world.figures.slots,
                 world.figures.not_owner);
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        (void)fputs(
            "usage: sim_network [--seed N] [--runs N] [--seconds N] [--shrink] [--verbose]\n"
            "                   [--troubles N] [--skip MASK]\n"
            "Runs histories from seed N on until one of the limits is reached. --shrink\n"
            "looks for the fewest troubles that make the first failure.\n",
            stderr);
        return 2;
    }
    if (getenv("RINGBUS_TEST_FULL") != NULL) {
        given.seconds = 600; /* and from another seed than the quick one ends with */
        given.seed = 100000000;
    }
    sim_kernel_init();
    (void)signal(SIGABRT, aborted);
    (void)signal(SIGSEGV, aborted);
    const uint64_t start_ns = real_ns();
    uint64_t spent_ns = 0;
    for (uint64_t i = 0; i < given.runs && spent_ns < given.seconds * SIM_S; i++) {
        if (!history_run(given.seed + i, (unsigned)given.troubles, given.skip)) {
            print_failure(given.troubles, given.skip);
            if (given.shrink) {
                shrink(given.seed + i);
            }
            return 1;
        }
        spent_ns = real_ns() - start_ns;
    }
    print_figures((double)(spent_ns + 1) / 1e9);
    return 0;
}
