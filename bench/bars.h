/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_BARS_H
#define RINGBUS_BENCH_BARS_H
/*
 * bench/bars.h - what ringbus is to reach, in one table.
 */
#include "bench/run.h"

struct bench_bar {
    const char *workload;
    const char *contender;
    const char *param;
    const char *mode;
    bool ratio;    /**< of the ratio, else of the value */
    bool at_least; /**< else at most */
    double near;
    double far; /**< the same where it does not say otherwise */
    const char *text;
};

extern const struct bench_bar bench_bars[];
extern const unsigned bench_bar_count;

/** The bar of a figure, or NULL. */
const struct bench_bar *bench_bar_find(const struct bench_figure *figure);
double bench_bar_bound(const struct bench_bar *bar, const struct bench_figure *figure);
bool bench_bar_met(const struct bench_bar *bar, const struct bench_figure *figure);

#endif
