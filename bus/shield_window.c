/* SPDX-License-Identifier: Apache-2.0 */
/* bus/shield_window.c - two rings of buckets; what time passes over is zeroed when next seen. */
#include "bus/shield_window.h"

#include <string.h>

static uint32_t add_saturated(uint32_t a, uint32_t b)
{
    return a + b < a ? UINT32_MAX : a + b;
}

void rbi_tally_add(struct rbi_tally *sum, const struct rbi_tally *more)
{
    sum->ok = add_saturated(sum->ok, more->ok);
    sum->fail = add_saturated(sum->fail, more->fail);
    sum->slow = add_saturated(sum->slow, more->slow);
    sum->local = add_saturated(sum->local, more->local);
}

void rbi_window_clear(struct rbi_outcome_window *window, uint64_t step)
{
    memset(window, 0, sizeof *window);
    window->step = step;
}

/** Zeroes the buckets of the numbers after @p from up to @p to, each at most once. */
static void pass_over(struct rbi_tally *ring, uint32_t size, uint64_t from, uint64_t to)
{
    const uint64_t count = rbi_min_u64(to - from, size);
    for (uint64_t i = 0; i < count; i++) {
        ring[(to - i) % size] = (struct rbi_tally){0};
    }
}

static void roll(struct rbi_outcome_window *window, uint64_t step)
{
    if (step <= window->step) {
        return;
    }
    pass_over(window->fine, RBI_WINDOW_FINE, window->step, step);
    pass_over(window->coarse, RBI_WINDOW_COARSE, window->step / RBI_WINDOW_PER_COARSE,
              step / RBI_WINDOW_PER_COARSE);
    window->step = step;
}

void rbi_window_add(struct rbi_outcome_window *window, uint64_t step, const struct rbi_tally *tally)
{
    roll(window, step);
    rbi_tally_add(&window->fine[window->step % RBI_WINDOW_FINE], tally);
    rbi_tally_add(&window->coarse[window->step / RBI_WINDOW_PER_COARSE % RBI_WINDOW_COARSE], tally);
}

struct sums {
    uint64_t ok;
    uint64_t fail;
    uint64_t slow;
    uint64_t local;
};

static void add_run(struct sums *sums, const struct rbi_tally *first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sums->ok += first[i].ok;
        sums->fail += first[i].fail;
        sums->slow += first[i].slow;
        sums->local += first[i].local;
    }
}

/** The @p count buckets up to number @p newest: in the ring one run or two. */
static struct rbi_tally
sum_newest(const struct rbi_tally *ring, uint32_t size, uint64_t newest, uint32_t count)
{
    const uint32_t end = (uint32_t)(newest % size) + 1;
    struct sums sums = {0};
    if (count <= end) {
        add_run(&sums, &ring[end - count], count);
    } else {
        /* Numbers below 0 are buckets that nothing was counted in yet. */
        add_run(&sums, ring, end);
        add_run(&sums, &ring[size - (count - end)], count - end);
    }
    return (struct rbi_tally){.ok = (uint32_t)rbi_min_u64(sums.ok, UINT32_MAX),
                              .fail = (uint32_t)rbi_min_u64(sums.fail, UINT32_MAX),
                              .slow = (uint32_t)rbi_min_u64(sums.slow, UINT32_MAX),
                              .local = (uint32_t)rbi_min_u64(sums.local, UINT32_MAX)};
}

struct rbi_tally rbi_window_sum(struct rbi_outcome_window *window, uint64_t step, uint32_t ms)
{
    roll(window, step);
    if (ms <= RBI_WINDOW_FINE_MS) {
        const uint32_t count = (ms + RBI_WINDOW_STEP_MS - 1) / RBI_WINDOW_STEP_MS;
        return sum_newest(window->fine, RBI_WINDOW_FINE, window->step, count);
    }
    const uint32_t bucket_ms = RBI_WINDOW_PER_COARSE * RBI_WINDOW_STEP_MS;
    const uint32_t count =
        ms >= RBI_WINDOW_MAX_MS ? RBI_WINDOW_COARSE : (ms + bucket_ms - 1) / bucket_ms;
    return sum_newest(window->coarse, RBI_WINDOW_COARSE, window->step / RBI_WINDOW_PER_COARSE,
                      count);
}
