/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CLOCK_H
#define RINGBUS_LIBCLIENT_CLOCK_H
/* libclient/clock.h - time, as the handle reads it. */
#include "bus/pidf.h"

#include <stdint.h>

struct ringbus;

#define RBI_NS_PER_MS UINT64_C(1000000)
#define RBI_NEVER     UINT64_MAX
/* What a tick comes later than this after its deadline, or a handler takes, is told as late. */
#define RBI_LATE_NS (10 * RBI_NS_PER_MS)

uint64_t rbi_now_ns(void);
static inline uint32_t rbi_ms_of(uint64_t ns)
{
    return (uint32_t)rbi_min_u64(ns / RBI_NS_PER_MS, UINT32_MAX);
}
/** Cheaper and up to a few milliseconds old; never ahead. */
uint64_t rbi_now_coarse_ns(void);
/** Uniform below @p bound, for jitter. */
uint64_t rbi_random_below(struct ringbus *bus, uint64_t bound);

#endif
