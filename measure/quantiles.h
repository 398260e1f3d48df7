/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_MEASURE_QUANTILES_H
#define RINGBUS_MEASURE_QUANTILES_H
/*
 * measure/quantiles.h - quantiles of a few values, and of very many that are only counted: a
 * histogram of 32 steps in each power of two, 1 ns to 17 s, every value within 3 %.
 */
#include <stdint.h>

/** Sorts; the value that the fraction @p q lies below. 0 when there is none. */
double rbi_quantile(double *values, unsigned count, double q);

#define RBI_HISTOGRAM_STEPS 32U
#define RBI_HISTOGRAM_WORDS (31U * RBI_HISTOGRAM_STEPS)

/** Which word of a histogram counts the value. */
static inline unsigned rbi_histogram_index(uint64_t ns)
{
    if (ns < 2 * RBI_HISTOGRAM_STEPS) {
        return (unsigned)ns;
    }
    const unsigned shift = 63U - (unsigned)__builtin_clzll(ns) - 5U;
    const unsigned index =
        (shift + 1) * RBI_HISTOGRAM_STEPS + (unsigned)(ns >> shift) - RBI_HISTOGRAM_STEPS;
    return index < RBI_HISTOGRAM_WORDS ? index : RBI_HISTOGRAM_WORDS - 1;
}

/** The value below which the fraction @p q lies; 0 when empty. */
double rbi_histogram_quantile(const uint32_t *histogram, double q);
uint64_t rbi_histogram_count(const uint32_t *histogram);

#endif
