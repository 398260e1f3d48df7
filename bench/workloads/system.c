/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/system.c - what the machine does by itself (memcpy, a clock read, a system
 * call, a wake-up that finds nobody asleep), and the system calls that messages make, counted by
 * strace. What a wake-up takes until the other side runs: bare-eventfd and bare-futex.
 */
#include "bench/run.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCKS 50U

static void read_clock(int fd)
{
    (void)fd;
    (void)bench_now_ns();
}

static void call_system(int fd)
{
    (void)fd;
    (void)syscall(SYS_getppid);
}

static void write_eventfd(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static void wake_futex(int fd)
{
    static uint32_t word;
    (void)fd;
    (void)syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

struct call {
    const char *text;
    void (*call)(int fd);
};

static const struct call calls[] = {{"clock read", read_clock},
                                    {"system call", call_system},
                                    {"eventfd write", write_eventfd},
                                    {"futex wake", wake_futex}};

static int time_call(struct bench_run *run, const char *workload, const struct call *call)
{
    double ns[BLOCKS];
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return -1;
    }
    for (unsigned k = 0; k < BLOCKS; k++) {
        const uint64_t start = bench_now_ns();
        for (unsigned j = 0; j < 1000; j++) {
            call->call(fd);
        }
        ns[k] = (double)(bench_now_ns() - start) / 1000;
    }
    (void)close(fd);
    bench_run_value(run, workload, "machine", call->text, 0, "busy", "ns", ns, BLOCKS);
    return 0;
}

static int machine(struct bench_run *run, const struct bench_workload *workload)
{
    const size_t sizes[] = {64, 1024, 65536, 1U << 20};
    const char *const texts[] = {"memcpy 64 B", "memcpy 1 KiB", "memcpy 64 KiB", "memcpy 1 MiB"};
    double ns[BLOCKS];
    unsigned char *a = calloc(1, 1U << 20);
    unsigned char *b = calloc(1, 1U << 20);
    int r = a != NULL && b != NULL ? 0 : -1;
    for (unsigned i = 0; r == 0 && i < 4; i++) {
        const unsigned rounds = sizes[i] < 65536 ? 4000 : 100;
        for (unsigned k = 0; k < BLOCKS; k++) {
            const uint64_t start = bench_now_ns();
            for (unsigned j = 0; j < rounds; j++) {
                memcpy(b, a, sizes[i]);
                __asm__ volatile("" : : "r"(b) : "memory");
            }
            ns[k] = (double)(bench_now_ns() - start) / rounds;
        }
        bench_run_value(run, workload->name, "machine", texts[i], 0, "busy", "ns", ns, BLOCKS);
    }
    for (unsigned i = 0; r == 0 && i < sizeof calls / sizeof calls[0]; i++) {
        r = time_call(run, workload->name, &calls[i]);
    }
    free(a);
    free(b);
    return r;
}

/* The first @p n figures that one of the scripts prints. 0; -1. */
static int run_script(const struct bench_run *run,
                      const char *script,
                      const char *program,
                      unsigned messages,
                      double *out,
                      unsigned n)
{
    char self[256];
    char command[1024];
    unsigned got = 0;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        return -1;
    }
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    (void)snprintf(command, sizeof command, "'%s/%s' '%s/%s' '%s' %u 2>/dev/null",
                   run->options.scripts, script, self, program, run->options.ringbusd, messages);
    FILE *in = popen(command, "r");
    while (in != NULL && got < n && fscanf(in, "%lf", &out[got]) == 1) {
        got++;
    }
    if (in != NULL) {
        (void)pclose(in);
    }
    return got == n ? 0 : -1;
}

static int syscalls(struct bench_run *run, const struct bench_workload *workload)
{
    double busy = 0;
    double asleep[2] = {0, 0};
    const unsigned messages = run->options.smoke ? 100000 : 10000000;
    if (run->options.scripts == NULL || system("command -v strace >/dev/null 2>&1") != 0) {
        (void)printf("  left out: no strace\n");
        return 0;
    }
    if (run_script(run, "count_syscalls.sh", "bench_busy", messages, &busy, 1) != 0 ||
        run_script(run, "count_syscalls_asleep.sh", "bench_asleep", run->options.smoke ? 50 : 1000,
                   asleep, 2) != 0) {
        return -1;
    }
    busy /= messages;
    bench_run_value(run, workload->name, "ringbus", "48 B", 0, "busy", "", &busy, 1);
    bench_run_value(run, workload->name, "ringbus", "48 B send", 0, "sleep", "", &asleep[0], 1);
    bench_run_value(run, workload->name, "ringbus", "48 B take", 0, "sleep", "", &asleep[1], 1);
    return 0;
}

const struct bench_workload bench_machine = {"machine", "what the machine does by itself", 1, false,
                                             machine};
const struct bench_workload bench_syscalls = {
    "syscalls", "system calls of a message: both sides busy; to a receiver that sleeps", 1, true,
    syscalls};
