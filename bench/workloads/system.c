/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/system.c - what the machine does by itself (memcpy, a clock read, a system
 * call), and the system calls that busy messages make, counted by strace.
 */
#include "bench/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCKS 50U

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
    for (unsigned k = 0; r == 0 && k < BLOCKS; k++) {
        const uint64_t start = bench_now_ns();
        for (unsigned j = 0; j < 1000; j++) {
            (void)bench_now_ns();
        }
        ns[k] = (double)(bench_now_ns() - start) / 1000;
    }
    bench_run_value(run, workload->name, "machine", "clock read", 0, "busy", "ns", ns, BLOCKS);
    for (unsigned k = 0; r == 0 && k < BLOCKS; k++) {
        const uint64_t start = bench_now_ns();
        for (unsigned j = 0; j < 1000; j++) {
            (void)syscall(SYS_getppid);
        }
        ns[k] = (double)(bench_now_ns() - start) / 1000;
    }
    bench_run_value(run, workload->name, "machine", "system call", 0, "busy", "ns", ns, BLOCKS);
    free(a);
    free(b);
    return r;
}

static int syscalls(struct bench_run *run, const struct bench_workload *workload)
{
    char self[256];
    char command[1024];
    double calls = -1;
    const unsigned messages = run->options.smoke ? 100000 : 10000000;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (run->options.scripts == NULL || length <= 0 ||
        system("command -v strace >/dev/null 2>&1") != 0) {
        (void)printf("  left out: no strace\n");
        return 0;
    }
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    (void)snprintf(command, sizeof command,
                   "'%s/count_syscalls.sh' '%s/bench_busy' '%s' %u 2>/dev/null",
                   run->options.scripts, self, run->options.ringbusd, messages);
    FILE *in = popen(command, "r");
    if (in == NULL || fscanf(in, "%lf", &calls) != 1) {
        calls = -1;
    }
    if (in != NULL) {
        (void)pclose(in);
    }
    if (calls < 0) {
        return -1;
    }
    calls /= messages;
    bench_run_value(run, workload->name, "ringbus", "48 B", 0, "busy", "", &calls, 1);
    return 0;
}

const struct bench_workload bench_machine = {"machine", "what the machine does by itself", 1, false,
                                             machine};
const struct bench_workload bench_syscalls = {
    "syscalls", "system calls of a message, both sides busy", 1, true, syscalls};
