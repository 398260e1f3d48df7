/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/reported.h"

#define MS UINT64_C(1000000)

/* A new second moves a mean by a quarter. */
#define SHIFT    2U
#define USE_UNIT UINT64_C(1024)

/* Counters are their owners': what follows from them stays in range. */
#define RATE_MAX     (UINT64_C(1) << 44)
#define CAPACITY_MAX (UINT64_C(1) << 44)

static void follow(uint64_t *mean, uint64_t sample, bool first)
{
    *mean = first            ? sample
            : sample > *mean ? *mean + ((sample - *mean) >> SHIFT)
                             : *mean - ((*mean - sample) >> SHIFT);
}

static uint64_t grown(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static uint64_t rate_of(uint64_t events, uint64_t elapsed_ns)
{
    const uint64_t bounded = rbi_min_u64(events, RATE_MAX / 1000);
    return rbi_min_u64(bounded * (1000 * MS) / rbi_max_u64(elapsed_ns / 1000, 1), RATE_MAX);
}

static void begin(struct rbi_reported *reported, uint64_t now_ns)
{
    reported->begin_ns = now_ns;
    reported->valid_ns = now_ns;
    reported->rate = 0;
    reported->capacity = 0;
}

/* The last second, if it says anything. */
static void take(struct rbi_reported *reported, const struct rbi_reported_look *look, uint64_t ns)
{
    const uint64_t rate = rate_of(grown(reported->last.handled, look->handled), ns);
    const bool first = reported->rate == 0;
    if (rate == 0 || look->use == 0) {
        return;
    }
    follow(&reported->rate, rate, first);
    follow(&reported->fail_rate, rate_of(grown(reported->last.failed, look->failed), ns), first);
    follow(&reported->use, rbi_min_u64(look->use, RBI_REPORTED_USE_MAX) * USE_UNIT, first);
    reported->valid_ns = reported->turn_ns;
}

static uint64_t capacity_of(const struct rbi_reported *reported)
{
    /* Both parts in 1/1024 of a thousandth; a failure counts as a message that took all of it. */
    const uint64_t failed =
        rbi_min_u64(reported->fail_rate, reported->rate) * 1000 / rbi_max_u64(reported->rate, 1);
    const uint64_t use = reported->use + failed * USE_UNIT;
    const uint64_t capacity = reported->rate * USE_UNIT / rbi_max_u64(use, 1) * 1000;
    return rbi_min_u64(rbi_max_u64(capacity, 1), CAPACITY_MAX);
}

void rbi_reported_turn(struct rbi_reported *reported,
                       const struct rbi_reported_look *look,
                       uint64_t now_ns)
{
    const uint64_t elapsed_ns = now_ns - reported->turn_ns;
    const bool seen = reported->turn_ns != 0;
    const bool fresh = look->number != reported->last.number && look->number != 0;
    reported->turn_ns = now_ns;
    if (fresh && reported->begin_ns == 0) {
        begin(reported, now_ns);
    } else if (fresh && seen && elapsed_ns > 0) {
        take(reported, look, elapsed_ns);
    }
    reported->last = *look;
    if (reported->begin_ns == 0) {
        return;
    }
    if (now_ns - reported->valid_ns >= RBI_REPORTED_EXPIRY_MS * MS) {
        reported->begin_ns = 0;
        reported->capacity = 0;
    } else if (now_ns - reported->begin_ns >= RBI_REPORTED_BLIND_MS * MS && reported->rate != 0) {
        reported->capacity = capacity_of(reported);
    }
}

uint64_t rbi_reported_mean(const uint64_t *capacities, uint32_t count)
{
    uint64_t sum = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += capacities[i];
        known += capacities[i] != 0 ? 1U : 0U;
    }
    return known < 2 ? 0 : rbi_max_u64(sum / known, 1);
}

uint32_t rbi_reported_weight(uint64_t capacity, uint64_t mean)
{
    if (mean == 0) {
        return 0;
    }
    if (capacity == 0) {
        return RBI_REPORTED_MEAN;
    }
    const uint64_t weight = (capacity * RBI_REPORTED_MEAN + mean / 2) / mean;
    return (uint32_t)rbi_max_u64(rbi_min_u64(weight, RBI_REPORTED_MOST), RBI_REPORTED_LEAST);
}

bool rbi_reported_differs(uint32_t told, uint32_t weight)
{
    const uint32_t by = told > weight ? told - weight : weight - told;
    return (told == 0) != (weight == 0) || by * 20 > told; /* more than a twentieth */
}
