/* SPDX-License-Identifier: Apache-2.0 */
/* bus/suspicion.c - four quarters of a second, and a streak. */
#include "bus/suspicion.h"

#define QUARTERS      4U
#define QUARTER_SHIFT 28U /* ns: 268 ms, so that no division is needed */

static void roll(struct rbi_suspicion *suspicion, uint32_t quarter)
{
    const uint32_t passed = quarter - suspicion->quarter;
    if (passed >= UINT32_MAX / 2) {
        return; /* an older time than the last one */
    }
    for (uint32_t i = 0; i < passed && i < QUARTERS; i++) {
        suspicion->ok[(quarter - i) % QUARTERS] = 0;
        suspicion->fail[(quarter - i) % QUARTERS] = 0;
    }
    suspicion->quarter = quarter;
}

static void count(uint16_t *counter)
{
    if (*counter < UINT16_MAX) {
        ++*counter;
    }
}

static bool half_failed(const struct rbi_suspicion *suspicion)
{
    uint32_t ok = 0;
    uint32_t fail = 0;
    for (unsigned i = 0; i < QUARTERS; i++) {
        ok += suspicion->ok[i];
        fail += suspicion->fail[i];
    }
    return fail >= ok;
}

void rbi_suspicion_count(struct rbi_suspicion *suspicion, bool failed, uint64_t now_ns)
{
    roll(suspicion, (uint32_t)(now_ns >> QUARTER_SHIFT));
    if (!failed) {
        suspicion->streak = 0;
        count(&suspicion->ok[suspicion->quarter % QUARTERS]);
        return;
    }
    if (suspicion->streak < UINT32_MAX) {
        suspicion->streak++;
    }
    count(&suspicion->fail[suspicion->quarter % QUARTERS]);
    if (suspicion->streak >= RBI_SUSPICION_STREAK && half_failed(suspicion)) {
        suspicion->until_ns = now_ns + RBI_SUSPICION_AVOID_NS;
    }
}
