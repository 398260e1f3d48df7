/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_MEASURE_LINES_H
#define RINGBUS_MEASURE_LINES_H
/*
 * measure/lines.h - what the machine itself takes for a round trip between two processes: a
 * counter that goes there and one that comes back, each on a cache line of its own. Nothing
 * that sends messages can be faster, and the same figure tells where the two cores lie.
 *
 * The lines are shared by the processes and begin as zeros; side 0 asks, side 1 answers. Each
 * function is called by both sides, with the same arguments but the side. Whoever sets stop
 * makes both leave, now and from then on.
 */
#include <stdbool.h>
#include <stdint.h>

/* Twice a line: the neighbour is often fetched along. */
#define RBI_LINES_APART 128

struct rbi_lines {
    _Alignas(RBI_LINES_APART) _Atomic(uint64_t) ping;
    _Alignas(RBI_LINES_APART) _Atomic(uint64_t) pong;
    _Alignas(RBI_LINES_APART) _Atomic(uint64_t) barrier[2]; /* times that a side has arrived */
    _Alignas(RBI_LINES_APART) _Atomic(uint32_t) asleep[2];  /* of a round trip with sleepers */
    _Alignas(RBI_LINES_APART) _Atomic(uint32_t) stop;
};

/** Round trips up to this are "near" (one last-level cache), longer ones "far". */
#define RBI_LINES_NEAR_NS_MAX 250.0

/** Looks before a side gives its core away, for two sides on cores of their own. */
#define RBI_LINES_LOOKS 20000U

/**
 * Waits for the other side.
 * @param looks  before each yield; 0 where both sides share a core
 * @retval false  stop was set
 */
bool rbi_lines_meet(struct rbi_lines *lines, int side, unsigned looks);

/**
 * Both sides spin; they must run on two cores. Meets first.
 * @return nanoseconds a round trip; 0 when stop was set
 */
double rbi_lines_round_trips(struct rbi_lines *lines, int side, unsigned rounds);

#define RBI_LINES_ASLEEP_MAX 256U

/**
 * The same where each side sleeps in the kernel (a futex) until the other wakes it: the
 * limit of whoever does not spin. Meets first.
 * @param rounds  1 to RBI_LINES_ASLEEP_MAX
 * @param gap_ns  side 0 spins so long before each round trip, not counted: side 1 would not
 *                sleep yet. 0 where both share a core, which makes them sleep anyway.
 * @return on side 0 the median round trip in nanoseconds; on side 1, and when stop was set, 0
 */
double
rbi_lines_round_trips_asleep(struct rbi_lines *lines, int side, unsigned rounds, uint64_t gap_ns);

#endif
