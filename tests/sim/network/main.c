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
} given = {.seed = 1, .runs = UINT64_MAX, .seconds = 10};

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
        uint64_t *number = strcmp(argv[i], "--seed") == 0      ? &given.seed
                           : strcmp(argv[i], "--runs") == 0    ? &given.runs
                           : strcmp(argv[i], "--seconds") == 0 ? &given.seconds
                                                               : NULL;
        if (strcmp(argv[i], "--verbose") == 0) {
            sim.verbose = true;
        } else if (number != NULL && value != NULL) {
            *number = strtoull(value, NULL, 10);
            i++;
        } else {
            return false;
        }
    }
    return true;
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
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        (void)fputs("usage: sim_network [--seed N] [--runs N] [--seconds N] [--verbose]\n"
                    "Runs histories from seed N on until one of the limits is reached.\n",
                    stderr);
        return 2;
    }
    sim_kernel_init();
    (void)signal(SIGABRT, aborted);
    (void)signal(SIGSEGV, aborted);
    const uint64_t start_ns = real_ns();
    uint64_t spent_ns = 0;
    for (uint64_t i = 0; i < given.runs && spent_ns < given.seconds * SIM_S; i++) {
        if (!history_run(given.seed + i)) {
            (void)fprintf(stderr,
                          "sim_network: seed %" PRIu64 ", %s\n"
                          "repeat: sim_network --seed %" PRIu64 " --runs 1 --verbose\n",
                          world.seed, world.failure, world.seed);
            return 1;
        }
        spent_ns = real_ns() - start_ns;
    }
    print_figures((double)(spent_ns + 1) / 1e9);
    return 0;
}
