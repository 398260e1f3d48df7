/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alarms on virtual time, features J4/J17: a rule fires when its figure has been beyond the
 * threshold for as long as it says, and is over when it has been back for as long.
 */
#include "bus/alarm.h"
#include "support/test.h"

#include <stdio.h>

#define MS    UINT64_C(1000000)
#define START (UINT64_C(123456789) * MS)
#define MILLI (RBI_ALARM_UNIT / 1000)

static struct rbi_figures figures;
static struct rbi_alarm_facts facts;

static struct rbi_alarm_rule
rule_of(enum rbi_alarm_metric metric, uint32_t below, uint64_t threshold)
{
    return (struct rbi_alarm_rule){.id = "a",
                                   .match = "/**",
                                   .metric = (uint32_t)metric,
                                   .below = below,
                                   .threshold = threshold,
                                   .for_ms = 10000,
                                   .clear_ms = 5000,
                                   .calls = 10};
}

static void begin(void)
{
    memset(&figures, 0, sizeof figures);
    facts = (struct rbi_alarm_facts){.recent = &figures, .span_ns = 10000 * MS};
}

static uint64_t value_of(enum rbi_alarm_metric metric)
{
    const struct rbi_alarm_rule rule = rule_of(metric, 0, 0);
    uint64_t value = 0;
    assert_true(rbi_alarm_value(&rule, &facts, &value));
    return value;
}

static bool known(enum rbi_alarm_metric metric)
{
    const struct rbi_alarm_rule rule = rule_of(metric, 0, 0);
    uint64_t value = 0;
    return rbi_alarm_value(&rule, &facts, &value);
}

/* ---- values -------------------------------------------------------------------------------- */

static void test_value_of_calls(void **state)
{
    (void)state;
    begin();
    figures.ok = 90;
    figures.failed = 6;
    figures.lost = 4;
    figures.slow = 30;
    figures.latency_ns = 100 * 5000;
    rbi_histogram_add(&figures.latency, 1000 * 1000, 50);
    rbi_histogram_add(&figures.latency, 50 * 1000 * 1000, 49);
    rbi_histogram_add(&figures.latency, UINT64_C(2000) * 1000 * 1000, 1);
    assert_int_equal(value_of(RBI_ALARM_ERROR_RATIO), 100 * MILLI);
    assert_int_equal(value_of(RBI_ALARM_LOST_RATIO), 40 * MILLI);
    assert_int_equal(value_of(RBI_ALARM_SLOW_RATIO), 300 * MILLI);
    assert_int_equal(value_of(RBI_ALARM_MEAN_US), 5 * RBI_ALARM_UNIT);
    assert_int_equal(value_of(RBI_ALARM_RATE), 10 * RBI_ALARM_UNIT);
    assert_in_range(value_of(RBI_ALARM_P50_US) / RBI_ALARM_UNIT, 970, 1030);
    assert_in_range(value_of(RBI_ALARM_P90_US) / RBI_ALARM_UNIT, 48500, 51500);
    assert_in_range(value_of(RBI_ALARM_P99_US) / RBI_ALARM_UNIT, 48500, 51500);
    assert_in_range(value_of(RBI_ALARM_P999_US) / RBI_ALARM_UNIT, 1940000, 2060000);
}

static void test_value_of_few_calls_is_not_known(void **state)
{
    (void)state;
    begin();
    figures.failed = 9;
    assert_false(known(RBI_ALARM_ERROR_RATIO)); /* 10 are asked for */
    assert_int_equal(value_of(RBI_ALARM_RATE), 900 * MILLI);
    figures.failed = 10;
    assert_int_equal(value_of(RBI_ALARM_ERROR_RATIO), RBI_ALARM_UNIT);
    facts.recent = NULL;
    assert_false(known(RBI_ALARM_P99_US));
    assert_int_equal(value_of(RBI_ALARM_RATE), 0);
}

static void test_value_of_instances(void **state)
{
    (void)state;
    begin();
    assert_false(known(RBI_ALARM_HEALTHY_RATIO)); /* nobody is there */
    assert_int_equal(value_of(RBI_ALARM_INSTANCES), 0);
    facts.instances = 4;
    facts.shielded = 1;
    facts.weight = 400;
    facts.healthy = 300;
    facts.queue_depth = 77;
    facts.panics = true;
    assert_int_equal(value_of(RBI_ALARM_INSTANCES), 4 * RBI_ALARM_UNIT);
    assert_int_equal(value_of(RBI_ALARM_SHIELDED), RBI_ALARM_UNIT);
    assert_int_equal(value_of(RBI_ALARM_HEALTHY_RATIO), 750 * MILLI);
    assert_int_equal(value_of(RBI_ALARM_QUEUE_DEPTH), 77 * RBI_ALARM_UNIT);
    assert_int_equal(value_of(RBI_ALARM_PANIC), RBI_ALARM_UNIT);
}

/* Whatever callers have counted, a value is one. */
static void test_value_of_lies_stays_in_range(void **state)
{
    (void)state;
    begin();
    figures.ok = figures.failed = figures.lost = figures.latency_ns = UINT64_MAX;
    rbi_histogram_add(&figures.latency, UINT64_MAX, UINT64_MAX);
    facts.weight = facts.healthy = facts.queue_depth = UINT64_MAX;
    facts.span_ns = 0;
    for (unsigned metric = 0; metric < RBI_ALARM_METRICS; metric++) {
        assert_true(value_of((enum rbi_alarm_metric)metric) <= RBI_ALARM_LARGE * RBI_ALARM_UNIT);
    }
    facts.healthy = UINT64_MAX / 2;
    assert_in_range(value_of(RBI_ALARM_HEALTHY_RATIO), 499 * MILLI, 501 * MILLI);
}

/* ---- states -------------------------------------------------------------------------------- */

struct at {
    unsigned ms;
    bool beyond;
    enum rbi_alarm_state state;
    enum rbi_alarm_change change;
};

static void play(const struct rbi_alarm_rule *rule, const struct at *story, unsigned count)
{
    struct rbi_alarm alarm = {.state = RBI_ALARM_OK};
    begin();
    for (unsigned i = 0; i < count; i++) {
        facts.instances = story[i].beyond ? 5 : 0;
        const enum rbi_alarm_change change =
            rbi_alarm_step(&alarm, rule, &facts, START + story[i].ms * MS);
        if (alarm.state != (uint32_t)story[i].state || change != story[i].change) {
            fail_msg("at %u ms: %s, change %d", story[i].ms, rbi_alarm_state_name(alarm.state),
                     (int)change);
        }
        assert_int_equal(rbi_alarm_fires(&alarm), alarm.state >= RBI_ALARM_FIRING);
    }
}

/* Every state, and in each of them both that it is beyond and that it is not, before and after. */
static void test_step_goes_through_all_states(void **state)
{
    static const struct at story[] = {
        {0, false, RBI_ALARM_OK, RBI_ALARM_NONE},
        {250, true, RBI_ALARM_PENDING, RBI_ALARM_NONE},
        {10249, true, RBI_ALARM_PENDING, RBI_ALARM_NONE},
        {10249, false, RBI_ALARM_OK, RBI_ALARM_NONE}, /* not for long enough: from the start */
        {10250, true, RBI_ALARM_PENDING, RBI_ALARM_NONE},
        {20250, true, RBI_ALARM_FIRING, RBI_ALARM_FIRED},
        {90000, true, RBI_ALARM_FIRING, RBI_ALARM_NONE}, /* once */
        {90250, false, RBI_ALARM_CLEARING, RBI_ALARM_NONE},
        {95249, false, RBI_ALARM_CLEARING, RBI_ALARM_NONE},
        {95249, true, RBI_ALARM_FIRING, RBI_ALARM_NONE}, /* back, and nobody is told again */
        {95500, false, RBI_ALARM_CLEARING, RBI_ALARM_NONE},
        {100500, false, RBI_ALARM_OK, RBI_ALARM_RESOLVED},
        {100750, false, RBI_ALARM_OK, RBI_ALARM_NONE},
    };
    (void)state;
    const struct rbi_alarm_rule rule = rule_of(RBI_ALARM_INSTANCES, 0, 4 * RBI_ALARM_UNIT);
    play(&rule, story, RBI_ARRAY_SIZE(story));
}

static void test_step_without_times_acts_at_once(void **state)
{
    static const struct at story[] = {
        {0, true, RBI_ALARM_FIRING, RBI_ALARM_FIRED},
        {0, false, RBI_ALARM_OK, RBI_ALARM_RESOLVED},
        {1, true, RBI_ALARM_FIRING, RBI_ALARM_FIRED},
    };
    (void)state;
    struct rbi_alarm_rule rule = rule_of(RBI_ALARM_INSTANCES, 0, 4 * RBI_ALARM_UNIT);
    rule.for_ms = rule.clear_ms = 0;
    play(&rule, story, RBI_ARRAY_SIZE(story));
}

/* The threshold itself is not beyond, on either side. */
static void test_step_compares(void **state)
{
    static const struct {
        uint32_t below;
        uint32_t instances;
        bool beyond;
    } rows[] = {{0, 2, false}, {0, 3, false}, {0, 4, true},
                {1, 2, true},  {1, 3, false}, {1, 4, false}};
    (void)state;
    begin();
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        const struct rbi_alarm_rule rule =
            rule_of(RBI_ALARM_INSTANCES, rows[i].below, 3 * RBI_ALARM_UNIT);
        struct rbi_alarm alarm = {.state = RBI_ALARM_OK};
        facts.instances = rows[i].instances;
        (void)rbi_alarm_step(&alarm, &rule, &facts, START);
        assert_int_equal(alarm.state, rows[i].beyond ? RBI_ALARM_PENDING : RBI_ALARM_OK);
        assert_int_equal(alarm.value, rows[i].instances * RBI_ALARM_UNIT);
    }
}

/* A cluster that nobody calls any more has no error ratio: what fired is over. */
static void test_step_what_is_not_known_is_back(void **state)
{
    (void)state;
    struct rbi_alarm_rule rule = rule_of(RBI_ALARM_ERROR_RATIO, 0, 50 * MILLI);
    struct rbi_alarm alarm = {.state = RBI_ALARM_OK};
    begin();
    rule.for_ms = 0;
    figures.failed = 100;
    assert_int_equal(rbi_alarm_step(&alarm, &rule, &facts, START), RBI_ALARM_FIRED);
    figures.failed = 0;
    assert_int_equal(rbi_alarm_step(&alarm, &rule, &facts, START), RBI_ALARM_NONE);
    assert_int_equal(alarm.known, 0);
    assert_int_equal(rbi_alarm_step(&alarm, &rule, &facts, START + 5000 * MS), RBI_ALARM_RESOLVED);
}

/* Nobody is there: that is no ratio of 0, which would be below everything. */
static void test_step_what_is_not_known_is_not_below(void **state)
{
    (void)state;
    struct rbi_alarm_rule rule = rule_of(RBI_ALARM_HEALTHY_RATIO, 1, 500 * MILLI);
    struct rbi_alarm alarm = {.state = RBI_ALARM_OK};
    begin();
    rule.for_ms = 0;
    assert_int_equal(rbi_alarm_step(&alarm, &rule, &facts, START), RBI_ALARM_NONE);
    assert_int_equal(alarm.state, RBI_ALARM_OK);
    facts.weight = 100;
    assert_int_equal(rbi_alarm_step(&alarm, &rule, &facts, START), RBI_ALARM_FIRED);
}

/* ---- rules and texts ------------------------------------------------------------------------ */

static void test_check_names_what_is_wrong(void **state)
{
    (void)state;
    struct rbi_alarm_rule rule = rule_of(RBI_ALARM_ERROR_RATIO, 0, RBI_ALARM_UNIT);
    assert_null(rbi_alarm_check(&rule));
    rule.threshold++;
    assert_non_null(strstr(rbi_alarm_check(&rule), "threshold: "));
    rule = rule_of(RBI_ALARM_P99_US, 0, 5000 * RBI_ALARM_UNIT);
    assert_null(rbi_alarm_check(&rule));
    rule = rule_of(RBI_ALARM_INSTANCES, 1, 0);
    assert_non_null(strstr(rbi_alarm_check(&rule), "threshold: "));
    rule = rule_of(RBI_ALARM_METRICS, 0, 1);
    assert_non_null(strstr(rbi_alarm_check(&rule), "metric: "));
}

static void test_format_writes_what_people_write(void **state)
{
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "0.000001"},
                {50000, "0.05"},
                {1000000, "1"},
                {1200000000, "1200"},
                {1200500000, "1200.5"},
                {UINT64_MAX, "18446744073709.551615"}};
    char text[24];
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        rbi_alarm_format(rows[i].value, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
    assert_string_equal(rbi_alarm_metric_name(RBI_ALARM_P99_US), "p99_us");
    assert_string_equal(rbi_alarm_metric_name(RBI_ALARM_METRICS), "?");
    assert_string_equal(rbi_alarm_state_name(RBI_ALARM_CLEARING), "clearing");
    assert_string_equal(rbi_alarm_state_name(9), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_of_calls),
        cmocka_unit_test(test_value_of_few_calls_is_not_known),
        cmocka_unit_test(test_value_of_instances),
        cmocka_unit_test(test_value_of_lies_stays_in_range),
        cmocka_unit_test(test_step_goes_through_all_states),
        cmocka_unit_test(test_step_without_times_acts_at_once),
        cmocka_unit_test(test_step_compares),
        cmocka_unit_test(test_step_what_is_not_known_is_back),
        cmocka_unit_test(test_step_what_is_not_known_is_not_below),
        cmocka_unit_test(test_check_names_what_is_wrong),
        cmocka_unit_test(test_format_writes_what_people_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
