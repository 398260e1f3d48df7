/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SUSPICION_H
#define RINGBUS_BUS_SUSPICION_H
/*
 * bus/suspicion.h - what one caller thinks of one instance, at once and for itself alone, before
 * the host has judged: after RBI_SUSPICION_STREAK failures in a row, and at least half of the
 * calls of the last second failed, it picks others for a second. Never published, never told.
 * For picks without a key only: a key's owner does not depend on who asks.
 *
 * 32 bytes a (caller, instance), zero at the start. No division, no loop longer than four.
 */
#include "shm/base.h"

#define RBI_SUSPICION_STREAK   5U
#define RBI_SUSPICION_AVOID_NS UINT64_C(1000000000)

struct rbi_suspicion {
    uint64_t until_ns; /* avoided before; 0: not */
    uint32_t quarter;  /* number of the newest of the four quarters of a second */
    uint32_t streak;   /* failures since the last success */
    uint16_t ok[4];
    uint16_t fail[4];
};

/** A call to the instance ended. @param now_ns CLOCK_MONOTONIC; may be coarse, as a tick's is */
void rbi_suspicion_count(struct rbi_suspicion *suspicion, bool failed, uint64_t now_ns);
/** Whether to pick another, if there is one. One compare. */
static inline bool rbi_suspicion_holds(const struct rbi_suspicion *suspicion, uint64_t now_ns)
{
    return RBI_UNLIKELY(now_ns < suspicion->until_ns);
}

#endif
