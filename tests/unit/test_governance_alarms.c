/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of alarms in a configuration, features J4/J17: values, layers, and what is refused. */
#include "bus/governance.h"
#include "support/governance.h"

#include <stdio.h>
#include <string.h>

static struct layered l;
static struct rbi_alarm_rules rules;

static const struct rbi_alarm_rules *rules_of(const char *text)
{
    layered_clear(&l);
    layered_add(&l, text);
    assert_true(rbi_governance_alarms(&l.layers, &rules));
    return &rules;
}

static void test_alarms_take_every_field(void **state)
{
    (void)state;
    const struct rbi_alarm_rules *got = rules_of(
        "alarms:\n"
        "  - {id: slow, match: /game/**, metric: p99_us, op: '>', threshold: 2500, for: 1m,\n"
        "     clear_for: 30s, calls: 100}\n"
        "  - {id: few, metric: healthy_ratio, op: <, threshold: 0.75}\n");
    const struct rbi_alarm_rule slow = {.id = "slow",
                                        .match = "/game/**",
                                        .metric = RBI_ALARM_P99_US,
                                        .threshold = 2500 * RBI_ALARM_UNIT,
                                        .for_ms = 60000,
                                        .clear_ms = 30000,
                                        .calls = 100};
    const struct rbi_alarm_rule few = {.id = "few",
                                       .match = "/**",
                                       .metric = RBI_ALARM_HEALTHY_RATIO,
                                       .below = 1,
                                       .threshold = 750000,
                                       .for_ms = 10000,
                                       .clear_ms = 10000,
                                       .calls = 1};
    assert_int_equal(got->count, 2);
    assert_memory_equal(&got->items[0], &slow, sizeof slow);
    assert_memory_equal(&got->items[1], &few, sizeof few);
    assert_int_equal(rules_of("{}")->count, 0);
}

/* The names of the table are those of the metrics, in their order. */
static void test_alarms_know_every_metric(void **state)
{
    char text[128];
    (void)state;
    for (unsigned metric = 0; metric < RBI_ALARM_METRICS; metric++) {
        (void)snprintf(text, sizeof text, "alarms: [{id: a, metric: %s, threshold: 1}]\n",
                       rbi_alarm_metric_name(metric));
        assert_int_equal(rules_of(text)->items[0].metric, metric);
    }
}

static void test_layers_change_what_they_name(void **state)
{
    (void)state;
    (void)rules_of("alarms: [{id: a, match: /x/**, metric: rate, threshold: 5, for: 3s},\n"
                   "         {id: b, metric: rate, threshold: 7}]\n");
    layered_add(&l, "alarms: [{id: a, metric: rate, op: <, threshold: 0.25}]\n");
    layered_add(&l, "alarms: [{id: c, metric: panic, threshold: 0}]\n");
    assert_true(rbi_governance_alarms(&l.layers, &rules));
    assert_int_equal(rules.count, 3);
    assert_string_equal(rules.items[0].match, "/x/**");
    assert_int_equal(rules.items[0].for_ms, 3000);
    assert_int_equal(rules.items[0].below, 1);
    assert_int_equal(rules.items[0].threshold, 250000);
    assert_string_equal(rules.items[1].id, "b");
    assert_string_equal(rules.items[2].id, "c");
}

static void test_layers_have_room_for_so_many(void **state)
{
    static char text[RBI_ALARMS_MAX * 64];
    size_t used = 0;
    (void)state;
    used += (size_t)snprintf(text, sizeof text, "alarms:\n");
    for (unsigned i = 0; i < RBI_ALARMS_MAX; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "  - {id: a%u, metric: rate, threshold: 1}\n", i);
    }
    assert_int_equal(rules_of(text)->count, RBI_ALARMS_MAX);
    layered_add(&l, "alarms: [{id: a1, metric: rate, threshold: 2}]\n");
    assert_true(rbi_governance_alarms(&l.layers, &rules));
    layered_add(&l, "alarms: [{id: more, metric: rate, threshold: 1}]\n");
    assert_false(rbi_governance_alarms(&l.layers, &rules));
    assert_int_equal(rules.count, RBI_ALARMS_MAX);
    assert_int_equal(rules.items[1].threshold, 2 * RBI_ALARM_UNIT);
}

static void refuse(const char *text, unsigned column, const char *says)
{
    struct rbi_governance refused = RBI_GOVERNANCE_NULL;
    const int r = rbi_governance_parse(text, strlen(text), &refused, &l.errors);
    config_refused_once(r, &l.errors, 1, column, says);
}

static void test_parse_refuses_what_never_fires(void **state)
{
    (void)state;
    refuse("alarms: [{id: a, metric: error_ratio, threshold: 5}]\n", 10, "expected at most 1");
    refuse("alarms: [{id: a, metric: rate, op: <, threshold: 0}]\n", 10, "nothing is below 0");
    refuse("alarms: [{id: a, metric: rate}]\n", 10, "threshold is missing");
    refuse("alarms: [{id: a, threshold: 5}]\n", 10, "metric is missing");
    refuse("alarms: [{metric: rate, threshold: 5}]\n", 10, "id is missing");
    refuse("alarms: [{id: a, metric: p99, threshold: 5}]\n", 26, "expected one of error_ratio");
    refuse("alarms: [{id: a, metric: rate, threshold: 5%}]\n", 43, "a number such as 250 or 0.05");
    refuse("alarms: [{id: a, metric: rate, threshold: 0.1234567}]\n", 43, "one to six decimals");
    refuse("alarms: [{id: a, metric: rate, threshold: 1.}]\n", 43, "one to six decimals");
    refuse("alarms: [{id: a, metric: rate, threshold: .5}]\n", 43, "a number such as");
    refuse("alarms: [{id: a, metric: rate, threshold: -1}]\n", 43, "it cannot be negative");
    refuse("alarms: [{id: a, metric: rate, threshold: 1000000000001}]\n", 43, "out of range");
    refuse("alarms: [{id: a, metric: rate, threshold: 99999999999999999999999}]\n", 43,
           "out of range");
    refuse("alarms: [{id: a, match: 'x y', metric: rate, threshold: 1}]\n", 25,
           "a pattern of paths");
    refuse("alarms: {}\n", 9, "expected a list of at most 64 items");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alarms_take_every_field),
        cmocka_unit_test(test_alarms_know_every_metric),
        cmocka_unit_test(test_layers_change_what_they_name),
        cmocka_unit_test(test_layers_have_room_for_so_many),
        cmocka_unit_test(test_parse_refuses_what_never_fires),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
