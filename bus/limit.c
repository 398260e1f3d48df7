/* SPDX-License-Identifier: Apache-2.0 */
/* bus/limit.c - see bus/limit.h. */
#include "bus/limit.h"

#include "bus/glob.h"

#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

static bool concerns(const struct rbi_limit *limit, const char *caller, size_t length)
{
    return limit->caller[0] == '\0' ||
           rbi_glob_match(limit->caller, strnlen(limit->caller, sizeof limit->caller), caller,
                          length);
}

void rbi_limits_compile(struct rbi_limits *limits,
                        const struct rbi_policy *policy,
                        const char *caller,
                        size_t caller_length,
                        unsigned scopes)
{
    limits->count = 0;
    limits->scopes = 0;
    for (uint8_t i = 0; i < policy->limit_count && i < RBI_LIMITS_MAX; i++) {
        const struct rbi_limit *limit = &policy->limits[i];
        const unsigned bit = RBI_LIMIT_BIT(limit->scope);
        if ((bit & scopes) == 0 || !concerns(limit, caller, caller_length)) {
            continue;
        }
        struct rbi_limit_rule *rule = &limits->rules[limits->count++];
        *rule = (struct rbi_limit_rule){.method_low = limit->method_low,
                                        .method_high = limit->method_high,
                                        .scope = (uint8_t)limit->scope,
                                        .unit = (uint8_t)limit->unit,
                                        .dry_run = limit->dry_run != 0,
                                        .index = i};
        memcpy(rule->id, limit->id, strnlen(limit->id, RBI_LABEL_MAX)); /* the rest is zero */
        rbi_gcra_rate_init(&rule->rate, 1000 * rbi_min_u64(limit->rate, RBI_GCRA_RATE_MAX),
                           limit->burst, limit->max_wait_ms * NS_PER_MS);
        limits->scopes |= bit;
    }
}

int rbi_limit_same(const struct rbi_limits *limits, unsigned position, const struct rbi_limits *old)
{
    const struct rbi_limit_rule *rule = &limits->rules[position];
    for (unsigned i = 0; i < old->count; i++) {
        const struct rbi_limit_rule *other = &old->rules[i];
        if (rule->unit == other->unit && rule->scope == other->scope &&
            strcmp(rule->id, other->id) == 0) {
            return (int)i;
        }
    }
    return -1;
}

void rbi_limit_words_carry(struct rbi_limit_words *words,
                           const struct rbi_limits *limits,
                           const struct rbi_limit_words *old_words,
                           const struct rbi_limits *old,
                           uint64_t now_ns)
{
    const struct rbi_limit_words from = *old_words; /* may be the very words */
    memset(words, 0, sizeof *words);
    for (unsigned i = 0; i < limits->count; i++) {
        const int same = rbi_limit_same(limits, i, old);
        if (same >= 0) {
            words->word[i] = from.word[same];
            rbi_gcra_follow(&old->rules[same].rate, &limits->rules[i].rate, &words->word[i],
                            now_ns);
        }
    }
}

void rbi_limits_set_rate(struct rbi_limits *limits,
                         struct rbi_limit_words *shared,
                         unsigned position,
                         uint64_t rate_milli,
                         uint64_t now_ns)
{
    struct rbi_gcra_rate *rate = &limits->rules[position].rate;
    const struct rbi_gcra_rate old = *rate;
    struct rbi_gcra_rate other;
    rbi_gcra_rate_init(&other, rate_milli, 1, 0);
    rate->unit = other.unit;
    rbi_gcra_follow(&old, rate, &shared->word[position], now_ns);
}

static bool is_about(const struct rbi_limit_rule *rule, const struct rbi_limit_question *question)
{
    return question->method >= rule->method_low && question->method <= rule->method_high;
}

static uint64_t units_of(const struct rbi_limit_rule *rule,
                         const struct rbi_limit_question *question)
{
    return rule->unit == RBI_LIMIT_BYTES ? question->bytes : 1;
}

enum rbi_limit_result rbi_limits_check(const struct rbi_limits *limits,
                                       const struct rbi_limit_words *shared,
                                       const struct rbi_limit_words *instance,
                                       const struct rbi_limit_question *question,
                                       struct rbi_limit_verdict *verdict)
{
    enum rbi_limit_result result = RBI_LIMIT_PASS;
    *verdict = (struct rbi_limit_verdict){.wait_ns = 0};
    for (uint8_t i = 0; i < limits->count; i++) {
        const struct rbi_limit_rule *rule = &limits->rules[i];
        const struct rbi_limit_words *words = rule->scope == RBI_LIMIT_INSTANCE ? instance : shared;
        if (!is_about(rule, question) || words == NULL) {
            continue;
        }
        const uint64_t wait_ns = rbi_gcra_wait_ns(&rule->rate, &words->word[i],
                                                  units_of(rule, question), question->now_ns);
        const bool refused = wait_ns > rule->rate.wait_ns;
        if (rule->dry_run) {
            verdict->dry_rule = refused ? i : verdict->dry_rule;
            verdict->dry_refused |= refused;
        } else if (wait_ns > 0) {
            /* Whoever refuses decides: of those, and else of all, the one with the longest wait. */
            const enum rbi_limit_result says = refused ? RBI_LIMIT_REFUSE : RBI_LIMIT_DELAY;
            if (says > result || (says == result && wait_ns > verdict->wait_ns)) {
                verdict->rule = i;
            }
            verdict->wait_ns = rbi_max_u64(verdict->wait_ns, wait_ns);
            result = says > result ? says : result;
        }
    }
    return result;
}

void rbi_limits_take(const struct rbi_limits *limits,
                     struct rbi_limit_words *shared,
                     struct rbi_limit_words *instance,
                     const struct rbi_limit_question *question)
{
    for (unsigned i = 0; i < limits->count; i++) {
        const struct rbi_limit_rule *rule = &limits->rules[i];
        struct rbi_limit_words *words = rule->scope == RBI_LIMIT_INSTANCE ? instance : shared;
        if (!is_about(rule, question) || words == NULL) {
            continue;
        }
        const uint64_t units = units_of(rule, question);
        /* A dry run counts as if it had refused what it would have: else it would drift away. */
        if (!rule->dry_run || rbi_gcra_wait_ns(&rule->rate, &words->word[i], units,
                                               question->now_ns) <= rule->rate.wait_ns) {
            rbi_gcra_take(&rule->rate, &words->word[i], units, question->now_ns);
        }
    }
}
