/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/shield_judge.c - the rules. First each member for itself, which sets bits; then, where any
 * bit is set, the members of a column against each other. Rates are parts of 10,000.
 */
#include "bus/shield_impl.h"

#include <stdlib.h>

#define WHOLE      10000U
#define POINT      100U   /* a percent, of WHOLE */
#define LAST_MS    10000U /* of the rules that name no window */
#define DAY_MS     86400000U
#define SECOND_MS  1000U
#define PROBES_MAX 1000U

static uint32_t within(uint32_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : value;
}

void rbi_shield_rules(struct rbi_shield_policy *rules, const struct rbi_shield_policy *policy)
{
    *rules = *policy;
    rules->window_count = within(policy->window_count, 0, RBI_SHIELD_WINDOWS_MAX);
    for (uint32_t i = 0; i < rules->window_count; i++) {
        struct rbi_shield_window *window = &rules->windows[i];
        window->ms = within(window->ms, 1, RBI_WINDOW_MAX_MS);
        window->calls = within(window->calls, 1, UINT32_MAX);
        window->percent = within(window->percent, 1, 100);
    }
    rules->above_median = within(policy->above_median, 0, 100);
    rules->slow_percent = within(policy->slow_percent, 1, 100);
    rules->slow_calls = within(policy->slow_calls, 1, UINT32_MAX);
    rules->deviation_hosts = within(policy->deviation_hosts, 2, UINT32_MAX);
    rules->deviation_calls = within(policy->deviation_calls, 1, UINT32_MAX);
    rules->max_percent = within(policy->max_percent, 0, 100);
    rules->open_min_ms = within(policy->open_min_ms, 1, DAY_MS);
    rules->open_max_ms = within(policy->open_max_ms, rules->open_min_ms, DAY_MS);
    rules->jitter = within(policy->jitter, 0, 100);
    rules->probe_per_s = within(policy->probe_per_s, 1, SECOND_MS);
    rules->probe_timeout_ms = within(policy->probe_timeout_ms, 1, DAY_MS);
    rules->close_ok = within(policy->close_ok, 1, PROBES_MAX);
    rules->close_of = within(policy->close_of, rules->close_ok, PROBES_MAX);
    rules->ramp_ms = within(policy->ramp_ms, 0, DAY_MS);
}

static uint32_t rate(uint32_t part, uint64_t calls)
{
    return calls == 0 ? 0 : (uint32_t)(rbi_min_u64(part, calls) * WHOLE / calls);
}

/** The ">=" of every rule, exact: 100 % of n is n. */
static bool reaches(uint32_t part, uint64_t calls, uint32_t percent)
{
    return part > 0 && (uint64_t)part * 100 >= calls * percent;
}

/* ---- a member for itself ---------------------------------------------------------------- */

/** Little traffic, and not only just begun to count: the window before it is full and says so. */
static bool is_quiet(const struct rbi_shield_policy *rules,
                     const struct rbi_shield_member *member,
                     uint32_t index,
                     uint64_t step)
{
    const uint32_t below = rules->windows[index].quiet_below;
    if (index == 0 || below == 0) {
        return true;
    }
    const uint64_t counted_ms = (step - member->begin_step) * RBI_WINDOW_STEP_MS;
    return counted_ms >= rules->windows[index - 1].ms &&
           rbi_tally_attempts(&member->columns[index - 1]) < below;
}

static uint32_t trips_windows(const struct rbi_shield_policy *rules,
                              const struct rbi_shield_member *member,
                              uint64_t step)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < rules->window_count; i++) {
        const struct rbi_shield_window *window = &rules->windows[i];
        const uint64_t calls = rbi_tally_calls(&member->columns[i]);
        if (calls >= window->calls && reaches(member->columns[i].fail, calls, window->percent) &&
            is_quiet(rules, member, i, step)) {
            bits |= 1U << i;
        }
    }
    return bits;
}

/** The same windows, of the calls that could not be made among all that were tried. */
static uint32_t trips_local(const struct rbi_shield_policy *rules,
                            const struct rbi_shield_member *member,
                            uint64_t step)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; rules->split != 0 && i < rules->window_count; i++) {
        const struct rbi_shield_window *window = &rules->windows[i];
        const struct rbi_tally *tally = &member->columns[i];
        const uint64_t tried = rbi_tally_attempts(tally);
        if (tried >= window->calls && reaches(tally->local, tried, window->percent) &&
            is_quiet(rules, member, i, step)) {
            bits |= RBI_SHIELD_TRIP_LOCAL << i;
        }
    }
    return bits;
}

/**
 * The last failures are those of the streak, so as many of it are recent as failures are. One that
 * may be of any age must still be going on: what nobody has called for a minute is not known.
 */
static bool
trips_streak(const struct rbi_shield_policy *rules, struct rbi_shield_member *member, uint64_t step)
{
    if (rules->consecutive == 0 || member->streak < rules->consecutive) {
        return false;
    }
    if (rules->consecutive_ms == 0) {
        return rbi_window_sum(&member->window, step, RBI_WINDOW_MAX_MS).fail > 0;
    }
    return rbi_window_sum(&member->window, step, rules->consecutive_ms).fail >= rules->consecutive;
}

static bool trips_slow(const struct rbi_shield_policy *rules,
                       const struct rbi_shield_member *member)
{
    const struct rbi_tally *last = &member->columns[RBI_SHIELD_COLUMN_LAST];
    const uint64_t calls = rbi_tally_calls(last);
    return rules->slow_ms != 0 && calls >= rules->slow_calls &&
           reaches(last->slow, calls, rules->slow_percent);
}

void rbi_shield_judge_member(const struct rbi_shield_policy *rules,
                             struct rbi_shield_member *member,
                             uint64_t step)
{
    for (uint32_t i = 0; i < rules->window_count; i++) {
        member->columns[i] = rbi_window_sum(&member->window, step, rules->windows[i].ms);
    }
    if (rules->slow_ms != 0 || rules->consecutive != 0) {
        member->columns[RBI_SHIELD_COLUMN_LAST] = rbi_window_sum(&member->window, step, LAST_MS);
    }
    member->tripped = 0;
    member->severity = 0;
    if (rules->preset == RBI_SHIELD_OFF || !rbi_shield_serves(member)) {
        return;
    }
    member->cause = (struct rbi_shield_event){0};
    member->tripped = trips_windows(rules, member, step);
    member->tripped |= trips_local(rules, member, step);
    member->tripped |= trips_streak(rules, member, step) ? RBI_SHIELD_TRIP_CONSECUTIVE : 0;
    member->tripped |= trips_slow(rules, member) ? RBI_SHIELD_TRIP_SLOW : 0;
}

/* ---- members against each other ---------------------------------------------------------- */

/** What one rule looks at. */
struct column {
    uint32_t bit;
    uint32_t index; /* of member->columns */
    uint32_t window_ms;
    enum rbi_shield_reason reason;
};

/** Calls of a member that the rule looks at, */
static uint64_t calls_in(const struct rbi_shield_member *member, const struct column *column)
{
    const struct rbi_tally *tally = &member->columns[column->index];
    return column->reason == RBI_SHIELD_BECAUSE_LOCAL ? rbi_tally_attempts(tally)
                                                      : rbi_tally_calls(tally);
}

/** and of them those that speak against it. */
static uint32_t bad_in(const struct rbi_shield_member *member, const struct column *column)
{
    const struct rbi_tally *tally = &member->columns[column->index];
    return column->reason == RBI_SHIELD_BECAUSE_LOCAL  ? tally->local
           : column->reason == RBI_SHIELD_BECAUSE_SLOW ? tally->slow
                                                       : tally->fail;
}

static uint32_t rate_in(const struct rbi_shield_member *member, const struct column *column)
{
    return rate(bad_in(member, column), calls_in(member, column));
}

static int compare(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a;
    const uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/** Rates of the members in service that have calls there, ascending. @return how many */
static uint32_t sort_rates(struct rbi_shield_cluster *cluster, const struct column *column)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct rbi_shield_member *member = cluster->members[i];
        if (rbi_shield_serves(member) && calls_in(member, column) > 0) {
            cluster->rates[count++] = rate_in(member, column);
        }
    }
    qsort(cluster->rates, count, sizeof *cluster->rates, compare);
    return count;
}

/** Lower median of the sorted rates without one that is @p own; 0 when no other is there. */
static uint32_t median_of_others(const uint32_t *rates, uint32_t count, uint32_t own, bool counted)
{
    const uint32_t others = counted ? count - 1 : count;
    if (others == 0) {
        return 0;
    }
    const uint32_t middle = (others - 1) / 2;
    /* Leaving out one of several equals shifts only what lies behind the first of them. */
    return counted && rates[middle] >= own ? rates[middle + 1] : rates[middle];
}

/** Figures of the rule for who reads of it: of the clearest one, of those the first. */
static void blame(struct rbi_shield_member *member,
                  const struct column *column,
                  uint32_t severity,
                  uint32_t median)
{
    const bool first = member->cause.reason == RBI_SHIELD_BECAUSE_NONE;
    if (severity < member->severity || (severity == member->severity && !first)) {
        return;
    }
    const uint64_t calls = rbi_min_u64(calls_in(member, column), UINT32_MAX);
    member->severity = severity;
    member->cause = (struct rbi_shield_event){.reason = column->reason,
                                              .window_ms = column->window_ms,
                                              .calls = (uint32_t)calls,
                                              .bad = bad_in(member, column),
                                              .median = median / POINT};
}

static void judge_column(struct rbi_shield_cluster *cluster, const struct column *column)
{
    const uint32_t above = cluster->rules.above_median * POINT;
    const uint32_t count = above != 0 ? sort_rates(cluster, column) : 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct rbi_shield_member *member = cluster->members[i];
        if ((member->tripped & column->bit) == 0) {
            continue;
        }
        const uint32_t own = rate_in(member, column);
        const bool counted = calls_in(member, column) > 0;
        /* A streak says that all fail now, whatever else lies in the column. */
        const uint32_t severity = column->reason == RBI_SHIELD_BECAUSE_CONSECUTIVE ? WHOLE : own;
        const uint32_t median =
            above != 0 ? median_of_others(cluster->rates, count, own, counted) : 0;
        const bool guilty = above == 0 || severity >= median + above;
        blame(member, column, guilty ? severity : 0, median);
    }
}

static bool deviation_counts(const struct rbi_shield_cluster *cluster,
                             const struct rbi_shield_member *member)
{
    return rbi_shield_serves(member) &&
           rbi_tally_calls(&member->columns[0]) >= cluster->rules.deviation_calls;
}

/** Success rates below mean - x sigma. Squares are compared, so that no root is needed. */
static void judge_deviation(struct rbi_shield_cluster *cluster)
{
    const struct rbi_shield_policy *rules = &cluster->rules;
    if (rules->deviations_x10 == 0 || rules->window_count == 0 || rules->preset == RBI_SHIELD_OFF) {
        return;
    }
    const struct column column = {RBI_SHIELD_TRIP_DEVIATION, 0, rules->windows[0].ms,
                                  RBI_SHIELD_BECAUSE_DEVIATION};
    double count = 0;
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        if (deviation_counts(cluster, cluster->members[i])) {
            const double failed = rate_in(cluster->members[i], &column);
            count += 1;
            sum += failed;
            squares += failed * failed;
        }
    }
    if (count < rules->deviation_hosts) {
        return;
    }
    const double mean = sum / count;
    const double variance = squares / count - mean * mean;
    const double factor = rules->deviations_x10 / 10.0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct rbi_shield_member *member = cluster->members[i];
        const double excess = rate_in(member, &column) - mean;
        if (deviation_counts(cluster, member) && excess > 0.5 &&
            excess * excess > factor * factor * variance) {
            member->tripped |= RBI_SHIELD_TRIP_DEVIATION;
            blame(member, &column, rate_in(member, &column), (uint32_t)mean);
        }
    }
}

void rbi_shield_judge_cluster(struct rbi_shield_cluster *cluster)
{
    const struct rbi_shield_policy *rules = &cluster->rules;
    judge_deviation(cluster);
    uint32_t tripped = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        tripped |= cluster->members[i]->tripped;
    }
    if (tripped == 0) {
        return;
    }
    for (uint32_t i = 0; i < rules->window_count; i++) {
        const uint32_t local = RBI_SHIELD_TRIP_LOCAL << i;
        if (tripped & (1U << i)) {
            judge_column(cluster, &(struct column){1U << i, i, rules->windows[i].ms,
                                                   RBI_SHIELD_BECAUSE_WINDOW});
        }
        if (tripped & local) {
            judge_column(cluster, &(struct column){local, i, rules->windows[i].ms,
                                                   RBI_SHIELD_BECAUSE_LOCAL});
        }
    }
    if (tripped & RBI_SHIELD_TRIP_CONSECUTIVE) {
        judge_column(cluster, &(struct column){RBI_SHIELD_TRIP_CONSECUTIVE, RBI_SHIELD_COLUMN_LAST,
                                               LAST_MS, RBI_SHIELD_BECAUSE_CONSECUTIVE});
    }
    if (tripped & RBI_SHIELD_TRIP_SLOW) {
        judge_column(cluster, &(struct column){RBI_SHIELD_TRIP_SLOW, RBI_SHIELD_COLUMN_LAST,
                                               LAST_MS, RBI_SHIELD_BECAUSE_SLOW});
    }
}
