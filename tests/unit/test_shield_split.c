/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures at the caller, judged apart from those of the calls (features 2.4: "Local-origin and
 * remote-origin counted apart (Envoy split mode)"). Virtual time.
 */
#include "support/shield.h"
#include "support/test.h"

static struct shield_bench bench;

static int finish(void **state)
{
    (void)state;
    rbi_shield_deinit(&bench.cluster);
    return 0;
}

static void begin(uint32_t split, unsigned n)
{
    assert_true(shield_begin(&bench, RBI_SHIELD_DEFAULT, n));
    bench.policy.split = split;
    shield_apply(&bench);
}

static void calls(int32_t id, uint32_t ok, uint32_t fail, uint32_t local)
{
    const struct rbi_shield_outcomes outcomes = {
        .ok = ok, .fail = fail, .local = local, .streak = ok == 0 ? fail : 0};
    rbi_shield_count(&bench.cluster, id, SHIELD_LIFE, &outcomes);
}

static void test_no_preset_splits(void **state)
{
    struct rbi_shield_policy policy;
    (void)state;
    begin(0, 1); /* for finish() */
    for (unsigned preset = RBI_SHIELD_DEFAULT; preset <= RBI_SHIELD_OFF; preset++) {
        rbi_shield_preset(&policy, (enum rbi_shield_preset)preset);
        assert_int_equal(policy.split, 0);
    }
}

static void test_without_it_they_say_nothing(void **state)
{
    (void)state;
    begin(0, 3);
    shield_sweep(&bench);
    assert_true(rbi_shield_due(&bench.cluster) == UINT64_MAX);
    for (unsigned i = 0; i < 400; i++) {
        calls(2, 0, 0, 1000);
        assert_true(rbi_shield_due(&bench.cluster) == UINT64_MAX); /* nobody even looks */
        shield_sweep(&bench);
        assert_int_equal(shield_of(&bench, 2)->health, RBI_HEALTH_OK);
        assert_int_equal(shield_of(&bench, 2)->tripped, 0);
    }
}

/* The same ">=" of both numbers, over all that was tried. */
static void test_window_trips_at_its_numbers(void **state)
{
    static const struct {
        uint32_t ok;
        uint32_t fail;
        uint32_t local;
        enum rbi_shield_reason because; /* NONE: it does not trip */
    } cases[] = {
        {2, 0, 8, RBI_SHIELD_BECAUSE_LOCAL},    {3, 0, 7, RBI_SHIELD_BECAUSE_NONE},
        {1, 0, 8, RBI_SHIELD_BECAUSE_NONE},     {0, 0, 9, RBI_SHIELD_BECAUSE_NONE},
        {0, 0, 10, RBI_SHIELD_BECAUSE_LOCAL},   {2, 8, 0, RBI_SHIELD_BECAUSE_WINDOW},
        {20, 30, 50, RBI_SHIELD_BECAUSE_NONE},  {4, 16, 20, RBI_SHIELD_BECAUSE_WINDOW},
        {10, 10, 80, RBI_SHIELD_BECAUSE_LOCAL}, {0, 20, 79, RBI_SHIELD_BECAUSE_WINDOW},
    };
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        assert_true(shield_begin(&bench, RBI_SHIELD_DEFAULT, 4));
        bench.policy.split = 1;
        bench.policy.window_count = 1;
        bench.policy.windows[0] = (struct rbi_shield_window){1000, 10, 80, 0};
        shield_apply(&bench);
        calls(2, cases[i].ok, cases[i].fail, cases[i].local);
        shield_sweep(&bench);
        const bool trips = cases[i].because != RBI_SHIELD_BECAUSE_NONE;
        assert_int_equal(shield_of(&bench, 2)->health, trips ? RBI_HEALTH_OPEN : RBI_HEALTH_OK);
        assert_int_equal(trips ? shield_of(&bench, 2)->reason : RBI_SHIELD_BECAUSE_NONE,
                         cases[i].because);
        rbi_shield_deinit(&bench.cluster);
    }
    begin(0, 1); /* for finish() */
}

static void test_event_has_the_figures(void **state)
{
    (void)state;
    begin(1, 4);
    calls(2, 2, 0, 30);
    shield_sweep(&bench);
    const struct rbi_shield_event *event = shield_last(&bench);
    assert_int_equal(event->kind, RBI_SHIELD_CHANGED);
    assert_int_equal(event->to, RBI_HEALTH_OPEN);
    assert_int_equal(event->reason, RBI_SHIELD_BECAUSE_LOCAL);
    assert_string_equal(rbi_shield_reason_name(event->reason), "local");
    assert_int_equal(event->window_ms, 1000);
    assert_int_equal(event->calls, 32);
    assert_int_equal(event->bad, 30);
}

/* A host whose callers send more than all can take: no instance is to blame. */
static void test_median_spares_them_all(void **state)
{
    (void)state;
    begin(1, 4);
    for (unsigned i = 0; i < 40; i++) {
        for (int32_t id = 1; id <= 4; id++) {
            calls(id, 1, 0, 50);
        }
        shield_sweep(&bench);
    }
    for (int32_t id = 1; id <= 4; id++) {
        assert_int_equal(shield_of(&bench, id)->health, RBI_HEALTH_OK);
        assert_int_equal(shield_of(&bench, id)->spared, RBI_SHIELD_BECAUSE_MEDIAN);
    }
}

/* What could not be made is no call: streak, mean and rates are those of the calls. */
static void test_calls_are_counted_as_before(void **state)
{
    (void)state;
    begin(1, 4);
    const struct rbi_shield_outcomes outcomes = {
        .ok = 10, .local = 2, .latency_ns = 10 * 4000 * UINT64_C(1000)};
    rbi_shield_count(&bench.cluster, 1, SHIELD_LIFE, &outcomes);
    shield_sweep(&bench);
    calls(1, 0, 3, 0);
    shield_sweep(&bench);
    calls(1, 0, 0, 1);
    shield_sweep(&bench);
    const struct rbi_shield_member *member = shield_of(&bench, 1);
    assert_int_equal(member->streak, 3);
    assert_int_equal(member->columns[0].ok, 10);
    assert_int_equal(member->columns[0].fail, 3);
    assert_int_equal(member->columns[0].local, 3);
    assert_in_range(member->latency_us, 2900, 4000); /* a failure took no time here */
    for (unsigned i = 0; i < 300; i++) {
        shield_sweep(&bench);
    }
    assert_true(rbi_shield_due(&bench.cluster) == UINT64_MAX); /* and it rests again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_no_preset_splits, finish),
        cmocka_unit_test_teardown(test_without_it_they_say_nothing, finish),
        cmocka_unit_test_teardown(test_window_trips_at_its_numbers, finish),
        cmocka_unit_test_teardown(test_event_has_the_figures, finish),
        cmocka_unit_test_teardown(test_median_spares_them_all, finish),
        cmocka_unit_test_teardown(test_calls_are_counted_as_before, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
