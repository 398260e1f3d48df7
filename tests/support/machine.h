/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_MACHINE_H
#define RINGBUS_TESTS_SUPPORT_MACHINE_H
/*
 * The machine below a test: its cores, and how much of a gap is its doing and not the
 * bus's. A process that is ready to run and has no core waits for the scheduler; a virtual
 * machine is now and then not run at all. Tests with a bound on time subtract both.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** RINGBUS_TEST_FULL is set: the numbers that the scenario names instead of a sample. */
bool machine_full(void);
/** One of two numbers: of the full form, and of the sample. */
#define FULL_OR(full, sample) (machine_full() ? (full) : (sample))

/**
 * A bound on time is met in one of so many rounds, whatever else the machine does beside: what
 * breaks it breaks it in all. What must be so in any case is checked in each round.
 */
#define MACHINE_ROUNDS 3U

uint64_t machine_now_ns(void);
void machine_spin_ns(uint64_t ns);

/** Cores that this process may use, in order. @return how many; at most @p max are written */
unsigned machine_cores(int *cores, unsigned max);
/** Binds the calling thread to one core. */
int machine_pin(int core);

/** Time that the process was ready to run and had no core, since it began; 0 when unknown. */
uint64_t machine_run_delay_ns(pid_t pid);
/** CPU time of the process since it began; 0 when unknown. */
uint64_t machine_cpu_ns(pid_t pid);
/** State of a process as ps shows it: 'S' asleep, 'R' running or ready; 0 when unknown. */
char machine_state(pid_t pid);

/*
 * A watch: one process on each core that sleeps for a fraction of a millisecond again and
 * again, before everybody else where that is permitted, and notes how late it came.
 */
void machine_watch_start(void);
/** @return the longest pause seen, in ns */
uint64_t machine_watch_stop(void);
/** How much of that time the cores, one by one, were paused; as seen so far. */
uint64_t machine_paused_ns(uint64_t from_ns, uint64_t to_ns);

#endif
