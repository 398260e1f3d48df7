/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/harness.h"

#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void bench_step_ahead(void)
{
    struct sched_param param;
    const int policy = sched_getscheduler(0);
    if ((policy == SCHED_FIFO || policy == SCHED_RR) && sched_getparam(0, &param) == 0) {
        param.sched_priority++;
        (void)sched_setscheduler(0, policy, &param);
    }
}

void bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        (void)fprintf(stderr, "bench: cannot pin to core %d; figures are worth less\n", cpu);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_median(double *values, unsigned count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* ---- the daemon -------------------------------------------------------------------------- */

int bench_daemon_start(struct bench_daemon *daemon, const char *program)
{
    return bench_daemon_start_with(daemon, program, NULL);
}

int bench_daemon_start_with(struct bench_daemon *daemon, const char *program, const char *config)
{
    (void)snprintf(daemon->directory, sizeof daemon->directory, "/tmp/ringbus-bench-XXXXXX");
    if (mkdtemp(daemon->directory) == NULL) {
        perror("bench: mkdtemp");
        return -1;
    }
    (void)snprintf(daemon->socket, sizeof daemon->socket, "%s/bus.sock", daemon->directory);
    daemon->pid = fork();
    if (daemon->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        bench_step_ahead();
        if (config != NULL) {
            (void)execl(program, program, "--socket", daemon->socket, "--config", config,
                        (char *)NULL);
        } else {
            (void)execl(program, program, "--socket", daemon->socket, (char *)NULL);
        }
        perror(program);
        _exit(127);
    }
    for (int i = 0; i < 2000; i++) {
        struct ringbus *probe = NULL;
        struct ringbus_options options = RINGBUS_OPTIONS_INIT;
        options.socket = daemon->socket;
        if (ringbus_open(&options, &probe) == 0) {
            (void)ringbus_close(probe, 0);
            return 0;
        }
        if (waitpid(daemon->pid, NULL, WNOHANG) != 0) {
            break;
        }
        const struct timespec pause = {.tv_nsec = 2000000};
        (void)nanosleep(&pause, NULL);
    }
    (void)fprintf(stderr, "bench: ringbusd does not answer: %s\n", ringbus_errmsg(NULL));
    return -1;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void bench_daemon_stop(struct bench_daemon *daemon)
{
    if (daemon->pid > 0) {
        (void)kill(daemon->pid, SIGTERM);
        (void)waitpid(daemon->pid, NULL, 0);
    }
    if (daemon->directory[0] != '\0') {
        (void)nftw(daemon->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

/* ---- the limit ----------------------------------------------------------------------------- */

struct bench_shared *bench_shared_new(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void bench_barrier(struct bench_shared *shared, int side)
{
    (void)rbi_lines_meet(&shared->lines, side, RBI_LINES_LOOKS);
}

double bench_limit(struct bench_shared *shared, int side, unsigned rounds)
{
    const double ns = rbi_lines_round_trips(&shared->lines, side, rounds);
    return side == 0 ? ns : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct ringbus *bench_open(const struct bench_daemon *daemon,
                           const struct ringbus_options *options,
                           const char *peer,
                           struct ringbus_addr *addr)
{
    return bench_open_beside(daemon, options, peer, addr, NULL);
}

struct ringbus *bench_open_beside(const struct bench_daemon *daemon,
                                  const struct ringbus_options *options,
                                  const char *peer,
                                  struct ringbus_addr *addr,
                                  struct ringbus *beside)
{
    struct ringbus *bus = NULL;
    struct ringbus_options given = *options;
    given.socket = daemon->socket;
    if (ringbus_open(&given, &bus) != 0) {
        (void)fprintf(stderr, "bench: open: %s\n", ringbus_errmsg(NULL));
        return NULL;
    }
    if (peer == NULL) {
        return bus;
    }
    if (ringbus_target(bus, peer, NULL, addr) != 0) {
        (void)fprintf(stderr, "bench: target: %s\n", ringbus_errmsg(bus));
        (void)ringbus_close(bus, 0);
        return NULL;
    }
    const uint64_t end_ns = bench_now_ns() + UINT64_C(5000000000);
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    do {
        (void)ringbus_wait(bus, beside != NULL ? 0 : 10);
        (void)ringbus_poll(bus, 64);
        if (beside != NULL) {
            (void)ringbus_wait(beside, 0);
            (void)ringbus_poll(beside, 64);
        }
        (void)ringbus_stats(bus, &stats);
    } while (stats.links == 0 && bench_now_ns() < end_ns);
    if (stats.links == 0) {
        (void)fprintf(stderr, "bench: no link to %s: %s\n", peer, ringbus_errmsg(bus));
        (void)ringbus_close(bus, 0);
        return NULL;
    }
    return bus;
}
