/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/lines.h"
#include "measure/quantiles.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- quantiles --------------------------------------------------------------------------- */

static void test_quantile(void **state)
{
    double values[] = {5, 1, 4, 2, 3};
    (void)state;
    assert_float_equal(rbi_quantile(values, 5, 0), 1, 0);
    assert_float_equal(rbi_quantile(values, 5, 0.5), 3, 0);
    assert_float_equal(rbi_quantile(values, 5, 1), 5, 0);
    assert_float_equal(rbi_quantile(values, 1, 0.99), 1, 0);
    assert_float_equal(rbi_quantile(NULL, 0, 0.5), 0, 0);
}

static void test_histogram_index_never_goes_back(void **state)
{
    unsigned last = 0;
    (void)state;
    assert_int_equal(rbi_histogram_index(0), 0);
    for (uint64_t ns = 1; ns < UINT64_C(1) << 36; ns += ns / 64 + 1) {
        const unsigned index = rbi_histogram_index(ns);
        assert_true(index == last || index == last + 1 || ns > UINT64_C(1) << 34);
        assert_true(index < RBI_HISTOGRAM_WORDS);
        last = index;
    }
    assert_int_equal(rbi_histogram_index(UINT64_MAX), RBI_HISTOGRAM_WORDS - 1);
}

static void test_histogram_quantile_within_a_step(void **state)
{
    static uint32_t histogram[RBI_HISTOGRAM_WORDS];
    (void)state;
    assert_float_equal(rbi_histogram_quantile(histogram, 0.5), 0, 0);
    for (uint64_t ns = 1; ns <= 10000; ns++) {
        histogram[rbi_histogram_index(ns)]++;
    }
    assert_int_equal(rbi_histogram_count(histogram), 10000);
    assert_float_equal(rbi_histogram_quantile(histogram, 0.5), 5000, 175);
    assert_float_equal(rbi_histogram_quantile(histogram, 0.99), 9900, 346);
    assert_float_equal(rbi_histogram_quantile(histogram, 0.001), 10, 1);
}

/* ---- lines ------------------------------------------------------------------------------- */

#define ROUNDS 50U

struct side {
    struct rbi_lines *lines;
    int number;
    double awake_ns;
    double asleep_ns;
    bool met;
};

/* Twice each: the second time begins where the first has ended. */
static void *side_run(void *context)
{
    struct side *side = context;
    (void)rbi_lines_round_trips_asleep(side->lines, side->number, ROUNDS, 0);
    side->asleep_ns = rbi_lines_round_trips_asleep(side->lines, side->number, ROUNDS, 20000);
    (void)rbi_lines_round_trips(side->lines, side->number, ROUNDS);
    side->awake_ns = rbi_lines_round_trips(side->lines, side->number, ROUNDS);
    side->met = rbi_lines_meet(side->lines, side->number, 10);
    return NULL;
}

static void test_lines_count_round_trips(void **state)
{
    static struct rbi_lines lines;
    struct side sides[2] = {{.lines = &lines}, {.lines = &lines, .number = 1}};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, side_run, &sides[1]), 0);
    (void)side_run(&sides[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(sides[i].met);
        assert_true(sides[i].awake_ns > 0);
        assert_int_equal(lines.asleep[i], 2 * ROUNDS);
    }
    assert_true(sides[0].asleep_ns > 0);
    assert_float_equal(sides[1].asleep_ns, 0, 0);
    assert_int_equal(lines.ping, 2 * ROUNDS);
    assert_int_equal(lines.pong, 2 * ROUNDS);
    assert_int_equal(lines.barrier[0], lines.barrier[1]);
}

/* The other side has died: whoever waits for it leaves when it is told to. */
static void *side_alone(void *context)
{
    struct side *side = context;
    side->awake_ns = rbi_lines_round_trips(side->lines, 0, ROUNDS);
    side->asleep_ns = rbi_lines_round_trips_asleep(side->lines, 0, ROUNDS, 0);
    side->met = rbi_lines_meet(side->lines, 0, 10);
    return NULL;
}

/* @p arrived: how often the other side has come to a meeting before it died */
static void assert_leaves(uint64_t arrived)
{
    struct rbi_lines lines;
    struct side side = {.lines = &lines, .met = true};
    pthread_t thread;
    memset(&lines, 0, sizeof lines);
    lines.barrier[1] = arrived;
    assert_int_equal(pthread_create(&thread, NULL, side_alone, &side), 0);
    while (atomic_load(&lines.barrier[0]) == 0) {
    }
    atomic_store(&lines.stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_float_equal(side.awake_ns, 0, 0);
    assert_float_equal(side.asleep_ns, 0, 0);
    assert_false(side.met);
}

static void test_lines_leave_at_stop(void **state)
{
    (void)state;
    assert_leaves(0);
    assert_leaves(2);
    struct rbi_lines lines;
    memset(&lines, 0, sizeof lines);
    lines.barrier[1] = 1; /* it has come, but nobody is to go on */
    lines.stop = 1;
    assert_false(rbi_lines_meet(&lines, 0, RBI_LINES_LOOKS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantile),
        cmocka_unit_test(test_histogram_index_never_goes_back),
        cmocka_unit_test(test_histogram_quantile_within_a_step),
        cmocka_unit_test(test_lines_count_round_trips),
        cmocka_unit_test(test_lines_leave_at_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
