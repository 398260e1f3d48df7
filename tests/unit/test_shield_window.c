/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of outcomes against a plain list of what was counted. */
#include "bus/shield_window.h"
#include "support/test.h"

#define STEPS 4000U

static struct rbi_outcome_window window;
static struct rbi_tally log_of[STEPS]; /* by step */

static uint32_t below(uint64_t *rng, uint32_t n)
{
    *rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*rng >> 33) % n;
}

/** Sum of the steps after @p from up to @p to. */
static struct rbi_tally sum_of(uint32_t from, uint32_t to)
{
    struct rbi_tally sum = {0};
    for (uint32_t step = from; step <= to; step++) {
        rbi_tally_add(&sum, &log_of[step]);
    }
    return sum;
}

static void assert_same(struct rbi_tally got, struct rbi_tally expected)
{
    assert_int_equal(got.ok, expected.ok);
    assert_int_equal(got.fail, expected.fail);
    assert_int_equal(got.slow, expected.slow);
    assert_int_equal(got.local, expected.local);
}

/* Up to 10 s exactly so many steps; longer ones from the start of a bucket of 2.5 s on. */
static void test_sum_random_history(void **state)
{
    static const uint32_t lengths_ms[] = {1, 250, 251, 1000, 3000, 10000, 10001, 30000, 60000};
    uint64_t rng = 1;
    (void)state;
    rbi_window_clear(&window, 300);
    for (uint32_t step = 300; step < STEPS;) {
        const struct rbi_tally tally = {below(&rng, 5), below(&rng, 3), below(&rng, 2),
                                        below(&rng, 4)};
        log_of[step] = tally;
        rbi_window_add(&window, step, &tally);
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(lengths_ms); i++) {
            const uint32_t ms = lengths_ms[i];
            const uint32_t buckets = (ms + 2499) / 2500;
            const uint32_t from = ms <= RBI_WINDOW_FINE_MS ? step - (ms + 249) / 250 + 1
                                                           : (step / 10 - buckets + 1) * 10;
            assert_same(rbi_window_sum(&window, step, ms), sum_of(from, step));
        }
        step += below(&rng, 20) == 0 ? below(&rng, 400) : 1; /* a late sweep, sometimes very */
    }
}

static void test_sum_forgets(void **state)
{
    (void)state;
    rbi_window_clear(&window, 7);
    rbi_window_add(&window, 7, &(struct rbi_tally){1, 2, 3, 4});
    assert_int_equal(rbi_window_sum(&window, 7 + 39, 10000).fail, 2);
    assert_int_equal(rbi_window_sum(&window, 7 + 40, 10000).fail, 0);
    assert_int_equal(rbi_window_sum(&window, 239, 60000).fail, 2);
    assert_int_equal(rbi_window_sum(&window, 240, 60000).fail, 0);
}

/* More than the longest is as the longest; an older step is as the newest. */
static void test_sum_limits(void **state)
{
    (void)state;
    rbi_window_clear(&window, 100);
    rbi_window_add(&window, 100, &(struct rbi_tally){1, 0, 0, 1});
    rbi_window_add(&window, 90, &(struct rbi_tally){1, 0, 0, 1});
    assert_int_equal(rbi_window_sum(&window, 90, 250).ok, 2);
    assert_int_equal(rbi_window_sum(&window, 100, UINT32_MAX).ok, 2);
    rbi_window_add(&window, 100,
                   &(struct rbi_tally){UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX});
    assert_int_equal(rbi_window_sum(&window, 100, 60000).ok, UINT32_MAX); /* and does not wrap */
    assert_int_equal(rbi_window_sum(&window, 100, 60000).local, UINT32_MAX);
    assert_int_equal(rbi_window_sum(&window, UINT64_MAX, 60000).ok, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_random_history),
        cmocka_unit_test(test_sum_forgets),
        cmocka_unit_test(test_sum_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
