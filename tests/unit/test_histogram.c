/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms of times, features J4 and T31: a quantile is known to 3 % from 1 us to 100 s, sums
 * over callers are exact, and nothing that a caller says makes a sum wrap.
 */
#include "bus/histogram.h"
#include "support/test.h"

#include <stdlib.h>

#define SECOND UINT64_C(1000000000)

static struct rbi_histogram histogram;

static void begin(void)
{
    memset(&histogram, 0, sizeof histogram);
}

static void test_bucket_each_time_lies_between_begin_and_next(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (unsigned i = 0; i < 200000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        const uint64_t ns = (seed >> 20) >> (seed % 44);
        const uint32_t bucket = rbi_histogram_bucket(ns);
        assert_in_range(bucket, 0, RBI_HISTOGRAM_BUCKETS - 1);
        if (ns <= RBI_HISTOGRAM_MAX_NS) {
            assert_true(rbi_histogram_begin_ns(bucket) <= ns);
            assert_true(rbi_histogram_begin_ns(bucket + 1) > ns);
        }
    }
}

static void test_bucket_they_follow_each_other_without_a_gap(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < RBI_HISTOGRAM_BUCKETS; i++) {
        const uint64_t first = rbi_histogram_begin_ns(i);
        const uint64_t next = rbi_histogram_begin_ns(i + 1);
        assert_int_equal(rbi_histogram_bucket(first), i);
        assert_int_equal(rbi_histogram_bucket(next - 1), i);
        assert_true(first < 1024 || (next - first) * 32 <= first);
    }
    assert_int_equal(rbi_histogram_begin_ns(RBI_HISTOGRAM_BUCKETS), RBI_HISTOGRAM_MAX_NS + 1);
    assert_int_equal(rbi_histogram_bucket(RBI_HISTOGRAM_MAX_NS), RBI_HISTOGRAM_BUCKETS - 1);
    assert_int_equal(rbi_histogram_bucket(UINT64_MAX), RBI_HISTOGRAM_BUCKETS - 1);
    assert_true(RBI_HISTOGRAM_MAX_NS > 100 * SECOND);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Times over nine decades: each quantile within 3 % of the one that sorting finds. */
static void test_quantile_is_within_three_percent(void **state)
{
    enum { COUNT = 20000 };
    static uint64_t times[COUNT];
    static const uint32_t ppms[] = {1, 10000, 250000, 500000, 900000, 990000, 999000, 1000000};
    (void)state;
    uint64_t seed = 42;
    begin();
    for (unsigned i = 0; i < COUNT; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        uint64_t ns = 1000 + (seed >> 33) % 1000;
        for (unsigned k = (unsigned)((seed >> 40) % 9); k > 0; k--) {
            ns = ns * 10 + (seed >> (30 + k)) % 10;
        }
        times[i] = ns;
        rbi_histogram_add(&histogram, ns, 1);
    }
    qsort(times, COUNT, sizeof times[0], by_size);
    assert_in_range(times[COUNT - 1], 100 * SECOND, 200 * SECOND);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(ppms); i++) {
        const uint64_t rank = rbi_max_u64(((uint64_t)ppms[i] * COUNT + 999999) / 1000000, 1);
        const uint64_t true_ns = rbi_min_u64(times[rank - 1], RBI_HISTOGRAM_MAX_NS);
        const uint64_t ns = rbi_histogram_quantile_ns(&histogram, ppms[i]);
        const uint64_t off = ns > true_ns ? ns - true_ns : true_ns - ns;
        assert_true(off * 100 <= true_ns * 3);
    }
}

static void test_quantile_of_few_calls(void **state)
{
    (void)state;
    begin();
    assert_int_equal(rbi_histogram_quantile_ns(&histogram, 500000), 0);
    rbi_histogram_add(&histogram, 10, 1);
    assert_in_range(rbi_histogram_quantile_ns(&histogram, 1), 1, 31);
    rbi_histogram_add(&histogram, 5000, 1);
    assert_in_range(rbi_histogram_quantile_ns(&histogram, 500000), 1, 31);
    assert_in_range(rbi_histogram_quantile_ns(&histogram, 500001), 4850, 5150);
    assert_in_range(rbi_histogram_quantile_ns(&histogram, 1000000), 4850, 5150);
}

static void test_merge_equals_one_histogram_of_all(void **state)
{
    static struct rbi_histogram parts[3];
    static struct rbi_histogram sum;
    (void)state;
    memset(parts, 0, sizeof parts);
    memset(&sum, 0, sizeof sum);
    begin();
    for (uint64_t i = 0; i < 3000; i++) {
        rbi_histogram_add(&parts[i % 3], i * i * i, i % 5);
        rbi_histogram_add(&histogram, i * i * i, i % 5);
    }
    for (unsigned i = 0; i < 3; i++) {
        rbi_histogram_merge(&sum, &parts[i]);
    }
    assert_memory_equal(&sum, &histogram, sizeof sum);
}

static void test_since_tells_what_has_come(void **state)
{
    static rbi_au32 now[RBI_LATENCY_BUCKETS];
    static uint32_t last[RBI_LATENCY_BUCKETS];
    static struct rbi_histogram_growth growth;
    (void)state;
    begin();
    now[5] = 3;
    rbi_histogram_since(last, now, &growth);
    rbi_histogram_grow(&histogram, &growth);
    now[5] = 5;
    now[895] = 1;
    rbi_histogram_since(last, now, &growth);
    rbi_histogram_grow(&histogram, &growth);
    rbi_histogram_since(last, now, &growth); /* nothing new */
    rbi_histogram_grow(&histogram, &growth);
    assert_int_equal(histogram.counts[5], 5);
    assert_int_equal(histogram.counts[895], 1);
    assert_int_equal(histogram.total, 6);
}

/* A count that shrinks counts for nothing, and sums stay at the largest there is. */
static void test_since_bounds_what_a_liar_says(void **state)
{
    static rbi_au32 now[RBI_LATENCY_BUCKETS];
    static uint32_t last[RBI_LATENCY_BUCKETS];
    static struct rbi_histogram_growth growth;
    (void)state;
    begin();
    histogram.total = UINT64_MAX - 10;
    histogram.counts[7] = UINT64_MAX - 10;
    for (unsigned i = 0; i < RBI_LATENCY_BUCKETS; i++) {
        now[i] = UINT32_MAX;
    }
    rbi_histogram_since(last, now, &growth);
    rbi_histogram_grow(&histogram, &growth);
    assert_true(histogram.counts[7] == UINT64_MAX);
    assert_true(histogram.total == UINT64_MAX);
    assert_true(rbi_histogram_quantile_ns(&histogram, 1000000) > 0);
    assert_true(rbi_histogram_below(&histogram, RBI_HISTOGRAM_OCTAVES - 1) == UINT64_MAX);
    rbi_histogram_merge(&histogram, &histogram);
    assert_true(histogram.total == UINT64_MAX);
    for (unsigned i = 0; i < RBI_LATENCY_BUCKETS; i++) {
        now[i] = 4;
    }
    rbi_histogram_since(last, now, &growth);
    assert_int_equal(growth.counts[7], 0);
    now[7] = 6;
    rbi_histogram_since(last, now, &growth);
    assert_int_equal(growth.counts[7], 2);
}

static void test_below_counts_powers_of_two(void **state)
{
    (void)state;
    begin();
    rbi_histogram_add(&histogram, 1023, 1);
    rbi_histogram_add(&histogram, 1024, 10);
    rbi_histogram_add(&histogram, 2047, 100);
    rbi_histogram_add(&histogram, 2048, 1000);
    rbi_histogram_add(&histogram, UINT64_MAX, 10000);
    assert_int_equal(rbi_histogram_below(&histogram, 0), 1);
    assert_int_equal(rbi_histogram_below(&histogram, 1), 111);
    assert_int_equal(rbi_histogram_below(&histogram, 2), 1111);
    assert_int_equal(rbi_histogram_below(&histogram, RBI_HISTOGRAM_OCTAVES - 2), 1111);
    assert_int_equal(rbi_histogram_below(&histogram, RBI_HISTOGRAM_OCTAVES - 1), 11111);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket_each_time_lies_between_begin_and_next),
        cmocka_unit_test(test_bucket_they_follow_each_other_without_a_gap),
        cmocka_unit_test(test_quantile_is_within_three_percent),
        cmocka_unit_test(test_quantile_of_few_calls),
        cmocka_unit_test(test_merge_equals_one_histogram_of_all),
        cmocka_unit_test(test_since_tells_what_has_come),
        cmocka_unit_test(test_since_bounds_what_a_liar_says),
        cmocka_unit_test(test_below_counts_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
