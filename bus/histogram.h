/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_HISTOGRAM_H
#define RINGBUS_BUS_HISTOGRAM_H
/*
 * bus/histogram.h - how many calls took how long: log-linear buckets, as HdrHistogram has them.
 * Each power of two from 1.024 us to 137 s is divided into 32 equal buckets, and so is what lies
 * below it; a time is known to 1.6 % then, and below a microsecond to 16 ns. What is longer counts
 * as the longest. Histograms of different callers are summed bucket by bucket. Pure.
 *
 * Callers count in memory of their own (shm/outcome.h), the daemon takes what has come since its
 * last look. What callers say is untrusted: sums stay at their largest value instead of wrapping.
 */
#include "shm/base.h"
#include "shm/layout.h"

#define RBI_HISTOGRAM_SUB      32U /* buckets of one power of two */
#define RBI_HISTOGRAM_OCTAVES  28U /* the first is all that is below RBI_HISTOGRAM_FIRST_NS */
#define RBI_HISTOGRAM_BUCKETS  (RBI_HISTOGRAM_SUB * RBI_HISTOGRAM_OCTAVES)
#define RBI_HISTOGRAM_FIRST_NS UINT64_C(1024)
/** Longest time that has a bucket of its own size. */
#define RBI_HISTOGRAM_MAX_NS ((RBI_HISTOGRAM_FIRST_NS << (RBI_HISTOGRAM_OCTAVES - 1)) - 1)
_Static_assert(RBI_HISTOGRAM_BUCKETS == RBI_LATENCY_BUCKETS, "what callers count");

/** A sum over callers and time. */
struct rbi_histogram {
    uint64_t total;
    uint64_t counts[RBI_HISTOGRAM_BUCKETS];
};

/** What has come since a look. */
struct rbi_histogram_growth {
    uint32_t counts[RBI_HISTOGRAM_BUCKETS];
};

/** Bucket of a time; no branch and no division: callers ask for each reply. */
static inline uint32_t rbi_histogram_bucket(uint64_t ns)
{
    const uint64_t capped = ns < RBI_HISTOGRAM_MAX_NS ? ns : RBI_HISTOGRAM_MAX_NS;
    /* 5 in the first two powers of two, whose buckets are 32 ns wide, one more in each after. */
    const uint32_t shift = 58U - (uint32_t)__builtin_clzll(capped | RBI_HISTOGRAM_FIRST_NS);
    return (shift - 5U) * RBI_HISTOGRAM_SUB + (uint32_t)(capped >> shift);
}

/** Shortest time of a bucket. @param bucket  at most RBI_HISTOGRAM_BUCKETS: the end of the last */
uint64_t rbi_histogram_begin_ns(uint32_t bucket);
/** Adds so many calls of one time. */
void rbi_histogram_add(struct rbi_histogram *histogram, uint64_t ns, uint64_t calls);
void rbi_histogram_grow(struct rbi_histogram *histogram, const struct rbi_histogram_growth *growth);
void rbi_histogram_merge(struct rbi_histogram *histogram, const struct rbi_histogram *other);
/**
 * What a caller has counted since the last look, which @p last holds: it becomes what @p now is.
 * Counts that have become smaller have begun anew, or wrapped around: they count again from then.
 */
void rbi_histogram_since(uint32_t *last, const rbi_au32 *now, struct rbi_histogram_growth *out);
/**
 * The time that so many of a million calls do not exceed: the middle of the bucket of that call.
 * @param ppm  500000 is the median; 1,000,000 at most
 * @return ns; 0: there are no calls
 */
uint64_t rbi_histogram_quantile_ns(const struct rbi_histogram *histogram, uint32_t ppm);
/** Calls shorter than a power of two. @param octave  0: 1024 ns; RBI_HISTOGRAM_OCTAVES - 1: all */
uint64_t rbi_histogram_below(const struct rbi_histogram *histogram, uint32_t octave);

#endif
