/* SPDX-License-Identifier: Apache-2.0 */
/* What one caller thinks of one instance before the host has judged. Features 2.4, local layer. */
#include "bus/suspicion.h"
#include "support/test.h"

#define MS    UINT64_C(1000000)
#define START (UINT64_C(123456789) * MS)

static struct rbi_suspicion suspicion;

static void count(unsigned times, bool failed, uint64_t now_ns)
{
    for (unsigned i = 0; i < times; i++) {
        rbi_suspicion_count(&suspicion, failed, now_ns);
    }
}

/* Five in a row, not four; for a second from the last of them on. */
static void test_five_in_a_row(void **state)
{
    (void)state;
    suspicion = (struct rbi_suspicion){0};
    count(4, true, START);
    assert_false(rbi_suspicion_holds(&suspicion, START));
    count(1, true, START + 100 * MS);
    assert_true(rbi_suspicion_holds(&suspicion, START + 100 * MS));
    assert_true(rbi_suspicion_holds(&suspicion, START + 1099 * MS));
    assert_false(rbi_suspicion_holds(&suspicion, START + 1100 * MS));
    count(1, true, START + 2000 * MS); /* tried again: fails again */
    assert_true(rbi_suspicion_holds(&suspicion, START + 2999 * MS));
}

static void test_success_ends_the_row(void **state)
{
    (void)state;
    suspicion = (struct rbi_suspicion){0};
    for (unsigned i = 0; i < 10; i++) {
        count(4, true, START + i * MS);
        count(1, false, START + i * MS);
    }
    assert_false(rbi_suspicion_holds(&suspicion, START + 10 * MS));
}

/* And half of the last second: five of many are bad luck. */
static void test_half_of_a_second(void **state)
{
    static const struct {
        unsigned ok;
        uint64_t ago_ms;
        bool holds;
    } cases[] = {{5, 100, true}, {6, 100, false}, {100, 700, false}, {100, 1300, true}};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        suspicion = (struct rbi_suspicion){0};
        count(cases[i].ok, false, START - cases[i].ago_ms * MS);
        count(5, true, START);
        assert_int_equal(rbi_suspicion_holds(&suspicion, START), cases[i].holds);
    }
}

/* Time that stands still, falls back (a coarse clock beside a fine one) or jumps. */
static void test_odd_times(void **state)
{
    (void)state;
    suspicion = (struct rbi_suspicion){0};
    count(3, true, START);
    count(2, true, START - 600 * MS);
    assert_true(rbi_suspicion_holds(&suspicion, START));
    suspicion = (struct rbi_suspicion){0};
    count(6, false, START);
    count(5, true, START - 600 * MS); /* an older time forgets nothing */
    assert_false(rbi_suspicion_holds(&suspicion, START));
    count(100000, false, START + 10 * MS); /* more than a counter holds */
    count(6, true, START + 20 * MS);
    assert_int_equal(suspicion.streak, 6);
    const uint64_t year_ns = UINT64_C(365) * 86400 * 1000 * MS;
    count(5, true, START + year_ns);
    assert_true(rbi_suspicion_holds(&suspicion, START + year_ns));
}

/* Small enough to be kept for every instance that a caller has. */
static void test_size(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct rbi_suspicion), 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_in_a_row),
        cmocka_unit_test(test_success_ends_the_row),
        cmocka_unit_test(test_half_of_a_second),
        cmocka_unit_test(test_odd_times),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
