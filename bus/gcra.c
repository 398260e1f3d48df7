/* SPDX-License-Identifier: Apache-2.0 */
/* bus/gcra.c - see bus/gcra.h. */
#include "bus/gcra.h"

/* A second in which a thousandth of a unit is sent, in 2^-24 ns: a unit of the slowest rate. */
#define UNIT_SLOWEST (UINT64_C(1000000000000) << RBI_GCRA_SUB_BITS)
#define SUB_MASK     ((UINT32_C(1) << RBI_GCRA_SUB_BITS) - 1)

/* Times with 24 bits behind the point; a product of units and their time has up to 128. */
__extension__ typedef unsigned __int128 rbi_u128;

void rbi_gcra_rate_init(struct rbi_gcra_rate *rate,
                        uint64_t rate_milli,
                        uint64_t burst,
                        uint64_t wait_ns)
{
    const uint64_t milli = rbi_max_u64(1, rbi_min_u64(rate_milli, 1000 * RBI_GCRA_RATE_MAX));
    rate->unit = (UNIT_SLOWEST + milli / 2) / milli;
    const rbi_u128 most = (rbi_u128)RBI_GCRA_AHEAD_NS_MAX << RBI_GCRA_SUB_BITS;
    const rbi_u128 ahead = burst != 0 ? (rbi_u128)burst * rate->unit
                                      : (rbi_u128)RBI_GCRA_BURST_NS << RBI_GCRA_SUB_BITS;
    rate->burst_ns = (uint64_t)((ahead < most ? ahead : most) >> RBI_GCRA_SUB_BITS);
    rate->wait_ns = rbi_min_u64(wait_ns, RBI_GCRA_AHEAD_NS_MAX);
}

/* By how much the word is ahead of the clock. */
static rbi_u128 ahead_of(const struct rbi_gcra *gcra, uint64_t now_ns)
{
    if (gcra->arrival_ns < now_ns) {
        return 0;
    }
    return ((rbi_u128)(gcra->arrival_ns - now_ns) << RBI_GCRA_SUB_BITS) + gcra->arrival_sub;
}

uint64_t rbi_gcra_wait_ns(const struct rbi_gcra_rate *rate,
                          const struct rbi_gcra *gcra,
                          uint64_t units,
                          uint64_t now_ns)
{
    const rbi_u128 ahead = ahead_of(gcra, now_ns);
    const rbi_u128 after = ahead + (rbi_u128)units * rate->unit;
    /* Rounded up: the burst was cut to whole nanoseconds. */
    const rbi_u128 burst = ((rbi_u128)rate->burst_ns << RBI_GCRA_SUB_BITS) + SUB_MASK;
    if (RBI_LIKELY(after <= burst)) {
        return 0;
    }
    const rbi_u128 over = after - burst;
    return (uint64_t)(((over < ahead ? over : ahead) + SUB_MASK) >> RBI_GCRA_SUB_BITS);
}

static void set_ahead(struct rbi_gcra *gcra, rbi_u128 ahead, uint64_t now_ns)
{
    const rbi_u128 most = (rbi_u128)RBI_GCRA_AHEAD_NS_MAX << RBI_GCRA_SUB_BITS;
    ahead = ahead < most ? ahead : most;
    gcra->arrival_ns = now_ns + (uint64_t)(ahead >> RBI_GCRA_SUB_BITS);
    gcra->arrival_sub = (uint32_t)ahead & SUB_MASK;
}

void rbi_gcra_take(const struct rbi_gcra_rate *rate,
                   struct rbi_gcra *gcra,
                   uint64_t units,
                   uint64_t now_ns)
{
    set_ahead(gcra, ahead_of(gcra, now_ns) + (rbi_u128)units * rate->unit, now_ns);
}

void rbi_gcra_follow(const struct rbi_gcra_rate *old,
                     const struct rbi_gcra_rate *rate,
                     struct rbi_gcra *gcra,
                     uint64_t now_ns)
{
    const rbi_u128 ahead = ahead_of(gcra, now_ns);
    if ((ahead == 0 && gcra->owed == 0) || old->unit == rate->unit) {
        return;
    }
    const rbi_u128 longest = (rbi_u128)(rate->burst_ns + rate->wait_ns) << RBI_GCRA_SUB_BITS;
    const rbi_u128 units = ahead / old->unit + gcra->owed;
    const uint64_t rest = (uint64_t)(ahead % old->unit);
    const rbi_u128 booked = longest / rate->unit;
    if (units < booked) {
        gcra->owed = 0;
        set_ahead(gcra, units * rate->unit + (rbi_u128)rest * rate->unit / old->unit, now_ns);
    } else {
        gcra->owed = (uint32_t)(units - booked < UINT32_MAX ? units - booked : UINT32_MAX);
        set_ahead(gcra, longest, now_ns);
    }
}
