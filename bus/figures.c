/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/figures.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

void rbi_figures_add(struct rbi_figures *figures, const struct rbi_figures_growth *growth)
{
    figures->ok = sum(figures->ok, growth->ok);
    figures->failed = sum(figures->failed, growth->failed);
    figures->lost = sum(figures->lost, growth->lost);
    figures->slow = sum(figures->slow, growth->slow);
    figures->latency_ns = sum(figures->latency_ns, growth->latency_ns);
    rbi_histogram_grow(&figures->latency, &growth->latency);
}

static void figures_merge(struct rbi_figures *figures, const struct rbi_figures *other)
{
    figures->ok = sum(figures->ok, other->ok);
    figures->failed = sum(figures->failed, other->failed);
    figures->lost = sum(figures->lost, other->lost);
    figures->slow = sum(figures->slow, other->slow);
    figures->latency_ns = sum(figures->latency_ns, other->latency_ns);
    rbi_histogram_merge(&figures->latency, &other->latency);
}

uint64_t rbi_figures_calls(const struct rbi_figures *figures)
{
    return sum(figures->ok, sum(figures->failed, figures->lost));
}

void rbi_figures_window_add(struct rbi_figures_window *window,
                            uint64_t now_ns,
                            const struct rbi_figures_growth *growth)
{
    const uint64_t number = now_ns / RBI_FIGURES_STEP_NS;
    const uint32_t at = (uint32_t)(number % RBI_FIGURES_STEPS);
    if (window->steps[at].number != number) {
        memset(&window->steps[at], 0, sizeof window->steps[at]);
        window->steps[at].number = number;
    }
    rbi_figures_add(&window->steps[at].figures, growth);
}

uint64_t rbi_figures_window_sum(const struct rbi_figures_window *window,
                                uint64_t now_ns,
                                struct rbi_figures *out)
{
    const uint64_t number = now_ns / RBI_FIGURES_STEP_NS;
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < RBI_FIGURES_STEPS; i++) {
        if (window->steps[i].number + RBI_FIGURES_STEPS > number) {
            figures_merge(out, &window->steps[i].figures);
        }
    }
    return (RBI_FIGURES_STEPS - 1) * RBI_FIGURES_STEP_NS + now_ns % RBI_FIGURES_STEP_NS;
}
