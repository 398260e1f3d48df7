/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/histogram.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

uint64_t rbi_histogram_begin_ns(uint32_t bucket)
{
    /* The buckets of the first two powers of two are of one size. */
    const uint32_t octave = bucket / RBI_HISTOGRAM_SUB;
    const uint32_t shift = octave > 1 ? octave - 1 : 0;
    return (uint64_t)(bucket - shift * RBI_HISTOGRAM_SUB) << (5 + shift);
}

void rbi_histogram_add(struct rbi_histogram *histogram, uint64_t ns, uint64_t calls)
{
    uint64_t *count = &histogram->counts[rbi_histogram_bucket(ns)];
    *count = sum(*count, calls);
    histogram->total = sum(histogram->total, calls);
}

void rbi_histogram_grow(struct rbi_histogram *histogram, const struct rbi_histogram_growth *growth)
{
    for (uint32_t i = 0; i < RBI_HISTOGRAM_BUCKETS; i++) {
        histogram->counts[i] = sum(histogram->counts[i], growth->counts[i]);
        histogram->total = sum(histogram->total, growth->counts[i]);
    }
}

void rbi_histogram_merge(struct rbi_histogram *histogram, const struct rbi_histogram *other)
{
    for (uint32_t i = 0; i < RBI_HISTOGRAM_BUCKETS; i++) {
        histogram->counts[i] = sum(histogram->counts[i], other->counts[i]);
    }
    histogram->total = sum(histogram->total, other->total);
}

void rbi_histogram_since(uint32_t *last, const rbi_au32 *now, struct rbi_histogram_growth *out)
{
    for (uint32_t i = 0; i < RBI_HISTOGRAM_BUCKETS; i++) {
        const uint32_t count = rbi_load32_rlx(&now[i]);
        out->counts[i] = count > last[i] ? count - last[i] : 0;
        last[i] = count;
    }
}

/** Number of the call, from 1 on, that so many of a million do not exceed. */
static uint64_t rank_of(uint64_t total, uint32_t ppm)
{
    const uint64_t whole = total / 1000000 * ppm;
    const uint64_t rest = (total % 1000000 * ppm + 999999) / 1000000;
    return rbi_max_u64(whole + rest, 1);
}

uint64_t rbi_histogram_quantile_ns(const struct rbi_histogram *histogram, uint32_t ppm)
{
    uint64_t seen = 0;
    if (histogram->total == 0) {
        return 0;
    }
    const uint64_t rank = rank_of(histogram->total, ppm);
    uint32_t last = 0;
    for (uint32_t i = 0; i < RBI_HISTOGRAM_BUCKETS && seen < rank; i++) {
        if (histogram->counts[i] != 0) {
            seen = sum(seen, histogram->counts[i]);
            last = i;
        }
    }
    const uint64_t begin = rbi_histogram_begin_ns(last);
    return begin + (rbi_histogram_begin_ns(last + 1) - begin) / 2;
}

uint64_t rbi_histogram_below(const struct rbi_histogram *histogram, uint32_t octave)
{
    uint64_t calls = 0;
    for (uint32_t i = 0; i < (octave + 1) * RBI_HISTOGRAM_SUB; i++) {
        calls = sum(calls, histogram->counts[i]);
    }
    return calls;
}
