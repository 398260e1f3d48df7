/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of how calls ended, since the start and over the last 10 s, on virtual time: features J4. */
#include "bus/figures.h"
#include "support/test.h"

#define SECOND UINT64_C(1000000000)
#define START  (1000 * SECOND) /* begin of a step */

static struct rbi_figures_window window;
static struct rbi_figures figures;

static struct rbi_figures_growth calls(uint32_t ok, uint32_t failed, uint64_t each_ns)
{
    struct rbi_figures_growth growth = {
        .ok = ok, .failed = failed, .latency_ns = each_ns * (ok + failed)};
    growth.latency.counts[rbi_histogram_bucket(each_ns)] = ok + failed;
    return growth;
}

static void count(uint64_t now_ns, uint32_t ok, uint32_t failed, uint64_t each_ns)
{
    const struct rbi_figures_growth growth = calls(ok, failed, each_ns);
    rbi_figures_window_add(&window, now_ns, &growth);
}

static void test_window_forgets_after_ten_seconds(void **state)
{
    (void)state;
    memset(&window, 0, sizeof window);
    count(START, 10, 1, 5000);
    count(START + SECOND, 10, 1, 5000);
    assert_true(rbi_figures_window_sum(&window, START + SECOND, &figures) == 9 * SECOND);
    assert_int_equal(figures.ok, 20);
    assert_int_equal(figures.failed, 2);
    assert_int_equal(figures.latency.total, 22);
    count(START + 4 * SECOND, 5, 0, 1000000);
    (void)rbi_figures_window_sum(&window, START + 10 * SECOND - 1, &figures);
    assert_int_equal(figures.ok, 25);
    (void)rbi_figures_window_sum(&window, START + 10 * SECOND, &figures);
    assert_int_equal(figures.ok, 5); /* the first step is over */
    assert_in_range(rbi_histogram_quantile_ns(&figures.latency, 500000), 970000, 1030000);
    (void)rbi_figures_window_sum(&window, START + 14 * SECOND, &figures);
    assert_int_equal(rbi_figures_calls(&figures), 0);
    count(START + 1000 * SECOND, 3, 0, 1000); /* in the place of one from long ago */
    (void)rbi_figures_window_sum(&window, START + 1001 * SECOND, &figures);
    assert_int_equal(figures.ok, 3);
    assert_int_equal(figures.failed, 0);
}

/* As many a second all the time: whenever one looks, the rate is that. */
static void test_window_rate_is_steady(void **state)
{
    (void)state;
    memset(&window, 0, sizeof window);
    for (uint64_t ms = 0; ms < 30000; ms += 250) {
        const uint64_t now_ns = START + ms * 1000000;
        count(now_ns, 100, 0, 1000);
        const uint64_t span_ns = rbi_figures_window_sum(&window, now_ns, &figures);
        if (ms >= 10000) {
            assert_in_range(figures.ok * SECOND / span_ns, 400, 413);
        }
    }
}

static void test_sums_stay_at_their_largest(void **state)
{
    (void)state;
    struct rbi_figures_growth growth = calls(UINT32_MAX, UINT32_MAX, 0);
    growth.latency_ns = UINT64_MAX;
    memset(&figures, 0, sizeof figures);
    rbi_figures_add(&figures, &growth);
    rbi_figures_add(&figures, &growth);
    assert_true(figures.latency_ns == UINT64_MAX);
    figures.ok = UINT64_MAX;
    assert_true(rbi_figures_calls(&figures) == UINT64_MAX);
    rbi_figures_add(&figures, &growth);
    assert_true(figures.ok == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_forgets_after_ten_seconds),
        cmocka_unit_test(test_window_rate_is_steady),
        cmocka_unit_test(test_sums_stay_at_their_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
