/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of retries (features 2.10): 20 % of the requests, 3 a second at least, and none
 * while most of what is asked fails. On virtual time. */
#include "bus/retry_budget.h"
#include "support/test.h"

#define S UINT64_C(1000000000)

static struct rbi_retry_budget budget;

static unsigned take(unsigned wanted, uint64_t now_ns)
{
    unsigned got = 0;
    for (unsigned i = 0; i < wanted; i++) {
        got += rbi_retry_budget_take(&budget, 20, 3, now_ns) ? 1U : 0U;
    }
    return got;
}

static void ask(unsigned count, uint64_t now_ns)
{
    for (unsigned i = 0; i < count; i++) {
        rbi_retry_budget_asked(&budget, now_ns);
    }
}

static void test_share_of_the_requests(void **state)
{
    (void)state;
    rbi_retry_budget_init(&budget);
    ask(1000, 5 * S);
    assert_int_equal(take(1000, 5 * S), 200);
    ask(100, 6 * S);
    /* The window holds 1100 requests and 200 retries; of a new second, 3 whatever the share. */
    assert_int_equal(take(1000, 6 * S), 20);
    assert_int_equal(take(1000, 7 * S), 3);
}

static void test_three_a_second_for_who_asks_seldom(void **state)
{
    (void)state;
    rbi_retry_budget_init(&budget);
    for (uint64_t s = 0; s < 100; s++) {
        ask(1, s * S);
        assert_int_equal(take(10, s * S + 5), 3);
        assert_int_equal(take(10, s * S + S - 1), 0);
    }
}

static void test_window_forgets(void **state)
{
    (void)state;
    rbi_retry_budget_init(&budget);
    ask(1000, 100 * S);
    assert_int_equal(take(200, 100 * S), 200);
    /* 9 s later both still count; after 10 neither does. */
    ask(10, 109 * S);
    assert_int_equal(take(10, 109 * S), 3);
    ask(100, 110 * S);
    assert_int_equal(take(100, 110 * S), 19); /* 20 % of 110, 3 were taken */
    /* A clock that stands still or an age without a call does no harm. */
    assert_int_equal(take(10, 110 * S), 0);
    assert_int_equal(take(10, UINT64_MAX), 3);
}

/* 10 tokens: 5 failures stop it, and 0.1 a success lets it go on. */
static void test_throttle(void **state)
{
    (void)state;
    rbi_retry_budget_init(&budget);
    ask(10000, S);
    for (unsigned i = 0; i < 4; i++) {
        rbi_retry_budget_ended(&budget, false);
    }
    assert_int_equal(take(1, S), 1);
    rbi_retry_budget_ended(&budget, false);
    assert_int_equal(take(1, S), 0); /* at half */
    rbi_retry_budget_ended(&budget, true);
    assert_int_equal(take(1, S), 1);
    for (unsigned i = 0; i < 100; i++) {
        rbi_retry_budget_ended(&budget, false);
    }
    for (unsigned i = 0; i < 50; i++) {
        rbi_retry_budget_ended(&budget, true);
        assert_int_equal(take(1, S), 0);
    }
    rbi_retry_budget_ended(&budget, true);
    assert_int_equal(take(1, S), 1);
    /* Never over 10. */
    for (unsigned i = 0; i < 1000; i++) {
        rbi_retry_budget_ended(&budget, true);
    }
    for (unsigned i = 0; i < 5; i++) {
        rbi_retry_budget_ended(&budget, false);
    }
    assert_int_equal(take(1, S), 0);
}

/* An outage: each request fails, each failure would be asked again for ever. */
static void test_outage_is_not_amplified(void **state)
{
    (void)state;
    unsigned retries = 0;
    rbi_retry_budget_init(&budget);
    for (unsigned ms = 0; ms < 60000; ms++) {
        rbi_retry_budget_asked(&budget, ms * (S / 1000));
        rbi_retry_budget_ended(&budget, false);
        while (rbi_retry_budget_take(&budget, 20, 3, ms * (S / 1000))) {
            retries++;
            rbi_retry_budget_ended(&budget, false);
        }
    }
    assert_true(retries < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_of_the_requests),
        cmocka_unit_test(test_three_a_second_for_who_asks_seldom),
        cmocka_unit_test(test_window_forgets),
        cmocka_unit_test(test_throttle),
        cmocka_unit_test(test_outage_is_not_amplified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
