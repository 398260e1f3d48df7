/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_RETRY_BUDGET_H
#define RINGBUS_BUS_RETRY_BUDGET_H
/*
 * bus/retry_budget.h - how many requests of one caller to one cluster may be asked again, so
 * that retries cannot turn an overload into a collapse. Pure.
 *
 * Two rules, and both must allow a retry:
 *  - share: of the last 10 s, retries are at most so many percent of the requests; so many a
 *    second are allowed whatever the share is, for who asks seldom.
 *  - throttle: 10 tokens; a failure takes one, a success gives a tenth back; at half of them or
 *    below, nothing is asked again. It stops retries when most of what is asked fails, at once
 *    and however little the share has used.
 */
#include "shm/base.h"

#define RBI_RETRY_SECONDS 10U
/** Tokens, in tenths: full, what a failure takes and a success gives. */
#define RBI_RETRY_TOKENS  100U
#define RBI_RETRY_FAILURE 10U
#define RBI_RETRY_SUCCESS 1U

struct rbi_retry_budget {
    uint64_t second;                      /* of the newest bucket */
    uint32_t tokens;                      /* tenths */
    uint32_t requests[RBI_RETRY_SECONDS]; /* by second, as a ring */
    uint32_t retries[RBI_RETRY_SECONDS];
};

void rbi_retry_budget_init(struct rbi_retry_budget *budget);
/** A request is asked for the first time. */
void rbi_retry_budget_asked(struct rbi_retry_budget *budget, uint64_t now_ns);
/** A try has ended: with an answer, or refused, lost or too late. */
void rbi_retry_budget_ended(struct rbi_retry_budget *budget, bool success);
/**
 * Takes a retry from the budget.
 * @param percent     of the requests, 0 to 100
 * @param min_per_s   whatever the share is
 * @return whether there was one
 */
bool rbi_retry_budget_take(struct rbi_retry_budget *budget,
                           uint32_t percent,
                           uint32_t min_per_s,
                           uint64_t now_ns);

#endif
