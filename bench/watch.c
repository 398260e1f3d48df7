/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/watch.h"

#include "bench/bench.h"
#include "bench/stop.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_NS     UINT64_C(100000000)
#define PATIENCE_NS UINT64_C(8000000000)

void bench_watch_init(struct bench_watch *watch)
{
    memset(watch, 0, sizeof *watch);
}

/* 0 when it has ended. */
static uint64_t process_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec spent;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0) {
        return 0;
    }
    return (uint64_t)spent.tv_sec * UINT64_C(1000000000) + (uint64_t)spent.tv_nsec;
}

void bench_watch_add(struct bench_watch *watch, pid_t pid)
{
    if (pid > 0 && watch->count < BENCH_WATCH_MAX) {
        watch->pids[watch->count++] = pid;
    }
}

void bench_watch_begin(struct bench_watch *watch)
{
    watch->begun = false;
    watch->looked_ns = bench_now_ns();
    memset(watch->chance_ns, 0, sizeof watch->chance_ns);
}

static bool thread_wants_to_run(pid_t pid, const char *thread)
{
    char path[96];
    char line[256];
    bool wants = false;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, thread);
    FILE *in = fopen(path, "r");
    if (in != NULL && fgets(line, sizeof line, in) != NULL) {
        const char *name_end = strrchr(line, ')'); /* the name may hold anything */
        wants =
            name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D');
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return wants;
}

/* Libraries of peers have threads of their own. */
static bool wants_to_run(pid_t pid)
{
    char path[48];
    bool wants = false;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && !wants && (entry = readdir(dir)) != NULL;) {
        wants = entry->d_name[0] != '.' && thread_wants_to_run(pid, entry->d_name);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return wants;
}

bool bench_watch_stuck(struct bench_watch *watch, uint64_t progress)
{
    const uint64_t now = bench_now_ns();
    uint64_t wall = now - watch->looked_ns;
    bool stuck = watch->count > 0;
    if (bench_stopping()) {
        return true;
    }
    if (wall < LOOK_NS) {
        return false;
    }
    /* When this process was kept from looking, so were they, perhaps. */
    wall = wall > 2 * LOOK_NS ? 2 * LOOK_NS : wall;
    watch->looked_ns = now;
    for (unsigned i = 0; i < watch->count; i++) {
        const uint64_t cpu = process_cpu_ns(watch->pids[i]);
        const uint64_t ran = cpu > watch->cpu_ns[i] ? cpu - watch->cpu_ns[i] : 0;
        watch->cpu_ns[i] = cpu;
        if (!watch->begun || progress != watch->progress) {
            watch->chance_ns[i] = 0;
        } else {
            watch->chance_ns[i] += wants_to_run(watch->pids[i]) ? ran : wall;
        }
        stuck = stuck && watch->chance_ns[i] >= PATIENCE_NS;
    }
    watch->begun = true;
    watch->progress = progress;
    return stuck;
}
