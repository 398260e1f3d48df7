/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/retry_budget.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

void rbi_retry_budget_init(struct rbi_retry_budget *budget)
{
    memset(budget, 0, sizeof *budget);
    budget->tokens = RBI_RETRY_TOKENS;
}

/** Empties the buckets of the seconds that have passed. @return the bucket of now */
static unsigned advance(struct rbi_retry_budget *budget, uint64_t now_ns)
{
    const uint64_t second = now_ns / NS_PER_S;
    if (second > budget->second) {
        const uint64_t passed = rbi_min_u64(second - budget->second, RBI_RETRY_SECONDS);
        for (uint64_t i = 0; i < passed; i++) {
            const unsigned at = (unsigned)((second - i) % RBI_RETRY_SECONDS);
            budget->requests[at] = 0;
            budget->retries[at] = 0;
        }
        budget->second = second;
    }
    return (unsigned)(budget->second % RBI_RETRY_SECONDS);
}

static void count(uint32_t *bucket)
{
    *bucket += *bucket < UINT32_MAX ? 1U : 0U;
}

void rbi_retry_budget_asked(struct rbi_retry_budget *budget, uint64_t now_ns)
{
    const unsigned at = advance(budget, now_ns);
    count(&budget->requests[at]);
}

void rbi_retry_budget_ended(struct rbi_retry_budget *budget, bool success)
{
    if (success) {
        budget->tokens =
            (uint32_t)rbi_min_u64(budget->tokens + RBI_RETRY_SUCCESS, RBI_RETRY_TOKENS);
    } else {
        budget->tokens -= (uint32_t)rbi_min_u64(budget->tokens, RBI_RETRY_FAILURE);
    }
}

bool rbi_retry_budget_take(struct rbi_retry_budget *budget,
                           uint32_t percent,
                           uint32_t min_per_s,
                           uint64_t now_ns)
{
    const unsigned at = advance(budget, now_ns);
    uint64_t requests = 0;
    uint64_t retries = 0;
    if (budget->tokens <= RBI_RETRY_TOKENS / 2) {
        return false;
    }
    for (unsigned i = 0; i < RBI_RETRY_SECONDS; i++) {
        requests += budget->requests[i];
        retries += budget->retries[i];
    }
    if (budget->retries[at] >= min_per_s && (retries + 1) * 100 > requests * percent) {
        return false;
    }
    count(&budget->retries[at]);
    return true;
}
