/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a policy for one caller. Features 2.8: several limits, all must pass, none pays for a
 * message that another refuses; features 3: limits of different rates do not know of each other.
 */
#include "bus/limit.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define START_NS  UINT64_C(55555555555)
#define CALLER    "zone/eu/9/game/gate/g1"

static struct rbi_policy policy;
static struct rbi_limits limits;
static struct rbi_limit_words shared;
static struct rbi_limit_words own;

static int setup(void **state)
{
    (void)state;
    memset(&policy, 0, sizeof policy);
    memset(&limits, 0, sizeof limits);
    memset(&shared, 0, sizeof shared);
    memset(&own, 0, sizeof own);
    return 0;
}

static struct rbi_limit *add(const char *id, enum rbi_limit_scope scope, uint64_t rate)
{
    struct rbi_limit *limit = &policy.limits[policy.limit_count++];
    (void)snprintf(limit->id, sizeof limit->id, "%s", id);
    limit->scope = scope;
    limit->rate = rate;
    limit->method_high = UINT32_MAX;
    return limit;
}

static void compile(unsigned scopes)
{
    rbi_limits_compile(&limits, &policy, CALLER, strlen(CALLER), scopes);
}

static enum rbi_limit_result
offer(uint32_t method, uint64_t bytes, uint64_t now_ns, struct rbi_limit_verdict *verdict)
{
    const struct rbi_limit_question question = {.method = method, .bytes = bytes, .now_ns = now_ns};
    const enum rbi_limit_result result =
        rbi_limits_check(&limits, &shared, &own, &question, verdict);
    if (result != RBI_LIMIT_REFUSE) {
        rbi_limits_take(&limits, &shared, &own, &question);
    }
    return result;
}

/** Messages that pass at once. */
static unsigned passes(uint32_t method, uint64_t bytes, uint64_t now_ns)
{
    struct rbi_limit_verdict verdict;
    unsigned count = 0;
    while (count < 100000 && offer(method, bytes, now_ns, &verdict) == RBI_LIMIT_PASS) {
        count++;
    }
    return count;
}

static void test_compile_takes_what_concerns_caller_and_scope(void **state)
{
    (void)state;
    (void)snprintf(add("mine", RBI_LIMIT_CALLER, 1)->caller, 64, "zone/eu/*/game/gate/*");
    (void)snprintf(add("other", RBI_LIMIT_CALLER, 1)->caller, 64, "zone/us/**");
    (void)snprintf(add("below", RBI_LIMIT_CLUSTER, 1)->caller, 64, "zone/**");
    add("all", RBI_LIMIT_INSTANCE, 1);
    add("reading", RBI_LIMIT_RECEIVER, 1);
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(limits.count, 3);
    assert_int_equal(limits.rules[0].index, 0);
    assert_int_equal(limits.rules[1].index, 2);
    assert_int_equal(limits.rules[2].index, 3);
    assert_int_equal(limits.scopes, RBI_LIMITS_OF_CALLER);
    compile(RBI_LIMITS_OF_RECEIVER);
    assert_int_equal(limits.count, 1);
    assert_int_equal(limits.rules[0].index, 4);
    assert_int_equal(limits.scopes, RBI_LIMITS_OF_RECEIVER);
}

static void test_refusal_takes_nothing_from_the_others(void **state)
{
    (void)state;
    struct rbi_limit_verdict verdict;
    add("narrow", RBI_LIMIT_CALLER, 10)->burst = 3;
    add("wide", RBI_LIMIT_CALLER, 1000)->burst = 5;
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(passes(0, 1, START_NS), 3);
    const struct rbi_gcra before = shared.word[1];
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(offer(0, 1, START_NS, &verdict), RBI_LIMIT_REFUSE);
        assert_int_equal(verdict.rule, 0);
        assert_int_equal(verdict.wait_ns, 100 * NS_PER_MS);
    }
    assert_memory_equal(&before, &shared.word[1], sizeof before);
}

/* Three of rates and bursts that have nothing in common: each is kept as if it were alone. */
static void test_nested_limits_are_independent(void **state)
{
    (void)state;
    struct rbi_limit_verdict verdict;
    add("second", RBI_LIMIT_CALLER, 100)->burst = 10;
    add("bulk", RBI_LIMIT_CALLER, 17)->burst = 170; /* no multiple of it, nor a part */
    add("bytes", RBI_LIMIT_CALLER, 1111)->unit = RBI_LIMIT_BYTES;
    policy.limits[2].burst = 100000;
    compile(RBI_LIMITS_OF_CALLER);
    uint64_t passed = 0;
    for (uint64_t ms = 0; ms < 100000; ms++) {
        passed += offer(0, 50, START_NS + ms * NS_PER_MS, &verdict) == RBI_LIMIT_PASS;
    }
    /* In 100 s: 10,010; 1,870; (111,100 + 100,000) / 50 = 4,222. The least of them decides. */
    assert_in_range(passed, 1869, 1871);
}

static void test_method_range_is_inclusive(void **state)
{
    (void)state;
    struct rbi_limit *limit = add("some", RBI_LIMIT_CALLER, 1);
    limit->method_low = 100;
    limit->method_high = 199;
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(passes(99, 1, START_NS), 100000);
    assert_int_equal(passes(200, 1, START_NS), 100000);
    assert_int_equal(passes(100, 1, START_NS), 1);
    assert_int_equal(passes(199, 1, START_NS), 0);
}

static void test_instance_scope_counts_for_each_instance(void **state)
{
    (void)state;
    add("each", RBI_LIMIT_INSTANCE, 10)->burst = 4;
    add("all", RBI_LIMIT_CALLER, 10)->burst = 7;
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(passes(0, 1, START_NS), 4);
    memset(&own, 0, sizeof own); /* another instance */
    assert_int_equal(passes(0, 1, START_NS), 3);
}

static void test_dry_run_refuses_and_delays_nothing_and_tells(void **state)
{
    (void)state;
    struct rbi_limit_verdict verdict;
    struct rbi_limit *limit = add("dry", RBI_LIMIT_CALLER, 1000);
    limit->dry_run = 1;
    limit->burst = 1;
    limit->max_wait_ms = 5;
    compile(RBI_LIMITS_OF_CALLER);
    unsigned refused = 0;
    for (uint64_t us = 0; us < 1000000; us += 100) { /* 10,000 in one second: ten times the rate */
        assert_int_equal(offer(0, 1, START_NS + us * 1000, &verdict), RBI_LIMIT_PASS);
        refused += verdict.dry_refused;
    }
    assert_in_range(refused, 8990, 9000); /* as many as it would have */
}

static void test_delay_and_refusal_name_the_limit_that_decides(void **state)
{
    (void)state;
    struct rbi_limit_verdict verdict;
    add("shape", RBI_LIMIT_CALLER, 1000)->max_wait_ms = 10;
    policy.limits[0].burst = 1;
    add("cut", RBI_LIMIT_CALLER, 1000)->burst = 5;
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(offer(0, 1, START_NS, &verdict), RBI_LIMIT_PASS);
    for (unsigned i = 1; i < 5; i++) {
        assert_int_equal(offer(0, 1, START_NS, &verdict), RBI_LIMIT_DELAY);
        assert_int_equal(verdict.rule, 0);
        assert_int_equal(verdict.wait_ns, i * NS_PER_MS);
    }
    assert_int_equal(offer(0, 1, START_NS, &verdict), RBI_LIMIT_REFUSE);
    assert_int_equal(verdict.rule, 1);
    assert_int_equal(verdict.wait_ns, 5 * NS_PER_MS); /* of the other: it passes both then */
}

static void test_change_of_the_policy_gives_no_second_burst(void **state)
{
    (void)state;
    add("a", RBI_LIMIT_CALLER, 10)->burst = 5;
    add("b", RBI_LIMIT_CALLER, 1000)->burst = 100;
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(passes(0, 1, START_NS), 5);
    const struct rbi_limits old_limits = limits;
    const struct rbi_limit_words old_words = shared;
    setup(state);
    add("new", RBI_LIMIT_CALLER, 1000);
    add("a", RBI_LIMIT_CALLER, 10)->burst = 5;
    compile(RBI_LIMITS_OF_CALLER);
    shared = old_words;
    rbi_limit_words_carry(&shared, &limits, &shared, &old_limits, START_NS);
    assert_int_equal(passes(0, 1, START_NS), 0);
    assert_int_equal(passes(0, 1, START_NS + 200 * NS_PER_MS), 2);
}

static void test_leased_rate_replaces_the_policys(void **state)
{
    (void)state;
    struct rbi_limit_verdict verdict;
    add("quota", RBI_LIMIT_CLUSTER, 1000);
    compile(RBI_LIMITS_OF_CALLER);
    rbi_limits_set_rate(&limits, &shared, 0, 250 * 1000, START_NS);
    uint64_t passed = 0;
    for (uint64_t ms = 0; ms < 10000; ms++) {
        passed += offer(0, 1, START_NS + ms * NS_PER_MS, &verdict) == RBI_LIMIT_PASS;
    }
    assert_in_range(passed, 2500, 2525); /* and 100 ms of it as burst */
    /* One in 1000 s: still not never. */
    rbi_limits_set_rate(&limits, &shared, 0, 1, START_NS + 10 * NS_PER_S);
    passed = 0;
    for (uint64_t s = 0; s < 10000; s++) {
        passed += offer(0, 1, START_NS + (10 + s) * NS_PER_S, &verdict) == RBI_LIMIT_PASS;
    }
    assert_in_range(passed, 10, 11);
}

/*
 * A share that was next to nothing for a moment, as those that grow are until the others have been
 * told less, binds nobody when it has grown; and what was sent at a great rate is not forgiven by
 * a small one between.
 */
static void test_share_that_grows_frees_whoever_sent_at_a_small_one(void **state)
{
    (void)state;
    add("quota", RBI_LIMIT_CLUSTER, 1000)->burst = 10;
    compile(RBI_LIMITS_OF_CALLER);
    rbi_limits_set_rate(&limits, &shared, 0, 1, START_NS);
    assert_int_equal(passes(0, 1, START_NS), 1);
    assert_int_equal(passes(0, 1, START_NS + 100 * NS_PER_MS), 0);
    rbi_limits_set_rate(&limits, &shared, 0, 1000 * 1000, START_NS + 100 * NS_PER_MS);
    assert_int_equal(passes(0, 1, START_NS + 100 * NS_PER_MS), 9); /* one is paid for still */

    const uint64_t later_ns = START_NS + 10 * NS_PER_S;
    assert_int_equal(passes(0, 1, later_ns), 10);
    rbi_limits_set_rate(&limits, &shared, 0, 1, later_ns);
    rbi_limits_set_rate(&limits, &shared, 0, 1000 * 1000, later_ns);
    assert_int_equal(passes(0, 1, later_ns), 0);
    assert_int_equal(passes(0, 1, later_ns + 5 * NS_PER_MS), 5);
}

static void test_policy_with_another_rate_carries_units_not_time(void **state)
{
    (void)state;
    add("a", RBI_LIMIT_CALLER, 1)->burst = 2;
    compile(RBI_LIMITS_OF_CALLER);
    assert_int_equal(passes(0, 1, START_NS), 2); /* two seconds ahead */
    const struct rbi_limits old_limits = limits;
    const struct rbi_limit_words old_words = shared;
    setup(state);
    add("a", RBI_LIMIT_CALLER, 1000)->burst = 2;
    compile(RBI_LIMITS_OF_CALLER);
    rbi_limit_words_carry(&shared, &limits, &old_words, &old_limits, START_NS);
    assert_int_equal(passes(0, 1, START_NS), 0);
    assert_int_equal(passes(0, 1, START_NS + 2 * NS_PER_MS), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_compile_takes_what_concerns_caller_and_scope, setup),
        cmocka_unit_test_setup(test_refusal_takes_nothing_from_the_others, setup),
        cmocka_unit_test_setup(test_nested_limits_are_independent, setup),
        cmocka_unit_test_setup(test_method_range_is_inclusive, setup),
        cmocka_unit_test_setup(test_instance_scope_counts_for_each_instance, setup),
        cmocka_unit_test_setup(test_dry_run_refuses_and_delays_nothing_and_tells, setup),
        cmocka_unit_test_setup(test_delay_and_refusal_name_the_limit_that_decides, setup),
        cmocka_unit_test_setup(test_change_of_the_policy_gives_no_second_burst, setup),
        cmocka_unit_test_setup(test_leased_rate_replaces_the_policys, setup),
        cmocka_unit_test_setup(test_share_that_grows_frees_whoever_sent_at_a_small_one, setup),
        cmocka_unit_test_setup(test_policy_with_another_rate_carries_units_not_time, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
