/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rate and burst on virtual time. Features 2.8 and 6.5: at twice the offered load within 1 % of the
 * rate over 10 s, and in no 100 ms more than rate x 100 ms + burst.
 */
#include "bus/gcra.h"
#include "support/test.h"

#include <stdlib.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define START_NS  UINT64_C(123456789012345)
#define SPAN_NS   (100 * NS_PER_MS)

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 11) % n;
}

static bool
offer(const struct rbi_gcra_rate *rate, struct rbi_gcra *gcra, uint64_t units, uint64_t now_ns)
{
    if (rbi_gcra_wait_ns(rate, gcra, units, now_ns) != 0) {
        return false;
    }
    rbi_gcra_take(rate, gcra, units, now_ns);
    return true;
}

/** Units taken in the 100 ms up to now: the most of it so far is kept. */
struct span {
    struct {
        uint64_t at_ns;
        uint64_t units;
    } taken[65536];
    unsigned first;
    unsigned next;
    uint64_t sum;
    uint64_t most;
};

static void span_add(struct span *span, uint64_t now_ns, uint64_t units)
{
    while (span->first != span->next &&
           span->taken[span->first % 65536].at_ns + SPAN_NS <= now_ns) {
        span->sum -= span->taken[span->first++ % 65536].units;
    }
    span->taken[span->next % 65536].at_ns = now_ns;
    span->taken[span->next++ % 65536].units = units;
    assert_true(span->next - span->first < 65536);
    span->sum += units;
    span->most = span->sum > span->most ? span->sum : span->most;
}

struct load {
    uint64_t rate;
    uint64_t burst; /* 0: default */
    uint64_t units; /* of each message */
    uint64_t offered_percent;
};

/** Ten seconds of evenly spaced messages, with some jitter. @return units that passed */
static uint64_t run(const struct load *load, struct span *span)
{
    struct rbi_gcra_rate rate;
    struct rbi_gcra gcra = {0};
    uint64_t passed = 0;
    rbi_gcra_rate_init(&rate, load->rate * 1000, load->burst, 0);
    const uint64_t messages = 10 * load->rate * load->offered_percent / 100 / load->units;
    const uint64_t gap_ns = 10 * NS_PER_S / messages;
    for (uint64_t i = 0; i < messages; i++) {
        /* With a burst of one, whoever comes late by half a gap has lost it for good. */
        const uint64_t late_ns = rate.burst_ns > 10 * gap_ns ? random_below(gap_ns) : 0;
        const uint64_t now_ns = START_NS + i * 10 * NS_PER_S / messages + late_ns;
        if (offer(&rate, &gcra, load->units, now_ns)) {
            passed += load->units;
            span_add(span, now_ns, load->units);
        }
    }
    return passed;
}

static void test_rate_is_kept_within_one_percent_at_twice_the_load(void **state)
{
    (void)state;
    static const struct load loads[] = {
        {10, 0, 1, 200},
        {97, 0, 1, 200},
        {1000, 0, 1, 200},
        {1000, 1, 1, 200},
        {12345, 0, 1, 200},
        {100000, 0, 1, 200},
        {UINT64_C(700000000), 0, 65536, 200}, /* bytes */
        {UINT64_C(1000000000), 0, 65536, 200},
        {1000, 0, 1, 1000},
        {1000, 500, 1, 200},
    };
    static struct span span;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(loads); i++) {
        const struct load *load = &loads[i];
        const uint64_t burst = load->burst != 0 ? load->burst : rbi_max_u64(load->rate / 10, 1);
        const uint64_t expected = 10 * load->rate + burst;
        span = (struct span){.first = 0};
        seed = 3 + i;
        const uint64_t passed = run(load, &span);
        assert_true(passed * 100 >= (10 * load->rate - load->units) * 99);
        assert_true(passed * 100 <= expected * 101 + 100 * load->units);
        /* Bytes: the last message may be larger than what was left of the burst was. */
        assert_true(span.most <= load->rate / 10 + burst + load->units);
    }
}

/* The burst is spent once: with it gone, what passes in 10 s is the rate to one message. */
static void test_rate_has_no_drift_over_a_million_seconds(void **state)
{
    (void)state;
    static const uint64_t rates[] = {1, 3, 7, 999, 700000007, 999999999, UINT64_C(1000000000)};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rates); i++) {
        struct rbi_gcra_rate rate;
        struct rbi_gcra gcra = {0};
        uint64_t now_ns = START_NS;
        rbi_gcra_rate_init(&rate, rates[i] * 1000, 1, 0);
        /* A second's worth each second, to the unit: the word may never run ahead of the clock. */
        for (unsigned second = 0; second < 1000000; second++) {
            rbi_gcra_take(&rate, &gcra, rates[i], now_ns);
            now_ns += NS_PER_S;
        }
        const uint64_t ahead_ns = gcra.arrival_ns > now_ns ? gcra.arrival_ns - now_ns : 0;
        /* Rounded by half a 2^-24 ns a unit at most: 3 x 10^-8 of 10^9/s, nothing of 1/s. */
        assert_true(ahead_ns <= 1000000 * (rates[i] / 33000000 + 1));
    }
}

static void test_rate_of_single_units_has_no_drift(void **state)
{
    (void)state;
    struct rbi_gcra_rate rate;
    struct rbi_gcra gcra = {0};
    rbi_gcra_rate_init(&rate, UINT64_C(700000000) * 1000, 1, 0); /* a unit is 1.43 ns */
    for (unsigned i = 0; i < 7000000; i++) {
        rbi_gcra_take(&rate, &gcra, 1, START_NS);
    }
    assert_in_range(gcra.arrival_ns - START_NS, 10 * NS_PER_MS - 1, 10 * NS_PER_MS);
}

static void test_burst_default_is_a_tenth_of_a_second_and_one_at_least(void **state)
{
    (void)state;
    static const uint64_t cases[][2] = {{1, 1}, {5, 1}, {10, 1}, {19, 1}, {20, 2}, {1000, 100}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        struct rbi_gcra_rate rate;
        struct rbi_gcra gcra = {0};
        uint64_t passed = 0;
        rbi_gcra_rate_init(&rate, cases[i][0] * 1000, 0, 0);
        while (offer(&rate, &gcra, 1, START_NS)) {
            passed++;
        }
        assert_int_equal(passed, cases[i][1]);
    }
}

static void test_wait_is_the_time_after_which_it_passes(void **state)
{
    (void)state;
    seed = 11;
    for (unsigned round = 0; round < 20000; round++) {
        struct rbi_gcra_rate rate;
        struct rbi_gcra gcra = {0};
        rbi_gcra_rate_init(&rate, 1 + random_below(UINT64_C(1) << (1 + random_below(45))),
                           random_below(100), 0);
        uint64_t now_ns = START_NS;
        for (unsigned i = 0; i < 10; i++) {
            const uint64_t units = 1 + random_below(50);
            const uint64_t wait_ns = rbi_gcra_wait_ns(&rate, &gcra, units, now_ns);
            if (wait_ns > 0) {
                assert_true(rbi_gcra_wait_ns(&rate, &gcra, units, now_ns + wait_ns) == 0);
                assert_true(rbi_gcra_wait_ns(&rate, &gcra, units, now_ns + wait_ns - 1) > 0);
                now_ns += random_below(2) * wait_ns;
            } else {
                rbi_gcra_take(&rate, &gcra, units, now_ns);
            }
        }
    }
}

/* Between any two messages that passed, whatever the pattern: rate x time + burst. */
static void test_no_span_of_any_length_holds_more_than_rate_and_burst(void **state)
{
    (void)state;
    static uint64_t at_ns[400];
    seed = 5;
    for (unsigned round = 0; round < 60; round++) {
        struct rbi_gcra_rate rate;
        struct rbi_gcra gcra = {0};
        const uint64_t per_s = 1 + random_below(100000);
        const uint64_t burst = 1 + random_below(200);
        uint64_t now_ns = START_NS;
        unsigned count = 0;
        rbi_gcra_rate_init(&rate, per_s * 1000, burst, 0);
        while (count < 400) {
            now_ns += random_below(4) == 0 ? random_below(3 * burst * NS_PER_S / per_s)
                                           : random_below(NS_PER_S / per_s + 1);
            if (offer(&rate, &gcra, 1, now_ns)) {
                at_ns[count++] = now_ns;
            }
        }
        for (unsigned i = 0; i < count; i++) {
            for (unsigned j = i; j < count; j++) {
                const uint64_t most = (at_ns[j] - at_ns[i]) * per_s / NS_PER_S + burst;
                assert_true(j - i + 1 <= most + 1);
            }
        }
    }
}

static void test_shaping_spaces_what_is_ahead_and_refuses_beyond_the_wait(void **state)
{
    (void)state;
    struct rbi_gcra_rate rate;
    struct rbi_gcra gcra = {0};
    rbi_gcra_rate_init(&rate, 1000 * 1000, 10, 50 * NS_PER_MS);
    uint64_t last_ns = 0;
    for (unsigned i = 0; i < 60; i++) {
        const uint64_t wait_ns = rbi_gcra_wait_ns(&rate, &gcra, 1, START_NS);
        assert_int_equal(wait_ns, i < 10 ? 0 : (i - 9) * NS_PER_MS);
        assert_true(wait_ns <= rate.wait_ns);
        assert_true(i < 10 || wait_ns - last_ns == NS_PER_MS);
        last_ns = wait_ns;
        rbi_gcra_take(&rate, &gcra, 1, START_NS);
    }
    assert_true(rbi_gcra_wait_ns(&rate, &gcra, 1, START_NS) > rate.wait_ns);
}

static void test_message_larger_than_the_burst_passes_and_is_paid_for(void **state)
{
    (void)state;
    struct rbi_gcra_rate rate;
    struct rbi_gcra gcra = {0};
    rbi_gcra_rate_init(&rate, 1000 * 1000, 100, 0);
    assert_true(offer(&rate, &gcra, 5000, START_NS));
    assert_int_equal(rbi_gcra_wait_ns(&rate, &gcra, 1, START_NS), 4901 * NS_PER_MS);
    assert_int_equal(rbi_gcra_wait_ns(&rate, &gcra, 5000, START_NS), 5000 * NS_PER_MS);
}

static void test_extremes_do_not_overflow(void **state)
{
    (void)state;
    struct rbi_gcra_rate rate;
    struct rbi_gcra gcra = {0};
    rbi_gcra_rate_init(&rate, 0, UINT64_MAX, UINT64_MAX);
    assert_int_equal(rate.burst_ns, RBI_GCRA_AHEAD_NS_MAX);
    assert_int_equal(rate.wait_ns, RBI_GCRA_AHEAD_NS_MAX);
    rbi_gcra_take(&rate, &gcra, UINT64_MAX, START_NS);
    assert_int_equal(gcra.arrival_ns, START_NS + RBI_GCRA_AHEAD_NS_MAX);
    assert_true(rbi_gcra_wait_ns(&rate, &gcra, UINT64_MAX, START_NS) > 0);
    rbi_gcra_rate_init(&rate, UINT64_MAX, 0, 0);
    assert_true(rate.unit > 0);
    /* A clock that is behind what was taken makes nobody wait for ever, nor passes anything. */
    gcra = (struct rbi_gcra){.arrival_ns = START_NS};
    assert_true(rbi_gcra_wait_ns(&rate, &gcra, 1, START_NS - NS_PER_S) > 0);
    assert_true(rbi_gcra_wait_ns(&rate, &gcra, 1, START_NS - NS_PER_S) <= NS_PER_S);
}

static void test_debt_follows_the_rate_in_units(void **state)
{
    (void)state;
    static const uint64_t rates[] = {1, 3, 1000, 999 * 1000, 1000 * 1000, UINT64_C(7000000000)};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rates); i++) {
        for (unsigned j = 0; j < RBI_ARRAY_SIZE(rates); j++) {
            struct rbi_gcra_rate from;
            struct rbi_gcra_rate to;
            struct rbi_gcra gcra = {0};
            struct rbi_gcra same = {0};
            rbi_gcra_rate_init(&from, rates[i], 10, 0);
            rbi_gcra_rate_init(&to, rates[j], 10, 0);
            rbi_gcra_take(&from, &gcra, 7, START_NS);
            rbi_gcra_take(&to, &same, 7, START_NS);
            rbi_gcra_follow(&from, &to, &gcra, START_NS);
            assert_in_range(gcra.arrival_ns, same.arrival_ns - 1, same.arrival_ns);
            assert_int_equal(gcra.owed, 0);
        }
    }
}

static void test_slower_rate_binds_no_longer_than_its_burst_and_forgives_nothing(void **state)
{
    (void)state;
    struct rbi_gcra_rate fast;
    struct rbi_gcra_rate slow;
    struct rbi_gcra gcra = {0};
    rbi_gcra_rate_init(&fast, 1000 * 1000, 100, 0);
    rbi_gcra_rate_init(&slow, 1000, 2, 0);
    rbi_gcra_take(&fast, &gcra, 100, START_NS);
    for (unsigned i = 0; i < 1000; i++) { /* up and down, and no time passes */
        rbi_gcra_follow(&fast, &slow, &gcra, START_NS);
        assert_int_equal(rbi_gcra_wait_ns(&slow, &gcra, 1, START_NS), NS_PER_S);
        rbi_gcra_follow(&slow, &fast, &gcra, START_NS);
        assert_int_equal(rbi_gcra_wait_ns(&fast, &gcra, 1, START_NS), NS_PER_MS);
    }
    /* What the slow rate pays, 2 of 100, is paid. */
    rbi_gcra_follow(&fast, &slow, &gcra, START_NS);
    rbi_gcra_follow(&slow, &fast, &gcra, START_NS + 10 * NS_PER_S);
    assert_int_equal(gcra.arrival_ns, START_NS + 10 * NS_PER_S + 98 * NS_PER_MS);
    /* The longest debt at the fastest rate and at the slowest: no overflow. */
    rbi_gcra_rate_init(&slow, 1, 1, UINT64_MAX);
    rbi_gcra_rate_init(&fast, UINT64_MAX, 1, UINT64_MAX);
    gcra = (struct rbi_gcra){.arrival_ns = UINT64_MAX, .arrival_sub = 1, .owed = UINT32_MAX};
    rbi_gcra_follow(&fast, &slow, &gcra, 0);
    assert_int_equal(gcra.arrival_ns, RBI_GCRA_AHEAD_NS_MAX);
    assert_int_equal(gcra.owed, UINT32_MAX);
    rbi_gcra_follow(&slow, &fast, &gcra, 0);
    assert_true(gcra.arrival_ns < NS_PER_S);
    assert_int_equal(gcra.owed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_is_kept_within_one_percent_at_twice_the_load),
        cmocka_unit_test(test_rate_has_no_drift_over_a_million_seconds),
        cmocka_unit_test(test_rate_of_single_units_has_no_drift),
        cmocka_unit_test(test_burst_default_is_a_tenth_of_a_second_and_one_at_least),
        cmocka_unit_test(test_wait_is_the_time_after_which_it_passes),
        cmocka_unit_test(test_no_span_of_any_length_holds_more_than_rate_and_burst),
        cmocka_unit_test(test_shaping_spaces_what_is_ahead_and_refuses_beyond_the_wait),
        cmocka_unit_test(test_message_larger_than_the_burst_passes_and_is_paid_for),
        cmocka_unit_test(test_extremes_do_not_overflow),
        cmocka_unit_test(test_debt_follows_the_rate_in_units),
        cmocka_unit_test(test_slower_rate_binds_no_longer_than_its_burst_and_forgives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
