/* SPDX-License-Identifier: Apache-2.0 */
/* bus/sojourn.c - see bus/sojourn.h. */
#include "bus/sojourn.h"

#include <string.h>

/* Waits of so many times the target are above it by more than one step, and by many more. */
#define FAR     4U
#define FARTHER 16U

void rbi_sojourn_init(struct rbi_sojourn *sojourn, uint64_t target_ns, uint64_t interval_ns)
{
    memset(sojourn, 0, sizeof *sojourn);
    sojourn->target_ns = target_ns;
    sojourn->interval_ns = rbi_max_u64(interval_ns, 1);
    sojourn->least_ns = UINT64_MAX;
}

void rbi_sojourn_away(struct rbi_sojourn *sojourn, uint64_t from_ns, uint64_t until_ns)
{
    const uint64_t away_ns = until_ns > from_ns ? until_ns - from_ns : 0;
    sojourn->away_from_ns = from_ns;
    sojourn->away_until_ns = until_ns;
    if (away_ns >= sojourn->interval_ns) {
        sojourn->calm_until_ns = rbi_max_u64(sojourn->calm_until_ns, until_ns + away_ns);
    }
}

/* Without the time in which nobody looked. */
static uint64_t wait_of_ours(const struct rbi_sojourn *sojourn, uint64_t waited_ns, uint64_t now_ns)
{
    if (now_ns < sojourn->calm_until_ns) {
        return 0;
    }
    const uint64_t sent_ns = now_ns - rbi_min_u64(waited_ns, now_ns);
    const uint64_t from_ns = rbi_max_u64(sent_ns, sojourn->away_from_ns);
    const uint64_t away_ns =
        sojourn->away_until_ns > from_ns ? sojourn->away_until_ns - from_ns : 0;
    return waited_ns - rbi_min_u64(away_ns, waited_ns);
}

static void rise(struct rbi_sojourn *sojourn)
{
    const uint64_t times = sojourn->least_ns / sojourn->target_ns;
    const uint32_t step = times >= FARTHER ? 4 : times >= FAR ? 2 : 1;
    sojourn->busy = true;
    sojourn->pressure = (uint32_t)rbi_min_u64(sojourn->pressure + step, RBI_SOJOURN_MAX);
}

static void fall(struct rbi_sojourn *sojourn)
{
    sojourn->busy = false;
    if (sojourn->pressure > 0) {
        sojourn->pressure--;
    }
}

/* An interval in which nothing came says nothing: neither that it waits nor that it does not. */
static void end_interval(struct rbi_sojourn *sojourn, uint64_t now_ns)
{
    if (sojourn->least_ns > sojourn->target_ns && sojourn->least_ns != UINT64_MAX) {
        rise(sojourn);
    } else {
        fall(sojourn);
    }
    sojourn->least_ns = UINT64_MAX;
    sojourn->end_ns = now_ns + sojourn->interval_ns;
}

bool rbi_sojourn_took(struct rbi_sojourn *sojourn, uint64_t waited_ns, uint64_t now_ns)
{
    const bool busy = rbi_sojourn_busy(sojourn);
    if (sojourn->target_ns == 0) {
        return false;
    }
    if (sojourn->end_ns == 0) {
        sojourn->end_ns = now_ns + sojourn->interval_ns;
        sojourn->least_ns = 0; /* it may have been away before: nobody knows */
    } else if (now_ns >= sojourn->end_ns) {
        end_interval(sojourn, now_ns);
    }
    sojourn->least_ns = rbi_min_u64(sojourn->least_ns, wait_of_ours(sojourn, waited_ns, now_ns));
    return busy != rbi_sojourn_busy(sojourn);
}

bool rbi_sojourn_idle(struct rbi_sojourn *sojourn, uint64_t now_ns)
{
    return rbi_sojourn_took(sojourn, 0, now_ns);
}

bool rbi_sojourn_sheds(struct rbi_sojourn *sojourn,
                       unsigned priority,
                       uint64_t waited_ns,
                       uint64_t now_ns)
{
    const uint64_t ours_ns = wait_of_ours(sojourn, waited_ns, now_ns);
    const unsigned at = (unsigned)rbi_min_u64(priority, RBI_PRIORITIES - 1);
    const uint32_t whole = sojourn->pressure / RBI_SOJOURN_STEPS;
    if (sojourn->pressure == 0 || at > whole) {
        return false;
    }
    /* What is refused whole makes room early: or the next priority would be refused for it. */
    if (at < whole) {
        return ours_ns > sojourn->target_ns / 4;
    }
    if (ours_ns <= sojourn->target_ns) {
        return false;
    }
    /* The part of it that is refused is spread evenly. */
    sojourn->credit[at] += sojourn->pressure % RBI_SOJOURN_STEPS;
    if (sojourn->credit[at] >= RBI_SOJOURN_STEPS) {
        sojourn->credit[at] -= RBI_SOJOURN_STEPS;
        return true;
    }
    return false;
}
