/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is shielded: windows, cap, median, streak, slow calls, deviation; and panic. Features 2.4,
 * 2.5, section 3 (ejection caps), section 6 item 2; scenario 91 (nobody looks healthy).
 */
#include "support/shield.h"
#include "support/test.h"

static struct shield_bench bench;

static void begin(enum rbi_shield_preset preset, unsigned n)
{
    assert_true(shield_begin(&bench, preset, n));
}

static int finish(void **state)
{
    (void)state;
    rbi_shield_deinit(&bench.cluster);
    return 0;
}

/** Sweeps with the same counts for instances 1..count, each as fails[] says of 10. */
static void sweeps(unsigned times, const unsigned *fails, unsigned count)
{
    for (unsigned i = 0; i < times; i++) {
        for (unsigned id = 1; id <= count; id++) {
            shield_calls(&bench, (int32_t)id, 10 - fails[id - 1], fails[id - 1]);
        }
        shield_sweep(&bench);
    }
}

/* ---- windows ----------------------------------------------------------------------------- */

/* ">=" of both numbers: one call or one failure less does not trip. 100 % works. */
static void test_window_trips_at_its_numbers(void **state)
{
    static const struct {
        uint32_t calls;
        uint32_t percent;
        uint32_t ok;
        uint32_t fail;
        bool trips;
    } cases[] = {
        {10, 80, 2, 8, true},    {10, 80, 3, 7, false}, {10, 80, 1, 8, false},
        {10, 80, 0, 9, false},   {10, 80, 0, 10, true}, {10, 100, 0, 10, true},
        {10, 100, 1, 99, false}, {1, 1, 99, 1, true},   {1, 1, 100, 1, false},
    };
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(RBI_SHIELD_DEFAULT, 4);
        bench.policy.window_count = 1;
        bench.policy.above_median = 0;
        bench.policy.windows[0] =
            (struct rbi_shield_window){1000, cases[i].calls, cases[i].percent, 0};
        shield_apply(&bench);
        shield_calls(&bench, 2, cases[i].ok, cases[i].fail);
        shield_sweep(&bench);
        assert_int_equal(shield_of(&bench, 2)->health,
                         cases[i].trips ? RBI_HEALTH_OPEN : RBI_HEALTH_OK);
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1); /* for finish() */
}

static void test_window_event_names_the_rule(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT, 2);
    shield_calls(&bench, 1, 20, 0);
    shield_calls(&bench, 2, 1, 11);
    shield_sweep(&bench);
    const struct rbi_shield_event *event = shield_last(&bench);
    assert_int_equal(event->kind, RBI_SHIELD_CHANGED);
    assert_int_equal(event->reason, RBI_SHIELD_BECAUSE_WINDOW);
    assert_int_equal(event->instance, 2);
    assert_int_equal(event->from, RBI_HEALTH_OK);
    assert_int_equal(event->to, RBI_HEALTH_OPEN);
    assert_int_equal(event->window_ms, 1000);
    assert_int_equal(event->calls, 12);
    assert_int_equal(event->bad, 11);
    assert_int_equal(event->median, 0);
    assert_true(event->until_ns == bench.turn.now_ns + 1000 * SHIELD_MS);
}

/* ---- cap --------------------------------------------------------------------------------- */

/* The table of docs/guide/health.md: the would-be ejection counts, and one is never shielded. */
static void test_cap_of_equal_weights(void **state)
{
    static const unsigned may[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5};
    static const unsigned dead[10] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    (void)state;
    for (unsigned n = 1; n <= 10; n++) {
        begin(RBI_SHIELD_DEFAULT, n);
        bench.policy.above_median = 0; /* all fail: only the cap is in the way */
        shield_apply(&bench);
        sweeps(3, dead, n);
        assert_int_equal(shield_out(&bench), may[n]);
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_window_trips_at_its_numbers, finish),
        cmocka_unit_test_teardown(test_window_event_names_the_rule, finish),
        cmocka_unit_test_teardown(test_cap_of_equal_weights, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
