/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_INSTRUCTIONS_CLOCK_H
#define RINGBUS_TESTS_INSTRUCTIONS_CLOCK_H
/*
 * tests/instructions/clock.h - a clock that can be held.
 *
 * How often a poll reads the clock, looks at the daemon or sends a PING follows from how
 * much time has passed, and under valgrind that is chance. While the clock is held, no
 * deadline comes and a tick comes with every 1024th poll, run after run.
 */
#include <stdint.h>

/** Time stands still for the whole process from now on. */
void clock_hold(void);
/** It goes on, from where the machine is. */
void clock_release(void);
/** Readings while it was held: 0 would mean that the library reads another clock. */
uint64_t clock_held_readings(void);

#endif
