/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/alarm.h"

#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

/* Of figures of calls; they need some calls to say anything. */
static const struct {
    const char *name;
    bool calls;
    bool ratio;
} metrics[RBI_ALARM_METRICS] = {
    [RBI_ALARM_ERROR_RATIO] = {"error_ratio", true, true},
    [RBI_ALARM_LOST_RATIO] = {"lost_ratio", true, true},
    [RBI_ALARM_SLOW_RATIO] = {"slow_ratio", true, true},
    [RBI_ALARM_P50_US] = {"p50_us", true, false},
    [RBI_ALARM_P90_US] = {"p90_us", true, false},
    [RBI_ALARM_P99_US] = {"p99_us", true, false},
    [RBI_ALARM_P999_US] = {"p999_us", true, false},
    [RBI_ALARM_MEAN_US] = {"mean_us", true, false},
    [RBI_ALARM_RATE] = {"rate", false, false},
    [RBI_ALARM_INSTANCES] = {"instances", false, false},
    [RBI_ALARM_SHIELDED] = {"shielded", false, false},
    [RBI_ALARM_HEALTHY_RATIO] = {"healthy_ratio", false, true},
    [RBI_ALARM_QUEUE_DEPTH] = {"queue_depth", false, false},
    [RBI_ALARM_PANIC] = {"panic", false, true},
};

const char *rbi_alarm_metric_name(uint32_t metric)
{
    return metric < RBI_ALARM_METRICS ? metrics[metric].name : "?";
}

const char *rbi_alarm_state_name(uint32_t state)
{
    static const char *const names[] = {[RBI_ALARM_OK] = "ok",
                                        [RBI_ALARM_PENDING] = "pending",
                                        [RBI_ALARM_FIRING] = "firing",
                                        [RBI_ALARM_CLEARING] = "clearing"};
    return state < RBI_ARRAY_SIZE(names) ? names[state] : "?";
}

const char *rbi_alarm_check(const struct rbi_alarm_rule *rule)
{
    if (rule->metric >= RBI_ALARM_METRICS) {
        return "metric: there is no such figure";
    }
    if (metrics[rule->metric].ratio && rule->threshold > RBI_ALARM_UNIT) {
        return "threshold: expected at most 1, which is all: 0.05 is 5%";
    }
    if (rule->below && rule->threshold == 0) {
        return "threshold: nothing is below 0: it never fires";
    }
    return NULL;
}

/* ---- values ----------------------------------------------------------------------------- */

static uint64_t whole(uint64_t value)
{
    return rbi_min_u64(value, RBI_ALARM_LARGE) * RBI_ALARM_UNIT;
}

/** @p part of @p all, in millionths. */
static uint64_t ratio(uint64_t part, uint64_t all)
{
    if (part >= all) {
        return RBI_ALARM_UNIT;
    }
    return all <= UINT64_MAX / RBI_ALARM_UNIT ? part * RBI_ALARM_UNIT / all
                                              : part / (all / RBI_ALARM_UNIT);
}

/** ns to millionths of a us. */
static uint64_t micros(uint64_t ns)
{
    return rbi_min_u64(ns, RBI_ALARM_LARGE * NS_PER_US) * (RBI_ALARM_UNIT / NS_PER_US);
}

static uint64_t per_second(uint64_t calls, uint64_t span_ns)
{
    const uint64_t span_ms = rbi_max_u64(span_ns / NS_PER_MS, 1);
    if (calls <= UINT64_MAX / (1000 * RBI_ALARM_UNIT)) {
        return calls * 1000 * RBI_ALARM_UNIT / span_ms;
    }
    return whole(calls / span_ms * 1000);
}

static uint64_t of_calls(enum rbi_alarm_metric metric, const struct rbi_figures *recent)
{
    const uint64_t calls = rbi_figures_calls(recent);
    switch ((unsigned)metric) {
    case RBI_ALARM_ERROR_RATIO:
        return ratio(calls - recent->ok, calls);
    case RBI_ALARM_LOST_RATIO:
        return ratio(recent->lost, calls);
    case RBI_ALARM_SLOW_RATIO:
        return ratio(recent->slow, calls);
    case RBI_ALARM_P50_US:
        return micros(rbi_histogram_quantile_ns(&recent->latency, 500000));
    case RBI_ALARM_P90_US:
        return micros(rbi_histogram_quantile_ns(&recent->latency, 900000));
    case RBI_ALARM_P99_US:
        return micros(rbi_histogram_quantile_ns(&recent->latency, 990000));
    case RBI_ALARM_P999_US:
        return micros(rbi_histogram_quantile_ns(&recent->latency, 999000));
    default:
        return micros(recent->latency_ns / calls);
    }
}

bool rbi_alarm_value(const struct rbi_alarm_rule *rule,
                     const struct rbi_alarm_facts *facts,
                     uint64_t *value)
{
    const uint64_t calls = facts->recent ? rbi_figures_calls(facts->recent) : 0;
    if (metrics[rule->metric].calls) {
        const bool known = calls >= rbi_max_u64(rule->calls, 1);
        *value = known ? of_calls((enum rbi_alarm_metric)rule->metric, facts->recent) : 0;
        return known;
    }
    switch (rule->metric) {
    case RBI_ALARM_RATE:
        *value = per_second(calls, facts->span_ns);
        return true;
    case RBI_ALARM_INSTANCES:
        *value = whole(facts->instances);
        return true;
    case RBI_ALARM_SHIELDED:
        *value = whole(facts->shielded);
        return true;
    case RBI_ALARM_HEALTHY_RATIO:
        *value = facts->weight ? ratio(facts->healthy, facts->weight) : 0;
        return facts->weight != 0;
    case RBI_ALARM_QUEUE_DEPTH:
        *value = whole(facts->queue_depth);
        return true;
    default:
        *value = facts->panics ? RBI_ALARM_UNIT : 0;
        return true;
    }
}

void rbi_alarm_format(uint64_t value, char *buffer, size_t size)
{
    const int used =
        snprintf(buffer, size, "%llu.%06llu", (unsigned long long)(value / RBI_ALARM_UNIT),
                 (unsigned long long)(value % RBI_ALARM_UNIT));
    for (int i = used - 1; i > 0 && (size_t)used < size; i--) {
        const char last = buffer[i];
        if (last == '0' || last == '.') {
            buffer[i] = '\0';
        }
        if (last != '0') {
            return;
        }
    }
}

/* ---- states ----------------------------------------------------------------------------- */

static void enter(struct rbi_alarm *alarm, enum rbi_alarm_state state, uint64_t now_ns)
{
    alarm->state = (uint32_t)state;
    alarm->since_ns = now_ns;
}

bool rbi_alarm_fires(const struct rbi_alarm *alarm)
{
    return alarm->state == RBI_ALARM_FIRING || alarm->state == RBI_ALARM_CLEARING;
}

static bool over(const struct rbi_alarm *alarm, uint32_t ms, uint64_t now_ns)
{
    return now_ns - alarm->since_ns >= ms * NS_PER_MS;
}

static enum rbi_alarm_change
step_beyond(struct rbi_alarm *alarm, const struct rbi_alarm_rule *rule, uint64_t now_ns)
{
    if (alarm->state == RBI_ALARM_OK) {
        enter(alarm, RBI_ALARM_PENDING, now_ns);
    }
    if (alarm->state == RBI_ALARM_PENDING && over(alarm, rule->for_ms, now_ns)) {
        enter(alarm, RBI_ALARM_FIRING, now_ns);
        alarm->fired_ns = now_ns;
        return RBI_ALARM_FIRED;
    }
    if (alarm->state == RBI_ALARM_CLEARING) {
        enter(alarm, RBI_ALARM_FIRING, now_ns);
    }
    return RBI_ALARM_NONE;
}

static enum rbi_alarm_change
step_back(struct rbi_alarm *alarm, const struct rbi_alarm_rule *rule, uint64_t now_ns)
{
    if (alarm->state == RBI_ALARM_PENDING) {
        enter(alarm, RBI_ALARM_OK, now_ns);
    }
    if (alarm->state == RBI_ALARM_FIRING) {
        enter(alarm, RBI_ALARM_CLEARING, now_ns);
    }
    if (alarm->state == RBI_ALARM_CLEARING && over(alarm, rule->clear_ms, now_ns)) {
        enter(alarm, RBI_ALARM_OK, now_ns);
        return RBI_ALARM_RESOLVED;
    }
    return RBI_ALARM_NONE;
}

enum rbi_alarm_change rbi_alarm_step(struct rbi_alarm *alarm,
                                     const struct rbi_alarm_rule *rule,
                                     const struct rbi_alarm_facts *facts,
                                     uint64_t now_ns)
{
    uint64_t value = 0;
    const bool known = rbi_alarm_value(rule, facts, &value);
    const bool beyond = known && (rule->below ? value < rule->threshold : value > rule->threshold);
    alarm->known = known;
    alarm->value = value;
    return beyond ? step_beyond(alarm, rule, now_ns) : step_back(alarm, rule, now_ns);
}
