/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash - ends a client at every instruction of an operation.
 *
 *   crash [OPERATION] [--mode MODE] [--points N] [--seed N] [--at N] [--shard I/N] [--jobs N]
 *
 * Without --points every instruction; with it so many of each operation, spread evenly from a
 * start that the seed chooses. --at: this one point, to look at it again. --jobs: so many
 * processes, each with a shard and a bus of its own.
 */
#include "crash/outage.h"
#include "crash/partner.h"
#include "crash/sweep.h"
#include "crash/victim.h"
#include "support/machine.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED  77
#define JOBS_MAX 64U

static struct cluster cluster;
static pid_t main_pid;
static bool passed;

static const char *only; /* operation; NULL: all */
static unsigned jobs;
static struct sweep_options options = {.shards = 1, .at = -1};

/* ---- arguments -------------------------------- */

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: crash [OPERATION] [--mode kill|pause|stall|restart|outage] [--points N] "
                  "[--seed N] [--at N] [--shard I/N] [--jobs N]\noperations:");
    for (unsigned i = 0; operation_at(i); i++) {
        (void)fprintf(stderr, " %s", operation_at(i)->name);
    }
    (void)fprintf(stderr, "\n");
    return 2;
}

static int parse_option(const char *name, const char *value)
{
    if (strcmp(name, "--mode") == 0) {
        const int mode = sweep_mode(value);
        options.mode = mode >= 0 ? (enum round_mode)mode : ROUND_KILL;
        return mode >= 0 ? 0 : -1;
    }
    if (strcmp(name, "--shard") == 0) {
        const int n = sscanf(value, "%u/%u", &options.shard, &options.shards);
        return n == 2 && options.shard < options.shards ? 0 : -1;
    }
    if (strcmp(name, "--points") == 0) {
        options.points = (unsigned)strtoul(value, NULL, 10);
    } else if (strcmp(name, "--seed") == 0) {
        options.seed = strtoull(value, NULL, 10);
    } else if (strcmp(name, "--at") == 0) {
        options.at = strtol(value, NULL, 10);
    } else if (strcmp(name, "--jobs") == 0) {
        jobs = (unsigned)strtoul(value, NULL, 10);
        return jobs <= JOBS_MAX ? 0 : -1;
    } else {
        return -1;
    }
    return 0;
}

static int parse(int argc, char **argv)
{
    options.seed = machine_now_ns() % 1000000;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            only = argv[i];
        } else if (i + 1 >= argc || parse_option(argv[i], argv[i + 1]) != 0) {
            return -1;
        } else {
            i++;
        }
    }
    return only && !operation_find(only) ? -1 : 0;
}

/* ---- many at once -------------------------------- */

static pid_t start_job(char **argv, unsigned shard)
{
    char *arguments[32];
    char text[32];
    char seed[32];
    unsigned count = 0;
    const pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    for (; argv[count] && count < 24; count++) {
        arguments[count] = argv[count];
    }
    (void)snprintf(text, sizeof text, "%u/%u", shard, jobs);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, options.seed);
    const char *const more[] = {"--shard", text, "--seed", seed, "--jobs", "0", NULL};
    memcpy(&arguments[count], more, sizeof more);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execv("/proc/self/exe", arguments);
    _exit(127);
}

/** @return the worst exit code */
static int run_jobs(char **argv)
{
    int worst = 0;
    for (unsigned i = 0; i < jobs; i++) {
        CHECK(start_job(argv, i) > 0);
    }
    for (unsigned i = 0; i < jobs; i++) {
        int status = 0;
        CHECK(wait(&status) > 0);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        worst = code > worst ? code : worst;
    }
    return worst;
}

/* ---- one ------------------------------------------ */

static void at_end(void)
{
    if (getpid() == main_pid) {
        if (!passed) {
            sweep_say_where();
            outage_say_where();
        }
        cluster_down(&cluster);
    }
}

static bool is_wanted(const struct operation *operation)
{
    if (only && strcmp(only, operation->name) != 0) {
        return false;
    }
    if (options.mode == ROUND_OUTAGE) {
        return false;
    }
    const bool lives_on = options.mode == ROUND_PAUSE || options.mode == ROUND_STALL;
    return options.mode == ROUND_KILL || (!operation->by_calls && !(operation->leaves && lives_on));
}

int main(int argc, char **argv)
{
    int r = 0;
    if (parse(argc, argv) != 0) {
        return usage();
    }
    if (jobs > 0) {
        return run_jobs(argv);
    }
    main_pid = getpid();
    (void)printf("crash: seed %" PRIu64 "\n", options.seed);
    /* Rounds follow each other faster than the clients of a real user come. */
    CHECK(cluster_up(&cluster, "daemon:\n  log_level: warning\nquota:\n  connects: 1000000\n") ==
          0);
    CHECK(atexit(at_end) == 0);
    bus_shared_reset();
    victims_begin(&cluster);
    partners_open(&cluster);
    sweep_begin(&cluster, &options);
    if (options.mode == ROUND_OUTAGE) {
        r = outage_sweep(&cluster, &options);
    }
    for (unsigned i = 0; operation_at(i) && r == 0; i++) {
        r = is_wanted(operation_at(i)) ? sweep_operation(operation_at(i)) : 0;
    }
    partners_close();
    victims_end();
    passed = true;
    if (r != 0) {
        (void)printf("crash: skipped: ptrace is not permitted here\n");
        return SKIPPED;
    }
    return 0;
}
