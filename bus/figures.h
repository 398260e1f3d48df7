/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_FIGURES_H
#define RINGBUS_BUS_FIGURES_H
/*
 * bus/figures.h - how calls ended and how long they took, summed over callers: since the start, and
 * over the last seconds. Pure: time is an argument; memory is the caller's.
 */
#include "bus/histogram.h"

/** What has come since a look at one caller. */
struct rbi_figures_growth {
    uint32_t ok;
    uint32_t failed;
    uint32_t lost;
    uint32_t slow; /* of the ok ones */
    uint64_t latency_ns;
    struct rbi_histogram_growth latency;
};

/** A sum. Saturates. */
struct rbi_figures {
    uint64_t ok;
    uint64_t failed;
    uint64_t lost;
    uint64_t slow;
    uint64_t latency_ns;
    struct rbi_histogram latency; /* of all calls, however they ended */
};

void rbi_figures_add(struct rbi_figures *figures, const struct rbi_figures_growth *growth);
uint64_t rbi_figures_calls(const struct rbi_figures *figures);

#define RBI_FIGURES_STEP_NS UINT64_C(2000000000)
#define RBI_FIGURES_STEPS   5U

/** The last 10 s, in steps of 2 s of which the newest is under way. Zeroed: nothing yet. */
struct rbi_figures_window {
    struct {
        uint64_t number; /* time of its begin, in steps */
        struct rbi_figures figures;
    } steps[RBI_FIGURES_STEPS];
};

/** @param now_ns  never less than at an earlier call */
void rbi_figures_window_add(struct rbi_figures_window *window,
                            uint64_t now_ns,
                            const struct rbi_figures_growth *growth);
/**
 * Sums what is in the window.
 * @return ns that the sum is about: 8 s and what of the newest step is over
 */
uint64_t rbi_figures_window_sum(const struct rbi_figures_window *window,
                                uint64_t now_ns,
                                struct rbi_figures *out);

#endif
