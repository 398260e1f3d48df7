/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rate for many callers. Features 2.8 (c): divided by demand, what is not used returns, and a
 * caller that hears of no daemon has its static share: neither nothing nor everything.
 */
#include "bus/lease.h"
#include "support/test.h"

#include <string.h>

#define CALLERS_MAX 300U
#define START_NS    UINT64_C(987654321000)
#define MS          UINT64_C(1000000)

static uint64_t seed;
static struct rbi_lease leases[CALLERS_MAX];
static uint32_t order[CALLERS_MAX];

static uint64_t random_below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 11) % n;
}

static uint64_t sum(unsigned count)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < count; i++) {
        all += leases[i].share;
    }
    return all;
}

static void demand(unsigned at, uint64_t units)
{
    leases[at] = (struct rbi_lease){.demand = units};
}

static void test_divide_gives_the_modest_what_they_want_and_the_rest_equally(void **state)
{
    (void)state;
    demand(0, 1000);
    demand(1, 100);
    demand(2, 5000);
    demand(3, 200);
    rbi_lease_divide(1500, leases, 4, order);
    assert_int_equal(leases[1].share, 100);
    assert_int_equal(leases[3].share, 200);
    assert_int_equal(leases[0].share, 600);
    assert_int_equal(leases[2].share, 600);
    /* More than all want: everybody may have a little more at once. */
    rbi_lease_divide(10300, leases, 4, order);
    assert_int_equal(leases[1].share, 100 + 1000);
    assert_int_equal(leases[2].share, 5000 + 1000);
    assert_int_equal(sum(4), 10300);
    rbi_lease_divide(77, leases, 1, order);
    assert_int_equal(leases[0].share, 77);
    rbi_lease_divide(77, leases, 0, order);
}

static void test_divide_keeps_the_sum_and_is_max_min_fair(void **state)
{
    (void)state;
    seed = 23;
    for (unsigned round = 0; round < 3000; round++) {
        const unsigned count = 1 + (unsigned)random_below(CALLERS_MAX);
        const uint64_t rate = 1 + random_below(UINT64_C(1) << (1 + random_below(40)));
        for (unsigned i = 0; i < count; i++) {
            demand(i, random_below(8) == 0 ? UINT64_MAX >> random_below(30)
                                           : random_below(2 * rate / count + 2));
        }
        rbi_lease_divide(rate, leases, count, order);
        assert_true(sum(count) <= rate);
        assert_true(sum(count) + count > rate); /* nothing of it is left lying */
        uint64_t least_unmet = UINT64_MAX;
        uint64_t greatest = 0;
        for (unsigned i = 0; i < count; i++) {
            if (leases[i].share < leases[i].demand) {
                least_unmet = rbi_min_u64(least_unmet, leases[i].share);
            }
            greatest = rbi_max_u64(greatest, leases[i].share);
        }
        /* Whoever lacks something has as much as anybody, but for what does not divide. */
        assert_true(least_unmet == UINT64_MAX || least_unmet + 1 >= greatest);
    }
}

/* Over random changes of demand, what the callers go by is never more than there is. */
static void test_settle_gives_only_what_was_given_back(void **state)
{
    (void)state;
    seed = 31;
    const uint64_t rate = 100000;
    const unsigned count = 20;
    memset(leases, 0, sizeof leases);
    for (unsigned round = 0; round < 5000; round++) {
        uint64_t before = 0;
        for (unsigned i = 0; i < count; i++) {
            if (random_below(5) == 0) {
                leases[i].demand = random_below(3) == 0 ? 0 : random_below(rate);
            }
            before += leases[i].told;
        }
        rbi_lease_divide(rate, leases, count, order);
        rbi_lease_settle(rate, leases, count);
        /* Some have heard of it already, and some have not. */
        uint64_t worst = 0;
        for (unsigned i = 0; i < count; i++) {
            worst += rbi_max_u64(leases[i].share, leases[i].told);
            leases[i].told = leases[i].share;
        }
        assert_true(worst <= rate);
        assert_true(before <= rate);
    }
    /* Two rounds after the last change it is divided as it should be. */
    rbi_lease_divide(rate, leases, count, order);
    rbi_lease_settle(rate, leases, count);
    for (unsigned i = 0; i < count; i++) {
        leases[i].told = leases[i].share;
    }
    rbi_lease_divide(rate, leases, count, order);
    assert_true(sum(count) + count > rate);
    rbi_lease_settle(rate, leases, count);
    assert_true(sum(count) + count > rate);
}

static void test_static_share_is_never_nothing(void **state)
{
    (void)state;
    assert_int_equal(rbi_lease_static(1000, 4), 250);
    assert_int_equal(rbi_lease_static(1000, 0), 1000);
    assert_int_equal(rbi_lease_static(3, 4), 1);
}

static void test_holder_without_a_fresh_lease_has_the_static_share(void **state)
{
    (void)state;
    struct rbi_lease_holder holder;
    rbi_lease_holder_init(&holder, 16000);
    assert_int_equal(rbi_lease_rate(&holder, START_NS), 1000);
    rbi_lease_granted(&holder, 9000, 4000, START_NS);
    assert_int_equal(rbi_lease_rate(&holder, START_NS), 9000);
    assert_int_equal(rbi_lease_rate(&holder, START_NS + 999 * MS), 9000);
    assert_int_equal(rbi_lease_rate(&holder, START_NS + 1000 * MS), 4000);
    rbi_lease_granted(&holder, 0, 0, START_NS);
    assert_int_equal(rbi_lease_rate(&holder, START_NS), 1);
    assert_int_equal(rbi_lease_rate(&holder, START_NS + 2000 * MS), 1);
}

static void test_holder_asks_at_once_and_then_each_period(void **state)
{
    (void)state;
    struct rbi_lease_holder holder;
    uint64_t wanted = 0;
    rbi_lease_holder_init(&holder, 16000);
    assert_false(rbi_lease_ask(&holder, START_NS, &wanted)); /* offers nothing */
    holder.units = 1;
    assert_true(rbi_lease_ask(&holder, START_NS, &wanted));
    assert_int_equal(wanted, 10 * 1000);
    holder.units = 500;
    assert_false(rbi_lease_ask(&holder, START_NS + 99 * MS, &wanted));
    assert_true(rbi_lease_ask(&holder, START_NS + 125 * MS, &wanted));
    assert_int_equal(wanted, 4000 * 1000); /* 500 in 125 ms */
    assert_false(rbi_lease_ask(&holder, START_NS + 300 * MS, &wanted));
    holder.units = 7;
    assert_true(rbi_lease_ask(&holder, START_NS + 60000 * MS, &wanted));
    assert_int_equal(wanted, 70 * 1000); /* as if all had come in the last period */
    holder.units = UINT64_MAX;
    assert_true(rbi_lease_ask(&holder, START_NS + 70000 * MS, &wanted));
    assert_true(wanted == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divide_gives_the_modest_what_they_want_and_the_rest_equally),
        cmocka_unit_test(test_divide_keeps_the_sum_and_is_max_min_fair),
        cmocka_unit_test(test_settle_gives_only_what_was_given_back),
        cmocka_unit_test(test_static_share_is_never_nothing),
        cmocka_unit_test(test_holder_without_a_fresh_lease_has_the_static_share),
        cmocka_unit_test(test_holder_asks_at_once_and_then_each_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
