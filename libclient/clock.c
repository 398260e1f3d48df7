/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/clock.c - monotonic time (never the wall clock) and jitter. */
#include "libclient/internal.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now); /* cannot fail for these clocks */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t rbi_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t rbi_now_coarse_ns(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t rbi_random_below(struct ringbus *bus, uint64_t bound)
{
    /* splitmix64 (Steele, Lea, Flood 2014): enough for jitter and round-robin starts. */
    uint64_t z = (bus->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return bound == 0 ? 0 : z % bound;
}
