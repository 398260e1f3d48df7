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

static struct rbi_tally
sum_newest(const struct rbi_tally *ring, uint32_t size, uint64_t newest, uint64_t count)
{
    struct rbi_tally sum = {0};
    for (uint64_t i = 0; i < count; i++) {
        /* Numbers below 0 wrap to buckets that nothing was counted in yet. */
        rbi_tally_add(&sum, &ring[(newest + size - i) % size]);
    }
    return sum;
}

struct rbi_tally rbi_window_sum(struct rbi_outcome_window *window, uint64_t step, uint32_t ms)
{
    roll(window, step);
    if (ms <= RBI_WINDOW_FINE_MS) {
        const uint32_t count = (ms + RBI_WINDOW_STEP_MS - 1) / RBI_WINDOW_STEP_MS;
        return sum_newest(window->fine, RBI_WINDOW_FINE, window->step, count);
    }
    const uint32_t bucket_ms = RBI_WINDOW_PER_COARSE * RBI_WINDOW_STEP_MS;
    const uint64_t count =
        rbi_min_u64(((uint64_t)ms + bucket_ms - 1) / bucket_ms, RBI_WINDOW_COARSE);
    return sum_newest(window->coarse, RBI_WINDOW_COARSE, window->step / RBI_WINDOW_PER_COARSE,
                      count);
}
