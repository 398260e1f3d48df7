/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EXAMPLES_HISTOGRAM_H
#define RINGBUS_EXAMPLES_HISTOGRAM_H
/*
 * histogram.h - times in buckets that grow with them: 64 to each doubling, so that a
 * percentile is at most 1.6 % off.
 */
#include <stdint.h>

#define HISTOGRAM_BUCKETS (64U * 59U)

struct histogram {
    uint64_t count;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t value)
{
    if (value < 64) {
        return (unsigned)value;
    }
    unsigned shift = 57U - (unsigned)__builtin_clzll(value); /* leaves 64..127 */
    return shift * 64U + (unsigned)(value >> shift);
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->buckets[histogram_bucket(value)]++;
    histogram->count++;
}

/** Lower end of the bucket in which the share lies; 0 when there is nothing. */
static inline uint64_t histogram_percentile(const struct histogram *histogram, double share)
{
    uint64_t left = (uint64_t)(share * (double)histogram->count);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->buckets[i] > left) {
            return i < 64 ? i : (uint64_t)(i % 64 + 64) << (i / 64 - 1);
        }
        left -= histogram->buckets[i];
    }
    return 0;
}

#endif
