/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/quantiles.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double rbi_quantile(double *values, unsigned count, double q)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof *values, compare);
    return values[(unsigned)((double)(count - 1) * q + 0.5)];
}

uint64_t rbi_histogram_count(const uint32_t *histogram)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < RBI_HISTOGRAM_WORDS; i++) {
        total += histogram[i];
    }
    return total;
}

/* Middle of a step. */
static double value_of(unsigned index)
{
    if (index < 2 * RBI_HISTOGRAM_STEPS) {
        return index;
    }
    const unsigned shift = index / RBI_HISTOGRAM_STEPS - 1;
    const uint64_t low = ((uint64_t)(index % RBI_HISTOGRAM_STEPS) + RBI_HISTOGRAM_STEPS) << shift;
    const uint64_t half = (UINT64_C(1) << shift) / 2;
    return (double)(low + half);
}

double rbi_histogram_quantile(const uint32_t *histogram, double q)
{
    const uint64_t total = rbi_histogram_count(histogram);
    const double want = (double)total * q;
    uint64_t seen = 0;
    for (unsigned i = 0; i < RBI_HISTOGRAM_WORDS; i++) {
        seen += histogram[i];
        if (total > 0 && (double)seen >= want && seen > 0) {
            return value_of(i);
        }
    }
    return 0;
}
