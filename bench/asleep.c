/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/asleep.c - messages to a receiver that is asleep each time, in a process of its own,
 * between two getppid() calls of the sender that mark the stretch for strace. The pause before
 * each is a clock_nanosleep(), which nothing else calls here.
 */
#include "bench/harness.h"

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

#define PATH_SLEEPER "/Bench/local/host/w0/g0/Sleeper/1"
#define PAUSE_NS     2000000L /* far longer than a receiver spins */

struct page {
    _Atomic(uint64_t) received;
    _Atomic(uint64_t) errors;
    _Atomic(uint32_t) opened;
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct page *page = user;
    uint64_t number = 0;
    (void)bus;
    memcpy(&number, message->data, sizeof number);
    if (number != atomic_load(&page->received)) {
        (void)atomic_fetch_add(&page->errors, 1);
    }
    (void)atomic_fetch_add(&page->received, 1);
}

static _Noreturn void sleeper(const struct bench_daemon *daemon, struct page *page)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.path = PATH_SLEEPER;
    options.ping_interval_ms = 60000;
    options.on_message = on_message;
    options.user = page;
    struct ringbus *bus = bench_open(daemon, &options, NULL, NULL);
    atomic_store(&page->opened, bus != NULL ? 1 : 2);
    while (bus != NULL) {
        (void)ringbus_wait(bus, 10000);
        (void)ringbus_poll(bus, 64);
    }
    _exit(1);
}

static void pause_before_next(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static int
send_each(struct ringbus *bus, const struct ringbus_addr *to, struct page *page, uint64_t count)
{
    unsigned char payload[48] = {0};
    const uint64_t first = atomic_load(&page->received);
    for (uint64_t i = first; i < first + count; i++) {
        pause_before_next();
        memcpy(payload, &i, sizeof i);
        if (ringbus_send(bus, to, 0, payload, sizeof payload, 0) != 1) {
            (void)fprintf(stderr, "bench: %s\n", ringbus_errmsg(bus));
            return 1;
        }
    }
    while (atomic_load(&page->received) < first + count) {
        pause_before_next();
    }
    pause_before_next(); /* the receiver falls asleep again */
    return 0;
}

int main(int argc, char **argv)
{
    struct bench_daemon daemon = {0};
    struct ringbus_addr to;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 500;
    struct page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || page == MAP_FAILED || bench_daemon_start(&daemon, argv[1]) != 0) {
        (void)fprintf(stderr, "usage: asleep RINGBUSD [MESSAGES]\n");
        return 2;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        sleeper(&daemon, page);
    }
    while (atomic_load(&page->opened) == 0) {
        pause_before_next();
    }
    options.ping_interval_ms = 60000;
    struct ringbus *bus = bench_open(&daemon, &options, PATH_SLEEPER, &to);
    int failed = bus == NULL || send_each(bus, &to, page, 20) != 0;
    (void)getppid();
    failed = failed || send_each(bus, &to, page, count) != 0;
    (void)getppid();
    (void)printf("%llu messages, %llu out of order\n",
                 (unsigned long long)atomic_load(&page->received),
                 (unsigned long long)atomic_load(&page->errors));
    failed = failed || atomic_load(&page->errors) != 0;
    (void)ringbus_close(bus, 0);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    bench_daemon_stop(&daemon);
    return failed;
}
