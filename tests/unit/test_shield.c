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

/* Sweeps that come a little early and late fall into one step each. */
static void test_window_holds_its_sweeps(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT, 2);
    for (unsigned i = 0; i < 100; i++) {
        shield_calls(&bench, 1, 7, 0);
        shield_sweep_after(&bench, i % 2 == 0 ? 190 : 310);
        if (i >= 4) {
            assert_int_equal(shield_of(&bench, 1)->columns[0].ok, 4 * 7);
        }
    }
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

/* Weights: what may go is a share of them, and the worst goes first. */
static void test_cap_of_weights(void **state)
{
    static const struct {
        const char *what;
        uint32_t weights[4]; /* 4 members */
        unsigned fails[4];   /* of 10 calls */
        uint32_t max_percent;
        unsigned out; /* bits */
    } cases[] = {
        {"half of the weight is three members", {300, 100, 100, 100}, {0, 10, 10, 10}, 50, 14},
        {"heavier than the cap", {300, 100, 50, 50}, {10, 0, 0, 0}, 50, 0},
        {"as heavy as the cap", {300, 100, 100, 100}, {10, 0, 0, 0}, 50, 1},
        {"the worst first, then whoever still fits", {100, 200, 100, 100}, {9, 10, 10, 8}, 50, 2},
        {"a light one where a heavy one does not fit", {300, 100, 50, 50}, {10, 9, 0, 0}, 50, 2},
        {"10 % of four is nobody", {100, 100, 100, 100}, {10, 0, 0, 0}, 10, 0},
        {"25 % of four is one", {100, 100, 100, 100}, {10, 0, 0, 9}, 25, 1},
        {"100 % is all of them", {100, 100, 100, 100}, {10, 10, 10, 10}, 100, 15},
        {"weight 0 weighs nothing", {0, 100, 100, 100}, {10, 10, 0, 0}, 34, 3},
        {"all weigh nothing: all the same", {0, 0, 0, 0}, {10, 9, 8, 10}, 50, 9},
        {"0 % is nobody", {100, 100, 100, 100}, {10, 0, 0, 0}, 0, 0},
    };
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(RBI_SHIELD_DEFAULT, 4);
        bench.policy.above_median = 0;
        bench.policy.max_percent = cases[i].max_percent;
        shield_apply(&bench);
        for (unsigned id = 1; id <= 4; id++) {
            assert_int_equal(rbi_shield_put(&bench.cluster, (int32_t)id, SHIELD_LIFE,
                                            cases[i].weights[id - 1], &bench.turn),
                             0);
        }
        sweeps(1, cases[i].fails, 4);
        for (unsigned id = 1; id <= 4; id++) {
            const bool out = shield_of(&bench, (int32_t)id)->health == RBI_HEALTH_OPEN;
            if (out != ((cases[i].out >> (id - 1)) & 1)) {
                fail_msg("%s: %u %s", cases[i].what, id, out ? "is out" : "is in");
            }
        }
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

/* Two of four are out, a healthy one leaves: one is too much, and the longest out comes back. */
static void test_cap_holds_when_members_leave(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT, 4);
    sweeps(1, (const unsigned[]){0, 10, 0, 0}, 4);
    sweeps(1, (const unsigned[]){0, 0, 10, 0}, 4);
    sweeps(1, (const unsigned[]){0, 0, 10, 0}, 4);
    sweeps(1, (const unsigned[]){0, 0, 10, 0}, 4);
    sweeps(1, (const unsigned[]){0, 0, 10, 0}, 4);
    assert_int_equal(shield_out(&bench), 2);
    rbi_shield_remove(&bench.cluster, 1, &bench.turn);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 2)->health, RBI_HEALTH_RAMP);
    assert_int_equal(shield_of(&bench, 2)->reason, RBI_SHIELD_BECAUSE_CAP);
    assert_int_equal(shield_out(&bench), 1);
    rbi_shield_remove(&bench.cluster, 4, &bench.turn);
    shield_sweep(&bench);
    assert_int_equal(shield_out(&bench), 1); /* of two: one may be out */
    rbi_shield_remove(&bench.cluster, 2, &bench.turn);
    shield_sweep(&bench);
    assert_int_equal(shield_out(&bench), 0); /* of one: none */
}

/* Told once, not at each sweep, and again when it came anew. */
static void test_cap_is_told_once(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT, 1);
    sweeps(8, (const unsigned[]){10}, 1);
    assert_int_equal(shield_of(&bench, 1)->spared, RBI_SHIELD_BECAUSE_CAP);
    unsigned told = 0;
    for (unsigned i = 0; i < bench.count; i++) {
        told += bench.events[i].kind == RBI_SHIELD_SPARED;
    }
    assert_int_equal(told, 1);
    assert_int_equal(shield_last_of(&bench, RBI_SHIELD_SPARED)->bad, 10);
    sweeps(60, (const unsigned[]){0}, 1);
    assert_int_equal(shield_of(&bench, 1)->spared, RBI_SHIELD_BECAUSE_NONE);
    bench.count = 0;
    sweeps(30, (const unsigned[]){10}, 1);
    assert_non_null(shield_last_of(&bench, RBI_SHIELD_SPARED));
    assert_int_equal(shield_of(&bench, 1)->health, RBI_HEALTH_OK);
}

/* ---- median ------------------------------------------------------------------------------ */

/* By 20 points at least over the lower median of the others: a broken service that all of them
 * need shields none of them. */
static void test_median_of_the_others(void **state)
{
    static const struct {
        unsigned count;
        unsigned fails[6]; /* of 10 */
        unsigned out;      /* bits */
    } cases[] = {
        {2, {10, 10}, 0},          /* both: something that both need */
        {2, {10, 8}, 1},           /* exactly 20 points */
        {2, {10, 9}, 0},           /* 10 points */
        {3, {10, 10, 0}, 1},       /* two of three: the lower of {100, 0} */
        {4, {10, 10, 0, 0}, 3},    /* the lower of {100, 0, 0} */
        {4, {10, 10, 10, 0}, 0},   /* three of four: {100, 100, 0} is 100 */
        {5, {10, 10, 2, 2, 2}, 3}, /* background */
        {5, {10, 8, 8, 8, 8}, 1},  /* all bad, one of them worse */
        {6, {9, 9, 9, 9, 9, 9}, 0},
    };
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(RBI_SHIELD_DEFAULT, cases[i].count);
        sweeps(1, cases[i].fails, cases[i].count);
        unsigned out = 0;
        for (unsigned id = 1; id <= cases[i].count; id++) {
            const struct rbi_shield_member *member = shield_of(&bench, (int32_t)id);
            out |= member->health == RBI_HEALTH_OPEN ? 1U << (id - 1) : 0;
        }
        if (out != cases[i].out) {
            fail_msg("case %u: %x out, not %x", i, out, cases[i].out);
        }
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

static void test_median_spares_and_says_so(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT, 4);
    sweeps(2, (const unsigned[]){10, 10, 10, 10}, 4);
    const struct rbi_shield_event *event = shield_last_of(&bench, RBI_SHIELD_SPARED);
    assert_int_equal(event->reason, RBI_SHIELD_BECAUSE_MEDIAN);
    assert_int_equal(event->window_ms, 1000);
    assert_int_equal(event->median, 100);
    assert_int_equal(shield_of(&bench, 1)->spared, RBI_SHIELD_BECAUSE_MEDIAN);
    rbi_shield_deinit(&bench.cluster);
    begin(RBI_SHIELD_DEFAULT, 2);
    sweeps(1, (const unsigned[]){8, 10}, 2);
    assert_int_equal(bench.events[0].instance, 1);
    assert_int_equal(bench.events[0].median, 100); /* the other's, not its own */
}

/* ---- the other rules --------------------------------------------------------------------- */

/* The low-traffic window counts only while the one before it holds fewer than 20 calls. */
static void test_quiet_window(void **state)
{
    (void)state;
    for (unsigned busy = 0; busy < 2; busy++) {
        begin(RBI_SHIELD_DEFAULT, 2);
        for (unsigned i = 0; i < 120; i++) { /* 30 s, one failure in 6 s; some successes now */
            shield_calls(&bench, 1, 1, 0);
            if (i % 24 == 23) {
                shield_calls(&bench, 2, 0, 1);
            }
            assert_int_equal(shield_of(&bench, 2)->health, RBI_HEALTH_OK);
            if (busy && i == 119) {
                shield_calls(&bench, 2, 20, 15);
            }
            shield_sweep(&bench);
        }
        assert_int_equal(shield_of(&bench, 2)->health, busy ? RBI_HEALTH_OK : RBI_HEALTH_OPEN);
        assert_int_equal(shield_last(&bench)->window_ms, busy ? 0 : 60000);
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

/* Not before the 10 s that say so have passed: three of the first five are no illness. */
static void test_quiet_window_waits(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT, 2);
    for (unsigned i = 0; i < 40; i++) {
        shield_calls(&bench, 2, i < 2, i >= 2 && i < 5);
        assert_int_equal(shield_of(&bench, 2)->health, RBI_HEALTH_OK);
        shield_sweep(&bench);
    }
    assert_int_equal(shield_of(&bench, 2)->health, RBI_HEALTH_OPEN);
    assert_int_equal(shield_last(&bench)->window_ms, 60000);
}

static void count(uint32_t ok, uint32_t fail, uint32_t streak)
{
    const struct rbi_shield_outcomes outcomes = {.ok = ok, .fail = fail, .streak = streak};
    rbi_shield_count(&bench.cluster, 1, SHIELD_LIFE, &outcomes);
}

/* In a row over all callers: what is certain whatever the order of different callers' calls. */
static void test_streak_over_callers(void **state)
{
    (void)state;
    begin(RBI_SHIELD_POLARIS, 2);
    count(0, 3, 3);
    count(0, 2, 7);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->streak, 5); /* no success anywhere: all of them */
    count(0, 2, 9);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->streak, 7);
    count(4, 6, 3); /* one caller alone: its own streak */
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->streak, 3);
    count(1, 5, 4);
    count(1, 5, 2); /* the last success may be this one's: 2 */
    count(0, 9, 90);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->streak, 2);
    count(1, 0, 0);
    count(1, 5, 5);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->streak, 0);
    count(1, 2, UINT32_MAX); /* a caller that lies: not more than it reports */
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->streak, 2);
}

static void test_streak_trips(void **state)
{
    (void)state;
    begin(RBI_SHIELD_POLARIS, 2);
    bench.policy.window_count = 0;
    shield_apply(&bench);
    count(1000, 9, 9);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->health, RBI_HEALTH_OK);
    count(0, 1, 10);
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, 1)->health, RBI_HEALTH_OPEN);
    assert_int_equal(shield_of(&bench, 1)->reason, RBI_SHIELD_BECAUSE_CONSECUTIVE);
}

/* tseer: 5 within 5 s. Slower than that is not it. */
static void test_streak_within_its_time(void **state)
{
    (void)state;
    for (unsigned slow = 0; slow < 2; slow++) {
        begin(RBI_SHIELD_TSEER, 2);
        bench.policy.window_count = 0;
        shield_apply(&bench);
        for (unsigned i = 0; i < 5; i++) {
            count(0, 1, i + 1);
            shield_sweep(&bench);
            shield_sweep_after(&bench, slow ? 1250 : 500);
        }
        assert_int_equal(shield_of(&bench, 1)->health, slow ? RBI_HEALTH_OK : RBI_HEALTH_OPEN);
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

/* A streak that nobody goes on with is forgotten after a minute: nothing is known. */
static void test_streak_fades(void **state)
{
    (void)state;
    begin(RBI_SHIELD_POLARIS, 1);
    count(0, 10, 10);
    shield_sweep(&bench);
    assert_int_equal(bench.cluster.failing, 1);
    assert_true(rbi_shield_panics(&bench.cluster));
    while (rbi_shield_due(&bench.cluster) != UINT64_MAX) {
        assert_true(bench.turn.now_ns < SHIELD_START + 62000 * SHIELD_MS);
        shield_sweep(&bench);
    }
    assert_int_equal(bench.cluster.failing, 0);
    assert_false(rbi_shield_panics(&bench.cluster));
}

static void slow_calls(int32_t id, uint32_t calls, uint32_t slow)
{
    const struct rbi_shield_outcomes outcomes = {.ok = calls, .slow = slow, .latency_ns = 9000};
    rbi_shield_count(&bench.cluster, id, SHIELD_LIFE, &outcomes);
}

static void test_slow_calls(void **state)
{
    static const struct {
        uint32_t calls;
        uint32_t slow;
        uint32_t others; /* slow, of 20 */
        bool trips;
    } cases[] = {
        {20, 10, 0, true},  {19, 19, 0, false},  {20, 9, 0, false}, {20, 10, 6, true},
        {20, 10, 7, false}, {20, 20, 20, false}, {20, 99, 0, true}}; /* a caller that lies */
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(RBI_SHIELD_DEFAULT, 3);
        slow_calls(1, 20, 20);
        shield_sweep(&bench);
        assert_int_equal(shield_of(&bench, 1)->health, RBI_HEALTH_OK); /* off by default */
        bench.policy.slow_ms = 5;
        shield_apply(&bench);
        slow_calls(1, cases[i].calls, cases[i].slow);
        slow_calls(2, 20, cases[i].others);
        slow_calls(3, 20, cases[i].others);
        shield_sweep(&bench);
        assert_int_equal(shield_of(&bench, 1)->health,
                         cases[i].trips ? RBI_HEALTH_OPEN : RBI_HEALTH_OK);
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

/* envoy: below mean - 1.9 sigma, at least 5 instances with at least 100 calls. */
static void test_deviation(void **state)
{
    static const struct {
        unsigned hosts;
        uint32_t calls;
        uint32_t fails; /* percent, of the first; of the others 1 */
        bool trips;
    } cases[] = {{10, 100, 40, true},
                 {10, 99, 40, false},
                 {4, 100, 40, false},
                 {10, 100, 1, false},
                 {5, 100, 40, true}};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(RBI_SHIELD_ENVOY, cases[i].hosts);
        for (unsigned id = 1; id <= cases[i].hosts; id++) {
            const uint32_t fails = id == 1 ? cases[i].fails : 1;
            shield_calls(&bench, (int32_t)id, cases[i].calls - fails, fails);
        }
        shield_sweep(&bench);
        assert_int_equal(shield_out(&bench), cases[i].trips);
        if (cases[i].trips) {
            assert_int_equal(shield_of(&bench, 1)->reason, RBI_SHIELD_BECAUSE_DEVIATION);
        }
        rbi_shield_deinit(&bench.cluster);
    }
    begin(RBI_SHIELD_DEFAULT, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_window_trips_at_its_numbers, finish),
        cmocka_unit_test_teardown(test_window_event_names_the_rule, finish),
        cmocka_unit_test_teardown(test_window_holds_its_sweeps, finish),
        cmocka_unit_test_teardown(test_cap_of_equal_weights, finish),
        cmocka_unit_test_teardown(test_cap_of_weights, finish),
        cmocka_unit_test_teardown(test_cap_holds_when_members_leave, finish),
        cmocka_unit_test_teardown(test_cap_is_told_once, finish),
        cmocka_unit_test_teardown(test_median_of_the_others, finish),
        cmocka_unit_test_teardown(test_median_spares_and_says_so, finish),
        cmocka_unit_test_teardown(test_quiet_window, finish),
        cmocka_unit_test_teardown(test_quiet_window_waits, finish),
        cmocka_unit_test_teardown(test_streak_over_callers, finish),
        cmocka_unit_test_teardown(test_streak_trips, finish),
        cmocka_unit_test_teardown(test_streak_within_its_time, finish),
        cmocka_unit_test_teardown(test_streak_fades, finish),
        cmocka_unit_test_teardown(test_slow_calls, finish),
        cmocka_unit_test_teardown(test_deviation, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
