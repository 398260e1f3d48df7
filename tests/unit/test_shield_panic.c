/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Panic, and what a cluster's members do to it. Features 2.5, section 3 (panic unseen, health
 * shown true while protected); scenario 91 (nobody looks healthy).
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

static void begin(unsigned n)
{
    rbi_shield_deinit(&bench.cluster);
    assert_true(shield_begin(&bench, RBI_SHIELD_DEFAULT, n));
}

/** One sweep in which the first @p failing of @p n fail. */
static void sweep(unsigned failing, unsigned n)
{
    for (unsigned id = 1; id <= n; id++) {
        shield_calls(&bench, (int32_t)id, id <= failing ? 0 : 10, id <= failing ? 10 : 0);
    }
    shield_sweep(&bench);
}

/* Enters below 50, stays at 50 to 59, leaves at 60. */
static void test_panic_hysteresis(void **state)
{
    static const struct rbi_panic_policy policy = {.enter = 50, .leave = 60};
    (void)state;
    for (uint64_t healthy = 0; healthy <= 100; healthy++) {
        struct rbi_panic panic = {.on = false};
        assert_int_equal(rbi_panic_step(&panic, &policy, healthy, 100),
                         healthy < 50 ? RBI_PANIC_ENTERED : RBI_PANIC_SAME);
        panic.on = true;
        assert_int_equal(rbi_panic_step(&panic, &policy, healthy, 100),
                         healthy >= 60 ? RBI_PANIC_LEFT : RBI_PANIC_SAME);
        assert_int_equal(panic.on, healthy < 60);
    }
}

static void test_panic_odd_policies(void **state)
{
    struct rbi_panic panic = {.on = false};
    (void)state;
    /* off */
    assert_int_equal(rbi_panic_step(&panic, &(struct rbi_panic_policy){0}, 0, 100), RBI_PANIC_SAME);
    /* leave below enter: as enter, or it would flap */
    const struct rbi_panic_policy odd = {.enter = 50, .leave = 10};
    assert_int_equal(rbi_panic_step(&panic, &odd, 49, 100), RBI_PANIC_ENTERED);
    assert_int_equal(rbi_panic_step(&panic, &odd, 49, 100), RBI_PANIC_SAME);
    assert_int_equal(rbi_panic_step(&panic, &odd, 50, 100), RBI_PANIC_LEFT);
    /* above 100 %: all healthy ends it, always */
    const struct rbi_panic_policy high = {.enter = 100, .leave = 1000};
    assert_int_equal(rbi_panic_step(&panic, &high, 99, 100), RBI_PANIC_ENTERED);
    assert_int_equal(rbi_panic_step(&panic, &high, 100, 100), RBI_PANIC_LEFT);
    /* nobody there */
    panic.on = true;
    assert_int_equal(rbi_panic_step(&panic, &high, 0, 0), RBI_PANIC_LEFT);
}

/* Scenario 91: ten instances, all fail at once. PANIC, told once; health stays what it is. */
static void test_all_fail(void **state)
{
    (void)state;
    begin(10);
    sweep(10, 10);
    assert_true(rbi_shield_panics(&bench.cluster));
    assert_int_equal(bench.cluster.failing, 10);
    assert_int_equal(shield_out(&bench), 0); /* the others are as bad */
    assert_int_equal(shield_last(&bench)->kind, RBI_SHIELD_PANIC);
    assert_int_equal(shield_last(&bench)->healthy, 0);
    for (unsigned i = 0; i < 40; i++) {
        sweep(10, 10);
    }
    unsigned told = 0;
    for (unsigned i = 0; i < bench.count; i++) {
        told += bench.events[i].kind == RBI_SHIELD_PANIC;
    }
    assert_int_equal(told, 1);
    for (unsigned i = 0; rbi_shield_panics(&bench.cluster); i++) {
        assert_true(i < 40); /* 10 s */
        sweep(0, 10);
    }
    assert_int_equal(shield_last(&bench)->kind, RBI_SHIELD_PANIC_OVER);
    assert_true(shield_last(&bench)->healthy >= 60);
}

/* Six of ten: five may be shielded, the sixth counts as unhealthy all the same. */
static void test_panic_counts_who_was_spared(void **state)
{
    (void)state;
    begin(10);
    bench.policy.above_median = 0;
    shield_apply(&bench);
    sweep(5, 10);
    assert_int_equal(shield_out(&bench), 5);
    assert_false(rbi_shield_panics(&bench.cluster));
    sweep(6, 10);
    sweep(6, 10);
    sweep(6, 10);
    sweep(6, 10);
    assert_int_equal(shield_out(&bench), 5);
    assert_true(rbi_shield_panics(&bench.cluster));
    assert_int_equal(shield_last_of(&bench, RBI_SHIELD_PANIC)->healthy, 40);
    assert_int_equal(shield_of(&bench, 1)->health == RBI_HEALTH_OK, 0); /* truth stays */
}

/* The answers of docs/guide/health.md, with the default rules. */
static void test_some_of_two_and_three(void **state)
{
    static const struct {
        unsigned failing;
        unsigned members;
        unsigned out;
        bool panics;
    } cases[] = {{1, 2, 1, false}, {1, 3, 1, false}, {2, 3, 1, true},
                 {2, 2, 0, true},  {2, 4, 2, false}, {3, 4, 0, true}};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(cases[i].members);
        sweep(cases[i].failing, cases[i].members);
        sweep(cases[i].failing, cases[i].members);
        assert_int_equal(shield_out(&bench), cases[i].out);
        assert_int_equal(rbi_shield_panics(&bench.cluster), cases[i].panics);
    }
}

/* One alone is never shielded; that it fails is told as panic. */
static void test_panic_of_one(void **state)
{
    (void)state;
    begin(1);
    sweep(1, 1);
    assert_int_equal(shield_of(&bench, 1)->health, RBI_HEALTH_OK);
    assert_true(rbi_shield_panics(&bench.cluster));
    rbi_shield_remove(&bench.cluster, 1, &bench.turn);
    shield_sweep(&bench);
    assert_false(rbi_shield_panics(&bench.cluster)); /* nobody is left to panic for */
    assert_true(rbi_shield_due(&bench.cluster) == UINT64_MAX);
}

/* ---- members ----------------------------------------------------------------------------- */

static void test_members_are_found(void **state)
{
    (void)state;
    begin(0);
    for (int32_t i = 0; i < 1000; i++) {
        const int32_t id = i * 617 % 1000 + 1;
        assert_int_equal(rbi_shield_put(&bench.cluster, id, 7, 1, &bench.turn), 0);
    }
    assert_int_equal(bench.cluster.weight, 1000);
    for (int32_t id = 2; id <= 1000; id += 2) {
        rbi_shield_remove(&bench.cluster, id, &bench.turn);
        rbi_shield_remove(&bench.cluster, id, &bench.turn); /* again: ignored */
    }
    for (int32_t id = 0; id <= 1001; id++) {
        assert_int_equal(rbi_shield_find(&bench.cluster, id) != NULL, id % 2 == 1 && id < 1000);
    }
    assert_int_equal(bench.cluster.weight, 500);
    assert_int_equal(rbi_shield_unshield(&bench.cluster, 2, &bench.turn), 1);
}

static void test_members_have_a_bound(void **state)
{
    (void)state;
    begin(0);
    for (int32_t id = 1; id <= (int32_t)RBI_SHIELD_MEMBERS_MAX; id++) {
        assert_int_equal(rbi_shield_put(&bench.cluster, id, 7, 1, &bench.turn), 0);
    }
    assert_int_equal(rbi_shield_put(&bench.cluster, 0x7fffffff, 7, 1, &bench.turn), 1);
    assert_int_equal(rbi_shield_put(&bench.cluster, 5, 8, 3, &bench.turn), 0); /* is there */
}

/* An idle cluster asks for no sweep; one call that failed keeps it awake for its minute. */
static void test_due_only_while_something_waits(void **state)
{
    (void)state;
    begin(3);
    assert_true(rbi_shield_due(&bench.cluster) == UINT64_MAX);
    shield_calls(&bench, 1, 5, 0);
    assert_true(rbi_shield_due(&bench.cluster) == bench.turn.now_ns + 250 * SHIELD_MS);
    shield_sweep(&bench);
    assert_true(rbi_shield_due(&bench.cluster) == UINT64_MAX);
    shield_calls(&bench, 1, 5, 1);
    uint64_t since_ns = bench.turn.now_ns;
    while (rbi_shield_due(&bench.cluster) != UINT64_MAX) {
        shield_sweep(&bench);
    }
    assert_in_range((bench.turn.now_ns - since_ns) / SHIELD_MS, 57500, 60250);
}

/* Whatever the numbers are: it works, and comes to an end. */
static void test_policy_out_of_range(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin(4);
        memset(&bench.policy, i == 0 ? 0 : 0xff, sizeof bench.policy);
        bench.policy.preset = RBI_SHIELD_DEFAULT;
        bench.policy.consecutive = 3;
        bench.policy.consecutive_ms = 0;
        bench.policy.above_median = 0;
        bench.policy.max_percent = 50;
        shield_apply(&bench);
        for (unsigned j = 0; j < 1000; j++) {
            shield_calls(&bench, 1, 0, UINT32_MAX);
            shield_calls(&bench, 2, UINT32_MAX, UINT32_MAX);
            shield_sweep(&bench);
            shield_answer(&bench, 1, true);
            while (shield_grant(&bench)) {
                shield_end(&bench, RBI_SHIELD_PROBE_FAIL);
            }
        }
        assert_in_range(shield_out(&bench), 1, 2);
    }
}

static void test_preset_off(void **state)
{
    (void)state;
    begin(4);
    sweep(1, 4);
    assert_int_equal(shield_out(&bench), 1);
    rbi_shield_preset(&bench.policy, RBI_SHIELD_OFF);
    shield_apply(&bench);
    for (unsigned i = 0; i < 20; i++) {
        sweep(4, 4);
        assert_int_equal(shield_out(&bench), 0);
        assert_false(rbi_shield_panics(&bench.cluster));
    }
}

static void test_reason_names(void **state)
{
    (void)state;
    assert_string_equal(rbi_shield_reason_name(RBI_SHIELD_BECAUSE_NONE), "none");
    assert_string_equal(rbi_shield_reason_name(RBI_SHIELD_BECAUSE_PROBES_OK), "probes ok");
    assert_string_equal(rbi_shield_reason_name(RBI_SHIELD_BECAUSE_POLICY), "policy");
    assert_string_equal(rbi_shield_reason_name((enum rbi_shield_reason)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_panic_hysteresis, finish),
        cmocka_unit_test_teardown(test_panic_odd_policies, finish),
        cmocka_unit_test_teardown(test_all_fail, finish),
        cmocka_unit_test_teardown(test_panic_counts_who_was_spared, finish),
        cmocka_unit_test_teardown(test_some_of_two_and_three, finish),
        cmocka_unit_test_teardown(test_panic_of_one, finish),
        cmocka_unit_test_teardown(test_members_are_found, finish),
        cmocka_unit_test_teardown(test_members_have_a_bound, finish),
        cmocka_unit_test_teardown(test_due_only_while_something_waits, finish),
        cmocka_unit_test_teardown(test_policy_out_of_range, finish),
        cmocka_unit_test_teardown(test_preset_off, finish),
        cmocka_unit_test_teardown(test_reason_names, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
