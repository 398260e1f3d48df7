/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_RANDOM_H
#define RINGBUS_BUS_BALANCE_RANDOM_H
/*
 * bus/balance_random.h - the random numbers of a caller: SplitMix64 (Steele, Lea and Flood 2014).
 * One multiplication deep, no state but a word. Not for secrets.
 */
#include "shm/base.h"

struct rbi_random {
    uint64_t state;
};

static inline uint64_t rbi_random_next(struct rbi_random *random)
{
    uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/**
 * Starts it anew. @p who and @p when may be anything that tells callers apart, such as an address
 * and a clock: callers with neighbouring ones have nothing else in common.
 */
static inline void rbi_random_init(struct rbi_random *random, uint64_t who, uint64_t when)
{
    random->state = who;
    random->state = rbi_random_next(random) ^ when;
    random->state = rbi_random_next(random);
}

/** A fraction of 2^-32 scaled to 0..n-1, without a division; the bias is at most n / 2^32. */
static inline uint32_t rbi_random_scale(uint32_t fraction, uint32_t n)
{
    return (uint32_t)((uint64_t)fraction * n >> 32);
}

/** 0 to @p n - 1. */
static inline uint32_t rbi_random_under(struct rbi_random *random, uint32_t n)
{
    return rbi_random_scale((uint32_t)(rbi_random_next(random) >> 32), n);
}

#endif
