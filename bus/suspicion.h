/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SUSPICION_H
#define RINGBUS_BUS_SUSPICION_H
/*
 * bus/suspicion.h - what one caller thinks of one instance, at once and for itself alone, before
 * the host has judged: after RBI_SUSPICION_STREAK failures in a row, and at least half of the
 * calls of the last second failed, it picks others for a second. Never published, never told.
 * For picks without a key only: a key's owner does not depend on who asks.
 *
 * It looks at counts that are kept anyway, and only when a call fails, so that calls which are well
 * cost nothing. What ended in the second before the oldest failure it remembers is estimated: as
 * if it had been spread evenly since the failure before that.
 *
 * 40 bytes a (caller, instance), zero at the start.
 */
#include "shm/base.h"

#define RBI_SUSPICION_STREAK    5U
#define RBI_SUSPICION_SECOND_NS UINT64_C(1000000000)

struct rbi_suspicion {
    uint64_t until_ns; /* avoided before; 0: not */
    uint64_t since_ns; /* of the second that is counted; 0: none yet */
    uint64_t ok_then;  /* totals when it began */
    uint64_t bad_then;
    uint32_t ok_before; /* in the second before it */
    uint32_t bad_before;
};

/**
 * A call to the instance has failed. Cost: a few divisions.
 * @param ok       calls that were well, in all; never falls
 * @param bad      calls that failed, in all, with this one
 * @param streak   failures since the last success
 * @param now_ns   CLOCK_MONOTONIC; may be coarse, as a tick's is
 */
void rbi_suspicion_failed(
    struct rbi_suspicion *suspicion, uint64_t ok, uint64_t bad, uint64_t streak, uint64_t now_ns);
/** Whether to pick another, if there is one. One compare. */
static inline bool rbi_suspicion_holds(const struct rbi_suspicion *suspicion, uint64_t now_ns)
{
    return RBI_UNLIKELY(now_ns < suspicion->until_ns);
}

#endif
