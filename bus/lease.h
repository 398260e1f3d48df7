/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_LEASE_H
#define RINGBUS_BUS_LEASE_H
/*
 * bus/lease.h - a limit of all callers of a cluster together: its rate is divided among them by
 * what each wants to send, anew every RBI_LEASE_PERIOD_NS, and each keeps its share itself. Pure.
 *
 * The division is max-min fair: whoever wants less than an equal part has what it wants, and what
 * it leaves is divided equally among those who want more. What nobody wants is spread over those
 * who ask, so that whoever wants more in the next moment has it already. The shares never sum up to
 * more than the rate.
 *
 * Rates are in thousandths of a unit a second: of 1 message a second five callers can have a fifth.
 */
#include "shm/base.h"

#define RBI_LEASE_PERIOD_NS UINT64_C(100000000)
/** A share holds for so long; then the caller falls back to its static one. */
#define RBI_LEASE_FRESH_NS UINT64_C(1000000000)
/** A caller that has not asked for so long wants nothing. */
#define RBI_LEASE_DEMAND_NS (3 * RBI_LEASE_PERIOD_NS)
/** Of this part of the rate is the share of a caller that knows no daemon and was never told. */
#define RBI_LEASE_ALONE 16U

/** A caller in the division. */
struct rbi_lease {
    uint64_t demand; /* what it wants to send */
    uint64_t share;  /* what it may: written by rbi_lease_divide() */
    uint64_t told;   /* what it was told it may, and may go by still; 0: nothing */
};

/** Part of each of @p callers when nobody divides: never 0. */
uint64_t rbi_lease_static(uint64_t rate_milli, uint64_t callers);
/**
 * Divides @p rate_milli among @p leases.
 * Cost: count x log(count).
 * @param order  scratch, @p count entries
 */
void rbi_lease_divide(uint64_t rate_milli,
                      struct rbi_lease *leases,
                      unsigned count,
                      uint32_t *order);

/**
 * Cuts shares that grow to what is free now: what others were told before counts until they have
 * been told less, so that all that anybody goes by never sums up to more than the rate. The rest
 * follows with the next division.
 */
void rbi_lease_settle(uint64_t rate_milli, struct rbi_lease *leases, unsigned count);

/** A caller's side: what it wants, and which rate holds for it. */
struct rbi_lease_holder {
    uint64_t share;    /* leased */
    uint64_t fallback; /* static share, as last told */
    uint64_t until_ns; /* the lease holds; 0: there never was one */
    uint64_t units;    /* offered since asked_ns, sent and refused */
    uint64_t asked_ns; /* when the demand was last told; 0: never */
};

/** @param rate_milli  of the whole limit */
void rbi_lease_holder_init(struct rbi_lease_holder *holder, uint64_t rate_milli);
/** A lease came. */
void rbi_lease_granted(struct rbi_lease_holder *holder,
                       uint64_t share,
                       uint64_t fallback,
                       uint64_t now_ns);
/** The rate that holds now: thousandths a second, never 0. */
uint64_t rbi_lease_rate(const struct rbi_lease_holder *holder, uint64_t now_ns);
/**
 * Whether the demand is to be told, and what it is: at once for the first that is sent after a
 * while, then once a period while something is offered.
 * @param demand  set when it is: thousandths a second
 */
bool rbi_lease_ask(struct rbi_lease_holder *holder, uint64_t now_ns, uint64_t *demand);

#endif
