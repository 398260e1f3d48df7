/* SPDX-License-Identifier: Apache-2.0 */
#include "support/machine.h"

#include "support/bus.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CORES_MAX    16U
#define LOOK_NS      250000U
#define PAUSE_NS_MIN 500000U
#define PAUSES_MAX   16384U

bool machine_full(void)
{
    const char *text = getenv("RINGBUS_TEST_FULL"); /* NOLINT(concurrency-mt-unsafe) */
    return text != NULL && text[0] != '\0';
}

uint64_t machine_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void machine_spin_ns(uint64_t ns)
{
    for (const uint64_t end_ns = machine_now_ns() + ns; machine_now_ns() < end_ns;) {
    }
}

unsigned machine_cores(int *cores, unsigned max)
{
    cpu_set_t set;
    unsigned count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &set)) {
            if (count < max) {
                cores[count] = (int)core;
            }
            count++;
        }
    }
    return count;
}

int machine_pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)core, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool read_proc(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const ssize_t n = read(fd, text, size - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool read_schedstat(pid_t pid, unsigned long long *cpu_ns, unsigned long long *delay_ns)
{
    char text[128];
    return read_proc(pid, "schedstat", text, sizeof text) &&
           sscanf(text, "%llu %llu", cpu_ns, delay_ns) == 2;
}

uint64_t machine_run_delay_ns(pid_t pid)
{
    unsigned long long cpu_ns = 0;
    unsigned long long delay_ns = 0;
    return read_schedstat(pid, &cpu_ns, &delay_ns) ? delay_ns : 0;
}

uint64_t machine_cpu_ns(pid_t pid)
{
    unsigned long long cpu_ns = 0;
    unsigned long long delay_ns = 0;
    return read_schedstat(pid, &cpu_ns, &delay_ns) ? cpu_ns : 0;
}

char machine_state(pid_t pid)
{
    char text[512];
    if (!read_proc(pid, "stat", text, sizeof text)) {
        return 0;
    }
    const char *end = strrchr(text, ')');
    return end != NULL && strlen(end) > 2 ? end[2] : (char)0;
}

/* ---- the watch ------------------------------------------------------------------------------- */

struct watch {
    _Atomic uint64_t count;
    struct {
        uint64_t from_ns;
        uint64_t to_ns;
    } pauses[PAUSES_MAX];
};

static struct watch *watches; /* one for each core, shared with its watcher */
static pid_t watchers[CORES_MAX];
static unsigned watch_count;

static _Noreturn void watch_core(struct watch *watch, int core)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    const struct sched_param first = {.sched_priority = 2}; /* tests use 1 */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)machine_pin(core);
    (void)sched_setscheduler(0, SCHED_FIFO, &first); /* or as everybody else */
    for (uint64_t last_ns = machine_now_ns();;) {
        (void)nanosleep(&look, NULL);
        const uint64_t now_ns = machine_now_ns();
        const uint64_t n = watch->count;
        if (now_ns - last_ns > LOOK_NS + PAUSE_NS_MIN && n < PAUSES_MAX) {
            watch->pauses[n].from_ns = last_ns + LOOK_NS;
            watch->pauses[n].to_ns = now_ns;
            atomic_store(&watch->count, n + 1);
        }
        last_ns = now_ns;
    }
}

void machine_watch_start(void)
{
    int cores[CORES_MAX];
    const unsigned count = machine_cores(cores, CORES_MAX);
    const size_t size = CORES_MAX * sizeof *watches;
    watch_count = count < CORES_MAX ? count : CORES_MAX;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    watches = memory;
    for (unsigned i = 0; i < watch_count; i++) {
        watchers[i] = fork();
        CHECK(watchers[i] >= 0);
        if (watchers[i] == 0) {
            watch_core(&watches[i], cores[i]);
        }
    }
}

uint64_t machine_watch_stop(void)
{
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < watch_count; i++) {
        child_kill(watchers[i]);
        for (uint64_t k = 0; k < atomic_load(&watches[i].count); k++) {
            const uint64_t ns = watches[i].pauses[k].to_ns - watches[i].pauses[k].from_ns;
            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
    }
    (void)munmap(watches, CORES_MAX * sizeof *watches);
    watches = NULL;
    watch_count = 0;
    return longest_ns;
}

uint64_t machine_paused_ns(uint64_t from_ns, uint64_t to_ns)
{
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < watch_count; i++) {
        for (uint64_t k = atomic_load(&watches[i].count); k-- > 0;) {
            const uint64_t start_ns = watches[i].pauses[k].from_ns;
            const uint64_t end_ns = watches[i].pauses[k].to_ns;
            if (end_ns <= from_ns) {
                break; /* the earlier ones end sooner */
            }
            const uint64_t low_ns = start_ns > from_ns ? start_ns : from_ns;
            const uint64_t high_ns = end_ns < to_ns ? end_ns : to_ns;
            sum_ns += high_ns > low_ns ? high_ns - low_ns : 0;
        }
    }
    return sum_ns;
}
