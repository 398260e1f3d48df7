/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - clock, randomness, limits and what else a process is told of itself. */
#include "tests/sim/network/kernel.h"

#include <errno.h>

int sim_clock_gettime(clockid_t clock, struct timespec *out)
{
    (void)clock;
    sim.now_ns += 40; /* so that whoever spins on the clock comes to an end */
    out->tv_sec = (time_t)(sim.now_ns / SIM_S);
    out->tv_nsec = (long)(sim.now_ns % SIM_S);
    return 0;
}

int sim_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    sim_block(NULL, NULL, 0, sim.now_ns + (uint64_t)time->tv_sec * SIM_S + (uint64_t)time->tv_nsec);
    return 0;
}

ssize_t sim_getrandom(void *out, size_t size, unsigned flags)
{
    unsigned char *bytes = out;
    (void)flags;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(sim_random() >> 56);
    }
    return (ssize_t)size;
}

char *sim_getenv(const char *name)
{
    (void)name;
    return NULL;
}

int sim_unsetenv(const char *name)
{
    (void)name;
    return 0;
}

pid_t sim_getpid(void)
{
    return (pid_t)(1000 * (sim.current->id + 1) + sim.current->life);
}

int sim_getrlimit(int resource, struct rlimit *out)
{
    const rlim_t limit = resource == RLIMIT_NOFILE ? SIM_FDS_MAX : RLIM_INFINITY;
    *out = (struct rlimit){.rlim_cur = limit, .rlim_max = limit};
    return 0;
}

int sim_setrlimit(int resource, const struct rlimit *limit)
{
    (void)resource;
    (void)limit;
    return 0;
}

mode_t sim_umask(mode_t mask)
{
    return mask;
}

/* A process is one fiber: what has threads does without. */
int sim_pthread_create(pthread_t *out,
                       const pthread_attr_t *attributes,
                       void *(*body)(void *),
                       void *context)
{
    (void)out;
    (void)attributes;
    (void)body;
    (void)context;
    return EAGAIN;
}

/* How much of what was sent is unread: nobody is told. */
int sim_ioctl(int fd, unsigned long request, ...)
{
    (void)fd;
    (void)request;
    errno = ENOTTY;
    return -1;
}

int sim_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how;
    (void)set;
    (void)old;
    return 0;
}

int sim_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    (void)number;
    (void)action;
    (void)old;
    return 0;
}

int sim_sched_yield(void)
{
    sim.now_ns += 500;
    sim_yield();
    return 0;
}

int sim_sched_getcpu(void)
{
    return (int)sim.current->id % 4; /* some share a core */
}

int sim_getcpu(unsigned *cpu, unsigned *node)
{
    *cpu = (unsigned)sim_sched_getcpu();
    *node = *cpu / 2;
    return 0;
}

int sim_sched_getscheduler(pid_t pid)
{
    (void)pid;
    return SCHED_OTHER;
}

int sim_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out)
{
    (void)pid;
    (void)size;
    CPU_ZERO(out);
    CPU_SET(0, out);
    CPU_SET(1, out);
    return 0;
}
