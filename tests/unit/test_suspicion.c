/* SPDX-License-Identifier: Apache-2.0 */
/* What one caller thinks of one instance before the host has judged. Features 2.4, local layer. */
#include "bus/suspicion.h"
#include "support/test.h"

#define MS    UINT64_C(1000000)
#define START (UINT64_C(123456789) * MS)

static struct rbi_suspicion suspicion;
static uint64_t ok;
static uint64_t bad;
static uint64_t streak;

/* An instance that was called before under another name: totals go on. */
static void begin(void)
{
    suspicion = (struct rbi_suspicion){0};
    ok = 1000000;
    bad = 777;
    streak = 0;
}

static void count(unsigned times, bool failed, uint64_t now_ns)
{
    for (unsigned i = 0; i < times; i++) {
        ok += !failed;
        bad += failed;
        streak = failed ? streak + 1 : 0;
        if (failed) {
            rbi_suspicion_failed(&suspicion, ok, bad, streak, now_ns);
        }
    }
}

/* Five in a row, not four; for a second from the last of them on. */
static void test_five_in_a_row(void **state)
{
    (void)state;
    begin();
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
    begin();
    for (unsigned i = 0; i < 10; i++) {
        count(4, true, START + i * MS);
        count(1, false, START + i * MS);
    }
    assert_false(rbi_suspicion_holds(&suspicion, START + 10 * MS));
}

/* And half of the last second: five of many are bad luck. One failure before tells since when. */
static void test_half_of_a_second(void **state)
{
    static const struct {
        unsigned ok;
        uint64_t ago_ms; /* of the failure before, and of them */
        bool holds;
    } cases[] = {{5, 100, true},     {6, 100, true},        {7, 100, false},     {100, 900, false},
                 {100, 1100, false}, {40, 10000, true},     {100, 10000, false}, {6, 1000, true},
                 {7, 1000, false},   {1000000, 1000, false}};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin();
        count(1, true, START - cases[i].ago_ms * MS);
        count(cases[i].ok, false, START - cases[i].ago_ms * MS);
        count(5, true, START);
        if (rbi_suspicion_holds(&suspicion, START) != cases[i].holds) {
            fail_msg("case %u", i);
        }
    }
}

/* What the second before had counts less and less. */
static void test_second_slides(void **state)
{
    (void)state;
    for (uint64_t later_ms = 0; later_ms < 1000; later_ms += 50) {
        begin();
        count(1, true, START);
        count(21, false, START);
        count(1, true, START + 1000 * MS); /* 21 and 1 before */
        const uint64_t left_ms = 1000 - later_ms;
        const bool holds = 6 + left_ms / 1000 >= 21 * left_ms / 1000;
        count(5, true, START + (1000 + later_ms) * MS);
        if (rbi_suspicion_holds(&suspicion, START + (1000 + later_ms) * MS) != holds) {
            fail_msg("%u ms later: %s", (unsigned)later_ms, holds ? "not avoided" : "avoided");
        }
    }
}

/* Time that stands still, falls back (a coarse clock beside a fine one) or jumps. */
static void test_odd_times(void **state)
{
    (void)state;
    begin();
    count(3, true, START);
    count(2, true, START - 600 * MS);
    assert_true(rbi_suspicion_holds(&suspicion, START));
    begin();
    count(1, true, START);
    count(7, false, START);
    count(5, true, START - 2000 * MS); /* an older time forgets nothing */
    assert_false(rbi_suspicion_holds(&suspicion, START - 2000 * MS));
    const uint64_t year_ns = UINT64_C(365) * 86400 * 1000 * MS;
    count(5, true, START + year_ns);
    assert_true(rbi_suspicion_holds(&suspicion, START + year_ns));
}

/* Small enough to be kept for every instance that a caller has. */
static void test_size(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct rbi_suspicion), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_in_a_row),    cmocka_unit_test(test_success_ends_the_row),
        cmocka_unit_test(test_half_of_a_second), cmocka_unit_test(test_second_slides),
        cmocka_unit_test(test_odd_times),        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
