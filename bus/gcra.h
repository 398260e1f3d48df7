/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GCRA_H
#define RINGBUS_BUS_GCRA_H
/*
 * bus/gcra.h - the generic cell rate algorithm: a limit of rate and burst that is one word of
 * state, without timer and without refill. Pure: time is an argument.
 *
 * The word is the theoretical arrival time, the instant at which a sender that keeps the rate
 * exactly would be done with what it has sent. Each unit moves it on by 1/rate; what may be sent at
 * once is by how far it may be ahead of the clock: burst/rate. That is a token bucket of the same
 * rate and size, to the nanosecond. Told to delay instead of to refuse, the same word is a leaky
 * bucket: it says when the message is due.
 *
 * The time of a unit has 24 bits behind the point, and so has the word: 7 x 10^8 a second are not
 * 10^9, and what is rounded is the rate, once and by less than 3 x 10^-8 of it (up to 10^9 a
 * second): nothing adds up.
 */
#include "shm/base.h"

#define RBI_GCRA_RATE_MAX UINT64_C(1000000000000) /* units a second */
#define RBI_GCRA_SUB_BITS 24U
/** Of a limit without a burst: what the rate gives in this time. */
#define RBI_GCRA_BURST_NS UINT64_C(100000000)
/** No burst and no wait is longer: a limit that lends more than a day ahead limits nothing. */
#define RBI_GCRA_AHEAD_NS_MAX (UINT64_C(86400) * 1000000000)

/** What is allowed: the same for all who are limited alike. */
struct rbi_gcra_rate {
    uint64_t unit;     /* time of one unit, 2^-24 ns */
    uint64_t burst_ns; /* how far the word may be ahead */
    uint64_t wait_ns;  /* and how much farther, when what is ahead is delayed; 0: refused */
};

/** How far one sender has gone. All zero: it has sent nothing. One writer. */
struct rbi_gcra {
    uint64_t arrival_ns;  /* theoretical */
    uint32_t arrival_sub; /* its fraction, 2^-24 ns */
    uint32_t owed;        /* units ahead that did not fit in a slower rate's burst */
};

/**
 * Rate in thousandths of a unit a second, so that a share of a small rate can be told as well.
 * @param rate_milli  1 to 1000 x RBI_GCRA_RATE_MAX: what is outside is taken as the bound
 * @param burst       units; 0: what the rate gives in RBI_GCRA_BURST_NS. One unit always passes
 * @param wait_ns     longest delay, 0: nothing is delayed
 */
void rbi_gcra_rate_init(struct rbi_gcra_rate *rate,
                        uint64_t rate_milli,
                        uint64_t burst,
                        uint64_t wait_ns);

/**
 * How long @p units would have to wait to be within rate and burst; 0: they are. Takes nothing.
 * More than the whole burst is let through by an untouched burst, and paid for afterwards: a
 * message that is larger could never be sent otherwise.
 */
uint64_t rbi_gcra_wait_ns(const struct rbi_gcra_rate *rate,
                          const struct rbi_gcra *gcra,
                          uint64_t units,
                          uint64_t now_ns);
/** @p units are sent at @p now_ns, or due as long after it as rbi_gcra_wait_ns() said before. */
void rbi_gcra_take(const struct rbi_gcra_rate *rate,
                   struct rbi_gcra *gcra,
                   uint64_t units,
                   uint64_t now_ns);
/**
 * The rate changes: what was sent ahead stays the same number of units, to be paid for at the new
 * rate. The word is a time, and a time that a slow rate has booked would bind a fast one: one unit
 * at a unit in 1,000 s would keep the next from being sent for as long at 1,000 a second. The other
 * way nobody waits longer than burst and wait of the slower rate; what does not fit there is owed
 * until the rate rises again, so that one that goes up and down gives no burst each time.
 * Cost: two divisions of 128 bits.
 * @param rate  the new one, with its burst and wait
 */
void rbi_gcra_follow(const struct rbi_gcra_rate *old,
                     const struct rbi_gcra_rate *rate,
                     struct rbi_gcra *gcra,
                     uint64_t now_ns);

#endif
