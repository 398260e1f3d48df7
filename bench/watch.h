/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_WATCH_H
#define RINGBUS_BENCH_WATCH_H
/*
 * bench/watch.h - tells processes that wait for something that will not come from processes
 * that were kept from running. On a machine with other work a side may get no core for seconds,
 * so time alone says nothing about lost messages.
 *
 * A process has a chance while it runs or sleeps of its own accord; none while it is runnable
 * and does not run. A group is stuck when each of its processes has had eight seconds of chance
 * and nothing went forward.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_WATCH_MAX 24U

struct bench_watch {
    pid_t pids[BENCH_WATCH_MAX];
    unsigned count;
    bool begun; /* there is a look to compare with */
    uint64_t progress;
    uint64_t looked_ns;
    uint64_t cpu_ns[BENCH_WATCH_MAX];
    uint64_t chance_ns[BENCH_WATCH_MAX];
};

/** Nobody yet. */
void bench_watch_init(struct bench_watch *watch);
/** @p pid  up to 0: nobody */
void bench_watch_add(struct bench_watch *watch, pid_t pid);
/** Before each wait: what was before does not count. Takes next to no time. */
void bench_watch_begin(struct bench_watch *watch);
/** Call it again and again while waiting; it looks at most ten times a second. @p progress is any
 * figure that changes when something goes forward. Also true when the run is to stop. */
bool bench_watch_stuck(struct bench_watch *watch, uint64_t progress);

#endif
