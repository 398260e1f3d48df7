/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/lines.h"

#include "measure/quantiles.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So seldom that it does not show, so often that nobody waits for it. */
#define LOOKS_PER_STOP 65536U
/* A sleeper looks for stop this often. */
#define NAP_NS 100000000L

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static bool stopped(const struct rbi_lines *lines)
{
    return atomic_load_explicit(&lines->stop, memory_order_relaxed) != 0;
}

bool rbi_lines_meet(struct rbi_lines *lines, int side, unsigned looks)
{
    const uint64_t mine = atomic_load_explicit(&lines->barrier[side], memory_order_relaxed) + 1;
    atomic_store_explicit(&lines->barrier[side], mine, memory_order_release);
    for (unsigned i = 0; atomic_load_explicit(&lines->barrier[!side], memory_order_acquire) < mine;
         i++) {
        if (i >= looks) {
            if (stopped(lines)) {
                return false;
            }
            (void)sched_yield(); /* the other side, or a helper of it, may need this core */
        }
    }
    return !stopped(lines);
}

static inline bool
await(const struct rbi_lines *lines, const _Atomic(uint64_t) *word, uint64_t value)
{
    for (unsigned i = 1; atomic_load_explicit(word, memory_order_acquire) != value; i++) {
        if (i % LOOKS_PER_STOP == 0 && stopped(lines)) {
            return false;
        }
    }
    return true;
}

double rbi_lines_round_trips(struct rbi_lines *lines, int side, unsigned rounds)
{
    /* Read where nobody counts yet: before the second meeting. */
    if (!rbi_lines_meet(lines, side, RBI_LINES_LOOKS)) {
        return 0;
    }
    const uint64_t base = atomic_load_explicit(&lines->pong, memory_order_relaxed);
    if (!rbi_lines_meet(lines, side, RBI_LINES_LOOKS)) {
        return 0;
    }
    const uint64_t start = now_ns();
    for (uint64_t i = base + 1; i <= base + rounds; i++) {
        if (side == 0) {
            atomic_store_explicit(&lines->ping, i, memory_order_release);
            if (!await(lines, &lines->pong, i)) {
                return 0;
            }
        } else {
            if (!await(lines, &lines->ping, i)) {
                return 0;
            }
            atomic_store_explicit(&lines->pong, i, memory_order_release);
        }
    }
    return (double)(now_ns() - start) / rounds;
}

/* @return now */
static uint64_t spin_for(uint64_t ns)
{
    const uint64_t end = now_ns() + ns;
    uint64_t now = now_ns();
    while (now < end) {
        now = now_ns();
    }
    return now;
}

static void wake(_Atomic(uint32_t) *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool sleep_until(const struct rbi_lines *lines, _Atomic(uint32_t) *word, uint32_t value)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (;;) {
        const uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen == value) {
            return true;
        }
        if (stopped(lines)) {
            return false;
        }
        (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &nap, NULL, 0);
    }
}

double
rbi_lines_round_trips_asleep(struct rbi_lines *lines, int side, unsigned rounds, uint64_t gap_ns)
{
    double samples[RBI_LINES_ASLEEP_MAX];
    _Atomic(uint32_t) *mine = &lines->asleep[side];
    _Atomic(uint32_t) *other = &lines->asleep[!side];
    if (!rbi_lines_meet(lines, side, 0)) {
        return 0;
    }
    const uint32_t base = atomic_load_explicit(mine, memory_order_relaxed);
    if (!rbi_lines_meet(lines, side, 0)) {
        return 0;
    }
    for (uint32_t i = 1; i <= rounds; i++) {
        const uint64_t start = side == 0 && gap_ns > 0 ? spin_for(gap_ns) : now_ns();
        if (side == 0) {
            wake(mine, base + i);
        }
        if (!sleep_until(lines, other, base + i)) {
            return 0;
        }
        if (side == 1) {
            wake(mine, base + i);
        }
        samples[i - 1] = (double)(now_ns() - start);
    }
    return side == 0 ? rbi_quantile(samples, rounds, 0.5) : 0;
}
